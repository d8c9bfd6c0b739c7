"""Coordinate descent on a quadratic bound (Fig. 1.1 of Stevens et al. 2013), for many queries.

For each feature in turn, compute the gradient of the loss, minimise a quadratic bound of the loss,
with a global bound β on the curvature, plus the penalty, and update the scores. The time per
feature is linear in the documents. The method is monotone but slow; it serves as the published
algorithm and as a reference.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import check_choice
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem
from leanrank.solvers.base import Certificate, Solution, Solver

RISE = 1e-10
"""Relative rise of the objective that cannot be due to rounding."""


@dataclass(frozen=True)
class BoundDescent(Solver):
    """Coordinate descent on a bound, in one thread.

    Sweeps never raise the objective except by rounding. If it rises, the slopes have no precision
    left, and the previous weights are returned as not converged.

    Attributes
    ----------
    bound : {"range", "paper"}
        β from (max − min)²/4 of the feature over each query, or from max x² as printed.
    check_every : int
        Sweeps between two duality gaps.
    """

    max_iter: int = 1_000
    bound: str = "range"
    check_every: int = 10

    name: ClassVar[str] = "bound-cd"
    loss_needs: ClassVar[tuple[str, ...]] = ("term_mass", "compiled", "dual")
    penalty_needs: ClassVar[tuple[str, ...]] = ("coordinate_table",)
    reads_columns: ClassVar[bool] = True

    def solve(self, problem: Problem, penalty: Penalty, w: FloatArray | None = None) -> Solution:
        """Minimise loss + penalty by sweeps, to a relative duality gap of ``tol``."""
        check_choice("bound", self.bound, ("range", "paper"))
        self.check(problem.loss, penalty)
        w = np.zeros(problem.n_features) if w is None else penalty.permitted(w)
        beta = problem.curvature_bounds(paper=self.bound == "paper")
        w[(beta <= 0.0) & ~penalty.free] = 0.0  # the loss does not depend on them
        certificate = Certificate(problem, penalty)
        value = problem.at(w)
        free_scale = problem.gradient_scale()
        n_iter = 0
        history: list[dict[str, Any]] = []
        before: Solution | None = None
        while True:
            c = problem.gradient()
            objective = value + penalty.value(w)
            certificate.raise_bound(w, c)
            gap = certificate.gap(objective, problem.rounding(w, objective))
            free_residual = penalty.free_residual(w, c, free_scale)
            self.note(history, w, iteration=n_iter, objective=objective, gap=gap)
            if before is not None and objective > before.objective * (1.0 + RISE):
                return replace(before, n_iter=n_iter, history=history)
            converged = gap <= self.tol and free_residual <= self.tol
            before = Solution(w.copy(), objective, gap, free_residual, n_iter, converged, history)
            if converged or n_iter >= self.max_iter:
                return before
            sweeps = min(self.check_every, self.max_iter - n_iter)
            value = problem.sweep(penalty, beta, w, sweeps)
            n_iter += sweeps
