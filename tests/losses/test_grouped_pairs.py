"""Hessians with documents of similar score taken together, against brute force over pairs."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from leanrank.execution import make_executor
from leanrank.losses.base import Curvature, Edges, Labels
from leanrank.losses.grouped_pairs import MOST_LEVELS, group_pairs
from leanrank.losses.hinge import SquaredHingeLoss
from leanrank.losses.logistic import LogisticLoss
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.hessians import Limits
from leanrank.problem.memory import MemoryProblem
from leanrank.problem.quadratic_models import CheckedModel, ColumnModel, ProductModel
from leanrank.solvers.newton.solver import Newton
from tests.losses.test_pairs import brute, brute_pairs, random_labels

LOSSES = [SquaredHingeLoss, LogisticLoss]


def score_hessian(loss, plan, u, ranges):
    """Put the parts of the Hessian together, and give the group of each document."""
    n, cells = plan.n_rows, int(plan.cell_ptr[-1])
    found = Curvature.empty(loss, plan)
    for r0, r1 in ranges:
        loss.curvature(plan, r0, r1, u, found)
    sums = np.zeros((cells, 2, n))
    if cells:
        sums[plan.cell, :, np.arange(n)] = found.atoms
    hessian = np.diag(found.diag)
    for r0, r1 in ranges:
        own = sums[plan.cell_ptr[r0] : plan.cell_ptr[r1]]
        left, right = loss.fold(plan, r0, r1, found.aux, own)
        hessian -= left.T @ right + right.T @ left
    return hessian, plan.cell


def one_query(rng, n, n_levels, **options):
    y = rng.integers(0, n_levels, n).astype(float)
    return Labels(y, np.array([0, n]), **options)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("form", ["plain", "weights", "table"])
@pytest.mark.parametrize("seed", range(5))
def test_groups_of_one_document_give_the_hessian_itself(kind, form, seed):
    rng = np.random.default_rng(seed)
    labels = random_labels(rng, 3, weights=form == "weights", most=14)
    importance = rng.random((3, 3)) if form == "table" else None
    if form == "table" and len(np.unique(labels.y)) < 3:
        pytest.skip("a level is missing")
    loss = kind(importance)
    plan = loss.prepare(labels)
    u = rng.normal(size=plan.n_rows) * 2
    tables = None if importance is None else [importance] * 7
    expected = brute(loss, brute_pairs(labels, plan, tables), u)[2]
    near, grouped = group_pairs(plan, getattr(loss, "margin", np.nan), group_size=0)
    got, _ = score_hessian(near, grouped, u, [(0, 3), (3, 7)])
    np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("kind", LOSSES)
def test_neighbouring_levels_are_merged_where_there_are_many(kind):
    rng = np.random.default_rng(4)
    y, ptr = np.append(rng.permutation(40), rng.integers(0, 5, 9)).astype(float), [0, 40, 49]
    merged = np.where(np.arange(49) < 40, y * MOST_LEVELS // 40, y)
    u, loss = rng.normal(size=49), kind()
    plans = [loss.prepare(Labels(each, np.array(ptr), normalize="none")) for each in (y, merged)]
    near, grouped = group_pairs(plans[0], getattr(loss, "margin", np.nan), group_size=0)
    got, _ = score_hessian(near, grouped, u, [(0, 2)])
    expected = np.empty((49, 49))
    loss.products(plans[1], 0, 2, u, np.eye(49), expected)
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-14)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize(("weighted", "ties"), [(False, False), (True, True)])
def test_every_pair_has_the_number_of_its_groups(kind, weighted, ties):
    rng = np.random.default_rng(3)
    n = 400
    options = {"sample_weight": rng.integers(0, 3, n).astype(float)} if weighted else {}
    if weighted:
        options["gain_weight"] = rng.random(n)
    labels = one_query(rng, n, 3, **options)
    loss = kind()
    plan = loss.prepare(labels)
    u = rng.normal(size=n)
    u = np.round(u, 1) if ties else u
    near, grouped = group_pairs(plan, getattr(loss, "margin", np.nan), group_size=0)
    got, group = score_hessian(near, grouped, u, [(0, 1)])

    bends = loss.pair(u[:, None] - u)[2]
    weight = np.outer(plan.win, plan.lose)
    expected = np.zeros((n, n))
    for a in np.unique(group):
        for b in np.unique(group):
            i, j = np.flatnonzero(group == a), np.flatnonzero(group == b)
            if labels.y[i[0]] <= labels.y[j[0]]:
                continue
            if kind is LogisticLoss:
                bend = loss.pair(np.array([u[i].mean() - u[j].mean()]))[2][0]
            else:
                whole = weight[np.ix_(i, j)].sum()
                bend = (weight * bends)[np.ix_(i, j)].sum() / whole if whole > 0 else 0.0
            expected[np.ix_(i, j)] = bend * weight[np.ix_(i, j)]
    expected = np.diag((expected + expected.T).sum(axis=1)) - expected - expected.T
    np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-15)
    # groups are as large as each other, of one level, and follow the scores
    for level in np.unique(labels.y):
        mine = np.flatnonzero(labels.y == level)
        sizes = np.bincount(group[mine])
        assert np.ptp(sizes[sizes > 0]) <= 1
        order = mine[np.lexsort((mine, u[mine]))]
        assert (np.diff(group[order]) >= 0).all()


@pytest.mark.parametrize("kind", LOSSES)
def test_the_hessian_of_a_long_list_is_close_and_convex(kind):
    rng = np.random.default_rng(0)
    n = 1_100
    labels = one_query(rng, n, 2)
    loss = kind()
    plan = loss.prepare(labels)
    u = rng.normal(size=n)
    X = rng.normal(size=(n, 5)) + 0.5 * u[:, None]
    near, grouped = loss.grouped(plan)
    got, _ = score_hessian(near, grouped, u, [(0, 1)])
    exact = np.empty_like(X)
    loss.products(plan, 0, 1, u, X, exact)
    ours, theirs = X.T @ got @ X, X.T @ exact
    assert np.linalg.norm(ours - theirs) <= 0.03 * np.linalg.norm(theirs)
    np.testing.assert_allclose(got.sum(axis=1), 0.0, atol=1e-12 * np.abs(got).max() * n)
    assert np.linalg.eigvalsh(got).min() >= -1e-12 * np.abs(got).max() * n


def test_where_groups_would_save_nothing_there_are_none():
    rng = np.random.default_rng(1)
    loss = LogisticLoss()
    short = loss.prepare(Labels(rng.integers(0, 2, 400).astype(float), np.arange(0, 401, 20)))
    assert loss.grouped(short) is None
    many = one_query(rng, 4_000, MOST_LEVELS + 1)
    assert loss.grouped(loss.prepare(many)) is not None
    table = np.ones((MOST_LEVELS + 1, MOST_LEVELS + 1))
    assert LogisticLoss(table).grouped(LogisticLoss(table).prepare(many)) is None
    edges = Edges(np.array([1]), np.array([0]), np.ones(1))
    assert loss.grouped(loss.prepare(replace(one_query(rng, 4_000, 2), edges=edges))) is None


def sparse_problem(loss, jobs=1, limits=None):
    rng = np.random.default_rng(5)
    sizes = [1_200, 1_000, 40, 1_400]
    n = sum(sizes)
    X = sp.random_array((n, 60), density=0.03, rng=rng, format="csr")
    score = X @ rng.normal(size=60) + 0.5 * rng.normal(size=n)
    y = (score > np.quantile(score, 0.9)).astype(float)
    y[2_200:2_240] = 0.0  # a query without pairs
    labels = Labels(y, np.concatenate(([0], np.cumsum(sizes))))
    return MemoryProblem(X, loss, loss.prepare(labels), make_executor(jobs), limits)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize(
    ("model", "limits"),
    [
        (CheckedModel, None),
        (ColumnModel, Limits(fewest_by_columns=4, few_cells=1_000, long_list=1)),
        (ProductModel, Limits(fewest_gram=1, gram_copies=10**9)),
    ],
)
def test_newton_finds_the_same_optimum_with_and_without_groups(kind, model, limits, monkeypatch):
    problem = sparse_problem(kind(), limits=limits)
    problem.at(np.zeros(60))
    penalty = ElasticNet.build(0.1 * np.abs(problem.gradient()).max(), 1.0, 60)
    assert isinstance(problem.quadratic(penalty), model)
    found = Newton(tol=1e-9).solve(problem, penalty)
    assert found.converged
    threaded = Newton(tol=1e-9).solve(sparse_problem(kind(), 3, limits), penalty)
    assert threaded.w.tobytes() == found.w.tobytes()
    monkeypatch.setattr(kind, "grouped", lambda self, plan: None)
    exact = Newton(tol=1e-9).solve(sparse_problem(kind(), limits=limits), penalty)
    assert exact.converged
    assert found.objective == pytest.approx(exact.objective, rel=2e-9)
    np.testing.assert_allclose(found.w, exact.w, atol=2e-4 * np.abs(exact.w).max())
