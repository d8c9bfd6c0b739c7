"""Surfaces of two features beside curves, as columns of a problem."""

import numpy as np
import pytest

from leanrank.data.ranking_data import RankingData
from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.ramps import ramp_design
from leanrank.designs.surfaces import PER_PAIR, SurfaceDesign
from leanrank.execution import SerialExecutor
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.penalties.groups import GroupPenalty
from leanrank.problem.memory import MemoryProblem
from leanrank.solvers.first_order.proximal import Proximal
from leanrank.solvers.newton.solver import Newton

PAIRS = [(0, 2), (1, 3)]


def made(gaps=False, dtype=np.float64, n_queries=60):
    """Return documents whose utility has a surface of the first and the third feature."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10 * n_queries, 5))
    utility = X[:, 0] + 0.5 * X[:, 1] + 0.6 * X[:, 2] + 0.3 * X[:, 3] + 1.5 * X[:, 0] * X[:, 2]
    y = np.digitize(utility + 0.3 * rng.normal(size=len(X)), [0.0, 1.5])
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    return RankingData(X.astype(dtype), y, np.arange(len(X)) // 10)


def with_surfaces(data):
    ramps = RampColumns.at_quantiles(data.X, 4)
    return SurfaceDesign(ramp_design(data.X, ramps, SerialExecutor()), PAIRS)


def solve(X, data, solver=None):
    """Minimise the logistic loss and a norm per curve and per surface."""
    feature = with_surfaces(data).ramps.feature
    owner = np.append(feature, 5 + np.repeat(np.arange(len(PAIRS)), PER_PAIR))
    factors = np.array([1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 2.0])[owner]
    penalty = GroupPenalty.build(
        0.003, 1.0, len(owner), owner, group_ratio=0.5, factors=factors
    )  # fmt: skip
    loss = get_loss("logistic")
    problem = MemoryProblem(X, loss, loss.prepare(Labels(data.y.astype(float), data.query_ptr)))
    solution = (solver or Newton(tol=1e-8)).solve(problem, penalty)
    assert solution.converged
    return solution, owner


@pytest.mark.parametrize("solver", [Newton(tol=1e-8), Proximal(tol=1e-5, max_iter=20_000)])
@pytest.mark.parametrize("gaps", [False, True])
def test_the_optimum_is_that_of_written_columns(solver, gaps):
    data = made(gaps)
    design = with_surfaces(data)
    ours, owner = solve(design, data)
    n = design.n_features
    written = design.take(np.arange(n)).columns((0, len(data)), 0, n)
    theirs, _ = solve(np.ascontiguousarray(written), data, solver)
    assert ours.objective == pytest.approx(theirs.objective, rel=2e-5)
    np.testing.assert_allclose(ours.w, theirs.w, atol=1e-5 if solver.name == "newton" else 2e-2)
    assert ours.w[owner == 5].any()
    less = design.matvec(ours.w) - written @ ours.w
    np.testing.assert_allclose(less, less[0], atol=1e-9)  # a constant changes no order


def test_float32_has_the_objective_of_its_model():
    narrow = made(dtype=np.float32)
    wide = narrow.replace(X=narrow.X.astype(np.float64))
    one, other = (solve(with_surfaces(data), data)[0] for data in (narrow, wide))
    assert one.objective == pytest.approx(other.objective, rel=1e-5)
