"""Learning from the clicks on a list: one step of each method."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from leanrank._jit import kernel
from leanrank.online.serving import DBGD, IPS, LCRA, LISTS, N_UNLABELED, PDGD, STEPS
from leanrank.solvers.sampling.coregularised import to_pulls
from leanrank.solvers.sampling.ftrl import move_weight
from leanrank.solvers.sampling.pair_sampling import next_uniform

MIN_PROPENSITY = 0.01
"""Least propensity of a position that IPS assumes."""


@partial(kernel, inline="always")
def learn(rule, state, block, slate, length, clicks):  # type: ignore[no-untyped-def]
    """Update the weights from the clicks on a slate; without clicks, nothing changes."""
    state.counts[LISTS] += 1
    n_clicks = 0
    for slot in range(length):
        n_clicks += int(clicks[slot])
    if rule.method == DBGD:
        _duel(rule, state, slate, length, clicks)
        return
    if n_clicks == 0:
        return
    documents, scores, n = slate.documents, slate.scores, block.shape[1]
    n_touched = n if rule.method == IPS else length + 2 * N_UNLABELED
    touched = np.arange(n_touched)
    slopes = np.zeros((len(scores), n_touched))
    if rule.method == IPS:
        learned = _inverse_propensities(rule.eta, scores, documents, n, length, clicks, slopes)
    else:
        touched[:length] = documents[:length]
        if rule.method == PDGD:
            learned = pair_differences(slate.mean[:n], documents, length, clicks, slopes)
        else:
            learned = _skipped(scores, documents, length, clicks, slopes)
            if learned and rule.method == LCRA and rule.mu > 0.0:
                _agree(rule.mu, state.generator, scores, n, length, touched, slopes)
    if learned:
        _move(rule, state, block, touched, slopes)


@kernel
def _skipped(scores, documents, length, clicks, slopes):  # type: ignore[no-untyped-def]
    """Add the slopes of a clicked document over those skipped above it and over the next one."""
    learned = False
    for a in range(length):
        if clicks[a]:
            for b in range(min(a + 2, length)):
                if clicks[b]:
                    continue
                learned = True
                upper, lower = documents[a], documents[b]
                for v in range(len(slopes)):
                    if scores[v, upper] - scores[v, lower] < 1.0:  # the slope of the hinge is −1
                        slopes[v, a] -= 1.0
                        slopes[v, b] += 1.0
    return learned


@kernel
def _agree(mu, generator, scores, n, first, touched, slopes):  # type: ignore[no-untyped-def]
    """Draw pairs among all documents of the query, and add the slopes of the disagreement."""
    second = first + N_UNLABELED
    pulls = slopes[:, first:second]
    for i in range(N_UNLABELED):
        a = int(next_uniform(generator) * n)
        b = int(next_uniform(generator) * (n - 1))
        b += int(b >= a)
        touched[first + i], touched[second + i] = a, b
        for v in range(len(slopes)):
            pulls[v, i] = scores[v, a] - scores[v, b]
    to_pulls(pulls, mu)
    for i in range(N_UNLABELED):
        for v in range(len(slopes)):
            slopes[v, second + i] = -pulls[v, i]


@kernel
def pair_differences(weights, documents, length, clicks, slopes):  # type: ignore[no-untyped-def]
    """Add PDGD's slopes (Oosterhuis & de Rijke 2018); return whether there is any.

    A clicked document k is preferred over every unclicked l down to the one after the last click:

        ρ · e^{s_k} e^{s_l} / (e^{s_k} + e^{s_l})² · (x_k − x_l),   ρ = P(R*) / (P(R) + P(R*)),

    R* the list with the two exchanged. From the lower of the two slots up, with ``tail`` the
    weights of all documents that are still left in both lists, P(R*)/P(R) is the product of
    (tail + e_lower) / (tail + e_upper).
    """
    last = -1
    for slot in range(length):
        if clicks[slot]:
            last = slot
    tails, rest = weights.copy(), 0.0
    for slot in range(length):
        tails[documents[slot]] = 0.0
    for each in tails:
        rest += each
    learned = False
    for k in range(last + 1):
        if not clicks[k]:
            continue
        for other in range(min(last + 2, length)):
            if clicks[other]:
                continue
            learned = True
            upper, lower = min(k, other), max(k, other)
            e_upper, e_lower = weights[documents[upper]], weights[documents[lower]]
            tail, ratio = rest, 1.0
            for slot in range(length - 1, lower, -1):
                tail += weights[documents[slot]]
            for slot in range(lower, upper, -1):
                if slot < lower:
                    tail += weights[documents[slot]]
                ratio *= (tail + e_lower) / (tail + e_upper)
            chance = 1.0 / (1.0 + math.exp(math.log(e_lower) - math.log(e_upper)))
            slope = chance * (1.0 - chance) / (1.0 + 1.0 / ratio)
            slopes[0, k] -= slope
            slopes[0, other] += slope
    return learned


@kernel
def _inverse_propensities(eta, scores, documents, n, length, clicks, slopes):  # type: ignore[no-untyped-def]
    """Add the slopes of clicked documents over all others, divided by propensities."""
    for slot in range(length):
        if clicks[slot]:
            upper = documents[slot]
            weight = 1.0 / max(MIN_PROPENSITY, (slot + 1.0) ** -eta) / max(1, n - 1)
            for lower in range(n):
                if lower != upper and scores[0, upper] - scores[0, lower] < 1.0:
                    slopes[0, upper] -= weight
                    slopes[0, lower] += weight
    return n > 1


@kernel
def _move(rule, state, block, touched, slopes):  # type: ignore[no-untyped-def]
    """Take one step against the slopes of some documents."""
    weights, members, n = state.w, state.member, 0
    for i in range(len(touched)):  # leave out those without a slope
        used = False
        for v in range(len(slopes)):
            slopes[v, n] = slopes[v, i]
            used |= slopes[v, i] != 0.0
        touched[n] = touched[i]
        n += int(used)
    state.counts[STEPS] += 1
    t = state.counts[STEPS]
    keep = max(0.0, 1.0 - rule.eta0 * rule.alpha)
    for v in range(len(slopes)):
        w, member = weights[v], members[v]
        for j in range(len(w)):
            if member[j] == 0.0:
                continue
            slope = 0.0
            for i in range(n):
                slope += slopes[v, i] * block[j, touched[i]]
            if rule.ftrl:
                move_weight(
                    j, slope, state.v[v], state.s[v], w, t, rule.alpha, rule.eta0, 1.0, False, True,
                )  # fmt: skip
            else:
                w[j] = keep * w[j] - rule.eta0 * slope


@kernel
def _duel(rule, state, slate, length, clicks):  # type: ignore[no-untyped-def]
    """Move towards the candidate if it earns more credit than the current weights.

    A click counts for each of the two with the probability that the document came from it.
    """
    lead = 0.0
    for slot in range(length):
        if clicks[slot]:
            now, then = slate.shares[0, slot], slate.shares[1, slot]
            lead += (then - now) / (now + then)
    if lead > 0.0:
        state.counts[STEPS] += 1
        for j in range(len(slate.direction)):
            state.w[0, j] += rule.eta0 * slate.direction[j]
