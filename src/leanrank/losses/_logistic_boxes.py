"""Sums of the logistic loss over all pairs of many winners and many losers, without the pairs.

The range of scores is divided into boxes of width 1. Between two boxes the loss of a pair is a
polynomial of the two scores up to rounding: its Chebyshev coefficients fall like 12.6^{−k}, because
the nearest singularities are at ±iπ. So the documents of a box are represented by the sums of the
first 16 Chebyshev polynomials of their positions in the box, and a sum over pairs takes 16
operations per document and 16² per pair of boxes. The coefficients depend on the distance of the
two boxes only.
"""

from __future__ import annotations

import math

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import BoolArray, FloatArray

TERMS = 16
"""Chebyshev polynomials per box; the next one would be below the rounding."""

MOST_BOXES = 256
"""Boxes above which pairs are added up one by one."""

DOCUMENT_COST, BOX_COST = 24, 150
"""Time of a document and of a pair of boxes, in units of a pair, to choose the faster way."""

SHORT_LIST = 4 * DOCUMENT_COST
"""Number of documents up to which a query needs no boxes."""

COLUMNS_AT_ONCE = 64
"""Columns of a product that are computed at once, so that their sums fit a cache."""

VALUE, WRONG, ENTROPY, BEND = 0, 1, 2, 3


@kernel
def count_boxes(
    v: FloatArray, low: int, middle: int, first: int, last: int,
) -> tuple[int, float]:  # fmt: skip
    """Return the number of boxes of some scores and where they begin.

    Losers are [low, middle), winners [first, last). The number is 0 if going pair by pair is
    faster.
    """
    losers, winners = middle - low, last - first
    pairs = float(losers) * float(winners)
    limit = DOCUMENT_COST * float(losers + winners)
    if pairs <= limit + BOX_COST:
        return 0, 0.0
    least, most = v[low], v[low]
    for begin, end in ((low, middle), (first, last)):
        for i in range(begin, end):
            if not abs(v[i]) < np.inf:
                return 0, 0.0
            least, most = min(least, v[i]), max(most, v[i])
    if not most - least < MOST_BOXES - 1:
        return 0, 0.0
    n = int(most - least) + 1
    return (n if pairs > limit + BOX_COST * float(n) * n else 0), least


@kernel
def boxed_gradient(
    v_lose: FloatArray, lose: FloatArray, v_win: FloatArray, win: FloatArray, least: float, n: int,
    pull_lose: FloatArray, pull_win: FloatArray,
) -> float:  # fmt: skip
    """Return Σ win·lose·log(1 + e^{−z}), and add its gradient to ``pull_lose`` and ``pull_win``."""
    losers, winners = _moments(v_lose, lose, least, n), _moments(v_win, win, least, n)
    at_winners, at_losers = _exchange(_coefficients(n, WRONG, 0.0), winners, losers)
    pull_win -= win * _values(v_win, at_winners, least)[:, 0]
    pull_lose += lose * _values(v_lose, at_losers, least)[:, 0]
    return _total(_coefficients(n, VALUE, 0.0), winners, losers)


@kernel
def boxed_entropy(
    v_lose: FloatArray, lose: FloatArray, v_win: FloatArray, win: FloatArray, least: float, n: int,
    a: float,
) -> float:  # fmt: skip
    """Return Σ win·lose·entropy(a·p), p being the probability of a wrong order."""
    losers, winners = _moments(v_lose, lose, least, n), _moments(v_win, win, least, n)
    return _total(_coefficients(n, ENTROPY, a), winners, losers)


