"""The pairwise exponential loss, RankBoost's: e^{−z} of every lead z of a winner over a loser.

The exponential of a difference is a product, so no loop over pairs is needed: the loss of level k
of a query is e^{W_k + Z_k}, where W_k is the log of Σ win_i e^{−u_i} over level k and Z_k the log
of Σ lose_j e^{u_j} over all lower levels, in O(n) time. Sums are stored as logarithms, so that a
value overflows only if the loss itself does.

Shared arguments of the kernels: query q owns the cells ``cell_ptr[q]:cell_ptr[q+1]`` in ascending
level, cell c holds ``rows[row_ptr[c]:row_ptr[c+1]]``, ``win`` and ``lose`` are a document's weights
in either role, and ``table[table_ptr[q]:table_ptr[q+1]]`` weighs pairs of levels if it is not
empty. E_l is the log of Σ lose_j e^{u_j} over level l; Z_k adds up the levels below k and A_l, from
the W, the levels above l, with the weights of pairs of levels.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.losses._domination_kernels import log_add
from leanrank.losses.pairs import PairPlan, SmoothPairwiseLoss


class ExponentialLoss(SmoothPairwiseLoss):
    """Σ c_ij e^{−(u_i − u_j)}.

    Parameters
    ----------
    importance : None, "ndcg" or array of shape (levels, levels), optional
        Weight of a pair by its levels; see ``importance_tables``.
    """

    name: ClassVar[str] = "exponential"

    def pair(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return φ, φ′ and φ″ at differences of scores z."""
        with np.errstate(over="ignore"):
            e = np.exp(-z)
        return e, -e, e

    def _evaluate(self, plan: PairPlan, r0: int, r1: int, u: FloatArray, g: FloatArray) -> float:
        return float(_value_and_gradient(*by_level(plan), r0, r1, u, g))

    def _products(
        self, plan: PairPlan, r0: int, r1: int, u: FloatArray, D: FloatArray, out: FloatArray
    ) -> None:
        _hessian_products(*by_level(plan), r0, r1, u, D, out)

    def _dual(self, value: Any, leads: Any, a: float) -> Any:
        return a * ((1.0 - math.log(a)) * value - leads) if a > 0.0 else 0.0 * value


def by_level(plan: PairPlan) -> tuple[AnyArray, ...]:
    """Return the leading arguments of kernels that work level by level without sorting scores."""
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


@kernel
def _value_and_gradient(
    query_ptr: IntArray, cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, win: FloatArray,
    lose: FloatArray, table: FloatArray, table_ptr: IntArray, r0: int, r1: int, u: FloatArray,
    g: FloatArray,
) -> float:  # fmt: skip
    value = 0.0
    for q in range(r0, r1):
        first, last = cell_ptr[q], cell_ptr[q + 1]
        g[query_ptr[q] : query_ptr[q + 1]] = 0.0
        if last - first < 2:
            continue
        weights = table[table_ptr[q] : table_ptr[q + 1]]
        W, E = _log_masses(row_ptr, rows, win, lose, first, last, u)
        Z, A = _gathered(E, weights, True), _gathered(W, weights, False)
        for k in range(last - first):
            value += math.exp(W[k] + Z[k])
            for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
                i = rows[at]
                g[i] = _flow(lose[i], u[i] + A[k]) - _flow(win[i], Z[k] - u[i])
    return value


