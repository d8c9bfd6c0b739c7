"""A quadratic model with a Hessian that is only close to the loss's, checked along its first step.

Documents of similar score are taken together as long as they have similar scores: where few
features have a value, a group may hold documents far apart, and its curvature is many times that of
the loss. Steps would then be so short that the solver gives up.
"""

from __future__ import annotations

from collections.abc import Callable

from leanrank._typing import FloatArray
from leanrank.penalties.base import Penalty
from leanrank.problem.base import QuadraticModel
from leanrank.problem.gram_model import GramModel

MOST_OFF = 2.0
"""Ratio of two curvatures along a step up to which they are close. Wide data stay below 1.2."""


class CheckedModel(QuadraticModel):
    """An approximate model that gives way to the exact one if its curvature is far off.

    Parameters
    ----------
    model : GramModel
    bend : callable
        Computes the curvature of the loss at the present point along a step.
    exact : callable
        Makes the exact model at the present point.
    """

    def __init__(
        self,
        model: GramModel,
        bend: Callable[[FloatArray], float],
        exact: Callable[[], QuadraticModel],
    ) -> None:
        self.model: QuadraticModel = model
        self.sampled, self.exact_diagonal = model.sampled, model.exact_diagonal
        self._hessian: FloatArray | None = model.hessian  # until it is checked
        self._bend, self._exact = bend, exact

    def minimise(self, penalty: Penalty, c: FloatArray, w: FloatArray) -> FloatArray:
        """Return the step of the model, or that of the exact one if this is far off along it."""
        step = self.model.minimise(penalty, c, w)
        if self._hessian is None:
            return step
        modelled, bend = float(step @ self._hessian @ step), self._bend(step)
        self._hessian = None
        if modelled <= MOST_OFF * bend and bend <= MOST_OFF * modelled:
            return step
        self.model, self.sampled, self.exact_diagonal = self._exact(), False, True
        return self.model.minimise(penalty, c, w)

    def damped(self, ridge: FloatArray) -> QuadraticModel:
        """Return the present model with ½ Σ_j ridge_j s_j² added."""
        return self.model.damped(ridge)
