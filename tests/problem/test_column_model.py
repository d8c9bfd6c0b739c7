"""The quadratic model by columns, against the Hessian it stands for; models of sampled rows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from leanrank.designs._sparse_kernels import pick_rows
from leanrank.execution import make_executor
from leanrank.losses.base import Curvature, Labels
from leanrank.losses.domination import DominationLoss
from leanrank.penalties.base import Blocks, Columns
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.hessians import Limits
from leanrank.problem.memory import MemoryProblem
from leanrank.problem.quadratic_models import ColumnModel, GramModel
from leanrank.solvers.newton.solver import Newton

BY_COLUMNS = Limits(fewest_by_columns=0, long_list=1)


def make_problem(seed, n_levels=2, n_queries=2, dtype=np.float64, n_jobs=1, limits=BY_COLUMNS):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(40, 80, n_queries)
    n = int(sizes.sum())
    X = csr_array(random_array((n, 15), density=0.3, random_state=seed, format="csr"))
    loss = DominationLoss()
    labels = Labels(
        y=rng.integers(0, n_levels, n).astype(float),
        query_ptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        sample_weight=rng.integers(0, 3, n).astype(float),
    )
    plan, executor = loss.prepare(labels), make_executor(n_jobs)
    problem = MemoryProblem(X.astype(dtype), loss, plan, executor, limits)
    return problem, rng


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_levels", [2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_it_has_the_minimum_of_the_hessian(seed, n_levels, dtype):
    problem, rng = make_problem(seed, n_levels, dtype=dtype)
    features = np.sort(rng.permutation(15)[:9])
    problem.at(rng.normal(size=15))
    problem.focus(features)
    penalty = ElasticNet(np.full(9, 0.01), np.full(9, 0.02), np.full(9, 0.1))
    model = problem.quadratic(penalty)
    assert isinstance(model, ColumnModel)
    hessian = problem.hessian(problem.block, problem.point.u)
    np.testing.assert_allclose(model.columns.diagonal, np.diag(hessian), rtol=1e-4, atol=1e-7)
    c, w = rng.normal(size=9) * 0.05, rng.normal(size=9)
    exact = GramModel(hessian, accuracy=1e-10).minimise(penalty, c, w)
    found = ColumnModel(model.columns, accuracy=1e-8).minimise(penalty, c, w)
    np.testing.assert_allclose(found, exact, atol=1e-4)


def brute_sample(problem, X, n_picked):
    """Pick heavy rows, others at even steps; scale columns to their squares over all rows."""
    loss, plan, u = problem.loss, problem.plan, problem.point.u
    parts = Curvature.empty(loss, plan)
    loss.curvature(plan, 0, len(plan.query_ptr) - 1, u, parts)
    diag, atoms, aux = parts.diag, parts.atoms, parts.aux
    step = diag.sum() / n_picked
    light = np.where(diag < step, diag, 0.0)
    times = np.diff(np.floor(np.cumsum(light) / step + 0.5), prepend=0.0)
    factor = np.where(diag < step, times * step / np.where(diag > 0, diag, 1.0), 1.0)
    cells = [plan.cell == c for c in range(len(aux))]
    picked, weight = factor[:, None] * atoms, factor * diag
    for cell in cells:
        whole, found = atoms[cell].sum(axis=0), picked[cell].sum(axis=0)
        picked[cell] *= np.divide(whole, found, out=np.ones(2), where=found > 0)
        if weight[cell].any():
            weight[cell] *= diag[cell].sum() / weight[cell].sum()
    whole, found = diag @ X**2, weight @ X**2
    scale = np.sqrt(np.divide(whole, found, out=np.zeros(len(found)), where=found > 0))
    S = X * scale
    sums = np.array([picked[cell].T @ S[cell] for cell in cells])
    left, right = loss.fold(plan, 0, len(plan.query_ptr) - 1, aux, sums)
    hessian = S.T @ (weight[:, None] * S) - left.T @ right - right.T @ left
    ridge = 1e-4 if n_picked <= len(X) else 0.0
    return hessian + np.diag(np.where(found > 0, ridge, 1.0) * whole), np.count_nonzero(factor)


def dense_hessian(columns):
    A = np.zeros((columns.n_rows, len(columns.starts)))
    for j, (begin, end) in enumerate(zip(columns.starts, columns.ends, strict=True)):
        A[columns.rows[begin:end], j] = columns.values[begin:end]
    low_rank = columns.left @ columns.right.T
    return A.T @ A - low_rank - low_rank.T + np.diag(columns.extra)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("n_levels", "n_queries"), [(2, 1), (2, 2), (4, 2)])
@pytest.mark.parametrize("seed", range(3))
def test_a_sample_by_columns_and_by_matrix_is_that_of_brute_force(seed, n_levels, n_queries, dtype):
    for jobs, fewest in ((1, 0), (2, 0), (1, 100), (2, 100)):
        limits = replace(BY_COLUMNS, fewest_by_columns=fewest)
        problem, rng = make_problem(seed, n_levels, n_queries, dtype, jobs, limits)
        X = problem.design.take(np.arange(15)).columns((0, problem.n_rows), 0, 15)
        problem.at(rng.normal(size=15))
        model = problem.quadratic(ElasticNet.build(0.01, 1.0, 15), thin=48)
        expected, n_rows = brute_sample(problem, X, 24)
        assert model.sampled
        assert model.exact_diagonal
        if fewest:
            found = model.hessian
        else:
            columns = model.columns
            assert n_levels > 2 or np.linalg.eigvalsh(expected)[0] > -1e-12
            assert columns.n_rows == n_rows < problem.n_rows
            found = dense_hessian(columns)
            np.testing.assert_allclose(columns.diagonal, np.diag(expected), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
        if jobs == 1:
            bits = found
        else:
            np.testing.assert_array_equal(found, bits)


def test_a_column_without_an_entry_in_the_sample_keeps_its_curvature():
    problem, _ = make_problem(0, n_queries=1, limits=replace(BY_COLUMNS, fewest_by_columns=100))
    X = csr_array(np.eye(problem.n_rows)[:, :15] + 0.0)  # one entry per column
    problem = MemoryProblem(X, problem.loss, problem.plan, None, problem.limits)
    problem.at(np.zeros(15))
    penalty = ElasticNet.build(0.01, 1.0, 15)
    whole, part = (np.diag(problem.quadratic(penalty, thin=n).hessian) for n in (None, 20))
    assert np.all(part[whole > 0] > 0.9 * whole[whole > 0])


def test_rows_of_next_to_no_weight_are_not_picked():
    diag = np.array([1e-310, 1.0, 1e-250, 0.0, 0.5, 1e-300, 0.7])
    cell = np.array([0, 0, 0, 0, 1, 1, 1])
    with np.errstate(over="raise", invalid="raise"):
        rows, weights, atoms = pick_rows(diag, np.column_stack([diag, diag]), cell, 2, 3)
    assert rows.tolist() == [1, 4, 6]
    np.testing.assert_allclose(weights, [1.0, 0.6, 0.6])  # a cell weighs what it did
    np.testing.assert_allclose(atoms, weights[:, None].repeat(2, axis=1))


@pytest.mark.parametrize("n_levels", [2, 4])
def test_a_list_that_is_short_for_its_features_is_thinned_by_columns_and_whole_by_matrix(n_levels):
    for fewest, jobs in ((0, 1), (0, 2), (100, 1)):
        limits = replace(BY_COLUMNS, fewest_by_columns=fewest)
        problem, rng = make_problem(1, n_levels, n_jobs=jobs, limits=limits)
        X = problem.design.take(np.arange(15)).columns((0, problem.n_rows), 0, 15)
        problem.at(10.0 * rng.normal(size=15))
        penalty, n = ElasticNet.build(0.01, 1.0, 15), problem.n_rows
        large, rest, whole = (problem.quadratic(penalty, thin=t) for t in (2 * n, 2 * n + 2, None))
        assert large.sampled
        assert not whole.sampled
        if fewest:
            assert not rest.sampled
            np.testing.assert_array_equal(rest.hessian, whole.hessian)
            continue
        expected, n_picked = brute_sample(problem, X, 100 * n)
        assert rest.sampled
        assert large.columns.n_rows < rest.columns.n_rows == n_picked < whole.columns.n_rows
        np.testing.assert_allclose(dense_hessian(rest.columns), expected, rtol=1e-9, atol=1e-12)


def nearly_collinear(seed, n_rows=40, n=12):
    """Columns that share most of their variance; AᵀA − LᵀR − RᵀL + extra is convex."""
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(n_rows, 1)) + 0.1 * rng.normal(size=(n_rows, n))
    left, right, extra = *(0.01 * rng.normal(size=(2, n, 2))), np.full(n, 0.1)
    starts = np.arange(n, dtype=np.int64) * n_rows
    rows = np.tile(np.arange(n_rows, dtype=np.int32), n)
    diagonal = np.sum(A * A, axis=0) + extra - 2.0 * np.sum(left * right, axis=1)
    columns = Columns(
        A.T.ravel(), rows, starts, starts + n_rows, n_rows, left, right, extra, diagonal
    )
    return columns, rng.normal(size=n), rng.normal(size=n)


@pytest.mark.parametrize("signs", [None, 1])
@pytest.mark.parametrize("seed", range(6))
def test_extrapolation_goes_on_where_sweeps_crawl(seed, signs):
    columns, c, w = nearly_collinear(seed)
    penalty = ElasticNet.build(0.1, 0.9, len(c), None, signs)
    w = penalty.permitted(w)
    hessian = dense_hessian(columns)

    def height(step):
        return 0.5 * step @ hessian @ step + c @ step + penalty.change(w, step)

    slope, x = c.copy(), w.copy()  # the twin: sweeps alone
    penalty.sweep_blocks(Blocks.whole(hessian), slope, x, 0.0, 60)
    found = ColumnModel(columns, accuracy=1e-12).minimise(penalty, c, w)
    exact = GramModel(hessian, accuracy=1e-12).minimise(penalty, c, w)
    # a point that breaks a sign is not kept: then sweeps alone go on
    share = 0.01 if signs is None else 1.0
    assert height(found) - height(exact) <= share * (height(x - w) - height(exact)) + 1e-12
    np.testing.assert_array_equal(penalty.permitted(w + found), w + found)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("signs", [None, 1])
def test_newton_by_columns_reaches_the_same_optimum(l1_ratio, signs):
    problem, _ = make_problem(3, n_levels=3, limits=None)
    penalty = ElasticNet.build(0.01, l1_ratio, 15, None, signs)
    with_matrix = Newton(tol=1e-10).solve(problem, penalty)
    for jobs in (1, 2):
        fresh, _ = make_problem(3, n_levels=3, n_jobs=jobs)
        solution = Newton(tol=1e-9).solve(fresh, penalty)
        assert solution.converged
        np.testing.assert_allclose(solution.w, with_matrix.w, atol=1e-4)


@pytest.mark.parametrize("fewest", [0, 100])
@pytest.mark.parametrize(("n_levels", "per_feature"), [(2, 1), (2, 2), (5, 2)])
def test_newton_with_samples_of_any_size_reaches_the_same_optimum(n_levels, per_feature, fewest):
    found = []
    for jobs, seed in ((1, 5), (2, 5), (1, 6)):
        limits = Limits(fewest_by_columns=fewest, long_list=1)
        problem, _ = make_problem(seed, n_levels, 1, n_jobs=jobs, limits=limits)
        penalty, models, form = ElasticNet.build(1e-3, 1.0, 15), [], problem.quadratic

        def quadratic(part, *, thin, form=form, models=models):
            few = None if thin is None else thin * 15 // 256  # as if a sample had no least size
            models.append(form(part, thin=few))
            return models[-1]

        problem.quadratic = quadratic
        solution = Newton(tol=1e-9, sample_per_feature=2 * per_feature).solve(problem, penalty)
        whole, _ = make_problem(seed, n_levels, 1, limits=None)
        expected = Newton(tol=1e-10).solve(whole, penalty)
        assert solution.converged
        assert models[0].sampled
        assert solution.objective == pytest.approx(expected.objective, rel=1e-8)
        found.append(solution.w)
    np.testing.assert_array_equal(found[0], found[1])


def test_samples_return_where_a_model_of_all_documents_falls_short_as_well():
    problem, _ = make_problem(0, n_queries=1)
    thinned, form = [], problem.quadratic

    def quadratic(part, *, thin):
        thinned.append(thin is not None)
        return form(part, thin=thin and 40)

    problem.quadratic = quadratic
    assert Newton(tol=1e-8).solve(problem, ElasticNet.build(1e-5, 1.0, 15)).converged
    assert thinned[:4] == [True, True, False, True]
    assert not thinned[-1]


@pytest.mark.parametrize(("c", "step"), [(0.3, -5.0), (-0.3, -5.0), (1.5, 0.0), (-1.5, 0.0)])
def test_a_weight_without_curvature_returns_to_zero_where_the_penalty_outweighs_the_slope(c, step):
    columns = Columns(
        np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(1, np.int64),
        np.zeros(1, np.int64), 0, *np.zeros((2, 1, 1)), *np.zeros((2, 1)),
    )  # fmt: skip
    model = ColumnModel(columns, accuracy=0.1)
    found = model.minimise(ElasticNet.build(1.0, 1.0, 1), np.array([c]), np.array([5.0]))
    assert found.tolist() == [step]