@kernel
def boxed_product(
    v_lose: FloatArray, lose: FloatArray, v_win: FloatArray, win: FloatArray, least: float, n: int,
    D_lose: FloatArray, D_win: FloatArray, out_lose: FloatArray, out_win: FloatArray,
) -> None:  # fmt: skip
    """Add the Hessian of Σ win·lose·log(1 + e^{−z}) times the columns of D to those of ``out``."""
    losers, winners = _moments(v_lose, lose, least, n), _moments(v_win, win, least, n)
    bends = _coefficients(n, BEND, 0.0)
    at_winners, at_losers = _exchange(bends, winners, losers)
    degree_win = _values(v_win, at_winners, least)[:, 0]
    degree_lose = _values(v_lose, at_losers, least)[:, 0]
    for begin in range(0, D_win.shape[1], COLUMNS_AT_ONCE):
        some = slice(begin, begin + COLUMNS_AT_ONCE)
        losers = _moments(v_lose, _times(lose, D_lose[:, some]), least, n)
        winners = _moments(v_win, _times(win, D_win[:, some]), least, n)
        at_winners, at_losers = _exchange(bends, winners, losers)
        _add(out_win[:, some], win, degree_win, D_win[:, some], _values(v_win, at_winners, least))
        _add(
            out_lose[:, some], lose, degree_lose, D_lose[:, some], _values(v_lose, at_losers, least)
        )


@kernel
def _times(weight: FloatArray, D: FloatArray) -> FloatArray:
    out = np.empty(D.shape)
    for i in range(len(weight)):
        for f in range(D.shape[1]):
            out[i, f] = weight[i] * D[i, f]
    return out


@kernel
def _add(
    out: FloatArray, weight: FloatArray, degree: FloatArray, D: FloatArray, values: FloatArray
) -> None:
    for i in range(len(weight)):
        for f in range(D.shape[1]):
            out[i, f] += weight[i] * (degree[i] * D[i, f] - values[i, f])


# Sums are of several columns at once; the columns of a box's polynomial are adjacent.


@kernel
def _exchange(
    coefficients: FloatArray, winners: FloatArray, losers: FloatArray,
) -> tuple[FloatArray, FloatArray]:  # fmt: skip
    """Return the series of sums over losers in each box of winners, and vice versa."""
    n, _, width = winners.shape
    at_winners, at_losers = np.zeros((n, TERMS, width)), np.zeros((n, TERMS, width))
    found = np.empty(width)
    some_winners, some_losers = _filled(winners), _filled(losers)
    for a in range(n):
        for b in range(n):
            if not (some_winners[a] and some_losers[b]):
                continue
            own = coefficients[a - b + n - 1]
            for k in range(TERMS):
                if width == 1:  # as below, in half of the time
                    one = 0.0
                    for m in range(TERMS):
                        one += own[k, m] * losers[b, m, 0]
                        at_losers[b, m, 0] += own[k, m] * winners[a, k, 0]
                    at_winners[a, k, 0] += one
                    continue
                winning = winners[a, k]
                found[:] = 0.0
                for m in range(TERMS):
                    share, losing, at = own[k, m], losers[b, m], at_losers[b, m]
                    for f in range(width):
                        found[f] += share * losing[f]
                        at[f] += share * winning[f]
                at = at_winners[a, k]
                for f in range(width):
                    at[f] += found[f]
    return at_winners, at_losers


@kernel
def _filled(moments: FloatArray) -> BoolArray:
    """Return which boxes have a sum that is not zero."""
    out = np.zeros(len(moments), dtype=np.bool_)
    for box in range(len(moments)):
        for k in range(TERMS):
            for f in range(moments.shape[2]):
                out[box] |= moments[box, k, f] != 0.0
    return out


@kernel
def _moments(v: FloatArray, weights: FloatArray, least: float, n: int) -> FloatArray:
    """Sum weights × Chebyshev polynomials over the documents of each box."""
    columns = weights.reshape((len(v), -1))
    width = columns.shape[1]
    out = np.zeros((n, TERMS, width))
    for i in range(len(v)):
        box = int(v[i] - least)
        t = 2.0 * (v[i] - least - box) - 1.0
        weight = columns[i]
        before, now = t, 1.0
        for k in range(TERMS):
            row = out[box, k]
            for f in range(width):
                row[f] += weight[f] * now
            before, now = now, 2.0 * t * now - before
    return out


