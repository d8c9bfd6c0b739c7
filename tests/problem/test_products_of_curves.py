"""Quadratic models of curves by products, against those of the written-out Hessian."""

import numpy as np
import pytest

from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.ramps import ramp_design
from leanrank.execution import make_executor
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.penalties.base import Blocks
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.penalties.groups import GroupPenalty
from leanrank.problem.hessians import Limits
from leanrank.problem.memory import MemoryProblem
from leanrank.problem.quadratic_models import GramModel, ProductModel
from leanrank.solvers.newton.solver import Newton

ALWAYS, NEVER = Limits(fewest_products=0, columns_per_product=1), Limits(fewest_products=10**9)


def draw(n_queries=60, form="dense", n_jobs=1, seed=0):
    """Curves of features with gaps, few values, one value and a rare one."""
    from scipy import sparse

    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 14, n_queries)
    n = int(sizes.sum())
    X = rng.normal(size=(n, 6))
    X[:, 1] = rng.integers(0, 3, n)
    X[:, 2] = 3.0
    X[:, 3] += X[:, 0]
    X[:, 5] = np.where(rng.random(n) < 0.02, X[:, 5], 0.0)
    y = np.clip(np.round(X[:, 0] + np.abs(X[:, 4]) + rng.normal(size=n)), 0, 3)
    X[rng.random(n) < 0.1, 4] = np.nan
    X = X.astype(np.float32) if form == "dense32" else X
    ramps = RampColumns.at_quantiles(X, 4).with_lines(X, 0.3)
    stored = sparse.csr_array(X) if form == "sparse" else X
    design = ramp_design(stored, ramps, make_executor(n_jobs))
    return design, Labels(y, np.concatenate(([0], np.cumsum(sizes))))


def problem_of(design, labels, limits, loss="softmax"):
    loss = get_loss(loss)
    return MemoryProblem(design, loss, loss.prepare(labels), None, limits)


def penalty_of(design, kind, alpha=0.01):
    if kind == "groups":
        return GroupPenalty.build(
            alpha, 1.0, design.n_features, design.ramps.feature, group_ratio=0.5
        )
    return ElasticNet.build(alpha, 0.9, design.n_features)


@pytest.mark.parametrize("kind", ["groups", "elastic net"])
def test_sweeps_over_blocks_are_those_over_the_matrix_of_the_blocks(kind):
    rng = np.random.default_rng(0)
    sizes = [3, 1, 4, 2]
    n, widest = sum(sizes), max(sizes)
    matrix, rows, first = np.zeros((n, n)), np.zeros((n, widest)), np.zeros(n, dtype=np.int64)
    for low, high in zip(np.cumsum([0, *sizes]), np.cumsum(sizes), strict=False):
        A = rng.normal(size=(8, high - low))
        matrix[low:high, low:high] = rows[low:high, : high - low] = A.T @ A
        first[low:high] = low
    blocks = Blocks(rows, first)
    v = rng.normal(size=n)
    np.testing.assert_allclose(blocks @ v, matrix @ v, rtol=1e-12)
    groups = np.array([0, 0, 1, 1, 2, 2, 2, 3, 3, 0])  # across blocks, and within
    penalty = (
        ElasticNet.build(0.5, 0.7, n)
        if kind == "elastic net"
        else GroupPenalty.build(0.5, 1.0, n, groups, group_ratio=0.5)
    )
    for n_sweeps in (1, 7):
        found, slope = v.copy(), rng.normal(size=n)
        expected, twin = v.copy(), slope.copy()
        penalty.sweep_blocks(blocks, slope, found, 0.0, n_sweeps)
        penalty.sweep_blocks(Blocks.whole(matrix), twin, expected, 0.0, n_sweeps)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        np.testing.assert_allclose(slope, twin, atol=1e-11)


