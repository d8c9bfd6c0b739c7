"""The benchmark of the default ranker runs without public sets."""

import numpy as np
import pytest

from benchmarks.flagship import run
from benchmarks.flagship.choosing import regrets
from benchmarks.flagship.quality import LIBRARIES, folds, quality
from benchmarks.flagship.speed import large
from benchmarks.harness import Options
from leanrank import LeanRanker, make_ranking
from leanrank.metrics import evaluate

pytest.importorskip("lightgbm")


def test_quality_of_a_made_up_world_and_a_library_that_is_missing(monkeypatch, capsys):
    for library in ("LightGBM", "XGBoost"):  # for the time that they take
        monkeypatch.delitem(LIBRARIES, library)
    monkeypatch.setitem(LIBRARIES, "CatBoost", "no_such_package")
    (table,) = run(Options(data=None, repeat=1, quick=True, only="quality:pairs"))
    assert [row["contestant"] for row in table.rows] == [
        "LeanRanker()",
        "LeanRanker(max_features=10)",
        "LeanRanker(max_pairs=0)",
        "tune, 12 trials",
        "LGBMRanker()",
        "additive LightGBM, tuned",
        "additive LightGBM, tuned, all data",
    ]
    assert float(table.rows[1]["features"]) <= 10
    assert "CatBoost is not installed" in capsys.readouterr().out


def test_figures_are_those_of_a_fit(monkeypatch):
    for library in list(LIBRARIES):
        monkeypatch.delitem(LIBRARIES, library)
    options = Options(data=None, repeat=1, quick=True, only="linear")
    (table,) = quality(options)
    ((train, test),) = folds("linear", options)
    assert not set(map(bytes, np.asarray(train.X))) & set(map(bytes, np.asarray(test.X)))
    ranker = LeanRanker().fit(train)
    means = evaluate(test, ranker.predict(test), measures=["ndcg@10", "map"]).means
    assert table.rows[0]["ndcg@10"] == f"{means['ndcg@10']:.4f}"
    assert table.rows[0]["map"] == f"{means['map']:.4f}"


def test_regret_is_never_negative():
    table = regrets(make_ranking(n_queries=40, random_state=0), 2, "made up")
    assert [row["chosen by held-out"] for row in table.rows] == ["loss", "ndcg@10", "map"]
    for row in table.rows:
        assert float(row["ndcg@10"].split()[0]) >= 0


def test_time_and_memory_of_a_child_process():
    table = large(1_000, pairs=False)
    assert len(table.rows) == 3
    assert all(float(row["peak ÷ X"]) > 0 for row in table.rows)


def test_unknown_parts_are_rejected():
    for only in ("speed", "quality:YANDEX", "time:small"):
        with pytest.raises(SystemExit, match=only):
            run(Options(data=None, repeat=1, quick=True, only=only))
