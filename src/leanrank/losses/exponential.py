"""The pairwise exponential loss, RankBoost's: e^{−z} of every lead z of a winner over a loser.

The exponential of a difference is a product, so levels need no loop over pairs: the loss of a
query's level k is e^{W_k + Z_k}, W_k the log of its winners' Σ win_i e^{−u_i} and Z_k that of the
losers' Σ lose_j e^{u_j} over all lower levels, O(n) in all. Sums are kept as logarithms: a value
overflows only if the loss itself does.
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from leanrank._typing import AnyArray, FloatArray
from leanrank.losses import _exponential_kernels as kernels
from leanrank.losses.pairs import PairPlan, SmoothPairwiseLoss


class ExponentialLoss(SmoothPairwiseLoss):
    """Σ c_ij e^{−(u_i − u_j)}.

    Parameters
    ----------
    importance : None, "ndcg" or array of shape (levels, levels), optional
        Weight of a pair by its levels, lowest first, row the winner's.
    """

    name: ClassVar[str] = "exponential"

    def pair(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return φ, φ′ and φ″ at differences of scores z."""
        with np.errstate(over="ignore"):
            e = np.exp(-z)
        return e, -e, e

    def pair_dual(self, z: FloatArray, a: float) -> FloatArray:
        """Return −φ*(a φ′(z)) = s − s log s at s = a e^{−z}."""
        if a == 0.0:
            return np.zeros_like(z)
        with np.errstate(over="ignore"):
            return a * np.exp(-z) * (1.0 - math.log(a) + z)

    def _evaluate(self, plan: PairPlan, r0: int, r1: int, u: FloatArray, g: FloatArray) -> float:
        return float(kernels.evaluate(*by_level(plan), r0, r1, u, g))

    def _products(
        self, plan: PairPlan, r0: int, r1: int, u: FloatArray, D: FloatArray, out: FloatArray
    ) -> None:
        kernels.products(*by_level(plan), r0, r1, u, D, out)

    def _dual(self, plan: PairPlan, r0: int, r1: int, u: FloatArray, a: float) -> float:
        if a == 0.0:
            return 0.0
        value, leads = kernels.totals(*by_level(plan), r0, r1, u)
        return float(a * ((1.0 - math.log(a)) * value + leads))


def by_level(plan: PairPlan) -> tuple[AnyArray, ...]:
    """Return the arguments of kernels that go level by level and do not sort scores."""
    return (
        plan.query_ptr,
        plan.cell_ptr,
        plan.row_ptr,
        plan.rows,
        plan.win,
        plan.lose,
        plan.table,
        plan.table_ptr,
    )
