"""Sums over all pairs of a query: each document against all documents of lower levels.

Long lists go without the pairs where they can, see ``_logistic_boxes``; others pair by pair.

Shared arguments: query q owns the cells ``cell_ptr[q]:cell_ptr[q+1]`` in ascending level, cell c
holds ``rows[row_ptr[c]:row_ptr[c+1]]``, ``win`` and ``lose`` are a document's weights in either
role, and ``table[table_ptr[q]:table_ptr[q+1]]`` weighs pairs of levels if it is not empty. Inside a
query documents are numbered by ascending level, so those below a level come first.
"""

from __future__ import annotations

import math

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray
from leanrank.losses._logistic_boxes import (
    MOST_BOXES,
    boxed_entropy,
    boxed_gradient,
    boxed_product,
    count_boxes,
)

SPREAD = 200.0
"""Largest range of scores whose ratios of exponentials neither overflow nor vanish."""

LONG_LIST = 256
"""Number of documents from which a query's sums may do without the pairs."""

FULL = 1e200
"""Limit from which a running product of odds is stored as a logarithm."""


@kernel
def evaluate(
    query_ptr: IntArray, cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, win: FloatArray,
    lose: FloatArray, table: FloatArray, table_ptr: IntArray, r0: int, r1: int, u: FloatArray,
    g: FloatArray,
) -> float:  # fmt: skip
    value = 0.0
    for q in range(r0, r1):
        g[query_ptr[q] : query_ptr[q + 1]] = 0.0
        ends, weights, own, v = _query(cell_ptr, row_ptr, rows, table, table_ptr, q, u)
        loss = lose[own]
        pull = np.zeros(len(own))
        if _long(ends, weights):
            value += _long_gradient(ends, own, win, v, loss, pull)
            for at in range(len(own)):
                g[own[at]] = pull[at]
            continue
        up, down = _exponentials(v, loss)
        for k in range(1, len(ends)):
            for at in range(ends[k - 1], ends[k]):
                if win[own[at]] == 0.0:
                    continue
                for run in range(_runs(weights, k)):
                    low, high, c = _run(ends, weights, k, run)
                    rate = win[own[at]] * c
                    if len(up) > 0:
                        cost, pushed = _close(down[at], up, low, high, rate, pull)
                    else:
                        cost, pushed = _far(v[at], v, loss, low, high, rate, pull)
                    value += rate * cost
                    pull[at] -= rate * pushed
        for at in range(len(own)):
            g[own[at]] = pull[at]
    return value


