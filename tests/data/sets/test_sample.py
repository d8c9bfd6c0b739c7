import importlib.util
import itertools
import lzma
from pathlib import Path

import numpy as np
import pytest

from leanrank.data import load_letor, load_sample, sample_weights
from leanrank.data.sets import FOLDER

SCRIPT = Path(__file__).parents[3] / "scripts" / "make_sample.py"


def ndcg(y, scores, ptr, k=10):
    values = []
    for a, b in itertools.pairwise(ptr):
        gains = 2.0 ** y[a:b] - 1
        discounts = 1 / np.log2(np.arange(2, min(k, b - a) + 2))
        ideal = (np.sort(gains)[::-1][:k] * discounts).sum()
        if ideal:
            values.append((gains[np.argsort(-scores[a:b])][:k] * discounts).sum() / ideal)
    return float(np.mean(values))


def test_shape():
    parts = load_sample()
    assert [part.n_queries for part in parts] == [120, 40, 40]
    for part in parts:
        assert part.X.shape[1] == 28
        assert part.feature_names == tuple(sample_weights())
        assert part.levels.tolist() == [0, 1, 2, 3, 4]
        assert part.doc_ids is not None
    queries = [query for part in parts for query in part.query_ids.tolist()]
    assert queries == [f"q{n}" for n in range(1, 201)]
    documents = np.concatenate([part.doc_ids for part in parts])
    assert len(set(documents.tolist())) == len(documents)


def test_it_is_small():
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) < 300_000


@pytest.mark.skipif(not SCRIPT.exists(), reason="the script is in the repository, not the package")
def test_the_script_makes_these_very_files():
    spec = importlib.util.spec_from_file_location("make_sample", SCRIPT)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    files = script.make_files()
    assert sorted(files) == sorted(file.name for file in FOLDER.iterdir())
    for name, text in files.items():
        stored = (FOLDER / name).read_bytes()
        assert (lzma.decompress(stored) if name.endswith(".xz") else stored) == text.encode()


def test_few_features_beat_one_and_one_beats_chance():
    train, _, test = load_sample()
    truth = np.array(list(sample_weights().values()))
    random = ndcg(test.y, np.random.RandomState(0).rand(len(test)), test.query_ptr)
    single = max(
        (ndcg(train.y, sign * train.X[:, j], train.query_ptr), sign, j)
        for j in range(28)
        for sign in (1, -1)
    )
    best_feature = ndcg(test.y, single[1] * test.X[:, single[2]], test.query_ptr)
    assert np.count_nonzero(truth) == 8
    assert ndcg(test.y, test.X @ truth, test.query_ptr) > best_feature + 0.1 > random + 0.2


def test_reader_reads_the_same():
    for part, name in zip(load_sample(), ("train", "vali", "test"), strict=True):
        read = load_letor(FOLDER / f"{name}.txt.xz", n_features=28, storage="dense")
        assert np.array_equal(part.X, read.X)
        assert part.X.dtype == read.X.dtype
        for field in ("y", "qid", "query_ptr", "query_ids", "doc_ids"):
            mine, other = getattr(part, field), getattr(read, field)
            assert mine.dtype == other.dtype
            assert np.array_equal(mine, other)
