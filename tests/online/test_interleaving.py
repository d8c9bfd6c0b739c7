"""Interleaving against enumeration of every list, every assignment and every pattern of clicks."""

import itertools
from collections import defaultdict

import numpy as np
import pytest

from leanrank.errors import InputError
from leanrank.online import interleaver
from leanrank.online.interleaving import METHODS, _sensitivity
from leanrank.online.interleaving import fair_lists as solve

PAIRS = [
    ([0, 1, 2, 3], [1, 2, 3, 0]),
    ([0, 1, 2, 3], [3, 2, 1, 0]),
    ([0, 1, 2, 3], [0, 2, 1, 3]),
    ([0, 1, 2], [3, 4, 0]),  # documents that the other does not have
]
TRIPLES = [([0, 1, 2, 3], [1, 0, 3, 2], [3, 2, 1, 0]), ([0, 1, 2], [0, 1, 2], [2, 3, 0])]
SAME = ([0, 1, 2, 3], [0, 1, 2, 3])
CLICK = np.array([0.7, 0.4, 0.2, 0.1])  # random clicks, more at the top


# ---- slow twins: yield the probability, the list and, where it matters, who filled each rank


def team_draft_lists(rankings, k, shown=(), teams=(), waiting=()):
    if len(shown) == k:
        yield 1.0, shown, teams
        return
    waiting = waiting or tuple(range(len(rankings)))
    for j in waiting:
        rest = tuple(i for i in waiting if i != j)
        left = [d for d in rankings[j] if d not in shown]
        more = ((*shown, left[0]), (*teams, j)) if left else (shown, teams)
        if (
            not rest
            and not left
            and len(waiting) == 1
            and not any(set(r) - set(shown) for r in rankings)
        ):
            continue
        for p, *rest_of in team_draft_lists(rankings, k, *more, rest):
            yield p / len(waiting), *rest_of


def mixture_lists(rankings, k, shown=(), teams=(), tau=3.0):
    if len(shown) == k:
        yield 1.0, shown, teams
        return
    active = [j for j, r in enumerate(rankings) if set(r) - set(shown)]
    for j in active:
        weight = {d: (i + 1.0) ** -tau for i, d in enumerate(rankings[j]) if d not in shown}
        for d, w in weight.items():
            for p, *rest in mixture_lists(rankings, k, (*shown, d), (*teams, j), tau):
                yield p * w / sum(weight.values()) / len(active), *rest


def balanced_lists(rankings, k):
    for first in (0, 1):
        at, shown = [0, 0], []
        while len(shown) < k:
            j = first if at[first] <= at[1 - first] else 1 - first
            if rankings[j][at[j]] not in shown:
                shown.append(rankings[j][at[j]])
            at[j] += 1
        yield 0.5, tuple(shown)


def fair_lists(rankings, k):
    codes, table = np.unique(rankings, return_inverse=True)
    top = np.ascontiguousarray(table.reshape(2, -1)[:, :k])
    lists, chance = solve(top.tobytes(), k)
    for shown, p in zip(lists, chance, strict=True):
        yield p, tuple(codes[shown].tolist())


LISTS = {
    "balanced": balanced_lists,
    "team-draft": team_draft_lists,
    "probabilistic": mixture_lists,
    "optimised": fair_lists,
}


# ---- slow twins of the credits, from a list and its clicks


def mixture_credit(rankings, shown, clicks):
    """Sum over all assignments of their probability given the list, times the clicks of each."""
    credit, total = np.zeros(len(rankings)), 0.0
    for p, drawn, teams in mixture_lists(rankings, len(shown)):
        if drawn == tuple(shown):
            total += p
            for j, hit in zip(teams, clicks, strict=True):
                credit[j] += p * hit
    return credit / total


