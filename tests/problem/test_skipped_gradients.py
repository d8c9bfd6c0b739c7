"""Gradients that skip features against full ones: what they leave out must not matter."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.memory import _Point
from tests.solvers.reference_domination import make_problem, random_labels


def zipf_problem(rng, n_features=400, n_queries=60):
    labels = random_labels(rng, n_queries=n_queries, most=12)
    n = len(labels.y)
    shares = np.minimum(0.6, 3.0 / np.arange(1, n_features + 1))
    X = csr_array(rng.exponential(size=(n, n_features)) * (rng.random((n, n_features)) < shares))
    return X, labels, make_problem(X, labels)


def gradient(problem, u, penalty):
    """Put the problem at scores u; return the score gradient and Xᵀ of it, as Newton asks."""
    problem._point = _Point(u, *problem.evaluate(u))
    return problem.point.g, problem.gradient(penalty.stays_zero)


def random_penalty(rng, n, size):
    kind = rng.integers(4)
    factors = rng.choice([0.0, 0.5, 1.0, 2.0, np.inf], n, p=[0.01, 0.3, 0.3, 0.3, 0.09])
    signs = rng.choice([-1, 0, 1], n)
    return ElasticNet.build(
        size, [1.0, 1.0, 0.5, 0.5][kind], n, factors if kind % 2 else None, signs if kind else None
    )


@pytest.mark.parametrize("seed", range(12))
def test_nothing_that_matters_is_hidden(seed):
    rng = np.random.default_rng(seed)
    X, _, problem = zipf_problem(rng)
    n = X.shape[1]
    u = np.zeros(X.shape[0])
    top = np.abs(X.T @ problem.evaluate(u)[1]).max()
    penalty = random_penalty(rng, n, rng.choice([0.2, 0.5, 0.9]) * top)
    alive = ~penalty.excluded
    skipped = 0
    for move in 10.0 ** np.concatenate([-np.arange(0, 6, 0.5), rng.uniform(-5, 1, 8)]):
        u = u + move * rng.normal(size=len(u))
        g, c = gradient(problem, u, penalty)
        exact = X.T @ g
        bound = ~np.isclose(c, exact, rtol=1e-9, atol=1e-14) & alive
        skipped += np.count_nonzero(bound)
        # a feature that is not exact is within its thresholds, and so is what is told of it
        assert not penalty.excess(exact)[bound].any()
        assert not penalty.excess(c)[bound].any()
        np.testing.assert_allclose(
            penalty.excess(c)[alive], penalty.excess(exact)[alive], atol=1e-13
        )
        assert penalty.dual_scale(np.where(alive, c, 0)) == pytest.approx(
            penalty.dual_scale(np.where(alive, exact, 0)), rel=1e-12
        )
        assert penalty.conjugate(c) == pytest.approx(penalty.conjugate(exact), rel=1e-9, abs=1e-14)
    assert skipped > 0, "every product was computed: the test shows nothing"


def test_the_caller_may_change_what_it_is_given():
    rng = np.random.default_rng(0)
    X, _, problem = zipf_problem(rng)
    penalty = ElasticNet.build(1e-9, 1.0, X.shape[1])
    for _ in range(3):
        g, c = gradient(problem, rng.normal(size=X.shape[0]) * 1e-9, penalty)
        np.testing.assert_allclose(c, X.T @ g, atol=1e-12)
        c[:] = 1e9


def test_a_small_move_reads_few_columns():
    rng = np.random.default_rng(1)
    X, _, problem = zipf_problem(rng)
    n, design = X.shape[1], problem.design
    read = []
    full = design.rmatvec

    def spy(g, features=None):
        read.append(n if features is None else len(features))
        return full(g) if features is None else full(g, features)

    design.rmatvec = spy
    u = np.zeros(X.shape[0])
    g = problem.evaluate(u)[1]
    penalty = ElasticNet.build(0.8 * np.abs(X.T @ g).max(), 1.0, n)
    gradient(problem, u, penalty)
    gradient(problem, u + 1e-4 * rng.normal(size=len(u)), penalty)
    gradient(problem, u + 100 * rng.normal(size=len(u)), penalty)
    assert read[0] == n
    assert read[1] < n / 10
    assert read[2] > read[1]


def test_dense_matrices_get_exact_products():
    rng = np.random.default_rng(3)
    labels = random_labels(rng)
    X = rng.normal(size=(len(labels.y), 5))
    problem = make_problem(X, labels)
    penalty = ElasticNet.build(1e6, 1.0, 5)
    for _ in range(3):
        g, c = gradient(problem, rng.normal(size=len(X)), penalty)
        np.testing.assert_allclose(c, X.T @ g, atol=1e-13)


@pytest.mark.parametrize(
    "mean",
    [
        1e3,
        1e6,
        pytest.param(1e9),
    ],
)
def test_a_feature_with_a_mean_far_above_its_spread_is_not_hidden(mean):
    """The length of a column less its mean must not cancel to nothing."""
    rng = np.random.default_rng(4)
    labels = random_labels(rng, n_queries=30, most=12)
    X = rng.normal(size=(len(labels.y), 6))
    X[:, 5] = labels.y + 0.5 * rng.normal(size=len(X))  # the best feature
    X[:, 5] = (X[:, 5] + mean) - mean  # to the digits that survive
    X[:, 4] = labels.y + 2.0 * rng.normal(size=len(X))
    shifted = X.copy()
    shifted[:, 5] += mean
    problem = make_problem(csr_array(shifted), labels)
    penalty = ElasticNet.build(0.02, 1.0, 6)
    u = np.zeros(len(X))
    for _ in range(5):
        u = u + 0.3 * rng.normal(size=len(u))
        g, c = gradient(problem, u, penalty)
        got, exact = penalty.excess(c), penalty.excess(X.T @ g)
        np.testing.assert_allclose(got, exact, atol=1e-15 * mean)
    assert problem.design.column_norms[5] >= 0.99 * np.linalg.norm(X[:, 5] - X[:, 5].mean())
