"""The quadratic model by columns, against the Hessian it stands for."""

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from leanrank.execution import make_executor
from leanrank.losses.base import Labels
from leanrank.losses.domination import DominationLoss
from leanrank.penalties.base import Columns
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.column_model import ColumnModel
from leanrank.problem.gram_model import GramModel
from leanrank.problem.memory import Limits, MemoryProblem
from leanrank.solvers.newton.solver import solve_newton

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


def test_rows_left_out_stay_on_the_diagonal():
    problem, rng = make_problem(7)
    problem.at(3 * rng.normal(size=15))
    problem.focus(np.arange(15))
    penalty = ElasticNet.build(0.01, 1.0, 15)
    whole = problem.quadratic(penalty).columns
    problem.focus(np.arange(15))
    part = problem.quadratic(penalty, dropped=0.05).columns
    assert part.n_rows < whole.n_rows
    assert part.extra.max() > 0
    np.testing.assert_allclose(
        part.diagonal, whole.diagonal, rtol=0.2, atol=0.02 * whole.diagonal.max()
    )


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("signs", [None, 1])
def test_newton_by_columns_reaches_the_same_optimum(l1_ratio, signs):
    problem, _ = make_problem(3, n_levels=3, limits=None)
    penalty = ElasticNet.build(0.01, l1_ratio, 15, None, signs)
    with_matrix = solve_newton(problem, penalty, tol=1e-10)
    for jobs in (1, 2):
        fresh, _ = make_problem(3, n_levels=3, n_jobs=jobs)
        solution = solve_newton(fresh, penalty, tol=1e-9)
        assert solution.converged
        np.testing.assert_allclose(solution.w, with_matrix.w, atol=1e-4)


@pytest.mark.parametrize(("c", "step"), [(0.3, -5.0), (-0.3, -5.0), (1.5, 0.0), (-1.5, 0.0)])
def test_a_weight_without_curvature_returns_to_zero_where_the_penalty_outweighs_the_slope(c, step):
    columns = Columns(
        np.zeros(0, np.float32), np.zeros(0, np.int32), np.zeros(1, np.int64),
        np.zeros(1, np.int64), 0, *np.zeros((2, 1, 1)), *np.zeros((2, 1)),
    )  # fmt: skip
    model = ColumnModel(columns, accuracy=0.1)
    found = model.minimise(ElasticNet.build(1.0, 1.0, 1), np.array([c]), np.array([5.0]))
    assert found.tolist() == [step]
