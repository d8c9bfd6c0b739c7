"""Measures of one query in ranked order: of graded labels, and of pairs that are never listed.

``starts`` are the starts of the groups of documents whose order is averaged over, and their end.
A pair is *comparable* when its labels differ. A pair with equal scores is a tie whatever the
convention: it is half wrong.

The measure ``loss`` is smooth in the scores, so that a choice by it is less a matter of luck. With
u the scores of a query and p its gains divided by their sum, a query's loss is

    log Σ exp(t·u_i) − t·Σ p_i u_i.

The scale t ≥ 0 is the one that suits all queries together best. So the measure does not depend on
the unit of the scores, and models of different losses can be compared by it.
"""

from __future__ import annotations

import math

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray
from leanrank.metrics.measures import ALL_PAIRS_ERROR, JOACHIMS, KENDALL

KIND = 0  # column of the table of measures
_NEGLIGIBLE = 42.0  # e^-42 is below the rounding of 1

STEEPEST = 100.0
"""Most that t may be, in units of 1 over the standard deviation of scores within queries."""


@kernel
def relevant_in(ranked: IntArray, start: int, end: int, lowest: int) -> int:
    """Count the relevant documents of a part of a list."""
    found = 0
    for i in range(start, end):
        found += ranked[i] >= lowest
    return found


@kernel
def mean_gains(
    ranked: IntArray,
    starts: IntArray,
    n_groups: int,
    depth: int,
    gains: FloatArray,
    earned: FloatArray,
) -> None:
    """Fill what each position to ``depth`` earns: the mean gain of its group."""
    for g in range(n_groups):
        a, end = starts[g], starts[g + 1]
        if a >= depth:
            break
        gain = 0.0
        for i in range(a, end):
            gain += gains[ranked[i]]
        for i in range(a, min(end, depth)):
            earned[i] = gain / (end - a)


@kernel
def dcg(earned: FloatArray, discounts: FloatArray, n: int) -> float:
    """Sum gain × discount of the first ``n`` positions."""
    total = 0.0
    for i in range(n):
        total += earned[i] * discounts[i]
    return total


@kernel
def mean_ndcg(
    earned: FloatArray, n: int, ideal: FloatArray, n_ideal: int, discounts: FloatArray
) -> float:
    """Average NDCG@1 … NDCG@n over the length of the list."""
    total = dcg = best = 0.0
    for i in range(n):
        dcg += earned[i] * discounts[i]
        if i < n_ideal:
            best += ideal[i] * discounts[i]
        total += dcg / best
    return total / n


@kernel
def err(
    ranked: IntArray,
    starts: IntArray,
    n_groups: int,
    cut: int,
    stops: FloatArray,
    scale: float,
    passing: FloatArray,
) -> float:
    """Expected reciprocal rank at which a reader stops; each document has its stop probability.

    In a group, let S_i be the expected probability to pass i of its documents drawn at random, so
    that the reader stops at position i with probability S_{i−1} − S_i. When one more document
    joins, S_i becomes a mixture of S_i (it is not among the i) and of its own pass probability ×
    S_{i−1} (it is). S_i ≤ (S_1)^i, so positions beyond 42 / (1 − S_1) cannot be seen in the result.
    """
    total = 0.0
    reading = 1.0  # probability that the reader comes this far
    for g in range(n_groups):
        a, size = starts[g], starts[g + 1] - starts[g]
        if a >= cut:
            break
        if size == 1:
            stop = stops[ranked[a]] * scale
            total += reading * stop / (a + 1)
            reading *= 1.0 - stop
            continue
        mass = 0.0
        for i in range(a, a + size):
            mass += stops[ranked[i]] * scale
        if mass == 0.0:
            continue
        deep = min(size, cut - a)
        if _NEGLIGIBLE * size < mass * deep:
            deep = int(_NEGLIGIBLE * size / mass) + 1
        joined = 0  # the irrelevant ones first: they are passed for certain
        for i in range(a, a + size):
            joined += stops[ranked[i]] == 0.0
        for i in range(deep):
            passing[i] = 1.0 if i < joined else 0.0
        product = 1.0
        for i in range(a, a + size):
            stop = stops[ranked[i]] * scale
            if stop == 0.0:
                continue
            joined += 1
            product *= 1.0 - stop
            for j in range(min(joined, deep), 0, -1):
                before = passing[j - 2] if j > 1 else 1.0
                passing[j - 1] += j / joined * (before * (1.0 - stop) - passing[j - 1])
        before = 1.0
        for i in range(deep):
            total += reading * (before - passing[i]) / (a + i + 1)
            before = passing[i]
        reading *= product
    return total


@kernel
def auc(ranked: IntArray, starts: IntArray, n_groups: int, lowest: int) -> float:
    relevant = irrelevant = 0
    wrong = 0.0
    for g in range(n_groups):
        r = relevant_in(ranked, starts[g], starts[g + 1], lowest)
        s = starts[g + 1] - starts[g] - r
        wrong += r * (irrelevant + 0.5 * s)
        relevant += r
        irrelevant += s
    if relevant == 0 or irrelevant == 0:
        return math.nan
    return 1.0 - wrong / relevant / irrelevant


