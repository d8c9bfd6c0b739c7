"""Sums over the violated pairs of a query by one sort and two sweeps.

A pair of a winner i and a loser j of a lower level is violated by h = margin − (u_i − u_j) > 0.
Going down the sorted scores, the losers that violate a given winner only grow in number, and so
does every h: the sums of 1, h and h² over them are carried along by adding what is positive, never
by subtracting, so nothing cancels however large the scores are. The sums are kept by level, in a
Fenwick tree (a document then costs the logarithm of the number of levels) or, where pairs of levels
weigh differently, in a plain table. The losers' sums are the same sweep seen from below.

Shared arguments: query q owns rows ``query_ptr[q]:query_ptr[q+1]`` and cells
``cell_ptr[q]:cell_ptr[q+1]``; ``win`` and ``lose`` are what a document weighs in either role;
``table[table_ptr[q]:table_ptr[q+1]]`` weighs pairs of levels, row the winner's, if it is not empty;
``order`` holds each query's rows as last sorted.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel


@kernel
def evaluate(
    query_ptr, cell_ptr, cell, win, lose, table, table_ptr, order, margin, power, r0, r1, u, g
):
    """Sum c·h^power and c·h^(power−1) over violated pairs, and fill the gradient of the first."""
    total, below = 0.0, 0.0
    x, level, rows, sums, nodes = _scratch(query_ptr, cell_ptr, r0, r1, 4)
    for q in range(r0, r1):
        begin, end, first = query_ptr[q], query_ptr[q + 1], cell_ptr[q]
        n, n_levels = end - begin, cell_ptr[q + 1] - first
        g[begin:end] = 0.0
        if n_levels < 2:
            continue
        sort_query(u, begin, end, order)
        weights = table[table_ptr[q] : table_ptr[q + 1]]
        _from_above(u, order, begin, n, cell, first, x, level, rows)
        total += _sweep(
            x, level, rows, lose, win, n, n_levels, weights, False, margin, power, nodes, sums
        )
        for at in range(n):
            below += sums[at]
            g[rows[at]] -= power * sums[at]
        _turn_over(n, n_levels, x, level, rows)
        _sweep(x, level, rows, win, lose, n, n_levels, weights, True, margin, power, nodes, sums)
        for at in range(n):
            g[rows[at]] += power * sums[at]
    return total, below


@kernel
def totals(query_ptr, cell_ptr, cell, win, lose, table, table_ptr, order, margin, power, r0, r1, u):
    """Sum c·h^power and c·h^(power−1) over violated pairs."""
    total, below = 0.0, 0.0
    x, level, rows, sums, nodes = _scratch(query_ptr, cell_ptr, r0, r1, 4)
    for q in range(r0, r1):
        begin, end, first = query_ptr[q], query_ptr[q + 1], cell_ptr[q]
        n, n_levels = end - begin, cell_ptr[q + 1] - first
        if n_levels < 2:
            continue
        sort_query(u, begin, end, order)
        weights = table[table_ptr[q] : table_ptr[q + 1]]
        _from_above(u, order, begin, n, cell, first, x, level, rows)
        total += _sweep(
            x, level, rows, lose, win, n, n_levels, weights, False, margin, power, nodes, sums
        )
        for at in range(n):
            below += sums[at]
    return total, below


@kernel
def products(
    query_ptr, cell_ptr, cell, win, lose, table, table_ptr, order, margin, r0, r1, u, D, out
):
    """Fill the Hessian of Σ c·h² over violated pairs, times the columns of D.

    D and ``out`` begin at the first row of query r0.
    """
    x, level, rows, _, nodes = _scratch(query_ptr, cell_ptr, r0, r1, D.shape[1] + 1)
    start = query_ptr[r0]
    for q in range(r0, r1):
        begin, end, first = query_ptr[q], query_ptr[q + 1], cell_ptr[q]
        n, n_levels = end - begin, cell_ptr[q + 1] - first
        out[begin - start : end - start] = 0.0
        if n_levels < 2:
            continue
        sort_query(u, begin, end, order)
        weights = table[table_ptr[q] : table_ptr[q + 1]]
        _from_above(u, order, begin, n, cell, first, x, level, rows)
        _sweep_columns(
            x, level, rows, lose, win, n, n_levels, weights, False, margin, nodes, start, D, out
        )
        _turn_over(n, n_levels, x, level, rows)
        _sweep_columns(
            x, level, rows, win, lose, n, n_levels, weights, True, margin, nodes, start, D, out
        )


@kernel
def sort_query(u, begin, end, order):
    """Sort the rows of a query by score, equal scores by row; often they already are."""
    for at in range(begin + 1, end):
        i, j = order[at - 1], order[at]
        if not (u[i] < u[j] or (u[i] == u[j] and i < j)):
            order[begin:end] = begin + np.argsort(u[begin:end], kind="mergesort")
            return


@kernel
def _scratch(query_ptr, cell_ptr, r0, r1, width):
    longest, levels = 0, 1
    for q in range(r0, r1):
        longest = max(longest, query_ptr[q + 1] - query_ptr[q])
        levels = max(levels, cell_ptr[q + 1] - cell_ptr[q])
    x, sums = np.empty(longest), np.empty(longest)
    level, rows = np.empty(longest, np.int64), np.empty(longest, np.int64)
    return x, level, rows, sums, np.empty((levels, width))


@kernel
def _from_above(u, order, begin, n, cell, first, x, level, rows):
    """List scores, levels and rows of a query downwards."""
    for at in range(n):
        i = order[begin + n - 1 - at]
        rows[at] = i
        x[at] = u[i]
        level[at] = cell[i] - first


@kernel
def _turn_over(n, n_levels, x, level, rows):
    """List them upwards, scores and levels upside down: losers then see winners the same way."""
    for at in range((n + 1) // 2):
        other = n - 1 - at
        x[at], x[other] = -x[other], -x[at]
        k = n_levels - 1 - level[at]
        level[at] = n_levels - 1 - level[other]
        level[other] = k
        rows[at], rows[other] = rows[other], rows[at]


@kernel
def _sweep(x, level, rows, adds, reads, n, n_levels, weights, reverse, margin, power, nodes, sums):
    """For each document, sum add·h^(power−1) over those of lower levels that it should beat by
    more; times ``read`` in ``sums``. Return the total of read·add·h^power.

    A node holds the sums of 1, h and h², and the score at which they were last true.
    """
    nodes[:n_levels] = 0.0
    total = 0.0
    ahead = 0
    for at in range(n):
        here = x[at]
        while ahead < n:
            h = margin - (here - x[ahead])
            if not h > 0.0:
                break
            add = adds[rows[ahead]]
            if add != 0.0 and level[ahead] < n_levels - 1:
                k = level[ahead]
                if len(weights) > 0:
                    _add(nodes[k], here, add, h)
                else:
                    k += 1
                    while k < n_levels:
                        _add(nodes[k], here, add, h)
                        k += k & -k
            ahead += 1
        sums[at] = 0.0
        read = reads[rows[at]]
        if read != 0.0 and level[at] > 0:
            s0, s1, s2 = 0.0, 0.0, 0.0
            k = level[at]
            if len(weights) > 0:
                for j in range(k):
                    c = _weight(weights, n_levels, k, j, reverse)
                    a0, a1, a2 = _moved(nodes[j], here)
                    s0 += c * a0
                    s1 += c * a1
                    s2 += c * a2
            else:
                while k > 0:
                    a0, a1, a2 = _moved(nodes[k], here)
                    s0 += a0
                    s1 += a1
                    s2 += a2
                    k -= k & -k
            sums[at] = read * (s1 if power == 2 else s0)
            total += read * (s2 if power == 2 else s1)
    return total


@kernel
def _moved(node, here):
    """The sums of 1, h and h² once the score has come down to ``here``."""
    down = node[3] - here
    return node[0], node[1] + down * node[0], node[2] + down * (2.0 * node[1] + down * node[0])


@kernel
def _add(node, here, weight, h):
    s0, s1, s2 = _moved(node, here)
    if s0 == 0.0:
        s1 = s2 = 0.0
    node[0] = s0 + weight
    node[1] = s1 + weight * h
    node[2] = s2 + weight * h * h
    node[3] = here


@kernel
def _weight(weights, n_levels, k, j, reverse):
    """The weight of a pair of levels, of which k reads and j is read."""
    if reverse:
        return weights[(n_levels - 1 - j) * n_levels + n_levels - 1 - k]
    return weights[k * n_levels + j]


@kernel
def _sweep_columns(
    x, level, rows, adds, reads, n, n_levels, weights, reverse, margin, nodes, start, D, out
):
    """Add 2·read·Σ add·(d_i − d_j) over violated pairs, for each column d of D."""
    nodes[:n_levels] = 0.0
    width = D.shape[1]
    sums = np.empty(width)
    ahead = 0
    for at in range(n):
        while ahead < n:
            if not margin - (x[at] - x[ahead]) > 0.0:
                break
            i = rows[ahead]
            if adds[i] != 0.0 and level[ahead] < n_levels - 1:
                k = level[ahead]
                if len(weights) > 0:
                    _add_columns(nodes[k], adds[i], D[i - start])
                else:
                    k += 1
                    while k < n_levels:
                        _add_columns(nodes[k], adds[i], D[i - start])
                        k += k & -k
            ahead += 1
        i = rows[at]
        if reads[i] != 0.0 and level[at] > 0:
            s0 = 0.0
            sums[:] = 0.0
            k = level[at]
            if len(weights) > 0:
                for j in range(k):
                    c = _weight(weights, n_levels, k, j, reverse)
                    s0 += c * nodes[j, width]
                    for f in range(width):
                        sums[f] += c * nodes[j, f]
            else:
                while k > 0:
                    s0 += nodes[k, width]
                    for f in range(width):
                        sums[f] += nodes[k, f]
                    k -= k & -k
            c = 2.0 * reads[i]
            for f in range(width):
                out[i - start, f] += c * (s0 * D[i - start, f] - sums[f])


@kernel
def _add_columns(node, weight, d):
    for f in range(len(d)):
        node[f] += weight * d[f]
    node[len(d)] += weight
