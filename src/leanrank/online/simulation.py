"""Simulating a learner and its users: one compiled loop over the functions of ``OnlineRanker``.

Queries, clicks and exploration have independent streams of random numbers. So two learners with the
same seed get the same queries, and their runs can be compared in pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from leanrank._jit import kernel
from leanrank._numbers import check_whole
from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.metrics.evaluation import evaluate
from leanrank.online.kernels import draw_clicks, list_key
from leanrank.online.ranker import OnlineRanker
from leanrank.online.serving import new_slate, serve
from leanrank.online.steps import learn
from leanrank.online.users import ClickModel
from leanrank.solvers.sampling.pair_sampling import new_state, next_uniform

DISCOUNT = 0.995
"""γ of the cumulative NDCG, as in Hofmann et al. 2013."""


class Collection(NamedTuple):
    """Queries for the loop: each is a block with one row per feature.

    Attributes
    ----------
    values : array
        The blocks, one after the other.
    query_ptr : array of int64
    grades : array of int64
    gains : array
        2^grade − 1.
    ideal : array
        DCG of each query's best list; 0 without a relevant document.
    """

    values: FloatArray
    query_ptr: IntArray
    grades: IntArray
    gains: FloatArray
    ideal: FloatArray


@dataclass(frozen=True)
class Simulation:
    """The results of a run.

    Attributes
    ----------
    at : array of int64
        Checkpoints: numbers of lists after which weights were stored.
    ndcg : array
        NDCG of every list that was shown; 0 without a relevant document.
    weights : array of shape (len(at), features)
    cumulative : float
        Σ_t γ^t NDCG of list t = 0, 1, …
    """

    at: IntArray
    ndcg: FloatArray
    weights: FloatArray
    cumulative: float

    def online(self) -> FloatArray:
        """Return for each checkpoint the mean NDCG of the lists since the one before."""
        ends = np.concatenate(([0], self.at))
        sums = np.concatenate(([0.0], np.cumsum(self.ndcg)))[ends]
        return np.asarray(np.diff(sums) / np.diff(ends))

    def offline(self, data: RankingData, measure: str = "ndcg@10") -> FloatArray:
        """Return for each checkpoint the mean measure of the weights on other queries.

        The measure is averaged over the orders of equal scores, so that zero weights are as good as
        random lists.
        """
        how: dict[str, Any] = {"measures": measure, "ties": "average", "n_jobs": 1}
        scores = np.asarray(data.X @ self.weights.T).T
        return np.array([evaluate(data, each, **how).means[measure] for each in scores])


def make_collection(data: RankingData, length: int = 10) -> Collection:
    """Prepare queries for ``simulate``, once for many runs."""
    X = np.asarray(data.X.toarray() if data.is_sparse else data.X, dtype=np.float64)
    grades = data.y.astype(np.int64)
    if not np.array_equal(grades, data.y) or grades.min(initial=0) < 0:
        raise InputError("users click by grade: labels must be whole numbers from 0 on")
    ptr, gains = data.query_ptr, np.exp2(grades) - 1.0
    parts = [slice(*ends) for ends in pairwise(ptr.tolist())]
    values = np.concatenate([X[part].T.ravel() for part in parts])
    discount = 1.0 / np.log2(np.arange(2, length + 2))
    best = [np.sort(gains[part])[::-1][:length] for part in parts]
    ideal = np.array([float(each @ discount[: len(each)]) for each in best])
    return Collection(values, np.asarray(ptr, np.int64), grades, gains, ideal)


def simulate(
    ranker: OnlineRanker,
    data: RankingData | Collection,
    user: ClickModel,
    n_queries: int,
    *,
    at: Sequence[int] | IntArray | None = None,
    random_state: int = 0,
) -> Simulation:
    """Run a ranker that serves a simulated user and learns; the ranker is changed.

    Parameters
    ----------
    ranker : OnlineRanker
    data : RankingData
        Queries, of which one is drawn at random for each list; labels are grades from 0 on.
        ``make_collection`` prepares them for many runs.
    user : ClickModel
    n_queries : int
        Number of lists.
    at : sequence of int, optional
        Numbers of lists after which weights are stored; by default ten per factor of ten.
    random_state : int
        Seed of the queries and the clicks; the ranker has its own.

    Examples
    --------
    >>> from leanrank.data import make_ranking
    >>> from leanrank.online import OnlineRanker, simulate, user
    >>> data = make_ranking(n_queries=50, n_features=8, random_state=0)
    >>> ranker = OnlineRanker("spd", n_features=8)
    >>> run = simulate(ranker, data, user("perfect", 5), 1000)
    >>> first, *_, last = run.offline(data)
    >>> bool(last > first + 0.2)
    True
    """
    length = ranker.rule.length
    pool = make_collection(data, length) if isinstance(data, RankingData) else data
    n_queries = check_whole("n_queries", n_queries)
    checkpoints = looks(n_queries) if at is None else np.unique(np.asarray(at, dtype=np.int64))
    if len(checkpoints) == 0 or checkpoints[0] < 1 or checkpoints[-1] > n_queries:
        raise InputError(f"at must hold numbers of lists from 1 to n_queries={n_queries}")
    sizes = np.diff(pool.query_ptr)
    if pool.query_ptr[-1] * ranker.n_features != len(pool.values) or sizes.min(initial=1) < 1:
        raise InputError(
            f"the ranker has {ranker.n_features} features: give data with as many, and no query "
            "without documents"
        )
    if pool.grades.max(initial=0) >= len(user.click):
        raise InputError(
            f"the data have grade {pool.grades.max()}, but the user has {len(user.click)} grades, "
            "counted from 0: give a user with more"
        )
    ndcg = np.zeros(n_queries)
    weights = np.zeros((len(checkpoints), ranker.n_features))
    slate = new_slate(ranker.rule, ranker.state, int(sizes.max()))
    _run(
        ranker.rule, ranker.state, pool, user.tables,
        new_state(random_state, stream=4), np.uint64(new_state(random_state, stream=5)[0]),
        checkpoints, ndcg, weights, slate,
    )  # fmt: skip
    ranker.check_finite()
    return Simulation(checkpoints, ndcg, weights, float(ndcg @ DISCOUNT ** np.arange(n_queries)))


def looks(n_queries: int, per_decade: int = 10) -> IntArray:
    """Return numbers from 1 to ``n_queries``, evenly spread on a logarithmic axis.

    >>> looks(150, per_decade=3).tolist()
    [1, 2, 5, 10, 22, 46, 100, 150]
    """
    powers = np.arange(int(per_decade * np.log10(n_queries)) + 1) / per_decade
    return np.union1d(np.round(10.0**powers), n_queries).astype(np.int64)


@kernel
def _run(  # type: ignore[no-untyped-def]
    rule, state, pool, tables, queries, click_seed, checkpoints, ndcg, weights, slate
):
    n_features, n_views, looked = state.w.shape[1], len(state.w), 0
    grades = np.zeros(rule.length, dtype=np.int64)
    clicks = np.zeros(rule.length, dtype=np.bool_)
    discounts = 1.0 / np.log2(np.arange(2, rule.length + 2))
    for t in range(len(ndcg)):
        q = int(next_uniform(queries) * (len(pool.query_ptr) - 1))
        first, last = pool.query_ptr[q], pool.query_ptr[q + 1]
        block = pool.values[first * n_features : last * n_features].reshape(
            (n_features, last - first)
        )
        length = serve(rule, state, block, slate)
        total = 0.0
        for slot in range(length):
            row = first + slate.documents[slot]
            grades[slot] = pool.grades[row]
            total += pool.gains[row] * discounts[slot]
        if pool.ideal[q] > 0.0:
            ndcg[t] = total / pool.ideal[q]
        key = list_key(click_seed, t)
        draw_clicks(tables, grades[:length], key, clicks[:length])
        learn(rule, state, block, slate, length, clicks)
        if t + 1 == checkpoints[looked]:
            for v in range(n_views):
                for j in range(n_features):
                    weights[looked, j] += state.w[v, j] / n_views
            looked = min(looked + 1, len(checkpoints) - 1)
