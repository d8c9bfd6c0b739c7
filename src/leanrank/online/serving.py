"""Lists that explore: ε-greedy, Plackett-Luce, and probabilistic interleaving.

A query's documents are a block with one *row per feature*, so that scoring reads memory in order.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from leanrank._jit import kernel
from leanrank._score_order import sort_by_merging
from leanrank._typing import FloatArray, IntArray
from leanrank.online.kernels import draw_weighted
from leanrank.solvers.sampling.pair_sampling import GOLDEN, mix_bits, next_uniform

LOWEST = -600.0  # least difference to the best score: exponentials of lower ones would be zero

METHODS = ("spd", "lcra", "pdgd", "ips", "dbgd")
SPD, LCRA, PDGD, IPS, DBGD = range(len(METHODS))

N_UNLABELED = 10
"""Pairs of documents per step on which the views of LCRA should agree."""

LISTS, STEPS = range(2)
"""Positions in ``LearnerState.counts``: observed lists, and steps."""


class LearnerRule(NamedTuple):
    """The parameters of a learner, as kernels take them.

    Attributes
    ----------
    method : int
        Which of ``METHODS``.
    length : int
        Documents per list.
    explore : float
        ε: probability that a slot gets a document drawn uniformly.
    eta0, alpha : float
        Rate, and strength of the penalty.
    ftrl : bool
        Whether steps follow the regularised leader, with an ℓ1 penalty; else they are gradient
        steps with an ℓ2² penalty.
    mu : float
        Strength of the agreement of LCRA.
    eta : float
        IPS assumes that users examine rank r with probability r^−η.
    """

    method: int
    length: int
    explore: float
    eta0: float
    alpha: float
    ftrl: bool
    mu: float
    eta: float


class LearnerState(NamedTuple):
    """The state of a learner; arrays that its method does not need have no columns.

    Attributes
    ----------
    w : array of shape (views, features)
        The weights of each view; a document's score is the mean over the views.
    member : array of shape (views, features)
        1 where a feature belongs to a view, else 0.
    v, s : array of shape (views, features)
        The sums of FTRL.
    generator : array of shape (1,)
    counts : array of shape (2,)
    """

    w: FloatArray
    member: FloatArray
    v: FloatArray
    s: FloatArray
    generator: npt.NDArray[np.uint64]
    counts: IntArray


class Slate(NamedTuple):
    """One list, with the data to learn from its clicks.

    Attributes
    ----------
    documents : array of shape (length,)
    propensity : array of shape (length,)
        Probability of the document in its slot, given those above.
    scores : array of shape (views, documents)
        The scores from which the list was made.
    mean : array of shape (documents,)
        Their mean over the views; for Plackett-Luce, its exponentials.
    direction : array of shape (features,)
        From the current weights to the candidate of a duel.
    shares : array of shape (2, length)
        Probability that either of the two gives the document of a slot, given those above.
    """

    documents: IntArray
    propensity: FloatArray
    scores: FloatArray
    mean: FloatArray
    direction: FloatArray
    shares: FloatArray


def new_slate(rule: LearnerRule, state: LearnerState, n_documents: int) -> Slate:
    """Return an empty slate for queries of up to ``n_documents`` documents."""
    views, features = state.w.shape
    duels = 2 if rule.method == DBGD else 0
    length = min(rule.length, n_documents)
    return Slate(
        documents=np.zeros(length, dtype=np.int64),
        propensity=np.zeros(length),
        scores=np.zeros((views, n_documents)),
        mean=np.zeros(n_documents),
        direction=np.zeros(features if duels else 0),
        shares=np.zeros((duels, length)),
    )


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
        _plackett_luce(generator, n, mean, length, documents, propensity)
    else:
        _epsilon_greedy(rule.explore, generator, mean[:n], length, documents, propensity)
    return length


@kernel
def score(w, block, out):  # type: ignore[no-untyped-def]
    """Fill in the scores of a block of documents, sums in the order of the features."""
    n = block.shape[1]
    for i in range(n):
        out[i] = 0.0
    for j in range(len(w)):
        weight = w[j]
        if weight != 0.0:
            for i in range(n):
                out[i] += weight * block[j, i]


@kernel
def best(scores, length, salt):  # type: ignore[no-untyped-def]
    """Return the documents with the highest scores; the salt gives a random order of ties."""
    top, filled = np.empty(length, dtype=np.int64), 0
    for i in range(len(scores)):
        value = scores[i]
        if filled == length:
            last = top[length - 1]
            if value < scores[last] or (value == scores[last] and _before(salt, last, i)):
                continue
        else:
            filled += 1
        at = filled - 1
        while at > 0:
            above = top[at - 1]
            if value < scores[above] or (value == scores[above] and _before(salt, above, i)):
                break
            top[at] = above
            at -= 1
        top[at] = i
    return top


@kernel
def _before(salt, i, j):  # type: ignore[no-untyped-def]
    return mix_bits(salt ^ np.uint64(i)) > mix_bits(salt ^ np.uint64(j))


@kernel
def next_bits(generator):  # type: ignore[no-untyped-def]
    """Advance a generator and return 64 bits."""
    generator[0] += GOLDEN
    return mix_bits(generator[0])


@kernel
def _epsilon_greedy(explore, generator, scores, length, documents, propensity):  # type: ignore[no-untyped-def]
    """Fill each slot with the best or, with probability ε, any remaining document."""
    top, n, upper = best(scores, length, next_bits(generator)), len(scores), 0
    taken = np.zeros(n, dtype=np.bool_)
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
        taken[chosen] = True
        documents[slot], propensity[slot] = chosen, chance


@kernel
def _plackett_luce(generator, n, weights, length, documents, propensity):  # type: ignore[no-untyped-def]
    """Draw documents by the exponentials of their scores; these replace the scores."""
    highest = weights[0]
    for i in range(n):
        highest = max(highest, weights[i])
    total = 0.0
    for i in range(n):
        weights[i] = math.exp(max(weights[i] - highest, LOWEST))
        total += weights[i]
    left, exact = weights[:n].copy(), total
    for slot in range(length):
        chosen = draw_weighted(left, next_uniform(generator) * total)
        documents[slot] = chosen
        total -= left[chosen]
        left[chosen] = 0.0
        if total < 1e-6 * exact:  # subtractions have cancelled digits: add up again
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
def _interleave(rule, state, block, slate, length):  # type: ignore[no-untyped-def]
    """Fill each slot from one of two rankers, with weight 1/r³ for its rank r."""
    n, n_rankers = block.shape[1], 2
    generator, order, keys = state.generator, np.empty(n, dtype=np.int64), np.empty(n)
    chances, left = np.empty((n_rankers, n)), np.empty(n_rankers)
    ranked, sorted_keys = np.empty(n, dtype=np.int64), np.empty(n)
    fill_direction(generator, slate.direction)
    for r in range(n_rankers):
        w = state.w[0].copy()
        if r > 0:
            w += slate.direction
        score(w, block, keys)
        for i in range(n):  # shuffled, so that equal scores come in any order
            j = int(next_uniform(generator) * (i + 1))
            order[i] = order[j]
            order[j] = i
        left[r] = 0.0
        sort_by_merging(-keys[order], 0, ranked, sorted_keys)
        for rank in range(n):
            at = order[ranked[rank]]
            chances[r, at] = 1.0 / (rank + 1.0) ** 3
            left[r] += chances[r, at]
    for slot in range(length):
        r = int(next_uniform(generator) * n_rankers)
        chosen = draw_weighted(chances[r], next_uniform(generator) * left[r])
        total = 0.0
        for each in range(n_rankers):
            chance = chances[each, chosen]
            slate.shares[each, slot] = min(1.0, chance / left[each])
            total += slate.shares[each, slot]
            left[each] -= chance
            chances[each, chosen] = 0.0
        slate.documents[slot], slate.propensity[slot] = chosen, total / n_rankers


@kernel
def fill_direction(generator, out):  # type: ignore[no-untyped-def]
    """Draw a direction uniformly, of length 1."""
    total = 0.0
    for j in range(len(out)):
        radius = math.sqrt(-2.0 * math.log(1.0 - next_uniform(generator)))
        out[j] = radius * math.cos(2.0 * math.pi * next_uniform(generator))
        total += out[j] * out[j]
    out /= math.sqrt(total)
