import json

import pytest

from leanrank.model import Model


@pytest.fixture
def models(files):
    Model.from_coef([0.5, 0.0, -1.25, 0.1, 0.0, 3.0]).save("old.json")
    Model.from_coef([0.5, 1.0, -1.25, 0.0, 0.0, -3.0]).save("new.json")
    return files


def test_what_is_printed(run, models):
    ran = run("diff", "old.json", "new.json", "test.txt", "--top", 3)
    assert ran.code == 0, ran.err
    for word in ("ndcg@10", "map", "f6", "share, old", "first 3 documents", "overlap"):
        assert word in ran.out


def test_gates_set_the_exit_code(run, models):
    words = ("diff", "old.json", "new.json", "test.txt")
    ran = run(*words, "--fail-if", "changed@10 > 30%", "--fail-if", "overlap < 0")
    assert ran.code == 1
    assert ran.err.startswith("leanrank: failed: changed@10 > 30%")
    assert run(*words, "--fail-if", "p@1 < -1").code == 0
    assert run(*words, "--fail-if", "rubbish").code == 2
    same = run("diff", "old.json", "old.json", "test.txt", "--fail-if", "changed@10 > 0")
    assert same.code == 0


def test_json_and_page(run, models):
    pytest.importorskip("vl_convert")
    ran = run("diff", "old.json", "new.json", "test.txt", "--json", "-o", "d.html")
    told = json.loads(ran.out)
    assert told["failed"] == []
    assert told["measures"]["map"]["difference"] == pytest.approx(
        told["measures"]["map"]["mean_b"] - told["measures"]["map"]["mean_a"]
    )
    assert {"f2", "f4"} < {term["name"] for term in told["terms"]}
    assert (models / "d.html").read_text().startswith("<!doctype html>")
    assert run("diff", "old.json", "new.json", "test.txt", "--json", "-o", "-").code == 2


def test_labels_are_optional_and_a_table_needs_the_features_of_both(run, models):
    Model.from_coef([1.0, 2.0], feature_names=["a", "b"]).save("old.json")
    Model.from_coef([1.0, 2.0], feature_names=["b", "c"]).save("new.json")
    (models / "d.csv").write_text("qid,a,b,c,other\n" + "1,1,2,3,9\n1,2,1,0,9\n1,0,0,1,9\n")
    pytest.importorskip("pyarrow")
    ran = run("diff", "old.json", "new.json", "d.csv")
    assert ran.code == 0, ran.err
    assert "ndcg" not in ran.out
    assert run("diff", "old.json", "new.json").code == 2
