"""Making a list that explores: ε-greedy, Plackett-Luce, and probabilistic multileaving.

A query's documents are a block with one *row per feature*, so that scoring reads memory in order.
"""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from leanrank._jit import kernel
from leanrank.online.learners.state import CPS, DBGD, KEPT, PDGD
from leanrank.solvers.sampling.pair_sampling import GOLDEN, mix_bits, next_uniform

LOWEST = -600.0  # a lower score than the best less this counts as this: its exponential is no zero


@partial(kernel, inline="always")
def serve(rule, state, block, slate, scratch):  # type: ignore[no-untyped-def]
    """Fill a slate; return the number of documents on it."""
    n = block.shape[1]
    length = min(rule.length, n)
    if rule.method >= DBGD:
        _multileave(rule, state, block, slate, scratch, length)
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
        _plackett_luce(generator, n, mean, scratch.keys, length, documents, propensity)
    else:
        _epsilon_greedy(
            rule.explore, generator, n, mean, scratch.top, scratch.order, length, documents,
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
def _multileave(rule, state, block, slate, scratch, length):  # type: ignore[no-untyped-def]
    """Fill each slot from a ranker drawn at random; it gives its rank r with weight 1/r³."""
    n, n_rankers = block.shape[1], 1 + rule.n_candidates
    generator, chances, left = state.generator, scratch.chances, scratch.left
    if rule.method == CPS:
        _preselect(rule, state, slate, scratch)
    else:
        for c in range(rule.n_candidates):
            fill_direction(generator, slate.directions[c])
    for r in range(n_rankers):
        w = state.w[0].copy()
        if r > 0:
            w += rule.delta * slate.directions[r - 1]
        score(w, block, scratch.keys)
        for i in range(n):  # shuffled, so that equal scores come in any order
            j = int(next_uniform(generator) * (i + 1))
            scratch.order[i] = scratch.order[j]
            scratch.order[j] = i
        left[r] = _fill_chances(scratch.keys, scratch.order, n, chances[r])
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
def _chance(keys, n, document):  # type: ignore[no-untyped-def]
    """Return 1/rank³ of one document; equal scores in the order of the documents."""
    rank, own = 1.0, keys[document]
    for i in range(n):
        rank += keys[i] > own or (keys[i] == own and i < document)
    return 1.0 / rank**3


@kernel
def fill_direction(generator, out):  # type: ignore[no-untyped-def]
    """Draw a direction uniformly, of length 1."""
    total = 0.0
    for j in range(len(out)):
        radius = math.sqrt(-2.0 * math.log(1.0 - next_uniform(generator)))
        out[j] = radius * math.cos(2.0 * math.pi * next_uniform(generator))
        total += out[j] * out[j]
    out /= math.sqrt(total)


@kernel
def _preselect(rule, state, slate, scratch):  # type: ignore[no-untyped-def]
    """Draw a pool of candidates, and drop the worse of two at random until one is left.

    Two are compared on the lists of the history (Hofmann et al. 2013): the credit that each would
    have had, had the list come from interleaving them, times how much likelier it then were.
    """
    pool, outcomes, generator = scratch.pool, scratch.outcomes, state.generator
    n_pool, n_kept = len(pool), min(state.counts[KEPT], len(state.shown))
    for c in range(n_pool):
        fill_direction(generator, pool[c])
    alive, n_alive = np.arange(n_pool), n_pool
    total = np.zeros((n_pool, n_pool))  # by how much the first of two is better
    for h in range(n_kept):
        n = state.sizes[h, 0]
        block = state.blocks[h, : n * pool.shape[1]].copy().reshape((pool.shape[1], n))
        for c in range(n_pool):
            score(state.w[0] + rule.delta * pool[c], block, scratch.keys)
            left = 0.0
            for rank in range(n):
                left += 1.0 / (rank + 1.0) ** 3
            for slot in range(min(n, rule.length)):
                chance = _chance(scratch.keys, n, state.shown[h, slot])
                outcomes[c, slot] = min(1.0, chance / left)
                left -= chance
        for a in range(n_pool):
            for b in range(a):
                credit, chance = 0.0, -state.chance[h, 0]
                for slot in range(min(n, rule.length)):
                    both = outcomes[a, slot] + outcomes[b, slot]
                    chance += math.log(0.5 * both)
                    if state.clicked[h, slot] > 0.0:
                        credit += (outcomes[a, slot] - outcomes[b, slot]) / both
                if credit != 0.0:
                    credit *= math.exp(chance)
                    total[a, b] += credit
                    total[b, a] -= credit
    while n_alive > 1:
        i = int(next_uniform(generator) * n_alive)
        j = int(next_uniform(generator) * (n_alive - 1))
        j += int(j >= i)
        loser = j if total[alive[i], alive[j]] >= 0.0 else i
        n_alive -= 1
        alive[loser] = alive[n_alive]
    slate.directions[0, :] = pool[alive[0]]
