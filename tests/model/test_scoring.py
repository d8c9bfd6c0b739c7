"""Scores of sums of terms: each row and each curve by itself."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from leanrank import make_ranking
from leanrank.model import Model
from leanrank.model.curves import Line, Ramps, Steps
from leanrank.rankers import DominationRanker


def test_terms_are_added_in_order_whatever_their_kind():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 6)) * 3
    X[rng.random(X.shape) < 0.1] = np.nan
    X[:, 1] = np.nan_to_num(X[:, 1])
    curves = {
        0: Ramps((-1.0, 0.0, 2.0), (0.3, -0.7), missing=0.25),
        1: Line(0.1),
        2: Steps((0.5,), (1.0, 3.0), missing=-1.0),
        4: Ramps((-2.0, 2.0), (1.1,), missing=0.0),
        5: Line(0.3, missing=2.0),
    }
    model = Model(6, curves)
    expected = 0.1 * X[:, 1]
    for at in (0, 2, 4, 5):
        expected = expected + curves[at](X[:, at])
    assert np.array_equal(model.predict(X), expected)
    assert np.array_equal(model.predict(sparse.csr_array(X)), expected)
    assert np.array_equal([float(model.predict(row[None, :])[0]) for row in X], expected)
    parts = np.column_stack([curves[at](X[:, at]) for at in curves])
    assert np.array_equal(model.explain(X).contributions, parts)


def test_a_ranker_with_curves_follows_its_weights():
    data = make_ranking(n_queries=20, n_features=4, random_state=0)
    ranker = DominationRanker(alpha=0.01, curves=3).fit(data)
    before = ranker.predict(data)
    ranker.coef_[:] *= 2
    assert np.allclose(ranker.predict(data), 2 * before)
    assert np.array_equal(ranker.predict(data), ranker.to_model().predict(data))


@pytest.mark.parametrize("kind", ["float64", "float32", "int64", "Int64", "bool"])
def test_frames_score_as_arrays_do(kind):
    data = make_ranking(n_queries=20, n_features=4, random_state=0)
    X = (10 * data.X).round()
    X = X > 0 if kind == "bool" else X
    frame = pd.DataFrame(X, columns=list("abcd")).astype(kind)
    ranker = DominationRanker(alpha=0.001).fit(frame, data.y, qid=data.qid)
    assert np.allclose(ranker.predict(frame), X.astype(float) @ ranker.coef_)
    with pytest.raises(ValueError, match="feature names"):
        ranker.predict(frame[list("badc")])