@kernel
def domination_error(ranked: IntArray, n: int, starts: IntArray, n_groups: int) -> float:
    """Share of the dominating documents below some document of a lower level."""
    if n == 0:
        return math.nan
    lowest = ranked[0]
    for i in range(1, n):
        lowest = min(lowest, ranked[i])
    dominating = wrong = 0
    worst_above = ranked[0]  # nothing stands above the first group, and it is no lower than itself
    for g in range(n_groups):
        for i in range(starts[g], starts[g + 1]):
            if ranked[i] > lowest:
                dominating += 1
                wrong += g > 0 and worst_above < ranked[i]
        for i in range(starts[g], starts[g + 1]):
            worst_above = min(worst_above, ranked[i])
    return wrong / dominating if dominating > 0 else math.nan


@kernel
def count_pairs(
    ranked: IntArray,
    starts: IntArray,
    n_groups: int,
    tree: IntArray,
    table: IntArray,
    q: int,
    values: FloatArray,
) -> None:
    """Fill the measures that count pairs.

    Documents enter ``tree`` from the top of the list down. It counts them by label, so that it says
    how many above have a lower label (a Fenwick tree); it is zero before and after.
    """
    discordant = same_score = same_label = same_above = 0
    n = starts[n_groups]
    for g in range(n_groups):
        a, end = starts[g], starts[g + 1]
        same_score += (end - a) * (end - a - 1) // 2
        for i in range(a, end):
            lower = _count_below(tree, ranked[i])
            discordant += lower
            same_above += _count_below(tree, ranked[i] + 1) - lower
        for i in range(a, end):
            same_label += _count_below(tree, ranked[i] + 1) - _count_below(tree, ranked[i])
            _add(tree, ranked[i], 1)
    for i in range(n):
        _add(tree, ranked[i], -1)
    every = n * (n - 1) // 2
    comparable = every - same_label
    tied = same_score - (same_label - same_above)
    concordant = comparable - tied - discordant
    for m in range(len(table)):
        kind = table[m, KIND]
        value = math.nan
        if kind == ALL_PAIRS_ERROR:
            if comparable > 0:
                value = (discordant + 0.5 * tied) / comparable
        elif kind == JOACHIMS:
            if comparable > 0:
                value = (concordant - discordant) / comparable
        elif kind == KENDALL:
            if comparable > 0 and every > same_score:
                value = (concordant - discordant) / math.sqrt(comparable)
                value /= math.sqrt(every - same_score)
        else:
            continue
        values[m, q] = value


@kernel
def _count_below(tree: IntArray, code: int) -> int:
    """Return how many documents in the tree have a code below another."""
    found = 0
    while code > 0:
        found += tree[code]
        code -= code & -code
    return found


@kernel
def _add(tree: IntArray, code: int, change: int) -> None:
    at = code + 1
    while at < len(tree):
        tree[at] += change
        at += at & -at


def softmax_losses(scores: FloatArray, gains: FloatArray, query_ptr: IntArray) -> FloatArray:
    """Return the loss of each query at the best scale; NaN where all gains are the same.

    Examples
    --------
    >>> ptr, gains = np.array([0, 2, 4]), np.array([1.0, 0.0, 1.0, 1.0])
    >>> softmax_losses(np.array([1.0, 1.0, 5.0, 3.0]), gains, ptr).tolist()
    [0.6931471805599453, nan]
    """
    from scipy.optimize import brentq

    out = np.full(len(query_ptr) - 1, np.nan)
    sizes = np.diff(query_ptr)
    starts = query_ptr[:-1][sizes > 0]
    differ = np.zeros(len(sizes), dtype=bool)
    if len(starts):
        gap = np.maximum.reduceat(gains, starts) - np.minimum.reduceat(gains, starts)
        differ[sizes > 0] = gap > 0
    if not differ.any():
        return out
    rows, sizes = np.repeat(differ, sizes), sizes[differ]
    starts = np.cumsum(sizes) - sizes
    u, p = scores[rows], gains[rows] / np.repeat(np.add.reduceat(gains[rows], starts), sizes)
    u = u - np.repeat(np.maximum.reduceat(u, starts), sizes)  # at most 0
    wanted = np.add.reduceat(p * u, starts)

    def slope(t: float) -> float:
        e = np.exp(t * u)
        means = np.add.reduceat(e * u, starts) / np.add.reduceat(e, starts)
        return float(np.mean(means - wanted))

    spread = float(np.std(u - np.repeat(np.add.reduceat(u, starts) / sizes, sizes)))
    t, steepest = 0.0, STEEPEST / spread if spread > 0 else 0.0
    if steepest and slope(0.0) < 0:
        t = steepest
        if slope(steepest) > 0:
            t = brentq(slope, 0.0, steepest, xtol=1e-4 / spread, rtol=1e-4)
    out[differ] = np.log(np.add.reduceat(np.exp(t * u), starts)) - t * wanted
    return out