@kernel
def _hessian_products(
    query_ptr: IntArray, cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, win: FloatArray,
    lose: FloatArray, table: FloatArray, table_ptr: IntArray, r0: int, r1: int, u: FloatArray,
    D: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Fill the Hessian times the columns of D; D and ``out`` begin at the first row of query r0."""
    start = query_ptr[r0]
    for q in range(r0, r1):
        first, last = cell_ptr[q], cell_ptr[q + 1]
        out[query_ptr[q] - start : query_ptr[q + 1] - start] = 0.0
        if last - first < 2:
            continue
        weights = table[table_ptr[q] : table_ptr[q + 1]]
        W, E = _log_masses(row_ptr, rows, win, lose, first, last, u)
        Z, A = _gathered(E, weights, True), _gathered(W, weights, False)
        losers = _level_means(row_ptr, rows, lose, 1.0, first, E, u, D, start)
        winners = _level_means(row_ptr, rows, win, -1.0, first, W, u, D, start)
        below = _gathered_means(losers, E, Z, weights, True)
        above = _gathered_means(winners, W, A, weights, False)
        for k in range(last - first):
            for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
                i = rows[at]
                lost, won = _flow(lose[i], u[i] + A[k]), _flow(win[i], Z[k] - u[i])
                for f in range(D.shape[1]):
                    d = D[i - start, f]
                    out[i - start, f] = lost * (d - above[k, f]) + won * (d - below[k, f])


@kernel
def _flow(weight: float, exponent: float) -> float:
    return weight * math.exp(exponent) if weight > 0.0 else 0.0


@kernel
def _log_masses(
    row_ptr: IntArray, rows: IntArray, win: FloatArray, lose: FloatArray, first: int, last: int,
    u: FloatArray,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return W and E of each level of a query."""
    W, E = np.empty(last - first), np.empty(last - first)
    for k in range(last - first):
        lowest, highest = math.inf, -math.inf
        for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
            i = rows[at]
            if win[i] > 0.0:
                lowest = min(lowest, u[i])
            if lose[i] > 0.0:
                highest = max(highest, u[i])
        winners, losers = 0.0, 0.0
        for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
            i = rows[at]
            if win[i] > 0.0:
                winners += win[i] * math.exp(lowest - u[i])
            if lose[i] > 0.0:
                losers += lose[i] * math.exp(u[i] - highest)
        W[k] = math.log(winners) - lowest if winners > 0.0 else -math.inf
        E[k] = math.log(losers) + highest if losers > 0.0 else -math.inf
    return W, E


@kernel
def _gathered(logs: FloatArray, weights: FloatArray, upwards: bool) -> FloatArray:
    """Return the log of the sum over the levels below each level (``upwards``) or above it."""
    n = len(logs)
    out = np.full(n, -math.inf)
    for step in range(1, n):
        k = step if upwards else n - 1 - step
        if len(weights) == 0:
            last = k - 1 if upwards else k + 1
            out[k] = log_add(out[last], logs[last])
        else:
            for other in range(0, k) if upwards else range(k + 1, n):
                weight = weights[k * n + other] if upwards else weights[other * n + k]
                if weight > 0.0:
                    out[k] = log_add(out[k], logs[other] + math.log(weight))
    return out


@kernel
def _gathered_means(
    means: FloatArray, logs: FloatArray, sums: FloatArray, weights: FloatArray, upwards: bool,
) -> FloatArray:  # fmt: skip
    """Return the means of D over the levels of each sum of ``_gathered``."""
    n = len(logs)
    out = np.zeros(means.shape)
    for step in range(1, n):
        k = step if upwards else n - 1 - step
        if sums[k] == -math.inf:
            continue
        if len(weights) == 0:
            last = k - 1 if upwards else k + 1
            share = math.exp(logs[last] - sums[k])
            for f in range(means.shape[1]):
                out[k, f] = (1.0 - share) * out[last, f] + share * means[last, f]
        else:
            for other in range(0, k) if upwards else range(k + 1, n):
                weight = weights[k * n + other] if upwards else weights[other * n + k]
                share = weight * math.exp(logs[other] - sums[k])
                for f in range(means.shape[1]):
                    out[k, f] += share * means[other, f]
    return out


@kernel
def _level_means(
    row_ptr: IntArray, rows: IntArray, weight: FloatArray, sign: float, first: int,
    logs: FloatArray, u: FloatArray, D: FloatArray, start: int,
) -> FloatArray:  # fmt: skip
    """Return the mean of the rows of D over each level, weighted by weight·e^{sign·u}."""
    means = np.zeros((len(logs), D.shape[1]))
    for k in range(len(logs)):
        for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
            i = rows[at]
            if weight[i] > 0.0:
                share = weight[i] * math.exp(sign * u[i] - logs[k])
                for f in range(D.shape[1]):
                    means[k, f] += share * D[i - start, f]
    return means