def balanced_credit(rankings, shown, clicks):
    clicked = [d for d, hit in zip(shown, clicks, strict=True) if hit]
    for j in range(1, 1 + max(map(len, rankings))):
        if clicked and any(clicked[-1] in r[:j] for r in rankings):
            return np.array([sum(d in r[:j] for d in clicked) for r in rankings])
    return np.zeros(2)


def optimised_credit(rankings, shown, clicks):
    k = len(shown)
    rank = [{d: min(r.index(d), k) if d in r else k for d in shown} for r in rankings]
    gains = [rank[1][d] - rank[0][d] for d, hit in zip(shown, clicks, strict=True) if hit]
    return np.array([sum(g for g in gains if g > 0), -sum(g for g in gains if g < 0)])


CREDITS = {
    "balanced": balanced_credit,
    "probabilistic": mixture_credit,
    "optimised": optimised_credit,
}


def cases(method):
    several = [] if method in ("balanced", "optimised") else TRIPLES
    return [*PAIRS, *several]


def distribution(method, rankings, k):
    """Return the exact probability of each list, or of each list with its teams."""
    chance = defaultdict(float)
    for p, shown, *teams in LISTS[method](rankings, k):
        chance[shown, *(teams if method == "team-draft" else ())] += p
    assert np.isclose(sum(chance.values()), 1.0)
    return chance


def patterns(k):
    for clicks in itertools.product((False, True), repeat=k):
        yield np.prod(np.where(clicks, CLICK[:k], 1 - CLICK[:k])), np.array(clicks)


def drawn(method, rankings, k, n):
    """Draw lists until all that are possible were seen; assignments by list."""
    made = interleaver(method, k)
    counts, assignments = defaultdict(int), {}
    for seed in range(n):
        shown, assignment = made.multileave(rankings, seed)
        key = (tuple(shown.tolist()),)
        if method == "team-draft":
            assert (assignment.sum(axis=0) == 1).all()
            key = (*key, tuple(assignment.argmax(axis=0).tolist()))
        counts[key] += 1
        assignments[key] = assignment
    return counts, assignments


@pytest.mark.parametrize("method", METHODS)
def test_lists_are_drawn_with_their_probabilities(method):
    n = 2_000
    for rankings in cases(method):
        chance = distribution(method, rankings, 3)
        counts, _ = drawn(method, rankings, 3, n)
        assert set(counts) <= {key for key, p in chance.items() if p > 0}
        for key, p in chance.items():
            assert abs(counts[key] - n * p) < 4.5 * np.sqrt(n * p * (1 - p)) + 1.5


@pytest.mark.parametrize("method", CREDITS)
def test_credit_is_that_of_its_definition(method):
    made = interleaver(method, 3)
    for rankings in cases(method):
        _, assignments = drawn(method, rankings, 3, 200)
        for (shown, *_), assignment in assignments.items():
            for _, clicks in patterns(3):
                found = made.credit(assignment, clicks)
                expected = CREDITS[method](rankings, shown, clicks)
                np.testing.assert_allclose(found, expected, atol=1e-12)


def exact_outcome(method, rankings, k):
    """Return, under random clicks, each ranker's expected credit and how often each one leads."""
    mean, leads = np.zeros(len(rankings)), np.zeros(len(rankings))
    for key, p in distribution(method, rankings, k).items():
        for q, clicks in patterns(k):
            if method == "team-draft":
                teams = np.array(key[1])[clicks]
                credit = np.bincount(teams, minlength=len(rankings)).astype(float)
            else:
                credit = CREDITS[method](rankings, key[0], clicks)
            mean += p * q * credit
            first = np.isclose(credit, credit.max(), atol=1e-9)
            leads += p * q * first / first.sum()
    return mean, leads


@pytest.mark.parametrize("method", METHODS)
def test_identical_rankers_are_preferred_equally_often(method):
    for rankings in [SAME] if method in ("balanced", "optimised") else [SAME, [*SAME, SAME[0]]]:
        mean, leads = exact_outcome(method, rankings, 3)
        np.testing.assert_allclose(mean, mean[0], atol=1e-12)
        np.testing.assert_allclose(leads, 1 / len(rankings), atol=1e-12)


