"""Comparing rankers on live traffic: one list made of several rankings, and credit for its clicks.

Each method has ``interleave(a, b, rng)``, which returns what to show and an assignment to keep with
it, and ``credit(assignment, clicks)``, one number per ranker; who has more is preferred by this
user. ``multileave(rankings, rng)`` does the same for several rankers where the method can.

Where clicks have nothing to do with the documents, no ranker should win. With team draft each
ranker leads equally often. With probabilistic, optimised and pairwise methods the expected credits
are equal, but one ranker may lead more often by smaller amounts: test the mean difference of
credits, not how often each one leads. Balanced interleaving favours one ranker in both ways when
one list is the other with a document moved, and sample-only scoring promises neither.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from leanrank._numbers import check_whole
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.errors import InputError, check_choice
from leanrank.online import kernels
from leanrank.online.users import seed_of


class Interleaving:
    """Base of the methods.

    Parameters
    ----------
    length : int, default=10
        Documents in a list; fewer if the rankings together have fewer.
    """

    most_rankers: ClassVar[int | None] = None

    def __init__(self, length: int = 10) -> None:
        self.length = check_whole("length", length)

    def interleave(
        self, a: Any, b: Any, rng: np.random.Generator | int
    ) -> tuple[AnyArray, FloatArray]:
        """Return the list to show for two rankings, and the assignment that ``credit`` needs."""
        return self.multileave((a, b), rng)

    def multileave(
        self, rankings: Sequence[Any], rng: np.random.Generator | int
    ) -> tuple[AnyArray, FloatArray]:
        """Return the list to show for several rankings, and the assignment.

        Parameters
        ----------
        rankings : sequence of integer arrays of one length
            The documents of each ranker, best first. A document may be missing in some.
        rng : Generator or int
            An integer is the seed of this one list.
        """
        ranking = np.asarray(rankings)
        if ranking.ndim != 2 or ranking.dtype.kind not in "iu" or not ranking.size:
            raise InputError("rankings must be integer arrays of one length, best document first")
        if self.most_rankers is not None and len(ranking) > self.most_rankers:
            raise InputError(
                f"{type(self).__name__} compares two rankers, not {len(ranking)}: use team-draft, "
                "probabilistic, sample-scored or pairwise for more"
            )
        documents, codes = np.unique(ranking, return_inverse=True)
        codes = np.ascontiguousarray(codes.reshape(ranking.shape))
        rank = np.full((len(ranking), len(documents)), ranking.shape[1])  # missing: below the rest
        np.put_along_axis(rank, codes, np.arange(ranking.shape[1])[None, :], axis=1)
        if (np.sort(codes, axis=1)[:, 1:] == np.sort(codes, axis=1)[:, :-1]).any():
            raise InputError("a ranking holds a document twice: give each document once")
        shown = np.empty(min(self.length, len(documents)), dtype=np.int64)
        key = np.uint64(kernels.list_key(np.uint64(seed_of(rng) % 2**64), 0))
        assignment = self._draw(codes, rank, key, shown)
        return documents[shown], assignment

    def credit(self, assignment: FloatArray, clicks: Any) -> FloatArray:
        """Return the credit of each ranker for the clicks on a list, one truth value per rank."""
        return np.asarray(assignment @ np.asarray(clicks, dtype=np.float64))

    def _draw(self, ranking: IntArray, rank: IntArray, key: Any, shown: IntArray) -> FloatArray:
        raise NotImplementedError


class TeamDraft(Interleaving):
    """Rankers pick in turns, in random order each round; a click counts for who picked.

    Radlinski, Kurup and Joachims (2008); for several rankers Schuth et al. (2014).

    Examples
    --------
    >>> method = TeamDraft(length=4)
    >>> shown, teams = method.interleave([1, 2, 3, 4], [3, 1, 4, 2], rng=0)
    >>> shown, teams
    (array([1, 3, 2, 4]), array([[1., 0., 1., 0.],
           [0., 1., 0., 1.]]))
    >>> method.credit(teams, [False, True, False, True])
    array([0., 2.])
    """

    def _draw(self, ranking: IntArray, rank: IntArray, key: Any, shown: IntArray) -> FloatArray:
        share = np.empty((len(ranking), len(shown)))
        kernels.team_draft(ranking, key, shown, share)
        return share


class Balanced(Interleaving):
    """Both rankings are used up evenly; a coin decides who begins (Joachims 2002).

    Of the two top parts that just reach the lowest click, the one that holds more clicks wins.
    """

    most_rankers = 2

    def _draw(self, ranking: IntArray, rank: IntArray, key: Any, shown: IntArray) -> FloatArray:
        first = int(kernels.uniform(key, 0) < 0.5)
        turns = ranking[[first, 1 - first]].T.ravel()  # first's best, the other's best, ...
        _, at = np.unique(turns, return_index=True)
        shown[:] = turns[np.sort(at)][: len(shown)]
        return rank[:, shown].astype(np.float64)

    def credit(self, assignment: FloatArray, clicks: Any) -> FloatArray:
        """Return the clicks in the two top parts that just reach the lowest click."""
        hit = assignment[:, np.asarray(clicks, dtype=bool)]
        reach = hit[:, -1].min() if hit.size else 0.0
        return np.asarray((hit <= reach).sum(axis=1), dtype=np.float64)


class Probabilistic(Interleaving):
    """Each rank is filled by a random ranker, which draws document d with weight 1/rank(d)^τ.

    A click counts for each ranker by the probability that it filled the rank, given the list: the
    credit is marginalised over all assignments, exactly (Hofmann, Whiteson & de Rijke 2011; for
    several rankers Schuth et al. 2015, who sample assignments instead).

    Parameters
    ----------
    length : int, default=10
    tau : float, default=3.0
    """

    def __init__(self, length: int = 10, tau: float = 3.0) -> None:
        super().__init__(length)
        self.tau = tau

    def _weights(self, rank: IntArray, n: int) -> FloatArray:
        by_rank = np.append(np.arange(1.0, n + 1) ** -self.tau, 0.0)
        return np.ascontiguousarray(by_rank[rank])

    def _draw(self, ranking: IntArray, rank: IntArray, key: Any, shown: IntArray) -> FloatArray:
        weight = self._weights(rank, ranking.shape[1])
        kernels.sample_mixture(weight, key, shown)
        return self._share(weight, rank, shown)

    def _share(self, weight: FloatArray, rank: IntArray, shown: IntArray) -> FloatArray:
        share = np.empty((len(rank), len(shown)))
        kernels.mixture_share(weight, shown, share)
        return share


class SampleScored(Probabilistic):
    """The list of ``Probabilistic``, scored as if there were no other documents.

    Ranks are counted among the documents shown (Brost et al. 2016).
    """

    def _share(self, weight: FloatArray, rank: IntArray, shown: IntArray) -> FloatArray:
        among = rank[:, shown].argsort(axis=1, kind="stable").argsort(axis=1)
        known = np.where(weight[:, shown] > 0, self._weights(among, len(shown)), 0.0)
        return super()._share(known, among, np.arange(len(shown)))


class Optimised(Interleaving):
    """The fair distribution over lists that tells the rankers apart best.

    Lists take the best remaining document of one of the rankings at each rank. Their probabilities
    solve a linear program: a click on a document counts rank_b − rank_a for ranker a (a rank below
    the list is one past its end), the expected credit of each rank is zero, and the expected
    sensitivity is largest (Radlinski & Craswell 2013). Where no distribution is exactly fair, the
    least unfair one is taken.
    """

    most_rankers = 2

    def __init__(self, length: int = 10) -> None:
        super().__init__(length)
        if length > 12:
            raise InputError(f"length={length}: 2^length lists are weighed, so 12 is the most")

    def _draw(self, ranking: IntArray, rank: IntArray, key: Any, shown: IntArray) -> FloatArray:
        top = np.ascontiguousarray(ranking[:, : len(shown)])  # what stands lower is never taken
        lists, chance = fair_lists(top.tobytes(), len(shown))
        at = np.searchsorted(np.cumsum(chance), kernels.uniform(key, 0), side="right")
        shown[:] = lists[min(int(at), len(lists) - 1)]
        above = np.minimum(rank[:, shown], len(shown))
        difference = above[1] - above[0]
        return np.maximum([difference, -difference], 0).astype(np.float64)


class Pairwise(Interleaving):
    """Each rank draws, at random, from what some ranker puts there or above; pairs are scored.

    A clicked document is preferred to those above it that were not clicked, and to the one right
    below. A ranker gets the preferences it agrees with less those it does not, each weighed by the
    inverse probability that its two documents could come in either order (Oosterhuis & de Rijke
    2017). The assignment holds these weights, by ranker and pair of ranks.
    """

    def _draw(self, ranking: IntArray, rank: IntArray, key: Any, shown: IntArray) -> FloatArray:
        best = rank.min(axis=0)
        kernels.sample_ready(best, key, shown)
        weight = np.empty((len(shown), len(shown)))
        kernels.pair_weights(best, shown, weight)
        there = rank[:, shown]
        return np.asarray(np.sign(there[:, None, :] - there[:, :, None]) * weight)

    def credit(self, assignment: FloatArray, clicks: Any) -> FloatArray:
        """Return each ranker's balance of the preferences that the clicks express."""
        hit, k = np.asarray(clicks, dtype=bool), assignment.shape[1]
        above_or_next = np.tri(k, k, -1, dtype=bool) | np.eye(k, k, 1, dtype=bool)
        pairs = above_or_next & hit[:, None] & ~hit[None, :]
        return np.asarray(assignment[:, pairs].sum(axis=1))


