"""The pairwise hinge: winners should lead losers by a margin, or pay what is missing."""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from leanrank._typing import FloatArray
from leanrank.losses import _pair_kernels as kernels
from leanrank.losses.pairs import PairPlan, PairwiseLoss, level_arrays


class HingeLoss(PairwiseLoss):
    """Σ c_ij max(0, margin − (u_i − u_j)).

    A query costs one sort of its scores and two sweeps. The gradient is a subgradient at the kinks,
    where a pair counts as satisfied; there is no curvature.

    Parameters
    ----------
    importance : None, "ndcg" or array of shape (levels, levels), optional
        What a pair weighs by its levels, lowest first, row the winner's.
    margin : float, default=1.0
        A margin by difference of labels is an offset beside it.
    """

    name: ClassVar[str] = "hinge"

    def __init__(self, importance: Any = None, margin: float = 1.0) -> None:
        super().__init__(importance)
        self.margin = margin

    def pair(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Give φ, φ′ and φ″ at differences of scores z."""
        h: FloatArray = np.maximum(0.0, self.margin - z)
        return h, np.where(h > 0, -1.0, 0.0), np.zeros_like(h)

    def pair_dual(self, z: FloatArray, a: float) -> FloatArray:
        """Give −φ*(a φ′(z)) = a·margin for each violated pair."""
        return np.where(z < self.margin, a * self.margin, 0.0)

    def _evaluate(self, plan: PairPlan, r0: int, r1: int, u: FloatArray, g: FloatArray) -> float:
        known = plan.seen, plan.memo
        return float(kernels.evaluate(*level_arrays(plan), *known, self.margin, 1, r0, r1, u, g))

    def _dual(self, plan: PairPlan, r0: int, r1: int, u: FloatArray, a: float) -> float:
        known = plan.seen, plan.memo
        _, violated = kernels.totals(*level_arrays(plan), *known, self.margin, 1, r0, r1, u)
        return float(a * self.margin * violated)
