"""The pairwise hinge loss: linear in what a winner lacks of its margin over a loser."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from leanrank._jit import pair_function
from leanrank._typing import FloatArray
from leanrank.losses import _pair_kernels as kernels
from leanrank.losses.pairs import PairPlan, PairwiseLoss, level_arrays, scratch_of


class MarginLoss(PairwiseLoss):
    """Σ c_ij max(0, margin − (u_i − u_j))^power: one sort of a query's scores and two sweeps.

    Parameters
    ----------
    importance : None, "ndcg" or array of shape (levels, levels), optional
        Weight of a pair by its levels, lowest first, row the winner's.
    margin : float, default=1.0
        A margin that depends on the labels is an offset in addition.
    """

    power: ClassVar[int]

    def __init__(self, importance: Any = None, margin: float = 1.0) -> None:
        super().__init__(importance)
        self.margin = margin

    def workspace(self, plan: PairPlan) -> PairPlan:
        """Return the plan with scratch of its own, and without the rows by level: nobody asks."""
        scratch = scratch_of(replace(plan, scratch=None))
        return replace(plan, rows=np.zeros(0, dtype=np.int64), scratch=scratch)

    def _missing(self, z: FloatArray) -> FloatArray:
        """Return what each difference of scores lacks of the margin."""
        missing: FloatArray = np.maximum(0.0, self.margin - z)
        return missing

    def _evaluate(self, plan: PairPlan, r0: int, r1: int, u: FloatArray, g: FloatArray) -> float:
        known = *level_arrays(plan), *scratch_of(plan)
        return float(kernels.evaluate(*known, self.margin, self.power, r0, r1, u, g))

    def _sums(self, plan: PairPlan, r0: int, r1: int, u: FloatArray) -> tuple[float, float]:
        """Sum c·missing^power and c·missing^(power−1) over the violated pairs."""
        known = *level_arrays(plan), *scratch_of(plan)
        total, below = kernels.totals(*known, self.margin, self.power, r0, r1, u)
        return float(total), float(below)


class HingeLoss(MarginLoss):
    """Σ c_ij max(0, margin − (u_i − u_j)).

    The gradient is a subgradient at the kinks, where a pair counts as satisfied; there is no
    curvature. Parameters as for ``MarginLoss``.
    """

    name: ClassVar[str] = "hinge"
    smooth: ClassVar[bool] = False
    power: ClassVar[int] = 1

    def pair(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return φ, φ′ and φ″ at differences of scores z."""
        h = self._missing(z)
        return h, np.where(h > 0, -1.0, 0.0), np.zeros_like(h)

    def pair_dual(self, z: FloatArray, a: float) -> FloatArray:
        """Return −φ*(a φ′(z)) = a·margin for each violated pair."""
        return np.where(z < self.margin, a * self.margin, 0.0)

    def pair_slope(self) -> Any:
        """Return the compiled loss and slope of one pair, of margin 1."""
        return pair_function(_slope)

    def _dual(self, plan: PairPlan, r0: int, r1: int, u: FloatArray, a: float) -> float:
        return a * self.margin * self._sums(plan, r0, r1, u)[1]


def _slope(z: float, gap: float) -> tuple[float, float]:
    return (1.0 - z, -1.0) if z < 1.0 else (0.0, 0.0)
