import numpy as np
import pytest

from leanrank import load_model
from leanrank.cli.systems import MEASURES
from leanrank.data import RankingData, load_sample
from leanrank.metrics import evaluate
from leanrank.selection import Split, fit_system


def test_demo(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ran = run("demo")
    assert (ran.code, ran.err) == (0, "")
    assert [p.name for p in tmp_path.rglob("*")] == ["demo-output", "model.json"]
    assert "Model written to demo-output/model.json" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80
    assert "click_rate_30d" in ran.out
    _, _, test = load_sample()
    model = load_model("demo-output/model.json")
    means = evaluate(test, model.predict(test), measures=MEASURES).means
    for name, mean in means.items():
        (line,) = [line for line in ran.out.splitlines() if line.startswith(name)]
        learned, single, random = line.split()[1:]
        assert learned == f"{mean:.4f}"
        assert float(learned) > float(single) > float(random)


def test_the_baselines(run, tmp_path):
    lines = run("demo", "--output", tmp_path / "a" / "b").out.splitlines()
    assert (tmp_path / "a" / "b" / "model.json").exists()
    train, _, test = load_sample()
    (rule,) = [line for line in lines if line.startswith("best feature on")]
    name, direction = rule.partition(": ")[2].split(", ")
    column = train.feature_names.index(name)
    sign = 1 if direction == "highest first" else -1
    expected = evaluate(test, sign * test.X[:, column], measures=MEASURES).means

    rng = np.random.default_rng(0)
    drawn = [evaluate(test, rng.random(len(test)), measures=MEASURES).means for _ in range(200)]
    for measure, mean in expected.items():
        (line,) = [line for line in lines if line.startswith(measure)]
        single, equal = line.split()[2:]
        assert single == f"{mean:.4f}"
        values = [d[measure] for d in drawn]
        assert float(equal) == pytest.approx(
            np.mean(values), abs=4 * np.std(values) / np.sqrt(200) + 5e-5
        )


def test_the_best_feature_may_count_downwards():
    X = np.array([[1.0, 3.0], [2.0, 1.0], [3.0, 2.0]])
    train = RankingData(X, [0, 2, 1], feature_names=["up", "down"])
    found = fit_system("bestfeature", Split(train, train, "ndcg@10"))
    assert found.parameters == {"feature": 1, "direction": -1}


def test_a_file_in_the_place_of_the_folder(run, tmp_path):
    (tmp_path / "file").write_text("")
    ran = run("demo", "--output", tmp_path / "file")
    assert ran.code == 2
    assert ran.err.startswith(f"leanrank: error: {tmp_path / 'file'}: cannot create this directory")
