"""Hessians of losses that can only be multiplied, and Newton's method on them."""

import numpy as np
import pytest
import scipy.sparse as sp

from leanrank.errors import InputError
from leanrank.execution import make_executor
from leanrank.losses.base import Edges, Labels
from leanrank.losses.hinge import HingeLoss, SquaredHingeLoss
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.hessians import Limits
from leanrank.problem.memory import MemoryProblem
from leanrank.solvers.newton.solver import Newton
from tests.losses.test_pairs import brute, brute_pairs, random_labels

NARROW = Limits(piece_bytes=0, piece_share=1 << 40, fewest_columns=2)
"""Two columns at a time."""


def as_kind(X, kind):
    if kind == "sparse":
        return sp.csr_array(X)
    return X.astype(np.float32) if kind == "float32" else X


def make(rng, kind="dense", importance=None, n_features=9, jobs=1, limits=None, **options):
    labels = random_labels(rng, options.pop("n_levels", 3), most=14, **options)
    X = rng.normal(size=(int(labels.query_ptr[-1]), n_features))
    X[rng.random(X.shape) < 0.4] = 0.0
    X[:, 2] = 0.0
    X = np.round(X * 1024) / 1024
    loss = SquaredHingeLoss(importance)
    plan = loss.prepare(labels)
    return X, labels, MemoryProblem(as_kind(X, kind), loss, plan, make_executor(jobs), limits)


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse"])
@pytest.mark.parametrize("form", ["levels", "table", "edges"])
@pytest.mark.parametrize("narrow", [False, True])
def test_the_hessian_is_the_brute_force_one(kind, form, narrow):
    rng = np.random.default_rng(8)
    importance = rng.random((3, 3)) if form == "table" else None
    limits = NARROW if narrow else None
    X, labels, problem = make(
        rng, kind, importance, limits=limits, weights=True, edges=form == "edges"
    )
    u = rng.normal(size=len(X))
    tables = None if importance is None else [importance] * 7
    hessian = brute(problem.loss, brute_pairs(labels, problem.plan, tables), u)[2]
    for features in (np.arange(9), np.array([1, 2, 5])):
        block = problem.design.take(features)
        got = problem.hessian(block, u)
        some = X[:, features]
        np.testing.assert_allclose(got, some.T @ hessian @ some, rtol=1e-9, atol=1e-11)
        v = rng.normal(size=len(features))
        np.testing.assert_allclose(
            problem.hessians.product(block, u, v), got @ v, rtol=1e-9, atol=1e-11
        )


def test_a_large_mean_does_not_drown_a_small_variance():
    rng = np.random.default_rng(2)
    X, _, problem = make(rng)
    shifted = MemoryProblem(X + 2.0**30, problem.loss, problem.plan)
    u = rng.normal(size=len(X))
    features = np.arange(9)
    np.testing.assert_allclose(
        shifted.hessian(shifted.design.take(features), u),
        problem.hessian(problem.design.take(features), u),
        rtol=1e-5,
        atol=1e-6,
    )


@pytest.mark.parametrize("kind", ["dense", "float32", "sparse"])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("alpha", [0.1, 1e-3])
@pytest.mark.parametrize("edges", [False, True])
def test_newton_reaches_a_certified_gap(kind, l1_ratio, alpha, edges):
    X, _, problem = make(np.random.default_rng(4), kind, weights=True, edges=edges, n_levels=4)
    penalty = ElasticNet.build(alpha, l1_ratio, X.shape[1])
    solution = Newton(tol=1e-9).solve(problem, penalty)
    assert solution.converged
    assert solution.gap <= 1e-9
    c = problem.design.rmatvec(problem.evaluate(problem.scores(solution.w))[1])
    assert penalty.residual(solution.w, c).max() < 1e-4 * max(1.0, np.abs(c).max())
    rng = np.random.default_rng(0)
    for _ in range(20):  # no point nearby is better
        w = solution.w + 1e-3 * rng.normal(size=len(c))
        value = problem.evaluate(problem.scores(w))[0] + penalty.value(w)
        assert value >= solution.objective * (1 - 1e-9)


