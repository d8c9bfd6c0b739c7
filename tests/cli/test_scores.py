import io
import re

import numpy as np
import pytest

from leanrank.cli.datafiles import read_scores, write_scores
from leanrank.errors import FileError, InputError, ParseError


def test_round_trip_keeps_every_bit(tmp_path):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=500) * 10.0 ** rng.integers(-300, 300, size=500)
    scores[:3] = [0.0, -0.0, 5e-324]
    path = str(tmp_path / "scores.txt")
    write_scores(scores, path)
    assert read_scores(path, 500, "d.txt").tobytes() == scores.tobytes()


@pytest.mark.parametrize("content", [b"1\n2.5\n", b"1\n2.5", b" 1 \r\n\t2.5\r\n\n  \n"])
def test_white_space_is_tolerated(tmp_path, content):
    (tmp_path / "s.txt").write_bytes(content)
    assert read_scores(str(tmp_path / "s.txt"), 2, "d.txt").tolist() == [1.0, 2.5]


@pytest.mark.parametrize(
    ("content", "line", "shown"),
    [
        (b"1\nhigh\n", 2, "'high'"),
        (b"1\n\n2\n", 2, "''"),
        (b"nan\n2\n", 1, "'nan'"),
        (b"1\ninf\n", 2, "'inf'"),
        (b"1\n1e999\n", 2, "'1e999'"),
        (b"1_0\n1\n", 1, "'1_0'"),
        (b"1\n0 3\n", 2, "'0 3'"),
        (b"\xff\n1\n", 1, r"'\\xff'"),
        ("١٢\n1\n".encode(), 1, "'١٢'"),
        ("1\n１\n".encode(), 2, "'１'"),
        ("1\u00a0\n1\n".encode(), 1, r"'1\xa0'"),
        (b"1\x0b\n1\n", 1, r"'1\x0b'"),
        (b"1\x1c\n1\n", 1, r"'1\x1c'"),
        (b"1\n" + b"x" * 100, 2, "'" + "x" * 30 + "…'"),
    ],
)
def test_a_line_that_is_no_score(tmp_path, content, line, shown):
    path = str(tmp_path / "s.txt")
    (tmp_path / "s.txt").write_bytes(content)
    message = f"{path}, line {line}: {shown} is not a score: one finite number per line is expected"
    with pytest.raises(ParseError, match=f"^{re.escape(message)}$"):
        read_scores(path, 2, "d.txt")


def test_wrong_number_of_scores(tmp_path):
    (tmp_path / "s.txt").write_text("1\n2\n3\n")
    with pytest.raises(InputError, match=r"s\.txt has 3 scores but d\.txt has 1,000 documents"):
        read_scores(str(tmp_path / "s.txt"), 1000, "d.txt")
    with pytest.raises(InputError, match=r"has 3 scores but d\.txt has 1 document: give one score"):
        read_scores(str(tmp_path / "s.txt"), 1, "d.txt")


def test_no_such_file():
    with pytest.raises(FileError, match=r"^none\.txt: there is no such file"):
        read_scores("none.txt", 1, "d.txt")


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"1\n2\n")

    monkeypatch.setattr("sys.stdin", Stdin)
    assert read_scores("-", 2, "d.txt").tolist() == [1.0, 2.0]
