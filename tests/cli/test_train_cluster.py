"""``leanrank train --cluster``."""

from __future__ import annotations

import pytest

from leanrank import load_model, make_ranking
from leanrank.cli.train_cluster import _files

pytest.importorskip("distributed")


@pytest.fixture
def parts(tmp_path):
    from leanrank.data import dump

    data = make_ranking(n_queries=30, n_features=6, n_informative=2, random_state=0)
    for at in range(3):
        dump(data.queries[10 * at : 10 * at + 10], tmp_path / f"part-{at}.parquet")
    dump(data, tmp_path / "all.parquet")
    return tmp_path


def test_the_model_is_that_of_one_file(parts, run):
    model, whole = str(parts / "m.json"), str(parts / "w.json")
    done = run("train", str(parts / "part-*.parquet"), "--cluster", "local:1", "-m", model)
    assert done.code == 0, done.err
    assert "Dask dashboard at http://127.0.0.1:" in done.err
    assert "30 queries, 1,500 documents, 6 features in 3 files" in done.out
    assert run("train", str(parts / "all.parquet"), "--scale", "none", "-m", whole).code == 0
    ours, theirs = load_model(model), load_model(whole)
    assert ours.weights == pytest.approx(theirs.weights, abs=1e-4)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cluster", "lokal"], "--cluster lokal is not known: use local, local:N or an address"),
        (["--cluster", "local:0"], "--cluster local:0 is not known"),
        (["--cluster", "local", "-a", "rankboost"], "rankboost needs all data in memory"),
        (["--cluster", "local", "--scale", "standard"], "--scale standard needs all data in"),
        (["--cluster", "local", "--every", "3"], "--every is for streams"),
        (["--cluster", "local", "--monotone", "f1=up"], "--monotone needs all data in memory"),
    ],
)
def test_what_cannot_be_is_said_first(parts, run, words, sentence):
    done = run("train", str(parts / "all.parquet"), "-m", str(parts / "m.json"), *words)
    assert done.code == 2
    assert sentence in done.err


def test_patterns_are_files_in_order(parts):
    names = [name.rpartition("/")[2] for name in _files([str(parts / "part-*.parquet")])]
    assert names == ["part-0.parquet", "part-1.parquet", "part-2.parquet"]
    with pytest.raises(OSError, match="no file matches 'none-\\*': check the pattern"):
        _files(["none-*"])
