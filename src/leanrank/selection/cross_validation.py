"""Cross-validation by query along the regularisation path of a ranker."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.errors import InputError, warn
from leanrank.execution import make_executor
from leanrank.metrics import parse_measures
from leanrank.metrics.judge import as_good_as, best_of, better_sign, check_rule
from leanrank.registry import AlphaPath
from leanrank.selection.candidate import Candidate
from leanrank.selection.engine import Split, fitted, fixed_strengths
from leanrank.selection.folds import Fold, ranking_data, whole_query_folds


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
    choose_by: str | None = None,
    measures: str | Sequence[str] = ("ndcg@10",),
    convention: str = "standard",
    n_jobs: int | None = None,
    **options: Any,
) -> CrossValidation:
    """Cross-validate all models of a ranker's path, in little more time than one of them.

    Parameters
    ----------
    ranker : ranker
        One with a method ``path``.
    X, y, qid : as for fit
        Or a RankingData. Of data on Dask, give a sample in memory.
    cv : int, splitter or iterable of (train, test) rows, default=5
        A number means ``QueryKFold``. Folds must consist of whole queries.
    alphas : iterable of float, optional
        The strengths; by default ``n_alphas`` values, evenly spaced on a logarithmic scale.
    n_alphas : int, default=50
        Number of strengths, from the ``alpha_max`` of all data down. If no alpha gives an empty
        model, they range from 100 to 1e-6.
    alpha_min_ratio : float, default=1e-3
        The smallest strength as a share of ``alpha_max``.
    choose_by : str, optional
        The measure by which models are chosen, such as "loss", which is smooth in the scores; by
        default the first of ``measures``.
    measures : str or sequence of str
        Measures to compute and report.
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
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import DominationRanker
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
    data = ranking_data(ranker, X, y, qid, **options)
    if not (hasattr(ranker, "path") and "alpha" in ranker.get_params()):
        raise InputError(
            f"{type(ranker).__name__} has no path: use scikit-learn's GridSearchCV with QueryKFold "
            "and RankingScorer"
        )
    given = None if alphas is None else tuple(sorted(map(float, alphas), reverse=True))
    sweep = AlphaPath(given, n_alphas, alpha_min_ratio)
    sweep = fixed_strengths(sweep, ranker, Split(data, data))
    first = () if choose_by is None else parse_measures(choose_by)
    names = tuple(each.name for each in parse_measures((*first, *parse_measures(measures))))

    def run(fold: Fold) -> list[Candidate]:
        """Return the models of the path fitted without a fold, with their values on that fold."""
        split = Split(data.queries[fold.train], data.queries[fold.test], names, convention)
        return [
            Candidate.of(type(ranker).__name__, parameters, model, split.values(scores))
            for parameters, model, scores in fitted(sweep, clone(ranker), split)
        ]

    folds = whole_query_folds(data, cv, rows_of=X)
    rows = run_fits(run, folds, n_jobs)
    tested = sum(int(test.sum()) for _, test in folds)
    return CrossValidation(
        ranker=clone(ranker),
        parameters=[dict(one.parameters) for one in rows[0]],
        fold_means={
            name: np.array([[one.means[name] for one in row] for row in rows]) for name in names
        },
        per_query={name: _by_query(rows, folds, name, data.n_queries) for name in names},
        n_features=np.array([[one.n_features for one in row] for row in rows], dtype=np.int64),
        query_ids=data.query_ids,
        n_splits=min(len(folds), max(1, round(len(folds) * data.n_queries / max(1, tested)))),
        convention=convention,
    )


def _by_query(
    rows: Sequence[Sequence[Candidate]], folds: Sequence[Fold], name: str, n_queries: int
) -> FloatArray:
    """Return a measure of each model on every query, the mean over the folds that test it."""
    sums, times = np.zeros((len(rows[0]), n_queries)), np.zeros(n_queries)
    for row, (_, test) in zip(rows, folds, strict=True):
        sums[:, test] += np.array([one.values[name] for one in row])
        times[test] += 1
    sums[:, times == 0] = np.nan
    mean: FloatArray = sums / np.maximum(times, 1)
    return mean


