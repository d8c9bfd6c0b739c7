"""Sums over all pairs of a query: each document against all documents of lower levels.

The pairs of a query are cut into *pieces*, some winners against some losers that all weigh the
same. A large piece goes without its pairs, see ``_logistic_boxes``; others pair by pair.

Shared arguments: query q owns the cells ``cell_ptr[q]:cell_ptr[q+1]`` in ascending level, cell c
holds ``rows[row_ptr[c]:row_ptr[c+1]]``, ``win`` and ``lose`` are a document's weights in either
role, and ``table[table_ptr[q]:table_ptr[q+1]]`` weighs pairs of levels if it is not empty. Inside a
query documents are numbered by ascending level, so those below a level come first.
"""

from __future__ import annotations

import math

import numpy as np

from leanrank._jit import kernel
from leanrank._smooth import sigmoid_chunk
from leanrank._typing import FloatArray, IntArray
from leanrank.losses._logistic_boxes import (
    boxed_entropy,
    boxed_gradient,
    boxed_product,
    count_boxes,
)

SPREAD = 200.0
"""Largest range of scores whose ratios of exponentials neither overflow nor vanish."""

LONG_LIST = 256
"""Number of documents from which halves of the levels stand against each other."""

FULL = 1e200
"""Limit from which a running product of odds is stored as a logarithm."""

FEW_BENDS, MOST_BENDS = 256, 1 << 16
"""Pairs below which products go one by one, and pairs whose φ″ are held at once."""


@kernel
def evaluate(
    query_ptr: IntArray, cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, win: FloatArray,
    lose: FloatArray, table: FloatArray, table_ptr: IntArray, r0: int, r1: int, u: FloatArray,
    g: FloatArray,
) -> float:  # fmt: skip
    value = 0.0
    for q in range(r0, r1):
        g[query_ptr[q] : query_ptr[q + 1]] = 0.0
        own, v, pieces, rates = _query(cell_ptr, row_ptr, rows, table, table_ptr, q, u, LONG_LIST)
        wins, loses, pull = win[own], lose[own], np.zeros(len(own))
        up, down = _exponentials(v, loses)
        for p in range(len(rates)):
            low, middle, first, last = pieces[p]
            n, least = count_boxes(v, low, middle, first, last)
            if n > 0:
                losing, winning = slice(low, middle), slice(first, last)
                value += boxed_gradient(
                    v[losing], loses[losing], v[winning], rates[p] * wins[winning], least, n,
                    pull[losing], pull[winning],
                )  # fmt: skip
                continue
            for i in range(first, last):
                rate = rates[p] * wins[i]
                if rate == 0.0:
                    continue
                if len(up) > 0:
                    cost, pushed = _close(down[i], up, low, middle, rate, pull)
                else:
                    cost, pushed = _far(v[i], v, loses, low, middle, rate, pull)
                value += rate * cost
                pull[i] -= rate * pushed
        for at in range(len(own)):
            g[own[at]] = pull[at]
    return value


@kernel
def dual(
    query_ptr: IntArray, cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, win: FloatArray,
    lose: FloatArray, table: FloatArray, table_ptr: IntArray, r0: int, r1: int, u: FloatArray,
    a: float,
) -> float:  # fmt: skip
    """Sum c times the binary entropy of a times the probability of a wrong order, 0 < a ≤ 1."""
    value = 0.0
    for q in range(r0, r1):
        own, v, pieces, rates = _query(cell_ptr, row_ptr, rows, table, table_ptr, q, u, LONG_LIST)
        wins, loses = win[own], lose[own]
        up, down = _exponentials(v, loses)
        for p in range(len(rates)):
            low, middle, first, last = pieces[p]
            n, least = count_boxes(v, low, middle, first, last)
            if n > 0:
                losing, winning = slice(low, middle), slice(first, last)
                value += boxed_entropy(
                    v[losing], loses[losing], v[winning], rates[p] * wins[winning], least, n, a
                )
                continue
            for i in range(first, last):
                rate = rates[p] * wins[i]
                if rate == 0.0:
                    continue
                if len(up) > 0:
                    entropy = _close_entropy(v[i], down[i], v, up, low, middle, a)
                else:
                    entropy = _far_entropy(v[i], v, loses, low, middle, a)
                value += rate * entropy
    return value


