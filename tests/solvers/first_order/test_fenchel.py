"""Minimisation over an ℓ1 ball: the certificate, the conditions, and the penalised problem."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from leanrank.errors import InputError
from leanrank.losses.domination import DominationLoss
from leanrank.losses.hinge import HingeLoss, SquaredHingeLoss
from leanrank.penalties.elastic_net import ElasticNet, L1Ball
from leanrank.solvers.first_order.fenchel import Fenchel
from leanrank.solvers.newton.solver import Newton
from tests.solvers.newton.test_solver import replaced
from tests.solvers.reference_domination import random_features, random_labels
from tests.solvers.reference_pairs import Pairs, problem_of

VARIANTS = {"greedy": 1e-3, "corrective": 1e-9}


def make(seed, form="dense", n_features=8, offset=False, **options):
    rng = np.random.default_rng(seed)
    labels = random_labels(rng, n_queries=15, **options)
    if offset:
        labels = replaced(labels, offset=rng.normal(size=len(labels.y)))
    return random_features(rng, len(labels.y), n_features, form), labels


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize(("offset", "normalize"), [(False, "query"), (True, "none")])
def test_the_ball_the_loss_and_the_certificate(variant, form, offset, normalize):
    X, labels = make(len(form), form, offset=offset, normalize=normalize)
    pairs = Pairs(X, labels)
    problem = problem_of(X, labels, SquaredHingeLoss())
    for radius in (0.1, 0.5):
        solution = Fenchel(tol=VARIANTS[variant], variant=variant).solve(
            problem, L1Ball(problem.n_features, radius)
        )
        best = Fenchel(tol=1e-11, variant="corrective").solve(
            problem, L1Ball(problem.n_features, radius)
        )
        assert solution.converged
        assert solution.gap <= VARIANTS[variant]
        assert np.abs(solution.w).sum() <= radius * (1 + 1e-12)
        value, c = pairs.loss(solution.w, 2)
        assert solution.objective == pytest.approx(value, rel=1e-10)
        gap = c @ solution.w + radius * np.abs(c).max()
        if variant == "corrective":
            assert gap <= 2e-9 * value
        assert solution.objective * (1 - solution.gap) <= best.objective * (1 + 1e-12)
        assert best.objective <= solution.objective * (1 + 1e-12)


@pytest.mark.parametrize("loss", [SquaredHingeLoss(), DominationLoss()], ids=["pairs", "lists"])
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_the_penalised_optimum_is_the_optimum_of_the_ball_through_it(loss, form, share):
    X, labels = make(3, form, 12)
    problem = problem_of(X, labels, loss)
    top = np.abs(problem.design.rmatvec(problem.evaluate(problem.scores(np.zeros(12)))[1])).max()
    penalised = Newton(tol=1e-11).solve(problem, ElasticNet.build(share * top, 1.0, 12))
    radius = np.abs(penalised.w).sum()
    ball = Fenchel(tol=1e-8, variant="corrective").solve(
        problem, L1Ball(problem.n_features, radius)
    )
    assert ball.converged
    plain = penalised.objective - share * top * radius
    assert ball.objective == pytest.approx(plain, rel=1e-8)
    np.testing.assert_allclose(ball.w, penalised.w, atol=1e-4 * np.abs(ball.w).max())


@pytest.mark.parametrize("variant", VARIANTS)
def test_every_round_lowers_the_loss_and_no_bound_lies(variant):
    X, labels = make(5, n_features=20)
    problem = problem_of(X, labels, SquaredHingeLoss())
    best = (
        Fenchel(tol=1e-11, variant="corrective")
        .solve(problem, L1Ball(problem.n_features, 1.0))
        .objective
    )
    told = []
    solution = Fenchel(tol=1e-12, variant=variant, max_iter=60, callback=told.append).solve(
        problem, L1Ball(problem.n_features, 1.0)
    )
    assert told == solution.history
    values = [e["objective"] for e in told]
    assert all(b <= a * (1 + 1e-14) for a, b in itertools.pairwise(values))
    assert all(e["objective"] * (1 - e["gap"]) <= best * (1 + 1e-12) for e in told)
    assert [e["iteration"] for e in told] == list(range(1, solution.n_iter + 1))
    if variant == "greedy":  # a round brings one feature at most
        support = [e["support"] for e in told]
        assert all(later <= earlier + 1 for earlier, later in itertools.pairwise(support))
        assert not solution.converged


def test_a_ball_that_holds_the_free_optimum_is_no_constraint():
    X, labels = make(6, n_features=3)
    problem = problem_of(X, labels, SquaredHingeLoss())
    free = Newton(tol=1e-10).solve(problem, ElasticNet.build(0.0, 1.0, 3))
    radius = 3 * np.abs(free.w).sum()
    solution = Fenchel(tol=1e-9, variant="corrective").solve(
        problem, L1Ball(problem.n_features, radius)
    )
    assert solution.converged
    np.testing.assert_allclose(solution.w, free.w, atol=1e-4)


@pytest.mark.parametrize("variant", VARIANTS)
def test_degenerate_balls_and_features(variant):
    X, labels = make(7, n_features=4)
    X[:, 0] = 0.0
    X[:, 1] = 3.0
    X[:, 3] = X[:, 2]
    problem = problem_of(X, labels, SquaredHingeLoss())
    point = Fenchel(variant=variant).solve(problem, L1Ball(problem.n_features, 0.0))
    assert point.converged
    assert not point.w.any()
    solution = Fenchel(tol=1e-3, variant=variant).solve(problem, L1Ball(problem.n_features, 0.2))
    assert solution.converged
    assert np.isfinite(solution.w).all()
    assert not solution.w[:2].any()
    nothing = Fenchel(variant=variant).solve(
        problem_of(X[:, :2], labels, SquaredHingeLoss()),
        L1Ball(2, 1.0),
    )
    assert nothing.converged
    assert nothing.gap <= 1e-15


@pytest.mark.parametrize(("variant", "tol"), [("greedy", 1e-2), ("corrective", 1e-6)])
def test_a_separable_problem_ends_at_no_loss(variant, tol):
    X, labels = make(8, n_features=3)
    X[:, 1] = labels.y * 2
    problem = problem_of(X, labels, SquaredHingeLoss())
    solution = Fenchel(tol=tol, variant=variant).solve(problem, L1Ball(problem.n_features, 100.0))
    assert solution.converged
    assert 0 <= solution.objective <= tol**2
    assert solution.gap <= 1  # the loss is not negative: that much is certain


def test_a_start_outside_is_shrunk_and_left_alone():
    X, labels = make(9)
    problem = problem_of(X, labels, SquaredHingeLoss())
    start = np.full(8, 5.0)
    first = []
    warm = Fenchel(tol=1e-9, variant="corrective", callback=first.append).solve(
        problem, L1Ball(problem.n_features, 0.5), start
    )
    assert (start == 5.0).all()
    assert first[0]["support"] == 8
    cold = Fenchel(tol=1e-9, variant="corrective").solve(problem, L1Ball(problem.n_features, 0.5))
    assert warm.objective == pytest.approx(cold.objective, rel=1e-8)
    again = Fenchel(tol=1e-8, variant="corrective").solve(
        problem, L1Ball(problem.n_features, 0.5), cold.w
    )
    assert again.n_iter == 1


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_single_precision_and_threads(variant, form):
    X, labels = make(10, form, 30)
    X = X.astype(np.float32)
    answers = [
        Fenchel(tol=1e-3, variant=variant).solve(
            problem_of(X, labels, SquaredHingeLoss(), n_jobs),
            L1Ball(X.shape[1], 0.5),
        )
        for n_jobs in (1, 2)
    ]
    assert answers[0].converged
    assert np.array_equal(answers[0].w, answers[1].w)
    assert answers[0].w.dtype == np.float64


def test_what_it_cannot_do_is_refused_by_name():
    X, labels = make(11)
    problem = problem_of(X, labels, HingeLoss())
    with pytest.raises(InputError, match=r"corrective.*hinge"):
        Fenchel(variant="corrective").solve(problem, L1Ball(problem.n_features, 1.0))
    with pytest.raises(InputError, match="solver='best'"):
        Fenchel(variant="best").solve(problem, L1Ball(problem.n_features, 1.0))


@pytest.mark.parametrize("scales", [10.0 ** np.linspace(-3, 3, 8), 1e6, 1e-6], ids=str)
def test_features_of_any_scale(scales):
    X, labels = make(12)
    problem = problem_of(X * scales, labels, SquaredHingeLoss())
    radius = 3.0 / np.median(scales)
    solution = Fenchel(tol=1e-6, variant="corrective").solve(
        problem, L1Ball(problem.n_features, radius)
    )
    assert solution.converged
    value, c = Pairs(X * scales, labels).loss(solution.w, 2)
    assert solution.objective == pytest.approx(value, rel=1e-9)
    assert c @ solution.w + radius * np.abs(c).max() <= 1e-5 * value


def test_more_features_than_documents():
    X, labels = make(13, "sparse", 300)
    problem = problem_of(X, labels, SquaredHingeLoss())
    for radius in (0.5, 2.0):
        solution = Fenchel(tol=1e-6, variant="corrective").solve(
            problem, L1Ball(problem.n_features, radius)
        )
        assert solution.converged
        value = Pairs(X, labels).loss(solution.w, 2)[0]
        assert solution.objective == pytest.approx(value, rel=1e-9, abs=1e-13)
        assert np.count_nonzero(solution.w) < 200
