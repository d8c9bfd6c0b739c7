"""The cutting plane against Newton, and against scikit-learn on pairs written out."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from sklearn.svm import LinearSVC

from leanrank.errors import InputError
from leanrank.losses.domination import DominationLoss
from leanrank.losses.hinge import HingeLoss, SquaredHingeLoss
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.penalties.groups import GroupPenalty
from leanrank.solvers.first_order.cutting_plane import IDLE_ROUNDS, CuttingPlane
from leanrank.solvers.newton.solver import Newton
from tests.solvers.newton.test_solver import replaced
from tests.solvers.reference_domination import random_features, random_labels
from tests.solvers.reference_pairs import Pairs, problem_of

VARIANTS = {"plain": 1e-3, "fast": 1e-6}


def make(seed, form="dense", n_features=6, offset=False, **options):
    rng = np.random.default_rng(seed)
    labels = random_labels(rng, n_queries=15, **options)
    if offset:
        labels = replaced(labels, offset=rng.normal(size=len(labels.y)))
    return random_features(rng, len(labels.y), n_features, form), labels


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("loss", [SquaredHingeLoss(), DominationLoss()], ids=["pairs", "lists"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("alpha", [1.0, 0.05])
def test_the_optimum_of_a_smooth_loss_is_newtons(variant, loss, form, alpha):
    X, labels = make(len(form), form, offset=alpha == 1.0)
    problem = problem_of(X, labels, loss)
    penalty = ElasticNet.build(alpha, 0.0, 6)
    best = Newton(tol=1e-10).solve(problem, penalty)
    solution = CuttingPlane(tol=VARIANTS[variant], variant=variant).solve(problem, penalty)
    assert solution.converged
    assert solution.gap <= VARIANTS[variant]
    assert solution.objective == pytest.approx(best.objective, rel=VARIANTS[variant])
    for entry in solution.history:
        assert entry["objective"] * (1 - entry["gap"]) <= best.objective * (1 + 1e-10)


@pytest.mark.parametrize("c", [0.01, 1.0, 30.0])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_the_hinge_agrees_with_scikit_learn_on_every_pair(c, form):
    X, labels = make(3, form, normalize="none")
    pairs = Pairs(X, labels)
    penalty = ElasticNet.build(1.0 / c, 0.0, 6)
    problem = problem_of(X, labels, HingeLoss())
    solution = CuttingPlane(tol=1e-8, variant="fast").solve(problem, penalty)
    assert solution.converged
    assert solution.objective == pytest.approx(
        pairs.loss(solution.w, 1)[0] + penalty.value(solution.w), rel=1e-11
    )
    sign = np.where(np.arange(len(pairs.differences)) % 2, 1.0, -1.0)
    peer = LinearSVC(loss="hinge", C=c, fit_intercept=False, tol=1e-10, max_iter=1_000_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer.fit(pairs.differences * sign[:, None], sign)
    w = peer.coef_.ravel()
    theirs = pairs.loss(w, 1)[0] + penalty.value(w)
    assert solution.objective <= theirs * (1 + 1e-7)
    assert solution.objective == pytest.approx(theirs, rel=1e-5)
    np.testing.assert_allclose(solution.w, w, atol=1e-2 * np.abs(w).max())
    plain = CuttingPlane(tol=1e-3).solve(problem, penalty)
    assert plain.converged
    assert plain.objective * (1 - plain.gap) <= theirs
    assert plain.objective == pytest.approx(theirs, rel=1e-3)


@pytest.mark.parametrize("variant", VARIANTS)
def test_bounds_hold_and_planes_come_and_go(variant):
    X, labels = make(4, n_features=12)
    problem = problem_of(X, labels, HingeLoss())
    penalty = ElasticNet.build(1e-3, 0.0, 12)
    best = CuttingPlane(tol=1e-8, variant="fast").solve(problem, penalty).objective
    told = []
    solution = CuttingPlane(tol=1e-5, variant=variant, callback=told.append).solve(problem, penalty)
    assert solution.converged
    assert told == solution.history
    values = [e["objective"] for e in told]
    assert all(b <= a for a, b in itertools.pairwise(values))
    assert all(b["gap"] <= a["gap"] for a, b in itertools.pairwise(told))
    assert all(e["objective"] * (1 - e["gap"]) <= best * (1 + 1e-12) for e in told)
    if variant == "plain":
        assert solution.n_iter > IDLE_ROUNDS
        assert told[-1]["planes"] < solution.n_iter


def test_the_line_search_pays():
    X, labels = make(5, n_features=12)
    problem = problem_of(X, labels, HingeLoss())
    penalty = ElasticNet.build(1e-3, 0.0, 12)
    plain, fast = (
        CuttingPlane(tol=1e-5, variant=v).solve(problem, penalty) for v in ("plain", "fast")
    )
    assert plain.converged
    assert 2 * fast.n_iter < plain.n_iter


@pytest.mark.parametrize("variant", VARIANTS)
def test_factors_a_start_and_excluded_features(variant):
    X, labels = make(6, n_features=5)
    factors = [1.0, 2.0, np.inf, 0.5, 1.0]
    problem = problem_of(X, labels, SquaredHingeLoss())
    penalty = ElasticNet.build(0.1, 0.0, 5, factors)
    best = Newton(tol=1e-9).solve(problem, penalty)
    start = np.full(5, 2.0)
    for w in (None, start):
        solution = CuttingPlane(tol=1e-5, variant=variant).solve(problem, penalty, w)
        assert solution.converged
        assert solution.w[2] == 0
        np.testing.assert_allclose(solution.w, best.w, atol=2e-2 * np.abs(best.w).max())
    assert (start == 2.0).all()


@pytest.mark.parametrize("variant", VARIANTS)
def test_degenerate_problems(variant):
    X, labels = make(7, n_features=3)
    penalty = ElasticNet.build(0.1, 0.0, 3)
    flat = CuttingPlane(variant=variant).solve(
        problem_of(np.zeros_like(X), labels, HingeLoss()), penalty
    )
    assert flat.converged
    assert not flat.w.any()
    separable = X.copy()
    separable[:, 0] = 10 * labels.y
    problem = problem_of(separable, labels, HingeLoss())
    assert CuttingPlane(variant=variant).solve(problem, penalty).converged
    single = CuttingPlane(variant=variant).solve(
        problem_of(X.astype(np.float32), labels, HingeLoss()), penalty
    )
    assert single.converged
    assert single.w.dtype == np.float64
    short = CuttingPlane(max_iter=1).solve(problem, ElasticNet.build(1e-6, 0.0, 3))
    assert short.n_iter == 1


@pytest.mark.parametrize("variant", VARIANTS)
def test_threads_do_not_change_a_bit(variant):
    X, labels = make(8)
    one, two = (
        CuttingPlane(variant=variant).solve(
            problem_of(X, labels, HingeLoss(), jobs), ElasticNet.build(0.01, 0.0, 6)
        )
        for jobs in (1, 2)
    )
    assert np.array_equal(one.w, two.w)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("scale", [1e68, 1e140, 1e160])
def test_planes_that_overflow_end_the_search_with_a_finite_point(variant, scale):
    X, labels = make(11)
    X[:, 2] *= scale
    problem = problem_of(X, labels, HingeLoss())
    penalty = ElasticNet.build(1.0, 0.0, 6)
    with np.errstate(all="ignore"):
        solution = CuttingPlane(variant=variant).solve(problem, penalty)
    assert solution.n_iter <= 100
    assert np.isfinite(solution.w).all()
    assert np.isfinite(solution.objective)
    assert solution.gap > 1e-3
    assert not solution.converged
    start = problem.at(np.zeros(6))
    assert solution.objective <= start


def test_what_it_cannot_do_is_refused():
    X, labels = make(9)
    problem = problem_of(X, labels, HingeLoss())
    for penalty in (
        ElasticNet.build(0.1, 1.0, 6),
        ElasticNet.build(0.1, 0.5, 6),
        ElasticNet.build(0.1, 0.0, 6, None, 1),
    ):
        with pytest.raises(InputError, match="l1_ratio=0"):
            CuttingPlane().solve(problem, penalty)
    for penalty in (ElasticNet.build(0.0, 0.0, 6), ElasticNet.build(1, 0.0, 6, [0, 1, 1, 1, 1, 1])):
        with pytest.raises(InputError, match="above 0"):
            CuttingPlane().solve(problem, penalty)
    groups = GroupPenalty.build(0.1, 1.0, 6, [0, 0, 0, 1, 1, 1])
    with pytest.raises(InputError, match="needs coordinate_table of the penalty 'groups'"):
        CuttingPlane().solve(problem, groups)
    with pytest.raises(InputError, match="variant='slow'"):
        CuttingPlane(variant="slow").solve(problem, ElasticNet.build(0.1, 0.0, 6))


@pytest.mark.parametrize("scales", [10.0 ** np.linspace(-3, 3, 6), 1e6, 1e-6], ids=str)
@pytest.mark.parametrize("alpha", [0.1, 1e-7])
def test_features_of_any_scale(scales, alpha):
    X, labels = make(10)
    problem = problem_of(X * scales, labels, HingeLoss())
    penalty = ElasticNet.build(alpha * np.median(scales) ** 2, 0.0, 6)
    solution = CuttingPlane(tol=1e-6, variant="fast").solve(problem, penalty)
    assert solution.converged
    value = Pairs(X * scales, labels).loss(solution.w, 1)[0] + penalty.value(solution.w)
    assert solution.objective == pytest.approx(value, rel=1e-9)
