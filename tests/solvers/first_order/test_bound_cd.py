"""Bound coordinate descent: the printed algorithm step by step, descent, and Newton's optimum."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.solvers.first_order.bound_cd import BoundDescent
from leanrank.solvers.newton.solver import Newton
from tests.solvers.reference_domination import (
    Reference,
    gradient,
    make_problem,
    random_features,
    random_labels,
)


def printed_algorithm(X, good, lam, n_sweeps, after):
    """Fig. 1.1 with Z = Σ_{j∈D} e^ρ_j at the start and Lemmas 1 and 2, in plain Python.

    Calls ``after(r, w)`` when coordinate r was updated.
    """
    rows, n = len(X), len(X[0])
    D = [j for j in range(rows) if not good[j]]
    m = rows - len(D)
    w, rho = [0.0] * n, [0.0] * rows
    Z = sum(math.exp(rho[j]) for j in D)
    B = [max(X[j][r] ** 2 for j in range(rows)) for r in range(n)]
    for _ in range(n_sweeps):
        for r in range(n):
            v = mu = 0.0
            for j in D:
                mu += math.exp(rho[j]) * X[j][r]
            for i in range(rows):
                if good[i]:
                    v += (Z * X[i][r] - mu) / (Z + math.exp(rho[i]))
            g, beta = -v, m * B[r]
            if lam == 0:
                delta = v / beta
            elif abs(g - beta * w[r]) <= lam:
                delta = -w[r]
            elif beta * w[r] - g > 0:
                delta = -(g + lam) / beta
            else:
                delta = (-g + lam) / beta
            w[r] += delta
            for j in D:
                Z -= math.exp(rho[j])
                rho[j] += delta * X[j][r]
                Z += math.exp(rho[j])
            for i in range(rows):
                if good[i]:
                    rho[i] += delta * X[i][r]
            after(r, list(w))


@pytest.mark.parametrize("lam", [0.0, 0.1, 0.4])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_the_printed_algorithm_coordinate_by_coordinate(form, lam):
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(9, 4)), 2)
    X *= [1, -1, 1, -1]  # the largest square of a column may be that of its least value
    X[rng.random(X.shape) < 0.2] = 0.0
    y = np.array([0.0, 1, 0, 1, 0, 0, 1, 0, 0])
    labels = Labels(y=y, query_ptr=np.array([0, 9]), normalize="none")
    trace = []
    printed_algorithm(X.tolist(), y > 0, lam, 6, lambda r, w: trace.append((r, w)))
    problem = make_problem(csr_array(X) if form == "sparse" else X, labels)
    w = np.zeros(4)
    for r, expected in trace:
        w[r] = one_coordinate(X, problem, ElasticNet.build(lam, 1.0, 4), w, r)
        np.testing.assert_allclose(w, expected, rtol=1e-12, atol=1e-14)
    # and whole sweeps, as the solver runs them
    for sweeps in (1, 2, 6):
        solution = BoundDescent(bound="paper", tol=1e-300, max_iter=sweeps).solve(
            problem, ElasticNet.build(lam, 1.0, 4)
        )
        assert solution.n_iter == sweeps
        np.testing.assert_allclose(solution.w, trace[4 * sweeps - 1][1], rtol=1e-12, atol=1e-14)


def one_coordinate(X, problem, penalty, w, r):
    """Let the solver sweep over one coordinate: the columns turned round so that it comes first."""
    order = [r, *(j for j in range(len(w)) if j != r)]
    turned = make_problem(
        np.ascontiguousarray(X[:, order]),
        Labels(
            y=problem.plan.cell.astype(float),
            query_ptr=problem.plan.query_ptr,
            normalize="none",
        ),
    )
    return BoundDescent(bound="paper", tol=1e-300, max_iter=1).solve(turned, penalty, w[order]).w[0]


@pytest.mark.parametrize("bound", ["range", "paper"])
@pytest.mark.parametrize("margin", ["none", "offset"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_it_descends_and_meets_newton(form, margin, bound):
    rng = np.random.default_rng([len(form), len(margin), len(bound)])
    weights = bool(rng.integers(2))
    labels = random_labels(rng, n_queries=12, weights=weights, normalize="none")
    if margin == "offset":
        labels = Labels(**{**labels.__dict__, "offset": rng.normal(size=len(labels.y))})
    X = random_features(rng, len(labels.y), 5, form)
    problem = make_problem(X, labels)
    c = gradient(problem, np.zeros(5))
    for ratio in (1.0, 0.5, 0.0):
        penalty = ElasticNet.build(0.2 * np.abs(c).max(), ratio, 5)
        newton = Newton(tol=1e-7).solve(problem, penalty)
        entries = []
        solution = BoundDescent(
            bound=bound, tol=1e-7, max_iter=20_000, callback=entries.append
        ).solve(problem, penalty)
        assert solution.converged
        assert solution.history == entries
        assert solution.objective == pytest.approx(newton.objective, rel=1e-7)
        scale = max(np.abs(newton.w).max(), 1e-3)
        np.testing.assert_allclose(solution.w, newton.w, atol=5e-3 * scale)
        reference = Reference(X, labels)
        assert solution.objective == pytest.approx(
            reference.objective(solution.w, penalty), rel=1e-11
        )
        assert penalty.residual(solution.w, reference.loss(solution.w)[1]).max() <= (
            2e-3 * np.abs(c).max()
        )
        w = rng.normal(size=5)
        before = reference.objective(w, penalty)
        for _ in range(15):  # sweep by sweep, from anywhere
            w = BoundDescent(bound=bound, tol=1e-300, max_iter=1).solve(problem, penalty, w).w
            after = reference.objective(w, penalty)
            assert after <= before * (1 + 1e-14)
            before = after


def test_the_range_bound_is_never_above_the_printed_one_and_needs_fewer_sweeps():
    rng = np.random.default_rng(0)
    labels = random_labels(rng, n_queries=15)
    X = rng.random((len(labels.y), 4))
    problem = make_problem(X, labels)
    penalty = ElasticNet.build(0.01, 1.0, 4)
    sweeps = [
        BoundDescent(bound=bound, tol=1e-4, max_iter=100_000).solve(problem, penalty).n_iter
        for bound in ("range", "paper")
    ]
    assert 2 * sweeps[0] < sweeps[1]


def test_the_order_of_stored_entries_and_single_precision_do_not_matter():
    rng = np.random.default_rng(3)
    labels = random_labels(rng, n_queries=10)
    X = random_features(rng, len(labels.y), 5, "sparse").astype(np.float32)
    penalty = ElasticNet.build(0.02, 1.0, 5)
    answers = [
        BoundDescent(tol=1e-6, max_iter=20_000).solve(make_problem(form, labels), penalty)
        for form in (X, X.toarray(), X.astype(np.float64))
    ]
    for other in answers[1:]:
        np.testing.assert_allclose(other.w, answers[0].w, atol=1e-9)


def test_signs_and_factors_are_obeyed_and_optimal():
    rng = np.random.default_rng(5)
    labels = random_labels(rng, n_queries=15)
    X = random_features(rng, len(labels.y), 6)
    problem = make_problem(X, labels)
    for signs, ratio in itertools.product(([0, 0, 1, 1, -1, -1], [1] * 6), (1.0, 0.5)):
        penalty = ElasticNet.build(0.02, ratio, 6, [0, np.inf, 1, 2, 1, 0.5], signs)
        solution = BoundDescent(tol=1e-7, max_iter=20_000).solve(problem, penalty)
        newton = Newton(tol=1e-7).solve(problem, penalty)
        assert solution.converged
        assert solution.w[1] == 0
        assert np.all(solution.w * np.array(signs) >= 0)
        np.testing.assert_allclose(solution.w, newton.w, atol=2e-3)
        assert solution.objective == pytest.approx(newton.objective, rel=1e-7)


def test_a_dual_value_does_not_count_before_the_free_features_are_optimal():
    rng = np.random.default_rng(3)
    labels = random_labels(rng, n_queries=20)
    X = random_features(rng, len(labels.y), 6)
    problem, reference = make_problem(X, labels), Reference(X, labels)
    factors = np.array([0.0, 0, 1, 1, 1, 1])
    free = ElasticNet.build(1.0, 1.0, 6, factors).only_free()
    c = reference.loss(reference.optimum(free)[0])[1]
    penalty = ElasticNet.build(0.99 * np.abs(c[2:]).max(), 1.0, 6, factors)
    solution = BoundDescent(tol=1e-9, max_iter=20_000).solve(problem, penalty)
    assert solution.converged
    assert np.any(solution.w[2:] != 0)
    assert solution.objective <= reference.optimum(penalty)[1] * (1 + 1e-8)


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_unpenalised_feature_held_at_zero_by_its_sign_is_no_obstacle(sign):
    rng = np.random.default_rng(1)
    labels = random_labels(rng, n_queries=20)
    X = random_features(rng, len(labels.y), 3)
    X[:, 0] = -sign * labels.y + 0.5 * X[:, 0]
    penalty = ElasticNet.build(0.1, 1.0, 3, [0.0, 1.0, 1.0], [sign, 0, 0])
    solution = BoundDescent(tol=1e-6, max_iter=5_000).solve(make_problem(X, labels), penalty)
    assert solution.w[0] == 0
    assert solution.converged
    assert solution.free_residual == 0


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_a_start_with_forbidden_or_useless_weights_is_put_right(form):
    rng = np.random.default_rng(6)
    labels = random_labels(rng, n_queries=12)
    X = random_features(rng, len(labels.y), 5)
    X[:, 3] = np.repeat(rng.normal(size=12), np.diff(labels.query_ptr))  # constant in a query
    X[:, 4] = 0.0
    problem = make_problem(csr_array(X) if form == "sparse" else X, labels)
    penalty = ElasticNet.build(0.01, 1.0, 5, [1, np.inf, 1, 1, 1], [1, 0, 0, 0, 0])
    start = np.array([-3.0, 2.0, 1.0, 4.0, 5.0])
    kept = start.copy()
    solution = BoundDescent(tol=1e-6, max_iter=5_000).solve(problem, penalty, start)
    cold = BoundDescent(tol=1e-6, max_iter=5_000).solve(problem, penalty)
    assert np.array_equal(start, kept)
    assert solution.converged
    assert np.isfinite(solution.history[0]["objective"])
    assert not solution.w[[1, 3, 4]].any()
    np.testing.assert_allclose(solution.w, cold.w, atol=2e-3)


@pytest.mark.parametrize("size", [1e6, 1e-6])
def test_the_scale_of_the_features_does_not_matter(size):
    rng = np.random.default_rng(7)
    labels = random_labels(rng, n_queries=12)
    X = random_features(rng, len(labels.y), 4)
    plain = BoundDescent(tol=1e-6, max_iter=5_000).solve(
        make_problem(X, labels), ElasticNet.build(0.02, 1.0, 4)
    )
    scaled = BoundDescent(tol=1e-6, max_iter=5_000).solve(
        make_problem(X * size, labels), ElasticNet.build(0.02 * size, 1.0, 4)
    )
    assert scaled.n_iter == plain.n_iter
    np.testing.assert_allclose(scaled.w * size, plain.w, rtol=1e-6, atol=1e-12)


def test_offsets_of_a_million_do_not_overflow():
    rng = np.random.default_rng(8)
    labels = random_labels(rng, n_queries=6)
    offset = rng.choice([-1e6, 0.0, 1e6], len(labels.y))
    labels = Labels(**{**labels.__dict__, "offset": offset})
    X = random_features(rng, len(labels.y), 3)
    penalty = ElasticNet.build(1e-3, 1.0, 3)
    solution = BoundDescent(max_iter=30).solve(make_problem(X, labels), penalty)
    assert np.isfinite(solution.w).all()
    assert solution.objective == pytest.approx(
        Reference(X, labels).objective(solution.w, penalty), rel=1e-9
    )
    assert np.all(np.diff([e["objective"] for e in solution.history]) <= 0)


def test_an_unknown_bound_is_refused():
    rng = np.random.default_rng(9)
    labels = random_labels(rng)
    X = random_features(rng, len(labels.y), 2)
    with pytest.raises(InputError, match=r"bound='tight' is not known: choose from paper, range"):
        BoundDescent(bound="tight").solve(make_problem(X, labels), ElasticNet.build(0.1, 1.0, 2))
