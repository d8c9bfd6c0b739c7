"""Measures of pairs, which are implied and never listed, and of scores.

A pair is *comparable* if its labels differ. A pair with equal scores is a tie in every convention
and counts as half wrong. The arguments of the kernels are those of ``_list_measures``, where each
group is a tie.

The measure ``loss`` is smooth in the scores, so that a choice by it depends less on chance. With u
the scores of a query and p its gains divided by their sum, a query's loss is

    log Σ exp(t·u_i) − t·Σ p_i u_i.

The scale t ≥ 0 minimises the sum over all queries. So the measure does not depend on the unit of
the scores, and can compare models of different losses.
"""

from __future__ import annotations

import math

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray
from leanrank.metrics._list_measures import relevant_in

STEEPEST = 100.0
"""Largest t, in units of 1 over the standard deviation of scores within queries."""


@kernel
def auc(
    ptr: IntArray, labels: IntArray, starts: IntArray, n_groups: IntArray, lowest: int,
    out: FloatArray,
) -> None:  # fmt: skip
    """Share of the pairs of a relevant and an irrelevant document that are in order."""
    for q in range(len(out)):
        begin, at = ptr[q], ptr[q] + q
        relevant = irrelevant = 0
        wrong = 0.0
        for g in range(n_groups[q]):
            a, end = starts[at + g], starts[at + g + 1]
            r = relevant_in(labels, begin + a, begin + end, lowest)
            s = end - a - r
            wrong += r * (irrelevant + 0.5 * s)
            relevant += r
            irrelevant += s
        if relevant > 0 and irrelevant > 0:
            out[q] = 1.0 - wrong / relevant / irrelevant


@kernel
def domination_error(
    ptr: IntArray, labels: IntArray, starts: IntArray, n_groups: IntArray, out: FloatArray
) -> None:
    """Share of the dominating documents below some document of a lower level."""
    for q in range(len(out)):
        begin, end, at = ptr[q], ptr[q + 1], ptr[q] + q
        if begin == end:
            continue
        lowest = labels[begin]
        for i in range(begin + 1, end):
            lowest = min(lowest, labels[i])
        dominating = wrong = 0
        worst_above = labels[begin]  # above the first group is nothing: it is no lower than itself
        for g in range(n_groups[q]):
            first, last = begin + starts[at + g], begin + starts[at + g + 1]
            for i in range(first, last):
                if labels[i] > lowest:
                    dominating += 1
                    wrong += g > 0 and worst_above < labels[i]
            for i in range(first, last):
                worst_above = min(worst_above, labels[i])
        if dominating > 0:
            out[q] = wrong / dominating


@kernel
def count_pairs(
    ptr: IntArray, labels: IntArray, starts: IntArray, n_groups: IntArray, tree: IntArray,
    out: FloatArray,
) -> None:  # fmt: skip
    """Fill in the share of wrong pairs, Kendall's tau-b and Joachims' tau, one row each.

    Documents are added to a Fenwick tree from the top of the list down. It counts them by label,
    and so gives the number of documents above with a lower label. The tree
    is zero before and after each query, and has one number more than there are levels.
    """
    for q in range(len(n_groups)):
        begin, n, at = ptr[q], ptr[q + 1] - ptr[q], ptr[q] + q
        discordant = same_score = same_label = same_above = 0
        for g in range(n_groups[q]):
            first, last = begin + starts[at + g], begin + starts[at + g + 1]
            same_score += (last - first) * (last - first - 1) // 2
            for i in range(first, last):
                lower = _count_below(tree, labels[i])
                discordant += lower
                same_above += _count_below(tree, labels[i] + 1) - lower
            for i in range(first, last):
                same_label += _count_below(tree, labels[i] + 1) - _count_below(tree, labels[i])
                _add(tree, labels[i], 1)
        for i in range(begin, begin + n):
            _add(tree, labels[i], -1)
        every = n * (n - 1) // 2
        comparable = every - same_label
        tied = same_score - (same_label - same_above)
        concordant = comparable - tied - discordant
        if comparable > 0:
            out[0, q] = (discordant + 0.5 * tied) / comparable
            if every > same_score:
                tau = (concordant - discordant) / math.sqrt(comparable)
                out[1, q] = tau / math.sqrt(every - same_score)
            out[2, q] = (concordant - discordant) / comparable


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
