"""XᵀHX for the squared hinge and a dense X, without storing HX.

H is a Laplacian, degrees less A less Aᵀ, with A from winners to losers: so XᵀHX is twice the
symmetric part of Xᵀ(½ degrees X − AX), and one sweep over the winners gives the rows of AX. They
are multiplied in small batches while they are in cache. The first row of a query is subtracted from
its rows, which does not change XᵀHX.
"""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.losses._pair_kernels import from_below, query_scratch, turn_over
from leanrank.losses._pair_sweep import read_columns, sweep_levels
from leanrank.losses._score_order import sort_scores

BATCH = 256
"""Rows multiplied at once."""

MANY_LEVELS, LEVEL_GROUPS = 1_024, 256
"""Above so many levels, neighbours are merged into so many groups.

Pairs within a group, about one in a hundred, are left out unless the exact Hessian is requested:
an approximate Hessian only sets the direction of a step, and its sums fit a cache."""


@kernel
def gram(
    query_ptr: IntArray, cell_ptr: IntArray, cell: IntArray, win: FloatArray, lose: FloatArray,
    table: FloatArray, table_ptr: IntArray, order: IntArray, margin: float, r0: int, r1: int,
    u: FloatArray, X: AnyArray, first_column: int, last_column: int, exact: bool,
) -> FloatArray:  # fmt: skip
    """Return columns [first_column, last_column) of Xᵀ(½ degrees X − AX); X from r0's first row on.

    Parameters as for the other kernels of pairs.
    """
    features, width = X.shape[1], last_column - first_column
    half, product = np.zeros((features, width)), np.empty((features, width))
    left, right = np.empty((BATCH, features)), np.empty((BATCH, width))
    row, found = np.empty(width), np.empty(width)
    filled = 0
    x, level, wins, loses, nodes = query_scratch(query_ptr, cell_ptr, r0, r1, 4)
    lost, won = np.empty(len(x)), np.empty(len(x))
    sums = np.empty((len(nodes), width + 1))
    start = query_ptr[r0]
    for q in range(r0, r1):
        begin, end, first = query_ptr[q], query_ptr[q + 1], cell_ptr[q]
        n, n_levels = end - begin, cell_ptr[q + 1] - first
        if n_levels < 2:
            continue
        rows = order[begin:end].copy()  # other threads may do other columns
        sort_scores(u, begin, rows, x)
        from_below(rows, cell, first, n_levels, win, lose, x, level, wins, loses)
        weights = table[table_ptr[q] : table_ptr[q + 1]]
        if n_levels > MANY_LEVELS and not exact:
            for at in range(n):
                level[at] = level[at] * LEVEL_GROUPS // n_levels
            n_levels = LEVEL_GROUPS
        sweep_levels(x, level, wins, loses, n, n_levels, weights, True, margin, 1, nodes, lost)
        turn_over(n, n_levels, x, level, wins, loses)
        sweep_levels(x, level, loses, wins, n, n_levels, weights, False, margin, 1, nodes, won)
        sums[:n_levels] = 0.0
        anchor = X[begin - start]
        ahead = 0
        for at in range(n):
            while ahead < n and margin - (x[at] - x[ahead]) > 0.0:
                k = level[ahead]
                if loses[ahead] != 0.0 and k < n_levels - 1:
                    there = X[rows[n - 1 - ahead] - start]
                    for f in range(width):
                        row[f] = loses[ahead] * (
                            np.float64(there[first_column + f]) - anchor[first_column + f]
                        )
                    if len(weights) > 0:
                        _add_row(sums[k], row, loses[ahead])
                    else:
                        k += 1
                        while k < n_levels:
                            _add_row(sums[k], row, loses[ahead])
                            k += k & -k
                ahead += 1
            degree = 0.5 * (won[at] + lost[n - 1 - at])
            if degree == 0.0:
                continue
            here = X[rows[n - 1 - at] - start]
            for f in range(features):
                left[filled, f] = np.float64(here[f]) - anchor[f]
            found[:] = 0.0
            if wins[at] != 0.0 and level[at] > 0:
                read_columns(sums, level[at], n_levels, weights, False, found)
            for f in range(width):
                right[filled, f] = degree * left[filled, first_column + f] - wins[at] * found[f]
            filled += 1
            if filled == BATCH:
                np.dot(left.T, right, product)
                half += product
                filled = 0
    if filled > 0:
        left[filled:] = 0.0
        right[filled:] = 0.0
        np.dot(left.T, right, product)
        half += product
    return half


@kernel
def _add_row(node: FloatArray, row: AnyArray, weight: float) -> None:
    for f in range(len(row)):
        node[f] += row[f]
    node[len(row)] += weight
