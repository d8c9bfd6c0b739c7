"""The walk of docs/engines.md: an engine's log and ratings in, a verified export out."""

import re
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leanrank.data import load, load_sample
from leanrank.model import Model, load_model
from tests.model.standin import Ltr, serving

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
    made, cd, *lines = commands("engines.md")
    assert made == "python scripts/make_engine_logs.py logs"
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


def test_every_command_of_the_export_page(run, files):
    pytest.importorskip("duckdb")
    page = (DOCS / "export.md").read_text(encoding="utf-8")
    model = Model.from_coef([1.0, 0.5, -2.0, 0.0, 3.0, 0.1])
    model.save("m.json")
    scores = model.predict(load("test.txt", n_features=6))
    Path("scores.jsonl").write_text("".join(f'{{"score": {s!r}}}\n' for s in scores.tolist()))
    lines = re.search(r"```\n(leanrank export.*?)```", page, re.S)[1].splitlines()
    assert len(lines) == 4
    for line in lines:
        ran = run(*line.partition("#")[0].split()[1:])
        assert (ran.code, ran.err) == (0, ""), line
    assert "CREATE OR REPLACE VIEW" in Path("score.sql").read_text()
