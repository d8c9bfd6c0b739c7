"""Lines and numbers of text files, whole and damaged."""

import gzip

import pytest

from leanrank.data.sources import parse_number, text_lines
from leanrank.errors import ParseError


def test_lines_are_counted_from_one_and_lose_their_ends(tmp_path):
    file = tmp_path / "a.txt"
    file.write_bytes("\ufeffone\r\n\ntwo".encode())
    assert list(text_lines(file)) == [(1, "one"), (2, ""), (3, "two")]
    packed = tmp_path / "a.txt.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    assert list(text_lines(packed)) == list(text_lines(file))


@pytest.mark.parametrize("damage", [lambda b: b[:-9], lambda b: b[:12] + b"\xff" * 9])
def test_damaged_compression_is_one_sentence(tmp_path, damage):
    file = tmp_path / "a.gz"
    file.write_bytes(damage(gzip.compress(b"some text that is long enough\n" * 50)))
    with pytest.raises(ParseError, match=r"a\.gz: the gz data are damaged"):
        list(text_lines(file))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"fine\nnot\xff\n", "line 2, column 4: the line is not UTF-8 text"),
    ],
)
def test_lines_that_are_refused(tmp_path, content, problem):
    file = tmp_path / "a.txt"
    file.write_bytes(content)
    with pytest.raises(ParseError, match=problem):
        list(text_lines(file))


@pytest.mark.parametrize("text", ["1", "-1.5e3", "+.5", "7."])
def test_numbers(text):
    assert parse_number(text, "score", "f", 1) == float(text)


@pytest.mark.parametrize(
    "text", ["", "١٢", "１", "1_0", "nan", "inf", "1e999", "0x1", " 1", "1\u00a0"]
)
def test_what_is_no_number(text):
    with pytest.raises(ParseError, match=r"f, line 3: the score .* is not a finite number"):
        parse_number(text, "score", "f", 3)