def test_the_same_bits_on_any_number_of_threads():
    found = []
    for jobs in (1, 2, 3):
        rng = np.random.default_rng(6)
        X, _, problem = make(rng, jobs=jobs, limits=Limits(piece_bytes=1 << 9))
        problem.ranges = [(0, 2), (2, 3), (3, 7)]
        found.append(Newton().solve(problem, ElasticNet.build(0.01, 1.0, X.shape[1])).w)
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])


def test_newton_refuses_a_loss_without_curvature():
    labels = Labels(y=np.array([0.0, 1.0]), query_ptr=np.array([0, 2]))
    loss = HingeLoss()
    problem = MemoryProblem(np.eye(2), loss, loss.prepare(labels))
    with pytest.raises(InputError, match="'newton' needs a continuous gradient of the loss"):
        Newton().solve(problem, ElasticNet.build(1.0, 1.0, 2))


def test_edges_of_labels_give_the_same_optimum():
    rng = np.random.default_rng(9)
    X, labels, problem = make(rng, weights=False)
    pairs = brute_pairs(labels, problem.plan)
    edges = Edges(
        np.array([i for i, _, _ in pairs]), np.array([j for _, j, _ in pairs]), np.ones(len(pairs))
    )
    explicit = Labels(
        y=labels.y, query_ptr=labels.query_ptr, normalize=labels.normalize, edges=edges
    )
    other = MemoryProblem(X, problem.loss, problem.loss.prepare(explicit))
    penalty = ElasticNet.build(0.01, 0.5, X.shape[1])
    np.testing.assert_allclose(
        Newton(tol=1e-12).solve(other, penalty).w,
        Newton(tol=1e-12).solve(problem, penalty).w,
        rtol=1e-6,
        atol=1e-9,
    )


def test_more_rows_than_a_batch():
    rng = np.random.default_rng(3)
    n = 1_500
    labels = Labels(y=rng.integers(0, 90, n) / 4.0, query_ptr=np.array([0, 700, 701, n]))
    X, u = rng.normal(size=(n, 5)) + 3, rng.normal(size=n)
    loss = SquaredHingeLoss()
    problem = MemoryProblem(X, loss, loss.prepare(labels))
    out = np.empty_like(X)
    loss.products(problem.plan, 0, 3, u, X, out)
    got = problem.hessian(problem.design.take(np.arange(5)), u)
    np.testing.assert_allclose(got, X.T @ out, rtol=1e-9)
    np.testing.assert_array_equal(got, got.T)


def test_very_many_levels_take_few_steps():
    rng = np.random.default_rng(3)
    n = 3_000
    X = rng.normal(size=(n, 5))
    y = X @ rng.normal(size=5) + rng.normal(size=n)
    loss = SquaredHingeLoss()
    problem = MemoryProblem(X, loss, loss.prepare(Labels(y=y, query_ptr=np.array([0, n]))))
    solution = Newton(tol=1e-9).solve(problem, ElasticNet.build(1e-4, 0.5, 5))
    assert solution.converged
    assert solution.n_iter <= 12


def test_threads_may_share_the_columns_of_a_query():
    rng = np.random.default_rng(3)
    n = 4_000
    X, y = rng.normal(size=(n, 12)), rng.integers(0, 4, n).astype(float)
    loss = SquaredHingeLoss()
    found = []
    for jobs in (1, 4, 4, 4):
        plan = loss.prepare(Labels(y=y, query_ptr=np.array([0, n])))
        problem = MemoryProblem(X, loss, plan, make_executor(jobs), NARROW)
        u = np.random.default_rng(0).normal(size=n)  # nobody has sorted these scores before
        found.append(problem.hessian(problem.design.take(np.arange(12)), u))
        np.testing.assert_array_equal(problem.plan.order, np.arange(n))
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
