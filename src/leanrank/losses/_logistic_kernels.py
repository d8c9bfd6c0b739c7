"""Loops over all pairs of a query: each document against all of lower levels.

Shared arguments: query q owns the cells ``cell_ptr[q]:cell_ptr[q+1]`` in ascending level, cell c
holds ``rows[row_ptr[c]:row_ptr[c+1]]``, ``win`` and ``lose`` are what a document weighs in either
role, and ``table[table_ptr[q]:table_ptr[q+1]]`` weighs pairs of levels if it is not empty. Inside a
query documents are numbered by ascending level, so those below a level come first.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import math

import numpy as np

from leanrank._jit import kernel


@kernel
def evaluate(query_ptr, cell_ptr, row_ptr, rows, win, lose, table, table_ptr, r0, r1, u, g):
    value = 0.0
    for q in range(r0, r1):
        g[query_ptr[q] : query_ptr[q + 1]] = 0.0
        ends, weights, own, v = _query(cell_ptr, row_ptr, rows, table, table_ptr, q, u)
        loss = lose[own]
        pull = np.zeros(len(own))
        for k in range(1, len(ends)):
            for at in range(ends[k - 1], ends[k]):
                if win[own[at]] == 0.0:
                    continue
                cost = 0.0
                pushed = 0.0
                for run in range(_runs(weights, k)):
                    low, high, c = _run(ends, weights, k, run)
                    for j in range(low, high):
                        z = v[at] - v[j]
                        e = math.exp(-abs(z))
                        wrong = (e if z > 0.0 else 1.0) / (1.0 + e)
                        cost += c * loss[j] * (max(-z, 0.0) + math.log1p(e))
                        pushed += c * loss[j] * wrong
                        pull[j] += win[own[at]] * c * loss[j] * wrong
                value += win[own[at]] * cost
                pull[at] -= win[own[at]] * pushed
        for at in range(len(own)):
            g[own[at]] = pull[at]
    return value


@kernel
def products(query_ptr, cell_ptr, row_ptr, rows, win, lose, table, table_ptr, r0, r1, u, D, out):
    """Fill the Hessian times the columns of D; D and ``out`` begin at the first row of query r0."""
    start = query_ptr[r0]
    width = D.shape[1]
    total = np.empty(width)
    for q in range(r0, r1):
        out[query_ptr[q] - start : query_ptr[q + 1] - start] = 0.0
        ends, weights, own, v = _query(cell_ptr, row_ptr, rows, table, table_ptr, q, u)
        for k in range(1, len(ends)):
            for at in range(ends[k - 1], ends[k]):
                i = own[at]
                if win[i] == 0.0:
                    continue
                total[:] = 0.0
                d = D[i - start]
                for run in range(_runs(weights, k)):
                    low, high, c = _run(ends, weights, k, run)
                    for other in range(low, high):
                        j = own[other]
                        e = math.exp(-abs(v[at] - v[other]))
                        bend = win[i] * c * lose[j] * e / ((1.0 + e) * (1.0 + e))
                        row, into = D[j - start], out[j - start]
                        for f in range(width):
                            flow = bend * (d[f] - row[f])
                            total[f] += flow
                            into[f] -= flow
                out[i - start] += total


@kernel
def dual(query_ptr, cell_ptr, row_ptr, rows, win, lose, table, table_ptr, r0, r1, u, a):
    """Sum c times the entropy of a coin that shows a times the probability of a wrong order."""
    value = 0.0
    for q in range(r0, r1):
        ends, weights, own, v = _query(cell_ptr, row_ptr, rows, table, table_ptr, q, u)
        for k in range(1, len(ends)):
            for at in range(ends[k - 1], ends[k]):
                if win[own[at]] == 0.0:
                    continue
                entropy = 0.0
                for run in range(_runs(weights, k)):
                    low, high, c = _run(ends, weights, k, run)
                    for j in range(low, high):
                        z = v[at] - v[j]
                        e = math.exp(-abs(z))
                        s = a * (e if z > 0.0 else 1.0) / (1.0 + e)
                        if 0.0 < s < 1.0:
                            coin = s * math.log(s) + (1.0 - s) * math.log1p(-s)
                            entropy -= c * lose[own[j]] * coin
                value += win[own[at]] * entropy
    return value


@kernel
def listed(query_ptr, cell_ptr, row_ptr, rows, win, lose, table, table_ptr, q, most, points):
    """List winners, losers and weights of a query's pairs, or of ``most`` of them.

    All pairs, each as long as its weight, are laid end to end; ``points`` are places between 0 and
    1 in each of ``most`` equal parts. Losers of a run are found by bisection, so drawing looks at
    documents and levels, never at all pairs.
    """
    ends, weights, own, _ = _query(cell_ptr, row_ptr, rows, table, table_ptr, q, win)
    loss = lose[own]
    mass, present = np.zeros(len(own) + 1), np.zeros(len(own) + 1)
    mass[1:], present[1:] = np.cumsum(loss), np.cumsum(loss > 0.0)
    count, length = 0.0, 0.0
    for k in range(1, len(ends)):
        for at in range(ends[k - 1], ends[k]):
            for run in range(_runs(weights, k)):
                low, high, c = _run(ends, weights, k, run)
                if win[own[at]] * c > 0.0:
                    count += present[high] - present[low]
                    length += win[own[at]] * c * (mass[high] - mass[low])
    n = int(min(count, most))
    winner, loser = np.empty(n, np.int64), np.empty(n, np.int64)
    weight = np.full(n, length / most)
    filled, passed = 0, 0.0
    for k in range(1, len(ends)):
        for at in range(ends[k - 1], ends[k]):
            for run in range(_runs(weights, k)):
                low, high, c = _run(ends, weights, k, run)
                rate = win[own[at]] * c
                if rate == 0.0:
                    continue
                if count <= most:
                    for j in range(low, high):
                        if loss[j] > 0.0:
                            winner[filled], loser[filled] = own[at], own[j]
                            weight[filled] = rate * loss[j]
                            filled += 1
                    continue
                while filled < n:
                    place = (filled + points[filled]) * (length / most) - passed
                    if place >= rate * (mass[high] - mass[low]):
                        break
                    j = np.searchsorted(mass, mass[low] + max(place, 0.0) / rate, side="right") - 1
                    winner[filled], loser[filled] = own[at], own[min(j, high - 1)]
                    filled += 1
                passed += rate * (mass[high] - mass[low])
    # rounding may leave a last point beyond all pairs
    return winner[:filled], loser[:filled], weight[:filled]


@kernel
def _query(cell_ptr, row_ptr, rows, table, table_ptr, q, u):
    """Give where each level ends, the weights of levels, the rows and scores by ascending level."""
    first, last = cell_ptr[q], cell_ptr[q + 1]
    if last == first:
        return row_ptr[:0], table[:0], rows[:0], u[:0].copy()
    begin = row_ptr[first]
    own = rows[begin : row_ptr[last]]
    ends = row_ptr[first + 1 : last + 1] - begin
    return ends, table[table_ptr[q] : table_ptr[q + 1]], own, u[own]


@kernel
def _runs(weights, k):
    """How many runs of documents below level k weigh the same."""
    return 1 if len(weights) == 0 else k


@kernel
def _run(ends, weights, k, run):
    """Give the first and last document of a run, and what its pairs with level k weigh."""
    if len(weights) == 0:
        return 0, ends[k - 1], 1.0
    return (ends[run - 1] if run > 0 else 0), ends[run], weights[k * len(ends) + run]
