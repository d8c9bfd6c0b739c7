"""The quadratic model by columns, against the Hessian it stands for."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

import leanrank.problem.memory as problem_module
from leanrank.execution import make_executor
from leanrank.losses.base import Labels
from leanrank.losses.domination import DominationLoss
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.column_model import ColumnModel
from leanrank.problem.gram_model import minimise_quadratic
from leanrank.problem.memory import Problem
from leanrank.solvers.newton.solver import solve_newton


@pytest.fixture
def by_columns(monkeypatch):
    monkeypatch.setattr(problem_module, "FEWEST_BY_COLUMNS", 0)
    monkeypatch.setattr(problem_module, "LONG_LIST", 1)


def make_problem(seed, n_levels=2, n_queries=2, dtype=np.float64, n_jobs=1):
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
    problem = Problem(X.astype(dtype), loss, loss.prepare(labels), make_executor(n_jobs))
    return problem, rng


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_levels", [2, 4])
@pytest.mark.parametrize("seed", range(4))
def test_it_has_the_minimum_of_the_hessian(by_columns, seed, n_levels, dtype):
    problem, rng = make_problem(seed, n_levels, dtype=dtype)
    features = np.sort(rng.permutation(15)[:9])
    block = problem.design.take(features)
    u = problem.scores(rng.normal(size=15))
    model = problem.quadratic(block, u)
    assert isinstance(model, ColumnModel)
    hessian = problem.hessian(block, u)
    np.testing.assert_allclose(model.diagonal, np.diag(hessian), rtol=1e-4, atol=1e-7)
    c, w = rng.normal(size=9) * 0.05, rng.normal(size=9)
    above, below, ridge = np.full(9, 0.01), np.full(9, 0.02), np.full(9, 0.1)
    exact = minimise_quadratic(hessian, c, w, above, below, ridge, accuracy=1e-10)
    found = model.minimise(c, w, above, below, ridge, accuracy=1e-8)
    np.testing.assert_allclose(found, exact, atol=1e-4)


def test_rows_left_out_stay_on_the_diagonal(by_columns):
    problem, rng = make_problem(7)
    u = problem.scores(3 * rng.normal(size=15))
    whole = problem.quadratic(problem.design.take(np.arange(15)), u)
    part = problem.quadratic(problem.design.take(np.arange(15)), u, dropped=0.05)
    assert part.n_rows < whole.n_rows
    assert part.extra.max() > 0
    np.testing.assert_allclose(
        part.diagonal, whole.diagonal, rtol=0.2, atol=0.02 * whole.diagonal.max()
    )


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("signs", [None, 1])
def test_newton_by_columns_reaches_the_same_optimum(monkeypatch, l1_ratio, signs):
    problem, _ = make_problem(3, n_levels=3)
    penalty = ElasticNet.build(0.01, l1_ratio, 15, None, signs)
    with_matrix = solve_newton(problem, penalty, tol=1e-10)
    monkeypatch.setattr(problem_module, "FEWEST_BY_COLUMNS", 0)
    monkeypatch.setattr(problem_module, "LONG_LIST", 1)
    for jobs in (1, 2):
        fresh, _ = make_problem(3, n_levels=3, n_jobs=jobs)
        solution = solve_newton(fresh, penalty, tol=1e-9)
        assert solution.converged
        np.testing.assert_allclose(solution.w, with_matrix.w, atol=1e-4)
