"""Reading and writing LETOR files: formats, sources, threads, round trips."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leanrank.data import RankingData
from leanrank.data.letor import load_letor, read_letor
from leanrank.data.letor.reader import LetorRequest
from leanrank.errors import InputError, ParseError
from tests.data.letor.reference import parse
from tests.data.letor.test_fuzz import to_dense

SMALL = b"""\
# a header
2 qid:7 1:0.5 3:1 #docid = GX000-00-0000000 inc = 1 prob = 0.0246906

0 qid:8 2:-.25 # doc17
1 qid:7 1:1e2 # two words
"""


def load(content: bytes, **options):
    return load_letor(io.BytesIO(content), **options)


def load_as(content: bytes, n_jobs: int = -1, **fields):
    return read_letor(io.BytesIO(content), LetorRequest(**fields), n_jobs)


def random_file(seed: int, n_rows: int, n_features: int = 9, share: float = 0.7) -> bytes:
    """Make a file with gaps, blank lines, comments, hard numbers and queries in pieces."""
    rng = np.random.default_rng(seed)
    lines = []
    for row in range(n_rows):
        if rng.random() < 0.05:
            lines.append(str(rng.choice(["", "# note", "   "])))
        kinds = rng.random(n_features)
        features = [f"{j + 1}:{_number(rng)}" for j in range(n_features) if kinds[j] < share]
        name = f" #docid = d{row}" if rng.random() < 0.5 else ""
        lines.append(
            f"{rng.integers(0, 3)} qid:{rng.integers(0, 1 + n_rows // 9)} "
            f"{' '.join(features)}{name}"
        )
    return "\n".join(lines).encode()


def _number(rng: np.random.Generator) -> str:
    kind = rng.integers(0, 5)
    if kind == 0:
        return "0"
    if kind == 1:
        return str(rng.integers(0, 1000))
    if kind == 2:
        return f"{rng.random():.6f}"
    if kind == 3:
        return repr(float(rng.normal() * 10.0 ** rng.integers(-30, 30)))
    return str(9007199254740993 + 2 * rng.integers(0, 9))  # half-way between two doubles


def same(a: RankingData, b: RankingData) -> None:
    assert a.X.dtype == b.X.dtype
    assert a.is_sparse == b.is_sparse
    assert a.X.shape == b.X.shape
    assert to_dense(a.X).tobytes() == to_dense(b.X).tobytes()
    assert a.y.tobytes() == b.y.tobytes()
    assert a.query_ids.dtype.kind == b.query_ids.dtype.kind
    assert a.query_ids.tolist() == b.query_ids.tolist()
    assert a.query_ptr.tolist() == b.query_ptr.tolist()
    assert (a.order is None) == (b.order is None)
    assert a.order is None or a.order.tolist() == b.order.tolist()
    assert (a.doc_ids is None) == (b.doc_ids is None)
    assert a.doc_ids is None or a.doc_ids.tolist() == b.doc_ids.tolist()


def test_what_a_file_holds():
    data = load(SMALL)
    assert data.query_ids.tolist() == [7, 8]
    assert data.query_ids.dtype == np.int64
    assert data.query_ptr.tolist() == [0, 2, 3]
    assert data.X.tolist() == [[0.5, 0, 1], [100, 0, 0], [0, -0.25, 0]]
    assert data.y.tolist() == [2, 1, 0]
    assert data.doc_ids.tolist() == ["GX000-00-0000000", "", "doc17"]
    assert data.restore(data.y).tolist() == [2, 0, 1]
    assert not data.X.flags.writeable


@pytest.mark.parametrize(
    ("comment", "name"),
    [
        (b"#docid = GX000-00-0000000 inc = 1 prob = 0.0246906", "GX000-00-0000000"),
        (b"#docid = 40626", "40626"),
        (b"# docid=A#7", "A#7"),
        (b"#doc17", "doc17"),
        (b"#  doc17 \t", "doc17"),
        ("#é".encode(), "é"),
        (b"#docid", "docid"),
        (b"#docid =", None),
        (b"#docid 7", None),
        (b"#two words", None),
        (b"#", None),
        (b"", None),
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_document_ids_in_comments(comment, name, end):
    data = load(b"1 qid:1 1:2 " + comment + end)
    assert (None if data.doc_ids is None else data.doc_ids.tolist()[0]) == name


def test_one_very_long_document_id_does_not_widen_all():
    content = b"1 qid:1 1:1 #d\n" * 3000 + b"1 qid:1 1:1 #" + b"x" * 100_000 + b"\n"
    ids = load(content).doc_ids
    assert ids.nbytes < 10_000_000
    assert len(ids[-1]) == 100_000
    assert set(ids[:-1].tolist()) == {"d"}


@pytest.mark.parametrize(
    ("names", "kind"),
    [
        (["1", "2", "-3", "0"], "i"),
        (["9223372036854775807", "-9223372036854775808"], "i"),
        (["9223372036854775808", "1"], "U"),
        (["1", "01"], "U"),
        (["-0"], "U"),
        (["WT04-17", "1"], "U"),
        (["é"], "U"),
    ],
)
def test_queries_are_integers_when_all_are_written_so(names, kind):
    data = load("".join(f"1 qid:{name} 1:1\n" for name in names).encode())
    assert data.query_ids.dtype.kind == kind
    assert [str(name) for name in data.query_ids.tolist()] == names


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.rstrip(b"\n"),
        lambda text: text.rstrip(b"\n") + b"\r",
        lambda text: text.replace(b" ", b" \t "),
        lambda text: b"\n\r\n" + text + b"\n  \n#end",
        lambda text: text.replace(b" #", b"#"),
    ],
)
def test_harmless_differences(change):
    same(load(change(SMALL)), load(SMALL))


@pytest.mark.parametrize("storage", ["dense", "sparse", "auto"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_storage_and_type(storage, dtype):
    content = random_file(1, 300)
    data = load(content, storage=storage, dtype=dtype)
    expected = parse(content, dtype=dtype)
    assert data.restore(to_dense(data.X)).tobytes() == expected.X.tobytes()
    assert data.X.dtype == dtype
    assert data.y.dtype == np.float64
    assert data.is_sparse == (storage == "sparse")
    if data.is_sparse:
        assert data.X.has_canonical_format
        assert np.all(data.X.data != 0)


def test_a_quarter_of_nonzeros_is_dense():
    assert not load(b"0 qid:1 1:1 4:0\n").is_sparse
    assert load(b"0 qid:1 1:1 5:0\n").is_sparse
    assert load(b"0 qid:1 1:1 4:0\n", n_features=5).is_sparse


def test_indices_start_at_one_or_zero():
    assert load(b"0 qid:1 1:1 2:2\n", zero_based=True).X.tolist() == [[0, 1, 2]]


def test_no_feature_at_all_and_given_width():
    assert load(b"1 qid:1\n0 qid:1 # c d\n").X.shape == (2, 0)
    empty = load(b"1 qid:1\n0 qid:1\n", n_features=3)
    assert to_dense(empty.X).tolist() == [[0] * 3] * 2
    assert empty.is_sparse
    assert load(b"1 qid:1\n", n_features=3, storage="sparse").X.shape == (1, 3)


@pytest.mark.parametrize("storage", ["dense", "sparse", "auto"])
@pytest.mark.parametrize("zero_based", [True, False])
def test_ranges_and_threads_make_no_difference(storage, zero_based):
    """Tiny ranges, and samples that miss a wide line in the middle."""
    content = random_file(2, 400).splitlines()
    content.insert(233, b"1 qid:3 37:0.5 40:1e-330")
    text = b"\n".join(content)
    whole = load(text, storage=storage, zero_based=zero_based, n_jobs=1)
    wanted = {"storage": storage, "zero_based": zero_based, "sample_bytes": 100}
    for size in (1, 50, 1000):
        for n_jobs in (1, 2, 4):
            same(load_as(text, n_jobs, range_bytes=size, **wanted), whole)


def test_storage_guess_is_corrected():
    """Dense samples in a sparse file, and the other way round."""
    small = {"range_bytes": 40, "sample_bytes": 10, "n_samples": 1}
    dense, sparse = b"0 qid:1 1:1 2:1 3:1\n", b"0 qid:1 90:1\n"
    assert load_as(dense + sparse * 60, **small).is_sparse
    full = b"0 qid:1 " + b" ".join(b"%d:1" % j for j in range(1, 91)) + b"\n"
    assert not load_as(sparse + full * 60, **small).is_sparse


def test_more_hard_numbers_than_there_is_room_for():
    token = b"9007199254740993.00000000000000000000000000001"
    content = b"".join(b"1e22 qid:1 1:%s 2:1e-323\n" % token for _ in range(500))
    data = load(content)
    assert data.X[:, 0].tolist() == [9007199254740994.0] * 500
    assert data.X[:, 1].tolist() == [1e-323] * 500


def test_one_very_long_query_does_not_widen_all():
    content = b"".join(b"1 qid:q%d 1:1\n" % i for i in range(3000)) + b"1 qid:" + b"x" * 100_000
    names = load(content).query_ids
    assert names.nbytes < 10_000_000
    assert names[0] == "q0"
    assert len(names[-1]) == 100_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_features": True}, "n_features=True must be a whole number"),
        ({"n_features": 0}, "n_features=0 must be a whole number"),
        ({"n_features": "7"}, "n_features='7' must be a whole number"),
        ({"storage": "csr"}, "storage='csr' is not known"),
        ({"zero_based": "yes"}, "zero_based='yes' is not one of"),
        ({"dtype": np.int32}, "is not one of float64 and float32"),
        ({"dtype": "text"}, "is not one of float64 and float32"),
    ],
)
def test_wrong_parameters(options, message):
    with pytest.raises(InputError, match=message):
        load(SMALL, **options)


def test_importing_the_reader_is_light():
    code = (
        "import leanrank.data.letor, sys; "
        "assert not {'numba', 'scipy', 'sklearn'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.realdata
@pytest.mark.parametrize("file", ["MQ2008/Fold1/train.txt", "OHSUMED/Fold1/test.txt"])
def test_public_sets_against_scikit_learn(file):
    folder = os.environ.get("LEANRANK_DATA")
    if folder is None or not (Path(folder) / file).exists():
        pytest.skip(f"{file} is not in LEANRANK_DATA")
    from sklearn.datasets import load_svmlight_file

    path = Path(folder) / file
    data = load_letor(path)
    X, y, qid = load_svmlight_file(str(path), query_id=True)
    assert data.restore(data.X).tobytes() == X.toarray().tobytes()
    assert data.restore(data.y).tolist() == y.tolist()
    assert data.restore(data.qid).tolist() == qid.tolist()
    lines = path.read_text().splitlines()
    names = [line.partition("#docid = ")[2].split()[0] for line in lines]
    assert data.restore(data.doc_ids).tolist() == names


@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_missing_values(storage, end):
    data = load(b"1 qid:1 1:nan 2:NULL 3:1\n0 qid:1 1:2 3:NaN" + end, storage=storage)
    X = data.X.toarray() if data.is_sparse else data.X
    np.testing.assert_array_equal(X, [[np.nan, np.nan, 1.0], [2.0, 0.0, np.nan]])


def test_the_name_of_a_document_after_a_colon():
    text = b"1 qid:1 1:1 # docid:954\n1 qid:1 1:1 #docid: 7 inc = 1\n1 qid:1 1:1 #docid:\n"
    assert load(text).doc_ids.tolist() == ["954", "7", ""]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b""])
def test_lines_without_labels_or_queries(end):
    neither = load(b"1:2 3:4 # d1\n\n2:5" + end, optional=("label", "qid"))
    assert neither.X.tolist() == [[2.0, 0.0, 4.0], [0.0, 5.0, 0.0]]
    assert np.isnan(neither.y).all()
    assert neither.query_ids.tolist() == [0]
    assert neither.query_ptr.tolist() == [0, 2]
    no_label = load(b"qid:a 1:2\nqid:b 1:3\n2 qid:a 1:4" + end, optional=("label",))
    assert no_label.query_ids.tolist() == ["a", "b"]
    np.testing.assert_array_equal(no_label.y, [np.nan, 2.0, np.nan])
    no_query = load(b"1 1:2\n0" + end, optional=("qid",))
    assert no_query.y.tolist() == [1.0, 0.0]
    assert no_query.X.tolist() == [[2.0], [0.0]]


def test_what_is_optional_is_checked():
    with pytest.raises(ParseError, match="the label 'qid:a' is missing"):
        load(b"qid:a 1:2\n", optional=("qid",))
    with pytest.raises(ParseError, match="'qid:' is missing before"):
        load(b"1 1:2\n", optional=("label",))
    with pytest.raises(ParseError, match="some lines have 'qid:' and some do not"):
        load(b"1 1:2\n1 qid:3 1:2\n", optional=("qid",))
