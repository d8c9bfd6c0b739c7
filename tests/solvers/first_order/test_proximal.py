"""Proximal gradient against Newton, whatever K it is given."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.losses.domination import DominationLoss
from leanrank.losses.hinge import SquaredHingeLoss
from leanrank.penalties.concave import ConcavePenalty, MinimaxConcave
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.solvers.first_order.proximal import Proximal
from leanrank.solvers.newton.solver import Newton
from tests.solvers.newton.test_solver import replaced
from tests.solvers.reference_domination import random_features, random_labels
from tests.solvers.reference_pairs import Pairs, problem_of

LOSSES = {"pairs": SquaredHingeLoss, "lists": DominationLoss}


def make(seed, form="dense", n_features=6, loss="pairs", offset=False, n_jobs=None, **options):
    rng = np.random.default_rng(seed)
    labels = random_labels(rng, n_queries=15, **options)
    if offset:
        labels = replaced(labels, offset=rng.normal(size=len(labels.y)))
    X = random_features(rng, len(labels.y), n_features, form)
    return X, labels, problem_of(X, labels, LOSSES[loss](), n_jobs)


def strongest(problem):
    zero = problem.scores(np.zeros(problem.n_features))
    return np.abs(problem.design.rmatvec(problem.evaluate(zero)[1])).max()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.0])
def test_the_optimum_is_newtons(loss, form, ratio):
    _, _, problem = make(len(form), form, loss=loss, offset=ratio == 0.5)
    for share in (0.3, 0.03):
        penalty = ElasticNet.build(share * strongest(problem), ratio, 6)
        tol = 1e-5
        best = Newton(tol=1e-10).solve(problem, penalty)
        solution = Proximal(tol=tol).solve(problem, penalty)
        assert solution.converged
        assert solution.gap <= tol
        assert solution.objective <= best.objective * (1 + tol)
        assert solution.objective * (1 - solution.gap) <= best.objective
        np.testing.assert_allclose(solution.w, best.w, atol=10 * np.sqrt(tol) * abs(best.w).max())


def test_the_objective_and_the_conditions_of_its_optimum():
    X, labels, problem = make(4, n_features=10, normalize="term")
    pairs = Pairs(X, labels)
    penalty = ElasticNet.build(0.05 * strongest(problem), 1.0, 10)
    solution = Proximal(tol=1e-9).solve(problem, penalty)
    value, c = pairs.loss(solution.w, 2)
    assert solution.objective == pytest.approx(value + penalty.value(solution.w), rel=1e-12)
    assert penalty.residual(solution.w, c).max() <= 1e-4 * penalty.above[0]


@pytest.mark.parametrize("lipschitz", [1e-12, 1e-3, 1.0, 1e3])
def test_any_guess_of_k_ends_at_the_optimum(lipschitz):
    _, _, problem = make(5)
    penalty = ElasticNet.build(0.2 * strongest(problem), 1.0, 6)
    solution = Proximal(lipschitz=lipschitz, tol=1e-6, max_iter=100_000).solve(problem, penalty)
    assert solution.converged
    assert solution.objective == pytest.approx(Newton().solve(problem, penalty).objective, rel=2e-6)
    assert solution.history[0]["lipschitz"] == lipschitz
    if lipschitz < 1e-2:
        assert solution.history[-1]["lipschitz"] > lipschitz


def test_the_published_iteration_is_what_is_published():
    X, labels, problem = make(6)
    pairs = Pairs(X, labels)
    alpha, k = 0.1 * strongest(problem), 50.0
    w = np.zeros(6)
    for _ in range(10):
        moved = w - pairs.loss(w, 2)[1] / k
        w = np.sign(moved) * np.maximum(np.abs(moved) - alpha / k, 0.0)
    penalty = ElasticNet.build(alpha, 1.0, 6)
    solution = Proximal(lipschitz=k, tol=1e-12, max_iter=10).solve(problem, penalty)
    assert solution.n_iter == 10
    assert not solution.converged
    np.testing.assert_allclose(solution.w, w, rtol=1e-10, atol=1e-14)


def test_the_best_point_is_kept_and_no_bound_lies():
    _, _, problem = make(7, n_features=20)
    penalty = ElasticNet.build(0.01 * strongest(problem), 1.0, 20)
    best = Newton(tol=1e-10).solve(problem, penalty).objective
    told = []
    solution = Proximal(tol=1e-8, max_iter=500, callback=told.append).solve(problem, penalty)
    assert told == solution.history
    values = [e["objective"] for e in told]
    assert all(b <= a for a, b in itertools.pairwise(values))
    assert all(e["objective"] * (1 - e["gap"]) <= best for e in told)
    assert solution.objective == values[-1]


def test_signs_factors_and_a_start():
    _, _, problem = make(9, n_features=8)
    factors = np.array([0, np.inf, 1, 1, 2, 0.5, 1, 1])
    signs = np.array([0, 0, 1, -1, 1, -1, 0, 0])
    penalty = ElasticNet.build(0.1 * strongest(problem), 1.0, 8, factors, signs)
    best = Newton(tol=1e-9).solve(problem, penalty)
    start = np.full(8, 3.0)
    for w in (None, start):
        solution = Proximal(tol=1e-6, max_iter=50_000).solve(problem, penalty, w)
        assert solution.converged
        assert solution.w[1] == 0
        assert np.all(solution.w[signs == 1] >= 0)
        assert np.all(solution.w[signs == -1] <= 0)
        assert solution.objective == pytest.approx(best.objective, rel=2e-6)
    assert (start == 3.0).all()


def test_degenerate_problems():
    X, labels, problem = make(10)
    empty = ElasticNet.build(2 * strongest(problem), 1.0, 6)
    solution = Proximal(tol=1e-9).solve(problem, empty)
    assert solution.converged
    assert solution.n_iter == 0
    flat = problem_of(np.zeros_like(X), labels, SquaredHingeLoss())
    solution = Proximal().solve(flat, ElasticNet.build(0.1, 0.5, 6))
    assert solution.converged
    assert not solution.w.any()
    huge = problem_of(X * 1e8, labels, SquaredHingeLoss())
    penalty = ElasticNet.build(0.1 * strongest(huge), 1.0, 6)
    assert Proximal().solve(huge, penalty).converged


def test_the_last_digits_end_the_search():
    _, _, problem = make(11, n_features=3)
    penalty = ElasticNet.build(0.2 * strongest(problem), 0.5, 3)
    solution = Proximal(tol=1e-300).solve(problem, penalty)
    assert solution.gap <= 1e-13
    assert solution.n_iter < 10_000


def test_a_cycle_through_the_best_point_is_not_an_end():
    labels = Labels(y=np.array([1.0, 0.0]), query_ptr=np.array([0, 2]))
    problem = problem_of(np.array([[2.0], [0.0]]), labels, SquaredHingeLoss())
    solution = Proximal(tol=1e-6).solve(problem, ElasticNet.build(2.0, 1.0, 1))
    assert solution.converged
    assert solution.w[0] == pytest.approx(0.25, rel=1e-3)


def test_random_problems_end_with_finite_weights():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        n, n_features = int(rng.integers(3, 12)), int(rng.integers(1, 5))
        y = rng.integers(0, 3, 2 * n).astype(float)
        labels = Labels(y=y, query_ptr=np.array([0, n, 2 * n]))
        X = rng.normal(size=(2 * n, n_features)) * 10.0 ** rng.integers(-3, 4)
        problem = problem_of(X, labels, SquaredHingeLoss())
        alpha = (0.01, 1e-4 * strongest(problem), 0.3 * strongest(problem))[seed % 3]
        penalty = ElasticNet.build(alpha, 1.0, n_features)
        solution = Proximal(tol=1e-6, max_iter=200).solve(problem, penalty)
        assert np.isfinite(solution.w).all()
        assert solution.n_iter <= 200
        best = Newton(tol=1e-9).solve(problem, penalty)
        assert solution.objective * (1 - solution.gap) <= best.objective * (1 + 1e-12)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_threads_do_not_change_a_bit(form):
    one, two = (
        Proximal().solve(problem, ElasticNet.build(0.02, 1.0, 6))
        for problem in (make(12, form, n_jobs=1)[2], make(12, form, n_jobs=2)[2])
    )
    assert np.array_equal(one.w, two.w)
    assert one.history == two.history


def test_a_penalty_that_it_cannot_use_is_refused_by_name():
    _, _, problem = make(13)
    with pytest.raises(InputError, match=r"proximal.*concave"):
        Proximal().solve(
            problem, ConcavePenalty(ElasticNet.build(0.1, 1.0, 6), MinimaxConcave(3.0))
        )