METHODS: dict[str, Callable[..., Interleaving]] = {
    "balanced": Balanced,
    "team-draft": TeamDraft,
    "probabilistic": Probabilistic,
    "optimised": Optimised,
    "pairwise": Pairwise,
    "sample-scored": SampleScored,
}


def interleaver(method: str = "team-draft", length: int = 10) -> Interleaving:
    """Return a method by its name.

    Parameters
    ----------
    method : {"team-draft", "balanced", "probabilistic", "optimised", "pairwise", "sample-scored"}
    length : int, default=10
        Documents in a list.

    Examples
    --------
    >>> method = interleaver("probabilistic", length=3)
    >>> shown, assignment = method.interleave([1, 2, 3, 4], [2, 3, 1, 4], rng=1)
    >>> method.credit(assignment, [True, False, True]).round(2)
    array([1.41, 0.59])
    """
    check_choice("method", method, METHODS)
    return METHODS[method](length)


@lru_cache(maxsize=4096)
def fair_lists(top: bytes, length: int) -> tuple[IntArray, FloatArray]:
    """Return the lists that optimised interleaving may show, with their probabilities."""
    from scipy.optimize import linprog

    a, b = np.frombuffer(top, dtype=np.int64).reshape(2, -1).tolist()
    lists: list[list[int]] = [[]]
    for _ in range(length):
        grown = []
        for shown in lists:
            left = [[d for d in r if d not in shown] for r in (a, b)]
            grown += [[*shown, d] for d in sorted({r[0] for r in left if r})]
        lists = grown
    rank = np.full((2, 1 + max(*a, *b)), length)
    rank[0, a] = rank[1, b] = np.arange(len(a))
    table = np.array(lists)
    difference = (rank[1] - rank[0])[table]
    value, k = _sensitivity(difference), length
    # the last 2k variables are the bias of each rank that cannot be avoided, up and down
    cost = np.concatenate([-value, np.full(2 * k, 1e3)])
    fair = np.hstack([difference.T, -np.eye(k), np.eye(k)])
    sums = np.concatenate([np.ones(len(table)), np.zeros(2 * k)])
    found = linprog(cost, A_eq=np.vstack([fair, sums]), b_eq=np.append(np.zeros(k), 1.0))
    chance = np.maximum(found.x[: len(table)], 0.0)
    return table, chance / chance.sum()


def _sensitivity(difference: IntArray) -> FloatArray:
    """Return how well clicks that fall off as 1/rank tell the rankers apart in each list."""
    falls = 1.0 / np.arange(1, difference.shape[1] + 1)
    a, b = (difference > 0) @ falls, (difference < 0) @ falls
    decided = np.maximum(a + b, 1e-300)
    p = np.stack([a, b]) / decided
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(p > 0, p * np.log2(p), 0.0).sum(axis=0)
    return np.asarray(entropy * decided / falls.sum())