@kernel
def products(
    query_ptr: IntArray, cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, win: FloatArray,
    lose: FloatArray, table: FloatArray, table_ptr: IntArray, r0: int, r1: int, u: FloatArray,
    D: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Fill the Hessian times the columns of D; D and ``out`` begin at the first row of query r0."""
    start = query_ptr[r0]
    width = D.shape[1]
    for q in range(r0, r1):
        out[query_ptr[q] - start : query_ptr[q + 1] - start] = 0.0
        n = query_ptr[q + 1] - query_ptr[q]
        bend = np.empty((n, n))
        own = bends(cell_ptr, row_ptr, rows, win, lose, table, table_ptr, q, u, 0, n, bend)
        for at in range(n):
            i = own[at] - start
            for other in range(at):
                if bend[at, other] > 0.0:
                    j = own[other] - start
                    for f in range(width):
                        flow = bend[at, other] * (D[i, f] - D[j, f])
                        out[i, f] += flow
                        out[j, f] -= flow


@kernel
def long_products(
    cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, win: FloatArray, lose: FloatArray,
    table: FloatArray, table_ptr: IntArray, q: int, first: int, u: FloatArray, D: FloatArray,
    out: FloatArray,
) -> bool:  # fmt: skip
    """Fill the Hessian of a long list times the columns of D without its pairs, if that pays.

    D and ``out`` begin at row ``first``. Returns whether they are filled.
    """
    ends, weights, own, v = _query(cell_ptr, row_ptr, rows, table, table_ptr, q, u)
    if not _long(ends, weights) or not _spread(v) < MOST_BOXES - 1:
        return False
    wins, loss = win[own], lose[own]
    columns = D[own - first]
    total = np.zeros(columns.shape)
    width = 1
    while width < len(ends):
        for start in range(0, len(ends) - width, 2 * width):
            low, middle, high = _halves(ends, start, width)
            n = count_boxes(v, low, middle, high)
            if n > 0:
                boxed_product(v, wins, loss, low, middle, high, n, columns, total)
                continue
            for i in range(middle, high):
                for j in range(low, middle):
                    e = math.exp(-abs(v[i] - v[j]))
                    bend = wins[i] * loss[j] * e / ((1.0 + e) * (1.0 + e))
                    for f in range(columns.shape[1]):
                        flow = bend * (columns[i, f] - columns[j, f])
                        total[i, f] += flow
                        total[j, f] -= flow
        width *= 2
    for at in range(len(own)):
        for f in range(columns.shape[1]):
            out[own[at] - first, f] = total[at, f]
    return True


@kernel
def bends(
    cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, win: FloatArray, lose: FloatArray,
    table: FloatArray, table_ptr: IntArray, q: int, u: FloatArray, begin: int, end: int,
    out: FloatArray,
) -> IntArray:  # fmt: skip
    """Fill φ″ of the pairs of winners [begin, end) of a query, row the winner; return its rows.

    Documents are numbered by ascending level, and only those up to ``end`` have a column.
    """
    ends, weights, own, v = _query(cell_ptr, row_ptr, rows, table, table_ptr, q, u)
    out[:] = 0.0
    k = 0
    for at in range(begin, end):
        while at >= ends[k]:
            k += 1
        if k == 0 or win[own[at]] == 0.0:
            continue
        for run in range(_runs(weights, k)):
            low, high, c = _run(ends, weights, k, run)
            rate = win[own[at]] * c
            for j in range(low, high):
                e = math.exp(-abs(v[at] - v[j]))
                out[at - begin, j] = rate * lose[own[j]] * e / ((1.0 + e) * (1.0 + e))
    return own


@kernel
def dual(
    query_ptr: IntArray, cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, win: FloatArray,
    lose: FloatArray, table: FloatArray, table_ptr: IntArray, r0: int, r1: int, u: FloatArray,
    a: float,
) -> float:  # fmt: skip
    """Sum c times the binary entropy of a times the probability of a wrong order."""
    value = 0.0
    for q in range(r0, r1):
        ends, weights, own, v = _query(cell_ptr, row_ptr, rows, table, table_ptr, q, u)
        loss = lose[own]
        if _long(ends, weights):
            value += _long_entropy(ends, own, win, v, loss, a)
            continue
        up, down = _exponentials(v, loss)
        for k in range(1, len(ends)):
            for at in range(ends[k - 1], ends[k]):
                if win[own[at]] == 0.0:
                    continue
                for run in range(_runs(weights, k)):
                    low, high, c = _run(ends, weights, k, run)
                    if len(up) > 0:
                        entropy = _close_entropy(v[at], down[at], v, up, low, high, a)
                    else:
                        entropy = _far_entropy(v[at], v, loss, low, high, a)
                    value += win[own[at]] * c * entropy
    return value


@kernel
def listed(
    query_ptr: IntArray, cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, win: FloatArray,
    lose: FloatArray, table: FloatArray, table_ptr: IntArray, q: int, most: int, points: FloatArray,
) -> tuple[IntArray, IntArray, FloatArray]:  # fmt: skip
    """List winners, losers and weights of a query's pairs, or of ``most`` of them.

    All pairs, each as long as its weight, are laid end to end; ``points`` are places between 0 and
    1 in each of ``most`` equal parts. Losers of a run are found by bisection, so the cost
    is that of documents and levels, not of pairs.
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
                    j = _bisect(mass, low, high, mass[low] + max(place, 0.0) / rate)
                    winner[filled], loser[filled] = own[at], own[j]
                    filled += 1
                passed += rate * (mass[high] - mass[low])
    # rounding may leave a last point beyond all pairs
    return winner[:filled], loser[:filled], weight[:filled]


@kernel
def _long(ends: IntArray, weights: FloatArray) -> bool:
    """Return whether to look for sums without pairs: all pairs of levels must weigh the same."""
    return len(weights) == 0 and len(ends) > 1 and ends[-1] >= LONG_LIST


@kernel
def _spread(v: FloatArray) -> float:
    """Return the range of scores; infinite if one of them is, or is not a number."""
    least, most = np.inf, -np.inf
    for at in range(len(v)):
        if not abs(v[at]) < np.inf:
            return np.inf
        least, most = min(least, v[at]), max(most, v[at])
    return most - least


@kernel
def _long_gradient(
    ends: IntArray, own: IntArray, win: FloatArray, v: FloatArray, loss: FloatArray,
    pull: FloatArray,
) -> float:  # fmt: skip
    """Sum the losses and gradients of a long list: half of some levels against the other half."""
    value = 0.0
    wins = win[own]
    up, down = _exponentials(v, loss)
    width = 1
    while width < len(ends):
        for start in range(0, len(ends) - width, 2 * width):
            low, middle, high = _halves(ends, start, width)
            n = count_boxes(v, low, middle, high)
            if n > 0:
                value += boxed_gradient(v, wins, loss, low, middle, high, n, pull)
                continue
            for at in range(middle, high):
                if wins[at] == 0.0:
                    continue
                if len(up) > 0:
                    cost, pushed = _close(down[at], up, low, middle, wins[at], pull)
                else:
                    cost, pushed = _far(v[at], v, loss, low, middle, wins[at], pull)
                value += wins[at] * cost
                pull[at] -= wins[at] * pushed
        width *= 2
    return value


@kernel
def _long_entropy(
    ends: IntArray, own: IntArray, win: FloatArray, v: FloatArray, loss: FloatArray, a: float,
) -> float:  # fmt: skip
    """Sum the dual values of a long list, by the same halves."""
    value = 0.0
    wins = win[own]
    up, down = _exponentials(v, loss)
    width = 1
    while width < len(ends):
        for start in range(0, len(ends) - width, 2 * width):
            low, middle, high = _halves(ends, start, width)
            n = count_boxes(v, low, middle, high)
            if n > 0:
                value += boxed_entropy(v, wins, loss, low, middle, high, n, a)
                continue
            for at in range(middle, high):
                if wins[at] == 0.0:
                    continue
                if len(up) > 0:
                    entropy = _close_entropy(v[at], down[at], v, up, low, middle, a)
                else:
                    entropy = _far_entropy(v[at], v, loss, low, middle, a)
                value += wins[at] * entropy
        width *= 2
    return value


@kernel
def _halves(ends: IntArray, start: int, width: int) -> tuple[int, int, int]:
    """Return where ``width`` levels from ``start`` on begin and end, and as many above them end."""
    low = ends[start - 1] if start > 0 else 0
    return low, ends[start + width - 1], ends[min(start + 2 * width, len(ends)) - 1]


@kernel
def _query(
    cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, table: FloatArray, table_ptr: IntArray,
    q: int, u: FloatArray,
) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:  # fmt: skip
    """Return the ends and weights of levels, and the rows and scores by ascending level."""
    first, last = cell_ptr[q], cell_ptr[q + 1]
    if last == first:
        return row_ptr[:0], table[:0], rows[:0], u[:0].copy()
    begin = row_ptr[first]
    own = rows[begin : row_ptr[last]]
    ends = row_ptr[first + 1 : last + 1] - begin
    return ends, table[table_ptr[q] : table_ptr[q + 1]], own, u[own]


@kernel
def _runs(weights: FloatArray, k: int) -> int:
    """Return the number of runs of documents of equal weight below level k."""
    return 1 if len(weights) == 0 else k


@kernel
def _run(ends: IntArray, weights: FloatArray, k: int, run: int) -> tuple[int, int, float]:
    """Return the first and last document of a run, and the weight of its pairs with level k."""
    if len(weights) == 0:
        return 0, ends[k - 1], 1.0
    return (ends[run - 1] if run > 0 else 0), ends[run], weights[k * len(ends) + run]


@kernel
def _bisect(sums: FloatArray, low: int, high: int, place: float) -> int:
    """Return the last document of [low, high) whose preceding sum is at most ``place``."""
    while high - low > 1:
        middle = (low + high) // 2
        if sums[middle] <= place:
            low = middle
        else:
            high = middle
    return low


@kernel
def _exponentials(v: FloatArray, loss: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return e^v and e^{−v}, centred, if all losers have weight 1 and no ratio overflows."""
    if len(v) == 0 or v.max() - v.min() > SPREAD or loss.min() != 1.0 or loss.max() != 1.0:
        return np.zeros(0), np.zeros(0)
    up = np.exp(v - 0.5 * (v.max() + v.min()))
    return up, 1.0 / up


@kernel
def _close(
    down: FloatArray, up: FloatArray, low: int, high: int, rate: float, pull: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Sum the losses and gradients of one winner against losers of weight 1.

    Σ log(1 + r) is the logarithm of a product, kept as Π(1 + r) − 1 so that small odds r count.
    """
    cost, pushed, odds = 0.0, 0.0, 0.0
    for j in range(low, high):
        r = down * up[j]
        wrong = r / (1.0 + r)
        pushed += wrong
        pull[j] += rate * wrong
        odds += r + odds * r
        if odds > FULL:
            cost += math.log1p(odds)
            odds = 0.0
    return cost + math.log1p(odds), pushed


@kernel
def _far(
    own: float, v: FloatArray, loss: FloatArray, low: int, high: int, rate: float, pull: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Sum the losses and gradients of one winner for any scores and weights."""
    cost, pushed = 0.0, 0.0
    for j in range(low, high):
        z = own - v[j]
        e = math.exp(-abs(z))
        wrong = loss[j] * (e if z > 0.0 else 1.0) / (1.0 + e)
        cost += loss[j] * (max(-z, 0.0) + math.log1p(e))
        pushed += wrong
        pull[j] += rate * wrong
    return cost, pushed


@kernel
def _close_entropy(
    own: float, down: FloatArray, v: FloatArray, up: FloatArray, low: int, high: int, a: float,
) -> float:  # fmt: skip
    """Sum log(1 + r) − s (log a − z) − (1 − s) log(1 + (1 − a) r) at s = a r / (1 + r)."""
    if a == 0.0:
        return 0.0
    log_a = math.log(a)
    total, odds = 0.0, 0.0
    for j in range(low, high):
        r = down * up[j]
        s = a * r / (1.0 + r)
        total -= s * (log_a - (own - v[j]))
        if a < 1.0:
            total -= (1.0 - s) * math.log1p((1.0 - a) * r)
        odds += r + odds * r
        if odds > FULL:
            total += math.log1p(odds)
            odds = 0.0
    return total + math.log1p(odds)


@kernel
def _far_entropy(
    own: float, v: FloatArray, loss: FloatArray, low: int, high: int, a: float,
) -> float:  # fmt: skip
    total = 0.0
    for j in range(low, high):
        z = own - v[j]
        e = math.exp(-abs(z))
        s = a * (e if z > 0.0 else 1.0) / (1.0 + e)
        if 0.0 < s < 1.0:
            total -= loss[j] * (s * math.log(s) + (1.0 - s) * math.log1p(-s))
    return total
