"""``leanrank verify``."""

import json

import numpy as np
import pytest

from leanrank.data import load, make_ranking
from leanrank.model import Levels, Line, Model


@pytest.fixture
def model(files):
    made = Model.from_coef([1.0, 0.5, -2.0, 0.0, 3.0, 0.1])
    made.save("m.json")
    return made


def test_runs_an_export(run, model):
    done = run("verify", "m.json", "test.txt", "--to", "sql:sqlite")
    assert (done.code, done.err) == (0, "")
    assert "SQLite" in done.out
    assert "0 (0 beyond a difference of 1e-06)" in done.out


def test_json(run, model):
    found = json.loads(run("verify", "m.json", "test.txt", "-t", "python", "--json").out)
    assert found["bit_equal"] == found["documents"] > 0
    assert (found["orders_changed"], found["target"]) == (0, "python")


def logged(files, scores, name="scores.csv"):
    (files / name).write_text("score\n" + "".join(f"{s!r}\n" for s in scores))


def test_logged_scores_in_the_order_of_the_data(run, model, files):
    scores = model.predict(load("test.txt", n_features=6)).tolist()
    logged(files, scores)
    done = run("verify", "m.json", "test.txt", "--logged", "scores.csv")
    assert (done.code, done.err) == (0, "")


def test_a_changed_order_is_exit_code_1(run, model, files):
    scores = model.predict(load("test.txt", n_features=6))
    logged(files, (-scores).tolist())
    done = run("verify", "m.json", "test.txt", "--logged", "scores.csv", "--json")
    assert done.code == 1
    assert json.loads(done.out)["beyond"] == 6
    span = str(np.ptp(scores) + 1)
    again = run("verify", "m.json", "test.txt", "--logged", "scores.csv", "--tolerance", span)
    assert again.code == 0


def test_logged_scores_by_document(run, files):
    data = make_ranking(n_queries=4, n_features=6, random_state=0)
    names = [f"d{at}" for at in range(len(data))]
    rows = zip(data.qid.tolist(), names, data.y.tolist(), data.X.tolist(), strict=True)
    header = "qid,doc_id,label," + ",".join(f"f{at}" for at in range(6)) + "\n"
    body = "".join(f"{q},{d},{y},{','.join(map(repr, x))}\n" for q, d, y, x in rows)
    (files / "docs.csv").write_text(header + body)
    model = Model.from_coef(np.arange(1.0, 7.0), feature_names=[f"f{at}" for at in range(6)])
    model.save("m.json")
    scores = model.predict(data).tolist()
    records = [
        json.dumps({"query": str(q), "_id": d, "_score": s})
        for q, d, s in zip(data.qid.tolist(), names, scores, strict=True)
    ]
    records = [*reversed(records[3:]), '{"query": "none", "_id": "x", "_score": 1}']
    (files / "log.jsonl").write_text("\n".join(records) + "\n")
    done = run("verify", "m.json", "docs.csv", "--logged", "log.jsonl", "--json")
    assert done.err == ""
    found = json.loads(done.out)
    assert (found["not_logged"], found["unmatched"], found["beyond"]) == (3, 1, 0)
    assert found["documents"] == len(data) - 3


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("s.csv", "value\n1\n", "s.csv, line 1: the header has no column 'score'"),
        ("s.csv", "score\n1\nnan\n", "s.csv, line 3: the score is 'nan'"),
        ("s.csv", "score\n1\r2\n", "s.csv, line 2: this is not CSV"),
        ("s.jsonl", '{"score": 1}\n[2]\n', "s.jsonl, line 2: expected a JSON object, found a list"),
        ("s.jsonl", '{"score": true}\n', "s.jsonl, line 1: the score is True"),
        ("s.jsonl", "", "s.jsonl holds no scores"),
        ("s.jsonl", '{"score": 1}\n', "s.jsonl has 1 scores but the data have"),
    ],
)
def test_bad_logs_are_refused(run, model, files, name, text, message):
    (files / name).write_text(text)
    done = run("verify", "m.json", "test.txt", "--logged", name)
    assert done.code == 2
    assert message in done.err


def test_asks_what_to_compare(run, model):
    done = run("verify", "m.json", "test.txt")
    assert done.code == 2
    assert "--to TARGET to run, or --logged FILE" in done.err


