"""Kernels on shown lists, which other kernels may call.

Random numbers are a function of a key and a counter, and a key is a function of a seed and the
number of a list: ``uniform(list_key(seed, number), draw)``. So a stream does not depend on the
number of threads, on the size of chunks, or on earlier draws.

A click model is three tables. An index past the end of a dimension means its last entry, so that a
parameter does not depend on a dimension of size 1. Distance is 0 before the first click and
``rank − last clicked rank`` after it. A grade below 0 is an empty rank.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, BoolArray, FloatArray
from leanrank.solvers.sampling.pair_sampling import GOLDEN, mix_bits, to_unit


class Tables(NamedTuple):
    """The parameters of a click model, or counts of them (see ``leanrank.online.ClickModel``).

    Attributes
    ----------
    examine : array of shape (ranks, distances)
    click : array of shape (grades,)
    stop : array of shape (2, ranks, grades)
    """

    examine: FloatArray
    click: FloatArray
    stop: FloatArray


@kernel
def list_key(seed: Any, number: int) -> Any:
    """Return the key of one list's random numbers, a ``np.uint64``."""
    return mix_bits(mix_bits(np.uint64(seed) + GOLDEN) + np.uint64(number) * GOLDEN)


@kernel
def uniform(key: Any, draw: int) -> float:
    """Return draw number ``draw`` of a key, uniform in [0, 1)."""
    return to_unit(mix_bits(np.uint64(key) + np.uint64(draw + 1) * GOLDEN))


@kernel
def draw_weighted(weight: FloatArray, target: float) -> int:
    """Return the index where the running sum of the weights passes a target; never one of zero."""
    chosen = -1
    for i in range(len(weight)):
        if weight[i] > 0.0:
            chosen = i
            target -= weight[i]
            if target < 0.0:
                break
    return chosen


@kernel
def draw_clicks(tables: Tables, grades: AnyArray, key: Any, clicked: BoolArray) -> None:
    """Draw the clicks of one list into ``clicked``. Rank r uses draw r of the key."""
    clicked[:] = False
    last = -1
    for r in range(len(grades)):
        g = grades[r]
        if g < 0:
            continue
        e, a, s0, s1 = step(tables, r, 0 if last < 0 else r - last, g)
        u = uniform(key, r)  # decides what happens at this rank: [click, stop | click | skip, stop]
        if u < e * a:
            clicked[r] = True
            last = r
            if u < e * a * s1:
                return
        elif u < e * (a + (1.0 - a) * s0):
            return


@kernel
def step(tables: Tables, r: int, d: int, g: int) -> tuple[float, float, float, float]:
    """Return P(examine), P(click | examined), P(stop | passed over) and P(stop | clicked)."""
    examine, click, stop = tables
    e = examine[min(r, examine.shape[0] - 1), min(d, examine.shape[1] - 1)]
    r, s = min(r, stop.shape[1] - 1), min(g, stop.shape[2] - 1)
    return e, click[g], stop[0, r, s], stop[1, r, s]


@kernel
def draw_lists(tables: Tables, shown: AnyArray, seed: Any, first: int, clicked: BoolArray) -> None:
    """Draw the clicks of several lists; the first of them has number ``first``."""
    for n in range(len(shown)):
        draw_clicks(tables, shown[n], list_key(seed, first + n), clicked[n])


@kernel
def marginals(tables: Tables, shown: AnyArray, out: FloatArray) -> None:
    """Write the probability of a click at each rank of each list, before any click is seen."""
    depth = shown.shape[1]
    reading = np.empty(depth + 1)  # still reading, by the rank of the last click + 1
    for n in range(len(shown)):
        reading[:] = 0.0
        reading[0] = 1.0
        for r in range(depth):
            out[n, r] = 0.0
            g = shown[n, r]
            if g < 0:
                continue
            for last in range(r + 1):
                d = 0 if last == 0 else r + 1 - last
                e, a, s0, s1 = step(tables, r, d, g)
                out[n, r] += reading[last] * e * a
                reading[last] *= 1.0 - e * (a + (1.0 - a) * s0)
            reading[r + 1] = out[n, r] * (1.0 - s1)


@kernel
def expectations(tables: Tables, shown: AnyArray, clicked: BoolArray, counts: Tables) -> float:
    """Add the expected counts of every parameter given the clicks; return the log-likelihood.

    Counts have the shape of their table and a leading dimension: [0] counts the opportunities of an
    event, [1] the events. Given the clicks, the only hidden state is whether the user still reads,
    so there is a forward and a backward pass over two states.
    """
    depth = shown.shape[1]
    e_at, a_at = np.empty(depth), np.empty(depth)
    s0_at, s1_at = np.empty(depth), np.empty(depth)
    forward = np.empty((depth, 3))  # reading, gone before the rank; the scale of its step
    distance = np.empty(depth, dtype=np.int64)
    total = 0.0
    for n in range(len(shown)):
        reading, gone, last = 1.0, 0.0, -1
        for r in range(depth):
            forward[r, 0], forward[r, 1], forward[r, 2] = reading, gone, 1.0
            g = shown[n, r]
            if g < 0:
                continue
            distance[r] = 0 if last < 0 else r - last
            e, a, s0, s1 = step(tables, r, distance[r], g)
            e_at[r], a_at[r], s0_at[r], s1_at[r] = e, a, s0, s1
            if clicked[n, r]:
                gone = reading * e * a * s1
                reading = reading * e * a * (1.0 - s1)
                last = r
            else:
                skip = reading * e * (1.0 - a)
                gone += skip * s0
                reading = reading * (1.0 - e) + skip * (1.0 - s0)
            scale = reading + gone
            forward[r, 2] = scale
            if scale == 0.0:
                return -np.inf
            reading, gone = reading / scale, gone / scale
            total += np.log(scale)
        after_reading, after_gone = 1.0, 1.0
        for r in range(depth - 1, -1, -1):
            g = shown[n, r]
            if g < 0:
                continue
            e, a, s0, s1 = e_at[r], a_at[r], s0_at[r], s1_at[r]
            i = min(r, tables.examine.shape[0] - 1)
            j = min(distance[r], tables.examine.shape[1] - 1)
            k, m = min(r, tables.stop.shape[1] - 1), min(g, tables.stop.shape[2] - 1)
            stay, leave = after_reading / forward[r, 2], after_gone / forward[r, 2]
            if clicked[n, r]:
                counts.examine[0, i, j] += 1.0
                counts.examine[1, i, j] += 1.0
                counts.click[0, g] += 1.0
                counts.click[1, g] += 1.0
                counts.stop[0, 1, k, m] += 1.0
                counts.stop[1, 1, k, m] += forward[r, 0] * e * a * s1 * leave
                after_reading = e * a * ((1.0 - s1) * stay + s1 * leave)
                after_gone = 0.0
            else:
                unseen = forward[r, 0] * (1.0 - e) * stay
                left = forward[r, 0] * e * (1.0 - a) * s0 * leave
                skipped = forward[r, 0] * e * (1.0 - a) * (1.0 - s0) * stay + left
                counts.examine[0, i, j] += unseen + skipped
                counts.examine[1, i, j] += skipped
                counts.click[0, g] += skipped
                counts.stop[0, 0, k, m] += skipped
                counts.stop[1, 0, k, m] += left
                after_reading = (1.0 - e) * stay + e * (1.0 - a) * ((1.0 - s0) * stay + s0 * leave)
                after_gone = leave
    return total