def run_fits(fit: Callable[[Any], Any], tasks: Sequence[Any], n_jobs: int | None) -> list[Any]:
    """Return the results of a fit for each task, in threads, with their warnings summarised."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = make_executor(n_jobs).map(fit, tasks)
    summarise_warnings(caught, len(tasks))
    return done


def summarise_warnings(caught: Sequence[warnings.WarningMessage], n_fits: int) -> None:
    """Issue each distinct warning of many fits once."""
    short = [one for one in caught if issubclass(one.category, ConvergenceWarning)]
    if short:
        n_short = min(len(short), n_fits)
        first = f"the first: {short[0].message}"
        warn(f"{n_short} of {n_fits} fits did not converge, {first}", ConvergenceWarning)
    others = [one for one in caught if one not in short]
    for text, category in dict.fromkeys((str(one.message), one.category) for one in others):
        warn(text, category)


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    """Measures of models with different parameters on queries that they were not fitted to.

    Attributes
    ----------
    ranker : ranker
        Not fitted; ``parameters[k]`` are the parameters of model k.
    parameters : list of dict
        One entry per model, the simplest first.
    fold_means : dict of str to array of shape (folds, models)
        The mean of each measure over the queries of a fold; NaN if it is undefined on all of them,
        or if the scores are not finite.
    per_query : dict of str to array of shape (models, queries)
        Each measure on every query, the mean over repetitions; NaN where it is undefined.
    n_features : array of shape (folds, models)
        Number of features in each model.
    query_ids : array
        The queries of ``per_query``.
    n_splits : int
        Number of folds of one repetition; every query is tested in one of them.
    convention : str
        Ties are averaged over all their orders, whatever the convention, so that no choice depends
        on the order of a file.
    """

    ranker: Any
    parameters: list[dict[str, Any]]
    fold_means: dict[str, FloatArray]
    per_query: dict[str, FloatArray]
    n_features: IntArray
    query_ids: AnyArray
    n_splits: int
    convention: str

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures; models are chosen by the first."""
        return tuple(self.fold_means)

    @cached_property
    def means(self) -> dict[str, FloatArray]:
        """Each measure of each model, the mean over folds where it is defined."""
        return {name: _defined(values).mean(axis=0) for name, values in self.fold_means.items()}

    @cached_property
    def standard_errors(self) -> dict[str, FloatArray]:
        """The standard error of each mean, from the differences between folds.

        Folds of several repetitions have the same queries, so repetitions do not make it smaller.
        """
        out = {}
        for name, values in self.fold_means.items():
            rows = _defined(values)
            n_folds = min(len(rows), self.n_splits)
            out[name] = np.full(values.shape[1], np.nan)
            if n_folds > 1:
                out[name] = rows.std(axis=0, ddof=1) / np.sqrt(n_folds)
        return out

    @property
    def alphas(self) -> FloatArray:
        """The strength of each model."""
        return np.array([each["alpha"] for each in self.parameters])

    def best(self, measure: str | None = None) -> int:
        """Return the position of the model with the best mean, the sparsest among equals.

        A model that is empty in any fold is never the best.
        """
        return best_of(self._worth(measure), self.n_features.mean(axis=0))

    def one_standard_error(self, measure: str | None = None) -> int:
        """Return the position of the simplest model within one standard error of the best.

        The error is that of the difference between the two over the folds.
        """
        name, worth = self._measure(measure), self._worth(measure)
        folds = better_sign(name) * _defined(self.fold_means[name]).T
        good = as_good_as(folds, self.best(measure), self.n_splits)
        return int(np.flatnonzero(good & (worth > -np.inf))[0])

    def choose(self, rule: str = "best", measure: str | None = None) -> dict[str, Any]:
        """Return the parameters of the model chosen by a rule: "best", or "1se"."""
        check_rule(rule)
        at = self.best(measure) if rule == "best" else self.one_standard_error(measure)
        return dict(self.parameters[at])

    @property
    def best_alpha(self) -> float:
        """The strength with the best mean of the first measure."""
        return float(self.alphas[self.best()])

    @property
    def one_standard_error_alpha(self) -> float:
        """The largest strength within one standard error of the best."""
        return float(self.alphas[self.one_standard_error()])

    def refit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        rule: str = "best",
        measure: str | None = None,
        **options: Any,
    ) -> Any:
        """Return a ranker fitted with the chosen parameters; other arguments as for ``fit``."""
        parameters = self.choose(rule, measure)
        return clone(self.ranker).set_params(**parameters).fit(X, y, qid, **options)

    def __repr__(self) -> str:
        name, at = self.measures[0], self.best()
        lines = [
            f"CrossValidation: {type(self.ranker).__name__}, {len(self.parameters)} models, "
            f"{len(self.n_features)} folds, {len(self.query_ids):,} queries"
        ]
        for title, model in (("best", at), ("1 s.e.", self.one_standard_error())):
            lines.append(
                f"  {title:6}  {name} {self.means[name][model]:.4f} "
                f"± {self.standard_errors[name][model]:.4f}, "
                f"{self.n_features[:, model].mean():.1f} features: alpha {self.alphas[model]:.4g}"
            )
        return "\n".join(lines)

    def _measure(self, measure: str | None) -> str:
        name = self.measures[0] if measure is None else measure
        if name not in self.fold_means:
            raise InputError(f"{name!r} was not measured, only {list(self.measures)}")
        return name

    def _worth(self, measure: str | None) -> FloatArray:
        """Return the mean of each model so that more is better; −inf if it cannot be chosen."""
        name = self._measure(measure)
        means = self.means[name]
        usable = np.isfinite(means) & (self.n_features.min(axis=0) > 0)
        if not usable.any():
            raise InputError(
                f"no model ranks anything in every fold by {name}: let the path reach a smaller "
                "alpha, or try other parameters"
            )
        return np.where(usable, better_sign(name) * means, -np.inf)


def _defined(values: FloatArray) -> FloatArray:
    """Return the rows of folds in which a measure is defined for any model."""
    kept = ~np.isnan(values).all(axis=1)
    return values[kept] if kept.any() else values
