"""How far an objective can still fall: the best dual value that a solver has met."""

from __future__ import annotations

import numpy as np

from leanrank._typing import FloatArray
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem


class Certificate:
    """A lower bound of loss + penalty, raised by every gradient that it is shown.

    With unpenalised features a bound holds for models with the same weights in those features. For
    another model w′ it is lower by at most Σ_j |r_j|·|w_j − w′_j|, r_j the gradient that is left in
    unpenalised feature j. Such a bound belongs to the point where it was taken, so that only the
    latest one counts.

    Parameters
    ----------
    problem : Problem
        Its loss offers ``dual``.
    penalty : Penalty
    """

    def __init__(self, problem: Problem, penalty: Penalty) -> None:
        self.problem = problem
        self.penalty = penalty
        self.best = -np.inf
        self._free = np.flatnonzero(penalty.free & ~penalty.excluded)

    def raise_bound(self, w: FloatArray, c: FloatArray) -> None:
        """Take in the dual value at weights w, where the problem is and its gradient is c."""
        a = self.penalty.dual_scale(c)
        latest = self.problem.dual(a) - self.penalty.conjugate(a * c)
        if len(self._free):
            self.best = latest + a * float(c[self._free] @ w[self._free])
        else:
            self.best = max(self.best, latest)

    def room(self, objective: float, rounding: float = 0.0) -> float:
        """Return how far an objective is above the bound, or the rounding if that is more.

        An objective below the bound shows rounding as well.
        """
        return max(abs(objective - self.best), rounding)

    def gap(self, objective: float, rounding: float = 0.0) -> float:
        """Return the relative duality gap of an objective."""
        return relative(self.room(objective, rounding), objective)


def relative(room: float, objective: float) -> float:
    """Return what is left above a bound as a share of the objective.

    >>> relative(0.5, 2.0), relative(-1e-17, 2.0), relative(0.0, 0.0)
    (0.25, 0.0, 0.0)

    What overflows certifies nothing:

    >>> relative(float("nan"), 2.0)
    inf
    """
    if np.isnan(room) or np.isnan(objective):
        return np.inf
    return float(max(0.0, room) / objective) if objective > 0 else 0.0
