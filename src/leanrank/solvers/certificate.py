"""How far an objective can still fall: the best dual value that a solver has met."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.problem.memory import Problem


class Certificate:
    """A lower bound of loss + penalty, raised by every gradient that it is shown.

    Parameters
    ----------
    problem : Problem
        Its loss offers ``dual``.
    penalty : ElasticNet
    """

    def __init__(self, problem: Problem, penalty: Any) -> None:
        self.problem = problem
        self.penalty = penalty
        self.best = self.latest = -np.inf
        self._any_free = bool(np.any(penalty.free & ~penalty.excluded))

    def raise_bound(self, u: FloatArray, c: FloatArray) -> float:
        """Take in the dual value at scores u, where c is the loss's gradient in the weights.

        Gives the factor that made the gradient a dual point. While unpenalised features are not at
        their optimum a dual value bounds nothing that lasts, so that with such features only the
        latest one counts.
        """
        a: float = self.penalty.dual_scale(c)
        self.latest = self.problem.dual(u, a) - self.penalty.conjugate(a * c)
        self.best = self.latest if self._any_free else max(self.best, self.latest)
        return a

    def room(self, objective: float) -> float:
        """Give how far an objective is above the bound."""
        above = objective - self.best
        return abs(above) if self._any_free else max(0.0, above)

    def gap(self, objective: float) -> float:
        """Give the relative duality gap of an objective."""
        return relative(self.room(objective), objective)


def relative(room: float, objective: float) -> float:
    """Give what is left above a bound as a share of the objective.

    >>> relative(0.5, 2.0), relative(-1e-17, 2.0), relative(0.0, 0.0)
    (0.25, 0.0, 0.0)
    """
    return float(max(0.0, room) / objective) if objective > 0 else 0.0
