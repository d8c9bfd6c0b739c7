"""FTRL as a solver of loss + ℓ1: passes over the queries, stopped by a duality gap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leanrank._part import require
from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.designs.dense import DenseDesign
from leanrank.designs.sparse import SparseDesign
from leanrank.errors import InputError
from leanrank.losses.base import Labels, Loss
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem
from leanrank.problem.memory import MemoryProblem
from leanrank.solvers.base import Certificate, Solution, Solver
from leanrank.solvers.sampling.ftrl import (
    FTRLRule,
    FTRLState,
    QueryBatches,
    ftrl_pass,
    make_batches,
)


@dataclass(frozen=True)
class FTRL(Solver):
    """Passes over the queries, in another order each; the best pass is the answer.

    The documents are in memory, dense or sparse, and the penalty is an ℓ1 part only, the same for
    every feature. ``max_iter`` is the largest number of passes.
    """

    tol: float = 1e-3
    max_iter: int = 1_000

    name: ClassVar[str] = "ftrl"
    loss_needs: ClassVar[tuple[str, ...]] = ("evaluate", "dual")
    penalty_needs: ClassVar[tuple[str, ...]] = ("coordinate_table",)
    reads_columns: ClassVar[bool] = True
    state_type: ClassVar[type | None] = FTRLState

    def batches(self, X: Matrix, labels: Labels, loss: Loss[Any]) -> QueryBatches:
        """Prepare whole queries of a stream."""
        return make_batches(X, labels, loss)

    def begin(self, penalty: Penalty, n_features: int, seed: int = 0) -> FTRLState:
        """Return the state before the first step."""
        return FTRLState.start(FTRLRule(l1_strength(penalty), per_step=True), n_features, seed)

    def advance(self, state: FTRLState, batches: QueryBatches, order: IntArray) -> float:
        """Learn from queries in turn; return their mean loss before each step."""
        return ftrl_pass(state, batches, order)

    def solve(self, problem: Problem, penalty: Penalty, w: FloatArray | None = None) -> Solution:
        """Minimise loss + alpha·‖w‖₁; ``w`` is not used: a run begins at zero."""
        del w
        self.check(problem.loss, penalty)
        state = self.begin(penalty, problem.n_features)
        if not isinstance(problem, MemoryProblem):
            raise InputError(
                "the solver 'ftrl' needs all documents in memory: use solver='newton', or "
                "MinBatSRank"
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
            elif not penalty.free.any():  # or a bound belongs to its point
                certificate.raise_bound(latest, c)
            gap = certificate.gap(objective, problem.rounding(latest, reached))
            support = int(np.count_nonzero(best))
            entry = {"iteration": n_iter, "objective": objective, "gap": gap, "support": support}
            self.note(history, entry)
            converged = gap <= self.tol and free_residual <= self.tol
            if converged or n_iter == self.max_iter:
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
