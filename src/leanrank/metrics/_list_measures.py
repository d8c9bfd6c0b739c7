"""Measures of ranked lists: of gains, of relevant documents, and of a reader who stops.

A kernel computes one measure of some queries. Shared arguments: query q has
``labels[ptr[q]:ptr[q+1]]``, the codes of its documents' levels in ranked order. Its ``n_groups[q]``
groups begin at ``starts[ptr[q] + q:]``, relative to its first document, followed by the end of the
last group. The ideal list and the number of relevant documents are those of the pool, which is
larger than the list if a run misses documents. ``out`` is unchanged where a query has no gain or no
relevant document.

The documents of a group have equal scores, and a measure is the expected value over all their
orders. With ``a`` documents ranked above, ``size`` in the group and ``r`` of them relevant, each
position of the group has a relevant document with probability r / size.
"""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray

_NEGLIGIBLE = 42.0  # e^-42 is below the rounding of 1


@kernel
def fill_earned(
    ptr: IntArray, labels: IntArray, starts: IntArray, n_groups: IntArray, gains: FloatArray,
    depth: int, earned: FloatArray,
) -> None:  # fmt: skip
    """Fill in the gain at each position up to ``depth``: the mean gain of its group."""
    for q in range(len(n_groups)):
        begin, at = ptr[q], ptr[q] + q
        for g in range(n_groups[q]):
            a, end = starts[at + g], starts[at + g + 1]
            if a >= depth:
                break
            if end - a == 1:
                earned[begin + a] = gains[labels[begin + a]]
                continue
            gain = 0.0
            for i in range(begin + a, begin + end):
                gain += gains[labels[i]]
            for i in range(begin + a, begin + min(end, depth)):
                earned[i] = gain / (end - a)


@kernel
def fill_ideal(
    pool_ptr: IntArray, pool: IntArray, gains: FloatArray, depth: int, ideal: FloatArray
) -> None:
    """Fill in the ``depth`` highest gains of each pool, from high to low, by counting levels."""
    counts = np.zeros(len(gains), np.int64)
    for q in range(len(pool_ptr) - 1):
        at, end = pool_ptr[q], pool_ptr[q + 1]
        for i in range(at, end):
            counts[pool[i]] += 1
        end = min(end, at + depth)
        for level in range(len(gains) - 1, -1, -1):
            for _ in range(min(counts[level], end - at)):
                ideal[at] = gains[level]
                at += 1
            counts[level] = 0


@kernel
def dcg(
    ptr: IntArray, earned: FloatArray, pool_ptr: IntArray, ideal: FloatArray,
    discounts: FloatArray, cut: int, short_is_zero: bool, relative: bool, out: FloatArray,
) -> None:  # fmt: skip
    """Sum gain × discount to rank ``cut``; if ``relative``, divide by the sum of the ideal list."""
    for q in range(len(out)):
        begin, n = ptr[q], ptr[q + 1] - ptr[q]
        best_begin, n_best = pool_ptr[q], pool_ptr[q + 1] - pool_ptr[q]
        if n_best == 0 or not ideal[best_begin] > 0.0:
            continue
        out[q] = 0.0
        if n == 0 or (short_is_zero and n < cut):
            continue
        total = 0.0
        for i in range(min(cut, n)):
            total += earned[begin + i] * discounts[i]
        if relative:
            best = 0.0
            for i in range(min(cut, n_best)):
                best += ideal[best_begin + i] * discounts[i]
            total /= best
        out[q] = total


