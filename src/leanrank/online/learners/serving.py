"""Making a list that explores: ε-greedy, Plackett-Luce, and probabilistic interleaving.

A query's documents are a block with one *row per feature*, so that scoring reads memory in order.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from leanrank._jit import kernel
from leanrank.online.learners.state import DBGD, PDGD
from leanrank.solvers.sampling.pair_sampling import GOLDEN, mix_bits, next_uniform

LOWEST = -600.0  # a lower score than the best less this counts as this: its exponential is no zero


@partial(kernel, inline="always")
def serve(rule, state, block, slate):  # type: ignore[no-untyped-def]
    """Fill a slate; return the number of documents on it."""
    n = block.shape[1]
    length = min(rule.length, n)
    if rule.method == DBGD:
        _interleave(rule, state, block, slate, length)
        return length
    w, mean, scores, generator = state.w, slate.mean, slate.scores, state.generator
    documents, propensity, n_views = slate.documents, slate.propensity, len(state.w)
    share = 1.0 / n_views
    for i in range(n):
        mean[i] = 0.0
    for v in range(n_views):
        score(w[v], block, scores[v])
        for i in range(n):
            mean[i] += share * scores[v, i]
    if rule.method == PDGD:
        _plackett_luce(generator, n, mean, slate.keys, length, documents, propensity)
    else:
        _epsilon_greedy(
            rule.explore, generator, n, mean, slate.top, slate.order, length, documents,
            propensity,
        )  # fmt: skip
    return length


@kernel
def score(w, block, out):  # type: ignore[no-untyped-def]
    """Fill the scores of a block of documents; each is a sum in the order of the features."""
    n = block.shape[1]
    for i in range(n):
        out[i] = 0.0
    for j in range(len(w)):
        weight = w[j]
        if weight != 0.0:
            for i in range(n):
                out[i] += weight * block[j, i]


@kernel
def best(scores, n, length, salt, top):  # type: ignore[no-untyped-def]
    """List the documents of the highest scores; equal ones in an order drawn by the salt."""
    filled = 0
    for i in range(n):
        value = scores[i]
        if filled == length:
            last = top[length - 1]
            if value < scores[last] or (value == scores[last] and _before(salt, last, i)):
                continue
            at = length - 1
        else:
            at = filled
            filled += 1
        while at > 0:
            above = top[at - 1]
            if value < scores[above] or (value == scores[above] and _before(salt, above, i)):
                break
            top[at] = above
            at -= 1
        top[at] = i


@kernel
def _before(salt, i, j):  # type: ignore[no-untyped-def]
    return mix_bits(salt ^ np.uint64(i)) > mix_bits(salt ^ np.uint64(j))


@kernel
def next_bits(generator):  # type: ignore[no-untyped-def]
    """Advance a generator and return 64 bits."""
    generator[0] += GOLDEN
    return mix_bits(generator[0])


@kernel
def _epsilon_greedy(  # type: ignore[no-untyped-def]
    explore, generator, n, scores, top, taken, length, documents, propensity
):
    """Fill each slot with the best document left or, with chance ε, any of those left."""
    best(scores, n, length, next_bits(generator), top)
    for i in range(n):
        taken[i] = 0
    upper = 0
    for slot in range(length):
        while taken[top[upper]]:
            upper += 1
        chosen = top[upper]
        if explore > 0.0 and next_uniform(generator) < explore:
            chosen = int(next_uniform(generator) * n)
            while taken[chosen]:
                chosen = int(next_uniform(generator) * n)
        chance = explore / (n - slot)
        if chosen == top[upper]:
            chance += 1.0 - explore
        taken[chosen] = 1
        documents[slot], propensity[slot] = chosen, chance


@kernel
def _plackett_luce(generator, n, weights, left, length, documents, propensity):  # type: ignore[no-untyped-def]
    """Draw documents by the exponentials of their scores, which replace the scores."""
    highest = weights[0]
    for i in range(n):
        highest = max(highest, weights[i])
    total = 0.0
    for i in range(n):
        weights[i] = math.exp(max(weights[i] - highest, LOWEST))
        left[i] = weights[i]
        total += left[i]
    exact = total
    for slot in range(length):
        chosen = _draw(left, n, next_uniform(generator) * total)
        documents[slot] = chosen
        total -= left[chosen]
        left[chosen] = 0.0
        if total < 1e-6 * exact:  # little is left after the subtractions: add up again
            total = 0.0
            for i in range(n):
                total += left[i]
            exact = total
    total = 0.0
    for i in range(n):
        total += left[i]
    for slot in range(length - 1, -1, -1):
        weight = weights[documents[slot]]
        total += weight
        propensity[slot] = weight / total


@kernel
def _draw(weights, n, target):  # type: ignore[no-untyped-def]
    """Draw a document by weight; those of weight zero are taken."""
    chosen = -1
    for i in range(n):
        if weights[i] > 0.0:
            chosen = i
            target -= weights[i]
            if target < 0.0:
                break
    return chosen


@kernel
def _interleave(rule, state, block, slate, length):  # type: ignore[no-untyped-def]
    """Fill each slot from one of two rankers, which gives its rank r with weight 1/r³."""
    n, n_rankers = block.shape[1], 2
    generator, chances, left = state.generator, slate.chances, slate.left
    fill_direction(generator, slate.direction)
    for r in range(n_rankers):
        w = state.w[0].copy()
        if r > 0:
            w += rule.delta * slate.direction
        score(w, block, slate.keys)
        for i in range(n):  # shuffled, so that equal scores come in any order
            j = int(next_uniform(generator) * (i + 1))
            slate.order[i] = slate.order[j]
            slate.order[j] = i
        left[r] = _fill_chances(slate.keys, slate.order, n, chances[r])
    for slot in range(length):
        r = int(next_uniform(generator) * n_rankers)
        chosen = _draw(chances[r], n, next_uniform(generator) * left[r])
        total = 0.0
        for each in range(n_rankers):
            chance = chances[each, chosen]
            slate.shares[each, slot] = min(1.0, chance / left[each])
            total += slate.shares[each, slot]
            left[each] -= chance
            chances[each, chosen] = 0.0
        slate.documents[slot], slate.propensity[slot] = chosen, total / n_rankers


@kernel
def _fill_chances(keys, order, n, out):  # type: ignore[no-untyped-def]
    """Fill 1/rank³ by the scores, equal ones in the given order; return the sum."""
    places = np.argsort(-keys[order[:n]], kind="mergesort")
    total = 0.0
    for rank in range(n):
        chance = 1.0 / (rank + 1.0) ** 3
        out[order[places[rank]]] = chance
        total += chance
    return total


@kernel
def fill_direction(generator, out):  # type: ignore[no-untyped-def]
    """Draw a direction uniformly, of length 1."""
    total = 0.0
    for j in range(len(out)):
        radius = math.sqrt(-2.0 * math.log(1.0 - next_uniform(generator)))
        out[j] = radius * math.cos(2.0 * math.pi * next_uniform(generator))
        total += out[j] * out[j]
    out /= math.sqrt(total)