@pytest.mark.parametrize("kind", ["groups", "elastic net"])
@pytest.mark.parametrize(
    ("form", "loss"),
    [
        ("dense", "softmax"),
        ("dense", "domination"),
        ("sparse", "softmax"),
        pytest.param("dense32", "softmax", marks=pytest.mark.slow),  # compiles more kernels
        pytest.param("dense", "squared-hinge", marks=pytest.mark.slow),
        pytest.param("sparse", "logistic", marks=pytest.mark.slow),
    ],
)
def test_products_reach_the_optimum_of_the_matrix(form, loss, kind):
    design, labels = draw(form=form)
    penalty = penalty_of(design, kind)
    problem = problem_of(design, labels, ALWAYS, loss)
    found = Newton(tol=1e-8).solve(problem, penalty)
    problem._by_products = True
    assert isinstance(problem.quadratic(penalty), ProductModel)
    expected = Newton(tol=1e-8).solve(problem_of(design, labels, NEVER, loss), penalty)
    assert max(found.gap, expected.gap) <= 1e-8
    assert found.objective == pytest.approx(expected.objective, rel=3e-8)


def test_blocks_are_those_of_the_hessian_where_all_rows_are_used():
    design, labels = draw()
    problem = problem_of(design, labels, Limits(fewest_products=0, metric_rows=10**6))
    problem.at(np.random.default_rng(1).normal(size=design.n_features))
    problem.focus(np.arange(design.n_features))
    block = problem.block
    blocks = problem.quadratic(penalty_of(design, "groups")).blocks
    hessian, columns = problem.focused_hessian(), block.columns((0, design.n_rows), 0, 10**6)
    mean = problem.hessians._curvature(problem.ranges, problem.point.u, True).diag.mean()
    squares = np.sum(columns**2, axis=0)
    lacking = np.where(4 * squares < design.column_norms**2, design.column_norms**2, 0.01 * squares)
    for j in range(design.n_features):
        near = block.feature == block.feature[j]
        expected = np.where(near, hessian[j], 0.0)[blocks.first[j] :][: blocks.rows.shape[1]]
        expected = np.pad(expected, (0, blocks.rows.shape[1] - len(expected)))
        expected[j - blocks.first[j]] += mean * lacking[j]
        np.testing.assert_allclose(blocks.rows[j], expected, atol=1e-12)


def test_products_of_a_sample_are_those_of_its_hessian():
    design, labels = draw(3_000)
    penalty = penalty_of(design, "groups")
    rng = np.random.default_rng(2)
    w, v = rng.normal(size=(2, design.n_features))
    models = []
    for limits in (ALWAYS, NEVER):
        problem = problem_of(design, labels, limits)
        problem.at(w)
        models.append(problem.quadratic(penalty, thin=2_000))
    products, matrix = models
    assert isinstance(products, ProductModel)
    assert isinstance(matrix, GramModel)
    assert products.sampled
    assert matrix.sampled
    assert not products.exact_diagonal  # of the rare feature
    np.testing.assert_allclose(products.product(v), matrix.hessian @ v, rtol=1e-3, atol=1e-4)


def test_any_number_of_threads_gives_the_same_bits():
    solutions = []
    for n_jobs in (1, 3):
        design, labels = draw(3_000, n_jobs=n_jobs)
        problem = problem_of(design, labels, ALWAYS)
        problem.executor = design.executor
        solutions.append(Newton(tol=1e-6).solve(problem, penalty_of(design, "groups")).w)
    np.testing.assert_array_equal(*solutions)


def test_products_that_take_too_long_give_way_to_a_matrix():
    design, labels = draw()
    penalty = penalty_of(design, "groups", 1e-3)
    few = Limits(fewest_products=0, columns_per_product=150)  # two products
    problem = problem_of(design, labels, few)
    problem.at(np.zeros(design.n_features))
    model = problem.quadratic(penalty)
    assert isinstance(model, ProductModel)
    c = problem.focused_gradient()
    step = model.minimise(penalty, c, np.zeros(design.n_features))
    exact = GramModel(problem.focused_hessian(), accuracy=1e-10)
    expected = exact.minimise(penalty, c, np.zeros(design.n_features))
    np.testing.assert_allclose(step, expected, atol=1e-2 * np.abs(expected).max())
    assert isinstance(problem.quadratic(penalty), GramModel)
