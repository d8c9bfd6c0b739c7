"""Sorting the scores of a query: by digits in long lists, else by merging; sorted ones stay."""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray

FEWEST_BY_DIGITS = 1_024
"""List length from which a sort by digits is faster than one by comparison."""

RUN = 20
"""Length of the runs that are sorted by insertion, then merged."""

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
    if n < FEWEST_BY_DIGITS or not _sort_by_digits(u, begin, rows, x):
        sort_by_merging(u, begin, rows, x)


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
def sort_by_merging(u: FloatArray, begin: int, rows: IntArray, x: FloatArray) -> None:
    """Sort the rows of a query, from ``begin`` on, by ascending score, equal scores by row.

    Runs are sorted by insertion, then merged. Numba's own sort takes longer to compile.
    """
    n = len(rows)
    for start in range(0, n, RUN):
        for at in range(start, min(start + RUN, n)):
            here, place = u[begin + at], at
            while place > start and x[place - 1] > here:
                x[place], rows[place] = x[place - 1], rows[place - 1]
                place -= 1
            x[place], rows[place] = here, begin + at
    if n <= RUN:
        return
    scores, numbers = np.empty(n), np.empty(n, np.int64)  # of the left of two runs
    width = RUN
    while width < n:
        for start in range(0, n - width, 2 * width):
            for at in range(width):
                scores[at], numbers[at] = x[start + at], rows[start + at]
            left, right, end, at = 0, start + width, min(start + 2 * width, n), start
            while left < width and right < end:
                if x[right] < scores[left]:
                    x[at], rows[at] = x[right], rows[right]
                    right += 1
                else:
                    x[at], rows[at] = scores[left], numbers[left]
                    left += 1
                at += 1
            while left < width:
                x[at], rows[at] = scores[left], numbers[left]
                left, at = left + 1, at + 1
        width *= 2


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
