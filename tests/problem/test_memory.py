from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank import execution
from leanrank.execution import make_executor, query_ranges
from leanrank.losses import get_loss
from leanrank.losses.base import Curvature, Labels
from leanrank.losses.squared import SquaredLoss
from leanrank.problem import hessians as problem_module
from leanrank.problem.hessians import Limits
from leanrank.problem.memory import MemoryProblem

SIZES = [4, 0, 1, 7, 3, 3, 12]


def labels_of(sizes, seed=0, weighted=True, offset=True, normalize="query"):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    return Labels(
        y=rng.integers(0, 3, n).astype(np.float64),
        query_ptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        sample_weight=rng.integers(0, 3, n).astype(np.float64) if weighted else None,
        query_weight=rng.random(len(sizes)) if weighted else None,
        offset=rng.normal(size=n) if offset else None,
        normalize=normalize,
    )


def centrings(plan):
    """Give Σ_q scale_q L_q as one explicit matrix, L_q the weighted centring of query q."""
    total = np.zeros((plan.n_rows, plan.n_rows))
    for q in range(len(plan.query_ptr) - 1):
        rows = slice(plan.query_ptr[q], plan.query_ptr[q + 1])
        m = plan.weight[rows]
        if m.sum() > 0:
            total[rows, rows] = plan.scale[q] * (np.diag(m) - np.outer(m, m) / m.sum())
    return total


def make_problem(X, labels, workers=1, limits=None):
    loss = SquaredLoss()
    return MemoryProblem(X, loss, loss.prepare(labels), make_executor(workers), limits)


@pytest.mark.parametrize("form", ["dense64", "dense32", "sparse64", "sparse32"])
@pytest.mark.parametrize("normalize", ["query", "term", "none"])
@pytest.mark.parametrize("weighted", [False, True])
def test_hessian_is_the_sum_of_weighted_centrings(form, normalize, weighted):
    X = np.random.default_rng(1).normal(size=(sum(SIZES), 5)).astype(np.float32)
    X[np.abs(X) < 0.3] = 0.0
    storage = X.astype(np.float64 if form.endswith("64") else np.float32)
    matrix = csr_array(storage) if form.startswith("sparse") else storage
    problem = make_problem(matrix, labels_of(SIZES, weighted=weighted, normalize=normalize))
    for chosen in (np.arange(5), np.array([4, 1]), np.zeros(0, dtype=np.int64)):
        some = X[:, chosen].astype(np.float64)
        expected = some.T @ centrings(problem.plan) @ some
        block = problem.design.take(chosen)
        u = problem.scores(np.zeros(5))
        exact = problem.hessian(block, u, exact=True)
        assert np.allclose(exact, expected, rtol=1e-12, atol=1e-13)
        assert np.array_equal(exact, exact.T)
        scale = np.abs(expected).max(initial=0.0)
        assert np.allclose(problem.hessian(block, u), expected, atol=2e-6 * scale)


@pytest.mark.parametrize("mean", [0.0, 1e6])
@pytest.mark.parametrize("between", [0.0, 1e6])
def test_large_means_do_not_destroy_a_single_precision_hessian(mean, between):
    rng = np.random.default_rng(2)
    query = np.repeat(np.arange(50), 8)
    X = rng.normal(size=(400, 3)) + mean + between * np.sign(rng.normal(size=(50, 3)))[query]
    X = X.astype(np.float32)
    problem = make_problem(X, labels_of([8] * 50, weighted=False))
    expected = np.zeros((3, 3))
    for q in range(50):
        rows = X[8 * q : 8 * q + 8].astype(np.float64)
        rows -= rows.mean(axis=0)
        expected += problem.plan.scale[q] * rows.T @ rows
    u = problem.scores(np.zeros(3))
    hessian = problem.hessian(problem.design.take(np.arange(3)), u)
    assert np.allclose(hessian, expected, atol=1e-5 * np.abs(expected).max())


@pytest.mark.parametrize("sparse", [False, True])
def test_gradient_of_the_weights(sparse):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(sum(SIZES), 4))
    problem = make_problem(csr_array(X) if sparse else X, labels_of(SIZES))
    w = rng.normal(size=4)

    def value(w):
        return problem.evaluate(problem.scores(w))[0]

    gradient = problem.design.rmatvec(problem.evaluate(problem.scores(w))[1])
    for j in range(4):
        step = 1e-4 * np.eye(4)[j]
        slope = (value(w + step) - value(w - step)) / 2e-4
        assert gradient[j] == pytest.approx(slope, rel=1e-7)
    residual = X @ w - problem.plan.offset - problem.plan.y
    assert np.allclose(gradient, X.T @ centrings(problem.plan) @ residual, atol=1e-13)
    assert value(w) == pytest.approx(0.5 * residual @ centrings(problem.plan) @ residual)


