"""Majorise and minimise: a non-convex penalty as a few weighted ℓ1 problems.

The first round is the plain ℓ1 problem, whose solution does not depend on the starting point. Each
further round minimises the loss plus the majorant of the penalty at the previous weights, starting
from them. The majorant equals the penalty there and is nowhere below, so the objective never rises.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import FloatArray
from leanrank.penalties.base import Penalty
from leanrank.penalties.concave import ConcavePenalty
from leanrank.problem.base import Problem
from leanrank.solvers.base import Solution, Solver
from leanrank.solvers.newton.solver import Newton


@dataclass(frozen=True)
class Majorise(Solver):
    """At most ``rounds`` weighted ℓ1 problems.

    ``tol`` and ``max_iter`` are those of each problem. The ``objective`` of the solution is loss +
    penalty, and its ``gap`` that of the last problem. Each round has an entry in ``history``; the
    last one also has ``stationarity``, the largest distance, over the weights, of zero from the
    subdifferential of loss + penalty.

    Attributes
    ----------
    rounds : int
        Largest number of problems, including the plain one. The solver stops earlier when the
        relative decrease of the objective is below ``tol``.
    solver : Solver
        The solver of the ℓ1 problems.
    """

    rounds: int = 10
    solver: Solver = field(default_factory=Newton)

    name: ClassVar[str] = "majorise"
    penalty_needs: ClassVar[tuple[str, ...]] = ("majorant",)

    def solve(self, problem: Problem, penalty: Penalty, w: FloatArray | None = None) -> Solution:
        """Minimise loss + a concave penalty; the first problem starts from weights w or zero."""
        self.check(problem.loss, penalty)
        assert isinstance(penalty, ConcavePenalty)
        solver = replace(self.solver, tol=self.tol, max_iter=self.max_iter)
        inner = solver.solve(problem, penalty.base, w)
        surrogate = penalty.base
        n_iter, objective = 0, np.inf
        best = inner
        history: list[dict[str, Any]] = []
        for at in range(1, self.rounds + 1):
            if at > 1:
                surrogate = penalty.majorant(best.w)
                inner = solver.solve(problem, surrogate, best.w.copy())
            n_iter += inner.n_iter
            reached = inner.objective - surrogate.value(inner.w) + penalty.value(inner.w)
            settled = objective - reached <= self.tol * abs(reached)
            if reached <= objective:  # else the rise is rounding
                best, objective = inner, reached
            entry: dict[str, Any] = {"objective": objective, "gap": inner.gap}
            entry["iterations"] = inner.n_iter
            if settled or at == self.rounds:
                entry["stationarity"] = _stationarity(problem, penalty, best.w)
            self.note(history, best.w, round=at, **entry)
            if settled:
                break
        return replace(best, objective=objective, n_iter=n_iter, history=history)


def _stationarity(problem: Problem, penalty: ConcavePenalty, w: FloatArray) -> float:
    problem.at(w)
    residual = penalty.majorant(w).residual(w, problem.gradient())
    return float(residual[~penalty.excluded].max(initial=0.0))
