import io
import json

import numpy as np
import pytest

from leanrank import load_letor
from leanrank.model import Model

COEF = [0.5, 0.0, -1.25, 0.1, 0.0, 3.0]


@pytest.fixture
def model(files):
    fitted = Model.from_coef(COEF)
    fitted.save("m.json")
    return fitted


def test_one_score_a_line(run, files, model):
    assert run("predict", "m.json", "test.txt", "-o", "scores.txt") == (0, "", "")
    lines = (files / "scores.txt").read_text().splitlines()
    assert [float(line) for line in lines] == model.predict(load_letor("test.txt")).tolist()
    ran = run("predict", "m.json", "test.txt")
    assert ran == (0, (files / "scores.txt").read_text(), "")


def test_scores_are_in_the_order_of_the_file(run, files):
    Model.from_coef([1.0]).save("m.json")
    (files / "mixed.txt").write_text(
        "".join(f"0 qid:{q} 1:{v}\n" for v, q in enumerate("abcabcbb"))
    )
    assert run("predict", "m.json", "mixed.txt").out.split() == [f"{v}.0" for v in range(8)]


def test_text_may_end_in_features_that_are_zero(run, files, model):
    (files / "narrow.txt").write_text("0 qid:1 1:2\n0 qid:1 3:1\n")
    assert run("predict", "m.json", "narrow.txt").out == "1.0\n-1.25\n"


def test_standard_streams(run, files, model, monkeypatch):
    class Stdin:
        buffer = io.BytesIO((files / "m.json").read_bytes())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert run("predict", "-", "test.txt").out == run("predict", "m.json", "test.txt").out


def test_columns_by_name(run, files, data):
    frames = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = ["a", "b", "c", "d", "e", "f"]
    Model.from_coef(COEF, feature_names=names).save("m.json")
    columns = {name: data.X[:, at] for at, name in reversed(list(enumerate(names)))}
    parquet.write_table(frames.table({"grade": data.y, "q": data.qid, **columns}), "d.parquet")
    ran = run("predict", "m.json", "d.parquet", "--read", "label=grade", "--read", "qid=q")
    assert ran.code == 0, ran.err
    expected = Model.from_coef(COEF).predict(data.X)
    np.testing.assert_array_equal(np.array(ran.out.split(), dtype=float), expected)
    columns.pop("f")
    parquet.write_table(frames.table({"label": data.y, "qid": data.qid, **columns}), "d.parquet")
    ran = run("predict", "m.json", "d.parquet")
    assert ran.code == 2
    assert ran.err == ("leanrank: error: the data lack the feature 'f', which the model needs\n")


def test_json(run, files, model):
    ran = run("predict", "m.json", "test.txt", "-o", "scores.txt", "--json")
    assert ran.code == 0
    assert json.loads(ran.out) == {
        "scores": "scores.txt",
        "model": "m.json",
        "queries": 6,
        "documents": len(load_letor("test.txt")),
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.json", "test.txt"], "none.json: there is no such file"),
        (["test.txt", "test.txt"], "test.txt, line 1, column "),
        (["m.json", "none.txt"], "none.txt: there is no such file"),
        (["m.json", "wide.txt"], "wide.txt, line 1, column "),
        (["m.json", "test.txt", "-o", "no/s.txt"], "no/s.txt: the directory no does not exist"),
        (["m.json", "test.txt", "--json"], "--json and a result both go to standard output"),
        (["-", "-"], "standard input (-) can be read only once"),
    ],
)
def test_faults(run, files, model, words, message):
    (files / "wide.txt").write_text("1 qid:1 7:0.5\n")
    before = sorted(files.iterdir())
    ran = run("predict", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"leanrank: error: {message}")
    assert ran.err.count("\n") == 1
    assert sorted(files.iterdir()) == before


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.txt", "1:2 3:1\n2:5\n"),
        ("b.txt", "qid:7 1:2 3:1\nqid:7 2:5\n"),
        ("c.txt", "1 1:2 3:1\n0 2:5\n"),
        ("d.txt", "1 qid:7 1:2 3:1\n0 qid:7 2:5\n"),
        ("a.csv", "x,y,z\n2,0,1\n0,5,0\n"),
        ("b.csv", "label,x,y,z\n,2,0,1\n1,0,5,0\n"),
    ],
)
def test_neither_labels_nor_queries_are_needed(run, files, name, content):
    Model.from_coef([1.0, 10.0, 100.0]).save("m.json")
    (files / name).write_text(content)
    assert run("predict", "m.json", name).out == "102.0\n50.0\n"


def test_a_normaliser_per_query_needs_queries(run, files):
    spec = {"kind": "query-minmax"}
    Model.from_coef([1.0, 1.0, 1.0], normalizer=spec).save("m.json")
    (files / "a.txt").write_text("1:2 3:1\n2:5\n")
    ran = run("predict", "m.json", "a.txt")
    assert ran.code == 2
    assert "a.txt, line 1, column 1: 'qid:' is missing" in ran.err
    (files / "b.txt").write_text("qid:1 1:2 3:1\nqid:1 2:5\n")
    assert run("predict", "m.json", "b.txt").out == "2.0\n1.0\n"


def test_columns_in_the_words_of_the_messages(run, files):
    Model.from_coef([1.0, 10.0]).save("m.json")
    (files / "a.csv").write_text("grade,x,url,y\n1,2,u,3\n0,4,v,5\n")
    ran = run("predict", "m.json", "a.csv")
    assert "column 'url' of a.csv holds string, not numbers" in ran.err
    assert "features=" in ran.err
    read = ("--read", "features=x,y", "--read", "label=none")
    assert run("predict", "m.json", "a.csv", *read).out == "32.0\n54.0\n"
    (files / "b.csv").write_text("1,2,3\n0,4,5\n")
    assert "the first line holds numbers: put a line with" in run("predict", "m.json", "b.csv").err


@pytest.mark.parametrize("name", ["d.parquet", "d.csv", "d.arrow"])
def test_text_columns_that_the_model_does_not_read(run, files, data, name):
    pl = pytest.importorskip("polars")
    names = ["a", "b", "c", "d", "e", "f"]
    Model.from_coef(COEF, feature_names=names).save("m.json")
    columns = dict(zip(names, data.X.T, strict=True))
    frame = pl.DataFrame({"qid": data.qid, "title": ["text"] * len(data), **columns})
    writers = {".parquet": frame.write_parquet, ".arrow": frame.write_ipc}
    writers.get(name[1:], frame.write_csv)(name)
    expected = Model.from_coef(COEF, feature_names=names).predict(frame)
    ran = run("predict", "m.json", name)
    assert ran.code == 0, ran.err
    np.testing.assert_array_equal(np.array(ran.out.split(), dtype=float), expected)
    frame.drop("a").write_parquet("less.parquet")
    ran = run("predict", "m.json", "less.parquet")
    assert (ran.code, ran.out) == (2, "")
    assert "'a'" in ran.err
