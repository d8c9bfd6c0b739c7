"""``leanrank export``."""

import json
from dataclasses import replace

import numpy as np
import pytest

from leanrank.data import load
from leanrank.model import Model, load_model
from leanrank.model.export import TARGETS


@pytest.fixture
def model(files):
    made = Model.from_coef([1.0, 0, -2.0], feature_names=["bm25", "len", "spam"])
    made.save("m.json")
    return made


def test_writes_to_standard_output(run, model):
    done = run("export", "m.json", "--to", "lucene-expression")
    assert (done.code, done.err) == (0, "")
    assert done.out == "1.0 * doc['bm25'].value + -2.0 * doc['spam'].value\n"


def test_writes_a_file(run, model, files):
    done = run("export", "m.json", "--to", "solr", "-o", "solr.json", "--name", "web")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert json.loads((files / "solr.json").read_text())["model"]["body"]["name"][:4] == "web_"


def test_writes_bytes(run, model, files):
    pytest.importorskip("onnx")
    assert run("export", "m.json", "--to", "onnx", "-o", "m.onnx").code == 0
    assert b"spam" in (files / "m.onnx").read_bytes()


def test_lists_the_targets(run):
    done = run("export", "--list")
    assert done.code == 0
    assert [line.split()[0] for line in done.out.splitlines()] == list(TARGETS)


def test_names_and_shifts(run, model, files):
    (files / "map.csv").write_text("feature,name,shift\nspam,spam_score,4.5\nbm25,title,\n")
    done = run("export", "m.json", "--to", "opensearch-ltr", "--names", "map.csv")
    made = json.loads(done.out)
    features = made["featureset"]["body"]["featureset"]["features"]
    assert [feature["name"] for feature in features] == ["title", "spam_score"]
    assert '"shift": 4.5' in done.out


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b\n", "map.csv, line 1: the header needs the columns feature and name"),
        ("feature,name\nspam,\n", "map.csv, line 2: feature 'spam' needs one name"),
        ("feature,name\nspam,x\nspam,y\n", "map.csv, line 3: feature 'spam' needs one name"),
        ("feature,name,shift\nspam,x,1e999\n", "line 2: the shift '1e999' is not a finite number"),
    ],
)
def test_a_bad_map_is_refused_by_line(run, model, files, text, message):
    (files / "map.csv").write_text(text)
    done = run("export", "m.json", "--to", "c", "--names", "map.csv")
    assert done.code == 2
    assert message in done.err


def test_a_refusal_writes_nothing(run, files):
    scaled = Model.from_coef([1.0, 2.0], normalizer={"kind": "query-minmax"})
    scaled.save("m.json")
    done = run("export", "m.json", "--to", "solr", "-o", "out.json")
    assert done.code == 2
    assert "solr cannot scale features per query (query-minmax)" in done.err
    assert "sql:*, polars or hybrid:opensearch|elasticsearch" in done.err
    assert not (files / "out.json").exists()


def test_asks_for_model_and_target(run, files):
    done = run("export")
    assert done.code == 2
    assert "give a model and a target" in done.err


def test_a_model_for_the_feature_set_that_logged(run, model, files):
    done = run("export", "m.json", "--to", "opensearch-ltr", "--featureset", "web")
    made = json.loads(done.out)
    assert made["model"]["request"] == "POST _ltr/_featureset/web/_createmodel"
    assert "featureset" not in made
    assert "web" in done.out.splitlines()[2]
    plain = run("export", "m.json", "--to", "opensearch-ltr").out.splitlines()
    assert "stored fields of the documents: bm25, spam" in plain[2]


def test_a_folder_is_not_written_over(run, model, files):
    for words in ([], ["-o", "there"]):
        (files / "there").mkdir(exist_ok=True)
        done = run("export", "m.json", "--to", "deploy:solr", *words)
        assert done.code == 2
        assert "does not exist yet" in done.err
    assert run("export", "m.json", "--to", "deploy:vespa", "-o", "app").code == 0
    assert (files / "app" / "schemas" / "leanrank.sd").exists()


def test_training_knows_fill_values_and_the_target(run, files):
    rows = "".join(f"{q},{d % 2},{'' if d == 3 else d},{q}\n" for q in range(6) for d in range(5))
    (files / "gaps.csv").write_text("qid,label,a,b\n" + rows)
    fitted = ["train", "gaps.csv", "-a", "ranksvm", "-m", "g.json"]
    assert run(*fitted).code == 2
    assert run(*fitted, "--fill", "median").code == 0
    assert load_model("g.json").fill == {0: 1.5}
    assert run(*fitted, "--fill", "a=7", "--to", "solr").code == 0
    assert load_model("g.json").fill == {0: 7.0}
    streamed = ["train", "gaps.csv", "--stream", "-m", "s.json"]
    assert run(*streamed).code == 2
    assert run(*streamed, "--fill", "a=7", "--scale", "query-minmax").code == 0
    assert load_model("s.json").fill == {0: 7.0}
    assert load_model("s.json").predict(load("gaps.csv")).shape == (30,)
    done = run(*fitted, "--fill", "1", "--to", "solr", "--scale", "query-minmax")
    assert (done.code, "solr cannot compute --scale query-minmax" in done.err) == (2, True)
    done = run(*fitted, "--fill", "1", "--to", "hybrid:qdrant")
    assert (done.code, "leanrank fuse" in done.err) == (2, True)


def test_tune_tries_no_model_that_is_too_large_for_its_target(run, files, monkeypatch):
    """As many features as an expression of the target can have, without a limit of one's own."""
    monkeypatch.setitem(TARGETS, "sql:sqlite", replace(TARGETS["sql:sqlite"], most_terms=2))
    words = ["tune", "train.txt", "--systems", "domination", "--trials", "2", "-m", "m.json"]
    assert run(*words).code == 0
    assert load_model("m.json").n_nonzero > 2
    done = run(*words, "--to", "sql:sqlite")
    assert done.code == 0, done.err
    assert load_model("m.json").n_nonzero <= 2


def test_tune_fills_before_it_judges(run, files):
    """The model of a search scores rows with gaps as the search saw them."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    X[:, 0] += y
    cells = np.where(rng.random(X.shape) < 0.2, "", X.round(3).astype(str))
    rows = [f"{at // 10},{y[at]},{','.join(cells[at])}\n" for at in range(300)]
    (files / "gaps.csv").write_text("qid,label,a,b,c\n" + "".join(rows))
    words = ["tune", "gaps.csv", "--systems", "domination", "--trials", "1", "--scale", "none"]
    assert run(*words, "-m", "m.json").code == 2
    done = run(*words, "-m", "m.json", "--fill", "b=9", "--fill", "a=median", "--fill", "c=0")
    assert done.code == 0, done.err
    model, data = load_model("m.json"), load("gaps.csv")
    gap = np.isnan(data.X)
    number = [np.median(data.X[~gap[:, 0], 0]), 9.0, 0.0]
    assert model.fill == {at: number[at] for at in model.indices.tolist()}
    known = data.replace(X=np.where(gap, number, data.X))
    assert model.predict(data).tolist() == model.replace(fill={}).predict(known).tolist()
