"""The base class of solvers, and their certificate.

A solver minimises the loss of a problem plus a penalty, and declares which operations of both it
needs. The certificate is the best dual value so far, a lower bound of the minimum.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import Callback, FloatArray, require
from leanrank.losses.base import Loss
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem


@dataclass
class Solution:
    """The result of a solver, with its certificate.

    Attributes
    ----------
    w : array
    objective : float
        Loss plus penalty at w.
    gap : float
        Relative duality gap: (objective − best dual value) / objective. The optimum is at least
        ``objective · (1 − gap)``.
    free_residual : float
        Largest remaining gradient in an unpenalised feature, as a share of ‖x_j‖·‖g‖ at the start,
        its upper bound there. The gap holds for models with the same weights in these features.
    n_iter : int
    converged : bool
    history : list of dict
        One entry per iteration.
    """

    w: FloatArray
    objective: float
    gap: float
    free_residual: float
    n_iter: int
    converged: bool
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class Solver(ABC):
    """A method that minimises loss + penalty.

    Attributes
    ----------
    tol : float
        Relative duality gap at which to stop.
    max_iter : int
    callback : callable, optional
        Called with each entry of the history.
    """

    tol: float = 1e-6
    max_iter: int = 100
    callback: Callback | None = None

    name: ClassVar[str]
    loss_needs: ClassVar[tuple[str, ...]] = ("evaluate",)
    penalty_needs: ClassVar[tuple[str, ...]] = ()
    depends_on_scale: ClassVar[bool] = False  # whether standardising features saves many steps
    reads_columns: ClassVar[bool] = False  # whether X must be stored, without curves

    def check(self, loss: Loss[Any], penalty: Penalty) -> None:
        """Check that loss and penalty offer the operations that the solver needs."""
        require(loss, self.name, *self.loss_needs)
        require(penalty, self.name, *self.penalty_needs)

    def note(self, history: list[dict[str, Any]], w: FloatArray, **entry: Any) -> None:
        """Add an entry to the history, with the support of w, and call the callback with it."""
        history.append(entry | {"support": int(np.count_nonzero(w))})
        if self.callback is not None:
            self.callback(history[-1])

    @abstractmethod
    def solve(self, problem: Problem, penalty: Penalty, w: FloatArray | None = None) -> Solution:
        """Minimise loss + penalty, starting from weights w or from zero."""


class Certificate:
    """A lower bound of loss + penalty from dual values.

    With unpenalised features, the bound holds for models with the same weights in these features.
    For another model w′ it is lower by at most Σ_j |r_j|·|w_j − w′_j|, r_j being the remaining
    gradient in unpenalised feature j. As such a bound depends on the point where it was computed,
    only the latest one counts.

    Parameters
    ----------
    problem : Problem
        The problem, whose loss offers ``dual``.
    penalty : Penalty
    """

    def __init__(self, problem: Problem, penalty: Penalty) -> None:
        self.problem = problem
        self.penalty = penalty
        self.best = -np.inf
        self._free = np.flatnonzero(penalty.free & ~penalty.excluded)

    def raise_bound(self, w: FloatArray, c: FloatArray) -> None:
        """Update the bound by the dual value at w, the problem's current point with gradient c."""
        a = self.penalty.dual_scale(c)
        latest = self.problem.dual(a) - self.penalty.conjugate(a * c)
        if len(self._free):
            self.best = latest + a * float(c[self._free] @ w[self._free])
        else:
            self.best = max(self.best, latest)

    def absolute_gap(self, objective: float, rounding: float = 0.0) -> float:
        """Return the distance of an objective from the bound, but at least the rounding.

        An objective can be below the bound by rounding only, which counts as a distance, too.
        """
        return max(abs(objective - self.best), rounding)

    def gap(self, objective: float, rounding: float = 0.0) -> float:
        """Return the relative duality gap of an objective."""
        return relative(self.absolute_gap(objective, rounding), objective)


def relative(gap: float, objective: float) -> float:
    """Return an absolute duality gap as a share of the objective.

    >>> relative(0.5, 2.0), relative(-1e-17, 2.0), relative(0.0, 0.0)
    (0.25, 0.0, 0.0)

    After an overflow the gap is infinite:

    >>> relative(float("nan"), 2.0)
    inf
    """
    if np.isnan(gap) or np.isnan(objective):
        return np.inf
    return float(max(0.0, gap) / objective) if objective > 0 else 0.0
