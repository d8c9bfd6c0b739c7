"""The benchmark of the default ranker runs without public sets."""

import numpy as np
import pytest

from benchmarks import leaderboard
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


@pytest.mark.parametrize(
    ("name", "files", "last", "line"),
    [
        ("MQ2007", "Fold1/{train,vali,test}.txt", 46, "{y} qid:{q} {x} #docid = GX00-{q} inc = 1"),
        ("MSLR-WEB10K", "Fold1/{train,vali,test}.txt", 136, "{y} qid:{q} {x}"),
        ("Istella-S", "sample/{train,vali,test}.txt", 220, "{y} qid:{q} {x} "),
        ("Yahoo", "set1.{train,valid,test}.txt", 699, "{y} qid:{q} {x}"),
    ],
)
def test_sets_that_a_user_may_have_are_read_as_they_are_published(
    tmp_path, monkeypatch, name, files, last, line
):
    rng = np.random.default_rng(0)
    begin, end = files.split("{")
    names, end = end.split("}")
    for at, part in enumerate(names.split(",")):
        file = tmp_path / name / f"{begin}{part}{end}"
        file.parent.mkdir(parents=True, exist_ok=True)
        lines = []
        for q in range(1, 21):
            for _ in range(8):
                values = {1: rng.random(), 2: rng.random(), last - 2 + at: 1.0}  # sparse, not alike
                if name == "Istella-S" and rng.random() < 0.1:
                    values[3] = np.finfo(float).max  # which that set has for missing values
                x = " ".join(f"{k}:{values[k]!r}" for k in sorted(values)).replace("np.float64", "")
                y = int(3 * values[1] + values[2])
                lines.append(line.format(y=y, q=q, x=x.replace("(", "").replace(")", "")))
        file.write_text("\n".join(lines) + "\n")
    ours = leaderboard.contestants()
    few = {who: ours[who] for who in (leaderboard.OURS, "best single feature")}
    monkeypatch.setattr(leaderboard, "contestants", lambda: few)
    (table,) = leaderboard.run(Options(data=tmp_path, repeat=5, quick=False))
    assert table.title == f"{name}: 20 queries of 1 folds"
    best, single = (float(row["NDCG@10"]) for row in table.rows)
    assert best > 0.95
    assert best >= single
