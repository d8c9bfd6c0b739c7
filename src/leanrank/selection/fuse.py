"""Weights of the runs of a hybrid search, learned from judgments and compared with simple rules."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from leanrank._numbers import check_number, check_whole
from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.data.trec import QDRANT, SCALERS, Qrels, Run, RunPool, as_qrels, as_run
from leanrank.errors import InputError, suggest
from leanrank.losses import LOSSES
from leanrank.metrics import compare_values, evaluate_run, parse_measures
from leanrank.metrics.conventions import find_convention
from leanrank.metrics.evaluation import Lists, measure_lists
from leanrank.metrics.judge import best_of, better_sign, mean_of, ranks_something
from leanrank.rankers import LinearRanker
from leanrank.selection.cross_validation import summarise_warnings
from leanrank.selection.folds import QueryKFold, whole_query_folds
from leanrank.selection.fused import (
    EQUAL,
    FUSED,
    ONE_SET,
    RRF,
    TODAY,
    CurvePoint,
    Fusion,
    QueryTypes,
    Setting,
)

CONSTANTS = (10, 60, 200)
"""Constants of reciprocal ranks to try; 60 is the usual one."""
ALPHAS = (0.1, 0.01, 1e-3, 1e-4)
"""Strengths of the ℓ2² penalty to try, in addition to equal weights."""
CURVE = (10, 25, 50, 100, 200, 500, 1000, 2000, 5000)
"""Numbers of judged queries at which the learning curve is measured."""


def fuse(
    runs: Mapping[str, Any] | Sequence[Any],
    qrels: Any,
    *,
    query_features: Any = None,
    baseline: Mapping[str, float] | None = None,
    loss: str = "squared-hinge",
    nonnegative: bool = True,
    scalers: Iterable[str] = SCALERS,
    constants: Sequence[int] = CONSTANTS,
    measure: str = "ndcg@10",
    convention: str = "standard",
    cv: int = 5,
    curve: bool = True,
    random_state: int = 0,
) -> Fusion:
    """Learn the weights of several runs, such as BM25 and vectors in a hybrid search.

    The runs become features: their scores are scaled within each query, and documents that a run
    lacks get its lowest value. Scaler, constant and strength are chosen by cross-validation over
    queries; equal weights are among the candidates. All results are from an outer cross-validation,
    in which the choice is made again without the tested queries.

    Parameters
    ----------
    runs : mapping or sequence of runs
        A run is a ``Run``, the path of a TREC run, or a table with the columns ``qid``,
        ``doc_id`` and ``score``. Without names, the tags of the runs name them.
    qrels : Qrels, path or table
        Judgments: TREC qrels, Quepid CSV, workbench JSON, or a table with the columns ``qid``,
        ``doc_id`` and ``label``. A document without a judgment counts as label 0.
    query_features : table, optional
        A table with the column ``qid`` and properties of the queries, such as their kind or length.
        The weights then depend on the type of the query, and are compared with one set of weights
        for all. A number with many values is divided into three ranges; types of fewer than ten
        queries share the weights of all queries.
    baseline : mapping, optional
        Weights by run, for min-max scores, to compare with: those in use today.
    loss : str, default="squared-hinge"
        A smooth loss: "domination", "exponential", "listnet", "logistic" or "squared-hinge".
    nonnegative : bool, default=True
        Whether to forbid negative weights, which engines do not accept.
    scalers : iterable of str
        Scalers to choose from; see ``leanrank.data.trec.RunPool.scaled``.
    constants : sequence of int
        Constants of reciprocal ranks to choose from.
    measure, convention : str
        The measure by which settings are chosen, and which is reported.
    cv : int, default=5
        Number of outer and of inner folds.
    curve : bool, default=True
        Whether to measure the learning curve, which takes about as long as the rest.
    random_state : int, default=0
        Seed of the folds and of the subsets of the learning curve.

    Returns
    -------
    Fusion

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> qid, doc_id = np.repeat(np.arange(40), 10), np.tile(np.arange(10), 40)
    >>> label = rng.integers(0, 3, 400)
    >>> def run(noise):
    ...     return {"qid": qid, "doc_id": doc_id, "score": label + noise * rng.normal(size=400)}
    >>> judged = {"qid": qid, "doc_id": doc_id, "label": label}
    >>> found = fuse({"good": run(0.5), "poor": run(4.0)}, judged, curve=False)
    >>> found.weights["good"] > 0.8
    True
    >>> found.comparisons["reciprocal rank fusion"].difference > 0.05
    True
    """
    if loss not in LOSSES:
        raise InputError(f"there is no loss {loss!r}: {suggest(loss, LOSSES)}")
    check_whole("cv", cv, 2)
    named = _named_runs(runs)
    judged = as_qrels(qrels)
    pool = RunPool.build(named, judged)
    able = int(pool.data.informative.sum())
    if able < 2 * cv:
        raise InputError(
            f"{able} of {pool.data.n_queries} judged queries have retrieved documents at two "
            f"levels: {cv} folds inside {cv} folds need {2 * cv} of them; judge more, or take "
            "fewer folds"
        )
    learner = _Learner(
        inputs=_inputs(scalers, constants, len(named)),
        loss=loss,
        nonnegative=nonnegative,
        measure=parse_measures((measure,))[0].name,
        convention=convention,
        cv=cv,
        seed=check_whole("random_state", random_state, 0),
    )
    rrf, equal = pool.scaled("query-reciprocal-rank", 60), pool.scaled("query-minmax")
    others = {
        RRF: learner.values(pool, rrf.sum(axis=1)),
        EQUAL: learner.values(pool, equal.sum(axis=1)),
        **_alone(learner, pool, named, judged),
    }
    if baseline is not None:
        missing = [name for name in named if name not in baseline]
        if missing:
            raise InputError(f"baseline has no weight of the run {missing[0]!r}: give one, or 0")
        today = np.array([check_number("baseline", baseline[name]) for name in named])
        others[TODAY] = learner.values(pool, pool.scaled("query-minmax") @ today)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if query_features is not None:
            if any(settings[0].scaler == QDRANT for settings in learner.inputs):
                raise InputError(f"query_features: {QDRANT} has no weights that could depend on it")
            others[ONE_SET] = _tested(learner, pool, False)[0]
            learner.types = QueryTypes.find(query_features, pool.data.query_ids.tolist())
            learner.type_of = learner.types.of(query_features)
        values, settings, points = _tested(learner, pool, curve)
        setting, weights, gap = learner.learn(pool)
    summarise_warnings(caught, learner.n_fits)
    shared, by_type = weights[: len(named)], learner.types.weights(weights)
    if not shared.any():
        shared = np.sum(list(by_type.values()), axis=0)
    per_query = {FUSED: values, **others}

    def by_run(weights: FloatArray) -> dict[str, float]:
        return dict(zip(named, _normalised(weights).tolist(), strict=True))

    return Fusion(
        weights=by_run(shared),
        setting=setting,
        dual_gap=gap,
        measure=learner.measure,
        convention=convention,
        loss=loss,
        n_queries=pool.data.n_queries,
        means={name: mean_of(of) for name, of in per_query.items()},
        comparisons={
            name: compare_values(of, values, measure=learner.measure) for name, of in others.items()
        },
        per_query=per_query,
        fold_settings=settings,
        curve=points,
        notes=pool.notes,
        types=learner.types,
        weights_by_type={name: by_run(own) for name, own in by_type.items()},
    )


@dataclass
class _Learner:
    """The choice of a setting and the fit of weights, for any pool of runs."""

    inputs: list[list[Setting]]
    loss: str
    nonnegative: bool
    measure: str
    convention: str
    cv: int
    seed: int
    n_fits: int = 0
    types: QueryTypes = field(default_factory=QueryTypes)
    type_of: Mapping[str, str] = field(default_factory=dict)

    def scaled(self, setting: Setting, pool: RunPool) -> FloatArray:
        """Return the features of a setting, with further columns for each type of query."""
        return self.types.widened(setting.scaled(pool), pool, self.type_of)

    def learn(self, pool: RunPool) -> tuple[Setting, FloatArray, float | None]:
        """Return the setting with the best cross-validation, and its weights for all queries."""
        folds = whole_query_folds(pool.data, QueryKFold(self.cv, random_state=self.seed))
        worth: dict[Setting, float] = {}
        for settings in self.inputs:
            data = self._data(settings, pool)
            scores = {setting: np.zeros(len(data)) for setting in settings}
            for train, test in folds:
                rows = np.repeat(test, np.diff(data.query_ptr))
                for setting, weights, _ in self._fits(settings, data.queries[train]):
                    scores[setting][rows] = data.X[rows] @ weights
            worth |= {setting: self._worth(pool, scores[setting]) for setting in settings}
        best = next(iter(worth))
        if max(worth.values()) > -np.inf:
            best = list(worth)[best_of(list(worth.values()))]
        settings = next(each for each in self.inputs if best in each)
        fits = self._fits(settings, self._data(settings, pool))
        return next(found for found in fits if found[0] == best)

    def _data(self, settings: list[Setting], pool: RunPool) -> RankingData:
        return pool.data.replace(X=self.scaled(settings[0], pool), feature_names=None)

    def values(self, pool: RunPool, scores: FloatArray) -> FloatArray:
        """Return the measure on every query; judged documents that were not retrieved count."""
        data, measures = pool.data, parse_measures((self.measure,))
        judged = data.doc_ids, pool.judged_ptr, pool.judged_labels
        lists = Lists(data.query_ids, data.query_ptr, scores, data.y, *judged)
        found = measure_lists(measures, find_convention(self.convention), lists)
        return found.per_query[self.measure]

    def _worth(self, pool: RunPool, scores: FloatArray) -> float:
        if not ranks_something(scores, pool.data):
            return -np.inf
        mean = mean_of(self.values(pool, scores))
        return -np.inf if np.isnan(mean) else better_sign(self.measure) * mean

    def _fits(
        self, settings: list[Setting], data: RankingData
    ) -> Iterator[tuple[Setting, FloatArray, float | None]]:
        """Yield each of the settings with the same features, its weights and the duality gap."""
        fitted = {s.alpha: s for s in settings if s.alpha is not None and data.informative.any()}
        n_runs = data.n_features // (1 + len(self.types.names))
        for setting in settings:
            if setting.alpha not in fitted:
                equal = (np.arange(data.n_features) < n_runs).astype(np.float64)
                yield setting, equal, None
        if fitted:
            ranker = LinearRanker(self.loss, "l2", signs=1 if self.nonnegative else None)
            path = ranker.path(data, alphas=list(fitted))
            self.n_fits += len(fitted)
            for at, alpha in enumerate(path.alphas.tolist()):
                yield fitted[alpha], path.coefs[at], float(path.dual_gaps[at])


def _named_runs(runs: Any) -> dict[str, Run]:
    if isinstance(runs, Mapping):
        named = {str(name): as_run(run, str(name)) for name, run in runs.items()}
    else:
        named = {}
        for at, run in enumerate(runs, start=1):
            made = as_run(run, f"number {at}")
            if made.tag in named:
                raise InputError(f"two runs have the tag {made.tag!r}: give a mapping with names")
            named[made.tag] = made
    if len(named) < 2:
        raise InputError(f"{len(named)} run was given: give at least two")
    return named


def _inputs(scalers: Iterable[str], constants: Sequence[int], n_runs: int) -> list[list[Setting]]:
    """Return the settings to try, grouped by their features."""
    found: list[list[Setting]] = []
    for scaler in scalers:
        if scaler == QDRANT:  # its constants are the weights: try all combinations
            values = (1, 3, 10, 30, 100, 300, 1000)[:: 1 + (n_runs > 2)]
            if len(values) ** n_runs > 300:
                raise InputError(f"{n_runs} runs are too many for Qdrant's ranks: give at most 4")
            found += [[Setting(scaler, each, None)] for each in product(values, repeat=n_runs)]
            continue
        if scaler not in SCALERS:
            raise InputError(f"scaler {scaler!r} is not known: {suggest(scaler, SCALERS)}")
        for constant in constants if scaler == "query-reciprocal-rank" else (None,):
            found.append([Setting(scaler, constant, alpha) for alpha in (None, *ALPHAS)])
    if not found:
        raise InputError("there is nothing to choose from: give at least one scaler")
    return found


def _tested(
    learner: _Learner, pool: RunPool, curve: bool
) -> tuple[FloatArray, list[Setting], list[CurvePoint]]:
    """Return measures on each fold with weights learned on the other folds, and learning curves.

    Also returns the settings chosen without each fold.
    """
    n_queries = pool.data.n_queries
    folds = whole_query_folds(pool.data, QueryKFold(learner.cv, random_state=learner.seed + 1))
    least = min(int(train.sum()) for train, _ in folds)
    sizes = [n for n in CURVE if 2 * learner.cv <= n < least] if curve else []
    values = {n: np.full(n_queries, np.nan) for n in [*sizes, n_queries]}
    settings = []
    for number, (train, test) in enumerate(folds):
        known, held_out = np.flatnonzero(train), pool.queries(test)
        order = np.random.default_rng([learner.seed, number]).permutation(known)
        for n in values:
            setting, weights, _ = learner.learn(pool.queries(np.sort(order[:n])))
            values[n][test] = learner.values(held_out, learner.scaled(setting, held_out) @ weights)
        settings.append(setting)
    everything = values.pop(n_queries)
    points = [
        CurvePoint(n, mean_of(of), compare_values(everything, of, measure=learner.measure))
        for n, of in values.items()
    ]
    if points:
        same = compare_values(everything, everything, measure=learner.measure)
        points.append(CurvePoint(least, mean_of(everything), same))
    return everything, settings, points


def _alone(
    learner: _Learner, pool: RunPool, runs: Mapping[str, Run], qrels: Qrels
) -> dict[str, FloatArray]:
    """Return the measure of each run alone; a query without results is an empty list."""
    out = {}
    how: dict[str, Any] = {"convention": learner.convention, "complete": True, "n_jobs": 1}
    for name, run in runs.items():
        found = evaluate_run(qrels, run, learner.measure, **how)
        values = dict(zip(found.query_ids.tolist(), found.per_query[learner.measure], strict=True))
        out[f"{name} alone"] = np.array([values[q] for q in pool.data.query_ids.tolist()])
    return out


def _normalised(weights: FloatArray) -> FloatArray:
    """Return weights scaled to a sum of 1 or, if any is negative, to a largest |weight| of 1."""
    total = weights.sum() if (weights >= 0).all() else np.abs(weights).max()
    scaled: FloatArray = weights / total if total > 0 else weights
    return scaled
