from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics.pairwise import pairwise_kernels

from leanrank import RankingData, make_ranking
from leanrank.errors import InputError, ModelError
from leanrank.rankers import KernelRankRLS, RankRLS

KERNELS = {
    "linear": {},
    "poly": {"gamma": 0.1, "degree": 2, "coef0": 0.5},
    "rbf": {"gamma": 0.05},
}


@pytest.fixture(scope="module")
def data():
    data = make_ranking(n_queries=15, n_features=5, random_state=1)
    shuffled = np.random.default_rng(0).permutation(len(data))
    return data.X[shuffled], data.y[shuffled], data.qid[shuffled]


@pytest.mark.parametrize("normalize", ["none", "query", "term"])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_linear_kernel_is_rankrls(data, normalize, sparse):
    X, y, qid = data
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    given = csr_array(X) if sparse else X
    linear = RankRLS(0.3, normalize=normalize).fit(X, y, qid, sample_weight=weight)
    dual = KernelRankRLS(0.3, kernel="linear", normalize=normalize)
    dual.fit(given, y, qid, sample_weight=weight)
    assert np.allclose(dual.predict(given), linear.predict(X))
    alphas = [1e-6, 0.1, 10.0]
    assert np.allclose(
        dual.leave_query_out(given, y, qid, alphas=alphas, sample_weight=weight),
        linear.leave_query_out(X, y, qid, alphas=alphas, sample_weight=weight),
        atol=1e-7,
    )


@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.parametrize("alpha", [1e-4, 0.1, 10.0])
def test_leave_query_out_is_training_without_the_query(data, name, alpha):
    X, y, qid = data
    ranker = KernelRankRLS(alpha, kernel=name, normalize="none", **KERNELS[name])
    scores = ranker.leave_query_out(X, y, qid)[0]
    for q in np.unique(qid):
        mine = qid == q
        again = ranker.fit(X[~mine], y[~mine], qid[~mine]).predict(X[mine])
        assert np.allclose(scores[mine], again, rtol=1e-6, atol=1e-7 * np.abs(again).max())


@pytest.mark.parametrize("name", KERNELS)
def test_a_precomputed_kernel_is_the_same(data, name):
    X, y, qid = data
    options = KERNELS[name]
    plain = KernelRankRLS(0.1, kernel=name, **options).fit(X, y, qid)
    kernel = pairwise_kernels(X, metric=name, **options)
    ranker = KernelRankRLS(0.1, kernel="precomputed").fit(kernel, y, qid)
    new = np.random.default_rng(2).normal(size=(7, 5))
    between = pairwise_kernels(new, X, metric=name, **options)
    assert np.allclose(ranker.predict(between), plain.predict(new))
    assert np.allclose(ranker.leave_query_out(kernel, y, qid), plain.leave_query_out(X, y, qid))
    assert ranker.score(kernel, y, qid) == pytest.approx(plain.score(X, y, qid))


def test_the_optimum_of_the_objective(data):
    X, y, qid = data
    ranker = KernelRankRLS(0.1, kernel="rbf", gamma=0.05, normalize="none").fit(X, y, qid)
    kernel = pairwise_kernels(X, metric="rbf", gamma=0.05)
    order = RankingData(X, y, qid).order
    beta = np.empty(len(y))
    beta[order] = ranker.dual_coef_

    def objective(coefficients):
        scores = kernel @ coefficients
        away = scores - y
        away = away - np.array([away[qid == q].mean() for q in qid])
        return 0.5 * away @ away + 0.05 * coefficients @ scores

    best = objective(beta)
    rng = np.random.default_rng(3)
    assert all(objective(beta + 1e-3 * rng.normal(size=len(y))) > best for _ in range(20))


def test_ranking_data_and_pickles(data):
    X, y, qid = data
    held = RankingData(X, y, qid)
    ranker = KernelRankRLS(0.1, gamma=0.05).fit(held)
    assert np.allclose(ranker.predict(held), ranker.predict(X)[held.order])
    assert np.array_equal(pickle.loads(pickle.dumps(ranker)).predict(X), ranker.predict(X))
    assert np.array_equal(ranker.rank(held), ranker.rank(X, qid)[held.order])
    assert ranker.leave_query_out(held).shape == (1, len(held))


def test_what_is_refused(data):
    X, y, qid = data
    for options, words in (
        ({"kernel": "cosine"}, "kernel='cosine'"),
        ({"alpha": 0}, "alpha=0"),
        ({"gamma": -1.0}, "gamma=-1.0"),
        ({"kernel": "poly", "degree": 0}, "degree=0"),
    ):
        with pytest.raises(InputError, match=words):
            KernelRankRLS(**options).fit(X, y, qid)
    with pytest.raises(InputError, match="must be square"):
        KernelRankRLS(kernel="precomputed").fit(X, y, qid)
    fitted = KernelRankRLS().fit(X, y, qid)
    with pytest.raises(ModelError, match="not linear"):
        fitted.to_model()
    assert not hasattr(fitted, "sparsity_")
    with pytest.raises(InputError, match="expecting 5 features"):
        fitted.predict(RankingData(X[:, :3], y, qid))
    with pytest.raises(InputError, match="too large"):
        KernelRankRLS().fit(np.ones((8_193, 1)), np.arange(8_193), np.zeros(8_193))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_entries_that_are_stored_twice_count_as_their_sum(data, kernel):
    X, y, qid = data
    ranker = KernelRankRLS(0.3, kernel=kernel).fit(csr_array(X), y, qid)
    half = csr_array(X / 2)
    twice = csr_array(
        (np.repeat(half.data, 2), np.repeat(half.indices, 2), 2 * half.indptr), shape=X.shape
    )
    np.testing.assert_allclose(ranker.predict(twice), ranker.predict(X), rtol=1e-9)
    assert not twice.has_canonical_format


def test_parameters_of_other_kernels_are_refused(data):
    with pytest.raises(InputError, match="degree has no effect"):
        KernelRankRLS(kernel="rbf", degree=2).fit(*data)


def test_labels_that_vanish_score_zero_and_scores_that_overflow_are_refused():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), rng.integers(0, 3, 12).astype(float)
    vanished = KernelRankRLS(alpha=1e150).fit(X, 1e-300 * y)
    assert vanished.predict(X).tolist() == [0.0] * 12
    large = KernelRankRLS(kernel="poly", degree=3).fit(X, y)
    with pytest.raises(InputError, match="the score of row 1 is too large for a number"):
        large.predict([[1.0, 1.0, 1.0], [1e150, 1.0, 1.0]])
