"""Malformed LETOR files: the sentence, word for word, and the place."""

from __future__ import annotations

import io
import pickle

import numpy as np
import pytest

from leanrank.data.letor import arrays as source
from leanrank.data.letor.files import load_letor
from leanrank.errors import ParseError
from tests.data.letor.test_files import load_as

LINE = "expected 'LABEL qid:QUERY INDEX:VALUE ...'"
GOOD = b"1 qid:1 1:0.5 2:3\n"

CASES = [
    (b"x qid:1 1:2", 1, f"the label 'x' is not a finite number: {LINE}"),
    (b"nan qid:1 1:2", 1, f"the label 'nan' is not a finite number: {LINE}"),
    (b"1e999 qid:1 1:2", 1, "the value '1e999' is beyond the range of float64: rescale"),
    (b"qid:1 1:2", 1, f"the label is missing before 'qid:1': {LINE}"),
    (b" 1:2 2:3", 2, f"the label is missing before '1:2': {LINE}"),
    (b"1 1:2 2:3", 3, f"'qid:' is missing after the label (found '1:2'): {LINE}"),
    (b"1 QID:1 2:3", 3, f"'qid:' is missing after the label (found 'QID:1'): {LINE}"),
    (b"1", 2, f"'qid:' is missing after the label (the line ends): {LINE}"),
    (b"1 # c", 3, f"'qid:' is missing after the label (the line ends): {LINE}"),
    (b"1 qid: 1:2", 3, f"the query identifier after 'qid:' is empty: {LINE}"),
    (b"1 qid:1 1:abc", 11, "the value 'abc' is not a finite number: expected INDEX:VALUE"),
    (b"1 qid:1 1:0.5x 2:1", 11, "the value '0.5x' is not a finite number: expected INDEX:VALUE"),
    (b"1 qid:1 1:1_0", 11, "the value '1_0' is not a finite number: expected INDEX:VALUE"),
    (b"1 qid:1 1:nans", 11, "the value 'nans' is not a finite number: expected INDEX:VALUE"),
    (b"1 qid:1 1:NUL", 11, "the value 'NUL' is not a finite number: expected INDEX:VALUE"),
    (b"1 qid:1 1:-nan", 11, "the value '-nan' is not a finite number: expected INDEX:VALUE"),
    (b"1 qid:1 1:-inf", 11, "the value '-inf' is not a finite number: expected INDEX:VALUE"),
    (b"1 qid:1 1:1e", 11, "the value '1e' is not a finite number: expected INDEX:VALUE"),
    (b"1 qid:1 1:1e999", 11, "the value '1e999' is beyond the range of float64: rescale"),
    (b"1 qid:1 1:0x10", 11, "the value '0x10' is not a finite number: expected INDEX:VALUE"),
    (
        b"1 qid:1 1:" + b"z" * 50,
        11,
        f"the value '{'z' * 40}…' is not a finite number: expected INDEX:VALUE",
    ),
    (
        b"1 qid:1 2:1 1:2",
        13,
        "feature index '1' is out of order: expected ascending indices in a line",
    ),
    (
        b"1 qid:1 2:1 2:2",
        13,
        "feature index '2' is repeated: expected each index once, in ascending order",
    ),
    (b"1 qid:1 -3:1", 9, "feature index '-3' is negative: expected INDEX:VALUE"),
    (
        b"1 qid:1 0:1",
        9,
        "feature index 0 in a file read as one-based: load it with `zero_based=True`",
    ),
    (
        b"1 qid:1 2147483647:1",
        9,
        "feature index '2147483647' is too large: at most 2147483646 is possible",
    ),
    (
        b"1 qid:1 99999999999999999999999:1",
        9,
        "feature index '99999999999999999999999' is too large: at most 2147483646 is possible",
    ),
    (
        b"1 qid:1 1:2 3:",
        15,
        "the value after ':' is missing (is the line cut short?): expected INDEX:VALUE",
    ),
    (b"1 qid:1 1:2 3", 13, "'3' has no value (is the line cut short?): expected INDEX:VALUE"),
    (
        b"1 qid:1 a:2",
        9,
        "'a:2' is not a feature: expected INDEX:VALUE with a whole, non-negative INDEX",
    ),
    (
        b"1 qid:1 1.5:2",
        9,
        "'1.5:2' is not a feature: expected INDEX:VALUE with a whole, non-negative INDEX",
    ),
    (b"1 qid:1 1:2\0 2:3", 12, "a NUL byte: expected text (is the file binary, or damaged?)"),
    (b"\0\0\0", 1, "a NUL byte: expected text (is the file binary, or damaged?)"),
    (b"1 qid:\0", 7, "a NUL byte: expected text (is the file binary, or damaged?)"),
    (b"1 qid:1 1:2 #a\0", 15, "a NUL byte: expected text (is the file binary, or damaged?)"),
    (b"1 qid:\xff 1:2", 7, "'\\\\xff' is not UTF-8: expected identifiers in UTF-8"),
    (b"1 qid:1 1:2 #\xe9t", 14, "'\\\\xe9t' is not UTF-8: expected identifiers in UTF-8"),
]


