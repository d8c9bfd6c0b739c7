"""One step of each method, against slow sums over documents and over all short lists."""

import itertools
import math

import numpy as np
import pytest

from leanrank.online import OnlineRanker
from leanrank.online.serving import LOWEST
from leanrank.online.steps import pair_differences


def list_chance(weights, order):
    """The Plackett-Luce chance of the first documents of an order."""
    left, chance = sum(weights), 1.0
    for document in order:
        chance *= weights[document] / left
        left -= weights[document]
    return chance


def slow_pdgd(scores, order, clicks):
    """PDGD's slopes by the formula of the paper, with whole lists exchanged."""
    weights, slopes = np.exp(scores), np.zeros(len(scores))
    last = max((s for s, c in enumerate(clicks) if c), default=-1)
    for k, other in itertools.product(range(len(order)), repeat=2):
        if clicks[k] and not clicks[other] and other <= last + 1:
            exchanged = list(order)
            exchanged[k], exchanged[other] = exchanged[other], exchanged[k]
            here, there = list_chance(weights, order), list_chance(weights, exchanged)
            i, j = order[k], order[other]
            slope = (
                there / (here + there) * weights[i] * weights[j] / (weights[i] + weights[j]) ** 2
            )
            slopes[i] += slope
            slopes[j] -= slope
    return slopes


def fast_pdgd(scores, order, clicks):
    length = len(order)
    weights = np.exp(np.asarray(scores, float) - np.max(scores))
    slopes = np.zeros((1, length))
    pair_differences(weights, np.array(order), length, np.array(clicks, bool), slopes)
    out = np.zeros(len(scores))
    np.add.at(out, list(order), -slopes[0])
    return out


