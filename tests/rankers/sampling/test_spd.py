from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.utils.estimator_checks import parametrize_with_checks

from leanrank import RankingData, make_ranking
from leanrank.checks import ranker_checks
from leanrank.errors import InputError
from leanrank.rankers import LCRA, SPD, RSRank

RANKERS = [
    SPD(),
    SPD(loss="logistic", sampling="queries", learning_rate="constant"),
    SPD(loss="squared", sampling="queries", n_steps=20_000),
    SPD(alpha=0.01, l1_ratio=1.0),
    SPD(learning_rate="pegasos", average=False),
    RSRank(),
    RSRank(loss="squared-hinge", truncate_every=10, ceiling=1.0),
    LCRA(),
    LCRA(loss="squared", n_labeled=2, views=3, n_steps=10_000),
]


@pytest.mark.parametrize("check", ranker_checks(), ids=lambda c: c.__name__)
@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_the_battery(ranker, check):
    check(ranker)


@parametrize_with_checks([SPD(n_steps=1000), RSRank(n_steps=1000), LCRA(n_steps=1000)])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=80, n_features=20, n_informative=4, random_state=0)


@pytest.fixture(scope="module")
def held_out():
    return make_ranking(n_queries=40, n_features=20, n_informative=4, random_state=0)


@pytest.mark.parametrize("ranker", RANKERS, ids=str)
def test_partial_fit_goes_on(ranker, data):
    """Two passes are one fit of two epochs."""
    whole = ranker.__class__(**{**ranker.get_params(), "epochs": 2, "n_steps": 777}).fit(data)
    parts = ranker.__class__(**{**ranker.get_params(), "n_steps": 777})
    parts.partial_fit(data)
    parts = pickle.loads(pickle.dumps(parts)).partial_fit(data)
    assert np.array_equal(whole.coef_, parts.coef_)


def test_l1_leaves_few_features_and_l2_all(data):
    sparse = SPD(alpha=0.05, l1_ratio=1.0).fit(data)
    assert 0 < np.count_nonzero(sparse.coef_) <= 10
    assert np.count_nonzero(SPD(alpha=0.05).fit(data).coef_) == 20
    assert sparse.score(data) > 0.6


def test_rsrank_weighs_what_a_swap_would_cost(data):
    """Pairs of far levels count more, so the top of the ranking gets better, and sparse."""
    plain = RSRank(alpha=0.05, importance=None).fit(data)
    weighted = RSRank(alpha=0.05).fit(data)
    assert not np.allclose(plain.coef_, weighted.coef_, rtol=0.01)
    assert 0 < np.count_nonzero(weighted.coef_) <= 10
    equal = RSRank(alpha=0.05, importance=np.full((len(data.levels),) * 2, 3.0)).fit(data)
    assert np.allclose(equal.coef_, plain.coef_, rtol=1e-9)  # weights are relative
    spd = SPD(alpha=0.05, l1_ratio=1.0, sampling="queries").fit(data)
    assert np.array_equal(spd.coef_, plain.coef_)


def test_a_ceiling_spares_large_weights(data):
    spared = RSRank(0.3, ceiling=0.01, learning_rate="constant", eta0=0.01, truncate_every=50).fit(
        data
    )
    pulled = RSRank(0.3, learning_rate="constant", eta0=0.01, truncate_every=50).fit(data)
    assert np.abs(spared.coef_).max() > 1.5 * np.abs(pulled.coef_).max()


def test_validation_keeps_the_best_pass(data, held_out):
    ranker = SPD(n_steps=50, epochs=40, patience=5, average=False, alpha=1e-4, measure="map")
    ranker.fit(data, validation=held_out)
    curve = [entry["map"] for entry in ranker.history_]
    assert ranker.best_epoch_ == int(np.argmax(curve)) + 1
    assert len(curve) == min(40, ranker.best_epoch_ + 5)
    assert ranker.history_[0]["documents"] == 100


def test_the_seed_is_what_changes_a_model(data):
    first, again = SPD(n_steps=500).fit(data), SPD(n_steps=500).fit(data)
    other = SPD(n_steps=500, random_state=1).fit(data)
    assert np.array_equal(first.coef_, again.coef_)
    assert not np.allclose(first.coef_, other.coef_)


def test_the_cost_is_the_pairs_not_the_documents():
    """The model of a long list of documents equals that of its few informative ones."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(50, 4)), rng.integers(0, 2, 50)
    lone = rng.normal(size=(5000, 4))
    qid = np.concatenate([np.zeros(50), np.arange(1, 5001)])
    more = SPD().fit(np.vstack([X, lone]), np.append(y, np.ones(5000)), qid)
    assert np.allclose(more.coef_, SPD().fit(X, y, np.zeros(50)).coef_, rtol=1e-9)


def test_new_features_can_appear(data):
    ranker = SPD(n_steps=500).partial_fit(data)
    wide = RankingData(np.hstack([data.X, data.y[:, None]]), data.y, data.qid)
    with pytest.raises(InputError, match="20 features"):
        ranker.partial_fit(wide)
    ranker.grow(21).partial_fit(wide)
    assert ranker.coef_[20] > 0


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (SPD(loss="hinges"), "loss='hinges' is not known"),
        (SPD(sampling="documents"), "sampling='documents'"),
        (SPD(alpha=-1), "alpha=-1 must be"),
        (SPD(l1_ratio=2), "l1_ratio=2 must be"),
        (SPD(l1_ratio=0.5, average=True), "average=True"),
        (SPD(alpha=0, learning_rate="pegasos"), "pegasos"),
        (SPD(learning_rate="fast"), "learning_rate='fast'"),
        (SPD(eta0=0), "eta0=0"),
        (SPD(n_steps=0), "n_steps=0"),
        (SPD(l1_ratio=1.0, truncate_every=0), "truncate_every=0"),
        (RSRank(ceiling=-1), "ceiling=-1"),
        (RSRank(importance="map"), "importance='map'"),
        (LCRA(mu=-1), "mu=-1"),
        (LCRA(n_labeled=0), "n_labeled=0"),
        (LCRA(views=0), "views=0"),
        (LCRA(views=[["a"], ["b"]]), "'a'"),
        (LCRA(views=[[0], [99]]), "feature 99"),
        (LCRA(alpha=[1.0, 2.0]), "alpha="),
        (LCRA(eta0=0), "eta0=0"),
    ],
    ids=str,
)
def test_senseless_parameters(ranker, message, data):
    with pytest.raises(InputError, match=message):
        ranker.fit(data)


def test_sparse_documents_cost_their_non_zeros(data):
    """A wide sparse matrix gives the model of its dense form; empty features stay at zero."""
    wide = np.zeros((len(data), 300))
    wide[:, ::15] = np.where(np.abs(data.X) > 0.5, data.X, 0.0)
    dense = SPD(n_steps=2000).fit(wide, data.y, data.qid)
    sparse = SPD(n_steps=2000).fit(csr_array(wide), data.y, data.qid)
    assert np.allclose(dense.coef_, sparse.coef_, rtol=1e-9)
    assert np.count_nonzero(sparse.coef_) <= 20


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"learning_rate": "pegasos", "eta0": 1.0}, "eta0"),
        ({"truncate_every": 10}, "truncate_every"),
    ],
)
def test_parameters_without_effect_are_refused_by_name(parameters, name):
    with pytest.raises(InputError, match=f"{name} has no effect"):
        SPD(**parameters).fit([[1.0], [0.0]], [1, 0])
