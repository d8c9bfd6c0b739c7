"""Writing LETOR files: they read back to the same bits."""

from __future__ import annotations

import numpy as np
import pytest

from leanrank.data import RankingData
from leanrank.data.letor import dump_letor, load_letor
from leanrank.errors import FileError, InputError
from tests.data.letor.test_files import load, random_file, same


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("storage", ["dense", "sparse"])
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2"])
def test_round_trip(tmp_path, dtype, storage, suffix):
    data = load(random_file(3, 200), dtype=dtype, storage=storage, n_features=12)
    path = tmp_path / f"a.txt{suffix}"
    dump_letor(data, path)
    back = load_letor(path, dtype=dtype, storage=storage)
    same(back, data)  # twelve features: the last three are zero everywhere
    assert [p.name for p in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_round_trip_of_any_bits(tmp_path, dtype):
    rng = np.random.default_rng(0)
    whole = np.int64 if dtype == np.float64 else np.int32
    limits = np.iinfo(whole)
    X = rng.integers(limits.min, limits.max, (500, 30), dtype=whole).view(dtype).copy()
    X[~np.isfinite(X)] = 1
    info = np.finfo(dtype)
    X[0, :6] = [info.max, info.tiny, info.smallest_subnormal, 0.0, info.eps, -info.max]
    y = rng.integers(-(2**63), 2**63 - 1, 500).view(np.float64).copy()
    y[~np.isfinite(y)] = 0.0
    data = RankingData(X, y, rng.integers(0, 9, 500))
    dump_letor(data, tmp_path / "a.txt")
    back = load_letor(tmp_path / "a.txt", dtype=dtype)
    same(back, data)


def test_what_is_written(tmp_path):
    data = RankingData(
        [[0.1, 0, -2.5], [1e-9, 3, 0], [0, 0, 1e22]],
        [1, 0.5, -2],
        ["b", "a", "b"],
        doc_ids=["x", "", "y#1"],
    )
    dump_letor(data, tmp_path / "a.txt")
    assert (tmp_path / "a.txt").read_text() == (
        "1 qid:b 1:0.1 3:-2.5 #docid = x\n0.5 qid:a 1:1e-09 2:3\n-2 qid:b 3:1e+22 #docid = y#1\n"
    )


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (RankingData([[1.0]]), "a label is NaN"),
        (RankingData([[np.inf]], [1]), "X holds NaN or infinity"),
        (RankingData([[1.0]], [1], ["a b"]), "the query identifier 'a b' cannot stand"),
        (RankingData([[1.0]], [1], ["a#b"]), "the query identifier 'a#b' cannot stand"),
        (RankingData([[1.0]], [1], doc_ids=["a b"]), "the document identifier 'a b' cannot stand"),
        (RankingData([[1.0]], [1], ["\ud800"]), "a word of UTF-8"),
        (
            RankingData([[1.0]] * 2, [1, 1], np.array([1, "1"], dtype=object)),
            "two queries have the same name",
        ),
    ],
)
def test_data_that_has_no_place_in_a_file(tmp_path, data, message):
    with pytest.raises(InputError, match=message):
        dump_letor(data, tmp_path / "a.txt")
    assert list(tmp_path.iterdir()) == []


def test_writing_where_there_is_no_directory(tmp_path):
    with pytest.raises(FileError, match="cannot be written"):
        dump_letor(RankingData([[1.0]], [1]), tmp_path / "no" / "a.txt")
