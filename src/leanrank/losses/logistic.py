"""The pairwise logistic loss, RankNet's: log(1 + e^{−z}) of every lead z of a winner over a loser.

Short lists are evaluated pair by pair. Long ones are not: the loss is a smooth function of two
scores, and sums of polynomials give it to the last digits in O(n log K), K levels. That needs pairs
that all weigh the same and scores within 255 of each other; otherwise an evaluation costs O(pairs),
and ``max_pairs`` draws some: once, evenly over all pairs of a query, with weights that make the
expected loss the loss itself.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from leanrank._jit import pair_function
from leanrank._numbers import check_whole
from leanrank._typing import FloatArray
from leanrank.errors import DataWarning
from leanrank.losses import _logistic_kernels as kernels
from leanrank.losses.base import Edges, Labels, Loss, Plan
from leanrank.losses.exponential import by_level
from leanrank.losses.grouped_pairs import group_pairs
from leanrank.losses.pairs import PairPlan, SmoothPairwiseLoss

LONG = 64
"""Number of documents from which a query's Hessian is multiplied in blocks of winners."""

BLOCK_CELLS = 1 << 20
"""Most pairs in such a block."""

MANY_PAIRS = 10**9
"""Number of pairs of different weights above which an evaluation takes seconds: a warning."""


class LogisticLoss(SmoothPairwiseLoss):
    """Σ c_ij log(1 + e^{−(u_i − u_j)}).

    Parameters
    ----------
    importance : None, "ndcg" or array of shape (levels, levels), optional
        Weight of a pair by its levels, lowest first, row the winner's.
    max_pairs : int, optional
        Largest number of pairs per query; of more, so many are drawn. None: all pairs.
    random_state : int, default=0
        Seed of the draw.
    block_rows : int, default=256
        Winners per block in products with the Hessian of a long query, if memory allows.
    """

    name: ClassVar[str] = "logistic"

    def __init__(
        self,
        importance: Any = None,
        max_pairs: int | None = None,
        random_state: int = 0,
        block_rows: int = 256,
    ) -> None:
        super().__init__(importance)
        self.max_pairs = max_pairs
        self.random_state = random_state
        self.block_rows = block_rows

    def prepare(self, labels: Labels) -> PairPlan:
        """Sort each query's documents by level; draw pairs if there are too many."""
        plan = super().prepare(labels)
        if plan.edges is not None:
            return plan
        if self.max_pairs is None:
            _warn_of_many(plan)
            return plan
        most = check_whole("max_pairs", self.max_pairs)
        return with_drawn_pairs(plan, most, np.random.default_rng(self.random_state))

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
        return float(kernels.evaluate(*by_level(plan), r0, r1, u, g))

    def _products(
        self, plan: PairPlan, r0: int, r1: int, u: FloatArray, D: FloatArray, out: FloatArray
    ) -> None:
        first = int(plan.query_ptr[r0])
        short = r0  # the first query not yet done: short ones are done together
        for q in (np.flatnonzero(np.diff(plan.query_ptr[r0 : r1 + 1]) >= LONG) + r0).tolist():
            _loop(plan, short, q, first, u, D, out)
            if not kernels.long_products(*by_level(plan)[1:], q, first, u, D, out):
                _multiply(plan, q, first, u, D, out, self.block_rows)
            short = q + 1
        _loop(plan, short, r1, first, u, D, out)

    def grouped(self, plan: PairPlan) -> tuple[Loss[Any], Plan] | None:
        """Return the approximate Hessian by groups of documents; None where it saves nothing."""
        return group_pairs(plan, math.nan)

    def _dual(self, plan: PairPlan, r0: int, r1: int, u: FloatArray, a: float) -> float:
        return float(kernels.dual(*by_level(plan), r0, r1, u, a))

    def pair_slope(self) -> Any:
        """Return the compiled loss and slope of one pair."""
        return pair_function(_slope)


def _slope(z: float, gap: float) -> tuple[float, float]:
    if z > 0.0:
        e = math.exp(-z)
        return math.log1p(e), -e / (1.0 + e)
    e = math.exp(z)
    return math.log1p(e) - z, -1.0 / (1.0 + e)


def _loop(
    plan: PairPlan, r0: int, r1: int, first: int, u: FloatArray, D: FloatArray, out: FloatArray
) -> None:
    """Fill the products of short queries, pair after pair."""
    if r1 > r0:
        rows = slice(int(plan.query_ptr[r0]) - first, int(plan.query_ptr[r1]) - first)
        kernels.products(*by_level(plan), r0, r1, u, D[rows], out[rows])


def _multiply(
    plan: PairPlan,
    q: int,
    first: int,
    u: FloatArray,
    D: FloatArray,
    out: FloatArray,
    block_rows: int,
) -> None:
    """Fill the products of a long query, some winners against all losers at a time."""
    begin, end = int(plan.query_ptr[q]) - first, int(plan.query_ptr[q + 1]) - first
    columns, total = np.empty((0, 0)), np.zeros((end - begin, D.shape[1]))
    _, *arrays = by_level(plan)
    step = max(1, min(block_rows, BLOCK_CELLS // (end - begin)))
    for low in range(0, end - begin, step):
        high = min(low + step, end - begin)
        bend = np.empty((high - low, high))
        own = kernels.bends(*arrays, q, u, low, high, bend) - first
        if low == 0:
            columns = np.ascontiguousarray(D[own])
        total[low:high] += bend.sum(axis=1)[:, None] * columns[low:high] - bend @ columns[:high]
        total[:high] += bend.sum(axis=0)[:, None] * columns[:high] - bend.T @ columns[low:high]
    out[own] = total


def with_drawn_pairs(plan: PairPlan, most: int, rng: np.random.Generator) -> PairPlan:
    """List the pairs of each query as edges, or ``most`` of them drawn in proportion to weight.

    All pairs of a query laid end to end, each as long as its weight, are cut into ``most`` equal
    parts. A point is drawn in each, and its pair gets the weight of one part. A sum over the drawn
    pairs is then unbiased for the sum over all.
    """
    parts: list[Edges] = []
    sizes = np.zeros(len(plan.query_ptr), np.int64)
    for q in np.flatnonzero(plan.scale):
        n = int(plan.query_ptr[q + 1] - plan.query_ptr[q])
        points = rng.random(min(most, n * n))  # a query with no more pairs needs none
        parts.append(Edges(*kernels.listed(*by_level(plan), q, most, points)))
        sizes[q + 1] = len(parts[-1].winner)
    edges = Edges(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    return replace(plan, edges=edges, edge_ptr=np.cumsum(sizes))


def _warn_of_many(plan: PairPlan) -> None:
    if not len(plan.table):
        return
    sizes = np.diff(plan.row_ptr)
    before = np.cumsum(sizes) - sizes
    first = np.repeat(plan.cell_ptr[:-1], np.diff(plan.cell_ptr))
    pairs = float(np.sum(sizes * (before - before[first]), dtype=np.float64))
    if pairs > MANY_PAIRS:
        warnings.warn(
            f"the logistic loss evaluates {pairs:.1e} pairs at every iteration, because importance "
            "weighs them by level: set max_pairs to draw some of each query, or leave importance "
            "out",
            DataWarning,
            stacklevel=2,
        )