def test_value_is_the_sum_over_pairs_of_each_query():
    labels = labels_of(SIZES, weighted=False, offset=False, normalize="none")
    u = np.random.default_rng(4).normal(size=sum(SIZES))
    expected = 0.0
    for q, size in enumerate(SIZES):
        for i in range(labels.query_ptr[q], labels.query_ptr[q + 1]):
            for j in range(i):
                if j >= labels.query_ptr[q]:
                    away = (u[i] - u[j]) - (labels.y[i] - labels.y[j])
                    expected += away**2 / (2 * size)
    problem = make_problem(np.zeros((len(u), 1)), labels)
    assert problem.evaluate(u)[0] == pytest.approx(expected, rel=1e-13)


def test_scores_beside_huge_offsets_keep_their_differences():
    rng = np.random.default_rng(5)
    labels = labels_of([10] * 6, weighted=False, offset=False)
    u = np.round(rng.normal(size=60) * 1024) / 1024
    problem = make_problem(np.zeros((60, 1)), labels)
    value, g = problem.evaluate(u)
    far_value, far = problem.evaluate(u + 1e8 * np.repeat([1, -1, 2, 3, -4, 5], 10))
    assert far_value == pytest.approx(value, rel=1e-6)
    assert np.allclose(far, g, atol=1e-8)


@pytest.mark.parametrize("form", ["dense64", "dense32", "sparse64"])
def test_the_same_bits_for_any_number_of_threads(form):
    sizes = np.random.default_rng(6).integers(0, 60, 1_200).tolist()
    rng = np.random.default_rng(7)
    n = sum(sizes)
    assert n > 2 * execution.ROWS_PER_RANGE
    X = rng.normal(size=(n, 6)).astype(np.float32 if form == "dense32" else np.float64)
    matrix = csr_array(np.where(X > 0.5, X, 0)) if form == "sparse64" else X
    labels = labels_of(sizes)
    w = rng.normal(size=6)
    seen = []
    for workers in (1, 2, 4):
        problem = make_problem(matrix, labels, workers, Limits(cells_per_range=7))
        assert len(problem.ranges) > 2
        u = problem.scores(w)
        value, g = problem.evaluate(u)
        with execution.single_threaded_blas():
            hessian = problem.hessian(problem.design.take(np.arange(6)), u)
        seen.append((u, np.array(value), g, problem.design.rmatvec(g), hessian))
    for other in seen[1:]:
        for one, two in zip(seen[0], other, strict=True):
            assert one.tobytes() == two.tobytes()


def test_cutting_the_low_rank_part_into_pieces_changes_nothing(monkeypatch):
    X = np.random.default_rng(8).normal(size=(sum(SIZES), 3))
    problem = make_problem(X, labels_of(SIZES))
    block, u = problem.design.take(np.arange(3)), problem.scores(np.zeros(3))
    whole = problem.hessian(block, u)
    problem.hessians.limits = Limits(cell_sum_bytes=1)  # one cell at a time
    assert np.allclose(problem.hessian(block, u), whole, rtol=1e-13, atol=1e-15)
    monkeypatch.setattr(problem_module, "query_ranges", lambda *a: query_ranges(*a)[:-1])
    assert not np.allclose(problem.hessian(block, u), whole)  # the pieces do matter


def test_read_only_labels_and_offset():
    labels = labels_of(SIZES)
    for array in (labels.y, labels.query_ptr, labels.sample_weight, labels.offset):
        array.flags.writeable = False
    X = np.ones((sum(SIZES), 2))
    X.flags.writeable = False
    problem = make_problem(X, labels)
    assert np.allclose(problem.scores(np.ones(2)), -labels.offset)  # a constant is not seen
    assert np.isfinite(problem.evaluate(problem.scores(np.ones(2)))[0])


def test_a_design_can_be_shared_between_problems():
    X = np.random.default_rng(9).normal(size=(sum(SIZES), 2))
    first = make_problem(X, labels_of(SIZES))
    loss = SquaredLoss()
    second = MemoryProblem(first.design, loss, loss.prepare(labels_of(SIZES, offset=False)))
    assert second.design is first.design
    assert np.allclose(second.scores(np.ones(2)), (X - X[first.design.anchor]).sum(axis=1))
    assert second.n_features == 2


