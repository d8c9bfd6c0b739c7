"""Sums over the violated pairs of a query: value, gradient, products.

The violation of a pair of a winner i and a loser j of a lower level is h = margin − (u_i − u_j), if
that is positive. A query is sorted by score and swept twice, once for losers, once for winners.

Shared arguments: query q owns rows ``query_ptr[q]:query_ptr[q+1]`` and cells
``cell_ptr[q]:cell_ptr[q+1]``; ``win`` and ``lose`` are a document's weights in either role;
``table[table_ptr[q]:table_ptr[q+1]]`` weighs pairs of levels, row the winner's, if it is not empty;
``order`` holds each query's rows as last sorted: working memory of one problem.
"""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel
from leanrank._score_order import sort_scores
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.losses._pair_sweep import sweep_columns, sweep_levels


@kernel
def evaluate(
    query_ptr: IntArray, cell_ptr: IntArray, cell: IntArray, win: FloatArray, lose: FloatArray,
    table: FloatArray, table_ptr: IntArray, order: IntArray, margin: float, power: int, r0: int,
    r1: int, u: FloatArray, g: FloatArray,
) -> float:  # fmt: skip
    """Sum c·h^power over violated pairs and fill its gradient."""
    total = 0.0
    x, level, wins, loses, nodes = query_scratch(query_ptr, cell_ptr, r0, r1, 4)
    lost, won = np.empty(len(x)), np.empty(len(x))
    for q in range(r0, r1):
        begin, end, first = query_ptr[q], query_ptr[q + 1], cell_ptr[q]
        n, n_levels = end - begin, cell_ptr[q + 1] - first
        if n_levels < 2:
            g[begin:end] = 0.0
            continue
        rows = order[begin:end]
        sort_scores(u, begin, rows, x)
        from_below(rows, cell, first, n_levels, win, lose, x, level, wins, loses)
        weights = table[table_ptr[q] : table_ptr[q + 1]]
        sweep_levels(x, level, wins, loses, n, n_levels, weights, True, margin, power, nodes, lost)
        turn_over(n, n_levels, x, level, wins, loses)
        total += sweep_levels(
            x, level, loses, wins, n, n_levels, weights, False, margin, power, nodes, won
        )
        for at in range(n):
            g[rows[at]] = power * (lost[at] - won[n - 1 - at])
    return total


@kernel
def products(
    query_ptr: IntArray, cell_ptr: IntArray, cell: IntArray, win: FloatArray, lose: FloatArray,
    table: FloatArray, table_ptr: IntArray, order: IntArray, margin: float, r0: int, r1: int,
    u: FloatArray, D: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Fill the Hessian of Σ c·h² over violated pairs, times the columns of D.

    D and ``out`` begin at the first row of query r0. Several threads may work on columns of the
    same queries, so ``order`` is not changed.
    """
    width = D.shape[1]
    x, level, wins, loses, nodes = query_scratch(query_ptr, cell_ptr, r0, r1, width + 1)
    d, sums = np.empty((len(x), width)), np.empty((len(x), width))
    start = query_ptr[r0]
    for q in range(r0, r1):
        begin, end, first = query_ptr[q], query_ptr[q + 1], cell_ptr[q]
        n, n_levels = end - begin, cell_ptr[q + 1] - first
        if n_levels < 2:
            out[begin - start : end - start] = 0.0
            continue
        rows = order[begin:end].copy()
        sort_scores(u, begin, rows, x)
        from_below(rows, cell, first, n_levels, win, lose, x, level, wins, loses)
        for at in range(n):
            i = rows[at] - start
            for f in range(width):
                d[at, f] = D[i, f]
                sums[at, f] = 0.0
        weights = table[table_ptr[q] : table_ptr[q + 1]]
        sweep_columns(x, level, wins, loses, n, n_levels, weights, True, margin, nodes, d, sums)
        turn_over(n, n_levels, x, level, wins, loses)
        _reverse(n, d)
        _reverse(n, sums)
        sweep_columns(x, level, loses, wins, n, n_levels, weights, False, margin, nodes, d, sums)
        for at in range(n):
            i = rows[n - 1 - at] - start
            for f in range(width):
                out[i, f] = 2.0 * sums[at, f]


@kernel
def _reverse(n: int, rows: FloatArray) -> None:
    for at in range(n // 2):
        for f in range(rows.shape[1]):
            rows[at, f], rows[n - 1 - at, f] = rows[n - 1 - at, f], rows[at, f]


@kernel
def query_scratch(
    query_ptr: IntArray, cell_ptr: IntArray, r0: int, r1: int, width: int,
) -> tuple[AnyArray, ...]:  # fmt: skip
    longest, levels = 0, 1
    for q in range(r0, r1):
        longest = max(longest, query_ptr[q + 1] - query_ptr[q])
        levels = max(levels, cell_ptr[q + 1] - cell_ptr[q])
    x, wins, loses = np.empty(longest), np.empty(longest), np.empty(longest)
    return x, np.empty(longest, np.int64), wins, loses, np.empty((levels, width))


@kernel
def from_below(
    rows: IntArray, cell: IntArray, first: int, n_levels: int, win: FloatArray, lose: FloatArray,
    x: FloatArray, level: IntArray, wins: FloatArray, loses: FloatArray,
) -> None:  # fmt: skip
    """Fill a query's documents in sorted order for the losers' sweep, scores and levels negated."""
    for at in range(len(rows)):
        x[at] = -x[at]
        level[at] = n_levels - 1 - (cell[rows[at]] - first)
        wins[at], loses[at] = win[rows[at]], lose[rows[at]]


@kernel
def turn_over(
    n: int, n_levels: int, x: FloatArray, level: IntArray, wins: FloatArray, loses: FloatArray,
) -> None:  # fmt: skip
    """Reverse the lists and negate scores and levels."""
    for at in range((n + 1) // 2):
        other = n - 1 - at
        x[at], x[other] = -x[other], -x[at]
        k = n_levels - 1 - level[at]
        level[at] = n_levels - 1 - level[other]
        level[other] = k
        wins[at], wins[other] = wins[other], wins[at]
        loses[at], loses[other] = loses[other], loses[at]
