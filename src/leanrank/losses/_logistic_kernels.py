"""Sums of the logistic loss over all pairs of a query.

The pairs of a query are divided into *pieces*: some winners against some losers, all pairs with the
same weight. Large pieces are evaluated by boxes, see ``_logistic_boxes``; others pair by pair.

Shared arguments: query q owns the cells ``cell_ptr[q]:cell_ptr[q+1]`` in ascending level, cell c
holds ``rows[row_ptr[c]:row_ptr[c+1]]``, ``win`` and ``lose`` are a document's weights in either
role, and ``table[table_ptr[q]:table_ptr[q+1]]`` weighs pairs of levels if it is not empty. Inside a
query documents are numbered by ascending level. With ``boxes`` None, as where all lists are short,
boxes are not compiled.
"""

from __future__ import annotations

import math

import numpy as np

from leanrank._jit import kernel
from leanrank._smooth import CHUNK, sigmoid_chunk, softplus_chunk
from leanrank._typing import FloatArray, IntArray
from leanrank.losses._logistic_boxes import (
    boxed_entropy,
    boxed_gradient,
    boxed_product,
    count_boxes,
)

LONG_LIST = 256
"""Number of documents from which pieces are halves of some levels against each other."""

FEW_PAIRS, MOST_PAIRS = 256, 1 << 16
"""Pairs up to which products go pair by pair, and pairs whose φ″ are in memory at once."""


@kernel
def sums(
    query_ptr: IntArray, cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, win: FloatArray,
    lose: FloatArray, table: FloatArray, table_ptr: IntArray, r0: int, r1: int, u: FloatArray,
    g: FloatArray, a: float, boxes: int | None,
) -> float:  # fmt: skip
    """Return the value and fill the gradient g; or, if g is empty, return the dual value at a.

    The dual value is Σ c·entropy(a·p), p being the probability of a wrong order.
    """
    dual = len(g) == 0
    log_a, moved = math.log(a), math.log1p(-a) if a < 1.0 else -math.inf
    value = 0.0
    z, terms, rest = np.zeros(CHUNK), np.zeros(CHUNK), np.zeros(CHUNK)
    for q in range(r0, r1):
        own, v, pieces, rates = _query(cell_ptr, row_ptr, rows, table, table_ptr, q, u, LONG_LIST)
        wins, loses, pull = win[own], lose[own], np.zeros(len(own))
        for p in range(len(rates)):
            low, middle, first, last = pieces[p]
            n, least = 0, 0.0
            if boxes is not None:
                n, least = count_boxes(v, low, middle, first, last)
                if n > 0:
                    losing, winning = slice(low, middle), slice(first, last)
                    lost, won, rated = v[losing], v[winning], rates[p] * wins[winning]
                    if dual:
                        value += boxed_entropy(lost, loses[losing], won, rated, least, n, a)
                    else:
                        value += boxed_gradient(
                            lost, loses[losing], won, rated, least, n, pull[losing], pull[winning]
                        )
            if n > 0:
                continue
            for begin in range(low, middle, CHUNK):  # a chunk of losers against some winners
                end = min(begin + CHUNK, middle)
                width = end - begin
                step = CHUNK // width
                for top in range(first, last, step):
                    bottom = min(top + step, last)
                    n = (bottom - top) * width
                    losers = v[begin:end]
                    for i in range(top, bottom):
                        row = z[(i - top) * width : (i - top + 1) * width]
                        for j in range(width):
                            row[j] = losers[j] - v[i]
                    if dual:
                        for at in range(n):
                            rest[at] = z[at] + moved
                        softplus_chunk(rest, terms, n)
                        for at in range(n):
                            rest[at] = terms[at]
                    softplus_chunk(z, terms, n)
                    for i in range(top, bottom):
                        own_pairs = slice((i - top) * width, (i - top + 1) * width)
                        wrong, term, weight = z[own_pairs], terms[own_pairs], loses[begin:end]
                        rate, cost, pushed = rates[p] * wins[i], 0.0, 0.0
                        if dual:
                            more = rest[own_pairs]
                            for j in range(width):  # log(1 - s) = more - term
                                s = a * wrong[j]
                                entropy = term[j] - (1.0 - s) * more[j]
                                cost += weight[j] * (entropy - s * (log_a + losers[j] - v[i]))
                        else:
                            pulled = pull[begin:end]
                            for j in range(width):
                                share = weight[j] * wrong[j]
                                cost += weight[j] * term[j]
                                pushed += share
                                pulled[j] += rate * share
                        value += rate * cost
                        pull[i] -= rate * pushed
        if not dual:
            g[query_ptr[q] : query_ptr[q + 1]] = 0.0
            for at in range(len(own)):
                g[own[at]] = pull[at]
    return value


