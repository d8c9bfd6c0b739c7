"""Deployment folders, run against a server that answers as the recorded engines do."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from leanrank.data import RankingData
from leanrank.model import Line, Model, Ramps, Steps, Surface
from leanrank.model.export import deploy_script, export_model
from tests.model.standin import Ltr, Solr, serving
from tests.model.verify.test_recorded import documents, recorded

ENGINES = {"opensearch": Ltr, "elasticsearch": Ltr, "solr": Solr}
RECORDED = {
    "opensearch": "opensearch-2.5.0",
    "elasticsearch": "elasticsearch-8.12.2",
    "solr": "solr-8.8.1",
}
NAMES = ("bm25", "age", "spam", "clicks")


def folder_of(made, path):
    for name, text in made.items():
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_text(text)
    return path


def data(names=NAMES, gaps=False):
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 1, (60, len(names)))
    if gaps:
        X[rng.random(X.shape) < 0.2] = np.nan
    ids = [f"d{at}" for at in range(60)]
    qid = [f"query {at // 20}, it's" for at in range(60)]
    return RankingData(X, np.zeros(60), qid=qid, doc_ids=ids, feature_names=names)


def index(given):
    rows = zip(given.doc_ids, given.X.tolist(), strict=True)
    return {
        str(one): {n: v for n, v in zip(given.feature_names, x, strict=True) if v == v}
        for one, x in rows
    }


def run(path, host, *more, monkeypatch=None):
    """Run the script in this process, as it stands in the folder."""
    monkeypatch.setattr(deploy_script, "HERE", path)
    assert (path / "deploy.py").read_text() == Path(deploy_script.__file__).read_text()
    return deploy_script.main([host, "web", *more])


CURVES = Model(
    4,
    {
        0: Ramps((0.0, 0.4, 1.0), (0.7, -0.2), 0.3),
        1: Steps((0.25, 0.5), (0.0, 1.0, 0.5), -0.4),
        2: Line(-0.5, missing=0.1),
    },
    NAMES,
    surfaces={(0, 3): Surface((0.0, 0.5, 1.0), (0.0, 1.0), ((0, 0.1), (0.3, 0), (-0.2, 0.4)))},
)
LINES = Model.from_coef(
    [1.5, 0.0, -2.0, 0.25], feature_names=NAMES, fill={0: 0.5, 2: 0.125, 3: 0.0}
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("model", [LINES, CURVES], ids=["lines", "curves"])
def test_deployed_and_proved(engine, model, tmp_path, monkeypatch, capsys):
    """With gaps, from an empty store, and a second time."""
    given = data(gaps=True)
    made = export_model(model, f"deploy:{engine}", data=given, max_error=0.05)
    path = folder_of(made, tmp_path)
    with serving(ENGINES[engine](index(given))) as host:
        assert run(path, host, monkeypatch=monkeypatch) == 0
        said = capsys.readouterr().out
        assert "deployed and proved: 30 scores as expected, 30 of them to the last digit" in said
        assert run(path, host, monkeypatch=monkeypatch) == 0
        assert "is there already" in capsys.readouterr().out


def test_the_script_needs_nothing_but_python(tmp_path):
    given = data()
    path = folder_of(export_model(LINES, "deploy:opensearch", data=given), tmp_path)
    with serving(Ltr(index(given))) as host:
        words = [sys.executable, "-I", "-S", str(path / "deploy.py"), host, "web"]
        done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("30 of them to the last digit\n")
    assert [one.split(":")[0] for one in done.stdout.splitlines()[:3]] == [
        "01-store.json",
        "02-featureset.json",
        "03-model.json",
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_the_stand_in_gives_the_recorded_bits(engine, tmp_path, monkeypatch, capsys):
    """All 798 documents: what real engines answered, what is expected, and the stand-in."""
    given = documents()
    given = given.replace(doc_ids=[f"d{at}" for at in range(len(given))])
    model, shifts, scores = recorded(RECORDED[engine], given)
    monkeypatch.setattr("leanrank.model.export.ltr._QUERIES", 40)
    monkeypatch.setattr("leanrank.model.export.ltr._DOCUMENTS", 1000)
    made = export_model(model, f"deploy:{engine}", shifts=shifts, data=given)
    expected = json.loads(made["expected.json"])
    found = [one["score"] for query in expected["queries"] for one in query["documents"]]
    np.testing.assert_array_equal(np.float32(scores), np.float32(found))
    path = folder_of(made, tmp_path)
    with serving(ENGINES[engine](index(given))) as host:
        assert run(path, host, monkeypatch=monkeypatch) == 0
    assert "798 scores as expected, 798 of them to the last digit" in capsys.readouterr().out


@pytest.fixture
def logged():
    """A log of query features: the values are the engine's, not fields."""
    given = data()
    rows = zip(given.qid.tolist(), given.doc_ids.tolist(), given.X.tolist(), strict=True)
    values = {(q, d): dict(zip(NAMES, x, strict=True)) for q, d, x in rows}
    fields = {str(one): {"title": 1.0} for one in given.doc_ids}
    return given, Ltr(fields, values)