@kernel
def mean_ndcg(
    ptr: IntArray, earned: FloatArray, pool_ptr: IntArray, ideal: FloatArray,
    discounts: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Average NDCG@1 … NDCG@n over the length of the list."""
    for q in range(len(out)):
        begin, n = ptr[q], ptr[q + 1] - ptr[q]
        best_begin, n_best = pool_ptr[q], pool_ptr[q + 1] - pool_ptr[q]
        if n_best == 0 or not ideal[best_begin] > 0.0:
            continue
        total = found = best = 0.0
        for i in range(n):
            found += earned[begin + i] * discounts[i]
            if i < n_best:
                best += ideal[best_begin + i] * discounts[i]
            total += found / best
        out[q] = total / n if n > 0 else 0.0


@kernel
def relevant_in(labels: IntArray, start: int, end: int, lowest: int) -> int:
    """Count the relevant documents of a part of a list."""
    found = 0
    for i in range(start, end):
        found += labels[i] >= lowest
    return found


@kernel
def average_precision(
    ptr: IntArray, labels: IntArray, starts: IntArray, n_groups: IntArray, relevant: IntArray,
    lowest: int, cut: int, cut_relevant: bool, out: FloatArray,
) -> None:  # fmt: skip
    """Average the precision at the ranks of the relevant documents to rank ``cut``."""
    for q in range(len(out)):
        if relevant[q] == 0:
            continue
        begin, at = ptr[q], ptr[q] + q
        total = 0.0
        above = 0
        for g in range(n_groups[q]):
            a, end = starts[at + g], starts[at + g + 1]
            if a >= cut:
                break
            size = end - a
            if size == 1:
                if labels[begin + a] >= lowest:
                    above += 1
                    total += above / end
                continue
            r = relevant_in(labels, begin + a, begin + end, lowest)
            if r > 0:
                # given a relevant one at position i, r − 1 others are spread over size − 1 places
                density = (r - 1) / (size - 1)
                part = 0.0
                for i in range(a, min(end, cut)):
                    part += (above + 1 + (i - a) * density) / (i + 1)
                total += part * r / size
            above += r
        out[q] = total / (min(relevant[q], cut) if cut_relevant else relevant[q])


@kernel
def reciprocal_rank(
    ptr: IntArray, labels: IntArray, starts: IntArray, n_groups: IntArray, relevant: IntArray,
    lowest: int, cut: int, out: FloatArray,
) -> None:  # fmt: skip
    """Expected reciprocal rank of the first relevant document to rank ``cut``, or 0."""
    for q in range(len(out)):
        if relevant[q] == 0:
            continue
        begin, at = ptr[q], ptr[q] + q
        total = 0.0
        for g in range(n_groups[q]):
            a, end = starts[at + g], starts[at + g + 1]
            if a >= cut:
                break
            r = relevant_in(labels, begin + a, begin + end, lowest)
            if r > 0:
                none_yet = 1.0  # probability that none came before position i of the group
                for i in range(a, min(end, cut)):
                    left = end - i
                    total += none_yet * r / left / (i + 1)
                    if left <= r:
                        break
                    none_yet *= (left - r) / left
                break
        out[q] = total


@kernel
def share_of_hits(
    ptr: IntArray, labels: IntArray, starts: IntArray, n_groups: IntArray, relevant: IntArray,
    lowest: int, cut: int, recall: bool, short_is_zero: bool, out: FloatArray,
) -> None:  # fmt: skip
    """Divide the relevant documents to rank ``cut`` by all that are relevant, or by ``cut``."""
    for q in range(len(out)):
        if relevant[q] == 0:
            continue
        begin, at = ptr[q], ptr[q] + q
        total = 0.0
        for g in range(n_groups[q]):
            a, end = starts[at + g], starts[at + g + 1]
            if a >= cut or (short_is_zero and ptr[q + 1] - begin < cut):
                break
            r = relevant_in(labels, begin + a, begin + end, lowest)
            total += r if end <= cut else r * (cut - a) / (end - a)
        out[q] = total / (relevant[q] if recall else cut)


@kernel
def err(
    ptr: IntArray, labels: IntArray, starts: IntArray, n_groups: IntArray, pool_ptr: IntArray,
    pool: IntArray, stops: FloatArray, scale: float, cut: int, out: FloatArray,
) -> None:  # fmt: skip
    """Expected reciprocal rank at which a reader stops; each document has a stop probability.

    In a group, let S_i be the expected probability to pass i of its documents drawn at random, so
    that the reader stops at position i with probability S_{i−1} − S_i. When one more document is
    added, S_i becomes a mixture of S_i (it is not among the i) and of its own pass probability ×
    S_{i−1} (it is). S_i ≤ (S_1)^i, so positions beyond 42 / (1 − S_1) do not change the result.
    """
    longest = 0
    for q in range(len(out)):
        longest = max(longest, ptr[q + 1] - ptr[q])
    passing = np.empty(longest)
    for q in range(len(out)):
        most = 0.0
        for i in range(pool_ptr[q], pool_ptr[q + 1]):
            most = max(most, stops[pool[i]])
        if most == 0.0:
            continue
        begin, at = ptr[q], ptr[q] + q
        total = 0.0
        reading = 1.0  # probability that the reader reaches this group
        for g in range(n_groups[q]):
            a, size = starts[at + g], starts[at + g + 1] - starts[at + g]
            if a >= cut:
                break
            if size == 1:
                stop = stops[labels[begin + a]] * scale
                total += reading * stop / (a + 1)
                reading *= 1.0 - stop
                continue
            first, last = begin + a, begin + a + size
            mass = 0.0
            for i in range(first, last):
                mass += stops[labels[i]] * scale
            if mass == 0.0:
                continue
            deep = min(size, cut - a)
            if _NEGLIGIBLE * size < mass * deep:
                deep = int(_NEGLIGIBLE * size / mass) + 1
            joined = 0  # irrelevant documents first: their pass probability is 1
            for i in range(first, last):
                joined += stops[labels[i]] == 0.0
            for i in range(deep):
                passing[i] = 1.0 if i < joined else 0.0
            product = 1.0
            for i in range(first, last):
                stop = stops[labels[i]] * scale
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
        out[q] = total