@pytest.mark.parametrize("file", ["d.csv", "d.parquet"])
def test_a_table_with_text_columns(run, files, file):
    pytest.importorskip("duckdb")
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import csv, parquet

    columns = {"qid": [1, 1, 2], "code": ["01", "1", None], "x": [1.0, 2.0, 3.0]}
    write = csv.write_csv if file.endswith("csv") else parquet.write_table
    write(pyarrow.table(columns), file)
    Model(2, {0: Levels(("01", "1"), (1.0, 5.0)), 1: Line(1.0)}, ("code", "x")).save("m.json")
    done = run("verify", "m.json", file, "--to", "sql:duckdb", "--json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert (found["documents"], found["queries"], found["bit_equal"]) == (3, 2, 3)


@pytest.mark.parametrize("shape", ["elasticsearch", "solr", "vespa"])
def test_search_responses_are_logs(run, files, shape):
    """With the map that the rescore query of Elasticsearch applies to scores."""
    X = np.random.default_rng(0).uniform(-1, 1, (6, 2))
    rows = "".join(f"{at // 3},d{at},0,{a!r},{b!r}\n" for at, (a, b) in enumerate(X.tolist()))
    (files / "docs.csv").write_text("qid,doc_id,label,a,b\n" + rows)
    model = Model.from_coef([2.0, -1.0], feature_names=["a", "b"])
    model.save("m.json")
    s = model.predict(X)
    lines = []
    for query in (0, 1):
        at = range(3 * query, 3 * query + 3)
        if shape == "elasticsearch":
            mapped = np.float32(np.where(s < 0, 1 / (1 - s), 1 + s))
            hits = [{"_id": f"d{row}", "_score": float(mapped[row])} for row in at]
            lines.append({"query": str(query), "hits": {"hits": hits}})
        elif shape == "solr":
            docs = [{"id": f"d{row}", "score": float(s[row])} for row in at]
            lines.append({"query": str(query), "response": {"docs": docs}})
        else:
            hits = [{"id": f"id:w:w::d{row}", "relevance": float(s[row])} for row in at]
            lines.append({"query": str(query), "root": {"children": hits}})
    (files / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    target = ["--to", "elasticsearch-rescore"] if shape == "elasticsearch" else []
    found = json.loads(
        run("verify", "m.json", "docs.csv", "--logged", "log.jsonl", "--json", *target).out
    )
    assert (found["bit_equal"], found["unmatched"], found["beyond"]) == (6, 0, 0)


def test_a_folded_constant_may_be_left_out(run, files):
    """Scores of an engine without the constant, and no word about the target."""
    data = load("test.txt", n_features=6)
    scaler = {"kind": "standard", "mean": [0.5] * 6, "scale": [2.0] * 6}
    model = Model.from_coef([1.0, 0.5, -2.0, 0.0, 3.0, 0.1], normalizer=scaler)
    model.save("m.json")
    for constant in (0.0, 0.5 * (1.0 + 0.5 - 2.0 + 3.0 + 0.1) / 2.0):
        logged(files, (model.predict(data) + constant).tolist())
        done = run("verify", "m.json", "test.txt", "--logged", "scores.csv", "--json")
        assert json.loads(done.out)["model_difference"] < 1e-12


def test_a_table_is_made_with_its_own_types(run, files):
    pytest.importorskip("pyarrow")
    pytest.importorskip("duckdb")
    (files / "d.csv").write_text("qid,label,stock,price\n1,0,true,3.5\n1,1,false,2\n1,2,,\n")
    Model.from_coef([0.3, -0.1], feature_names=["stock", "price"], fill={0: 0.5, 1: 3.0}).save(
        "m.json"
    )
    done = run("verify", "m.json", "d.csv", "--to", "sql:duckdb", "--json", "--table", "shop.d")
    assert done.code == 0, done.err
    assert json.loads(done.out)["bit_equal"] == 3
    done = run("export", "m.json", "--to", "sql:postgres", "--expression-only", "--data", "d.csv")
    assert 'CAST(CAST("stock" AS INTEGER) AS DOUBLE PRECISION)' in done.out
    assert "VIEW" not in done.out
