"""Malformed LETOR files: the place, and what the sentence names."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

from leanrank.data.letor import load_letor
from leanrank.errors import ParseError
from tests.data.letor.test_files import load_as

GOOD = b"1 qid:1 1:0.5 2:3\n"

CASES = [  # the line, the column of the error, and what the sentence names
    (b"x qid:1 1:2", 1, "label 'x'"),
    (b"nan qid:1 1:2", 1, "label 'nan'"),
    (b"1e999 qid:1 1:2", 1, "'1e999' is beyond the range of float64"),
    (b"qid:1 1:2", 1, "label 'qid:1' is missing"),
    (b" 1:2 2:3", 2, "label '1:2' is missing"),
    (b"1 1:2 2:3", 3, "'qid:' is missing before '1:2'"),
    (b"1 QID:1 2:3", 3, "'qid:' is missing before 'QID:1'"),
    (b"1", 2, "'qid:' is missing before the end of the line"),
    (b"1 # c", 3, "'qid:' is missing before the end of the line"),
    (b"1 qid: 1:2", 3, "after 'qid:' is empty"),
    (b"1 qid:1 1:abc", 11, "value 'abc'"),
    (b"1 qid:1 1:0.5x 2:1", 11, "value '0.5x'"),
    (b"1 qid:1 1:1_0", 11, "value '1_0'"),
    (b"1 qid:1 1:nans", 11, "value 'nans'"),
    (b"1 qid:1 1:NUL", 11, "value 'NUL'"),
    (b"1 qid:1 1:-nan", 11, "value '-nan'"),
    (b"1 qid:1 1:-inf", 11, "value '-inf'"),
    (b"1 qid:1 1:1e", 11, "value '1e'"),
    (b"1 qid:1 1:1e999", 11, "'1e999' is beyond the range of float64"),
    (b"1 qid:1 1:0x10", 11, "value '0x10'"),
    (b"1 qid:1 1:" + b"z" * 50, 11, "z…'"),
    (b"1 qid:1 2:1 1:2", 13, "'1:2' is repeated or out of order"),
    (b"1 qid:1 2:1 2:2", 13, "'2:2' is repeated or out of order"),
    (b"1 qid:1 -3:1", 9, "'-3:1' is not a feature"),
    (b"1 qid:1 0:1", 9, "`zero_based=True`"),
    (b"1 qid:1 2147483647:1", 9, "beyond 2147483646"),
    (b"1 qid:1 99999999999999999999999:1", 9, "beyond 2147483646"),
    (b"1 qid:1 1:2 3:", 15, "value the end of the line is missing"),
    (b"1 qid:1 1:2 3", 13, "'3' is not a feature"),
    (b"1 qid:1 a:2", 9, "'a:2' is not a feature"),
    (b"1 qid:1 1.5:2", 9, "'1.5:2' is not a feature"),
    (b"1 qid:1 1:2\0 2:3", 11, "value '2"),
    (b"\0\0\0", 1, "label"),
    (b"1 qid:\0", 7, "is not UTF-8 text"),
    (b"1 qid:1 1:2 #a\0", 14, "is not UTF-8 text"),
    (b"1 qid:\xff 1:2", 7, "xff' is not UTF-8 text"),
    (b"1 qid:1 1:2 #\xe9t", 14, "xe9t' is not UTF-8 text"),
]


@pytest.mark.parametrize(("line", "column", "named"), CASES)
@pytest.mark.parametrize("end", [b"\r\n", b"", b"\n" + GOOD])
@pytest.mark.parametrize("lead", [b"", b"\xef\xbb\xbf" + GOOD * 2 + b"# c\n\n"])
def test_the_place_and_what_is_named(line, column, named, end, lead):
    with pytest.raises(ParseError) as caught:
        load_letor(io.BytesIO(lead + line + end))
    assert (caught.value.line, caught.value.column) == (lead.count(b"\n") + 1, column)
    assert named in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_sentences_that_depend_on_parameters(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"1 qid:1 1:1e39 5:2\n")
    with pytest.raises(ParseError, match=r"line 1, column 11: '1e39' .* float32"):
        load_letor(path, dtype=np.float32)
    with pytest.raises(ParseError, match=r"line 1, column 16: .*'5:2' is beyond n_features=4"):
        load_letor(path, n_features=4)
    with pytest.raises(ParseError, match=r"line 1, column 16: .*beyond n_features=5"):
        load_letor(path, n_features=5, zero_based=True)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"# c", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n", b" \t"]
)
def test_a_file_without_documents(content):
    with pytest.raises(ParseError, match="<stream>: no document"):
        load_letor(io.BytesIO(content))


def test_the_first_error_is_told_whatever_the_threads():
    lines = [GOOD.strip()] * 300
    lines[211] = b"1 qid:1 1:1e999"  # found after parsing, by Python
    lines[212] = b"1 qid:\xff 1:1"
    lines[220] = b"1 qid:1 1:x"
    content = b"\n".join(lines)
    for size in (1, 64, 500, 2**20):
        for n_jobs in (1, 2, 4):
            for storage in ("dense", "sparse"):
                with pytest.raises(ParseError, match="line 212, column 11: '1e999'"):
                    load_as(content, n_jobs, range_bytes=size, sample_bytes=10, storage=storage)
    lines[211] = GOOD.strip()
    with pytest.raises(ParseError, match=r"line 213, column 7: .* is not UTF-8"):
        load_letor(io.BytesIO(b"\n".join(lines)), n_jobs=2)
