"""Comparing rankers on live traffic: one list of several rankings, and credit for its clicks.

Each method has ``interleave(a, b, rng)``, which returns the list to show and an assignment to store
with it, and ``credit(assignment, clicks)``, one number per ranker; this user prefers the ranker
with the higher credit. ``multileave(rankings, rng)`` is for several rankers, if the method allows.

If clicks do not depend on the documents, no ranker should win. With team draft each ranker leads
equally often. With probabilistic and optimised interleaving the expected credits are equal, but one
ranker may lead more often by smaller amounts: test the mean difference of credits, not how often
each one leads. Balanced interleaving favours one ranker in both respects if one list is the other
with a document moved. ``confidence_sequence`` tells when a test can stop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from leanrank._jit import kernel
from leanrank._numbers import check_whole
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.grouping import one_dimensional
from leanrank.errors import InputError, check_choice
from leanrank.online.kernels import draw_weighted, list_key, uniform
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
            The documents of each ranker, best first. Some rankings may lack a document.
        rng : Generator or int
            An integer is the seed of this one list.
        """
        ranking = np.asarray(rankings)
        if ranking.ndim != 2 or ranking.dtype.kind not in "iu" or not ranking.size:
            raise InputError("rankings must be integer arrays of one length, best document first")
        if self.most_rankers is not None and len(ranking) > self.most_rankers:
            raise InputError(
                f"{type(self).__name__} compares two rankers, not {len(ranking)}: use "
                "team-draft or probabilistic for more"
            )
        documents, codes = np.unique(ranking, return_inverse=True)
        codes = np.ascontiguousarray(codes.reshape(ranking.shape))
        rank = np.full((len(ranking), len(documents)), ranking.shape[1])  # absent documents: last
        np.put_along_axis(rank, codes, np.arange(ranking.shape[1])[None, :], axis=1)
        if (np.diff(np.sort(codes, axis=1)) == 0).any():
            raise InputError("a ranking has a document twice: give each document once")
        shown = np.empty(min(self.length, len(documents)), dtype=np.int64)
        key = np.uint64(list_key(np.uint64(seed_of(rng) % 2**64), 0))
        assignment = self._draw(codes, rank, key, shown)
        return documents[shown], assignment

    def credit(self, assignment: FloatArray, clicks: Any) -> FloatArray:
        """Return the credit of each ranker for the clicks on a list, one truth value per rank."""
        return np.asarray(assignment @ np.asarray(clicks, dtype=np.float64))

    def _draw(self, ranking: IntArray, rank: IntArray, key: Any, shown: IntArray) -> FloatArray:
        raise NotImplementedError


class TeamDraft(Interleaving):
    """Rankers pick in turns, in random order each round; a click counts for the ranker that picked.

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
        team_draft(ranking, key, shown, share)
        return share


class Balanced(Interleaving):
    """Rankings take turns, and a coin decides which is first (Joachims 2002).

    The tops of both rankings down to the lowest click are compared: more clicks win.
    """

    most_rankers = 2

    def _draw(self, ranking: IntArray, rank: IntArray, key: Any, shown: IntArray) -> FloatArray:
        first = int(uniform(key, 0) < 0.5)
        turns = ranking[[first, 1 - first]].T.ravel()  # first's best, the other's best, ...
        _, at = np.unique(turns, return_index=True)
        shown[:] = turns[np.sort(at)][: len(shown)]
        return rank[:, shown].astype(np.float64)

    def credit(self, assignment: FloatArray, clicks: Any) -> FloatArray:
        """Return the clicks in the tops of both rankings down to the lowest click."""
        hit = assignment[:, np.asarray(clicks, dtype=bool)]
        reach = hit[:, -1].min() if hit.size else 0.0
        return np.asarray((hit <= reach).sum(axis=1), dtype=np.float64)


class Probabilistic(Interleaving):
    """A random ranker fills each rank; it draws document d with weight 1/rank(d)^τ.

    A click counts for each ranker with the probability that it filled the rank, given the list: the
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

    def _draw(self, ranking: IntArray, rank: IntArray, key: Any, shown: IntArray) -> FloatArray:
        by_rank = np.append(np.arange(1.0, ranking.shape[1] + 1) ** -self.tau, 0.0)
        weight = np.ascontiguousarray(by_rank[rank])
        share = np.empty((len(rank), len(shown)))
        mixture(weight, key, shown, share)
        return share


class Optimised(Interleaving):
    """The fair distribution over lists with the largest expected sensitivity.

    At each rank, a list has the best remaining document of one of the rankings. The probabilities
    of lists solve a linear program: a click on a document counts rank_b − rank_a for ranker a (a
    rank below the list is one past its end), the expected credit of each rank is zero, and the
    expected sensitivity is largest (Radlinski & Craswell 2013). If no distribution is exactly fair,
    the least unfair one is used.
    """

    most_rankers = 2

    def __init__(self, length: int = 10) -> None:
        super().__init__(length)
        if length > 12:
            raise InputError(f"length={length} needs 2^length lists: give at most 12")

    def _draw(self, ranking: IntArray, rank: IntArray, key: Any, shown: IntArray) -> FloatArray:
        top = np.ascontiguousarray(ranking[:, : len(shown)])  # lower documents are never shown
        lists, chance = fair_lists(top.tobytes(), len(shown))
        at = np.searchsorted(np.cumsum(chance), uniform(key, 0), side="right")
        shown[:] = lists[min(int(at), len(lists) - 1)]
        above = np.minimum(rank[:, shown], len(shown))
        difference = above[1] - above[0]
        return np.maximum([difference, -difference], 0).astype(np.float64)


