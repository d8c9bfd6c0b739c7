"""The pairwise logistic loss, RankNet's: log(1 + e^{−z}) of every lead z of a winner over a loser.

Short lists are evaluated pair by pair. For long lists of K levels, polynomials in the scores give
the sums to the last digits in O(n log K) time, or O(nK) with an importance of levels. Scores that
are more than 255 apart are evaluated pair by pair, too.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from leanrank._jit import pair_function
from leanrank._typing import FloatArray
from leanrank.losses import _logistic_kernels as kernels
from leanrank.losses._logistic_boxes import SHORT_LIST
from leanrank.losses.base import Evaluated
from leanrank.losses.exponential import by_level
from leanrank.losses.pairs import PairPlan, SmoothPairwiseLoss, edges_of, offset_share


class LogisticLoss(SmoothPairwiseLoss):
    """Σ c_ij log(1 + e^{−(u_i − u_j)}).

    Parameters
    ----------
    importance : None, "ndcg" or array of shape (levels, levels), optional
        Weight of a pair by its levels; see ``importance_tables``.
    """

    name: ClassVar[str] = "logistic"

    def pair(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return φ, φ′ and φ″ at differences of scores z."""
        e = np.exp(-np.abs(z))
        wrong = np.where(z > 0, e, 1.0) / (1.0 + e)  # the probability that the loser wins
        return np.maximum(-z, 0.0) + np.log1p(e), -wrong, e / (1.0 + e) ** 2

    def pair_dual(self, z: FloatArray, a: float) -> FloatArray:
        """Return −φ*(a φ′(z)), the binary entropy of a·|φ′(z)|."""
        s = -a * self.pair(z)[1]
        with np.errstate(divide="ignore", invalid="ignore"):
            heads, tails = s * np.log(s), (1.0 - s) * np.log1p(-s)
        return -np.where(s > 0, heads, 0.0) - np.where(s < 1, tails, 0.0)

    def _evaluate(self, plan: PairPlan, r0: int, r1: int, u: FloatArray, g: FloatArray) -> float:
        return float(kernels.sums(*by_level(plan), r0, r1, u, g, 1.0, _boxes(plan, r0, r1)))

    def _products(
        self, plan: PairPlan, r0: int, r1: int, u: FloatArray, D: FloatArray, out: FloatArray
    ) -> None:
        kernels.products(*by_level(plan), r0, r1, u, D, out, _boxes(plan, r0, r1))

    def dual_at(self, plan: PairPlan, r0: int, r1: int, point: Evaluated, a: float) -> float:
        """Return the dual value where value and score gradient are known."""
        u = point.u
        if plan.edges is not None:
            edges = edges_of(plan, r0, r1)
            value = float(edges.weight @ self.pair_dual(u[edges.winner] - u[edges.loser], a))
        else:
            none = np.zeros(0)
            arguments = *by_level(plan), r0, r1, u, none, a, _boxes(plan, r0, r1)
            value = float(kernels.sums(*arguments)) if a > 0.0 else 0.0
        return value - offset_share(plan, plan.span(r0, r1), point.g, a)

    def pair_slope(self) -> Any:
        """Return the compiled loss and slope of one pair."""
        return pair_function(_slope)


def _boxes(plan: PairPlan, r0: int, r1: int) -> int | None:
    """Return 1 if a list is long enough for boxes, else None, so that they are not compiled."""
    ptr = plan.query_ptr
    return 1 if np.any(ptr[r0 + 1 : r1 + 1] - ptr[r0:r1] > SHORT_LIST) else None


def _slope(z: float, gap: float) -> tuple[float, float]:
    if z > 0.0:
        e = math.exp(-z)
        return math.log1p(e), -e / (1.0 + e)
    e = math.exp(z)
    return math.log1p(e) - z, -1.0 / (1.0 + e)
