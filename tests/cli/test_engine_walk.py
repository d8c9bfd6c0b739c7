"""The walk of docs/engines.md: an engine's log and ratings in, a verified export out."""

import json
import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leanrank.data import dump_parquet, load, load_sample
from leanrank.data.trec import dump_qrels, dump_run
from leanrank.model import Model, load_model
from tests.model.standin import Ltr, serving
from tests.selection.test_fuse import made

DOCS = Path(__file__).parents[2] / "docs"
SCRIPT = Path(__file__).parents[2] / "scripts" / "make_engine_logs.py"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("logs")
    runpy.run_path(str(SCRIPT))["main"](folder)
    return folder


def commands(page):
    """Return the lines of the first block of commands of a section."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.search(r"```\n(python scripts/make_engine_logs.*?)```", text, re.S)[1].splitlines()


def test_the_walk_as_it_is_written(run, folder, monkeypatch):
    """Every line of the page, against a server that answers as the recorded engines do."""
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(folder)
    sample, _, test = load_sample()
    logged = {}
    for row, (query, document) in enumerate(zip(test.qid, test.doc_ids, strict=True)):
        values = zip(test.feature_names, test.X[row].tolist(), strict=True)
        logged[f"query {query}", str(document)] = {n: np.float32(v) for n, v in values if v}
    engine = Ltr({str(one): {} for one in test.doc_ids}, logged)
    engine.log_with("main", test.feature_names)
    first, cd, *lines = commands("engines.md")
    assert first == "python scripts/make_engine_logs.py logs"
    assert cd == "cd logs"
    with serving(engine) as host:
        for line in lines:
            words = line.split()
            if words[0] == "leanrank":
                words = line.replace("--budget 20s", "--trials 2 --systems domination").split()
                ran = run(*words[1:])
                assert ran.code == 0, ran.err
                if words[1] == "join":
                    assert ran.err.count("warning: ") == 3
                if words[1] == "verify":
                    assert "documents           780 in 40 queries" in ran.out
                    assert "orders changed      0 (" in ran.out
            else:
                given = [word.replace("http://localhost:9200", host) for word in words[1:]]
                done = subprocess.run([sys.executable, *given], capture_output=True, text=True)
    assert done.stdout.splitlines() == [
        "01-model.json: POST _ltr/_featureset/main/_createmodel: done",
        "deployed and proved: 29 scores as expected, 29 of them to the last digit",
    ]
    joined = load("train.parquet")
    row = {document: at for at, document in enumerate(sample.doc_ids)}
    rows = [row[document] for document in joined.doc_ids]
    assert len(joined) == len(sample) - 52
    np.testing.assert_array_equal(joined.X, sample.X[rows])
    np.testing.assert_array_equal(joined.y, sample.y[rows])
    assert load_model("m.json").n_nonzero <= 10


def test_every_block_of_the_export_page(run, files):
    """Commands as typed, the Python of the page, its file of names, and its refusal."""
    pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    page = (DOCS / "export.md").read_text(encoding="utf-8")
    model = Model.from_coef([1.0, 0.5, -2.0, 0.0, 3.0, 0.1])
    model.save("m.json")
    test = load("test.txt", n_features=6)
    scores = model.predict(test)
    Path("scores.jsonl").write_text("".join(f'{{"score": {s!r}}}\n' for s in scores.tolist()))
    dump_parquet(test, "test.parquet")
    lines = re.findall(r"^leanrank (.*?) *(?:#.*)?$", page, re.M)
    assert len(lines) == 5
    for line in lines:
        ran = run(*line.split())
        assert (ran.code, ran.err) == (0, ""), line
    assert "CREATE OR REPLACE VIEW" in Path("score.sql").read_text()
    names = {"test": test}
    exec(re.search(r"```python\n(.*?)```", page, re.S)[1], names)
    assert names["text"] == Path("score.sql").read_text()
    assert names["found"].bit_equal == len(test)

    table = re.search(r"^  (feature,name,.*?)^  ```", page, re.M | re.S)[1]
    Path("map.csv").write_text(table.replace("\n  ", "\n"))
    features = ["BM25 of title", "spam", "in stock"]
    Model.from_coef([1.0, 2.0, 3.0], feature_names=features).save("n.json")
    for target, words in (
        ("vespa", "1.0 * if (isNan(bm25(title)) == 1, 0.0, bm25(title))"),
        ("opensearch-ltr", '"shift": 10.0'),
        ("sql:postgres", 'CAST(CAST(d."in_stock" AS INTEGER) AS DOUBLE PRECISION)'),
    ):
        assert words in run("export", "n.json", "--to", target, "--names", "map.csv").out

    Model.from_coef([1.0, 0.5], normalizer={"kind": "query-minmax"}).save("m.json")
    command, said = re.search(
        r"^\$ leanrank (export .*)\n(leanrank: error: .*)$", page, re.M
    ).groups()
    ran = run(*command.split())
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.split() == said.split()


def test_every_command_of_the_hybrid_page(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runs, qrels = made({"bm25": 0.6, "dense": 1.0, "fresh": 2.0}, n_queries=24)
    for name, one in runs.items():
        dump_run(one, f"{name}.trec")
    dump_qrels(qrels, "q.txt")
    kinds = [f"q{q},{'name' if q % 2 else 'topic'}" for q in range(24)]
    Path("queries.csv").write_text("\n".join(["qid,kind", *kinds]) + "\n")
    page = (DOCS / "hybrid.md").read_text(encoding="utf-8")
    lines = re.findall("^leanrank (.*)$", page, re.M)
    assert len(lines) == 2
    baseline = re.search("`(--baseline [^`]*)`", page)[1]
    lines.append(lines[0].replace("fresh.trec ", "") + f" {baseline}")  # weighs two runs
    for line in lines:
        ran = run(*line.split())
        assert (ran.code, ran.err) == (0, ""), line
    made_of = json.loads(Path("pipeline.json").read_text())
    assert sum(_weights(made_of)) == pytest.approx(1.0)
    by_type = json.loads(Path("pipes.json").read_text())
    assert list(by_type) == ["kind=name", "kind=topic", "others"]
    ran = run(*lines[0].replace("opensearch", "qdrant").replace("pipeline", "q").split())
    assert ran.code == 0, ran.err
    assert json.loads(Path("q.json").read_text())["query"]["rrf"]["k"] == 2


def _weights(pipeline):
    [processor] = pipeline["phase_results_processors"]
    [settings] = processor.values()
    return settings["combination"]["parameters"]["weights"]


def test_clicks_of_engines_as_they_are_written(run, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    Path("ubi").mkdir()
    shown = {"query_id": "u", "user_query": "jazz", "query_response_hit_ids": ["a", "b"]}
    click = {"action_name": "click", "query_id": "u"}
    click["event_attributes"] = {"object": {"object_id": "b"}, "position": {"ordinal": 2}}
    Path("ubi/ubi_queries.ndjson").write_text(json.dumps(shown))
    Path("ubi/ubi_events.ndjson").write_text(json.dumps(click))
    ranking = {"event": "ranking", "id": "r", "timestamp": "1599391467000"}
    ranking["fields"] = [{"name": "query", "value": "jazz"}]
    ranking["items"] = [{"id": "a"}, {"id": "b"}]
    bought = {"event": "interaction", "id": "e", "ranking": "r", "type": "purchase", "item": "b"}
    bought["timestamp"] = "1599391468000"
    Path("events.jsonl").write_text("\n".join(map(json.dumps, (ranking, bought))))
    page = (DOCS / "engines.md").read_text(encoding="utf-8")
    lines = re.findall("^leanrank (convert .*)$", page, re.M)
    assert len(lines) == 2
    for line in lines:
        ran = run(*line.split())
        assert (ran.code, ran.err) == (0, ""), line
        assert "1 lists, 1 clicks, 2 documents shown" in ran.out