@kernel
def _values(v: FloatArray, coefficients: FloatArray, least: float) -> FloatArray:
    """Evaluate, at each score, the Chebyshev series of the box that it lies in (Clenshaw)."""
    width = coefficients.shape[2]
    out, two = np.empty((len(v), width)), np.empty(width)
    for i in range(len(v)):
        box = int(v[i] - least)
        t = 2.0 * (v[i] - least - box) - 1.0
        if width == 1:  # as below, in half of the time
            now, last = 0.0, 0.0
            for k in range(TERMS - 1, 0, -1):
                now, last = coefficients[box, k, 0] + 2.0 * t * now - last, now
            out[i, 0] = coefficients[box, 0, 0] + t * now - last
            continue
        one = out[i]
        one[:] = 0.0
        two[:] = 0.0
        for k in range(TERMS - 1, 0, -1):
            row = coefficients[box, k]
            for f in range(width):
                before = one[f]
                one[f] = row[f] + 2.0 * t * before - two[f]
                two[f] = before
        row = coefficients[box, 0]
        for f in range(width):
            one[f] = row[f] + t * one[f] - two[f]
    return out


@kernel
def _total(coefficients: FloatArray, winners: FloatArray, losers: FloatArray) -> float:
    """Sum a function over all pairs."""
    n = len(winners)
    total = 0.0
    some_winners, some_losers = _filled(winners), _filled(losers)
    for a in range(n):
        for b in range(n):
            if not (some_winners[a] and some_losers[b]):
                continue
            own = coefficients[a - b + n - 1]
            for k in range(TERMS):
                found = 0.0
                for m in range(TERMS):
                    found += own[k, m] * losers[b, m, 0]
                total += winners[a, k, 0] * found
    return total


@kernel
def _coefficients(n: int, kind: int, a: float) -> FloatArray:
    """Return the Chebyshev coefficients of a function of z between two boxes.

    The first index is the distance of the boxes plus n − 1, the second the winner's polynomial.
    """
    nodes, basis = np.empty(TERMS), np.empty((TERMS, TERMS))
    for j in range(TERMS):
        angle = math.pi * (j + 0.5) / TERMS
        nodes[j] = 0.5 * math.cos(angle)
        for k in range(TERMS):
            basis[k, j] = (1.0 if k == 0 else 2.0) / TERMS * math.cos(k * angle)
    out = np.empty((2 * n - 1, TERMS, TERMS))
    values, half = np.empty((TERMS, TERMS)), np.empty((TERMS, TERMS))
    for at in range(2 * n - 1):
        for i in range(TERMS):
            for j in range(TERMS):
                z = (at - n + 1) + nodes[i] - nodes[j]
                if kind == VALUE:
                    values[i, j] = max(-z, 0.0) + math.log1p(math.exp(-abs(z)))
                elif kind == WRONG:
                    values[i, j] = _wrong(z)
                elif kind == BEND:
                    values[i, j] = _wrong(z) * _wrong(-z)
                else:
                    values[i, j] = _entropy(z, a)
        np.dot(basis, values, half)
        np.dot(half, basis.T, out[at])
    return out


@kernel
def _wrong(z: float) -> float:
    """Return the probability of a wrong order."""
    e = math.exp(-abs(z))
    return (e if z > 0.0 else 1.0) / (1.0 + e)


@kernel
def _entropy(z: float, a: float) -> float:
    """Return the entropy of a times the probability of a wrong order, accurate near 0 and 1."""
    e = math.exp(-abs(z))
    s = a * (e if z > 0.0 else 1.0) / (1.0 + e)
    rest = ((1.0 if z > 0.0 else e) + (1.0 - a) * (e if z > 0.0 else 1.0)) / (1.0 + e)
    total = 0.0
    if s > 0.0:
        total -= s * (math.log(s) if s < 0.5 else math.log1p(-rest))
    if rest > 0.0:
        total -= rest * (math.log(rest) if rest < 0.5 else math.log1p(-s))
    return total
