"""Figures that were published or checked on public sets."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from leanrank.errors import DataWarning
from leanrank.metrics import evaluate

pytestmark = pytest.mark.realdata


def read(name):
    path = Path(os.environ.get("LEANRANK_DATA", "")) / name
    if "LEANRANK_DATA" not in os.environ or not path.exists():
        pytest.skip(f"needs {name} in LEANRANK_DATA")
    rows = [line.split("#")[0].split() for line in path.read_text().splitlines()]
    y = np.array([float(row[0]) for row in rows])
    X = np.array([[float(pair.split(":")[1]) for pair in row[2:]] for row in rows])
    return X, y, np.array([row[1] for row in rows])


def centred(values, qid):
    _, at = np.unique(qid, return_inverse=True)
    means = np.zeros((at.max() + 1, *values.shape[1:]))
    np.add.at(means, at, values)
    return values - (means.T / np.bincount(at)).T[at]


def test_rank_rls_on_mq2008_has_its_published_figures():
    X, y, qid = read("MQ2008/Fold1/train.txt")
    Xc, yc = centred(X, qid), centred(y, qid)
    w = np.linalg.solve(Xc.T @ Xc + 2 * np.eye(X.shape[1]), Xc.T @ yc)
    X, y, qid = read("MQ2008/Fold1/test.txt")
    found = evaluate(y, X @ w, qid, measures="map,p@10,mean_ndcg,ndcg@10", convention="letor4")
    rounded = {name: round(mean, 4) for name, mean in found.means.items()}
    assert rounded == {"map": 0.4524, "p@10": 0.2391, "mean_ndcg": 0.4633, "ndcg@10": 0.2145}


def test_ties_in_input_order_leak_on_ohsumed():
    leaked, fair = [], []
    for fold in range(1, 6):
        _, y, qid = read(f"OHSUMED/Fold{fold}/test.txt")
        flat = np.zeros(len(y))
        with pytest.warns(DataWarning):
            leaked.append(list(evaluate(y, flat, qid, convention="letor3").means.values()))
        found = evaluate(y, flat, qid, convention="letor3", ties="average")
        fair.append(list(found.means.values()))
    np.testing.assert_allclose(np.mean(leaked, axis=0), [0.399, 0.427], atol=5e-4)
    np.testing.assert_allclose(np.mean(fair, axis=0), [0.191, 0.307], atol=5e-4)