def test_query_features_of_the_set_that_logged(logged, tmp_path, monkeypatch, capsys):
    given, engine = logged
    engine.log_with("main", NAMES)
    made = export_model(LINES, "deploy:opensearch", featureset="main", data=given)
    assert list(made)[1] == "01-model.json"
    path = folder_of(made, tmp_path)
    with serving(engine) as host:
        assert run(path, host, "--param", "keywords", monkeypatch=monkeypatch) == 0
        assert "deployed and proved" in capsys.readouterr().out
        assert run(path, host, monkeypatch=monkeypatch) == 1  # without the text of the query
        said = capsys.readouterr().out
    assert "the feature 'bm25' is 0 in the engine" in said
    assert "--param" in said


def test_the_right_model_is_used_after_a_wrong_one(logged, tmp_path, monkeypatch, capsys):
    """The page says to export again, with --featureset: the first model stays in the store."""
    given, engine = logged
    engine.log_with("main", NAMES)
    with serving(engine) as host:
        for at, how in enumerate(({}, {"featureset": "main"})):
            made = export_model(LINES, "deploy:opensearch", data=given, **how)
            (tmp_path / str(at)).mkdir()
            path = folder_of(made, tmp_path / str(at))
            assert run(path, host, "--param", "keywords", monkeypatch=monkeypatch) == 1 - at
    assert "deployed and proved" in capsys.readouterr().out


def test_query_features_taken_for_fields_are_found_out(logged, tmp_path, monkeypatch, capsys):
    """Every request is answered with 200, and every score is wrong."""
    given, engine = logged
    path = folder_of(export_model(LINES, "deploy:opensearch", data=given), tmp_path)
    with serving(engine) as host:
        assert run(path, host, monkeypatch=monkeypatch) == 1
    said = capsys.readouterr().out
    assert said.count(": done") == 3
    assert "wrong: document 'd0' of query \"query 0, it's\": the feature 'bm25' is 0.5" in said


class Another(Ltr):
    """Adds to every score."""

    def _search(self, body):
        answer = super()._search(body)
        for hit in answer["hits"]["hits"]:
            hit["_score"] += 0.01
        return answer


class Unranked(Ltr):
    """Does not rescore."""

    def _search(self, body):
        answer = super()._search(body)
        for hit in answer["hits"]["hits"]:
            hit["_score"] = 0.0
        return answer


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        (Another, "another model answered"),
        (Unranked, "it was not rescored"),
        (lambda index: Ltr({"other": {"bm25": 1.0}}), "it is not in the index"),
        (Solr, "no handler|Cannot PUT"),
    ],
)
def test_bad_answers_have_a_likely_cause(engine, words, tmp_path, monkeypatch, capsys):
    given = data()
    path = folder_of(export_model(LINES, "deploy:opensearch", data=given), tmp_path)
    with serving(engine(index(given))) as host:
        assert run(path, host, monkeypatch=monkeypatch) == 1
    assert re.search(words, capsys.readouterr().out)


def test_refusals_have_a_likely_cause(tmp_path, monkeypatch, capsys):
    given = data()
    made = export_model(LINES, "deploy:opensearch", data=given)
    path = folder_of({k: v for k, v in made.items() if "store" not in k}, tmp_path)
    with serving(Ltr(index(given))) as host:
        assert run(path, host, monkeypatch=monkeypatch) == 1
    said = capsys.readouterr().out
    assert "Store [.ltrstore] does not exist" in said
    assert "Likely cause: the store or the feature set is not there" in said
    assert run(path, "http://127.0.0.1:1", monkeypatch=monkeypatch) == 1
    assert "cannot be reached" in capsys.readouterr().out


def test_negative_values_need_a_shift(tmp_path, monkeypatch, capsys):
    given = data()
    given = given.replace(X=given.X - 0.5)
    path = folder_of(export_model(LINES, "deploy:opensearch", data=given), tmp_path)
    with serving(Ltr(index(given))) as host:
        assert run(path, host, monkeypatch=monkeypatch) == 1
    assert "give a shift in a file for --names" in capsys.readouterr().out


def test_without_documents_nothing_is_proved(tmp_path, monkeypatch, capsys):
    given = data()
    path = folder_of(export_model(LINES, "deploy:solr"), tmp_path)
    with serving(Solr(index(given))) as host:
        assert run(path, host, monkeypatch=monkeypatch) == 0
    assert "not proved" in capsys.readouterr().out
