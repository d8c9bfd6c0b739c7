"""The joint between a loss on documents and a solver on weights.

A solver sees weights, gradients per feature, small quadratic models and scalars. Whatever has one
entry per document (scores, score gradients, curvature, columns) stays behind the problem, with the
documents. So the same solver runs wherever the documents are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import feature_name
from leanrank.errors import InputError
from leanrank.losses.base import Loss
from leanrank.penalties.base import Penalty

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Relative error of a sum of many terms."""


class QuadraticModel(ABC):
    """A quadratic in the weights of a working set, around a point.

    Attributes
    ----------
    lasting : bool
        Whether the model can serve again at a point nearby.
    sampled, exact_diagonal : bool
        Whether a sample of the documents represents all, but for the diagonal.
    """

    lasting: ClassVar[bool] = True
    sampled: bool = False
    exact_diagonal: bool = True

    @abstractmethod
    def minimise(self, penalty: Penalty, c: FloatArray, w: FloatArray) -> FloatArray:
        """Return the step s that minimises ½ sᵀHs + cᵀs + penalty(w + s), roughly."""

    @abstractmethod
    def damped(self, ridge: FloatArray) -> QuadraticModel:
        """Return the model with ½ Σ_j ridge_j s_j² added, which keeps steps short."""


class Problem(ABC):
    """Minimise over w a prepared loss of the scores Xw − offset.

    A problem is at one point at a time. ``at``, ``accept`` and ``sweep`` move it; all else is asked
    at the point. A solver starts with ``at``, so that one problem serves one solver after the
    other. Until it calls ``focus``, the working set is all features.

    Attributes
    ----------
    loss : Loss
    n_rows, n_features : int
    """

    loss: Loss[Any]
    n_rows: int
    n_features: int

    @abstractmethod
    def at(self, w: FloatArray) -> float:
        """Move to weights w; return the loss there."""

    @abstractmethod
    def gradient(self) -> FloatArray:
        """Return the loss's gradient in all weights."""

    @abstractmethod
    def dual(self, a: float) -> float:
        """Return the dual value at the feasible point that a times the score gradient defines."""

    @property
    @abstractmethod
    def norms(self) -> tuple[FloatArray, FloatArray]:
        """Length of each column, and of the numbers that its products add up."""

    @property
    @abstractmethod
    def score_slope(self) -> float:
        """Length of the score gradient."""

    def rounding(self, w: FloatArray, value: float) -> float:
        """Estimate the rounding in a value and the gradient: what their sums add up, times ε."""
        terms = float(np.abs(w) @ self.norms[1]) * self.score_slope
        return ROUNDING * (abs(value) + terms)

    def gradient_scale(self) -> FloatArray:
        """Return the largest possible gradient of each feature for this score gradient."""
        with np.errstate(over="ignore"):
            scale = self.norms[0] * self.score_slope
        if not np.isfinite(scale).all():
            raise InputError(
                f"feature {feature_name(int(np.argmin(np.isfinite(scale))))} has values too large "
                "for products with them: bring features to a smaller scale"
            )
        return np.where(scale > 0, scale, 1.0)

    @property
    @abstractmethod
    def value_at_zero(self) -> float:
        """The loss of a model without weights, the reference for a loss that vanishes."""

    @abstractmethod
    def focus(self, features: IntArray) -> None:
        """Choose the features of the working set and bring their columns together."""

    @abstractmethod
    def focused_gradient(self) -> FloatArray:
        """Return the loss's gradient in the weights of the working set."""

    @abstractmethod
    def quadratic(self, penalty: Penalty, *, thin: int | None = None) -> QuadraticModel:
        """Return a model of the loss in the weights of the working set, fit for a penalty.

        Parameters
        ----------
        penalty : Penalty
            The one that the model will be minimised with.
        thin : int, optional
            Use a sample of about this many documents, if it shows every column.
        """

    @abstractmethod
    def focused_hessian(self) -> FloatArray:
        """Return the loss's exact Hessian in the weights of the working set."""

    @abstractmethod
    def try_step(self, step: FloatArray, t: float) -> float:
        """Return the loss after t times a step of the working set; the point stays."""

    @abstractmethod
    def directional_derivative(self) -> float:
        """Return the derivative of the loss along the step where ``try_step`` looked last."""

    @abstractmethod
    def curvature_along_step(self) -> float:
        """Return the second derivative there; 0 where the loss has none."""

    @abstractmethod
    def accept(self) -> None:
        """Move to where ``try_step`` looked last."""

    def curvature_bounds(self, *, paper: bool = False) -> FloatArray:
        """Bound the loss's curvature in each weight, for any scores.

        From (max − min)²/4 of the feature over each query, or as printed in the paper from max x².
        """
        raise InputError("coordinate descent needs all documents in memory: use solver='newton'")

    def sweep(self, penalty: Penalty, bounds: FloatArray, w: FloatArray, times: int) -> float:
        """Lower one weight of w after the other by its bound, in place; return the loss there."""
        raise InputError("coordinate descent needs all documents in memory: use solver='newton'")