@pytest.mark.parametrize("seed", range(20))
def test_pdgd_slopes_are_those_of_exchanged_lists(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(2, 8)
    length = rng.integers(2, n + 1)
    scores = rng.normal(scale=rng.choice([0.1, 1.0, 5.0]), size=n)
    scores[rng.integers(n)] = scores[0]
    order = rng.permutation(n)[:length].tolist()
    clicks = rng.random(length) < 0.5
    np.testing.assert_allclose(
        fast_pdgd(scores, order, clicks), slow_pdgd(scores, order, clicks), atol=1e-12
    )


def test_pdgd_of_extreme_scores_is_finite():
    scores = np.maximum([1e4, 0.0, -1e4, 1e4], 1e4 + LOWEST)  # as lists are made
    found = fast_pdgd(scores, [2, 0, 1], [True, False, False])
    assert np.isfinite(found).all()


@pytest.mark.parametrize("depth", [2, 3, 4])
@pytest.mark.parametrize("seed", range(3))
def test_pdgd_is_unbiased_over_all_lists_and_clicks(depth, seed):
    """In expectation, a pair is weighed by the difference of its relevances, equal ones by zero."""
    rng = np.random.default_rng(seed)
    scores, relevance = rng.normal(size=4), np.array([0.8, 0.3, 0.3, 0.8])
    weights, wins, total = np.exp(scores), np.zeros((4, 4)), np.zeros(4)
    for order in itertools.permutations(range(4), depth):
        here = list_chance(weights, order)
        for clicks in itertools.product([False, True], repeat=depth):
            chance = here * math.prod(
                relevance[d] if c else 1 - relevance[d] for d, c in zip(order, clicks, strict=True)
            )
            total += chance * fast_pdgd(scores, order, clicks)
            last = max((s for s, c in enumerate(clicks) if c), default=-1)
            for i, j in itertools.permutations(range(min(last + 2, depth)), 2):
                if clicks[i] and not clicks[j]:
                    exchanged = list(order)
                    exchanged[i], exchanged[j] = exchanged[j], exchanged[i]
                    there = list_chance(weights, exchanged)
                    wins[order[i], order[j]] += chance * there / (here + there)
    gain = wins - wins.T
    np.testing.assert_array_equal(
        np.sign(np.where(abs(gain) < 1e-14, 0, gain)),
        np.sign(relevance[:, None] - relevance),
    )
    pair = np.outer(weights, weights) / (weights[:, None] + weights) ** 2
    np.testing.assert_allclose(total, (gain * pair).sum(axis=1), atol=1e-12)


def slow_pairs(order, clicks):
    """Clicked documents over those skipped above and over the next one."""
    for a, b in itertools.product(range(len(order)), repeat=2):
        if clicks[a] and not clicks[b] and b <= a + 1:
            yield order[a], order[b]


@pytest.mark.parametrize("method", ["spd", "lcra", "ips"])
@pytest.mark.parametrize("solver", ["sgd", "ftrl"])
def test_a_step_is_the_gradient_of_its_pairs(method, solver):
    rng = np.random.default_rng(3)
    penalty = {"alpha": 0.3 if solver == "sgd" else 0.01}
    more = {"mu": 0.0} if method == "lcra" else {}
    ranker = OnlineRanker(method, n_features=6, list_length=5, solver=solver, **penalty, **more)
    w = ranker.state.w
    w[:] = 0.1 * rng.normal(size=w.shape) * ranker.state.member
    X = rng.normal(size=(9, 6))
    for clicks in ([0, 1, 0, 1, 0], [0, 0, 0, 0, 0], [0, 0, 1, 0, 0], [1, 0, 0, 0, 1]):
        before, state = w.copy(), ranker.state
        v, s, t = state.v.copy(), state.s.copy(), ranker.n_steps_ + 1
        shown = ranker.rank(X)
        ranker.observe(shown, clicks)
        if not any(clicks):
            np.testing.assert_array_equal(w, before)
            continue
        for view, now in enumerate(w):
            slope = np.zeros(6)
            if method == "ips":
                for rank, document in enumerate(shown.documents, 1):
                    for other in range(9) if clicks[rank - 1] else ():
                        z = (X[document] - X[other]) @ before[view]
                        slope -= rank / 8 * (z < 1) * (X[document] - X[other])
            else:
                for i, j in slow_pairs(shown.documents, clicks):
                    slope -= ((X[i] - X[j]) @ before[view] < 1) * (X[i] - X[j])
            slope *= state.member[view]
            if solver == "sgd":
                rate = ranker.rule.eta0
                expected = (1 - rate * 0.3) * before[view] - rate * slope
            else:
                scale = np.sqrt(1 + s[view] + slope**2)
                v[view] += slope - (scale - np.sqrt(1 + s[view])) / ranker.rule.eta0 * before[view]
                v[view] *= state.member[view]
                shrunk = np.sign(v[view]) * np.maximum(abs(v[view]) - 0.01 * t, 0)
                expected = -ranker.rule.eta0 * shrunk / scale * state.member[view]
            np.testing.assert_allclose(now, expected, atol=1e-12)


def test_agreement_pulls_the_views_together():
    """With nothing to learn from the clicks, steps reduce the disagreement of the views."""
    rng = np.random.default_rng(0)
    ranker = OnlineRanker("lcra", n_features=6, list_length=3, mu=0.5, eta0=0.01)
    X, w = rng.normal(size=(30, 6)), ranker.state.w
    w[:] = 50 * np.ones(6) * ranker.state.member  # margins are far above 1, or far below
    difference = []
    for _ in range(40):
        scores = X @ w.T
        difference.append(np.var(scores[:, 0] - scores[:, 1]))
        shown = ranker.rank(X)
        ranker.observe(shown, [1, 0, 0])
    assert difference[-1] < 0.5 * difference[0]


def test_agreement_is_the_gradient_of_the_paper():
    """On a query of two documents, every unlabelled pair is the same one."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(2, 4))
    for _ in range(5):
        with_pull, without = (
            OnlineRanker("lcra", n_features=4, mu=mu, eta0=0.1, list_length=2) for mu in (0.2, 0.0)
        )
        start = rng.normal(size=(2, 4)) * with_pull.state.member
        for ranker in (with_pull, without):
            ranker.state.w[:] = start
            shown = ranker.rank(X)
            ranker.observe(shown, [0, 1])
        gap = X[0] - X[1]
        disagreement = float(start[0] @ gap - start[1] @ gap)
        for view, sign in ((0, 1), (1, -1)):
            pull = 4 * 0.2 * 10 * sign * disagreement * gap * with_pull.state.member[view]
            expected = without.state.w[view] - 0.1 * pull
            np.testing.assert_allclose(with_pull.state.w[view], expected, atol=1e-12)


def test_a_duel_moves_to_the_winner():
    rng = np.random.default_rng(5)
    ranker = OnlineRanker("dbgd", n_features=5, list_length=4, eta0=0.5, random_state=2)
    for _ in range(30):
        X, clicks, before = rng.normal(size=(7, 5)), rng.random(4) < 0.4, ranker.coef_
        shown = ranker.rank(X)
        shares = shown.slate.shares
        np.testing.assert_allclose(shares.mean(axis=0), shown.propensities)
        ranker.observe(shown, clicks)
        credit = (shares / shares.sum(axis=0))[:, clicks].sum(axis=1)
        move = 0.5 * shown.slate.direction * (credit[1] > credit[0])
        np.testing.assert_allclose(ranker.coef_ - before, move, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(shown.slate.direction), 1.0)
