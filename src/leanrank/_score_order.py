"""Sorting the scores of a query: by digits in long lists, else by merging; sorted ones stay."""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray

FEWEST_BY_DIGITS = 1_024
"""List length from which a sort by digits is faster than one by comparison."""

MOST_MOVES = 4
"""Largest mean distance that a score may move after the sort by digits."""


@kernel
def sort_scores(u: FloatArray, begin: int, rows: IntArray, x: FloatArray) -> None:
    """Sort the rows of a query, from ``begin`` on, by ascending score, equal scores by row.

    ``rows`` holds the last order, and x receives the scores. If the order still holds, this takes
    one pass, so value, gradient and curvature at a point need one sort. The result does not depend
    on the last order.
    """
    n = len(rows)
    if _in_order(u, rows, x):
        return
    if n >= FEWEST_BY_DIGITS and _sort_by_digits(u, begin, rows, x):
        return
    for at in range(n):
        x[at], rows[at] = -u[begin + at], begin + at
    sort_descending(x, rows, n, np.empty(n), np.empty(n, np.int64))
    for at in range(n):
        x[at] = -x[at]


@kernel
def _in_order(u: FloatArray, rows: IntArray, x: FloatArray) -> bool:
    """Read the scores in the given order; return whether it is sorted."""
    last, before = -np.inf, -1
    for at in range(len(rows)):
        i = rows[at]
        here = u[i]
        if not (last < here or (last == here and before < i)):
            return False
        x[at] = here
        last, before = here, i
    return True


@kernel
def _sort_by_digits(u: FloatArray, begin: int, rows: IntArray, x: FloatArray) -> bool:
    """Sort by the leading 32 bits of each score's position between the least and the greatest.

    Scores with equal bits are then sorted by insertion. Return False if that is too much work, as
    when one score is far from all others.
    """
    n = len(rows)
    least, most = np.inf, -np.inf
    for at in range(n):
        least, most = min(least, u[begin + at]), max(most, u[begin + at])
    width = most - least
    if not (width > 0.0 and width < np.inf):
        return False
    scale = 4294967295.0 / width
    if not scale < np.inf:
        return False
    counts = np.zeros((4, 256), np.int64)
    words, other = np.empty(n, np.uint64), np.empty(n, np.uint64)
    for at in range(n):
        key = np.uint64((u[begin + at] - least) * scale)
        words[at] = (key << np.uint64(32)) | np.uint64(at)
        for digit in range(4):
            counts[digit, (key >> np.uint64(8 * digit)) & np.uint64(255)] += 1
    for digit in range(4):
        total = 0
        for value in range(256):
            count = counts[digit, value]
            counts[digit, value] = total
            total += count
        shift = np.uint64(32 + 8 * digit)
        for at in range(n):
            value = (words[at] >> shift) & np.uint64(255)
            other[counts[digit, value]] = words[at]
            counts[digit, value] += 1
        words, other = other, words
    moves = 0
    for at in range(n):
        i = begin + np.int64(words[at] & np.uint64(4294967295))
        here = u[i]
        place = at
        while place > 0 and (x[place - 1] > here or (x[place - 1] == here and rows[place - 1] > i)):
            x[place], rows[place] = x[place - 1], rows[place - 1]
            place -= 1
        x[place], rows[place] = here, i
        moves += at - place
        if moves > MOST_MOVES * n:
            return False
    return True


@kernel
def sort_descending(
    keys: FloatArray, order: IntArray, n: int, spare_keys: FloatArray, spare_order: IntArray
) -> None:
    """Sort ``keys[:n]`` from high to low, equal ones in their order, ``order`` along with them.

    Scores come in random order, so that the processor would mispredict every other branch. There
    are few branches: runs of four are sorted by comparing all pairs, then merged from both ends at
    once; as many steps as the shorter run is long need no check for its end.
    """
    whole = n // 4 * 4
    for i in range(0, whole, 4):
        a, b, c, d = keys[i], keys[i + 1], keys[i + 2], keys[i + 3]
        ab, ac, ad = int(b > a), int(c > a), int(d > a)
        bc, bd, cd = int(c > b), int(d > b), int(d > c)
        at_a, at_b = i + ab + ac + ad, i + 1 - ab + bc + bd
        at_c, at_d = i + 2 - ac - bc + cd, i + 3 - ad - bd - cd
        spare_keys[at_a], spare_order[at_a] = a, order[i]
        spare_keys[at_b], spare_order[at_b] = b, order[i + 1]
        spare_keys[at_c], spare_order[at_c] = c, order[i + 2]
        spare_keys[at_d], spare_order[at_d] = d, order[i + 3]
    for i in range(whole, n):
        at = i
        while at > whole and spare_keys[at - 1] < keys[i]:
            spare_keys[at], spare_order[at] = spare_keys[at - 1], spare_order[at - 1]
            at -= 1
        spare_keys[at], spare_order[at] = keys[i], order[i]
    here, there = spare_keys, keys
    here_order, there_order = spare_order, order
    moved = True
    width = 4
    while width < n:
        for start in range(0, n, 2 * width):
            middle, end = min(start + width, n), min(start + 2 * width, n)
            _merge_runs(here, here_order, start, middle, end, there, there_order)
        here, there = there, here
        here_order, there_order = there_order, here_order
        moved = not moved
        width *= 2
    if moved:
        for i in range(n):
            keys[i] = spare_keys[i]
            order[i] = spare_order[i]


@kernel
def _merge_runs(
    keys: FloatArray,
    order: IntArray,
    start: int,
    middle: int,
    end: int,
    to_keys: FloatArray,
    to_order: IntArray,
) -> None:
    """Merge ``keys[start:middle]`` and ``keys[middle:end]``, both from high to low.

    Indices are unsigned, so that the inner loop does not check for negative ones: that check takes
    a third of the time of a sort.
    """
    one = np.uint64(1)
    left, right, out = np.uint64(start), np.uint64(middle), np.uint64(start)
    left_end, right_end, out_end = np.uint64(middle - 1), np.uint64(end - 1), np.uint64(end - 1)
    for _ in range(min(middle - start, end - middle)):
        a, b = keys[left], keys[right]
        from_right = b > a
        to_keys[out] = b if from_right else a
        to_order[out] = order[right] if from_right else order[left]
        right += np.uint64(from_right)
        left += np.uint64(not from_right)
        out += one
        a, b = keys[left_end], keys[right_end]
        from_left = a < b
        to_keys[out_end] = a if from_left else b
        to_order[out_end] = order[left_end] if from_left else order[right_end]
        left_end -= np.uint64(from_left)
        right_end -= np.uint64(not from_left)
        out_end -= one
    here, there = np.int64(left), np.int64(right)
    here_end, there_end = np.int64(left_end), np.int64(right_end)
    for to in range(np.int64(out), np.int64(out_end) + 1):  # the rest of the longer run
        if here > here_end or (there <= there_end and keys[there] > keys[here]):
            at = there
            there += 1
        else:
            at = here
            here += 1
        to_keys[to] = keys[at]
        to_order[to] = order[at]
