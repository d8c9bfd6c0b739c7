"""FTRL as a solver of loss + ℓ1: passes over the queries, stopped by a duality gap."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._part import require
from leanrank._typing import Callback, FloatArray
from leanrank.designs.dense import DenseDesign
from leanrank.designs.sparse import SparseDesign
from leanrank.errors import InputError
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem
from leanrank.problem.memory import MemoryProblem
from leanrank.solvers.base import Solution
from leanrank.solvers.certificate import Certificate
from leanrank.solvers.sampling.ftrl import FTRLRule, FTRLState, QueryBatches, ftrl_pass


def solve_ftrl(
    problem: Problem,
    penalty: Penalty,
    *,
    w: FloatArray | None = None,
    tol: float = 1e-3,
    max_iter: int = 1_000,
    callback: Callback | None = None,
) -> Solution:
    """Minimise loss + alpha·‖w‖₁ by passes over the queries, in another order each, from zero.

    The best pass is the answer. ``w`` is not used: a run has no other beginning than zero.

    Parameters
    ----------
    problem : Problem
        In memory, dense or sparse; its loss offers a dual value.
    penalty : ElasticNet
        Only an ℓ1 part, the same for every feature.
    w : array, optional
    tol : float
    max_iter : int
        Largest number of passes.
    callback : callable, optional
        Called with each entry of the history, one per pass.
    """
    del w
    require(problem.loss, "ftrl", "dual")
    state = FTRLState.start(FTRLRule(l1_strength(penalty), per_step=True), problem.n_features)
    if not isinstance(problem, MemoryProblem):
        raise InputError(
            "the solver 'ftrl' needs all documents in memory: use solver='newton', or MinBatSRank"
        )
    batches = _batches(problem)
    certificate = Certificate(problem, penalty)
    best, objective, free_residual, n_iter = np.zeros(problem.n_features), np.inf, np.inf, 0
    problem.at(best)
    free_scale = problem.gradient_scale()
    history: list[dict[str, Any]] = []
    while True:
        latest = state.weights()
        reached = problem.at(latest) + penalty.value(latest)
        c = problem.gradient()
        if reached < objective:
            best, objective = latest, reached
            free_residual = penalty.free_residual(best, c, free_scale)
            certificate.raise_bound(best, c)
        elif not penalty.free.any():  # otherwise a bound belongs to the point where it was taken
            certificate.raise_bound(latest, c)
        gap = certificate.gap(objective, problem.rounding(latest, reached))
        support = int(np.count_nonzero(best))
        history.append(
            {"iteration": n_iter, "objective": objective, "gap": gap, "support": support}
        )
        if callback is not None:
            callback(history[-1])
        converged = gap <= tol and free_residual <= tol
        if converged or n_iter == max_iter:
            return Solution(best, objective, gap, free_residual, n_iter, converged, history)
        order = np.random.default_rng(n_iter).permutation(batches.active)
        ftrl_pass(state, batches, order)
        n_iter += 1


def l1_strength(penalty: Penalty) -> float:
    """Return alpha of a penalty alpha·‖w‖₁; reject any other."""
    require(penalty, "ftrl", "coordinate_table")
    above, below, ridge = penalty.coordinate_table()
    strengths = np.unique(np.concatenate([above, below]))
    if len(strengths) != 1 or ridge.any() or not np.isfinite(strengths[0]):
        raise InputError(
            "the solver 'ftrl' takes an ℓ1 penalty that is the same for all features: use "
            "penalty='l1' without signs and penalty_factors, or choose another solver"
        )
    return float(strengths[0])


def _batches(problem: MemoryProblem) -> QueryBatches:
    design, plan = problem.design, problem.plan
    X: Any
    if isinstance(design, DenseDesign):
        X = design.X
    elif isinstance(design, SparseDesign):
        from scipy.sparse import csr_array

        X = csr_array(design.rows, shape=(design.n_rows, design.n_features))
    else:
        raise InputError("the solver 'ftrl' takes dense or sparse features: choose another solver")
    active = np.flatnonzero(plan.scale)
    factor = np.full(len(plan.scale), float(len(active)))  # so that the mean step is the gradient
    return QueryBatches(X, problem.loss, plan, plan.query_ptr, factor, active, plan.offset)
