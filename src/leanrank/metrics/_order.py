"""Sorting the documents of one query by score."""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray


@kernel
def sort_descending(
    keys: FloatArray, order: IntArray, n: int, spare_keys: FloatArray, spare_order: IntArray
) -> None:
    """Sort ``keys[:n]`` from high to low, equal ones in their order, ``order`` along with them.

    Scores come in random order, which makes the processor guess every other branch wrong, so there
    are few: runs of four are placed by comparing all pairs, then merged from both ends at once,
    where as many steps as the shorter run is long need no check for its end.
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

    The places are unsigned, which spares the inner loop the check for a negative index: a third of
    the time of a sort.
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
