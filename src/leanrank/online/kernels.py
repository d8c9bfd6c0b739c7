"""Compiled loops over shown lists, for use from other compiled loops too.

Random numbers are a function of a key and a counter, and a key is a function of a seed and the
number of a list: ``uniform(list_key(seed, number), draw)``. So a stream does not depend on the
number of threads, on the size of the parts, or on what was drawn before.

A click model is three arrays (see ``leanrank.online.ClickModel``):
``examine[rank, distance]``, ``click[grade]`` and ``stop[clicked, rank, grade]``. An index past the
end of a dimension means its last entry, so that a dimension of size 1 is a parameter that does not
depend on it. Distance is 0 before the first click and ``rank − last clicked rank`` after it. A
grade below 0 is an empty place.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, BoolArray, FloatArray
from leanrank.solvers.sampling.pair_sampling import GOLDEN, mix_bits, to_unit


@kernel
def list_key(seed: Any, number: int) -> Any:
    """Return the key of one list's random numbers, a ``np.uint64``."""
    return mix_bits(mix_bits(np.uint64(seed) + GOLDEN) + np.uint64(number) * GOLDEN)


@kernel
def uniform(key: Any, draw: int) -> float:
    """Return draw number ``draw`` of a key, uniform in [0, 1)."""
    return to_unit(mix_bits(np.uint64(key) + np.uint64(draw + 1) * GOLDEN))


@kernel
def draw_clicks(
    examine: FloatArray,
    click: FloatArray,
    stop: FloatArray,
    grades: AnyArray,
    key: Any,
    clicked: BoolArray,
) -> None:
    """Draw the clicks of one list into ``clicked``. Rank r uses draw r of the key."""
    clicked[:] = False
    last = -1
    for r in range(len(grades)):
        g = grades[r]
        if g < 0:
            continue
        e, a, s0, s1 = step(examine, click, stop, r, 0 if last < 0 else r - last, g)
        u = uniform(key, r)  # decides what happens at this rank: [click, stop | click | skip, stop]
        if u < e * a:
            clicked[r] = True
            last = r
            if u < e * a * s1:
                return
        elif u < e * (a + (1.0 - a) * s0):
            return


@kernel
def step(
    examine: FloatArray, click: FloatArray, stop: FloatArray, r: int, d: int, g: int
) -> tuple[float, float, float, float]:
    """Return P(examine), P(click | examined), P(stop | passed over) and P(stop | clicked)."""
    e = examine[min(r, examine.shape[0] - 1), min(d, examine.shape[1] - 1)]
    r, s = min(r, stop.shape[1] - 1), min(g, stop.shape[2] - 1)
    return e, click[g], stop[0, r, s], stop[1, r, s]


@kernel
def draw_lists(
    examine: FloatArray,
    click: FloatArray,
    stop: FloatArray,
    shown: AnyArray,
    seed: Any,
    first: int,
    clicked: BoolArray,
) -> None:
    """Draw the clicks of several lists; the first of them has number ``first``."""
    for n in range(len(shown)):
        draw_clicks(examine, click, stop, shown[n], list_key(seed, first + n), clicked[n])


@kernel
def marginals(
    examine: FloatArray, click: FloatArray, stop: FloatArray, shown: AnyArray, out: FloatArray
) -> None:
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
                e, a, s0, s1 = step(examine, click, stop, r, d, g)
                out[n, r] += reading[last] * e * a
                reading[last] *= 1.0 - e * (a + (1.0 - a) * s0)
            reading[r + 1] = out[n, r] * (1.0 - s1)