@pytest.mark.parametrize(("line", "column", "sentence"), CASES)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"", b"\n" + GOOD])
@pytest.mark.parametrize("lead", [b"", GOOD * 2 + b"# c\n\n", b"\xef\xbb\xbf" + GOOD * 4])
def test_the_sentence(line, column, sentence, end, lead):
    number = lead.count(b"\n") + 1
    with pytest.raises(ParseError) as caught:
        load_letor(io.BytesIO(lead + line + end))
    assert str(caught.value) == f"<stream>, line {number}, column {column}: {sentence}"
    assert (caught.value.line, caught.value.column) == (number, column)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_sentences_that_depend_on_parameters(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"1 qid:1 1:1e39 5:2\n")
    with pytest.raises(ParseError) as caught:
        load_letor(path, dtype=np.float32)
    assert str(caught.value) == (
        f"{path}, line 1, column 11: the value '1e39' is beyond the range of float32: "
        "use `dtype=numpy.float64` or rescale"
    )
    with pytest.raises(ParseError) as caught:
        load_letor(path, n_features=4)
    assert str(caught.value) == (
        f"{path}, line 1, column 16: feature index '5' is beyond n_features=4: "
        "expected a smaller index"
    )
    with pytest.raises(ParseError, match=r"line 1, column 16: .*beyond n_features=5"):
        load_letor(path, n_features=5, zero_based=True)


@pytest.mark.parametrize(
    "content", [b"", b"\n", b"# c", b"\xef\xbb\xbf", b"\xef\xbb\xbf\r\n", b" \t"]
)
def test_a_file_without_documents(content):
    with pytest.raises(ParseError) as caught:
        load_letor(io.BytesIO(content))
    assert str(caught.value) == (
        "<stream>: no document: expected lines such as '2 qid:1 1:0.5 2:3 #docid = A7'"
    )


@pytest.mark.parametrize(
    ("byte", "storage"), [(b"\n", "dense"), (b"\n", "sparse"), (b":", "sparse")]
)
def test_a_file_that_grows_while_it_is_read(monkeypatch, byte, storage):
    """The counts of the first pass are too small for what the second finds."""
    count = source.Lines.count
    monkeypatch.setattr(
        source.Lines, "count", lambda lines, b: count(lines, b) // (4 if b == byte else 1)
    )
    with pytest.raises(ParseError, match="the file changed while it was read"):
        load_letor(io.BytesIO(GOOD * 40), storage=storage)


def test_the_first_error_is_told_whatever_the_threads():
    lines = [GOOD.strip()] * 300
    lines[211] = b"1 qid:1 1:1e999"  # found after parsing, by Python
    lines[212] = b"1 qid:\xff 1:1"
    lines[220] = b"1 qid:1 1:x"
    content = b"\n".join(lines)
    for size in (1, 64, 500, 2**20):
        for n_jobs in (1, 2, 4):
            for storage in ("dense", "sparse"):
                with pytest.raises(ParseError, match="line 212, column 11: the value '1e999'"):
                    load_as(content, n_jobs, range_bytes=size, sample_bytes=10, storage=storage)
    lines[211] = GOOD.strip()
    with pytest.raises(ParseError, match=r"line 213, column 7: .* is not UTF-8"):
        load_letor(io.BytesIO(b"\n".join(lines)), n_jobs=2)