METHODS: dict[str, Callable[..., Interleaving]] = {
    "balanced": Balanced,
    "team-draft": TeamDraft,
    "probabilistic": Probabilistic,
    "optimised": Optimised,
}


def interleaver(method: str = "team-draft", length: int = 10) -> Interleaving:
    """Return a method by its name.

    Parameters
    ----------
    method : {"team-draft", "balanced", "probabilistic", "optimised"}
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


def confidence_sequence(
    values: Any, *, low: float = -1.0, high: float = 1.0, alpha: float = 0.05
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the mean after each value that hold simultaneously.

    With probability 1 − alpha the true mean is between the bounds at every time. So you may look
    after every list, and stop as soon as zero is outside. The only assumptions are that the values
    are bounded and that each has the same mean given those before it. (The predictable
    plug-in empirical Bernstein bound of Waudby-Smith & Ramdas 2024.)

    Parameters
    ----------
    values : array-like
        One number per list, in the order of time, such as the sign of the difference of credits.
    low, high : float
        Bounds of the values.
    alpha : float, default=0.05
        Probability of an error at any time.

    Returns
    -------
    lower, upper : arrays
        As long as ``values``; the interval only shrinks.

    Examples
    --------
    >>> wins = np.random.default_rng(0).choice([-1, 0, 1], p=[0.2, 0.5, 0.3], size=3_000)
    >>> lower, upper = confidence_sequence(wins)
    >>> int(np.argmax(lower > 0)), bool(lower[-1] < 0.1 < upper[-1])
    (256, True)
    """
    given = np.asarray(one_dimensional(values, "values"), dtype=np.float64)
    if not low < high or not 0 < alpha < 1:
        raise InputError(f"low={low!r} must be below high={high!r}, and alpha={alpha!r} in (0, 1)")
    if not ((given >= low) & (given <= high)).all():
        raise InputError(f"a value is outside [{low:g}, {high:g}]: give the bounds low and high")
    x = (given - low) / (high - low)
    t = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    before = np.concatenate([[0.5], mean[:-1]])
    spread = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    spread_before = np.concatenate([[0.25], spread[:-1]])
    error = np.log(2.0 / alpha)
    bet = np.minimum(np.sqrt(2.0 * error / (spread_before * t * np.log1p(t))), 0.5)
    price = (x - before) ** 2 * (-np.log1p(-bet) - bet)
    centre, total = np.cumsum(bet * x), np.cumsum(bet)
    width = (error + np.cumsum(price)) / total
    scale = high - low
    lower = np.maximum.accumulate(np.maximum(centre / total - width, 0.0))
    upper = np.minimum.accumulate(np.minimum(centre / total + width, 1.0))
    return low + scale * lower, low + scale * upper


@lru_cache(maxsize=4096)
def fair_lists(top: bytes, length: int) -> tuple[IntArray, FloatArray]:
    """Return the possible lists of optimised interleaving, and their probabilities."""
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
    # the last 2k variables are the unavoidable bias of each rank, up and down
    cost = np.concatenate([-value, np.full(2 * k, 1e3)])
    fair = np.hstack([difference.T, -np.eye(k), np.eye(k)])
    sums = np.concatenate([np.ones(len(table)), np.zeros(2 * k)])
    found = linprog(cost, A_eq=np.vstack([fair, sums]), b_eq=np.append(np.zeros(k), 1.0))
    chance = np.maximum(found.x[: len(table)], 0.0)
    return table, chance / chance.sum()


def _sensitivity(difference: IntArray) -> FloatArray:
    """Return the sensitivity of each list to clicks whose rate is 1/rank."""
    falls = 1.0 / np.arange(1, difference.shape[1] + 1)
    a, b = (difference > 0) @ falls, (difference < 0) @ falls
    decided = np.maximum(a + b, 1e-300)
    p = np.stack([a, b]) / decided
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.where(p > 0, p * np.log2(p), 0.0).sum(axis=0)
    return np.asarray(entropy * decided / falls.sum())


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
def mixture(weight: FloatArray, key: Any, shown: AnyArray, share: FloatArray) -> None:
    """Fill each rank with a document of a random ranker, drawn in proportion to its weight there.

    ``weight[j, d]`` is that of document d for ranker j; it becomes 0 for documents shown.
    ``share[j, r]`` becomes the probability that ranker j filled rank r, given all that is shown:
    rankers are drawn anew at each rank, so the sum over all assignments is a product over ranks.
    """
    n_rankers, n = weight.shape
    total = np.empty(n_rankers)
    for r in range(len(shown)):
        n_active = 0  # rankers with documents that are not shown
        for j in range(n_rankers):
            total[j] = 0.0
            for d in range(n):
                total[j] += weight[j, d]
            n_active += total[j] > 0.0
        skip, j = int(uniform(key, 2 * r) * n_active), 0
        while skip > 0 or total[j] == 0.0:
            skip -= total[j] > 0.0
            j += 1
        shown[r] = draw_weighted(weight[j], uniform(key, 2 * r + 1) * total[j])
        everyone = 0.0
        for j in range(n_rankers):
            share[j, r] = weight[j, shown[r]] / total[j] if total[j] > 0.0 else 0.0
            everyone += share[j, r]
        share[:, r] /= everyone
        weight[:, shown[r]] = 0.0
