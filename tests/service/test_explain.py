import json

import numpy as np
import pytest

from leanrank.data import RankingData
from leanrank.errors import InputError
from leanrank.model import Levels, Line, Model, Ramps, Surface
from leanrank.service.explain import explain_query


@pytest.fixture
def model():
    corner = Surface((0.0, 1.0), (0.0, 1.0), ((0.0, 0.0), (0.0, 1.0)))
    curves = {0: Ramps((0.0, 1.0), (2.0,), missing=0.25), 2: Line(-1.0)}
    return Model(4, curves, surfaces={(1, 3): corner})


@pytest.fixture
def data():
    X = [[0.5, 1.0, 0.1, 0.5], [np.nan, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [9.0, 1.0, 3.0, 1.0]]
    return RankingData(X, [1, 0, 2, np.nan], ["a", "a", "b", "a"])


def test_values_beside_contributions(model, data):
    found = explain_query(model, "a", data)
    # rows of query a: scores 1 − 0.1 + 0.5, 0.25, 2 − 3 + 1
    assert found.explanation.scores.tolist() == pytest.approx([1.4, 0.25, 0.0])
    assert found.order.tolist() == [0, 1, 2]
    told = found.to_dict()
    assert [each["label"] for each in told["documents"]] == [1.0, 0.0, None]
    first, second, third = (each["terms"] for each in told["documents"])
    assert first["f2 × f4"] == {"value": "1 × 0.5", "adds": 0.5}
    assert second["f1"] == {"value": "missing", "adds": 0.25}
    assert third["f3"] == {"value": "3", "adds": -3.0}


def test_why_adds_up(model, data):
    found = explain_query(model, "a", data)
    told = found.why(0, 2)
    assert sum(each["difference"] for each in told) == pytest.approx(1.4)
    assert [each["term"] for each in told] == ["f3", "f1", "f2 × f4"]
    assert told[0]["values"] == ["0.1", "3"]


def test_documents_by_id_and_by_rank(model, data):
    named = data.replace(doc_ids=["x", "y", "2", "z"])
    found = explain_query(model, "a", named)
    assert [found.find(word) for word in ("2", "3", "x")] == [2, 2, 0]
    for wrong in ("9", "w", "0"):
        with pytest.raises(InputError, match=repr(wrong)):
            found.find(wrong)
    with pytest.raises(InputError, match="nothing"):
        explain_query(model, "nothing", data)


def test_rows_are_called_as_in_a_diff(model, data):
    (row,) = np.flatnonzero(data.qid == "b").tolist()
    assert explain_query(model, "b", data).documents == [f"row {row}"]


def test_texts_are_shown_as_texts():
    model = Model(1, {0: Levels(("de", "en"), (1.0, 2.0))}, ("lang",))
    cells = np.array([["en"], ["fr"], [None]], dtype=object)
    found = explain_query(model, 7, cells, qid=[7, 7, 7])
    assert [found.value(row, 0) for row in range(3)] == ["en", "another level", "missing"]


def test_command(tmp_path, monkeypatch, capsys, model):
    from leanrank.cli import main

    monkeypatch.chdir(tmp_path)
    model.save("m.json")
    (tmp_path / "d.txt").write_text("1 qid:3 1:0.5 3:1\n0 qid:3 1:1 2:1 4:1\n0 qid:4 1:1\n")
    assert main(["explain", "m.json", "d.txt", "--query", "3"]) == 0
    shown = capsys.readouterr().out
    assert "1 × 1" in shown
    assert main(["explain", "m.json", "d.txt", "--query", "3", "--why", "1,2", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    pair = next(each for each in told["why"] if each["term"] == "f2 × f4")
    assert pair["values"] == ["1 × 1", "0 × 0"]
    assert main(["explain", "m.json", "d.txt", "--query", "3", "--why", "2,1"]) == 0
    assert "not above" in capsys.readouterr().out
    assert main(["explain", "m.json", "d.txt", "--query", "3", "--why", "2"]) == 2
