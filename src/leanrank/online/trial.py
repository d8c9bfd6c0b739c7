"""Learners tried on the same simulated users: curves, and who is preferred."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._numbers import check_whole
from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.execution import make_executor
from leanrank.online.interleaving import confidence_sequence, interleaver
from leanrank.online.ranker import OnlineRanker
from leanrank.online.simulation import Simulation, looks, make_collection, simulate
from leanrank.online.users import ClickModel, user


@dataclass(frozen=True)
class Preference:
    """Users' choice between a learner's first and last ranker, by team-draft interleaving.

    Attributes
    ----------
    n_lists, wins, losses : int
        Lists that were shown, that preferred the last ranker, and that preferred the first.
    decided : int or None
        After how many lists a 95 % confidence sequence excluded that neither is better.
    """

    n_lists: int
    wins: int
    losses: int
    decided: int | None


@dataclass(frozen=True)
class Learned:
    """What one learner did with one kind of user.

    Attributes
    ----------
    learner, user : str
    at : array of int64
        Numbers of lists.
    served : array of shape (seeds, len(at))
        Mean NDCG@10 of the lists shown since the place before.
    learned : array of shape (seeds, len(at))
        NDCG@10 of the weights on the data to measure on.
    cumulative : array of shape (seeds,)
        Discounted sum of the NDCG of all lists.
    features : array of shape (seeds,)
        Weights that are not zero at the end.
    preference : Preference
        Of the first run.
    """

    learner: str
    user: str
    at: IntArray
    served: FloatArray
    learned: FloatArray
    cumulative: FloatArray
    features: IntArray
    preference: Preference


@dataclass(frozen=True)
class Trial:
    """Learners on the same queries and users.

    Attributes
    ----------
    data : RankingData
        What users asked for.
    held_out : bool
        Whether the weights were measured on other data.
    n_queries, n_seeds : int
        Lists per run, and runs.
    results : list of Learned
        By user, then by learner.
    """

    data: RankingData
    held_out: bool
    n_queries: int
    n_seeds: int
    results: list[Learned]


def try_learners(
    data: RankingData,
    learners: Mapping[str, Mapping[str, Any]],
    users: Sequence[str],
    n_queries: int,
    *,
    test: RankingData | None = None,
    n_seeds: int = 10,
    random_state: int = 0,
    n_jobs: int | None = None,
) -> Trial:
    """Let several learners serve the same simulated users.

    Parameters
    ----------
    data : RankingData
        Queries that users ask; labels are grades 0 to 4.
    learners : mapping of str to mapping
        Methods of ``OnlineRanker`` with their parameters.
    users : sequence of str
        As for ``leanrank.online.user``.
    n_queries : int
        Lists per run.
    test : RankingData, optional
        Queries to measure the weights on; by default those of ``data``.
    n_seeds : int, default=10
        Runs of each learner, with other queries, clicks and explorations.
    random_state : int, default=0
        Of the first run; the others count on from it.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Examples
    --------
    >>> from leanrank.data import make_ranking
    >>> data = make_ranking(n_queries=40, n_features=6, n_levels=3, random_state=0)
    >>> trial = try_learners(data, {"spd": {"eta0": 0.05}}, ["perfect"], 500, n_seeds=2)
    >>> [one] = trial.results
    >>> one.preference.wins > one.preference.losses
    True
    """
    n_queries, n_seeds = check_whole("n_queries", n_queries), check_whole("n_seeds", n_seeds)
    if not learners or not users:
        raise InputError("there is nothing to try: give at least one learner and one user")
    visitors = {name: user(name, _n_grades(data)) for name in users}
    pool, places = make_collection(data), looks(n_queries, per_decade=5)
    measured = data if test is None else test
    if not (data.informative.any() and measured.informative.any()):
        raise InputError("no query has documents at two levels: give labels that differ within it")
    if measured.n_features != data.n_features:
        raise InputError(
            f"the data to measure on have {measured.n_features} features, the others "
            f"{data.n_features}: give files of one kind"
        )
    executor, results = make_executor(n_jobs), []

    def ranker(method: str, seed: int) -> OnlineRanker:
        given = dict(learners[method])
        return OnlineRanker(method, n_features=data.n_features, random_state=seed, **given)

    for name, visitor in visitors.items():
        for method in learners:

            def one(
                seed: int, method: str = method, visitor: ClickModel = visitor
            ) -> tuple[Simulation, FloatArray]:
                learner = ranker(method, seed)
                run = simulate(learner, pool, visitor, n_queries, at=places, random_state=seed)
                return run, run.offline(measured)

            runs = executor.map(one, range(random_state, random_state + n_seeds))
            last = runs[0][0].weights[-1]
            results.append(
                Learned(
                    learner=method,
                    user=name,
                    at=places,
                    served=np.array([run.online() for run, _ in runs]),
                    learned=np.array([values for _, values in runs]),
                    cumulative=np.array([run.cumulative for run, _ in runs]),
                    features=np.array([np.count_nonzero(run.weights[-1]) for run, _ in runs]),
                    preference=prefer(data, last, visitor, min(n_queries, 2_000), random_state),
                )
            )
    return Trial(data, test is not None, n_queries, n_seeds, results)


def prefer(
    data: RankingData, weights: FloatArray, visitor: ClickModel, n_lists: int, seed: int
) -> Preference:
    """Interleave a ranker with one that has learned nothing, whose order is random."""
    rng, method = np.random.default_rng([seed, 7]), interleaver("team-draft")
    scores, outcomes = np.asarray(data.X @ weights), np.zeros(n_lists)
    for t in range(n_lists):
        q = rng.integers(data.n_queries)
        rows = np.arange(data.query_ptr[q], data.query_ptr[q + 1])
        first = rng.permutation(rows)
        last = first[np.argsort(-scores[first], kind="stable")]
        shown, teams = method.interleave(last, first, rng)
        credit = method.credit(teams, visitor.clicks(data.y[shown].astype(np.int64), rng))
        outcomes[t] = np.sign(credit[0] - credit[1])
    lower, upper = confidence_sequence(outcomes)
    outside = np.flatnonzero((lower > 0) | (upper < 0))
    return Preference(
        n_lists=n_lists,
        wins=int((outcomes > 0).sum()),
        losses=int((outcomes < 0).sum()),
        decided=int(outside[0]) + 1 if len(outside) else None,
    )


def _n_grades(data: RankingData) -> int:
    highest = int(data.y.max(initial=0))
    if highest > 4:
        raise InputError(
            f"the data have grade {highest}, simulated users know 0 to 4: merge grades first"
        )
    return 2 if highest < 2 else 3 if highest < 3 else 5
