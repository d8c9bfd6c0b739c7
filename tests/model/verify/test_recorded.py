"""The float32 emulator against what real engines answered."""

import csv
import gzip
import json
from itertools import groupby
from pathlib import Path

import numpy as np
import pytest

from leanrank.data import RankingData
from leanrank.model import Model
from leanrank.model.export import formula_of
from leanrank.model.export.targets import Options
from leanrank.model.verify import emulated_scores, verify_logged

FOLDER = Path(__file__).parent / "recorded"
ENGINES = {
    "opensearch-2.5.0": "opensearch-ltr",
    "elasticsearch-8.12.2": "elasticsearch-ltr",
    "solr-8.8.1": "solr",
}


@pytest.fixture(scope="module")
def data():
    return documents()


def documents():
    """Read the documents that were ranked."""
    with gzip.open(FOLDER / "documents.csv.gz", "rt") as stream:
        header, *rows = csv.reader(stream)
    X = np.array([row[1:] for row in rows], dtype=np.float64)
    qid = [row[0] for row in rows]
    assert len(X) == 798
    assert len(list(groupby(qid))) == 40
    return RankingData(X, np.zeros(len(X)), qid=qid, feature_names=header[1:])


def recorded(name, data):
    answer = json.loads((FOLDER / f"{name}.json").read_text())
    coef = [answer["weights"].get(feature, 0.0) for feature in data.feature_names]
    model = Model.from_coef(coef, feature_names=data.feature_names)
    return model, answer["shift"], np.array(answer["scores"])


@pytest.mark.parametrize("name", ENGINES)
def test_emulator_gives_the_bits_of_the_engine(name, data):
    model, shift, scores = recorded(name, data)
    found = emulated_scores(formula_of(model), data.X[:, model.indices], Options(shifts=shift))
    assert (found == scores.astype(np.float32)).all()


@pytest.mark.parametrize(("name", "target"), ENGINES.items())
def test_logged_answers_verify(name, target, data):
    model, shift, scores = recorded(name, data)
    found = verify_logged(model, scores, data, target=target, shifts=shift)
    assert found.bit_equal == found.documents == 798
    assert found.difference == 0
    assert 0 < found.model_difference < 5e-6
    assert (found.queries, found.orders_changed) == (40, 0)


def test_a_wrong_order_is_found(data):
    model, shift, scores = recorded("solr-8.8.1", data)
    wrong = scores.copy()
    wrong[[3, 4]] = wrong[[4, 3]]
    found = verify_logged(model, wrong, data, target="solr", shifts=shift)
    assert (found.orders_changed, found.beyond, found.bit_equal) == (1, 1, 796)
    gap = abs(scores[3] - scores[4])
    assert verify_logged(model, wrong, data, tolerance=1.01 * gap, target="solr").beyond == 0