@pytest.mark.parametrize("method", ["team-draft", "probabilistic", "optimised"])
def test_random_clicks_prefer_no_ranker(method):
    for rankings in cases(method):
        mean, leads = exact_outcome(method, rankings, 3)
        np.testing.assert_allclose(mean, mean[0], atol=1e-9)
        if method == "team-draft":
            np.testing.assert_allclose(leads, 1 / len(rankings), atol=1e-9)


def test_balanced_interleaving_is_not_fair():
    """The textbook example: the ranker whose first document the other puts last loses."""
    _, leads = exact_outcome("balanced", ([0, 1, 2, 3], [1, 2, 3, 0]), 3)
    assert leads[1] - leads[0] > 0.05


def test_optimised_lists_are_the_best_fair_ones():
    for a, b in PAIRS:
        codes = np.unique([a, b], return_inverse=True)[1].reshape(2, -1)
        top = np.ascontiguousarray(codes[:, :3])
        lists, chance = solve(top.tobytes(), 3)
        rank = np.full((2, codes.max() + 1), 3)
        for j in (0, 1):
            rank[j, top[j]] = np.arange(3)
        gain = (rank[1] - rank[0])[lists]
        np.testing.assert_allclose(chance @ gain, 0, atol=1e-9)
        value = _sensitivity(gain)
        system, right = np.vstack([gain.T, np.ones(len(lists))]), np.array([0, 0, 0, 1.0])
        best = -np.inf
        for size in range(1, 5):  # a best distribution rests on at most four lists
            for support in itertools.combinations(range(len(lists)), size):
                p, *_ = np.linalg.lstsq(system[:, support], right)
                if np.allclose(system[:, support] @ p, right) and p.min() > -1e-12:
                    best = max(best, value[list(support)] @ p)
        assert np.isclose(chance @ value, best)


def test_optimised_lists_of_ten_are_fair():
    rng = np.random.default_rng(0)
    for _ in range(5):
        top = np.stack([rng.permutation(20)[:10] for _ in range(2)])
        lists, chance = solve(top.tobytes(), 10)
        rank = np.full((2, 20), 10)
        for j in (0, 1):
            rank[j, top[j]] = np.arange(10)
        np.testing.assert_allclose(chance @ (rank[1] - rank[0])[lists], 0, atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_who_ranks_better_is_preferred(method):
    rng, made = np.random.default_rng(0), interleaver(method, 5)
    grades = np.array([2, 2, 1, 1, 0, 0, 0, 0])
    good, bad, wins = np.arange(8), np.arange(8)[::-1], 0
    for _ in range(400):
        shown, assignment = made.interleave(good, bad, rng)
        credit = made.credit(assignment, rng.random(len(shown)) < 0.05 + 0.4 * grades[shown])
        wins += np.sign(credit[0] - credit[1])
    assert wins > 100


def test_a_list_is_as_long_as_the_documents_allow():
    for method in METHODS:
        shown, assignment = interleaver(method, 10).interleave([5, 7], [7, 5], 0)
        assert sorted(shown.tolist()) == [5, 7]
        assert interleaver(method, 10).credit(assignment, [True, False]).shape == (2,)
        shown, _ = interleaver(method, 1).interleave([5, 7], [7, 5], 0)
        assert len(shown) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: interleaver("draft"), "did you mean 'team-draft'"),
        (lambda: interleaver(length=0), "length=0 must be a whole number, at least 1"),
        (lambda: interleaver("optimised", 20), "give at most 12"),
        (lambda: interleaver().interleave([1, 1], [1, 2], 0), "has a document twice"),
        (lambda: interleaver().interleave([1.5], [1.0], 0), "integer arrays of one length"),
        (lambda: interleaver("balanced").multileave([[1], [1], [1]], 0), "two rankers, not 3"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
