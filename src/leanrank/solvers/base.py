"""What a solver is: it joins a problem and a penalty, and says what it needs of both."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

from leanrank._part import require
from leanrank._typing import Callback, FloatArray
from leanrank.losses.base import Loss
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem


@dataclass
class Solution:
    """Where a solver stopped, and what it can promise.

    Attributes
    ----------
    w : array
    objective : float
        Loss plus penalty at w.
    gap : float
        Relative duality gap: (objective − best dual value) / objective. The optimum is at least
        ``objective · (1 − gap)``.
    free_residual : float
        Largest gradient that is left in an unpenalised feature, relative to ‖x_j‖·‖g‖ at the start,
        the most that it could be there. The gap compares models with the same weights in such
        features only.
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

    def check(self, loss: Loss[Any], penalty: Penalty) -> None:
        """Check before any work that both parts offer what the solver needs."""
        require(loss, self.name, *self.loss_needs)
        require(penalty, self.name, *self.penalty_needs)

    def note(self, history: list[dict[str, Any]], entry: dict[str, Any]) -> None:
        """Add an entry to the history, and call the callback with it."""
        history.append(entry)
        if self.callback is not None:
            self.callback(entry)

    @abstractmethod
    def solve(self, problem: Problem, penalty: Penalty, w: FloatArray | None = None) -> Solution:
        """Minimise from weights w, or from zero."""
