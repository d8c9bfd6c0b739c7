"""``leanrank train --cluster``."""

from __future__ import annotations

import numpy as np
import pytest

from leanrank import load_model, make_ranking
from leanrank.cli.datafiles import find_files

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
    assert "3 files, 30 queries, 1,500 documents, 6 features" in done.out
    assert (
        run(
            "train", str(parts / "all.parquet"), "-a", "domination", "--scale", "none", "-m", whole
        ).code
        == 0
    )
    ours, theirs = load_model(model), load_model(whole)
    assert ours.weights == pytest.approx(theirs.weights, abs=1e-4)


@pytest.mark.parametrize(
    "words",
    [["--scale", "minmax"], ["--scale", "auto"], ["-p", "curves=3", "-p", 'monotone={"f1": 1}']],
)
def test_scaled_and_curved_models_are_those_of_one_file(parts, run, words):
    from leanrank.data import dump, load

    data = load(parts / "all.parquet")
    wild = data.replace(X=data.X * np.array([1.0, 1e4, 1.0, 1.0, 1.0, 1.0]))
    dump(wild, parts / "wild.parquet")
    dump(wild.queries[:12], parts / "piece-0.parquet")
    dump(wild.queries[12:], parts / "piece-1.parquet")
    model, whole = str(parts / "m.json"), str(parts / "w.json")
    given = str(parts / "piece-*.parquet"), "--cluster", "local:1", "-m", model
    done = run("train", *given, *words)
    assert done.code == 0, done.err
    assert ("the spread of" in done.out) == ("auto" in words)
    named = (*words, "-a", "domination")
    assert run("train", str(parts / "wild.parquet"), *named, "-m", whole).code == 0
    ours, theirs = load_model(model), load_model(whole)
    np.testing.assert_allclose(ours.predict(wild), theirs.predict(wild), atol=2e-3)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--cluster", "lokal"], "--cluster lokal is not known: use local, local:N or an address"),
        (["--cluster", "local:0"], "--cluster local:0 is not known"),
        (["--cluster", "local", "-a", "rankboost"], "rankboost needs all data in memory"),
        (["--cluster", "local", "--scale", "standrad"], "there is no normaliser 'standrad'"),
        (["--cluster", "local", "--every", "3"], "--every is for streams"),
    ],
)
def test_what_cannot_be_is_said_first(parts, run, words, sentence):
    done = run("train", str(parts / "all.parquet"), "-m", str(parts / "m.json"), *words)
    assert done.code == 2
    assert sentence in done.err


def test_patterns_are_files_in_order(parts):
    names = [name.rpartition("/")[2] for name in find_files([str(parts / "part-*.parquet")])]
    assert names == ["part-0.parquet", "part-1.parquet", "part-2.parquet"]
    with pytest.raises(OSError, match="no file matches 'none-\\*': check the pattern"):
        find_files(["none-*"])
