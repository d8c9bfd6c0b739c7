"""Cross-validation by query: along a ranker's own path, or over a grid of its parameters."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from leanrank._numbers import is_whole
from leanrank._typing import FloatArray
from leanrank.data.dask.collections import is_dask
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, warn
from leanrank.execution import make_executor
from leanrank.metrics import parse_measures
from leanrank.metrics.judge import Judge, mean_of, ranks_something
from leanrank.problem.part import InGroup
from leanrank.rankers.cluster import ClusterData, data_on_cluster
from leanrank.rankers.curves import scores_of_models
from leanrank.rankers.path import alpha_grid
from leanrank.registry import AlphaPath, Fits, Sizes, Space
from leanrank.selection.cluster import facts_on_cluster
from leanrank.selection.cross_validation.result import CrossValidation
from leanrank.selection.cross_validation.splits import (
    Fold,
    QueryKFold,
    ranking_data,
    whole_query_folds,
)
from leanrank.selection.tuning.sweeps import sweep_models

RIDGE_ALPHAS = (1e2, 1e-6)
"""Range of a path when no strength empties the model. Losses are means, so it suits data of any
size."""


def cross_validate_path(
    ranker: Any,
    X: Any,
    y: Any = None,
    qid: Any = None,
    *,
    cv: Any = 5,
    alphas: Iterable[float] | None = None,
    n_alphas: int = 50,
    alpha_min_ratio: float = 1e-3,
    measures: str | Sequence[str] = ("ndcg@10",),
    convention: str = "standard",
    n_jobs: int | None = None,
    **options: Any,
) -> CrossValidation:
    """Cross-validate all models of a ranker's path, which costs little more than one of them.

    Parameters
    ----------
    ranker : ranker
        One with a path: of strengths, each model started from the one before, or GreedyRankRLS,
        whose path is every number of features up to its own ``n_features_to_select``.
    X, y, qid : as for fit
        Or a RankingData. On Dask, folds are fitted one after the other, each on all workers.
    cv : int, splitter or iterable of (train, test) rows, default=5
        A number means ``QueryKFold``. No query may be split. On Dask a number.
    alphas : iterable of float, optional
        Instead of ``n_alphas`` values from the alpha_max of all data down to ``alpha_min_ratio``
        times it. Where no alpha empties the model, from 100 down to 1e-6.
    n_alphas : int, default=50
    alpha_min_ratio : float, default=1e-3
    measures : str or sequence of str
        A choice goes by the first.
    convention : str, default="standard"
    n_jobs : int, optional
        Threads that share the folds; the result does not depend on it.
    **options
        ``group``, ``sample_weight``, ``query_weight`` and ``offset``, as for fit.

    Returns
    -------
    CrossValidation

    Examples
    --------
    >>> from leanrank import DominationRanker, make_ranking
    >>> data = make_ranking(n_queries=60, n_features=20, n_informative=3, random_state=0)
    >>> found = cross_validate_path(DominationRanker(), data, n_alphas=20)
    >>> found.fold_means["ndcg@10"].shape
    (5, 20)
    >>> found.one_standard_error_alpha >= found.best_alpha
    True
    >>> sparse = found.refit(data, rule="1se")
    >>> sparse.alpha == found.one_standard_error_alpha
    True
    """
    if is_dask(X):
        there = data_on_cluster(ranker, X, y, qid, **options)
        if not hasattr(ranker, "path"):
            raise InputError(_no_path(ranker))
        grid = _strengths(ranker, there, alphas, n_alphas, alpha_min_ratio)
        settings = [{"alpha": alpha} for alpha in grid]
        return _on_cluster(ranker, there, cv, settings, grid, measures, convention)
    data = ranking_data(ranker, X, y, qid, **options)
    known = ranker.get_params()
    sweep: AlphaPath | Sizes
    if hasattr(ranker, "path") and "alpha" in known:
        grid = _strengths(ranker, data, alphas, n_alphas, alpha_min_ratio)
        sweep, along = AlphaPath(alphas=grid), "alpha"
    elif "n_features_to_select" in known:
        most = known["n_features_to_select"]
        sweep = Sizes(min(int(most), data.n_features) if is_whole(most) else data.n_features)
        along = "n_features_to_select"
    else:
        raise InputError(_no_path(ranker))
    folds = whole_query_folds(data, cv, rows_of=X)
    return _cross_validated(ranker, data, folds, [{}], sweep, along, measures, convention, n_jobs)


def _on_cluster(
    ranker: Any,
    data: ClusterData,
    cv: Any,
    settings: Sequence[Mapping[str, Any]],
    alphas: Sequence[float] | None,
    measures: str | Sequence[str],
    convention: str,
) -> CrossValidation:
    """Cross-validate where the documents are; each fold leaves out some queries' weights.

    Models are those of the settings or, with alphas, of the ranker's path.
    """
    if not is_whole(cv) or cv < 2:
        raise InputError(f"cv={cv!r} must be a whole number from 2 where X is on Dask")
    names = [measure.name for measure in parse_measures(measures)]
    sizes: list[list[int]] = []
    ids, values = [], []
    data = data.grouped(next(QueryKFold(int(cv)).deal(facts_on_cluster(data))))
    for fold in range(cv):
        train, test = (data.only(InGroup(fold, others=others)) for others in (True, False))
        if alphas is not None:
            path = ranker.path(train, alphas=alphas)
            sizes.append(path.n_selected.tolist())
            models = [(path.coefs, path.ramps)]
        else:
            fitted = [clone(ranker).set_params(**setting).fit(train) for setting in settings]
            sizes.append([len(each.to_model().indices) for each in fitted])
            models = [(each.coef_[None, :], each.ramps_) for each in fitted]
        found = [test.measured(partial(scores_of_models, *m), names, convention) for m in models]
        ids.append(found[0].query_ids)
        ranked = [each.ranked() for each in found]
        values.append({name: np.concatenate([each[name] for each in ranked]) for name in names})
    return CrossValidation(
        ranker=clone(ranker),
        parameters=[dict(each) for each in settings],
        path=None if alphas is None else "alpha",
        fold_means={n: np.array([[mean_of(row) for row in v[n]] for v in values]) for n in names},
        per_query={n: np.concatenate([v[n] for v in values], axis=1) for n in names},
        n_features=np.array(sizes, dtype=np.int64),
        query_ids=np.concatenate(ids),
        n_splits=cv,
        convention=convention,
    )


def cross_validate_ranker(
    ranker: Any,
    X: Any,
    y: Any = None,
    qid: Any = None,
    *,
    grid: Mapping[str, Iterable[Any]] | None = None,
    cv: Any = 5,
    measures: str | Sequence[str] = ("ndcg@10",),
    convention: str = "standard",
    n_jobs: int | None = None,
    **options: Any,
) -> CrossValidation:
    """Cross-validate any ranker over a grid of its parameters, one fit per fold and combination.

    Parameters
    ----------
    ranker : ranker
        Its own parameters hold where the grid names no others. A ranker that could stop early by
        the held-out queries does not see them.
    grid : mapping of str to values, optional
        Parameters to vary; all combinations are tried. None: the ranker as it is.
    X, y, qid, cv, measures, convention, n_jobs, **options
        As for ``cross_validate_path``.

    Returns
    -------
    CrossValidation

    Examples
    --------
    >>> from leanrank import RankBoost, make_ranking
    >>> data = make_ranking(n_queries=60, n_features=20, n_informative=3, random_state=0)
    >>> found = cross_validate_ranker(RankBoost(), data, grid={"n_rounds": [1, 30]}, cv=3)
    >>> found.choose()
    {'n_rounds': 30}
    """
    settings = Space("", {}, {name: tuple(v) for name, v in (grid or {}).items()}).settings()
    if not settings:
        raise InputError("a parameter of the grid has no values: give at least one")
    unknown = sorted(set(grid or {}) - set(ranker.get_params()))
    if unknown:
        raise InputError(f"{type(ranker).__name__} has no parameter {unknown[0]!r}")
    if is_dask(X):
        there = data_on_cluster(ranker, X, y, qid, **options)
        return _on_cluster(ranker, there, cv, settings, None, measures, convention)
    data = ranking_data(ranker, X, y, qid, **options)
    folds = whole_query_folds(data, cv, rows_of=X)
    return _cross_validated(
        ranker, data, folds, settings, Fits(False), None, measures, convention, n_jobs
    )


def _no_path(ranker: Any) -> str:
    return (
        f"{type(ranker).__name__} has no path: use cross_validate_ranker with a grid of its "
        "parameters"
    )


def _strengths(
    ranker: Any,
    data: RankingData | ClusterData,
    alphas: Iterable[float] | None,
    n_alphas: int,
    alpha_min_ratio: float,
) -> tuple[float, ...]:
    """Return the strengths for all folds, largest first."""
    if alphas is not None:
        return tuple(sorted(map(float, alphas), reverse=True))
    top = ranker.alpha_max(data) if hasattr(ranker, "alpha_max") else np.inf
    if top == 0.0:
        raise InputError("no penalised feature enters at any alpha: give the path its alphas")
    if np.isfinite(top):
        return tuple(alpha_grid(top, n_alphas, alpha_min_ratio).tolist())
    first, last = RIDGE_ALPHAS
    return tuple(alpha_grid(first, n_alphas, last / first).tolist())


def _cross_validated(
    ranker: Any,
    data: RankingData,
    folds: Sequence[Fold],
    settings: Sequence[Mapping[str, Any]],
    sweep: Fits | AlphaPath | Sizes,
    along: str | None,
    measures: str | Sequence[str],
    convention: str,
    n_jobs: int | None,
) -> CrossValidation:
    names = [measure.name for measure in parse_measures(measures)]
    judge = Judge(names[0], convention)

    def run(task: tuple[Fold, Mapping[str, Any]]) -> list[tuple[dict[str, Any], Any, int]]:
        """Fit one setting without one fold, and measure its models on that fold."""
        (inside, outside), setting = task
        train, test = data.queries[inside], data.queries[outside]
        found = []
        for model in sweep_models(sweep, clone(ranker).set_params(**setting), train, test):
            values = {name: np.full(test.n_queries, np.nan) for name in names}
            if ranks_something(model.scores, test):
                values = judge.per_query(test, model.scores, names)
            found.append(({**setting, **model.parameters}, values, model.n_features))
        return found

    tasks = [(fold, setting) for fold in folds for setting in settings]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = make_executor(n_jobs).map(run, tasks)
    summarise_warnings(caught, len(tasks))
    # A row is a fold, with the models of all settings; a greedy search may end early in some fold.
    by_fold = [
        [done[f * len(settings) + s] for s in range(len(settings))] for f in range(len(folds))
    ]
    counts = [min(len(models[s]) for models in by_fold) for s in range(len(settings))]
    rows = [
        [model for s, count in enumerate(counts) for model in models[s][:count]]
        for models in by_fold
    ]
    tested = sum(int(test.sum()) for _, test in folds)
    return CrossValidation(
        ranker=clone(ranker),
        parameters=[parameters for parameters, _, _ in rows[0]],
        path=along,
        fold_means={
            name: np.array([[mean_of(values[name]) for _, values, _ in row] for row in rows])
            for name in names
        },
        per_query={name: _by_query(rows, folds, name, data.n_queries) for name in names},
        n_features=np.array([[size for _, _, size in row] for row in rows], dtype=np.int64),
        query_ids=data.query_ids,
        n_splits=min(len(folds), max(1, round(len(folds) * data.n_queries / max(1, tested)))),
        convention=convention,
    )


def _by_query(
    rows: Sequence[Sequence[tuple[Any, Any, Any]]], folds: Sequence[Fold], name: str, n_queries: int
) -> FloatArray:
    """Return a measure of each model on every query, averaged over the folds that tested it."""
    sums, times = np.zeros((len(rows[0]), n_queries)), np.zeros(n_queries)
    for row, (_, test) in zip(rows, folds, strict=True):
        sums[:, test] += np.array([values[name] for _, values, _ in row])
        times[test] += 1
    sums[:, times == 0] = np.nan
    mean: FloatArray = sums / np.maximum(times, 1)
    return mean


def summarise_warnings(caught: Sequence[warnings.WarningMessage], n_fits: int) -> None:
    """Summarise the warnings of many fits."""
    short = [one for one in caught if issubclass(one.category, ConvergenceWarning)]
    if short:
        n_short = min(len(short), n_fits)
        first = f"the first: {short[0].message}"
        warn(f"{n_short} of {n_fits} fits did not converge, {first}", ConvergenceWarning)
    others = [one for one in caught if one not in short]
    for text, category in dict.fromkeys((str(one.message), one.category) for one in others):
        warn(text, category)
