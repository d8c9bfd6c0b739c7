"""The walk of docs/engines.md: an engine's log and ratings in, a verified export out."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from leanrank.data import load, load_sample
from leanrank.model import load_model

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_engine_logs.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    runpy.run_path(str(SCRIPT))["main"](folder)
    return folder


def test_feature_log_and_ratings_to_a_model(run, folder, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(folder)
    for part in ("train", "test"):
        files = ("--features", f"{part}.ndjson", "--judgments", f"{part}.csv")
        ran = run("join", *files, "-o", f"{part}.parquet")
        assert (ran.code, ran.err.count("warning: ")) == (0, 3)
    sample, _, _ = load_sample()
    joined = load("train.parquet")
    row = {document: at for at, document in enumerate(sample.doc_ids)}
    rows = [row[document] for document in joined.doc_ids]
    assert len(joined) == len(sample) - 52
    assert joined.feature_names == sample.feature_names
    np.testing.assert_array_equal(joined.X, sample.X[rows])
    np.testing.assert_array_equal(joined.y, sample.y[rows])
    ran = run("train", "train.parquet", "-a", "domination", "--model", "m.json", "-p", "alpha=0.01")
    assert (ran.code, ran.err) == (0, "")
    assert load_model("m.json").feature_names == sample.feature_names
    assert run("predict", "m.json", "test.parquet", "-o", "scores.txt").code == 0
    ran = run("evaluate", "test.parquet", "scores.txt")
    assert float(ran.out.split("ndcg@10")[1].split()[0]) > 0.75
    ran = run("export", "m.json", "--to", "opensearch-ltr", "-o", "ltr.json")
    assert (ran.code, ran.err) == (0, "")
    for target in ("opensearch-ltr", "sql:sqlite"):
        ran = run("verify", "m.json", "--target", target, "test.parquet")
        assert (ran.code, ran.err) == (0, "")
        assert "documents           780 in 40 queries" in ran.out
        assert "orders changed      0 (" in ran.out