@kernel
def products(
    query_ptr: IntArray, cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, win: FloatArray,
    lose: FloatArray, table: FloatArray, table_ptr: IntArray, r0: int, r1: int, u: FloatArray,
    D: FloatArray, out: FloatArray, boxes: int | None,
) -> None:  # fmt: skip
    """Fill the Hessian times the columns of D; D and ``out`` begin at the first row of query r0."""
    start = query_ptr[r0]
    for q in range(r0, r1):
        out[query_ptr[q] - start : query_ptr[q + 1] - start] = 0.0
        own, v, pieces, rates = _query(cell_ptr, row_ptr, rows, table, table_ptr, q, u, 0)
        if len(rates) == 0:
            continue
        wins, loses = win[own], lose[own]
        d, total = np.empty((len(own), D.shape[1])), np.zeros((len(own), D.shape[1]))
        for at in range(len(own)):
            for f in range(D.shape[1]):
                d[at, f] = D[own[at] - start, f]
        for p in range(len(rates)):
            low, middle, first, last = pieces[p]
            n, least = 0, 0.0
            if boxes is not None:
                n, least = count_boxes(v, low, middle, first, last)
                if n > 0:
                    losing, winning = slice(low, middle), slice(first, last)
                    boxed_product(
                        v[losing], loses[losing], v[winning], rates[p] * wins[winning], least, n,
                        d[losing], d[winning], total[losing], total[winning],
                    )  # fmt: skip
            if n > 0:
                continue
            if (middle - low) * (last - first) < FEW_PAIRS:
                for i in range(first, last):
                    for j in range(low, middle):
                        e = math.exp(-abs(v[i] - v[j]))
                        bend = rates[p] * wins[i] * loses[j] * e / ((1.0 + e) * (1.0 + e))
                        for f in range(d.shape[1]):
                            flow = bend * (d[i, f] - d[j, f])
                            total[i, f] += flow
                            total[j, f] -= flow
                continue
            step = max(1, MOST_PAIRS // (middle - low))
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
    """Return rows and scores by ascending level, and the pieces of their pairs with their weights.

    A piece holds the begin and end of its losers and of its winners. If pairs of levels have
    different weights, there is a piece for each pair of levels. Else there is one for each level
    and all lower ones or, from ``long`` documents on, for the two halves of some levels.
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
            _put(pieces, k - 1, 0, starts[k], starts[k], starts[k + 1])
    elif len(weights) == 0:
        width = 1
        while width < n_levels:
            for k in range(0, n_levels - width, 2 * width):
                end = starts[min(k + 2 * width, n_levels)]
                _put(pieces, n, starts[k], starts[k + width], starts[k + width], end)
                n += 1
            width *= 2
    else:
        for k in range(1, n_levels):
            for low in range(k):
                _put(pieces, n, starts[low], starts[low + 1], starts[k], starts[k + 1])
                rates[n] = weights[k * n_levels + low]
                n += 1
    return own, u[own], pieces, rates


@kernel
def _put(pieces: IntArray, at: int, low: int, middle: int, first: int, last: int) -> None:
    """Set one piece; a tuple for a row would take a second and a half to compile."""
    pieces[at, 0], pieces[at, 1], pieces[at, 2], pieces[at, 3] = low, middle, first, last