@kernel
def expectations(
    examine: FloatArray,
    click: FloatArray,
    stop: FloatArray,
    shown: AnyArray,
    clicked: BoolArray,
    examine_counts: FloatArray,
    click_counts: FloatArray,
    stop_counts: FloatArray,
) -> float:
    """Add up the expected counts of every parameter given the clicks; return the log-likelihood.

    Counts have the shape of their parameter and a leading dimension: [0] is how often it could have
    happened, [1] how often it did. Given the clicks, the only unknown state that lasts is whether
    the user still reads: a forward and a backward pass over two states.
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
            e, a, s0, s1 = step(examine, click, stop, r, distance[r], g)
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
            i = min(r, examine.shape[0] - 1)
            j = min(distance[r], examine.shape[1] - 1)
            k, m = min(r, stop.shape[1] - 1), min(g, stop.shape[2] - 1)
            stay, leave = after_reading / forward[r, 2], after_gone / forward[r, 2]
            if clicked[n, r]:
                examine_counts[0, i, j] += 1.0
                examine_counts[1, i, j] += 1.0
                click_counts[0, g] += 1.0
                click_counts[1, g] += 1.0
                stop_counts[0, 1, k, m] += 1.0
                stop_counts[1, 1, k, m] += forward[r, 0] * e * a * s1 * leave
                after_reading = e * a * ((1.0 - s1) * stay + s1 * leave)
                after_gone = 0.0
            else:
                unseen = forward[r, 0] * (1.0 - e) * stay
                left = forward[r, 0] * e * (1.0 - a) * s0 * leave
                skipped = forward[r, 0] * e * (1.0 - a) * (1.0 - s0) * stay + left
                examine_counts[0, i, j] += unseen + skipped
                examine_counts[1, i, j] += skipped
                click_counts[0, g] += skipped
                stop_counts[0, 0, k, m] += skipped
                stop_counts[1, 0, k, m] += left
                after_reading = (1.0 - e) * stay + e * (1.0 - a) * ((1.0 - s0) * stay + s0 * leave)
                after_gone = leave
    return total


@kernel
def team_draft(ranking: AnyArray, key: Any, shown: AnyArray, share: FloatArray) -> None:
    """Let rankers take turns in random order, each adding its best document not yet shown.

    ``ranking[j]`` holds the documents of ranker j, best first, as numbers below a common bound;
    ``shown`` is filled from the top, and ``share[j, r]`` is 1 if ranker j filled rank r.
    """
    n_rankers, n = ranking.shape
    placed = np.zeros(ranking.max() + 1, dtype=np.bool_)
    at = np.zeros(n_rankers, dtype=np.int64)
    order = np.arange(n_rankers)
    share[:] = 0.0
    draw = r = 0
    while r < len(shown):
        for i in range(n_rankers):
            pick = i + int(uniform(key, draw) * (n_rankers - i))
            draw += 1
            order[i], order[pick] = order[pick], order[i]
            j = order[i]
            while at[j] < n and placed[ranking[j, at[j]]]:
                at[j] += 1
            if at[j] < n and r < len(shown):
                shown[r] = ranking[j, at[j]]
                placed[shown[r]] = True
                share[j, r] = 1.0
                r += 1


@kernel
def sample_mixture(weight: FloatArray, key: Any, shown: AnyArray) -> None:
    """Fill each rank with a document of a random ranker, drawn in proportion to its weight there.

    ``weight[j, d]`` is that of document d for ranker j; documents already shown are left out.
    """
    n_rankers, n = weight.shape
    open_ = np.ones(n, dtype=np.bool_)
    total = np.empty(n_rankers)
    for r in range(len(shown)):
        n_active = 0  # a ranker all of whose documents are shown has no part in it
        for j in range(n_rankers):
            total[j] = 0.0
            for d in range(n):
                if open_[d]:
                    total[j] += weight[j, d]
            n_active += total[j] > 0.0
        skip, j = int(uniform(key, 2 * r) * n_active), 0
        while skip > 0 or total[j] == 0.0:
            skip -= total[j] > 0.0
            j += 1
        left = uniform(key, 2 * r + 1) * total[j]
        pick = -1
        for d in range(n):
            if open_[d] and weight[j, d] > 0.0:
                pick = d
                left -= weight[j, d]
                if left < 0.0:
                    break
        shown[r] = pick
        open_[pick] = False


@kernel
def mixture_share(weight: FloatArray, shown: AnyArray, share: FloatArray) -> None:
    """Write the probability that ranker j filled rank r, given all that is shown.

    Rankers are drawn anew at each rank, so the sum over all assignments is a product over ranks.
    """
    n_rankers, n = weight.shape
    open_ = np.ones(n, dtype=np.bool_)
    for r in range(len(shown)):
        everyone = 0.0
        for j in range(n_rankers):
            total = 0.0
            for d in range(n):
                if open_[d]:
                    total += weight[j, d]
            share[j, r] = weight[j, shown[r]] / total if total > 0.0 else 0.0
            everyone += share[j, r]
        share[:, r] /= everyone
        open_[shown[r]] = False


@kernel
def sample_ready(best: AnyArray, key: Any, shown: AnyArray) -> None:
    """Fill rank r with one of the documents that some ranker puts at r or above, at random.

    ``best[d]`` is the highest rank that any ranker gives to document d.
    """
    open_ = np.ones(len(best), dtype=np.bool_)
    for r in range(len(shown)):
        n_ready = 0
        for d in range(len(best)):
            n_ready += open_[d] and best[d] <= r
        skip = int(uniform(key, r) * n_ready)
        for d in range(len(best)):
            if open_[d] and best[d] <= r:
                if skip == 0:
                    shown[r] = d
                    open_[d] = False
                    break
                skip -= 1


@kernel
def pair_weights(best: AnyArray, shown: AnyArray, weight: FloatArray) -> None:
    """Write the inverse probability that a pair of shown documents could come in either order.

    Both may be drawn from rank max(best) on. The pair counts if neither was placed above it, which
    has the probability that the earlier of the two was passed over until then.
    """
    k = len(shown)
    ready = np.zeros(k, dtype=np.int64)  # documents to draw from at each rank
    for x in range(k):
        for d in range(len(best)):
            ready[x] += best[d] <= x
        ready[x] -= x
    weight[:] = 0.0
    for i in range(k):
        for j in range(i):
            one, two = best[shown[i]], best[shown[j]]
            if j >= max(one, two):
                chance = 1.0
                for x in range(min(one, two), max(one, two)):
                    chance *= 1.0 - 1.0 / ready[x]
                weight[i, j] = weight[j, i] = 1.0 / chance