@pytest.mark.parametrize("form", ["dense64", "dense32", "sparse64", "sparse32"])
def test_a_query_longer_than_several_blocks(form):
    sizes = [3, 2 * execution.ROWS_PER_RANGE + 9_000, 5]
    rng = np.random.default_rng(10)
    X = rng.normal(size=(sum(sizes), 3)).astype(np.float32)
    X[X < 0.2] = 0.0
    storage = X.astype(np.float64 if form.endswith("64") else np.float32)
    matrix = csr_array(storage) if form.startswith("sparse") else storage
    problem = make_problem(matrix, labels_of(sizes), workers=2)
    plan = problem.plan
    expected = np.zeros((3, 3))
    for q in range(3):
        rows = slice(plan.query_ptr[q], plan.query_ptr[q + 1])
        m, A = plan.weight[rows], X[rows].astype(np.float64)
        A = A - (m @ A) / m.sum()
        expected += plan.scale[q] * A.T @ (m[:, None] * A)
    u = problem.scores(np.zeros(3))
    block = problem.design.take(np.arange(3))
    assert np.allclose(problem.hessian(block, u, exact=True), expected, rtol=1e-10, atol=1e-12)
    rough = problem.hessian(block, u)
    assert np.allclose(rough, expected, atol=5e-3 * np.abs(expected).max())


@pytest.mark.parametrize("loss", ["squared", "domination", "squared-hinge"])
def test_a_sample_of_queries_gives_the_hessian_of_these_queries(loss):
    rng = np.random.default_rng(11)
    sizes = rng.integers(2, 12, 400).tolist()
    labels = labels_of(sizes, offset=False, normalize="none")
    X = rng.normal(size=(sum(sizes), 4))
    X[-40:, 3] *= 1e3  # where no sample looks
    loss = get_loss(loss)
    problem = MemoryProblem(X, loss, loss.prepare(labels))
    problem.at(rng.normal(size=4))
    seen, all_of_them = np.arange(3), np.arange(4)
    problem.focus(seen)
    block, u = problem.design.take(seen), problem.point.u
    found = problem.hessian(block, u, exact=True, thin=300)
    chosen = np.arange(400) < round(300 / sum(sizes) * 400)
    assert 0 < chosen.sum() < 80
    plan = loss.prepare(replace(labels, query_weight=labels.query_weight * chosen))
    some = MemoryProblem(X, loss, plan).hessian(block, u, exact=True)
    mass = problem.plan.scale * sizes
    expected = some * mass.sum() / mass[chosen].sum()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
    whole = problem.hessian(block, u, exact=True)
    assert 0.01 < np.abs(found - whole).max() / np.abs(whole).max() < 0.5
    problem.focus(all_of_them)  # the sample does not show the last column
    block = problem.design.take(all_of_them)
    found = problem.hessian(block, u, exact=True, thin=300)
    if not loss.offers("curvature"):  # nothing makes up for it
        np.testing.assert_array_equal(found, problem.hessian(block, u, exact=True))
        return
    n_rows = sum(sizes[: chosen.sum()])
    shown = problem.design.squares((0, n_rows))[3]
    lacking = problem.design.column_norms[3] ** 2 - shown * len(X) / n_rows
    curvature = Curvature.empty(loss, problem.plan)
    loss.curvature(problem.plan, 0, int(chosen.sum()), u, curvature)
    expected = MemoryProblem(X, loss, plan).hessian(block, u, exact=True)
    expected[3, 3] += lacking * curvature.diag.sum() / len(X)
    expected *= mass.sum() / mass[chosen].sum()
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_gradients_of_the_working_set_are_those_of_all_features():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(sum(SIZES), 12))
    problem = make_problem(X, labels_of(SIZES))
    problem.at(rng.normal(size=12))
    for chosen in (np.array([7, 2, 11, 3]), np.array([5, 1])):  # read in place, and copied
        problem.focus(chosen)
        g = problem.point.g
        np.testing.assert_allclose(problem.focused_gradient(), X[:, chosen].T @ g, atol=1e-13)
        np.testing.assert_allclose(problem.gradient(), X.T @ g, atol=1e-13)
        problem.try_step(np.ones(len(chosen)), 0.5)
        tried = X[:, chosen].T @ problem._tried.g
        problem.accept()
        np.testing.assert_allclose(problem.focused_gradient(), tried, atol=1e-13)
