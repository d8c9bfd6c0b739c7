"""Random damage to real-looking lines: the same arrays as the slow reading, or the same complaint.

``LEANRANK_FUZZ`` sets the number of mutations (default 20,000; 100,000 take about a minute).
"""

from __future__ import annotations

import io
import os
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leanrank.data.letor import load_letor
from leanrank.errors import ParseError
from tests.data.letor.reference import Wrong, parse

N_MUTATIONS = int(os.environ.get("LEANRANK_FUZZ", "20000"))

SEEDS = [
    b"0 qid:10002 1:0.007477 2:0.000000 3:1.0000 4:0 #docid = GX008-86-4444840 inc = 1 prob = 0.1\n"
    b"2 qid:10002 1:0.603738 4:.5 #docid = GX037-06-11625428 inc = 0.0031586555 prob = 0.0897452\n",
    b"0 qid:43 1:0.400000 2:0.479625 5:0 6:0 45:0.986804 #docid = 224544\r\n1 qid:43 2:1\r\n",
    b"3 qid:13 1:3 2:0 3:2 4:1e-3 7:-12.5 8:17153 9:+4.25E+2 \n\n# head\n1 qid:WT04-17 3:1.0 #d17",
    b"1.5 qid:a 1:0.12345678901234567 2:123456789012345678901234567890 3:1e308 4:5e-324\n"
    b"-1 qid:b 1:16777217 2:0.1 3:-0 4:1e-400 #x\n0.5 qid:a 2:9007199254740993 3:4.35 4:1e-45\n",
    b"0 qid:1 0:1 1:2 #\t\n0 qid:-7\t1:2  # several words\n0 qid:9223372036854775807#docid=Q#7\n",
]  # fmt: skip
ALPHABET = b"0123456789..::--++eE#\t \r\n\0qidxnaf=\xff\xc3\xa9"
OPTIONS = [
    {},
    {"storage": "sparse"},
    {"storage": "dense", "n_features": 60, "dtype": np.float32},
    {"zero_based": True},
    {"n_features": 9, "zero_based": True, "storage": "sparse"},
    {"n_features": 45, "dtype": np.float32, "storage": "sparse"},
]


def test_random_mutations_agree_with_the_slow_reading():
    rng = random.Random(0)
    outcomes = {True: 0, False: 0}
    for _ in range(N_MUTATIONS):
        content = mutate(bytearray(rng.choice(SEEDS)), rng)
        outcomes[agree(content, rng.choice(OPTIONS))] += 1
    assert min(outcomes.values()) > N_MUTATIONS // 20  # both kinds of outcome are exercised


def mutate(content: bytearray, rng: random.Random) -> bytes:
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(content) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            content[at:at] = bytes([rng.choice(ALPHABET)])
        elif kind == 1:
            content[at : at + 1] = bytes([rng.choice(ALPHABET)])
        elif kind == 2:
            content[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 3:
            del content[at : at + rng.choice((1, 1, 2, 9))]
        elif kind == 4:
            piece = content[at : at + rng.randrange(1, 12)]
            to = rng.randrange(len(content) + 1)
            content[to:to] = piece
        else:
            del content[at:]
    return bytes(content)


def agree(content: bytes, options: dict) -> bool:
    """Compare both readings; tell whether the content was well-formed."""
    rules = {key: value for key, value in options.items() if key != "storage"}
    expected = _or_complaint(parse, content, **rules)
    if isinstance(expected, Wrong):
        with pytest.raises(ParseError) as caught:
            load_letor(io.BytesIO(content), n_jobs=1, **options)
        found = (caught.value.line or 0, caught.value.column or 0)
        told = (expected.line, expected.column)
        assert found == told, (content, options, expected, caught.value)
        return False
    data = load_letor(io.BytesIO(content), n_jobs=1, **options)
    if data.is_sparse:
        assert np.all(data.X.data != 0), content
    if options.get("storage", "auto") != "auto":
        assert data.is_sparse == (options["storage"] == "sparse")
    same = (
        data.X.dtype == expected.dtype
        and data.X.shape == expected.shape
        and entries(data) == [_bits(row) for row in expected.rows]
        and data.restore(data.y).tobytes() == expected.y.tobytes()
        and data.restore(data.qid).tolist() == expected.qid
        and (data.doc_ids is None) == (expected.doc_ids is None)
        and (data.doc_ids is None or data.restore(data.doc_ids).tolist() == expected.doc_ids)
    )
    assert same, (content, options, data, expected)
    return True


def _or_complaint(read, *args, **kwargs):
    try:
        return read(*args, **kwargs)
    except Wrong as wrong:
        return wrong


def entries(data) -> list[dict]:
    """Give the bits of each row's values, zeros left out, in the order of the file."""
    rows = []
    for row in data.restore(np.arange(len(data))):
        if data.is_sparse:
            at = slice(*data.X.indptr[row : row + 2])
            pairs = zip(data.X.indices[at].tolist(), data.X.data[at], strict=True)
        else:
            pairs = enumerate(data.X[row])
        rows.append(_bits(dict(pairs)))
    return rows


def _bits(row: dict) -> dict:
    return {column: value.tobytes() for column, value in row.items() if value != 0}


def to_dense(X):
    """Fill a dense matrix; unlike ``toarray``, which adds, this keeps the sign of zeros."""
    if isinstance(X, np.ndarray):
        return X
    out = np.zeros(X.shape, X.dtype)
    out[np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices] = X.data
    return out


numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.from_regex(
        r"[+-]?([0-9]{1,25}(\.[0-9]{0,25})?|\.[0-9]{1,25})([eE][+-]?[0-9]{1,2})?", fullmatch=True
    ),
    st.integers(-(2**60), 2**60).map(str),
    st.sampled_from(["0", "-0", "1e-400", "16777217", "9007199254740993", "0.1", "7.038531e-26"]),
)  # fmt: skip
words = st.text(
    st.characters(codec="utf-8", exclude_characters="#\0 \t\n\r\v\f"), min_size=1, max_size=8
)
blanks = st.sampled_from([" ", "  ", "\t", " \t"])
comments = st.one_of(
    st.just(""),
    words.map("#{}".format),
    words.map("# docid = {} inc = 1".format),
    st.lists(words, max_size=3).map(lambda parts: "#" + " ".join(parts)),
)


@st.composite
def documents(draw):
    indices = sorted(draw(st.sets(st.integers(1, 12), max_size=6)))
    parts = [draw(numbers), "qid:" + draw(st.one_of(st.integers(-3, 3).map(str), words))]
    parts += [f"{index}:{draw(numbers)}" for index in indices]
    blank = draw(blanks)
    return blank.join(parts) + draw(st.sampled_from(["", " "])) + draw(comments)


@st.composite
def files(draw):
    lines = draw(st.lists(st.one_of(documents(), st.sampled_from(["", " ", "# note"])), max_size=6))
    end = draw(st.sampled_from(["\n", "\r\n"]))
    mark = draw(st.sampled_from(["", "\ufeff"]))
    return (
        mark + end.join([*lines, draw(documents())]) + draw(st.sampled_from(["", end]))
    ).encode()


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(content=files(), options=st.sampled_from(OPTIONS[:3]))
def test_the_grammar_agrees_with_the_slow_reading(content, options):
    agree(content, options)
