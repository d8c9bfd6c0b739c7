"""Stability: against loops over pairs of selections, and on data where the answer is known."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from leanrank.data import RankingData, make_ranking
from leanrank.errors import DataWarning, InputError
from leanrank.rankers import (
    RANKERS,
    DominationRanker,
    GreedyRankRLS,
    RankBoost,
    RankRLS,
    get_ranker,
)
from leanrank.selection import StabilityResult, stability, subsampling
from tests.selection.test_cross_validation import QUICK


@pytest.fixture(scope="module")
def data():
    return make_ranking(
        n_queries=40, docs_per_query=12, n_features=10, n_informative=3, random_state=0
    )


def made(weights, n_features=None, features=None):
    weights = np.array(weights, float)
    features = np.arange(weights.shape[1]) if features is None else np.array(features, int)
    return StabilityResult(n_features or weights.shape[1], features, weights, [], 0.5)


def test_figures_against_loops():
    rng = np.random.default_rng(0)
    weights = rng.normal(size=(7, 5)) * (rng.random((7, 5)) < [0.9, 0.7, 0.5, 0.5, 0.3])
    found = made(weights, 8, [0, 2, 3, 5, 6])
    supports = [{j for j in range(5) if row[j]} for row in weights]
    # Nogueira's definition: unbiased variances of the selections over their chance level
    chosen = np.zeros((7, 8))
    chosen[:, [0, 2, 3, 5, 6]] = weights != 0
    share = chosen.sum(axis=1).mean() / 8
    expected = 1 - chosen.var(axis=0, ddof=1).mean() / (share * (1 - share))
    assert found.stability_index == pytest.approx(expected)
    assert found.frequencies == pytest.approx(chosen.mean(axis=0))
    assert found.sizes.tolist() == [len(s) for s in supports]
    assert found.frequencies[[1, 4, 7]].tolist() == [0, 0, 0]


def test_the_ends_of_the_scale():
    same = made([[1.0, 0, 2]] * 4, 10, [1, 2, 3])
    assert same.stability_index == 1
    rng = np.random.default_rng(0)
    by_chance = made(rng.permuted(np.tile([1.0] * 5 + [0] * 15, (200, 1)), axis=1))
    assert by_chance.stability_index == pytest.approx(0, abs=0.01)
    empty = made(np.zeros((3, 0)), 5, [])
    assert np.isnan(empty.stability_index)
    assert np.isnan(made(np.ones((3, 2))).stability_index)


@pytest.mark.parametrize("name", sorted(RANKERS))
def test_every_ranker(name, data):
    ranker = get_ranker(name)(**QUICK.get(name, {}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = stability(ranker, data, n_subsamples=3, random_state=1)
        threads = stability(ranker, data, n_subsamples=3, random_state=1, n_jobs=3)
    assert np.array_equal(found.features, threads.features)
    assert np.array_equal(found.weights, threads.weights)
    assert found.groups == threads.groups
    assert found.frequencies.shape == (10,)
    assert found.frequencies.max() == 1


def test_weights_are_those_of_the_subsamples(data):
    """The draws are those of one generator; queries without information are left out."""
    flat = np.flatnonzero(data.informative)[:4]
    y = data.y.copy()
    y[np.isin(data.qid, data.query_ids[flat])] = 0
    partly = data.replace(y=y)
    ranker = DominationRanker(0.05)
    found = stability(ranker, partly, n_subsamples=4, share=0.3, random_state=3)
    rng = np.random.default_rng(3)
    usable = np.flatnonzero(partly.informative)
    assert not set(usable) & set(flat)
    for row in found.weights:
        drawn = np.sort(rng.choice(usable, round(0.3 * len(usable)), replace=False))
        coef = clone(ranker).fit(partly.queries[drawn]).coef_
        assert np.array_equal(row, coef[found.features])
    arrays = stability(
        ranker, partly.X, partly.y, partly.qid, n_subsamples=4, share=0.3, random_state=3
    )
    assert np.array_equal(arrays.weights, found.weights)
    thin = partly.replace(X=sparse.csr_array(partly.X))
    loose = stability(ranker, thin, n_subsamples=4, share=0.3, random_state=3)
    assert loose.weights == pytest.approx(found.weights, abs=1e-4)


def test_informative_features_stay_and_twins_take_turns():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(150), 15)
    signal, other = rng.normal(size=(2, len(qid)))
    twins = signal[:, None] + 0.12 * rng.normal(size=(len(qid), 3))
    noise = rng.normal(size=(len(qid), 10))
    X = np.column_stack([twins * [1, -1, 1], other, noise])
    y = np.digitize(signal - 0.7 * other + rng.normal(size=len(qid)), [0.5, 1.5])
    names = ["twin a", "twin b", "twin c", "other", *(f"noise {k}" for k in range(10))]
    named = RankingData(X, y, qid, feature_names=names)
    ranker = GreedyRankRLS(n_features_to_select=2)
    found = stability(ranker, named, n_subsamples=30, share=0.3)
    assert found.frequencies[3] == 1
    assert found.frequencies[:3].max() < 1
    assert np.all(found.frequencies[4:] < 0.2)
    group = next(g for g in found.groups if len(g.features) > 1)
    assert set(group.features) == {0, 1, 2}
    assert group.frequency == 1
    assert group.at_once == pytest.approx(1)
    assert 0.9 <= group.correlation < 1
    assert found.groups[0].frequency >= found.groups[-1].frequency
    text = repr(found)
    assert "any of" in text
    assert "twin b" in text
    apart = stability(ranker, named, n_subsamples=30, share=0.3, correlation=1.0)
    assert all(len(g.features) == 1 for g in apart.groups)


def test_only_the_most_frequent_are_compared(data, monkeypatch):
    monkeypatch.setattr(subsampling, "MOST_COMPARED", 3)
    found = stability(RankRLS(), data, n_subsamples=2, correlation=1e-9)
    assert sorted(f for g in found.groups for f in g.features) == list(range(10))
    assert max(len(g.features) for g in found.groups) <= 3


def test_empty_models_and_boosted_ones(data):
    with pytest.warns(DataWarning, match="without features"):
        found = stability(DominationRanker(alpha=100.0), data, n_subsamples=3)
    assert found.groups == []
    assert found.sizes.tolist() == [0, 0, 0]
    assert found.frequencies.tolist() == [0.0] * 10
    assert "0.0 of 10 features" in repr(found)
    boosted = stability(RankBoost(n_rounds=4), data, n_subsamples=3)
    assert np.count_nonzero(boosted.weights < 0) > 0  # features whose curve falls
    assert 1 <= boosted.sizes.max() <= 4


def test_wrong_parameters_are_refused(data):
    for wrong in ({"n_subsamples": 1}, {"share": 0}, {"correlation": 2}, {"random_state": -1}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            stability(RankRLS(), data, **wrong)
    with pytest.raises(InputError, match="leaves none out"):
        stability(RankRLS(), data, share=1.0)
    with pytest.raises(InputError, match="0 queries with information"):
        stability(RankRLS(), data.replace(y=np.zeros(len(data))))
