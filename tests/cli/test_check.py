import json
from pathlib import Path

import pytest

from leanrank.data import dump_letor, make_ranking
from leanrank.model import Model, load_model
from leanrank.model.summary import with_summary

FAST = ("-p", "max_pairs=0", "-p", "n_folds=2", "-p", "n_strengths=5")


@pytest.fixture
def model(run, files):
    ran = run("train", "train.txt", "--model", "m.json", *FAST)
    assert ran.code == 0, ran.err
    return "m.json"


def test_check_train_from_and_judge_next(run, model):
    ran = run("check", model, "train.txt")  # the documents that it learned from
    assert ran.code == 0, ran.out + ran.err
    assert "no need" in ran.out
    told = json.loads(run("check", model, "train.txt", "--json").out)
    assert told["alarms"] == []
    assert told["refit"]["gain"] < 1e-3
    again = run("train", "vali.txt", "--from", model, "--model", "n.json")
    assert again.code == 0, again.err
    assert set(load_model("n.json").term_names) <= set(load_model(model).term_names)
    assert run("train", "vali.txt", "--from", model, "-a", "lean", "-m", "n.json").code == 2
    lines = Path("test.txt").read_text().splitlines()
    Path("pool.txt").write_text("".join(line.partition(" ")[2] + "\n" for line in lines))
    ran = run("judge-next", model, "pool.txt", "-n", 3, "--json", "--against", "n.json")
    assert ran.code == 0, ran.err
    assert len(json.loads(ran.out)["judge"]) == 3


def test_what_is_wrong_ends_with_exit_code_1(run, files):
    data = make_ranking(n_queries=80, n_features=4, random_state=0)
    model = with_summary(Model.from_coef([1.0, 0.5, 0.0, -0.5]), data.queries[:40])
    model.save("m.json")
    broken = data.queries[40:]
    dump_letor(broken.replace(X=broken.X * [1000, 1, 1, 1]), "broken.txt")
    ran = run("check", "m.json", "broken.txt", "-o", "c.html")
    assert ran.code == 1
    assert ran.out.startswith("1 feature changed")
    told = run("check", "m.json", "broken.txt", "--json")
    assert told.code == 1
    found = json.loads(told.out)
    assert [each["feature"] for each in found["features"]] == ["f1"]
    assert found["alarms"][0] in Path("c.html").read_text()
    assert run("check", "m.json", "nothing.txt").code == 2


def test_without_summary(run, files):
    assert run("train", "train.txt", "-m", "m.json", "--without-summary", *FAST).code == 0
    assert load_model("m.json").summary is None
    assert "no summary" in run("check", "m.json", "test.txt").out
