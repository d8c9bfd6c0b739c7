"""A model of another kind goes the same way through the command line."""

import json

import numpy as np
import pytest

from leanrank import load_model
from leanrank.model import Steps


def test_train_predict_evaluate(run, files):
    trained = run(
        *("train", "train.txt", "-a", "rankboost", "-p", "n_rounds=20", "-p", "n_thresholds=none"),
        *("--vali", "vali.txt", "-m", "m.json"),
    )
    assert trained.code == 0
    assert "RankBoost" in trained.out
    assert "features with a weight" in trained.out
    model = load_model("m.json")
    assert all(isinstance(curve, Steps) for curve in model.curves.values())
    assert model.provenance["parameters"]["n_rounds"] == 20
    assert set(model.provenance["measures"]) == {"training", "validation"}
    assert run("predict", "m.json", "vali.txt", "-o", "scores.txt").code == 0
    assert len(np.unique(np.loadtxt("scores.txt"))) > 5
    measured = run("evaluate", "vali.txt", "scores.txt", "--measures", "ndcg@10", "--json")
    means = json.loads(measured.out)["means"]
    assert means["ndcg@10"] == pytest.approx(model.provenance["measures"]["validation"]["ndcg@10"])


@pytest.mark.parametrize("algorithm", ["rankboost", "adarank", "pamir"])
def test_the_same_file_whatever_the_threads(run, files, algorithm):
    for name, jobs in (("a.json", 1), ("b.json", 2)):
        ran = run("train", "train.txt", "-a", algorithm, "-m", name, "-j", jobs, "--json")
        assert ran.code == 0
    assert (files / "a.json").read_bytes() == (files / "b.json").read_bytes()
    assert json.loads(ran.out)["n_nonzero"] == load_model("b.json").n_nonzero > 0


def test_a_normaliser_before_it(run, files):
    ran = run(
        *("train", "train.txt", "-a", "rankboost", "-p", "n_rounds=5"),
        *("--scale", "query-minmax", "-m", "m.json"),
    )
    assert ran.code == 0
    assert load_model("m.json").normalizer["kind"] == "query-minmax"
    assert run("predict", "m.json", "vali.txt").code == 0


@pytest.mark.parametrize("scale", ["auto", "standard", "minmax"])
def test_missing_values_pass_through_a_scaler(run, files, scale):
    rng = np.random.default_rng(0)
    lines = ["qid,label,short,long,gaps"]
    for at, (short, long, gap) in enumerate((rng.normal(size=(200, 3)) * [1, 5000, 1]).tolist()):
        gaps = "" if at % 7 == 0 else gap
        lines.append(f"{at // 10},{int(short > 0)},{short},{long},{gaps}")
    (files / "gaps.csv").write_text("\n".join(lines))
    ran = run("train", "gaps.csv", "-a", "rankboost", "--scale", scale, "-m", "m.json")
    assert ran.code == 0
    assert run("predict", "m.json", "gaps.csv", "-o", "scores.txt").code == 0
    assert np.isfinite(np.loadtxt("scores.txt")).all()
