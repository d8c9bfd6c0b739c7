"""The hinge losses of pairs: the shortfall of a lead, or its square."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from leanrank._jit import pair_function
from leanrank._typing import FloatArray
from leanrank.losses import _pair_kernels as kernels
from leanrank.losses.pairs import PairPlan, PairwiseLoss, SmoothPairwiseLoss, level_arrays, order_of


class MarginLoss(PairwiseLoss):
    """Σ c_ij max(0, margin − (u_i − u_j))^power: one sort of a query's scores and two sweeps.

    Parameters
    ----------
    importance : None, "ndcg" or array of shape (levels, levels), optional
        Weight of a pair by its levels; see ``importance_tables``.
    margin : float, default=1.0
        The lead that is required of every pair; ``Labels.with_margin`` adds one that depends on the
        labels.
    """

    power: ClassVar[int]

    def __init__(self, importance: Any = None, margin: float = 1.0) -> None:
        super().__init__(importance)
        self.margin = margin

    def workspace(self, plan: PairPlan) -> PairPlan:
        """Return the plan with its own order, and without the rows by level, which are not used."""
        order = order_of(replace(plan, order=None))
        return replace(plan, rows=np.zeros(0, dtype=np.int64), order=order)

    def _missing(self, z: FloatArray) -> FloatArray:
        """Return the shortfall of each difference of scores from the margin, at least 0."""
        missing: FloatArray = np.maximum(0.0, self.margin - z)
        return missing

    def _evaluate(self, plan: PairPlan, r0: int, r1: int, u: FloatArray, g: FloatArray) -> float:
        known = *level_arrays(plan), order_of(plan)
        return float(kernels.evaluate(*known, self.margin, self.power, r0, r1, u, g))


class HingeLoss(MarginLoss):
    """Σ c_ij max(0, margin − (u_i − u_j)).

    At the kinks, where a pair counts as satisfied, the gradient is a subgradient. There is no
    curvature. Parameters as for ``MarginLoss``.
    """

    name: ClassVar[str] = "hinge"
    smooth: ClassVar[bool] = False
    power: ClassVar[int] = 1

    def pair(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return φ, φ′ and φ″ at differences of scores z."""
        h = self._missing(z)
        return h, np.where(h > 0, -1.0, 0.0), np.zeros_like(h)

    def pair_slope(self) -> Any:
        """Return the compiled loss and slope of one pair, of margin 1."""
        return pair_function(_hinge)

    def _dual(self, value: Any, leads: Any, a: float) -> Any:
        return a * (value - leads)  # a·margin for each violated pair


def _hinge(z: float, gap: float) -> tuple[float, float]:
    return (1.0 - z, -1.0) if z < 1.0 else (0.0, 0.0)


class SquaredHingeLoss(MarginLoss, SmoothPairwiseLoss):
    """Σ c_ij max(0, margin − (u_i − u_j))². Parameters as for ``MarginLoss``."""

    name: ClassVar[str] = "squared-hinge"
    power: ClassVar[int] = 2
    pair_steepness: ClassVar[float] = 2.0

    def pair(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return φ, φ′ and φ″ at differences of scores z."""
        h = self._missing(z)
        return h * h, -2.0 * h, np.where(h > 0, 2.0, 0.0)

    def _products(
        self, plan: PairPlan, r0: int, r1: int, u: FloatArray, D: FloatArray, out: FloatArray
    ) -> None:
        known = *level_arrays(plan), order_of(plan)
        kernels.products(*known, self.margin, r0, r1, u, D, out)

    def _dual(self, value: Any, leads: Any, a: float) -> Any:
        return a * (2.0 * value - leads) - a * a * value  # 2 a·margin·h − a² h²

    def pair_slope(self) -> Any:
        """Return the compiled loss and slope of one pair, of margin 1."""
        return pair_function(_squared_hinge)


def _squared_hinge(z: float, gap: float) -> tuple[float, float]:
    return ((1.0 - z) ** 2, -2.0 * (1.0 - z)) if z < 1.0 else (0.0, 0.0)