@kernel
def products(
    query_ptr: IntArray, cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, win: FloatArray,
    lose: FloatArray, table: FloatArray, table_ptr: IntArray, r0: int, r1: int, u: FloatArray,
    D: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Fill the Hessian times the columns of D; D and ``out`` begin at the first row of query r0."""
    start = query_ptr[r0]
    for q in range(r0, r1):
        out[query_ptr[q] - start : query_ptr[q + 1] - start] = 0.0
        own, v, pieces, rates = _query(cell_ptr, row_ptr, rows, table, table_ptr, q, u, 0)
        if len(rates) == 0:
            continue
        wins, loses = win[own], lose[own]
        d = D[own - start]
        total = np.zeros(d.shape)
        for p in range(len(rates)):
            low, middle, first, last = pieces[p]
            n, least = count_boxes(v, low, middle, first, last)
            if n > 0:
                losing, winning = slice(low, middle), slice(first, last)
                boxed_product(
                    v[losing], loses[losing], v[winning], rates[p] * wins[winning], least, n,
                    d[losing], d[winning], total[losing], total[winning],
                )  # fmt: skip
                continue
            if (middle - low) * (last - first) < FEW_BENDS:
                for i in range(first, last):
                    for j in range(low, middle):
                        e = math.exp(-abs(v[i] - v[j]))
                        bend = rates[p] * wins[i] * loses[j] * e / ((1.0 + e) * (1.0 + e))
                        for f in range(d.shape[1]):
                            flow = bend * (d[i, f] - d[j, f])
                            total[i, f] += flow
                            total[j, f] -= flow
                continue
            step = max(1, MOST_BENDS // (middle - low))
            for begin in range(first, last, step):
                losing, some = slice(low, middle), slice(begin, min(begin + step, last))
                _add_products(
                    v[losing], loses[losing], v[some], rates[p] * wins[some], d[losing], d[some],
                    total[losing], total[some],
                )  # fmt: skip
        for at in range(len(own)):
            for f in range(D.shape[1]):
                out[own[at] - start, f] = total[at, f]


@kernel
def _add_products(
    v_lose: FloatArray, lose: FloatArray, v_win: FloatArray, win: FloatArray, d_lose: FloatArray,
    d_win: FloatArray, out_lose: FloatArray, out_win: FloatArray,
) -> None:  # fmt: skip
    """Add the Hessian of some winners against some losers, times the columns of d."""
    n, width = len(v_lose), d_win.shape[1]
    bend, degree_lose = np.empty((len(v_win), n)), np.zeros(n)
    for i in range(len(v_win)):
        row, degree = bend[i], 0.0
        for j in range(n):
            row[j] = -abs(v_win[i] - v_lose[j])
        sigmoid_chunk(row, n)
        for j in range(n):
            row[j] = win[i] * lose[j] * row[j] * (1.0 - row[j])
            degree += row[j]
            degree_lose[j] += row[j]
        for f in range(width):
            out_win[i, f] += degree * d_win[i, f]
    for j in range(n):
        for f in range(width):
            out_lose[j, f] += degree_lose[j] * d_lose[j, f]
    out_win -= np.dot(bend, d_lose)
    out_lose -= np.dot(bend.T, d_win)


@kernel
def _query(
    cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, table: FloatArray, table_ptr: IntArray,
    q: int, u: FloatArray, long: int,
) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:  # fmt: skip
    """Return rows and scores by ascending level, and the pieces of their pairs with a weight each.

    A piece is where its losers begin and end, then its winners. If pairs weigh differently, each
    level stands against each lower one. Else it stands against all lower ones together; and from
    ``long`` documents on, the upper half of some levels against their lower half.
    """
    first, n_levels = cell_ptr[q], cell_ptr[q + 1] - cell_ptr[q]
    starts = row_ptr[first : first + n_levels + 1] - row_ptr[first]
    own = rows[row_ptr[first] : row_ptr[first + n_levels]]
    weights = table[table_ptr[q] : table_ptr[q + 1]]
    most = n_levels - 1 if len(weights) == 0 else n_levels * (n_levels - 1) // 2
    pieces, rates = np.empty((max(0, most), 4), np.int64), np.ones(max(0, most))
    n = 0
    if len(weights) == 0 and len(own) < long:
        for k in range(1, n_levels):
            pieces[k - 1] = 0, starts[k], starts[k], starts[k + 1]
    elif len(weights) == 0:
        width = 1
        while width < n_levels:
            for k in range(0, n_levels - width, 2 * width):
                end = starts[min(k + 2 * width, n_levels)]
                pieces[n] = starts[k], starts[k + width], starts[k + width], end
                n += 1
            width *= 2
    else:
        for k in range(1, n_levels):
            for low in range(k):
                pieces[n] = starts[low], starts[low + 1], starts[k], starts[k + 1]
                rates[n] = weights[k * n_levels + low]
                n += 1
    return own, u[own], pieces, rates


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
