from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from leanrank import make_ranking
from leanrank.errors import DataWarning, InputError
from leanrank.rankers import LCRA, SPD


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=60, n_features=12, random_state=0)


@pytest.fixture(scope="module")
def hidden(data):
    return np.random.default_rng(0).random(len(data)) < 0.6


def fit(ranker, data, hidden, **more):
    return ranker.fit(data.X, np.where(hidden, np.nan, data.y), data.qid, **more)


def test_one_view_is_spd_and_mu_alone_needs_unlabelled_documents(data, hidden):
    settings = {"alpha": 0.01, "n_steps": 3000, "random_state": 3}
    spd = SPD(**settings).fit(data.queries[:].replace(y=data.y))
    assert np.allclose(LCRA(views=1, **settings).fit(data).coef_, spd.coef_, rtol=1e-9)
    # SPD-MV: mu = 0 is LCRA without a pull, and without unlabelled documents there is none either
    apart = fit(LCRA(mu=0, **settings), data, hidden)
    together = fit(LCRA(mu=0.1, **settings), data, hidden)
    assert not np.allclose(apart.coef_, together.coef_, rtol=1e-3)
    none = LCRA(mu=0, **settings).fit(data)
    with pytest.warns(DataWarning, match="mu has no effect, since every document has a label"):
        assert np.array_equal(LCRA(mu=5, **settings).fit(data).coef_, none.coef_)


def test_agreement_grows_with_mu(data, hidden):
    away = []
    for mu in (0.0, 0.01, 1.0):
        ranker = fit(LCRA(mu=mu, n_steps=20_000), data, hidden)
        first, second = (
            data.X @ ranker.state_.view_weights().T[:, 0],
            data.X @ ranker.state_.view_weights().T[:, 1],
        )
        away.append(np.mean((first - second) ** 2))
    assert away[0] > 1.2 * away[1] > 2 * away[2]


def test_prediction_is_the_mean_of_the_views(data, hidden):
    ranker = fit(LCRA(views=3, n_steps=1000), data, hidden)
    assert np.allclose(
        ranker.predict(data.X), (data.X @ ranker.state_.view_weights().T).mean(axis=1)
    )
    for features, row in zip(ranker.views_, ranker.state_.view_weights(), strict=True):
        assert np.array_equal(np.flatnonzero(row), features)


def test_the_order_of_rows_does_not_matter(data, hidden):
    y = np.where(hidden, np.nan, data.y)
    mixed = np.random.default_rng(1).permutation(len(data))
    one = LCRA(n_steps=1000).fit(data.X, y, data.qid)
    other = LCRA(n_steps=1000).fit(data.X[mixed], y[mixed], data.qid[mixed])
    assert np.allclose(one.coef_, other.coef_, rtol=1e-9)


def test_a_piece_without_labels_changes_nothing(data, hidden):
    ranker = LCRA(n_steps=500).partial_fit(data.X, np.where(hidden, np.nan, data.y), data.qid)
    before = ranker.coef_.copy()
    ranker.partial_fit(data.X, np.full(len(data), np.nan), data.qid)
    assert np.array_equal(ranker.coef_, before)


def test_documents_of_no_weight_are_not_there(data, hidden):
    y = np.where(hidden, np.nan, data.y)
    weight = (np.arange(len(data)) % 3 > 0).astype(float)
    there = weight > 0
    weighted = LCRA(n_steps=500).fit(data.X, y, data.qid, sample_weight=weight)
    dropped = LCRA(n_steps=500).fit(data.X[there], y[there], data.qid[there])
    assert np.allclose(weighted.coef_, dropped.coef_, rtol=1e-9)


def test_what_is_refused(data, hidden):
    X, y, qid = data.X, data.y, data.qid
    with pytest.raises(InputError, match="feature 'f2'"):
        LCRA().fit(np.where(np.arange(12) == 1, np.nan, X), y, qid)
    with pytest.raises(InputError, match="finite"):
        LCRA().fit(X, np.where(hidden, np.inf, y), qid)
    with pytest.raises(InputError, match="nothing to learn"):
        LCRA().fit(X, np.full(len(y), np.nan), qid)
    with pytest.raises(InputError, match="nothing to learn"):
        LCRA().fit(X, np.where(hidden, np.nan, 1.0), qid)


def test_named_views(data, hidden):
    names = [f"f{j}" for j in range(12)]
    views = [names[:5], names[5:]]
    frame = pd.DataFrame(data.X, columns=names)
    y = np.where(hidden, np.nan, data.y)
    named = LCRA(views=views, n_steps=1000).fit(frame, y, data.qid)
    numbered = LCRA(views=[range(5), range(5, 12)], n_steps=1000).fit(data.X, y, data.qid)
    assert np.array_equal(named.coef_, numbered.coef_)
    assert [view.tolist() for view in named.views_] == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9, 10, 11]]
    assert list(named.feature_names_in_) == names
