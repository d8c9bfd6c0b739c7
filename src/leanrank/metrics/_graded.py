"""Measures of graded labels, off one query in ranked order.

``starts`` are the starts of the groups of documents whose order is averaged over, and their end.
"""

from __future__ import annotations

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray

_NEGLIGIBLE = 42.0  # e^-42 is below the rounding of 1


@kernel
def dcg(
    ranked: IntArray,
    starts: IntArray,
    n_groups: int,
    cut: int,
    gains: FloatArray,
    discounts: FloatArray,
) -> float:
    """Sum gain × discount to rank ``cut``; each position of a group earns its mean gain."""
    total = 0.0
    for g in range(n_groups):
        a, end = starts[g], starts[g + 1]
        if a >= cut:
            break
        gain = 0.0
        for i in range(a, end):
            gain += gains[ranked[i]]
        if gain > 0.0:
            discount = 0.0
            for i in range(a, min(end, cut)):
                discount += discounts[i]
            total += gain / (end - a) * discount
    return total


@kernel
def mean_ndcg(
    ranked: IntArray,
    starts: IntArray,
    n_groups: int,
    ideal: IntArray,
    n_ideal: int,
    gains: FloatArray,
    discounts: FloatArray,
) -> float:
    """Average NDCG@1 … NDCG@n over the length of the list."""
    total = dcg = best = 0.0
    for g in range(n_groups):
        a, end = starts[g], starts[g + 1]
        gain = 0.0
        for i in range(a, end):
            gain += gains[ranked[i]]
        gain /= end - a
        for i in range(a, end):
            dcg += gain * discounts[i]
            if i < n_ideal:
                best += gains[ideal[i]] * discounts[i]
            total += dcg / best
    return total / starts[n_groups]


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
