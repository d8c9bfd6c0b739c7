"""The result of a cross-validation: measures on unseen queries, and the choice of a model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.errors import InputError
from leanrank.metrics.judge import as_good_as, best_of, better_sign, check_rule


@dataclass(frozen=True, eq=False, repr=False)
class CrossValidation:
    """Measures of models with different parameters, on queries that they were not fitted to.

    Attributes
    ----------
    ranker : ranker
        Not fitted; ``parameters[k]`` is to be set for the model k.
    parameters : list of dict
        One entry per model; along a path the simplest model comes first.
    path : {"alpha", "n_features_to_select"} or None
        The parameter that the path runs along.
    fold_means : dict of str to array of shape (folds, models)
        The mean of each measure over the queries of a fold; NaN if there is none that it is defined
        on, or if the model's scores are not finite.
    per_query : dict of str to array of shape (models, queries)
        Each measure on every query, the mean over the repetitions; NaN where it is undefined.
    n_features : array of shape (folds, models)
        How many features each model uses.
    query_ids : array
        The queries of ``per_query``.
    n_splits : int
        Folds of one repetition, each query being in the test part of one of them.
    convention : str
        Documents of equal scores count as in all their orders on average, whatever the convention
        does with them: a choice must not follow the order of a file.
    """

    ranker: Any
    parameters: list[dict[str, Any]]
    path: str | None
    fold_means: dict[str, FloatArray]
    per_query: dict[str, FloatArray]
    n_features: IntArray
    query_ids: AnyArray
    n_splits: int
    convention: str

    @property
    def measures(self) -> tuple[str, ...]:
        """What was measured; a choice goes by the first by default."""
        return tuple(self.fold_means)

    @cached_property
    def means(self) -> dict[str, FloatArray]:
        """Each measure of each model, the mean over the folds in which it is defined."""
        return {name: _defined(values).mean(axis=0) for name, values in self.fold_means.items()}

    @cached_property
    def standard_errors(self) -> dict[str, FloatArray]:
        """The standard error of each mean, from how much the folds differ.

        Folds of several repetitions share their queries, so repetitions do not make it smaller.
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
        return np.array([self._alpha(at) for at in range(len(self.parameters))])

    def best(self, measure: str | None = None) -> int:
        """Return the position of the model with the best mean, the sparsest among equals.

        A model that is empty in any fold is never preferred.
        """
        return best_of(self._worth(measure), self.n_features.mean(axis=0))

    def one_standard_error(self, measure: str | None = None) -> int:
        """Return the position of the simplest model within one standard error of the best.

        The error is that of the difference between the two over the folds.

        Along a path the simplest is the first; on a grid the one with the fewest features, the
        better among equals.
        """
        name, worth = self._measure(measure), self._worth(measure)
        folds = better_sign(name) * _defined(self.fold_means[name]).T
        good = as_good_as(folds, self.best(measure), self.n_splits)
        near = np.flatnonzero(good & (worth > -np.inf))
        if self.path is not None:
            return int(near[0])
        sizes = self.n_features.mean(axis=0)
        return int(min(near, key=lambda at: (sizes[at], -worth[at])))

    def choose(self, rule: str = "best", measure: str | None = None) -> dict[str, Any]:
        """Return the parameters that a rule prefers: "best", or "1se" for one standard error."""
        check_rule(rule)
        at = self.best(measure) if rule == "best" else self.one_standard_error(measure)
        return dict(self.parameters[at])

    @property
    def best_alpha(self) -> float:
        """The strength with the best mean of the first measure."""
        return self._alpha(self.best())

    @property
    def one_standard_error_alpha(self) -> float:
        """The largest strength within one standard error of the best."""
        return self._alpha(self.one_standard_error())

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
        """Fit a ranker with the chosen parameters; X and what follows as for its ``fit``."""
        parameters = self.choose(rule, measure)
        return clone(self.ranker).set_params(**parameters).fit(X, y, qid, **options)

    def __repr__(self) -> str:
        name, at = self.measures[0], self.best()
        lines = [
            f"CrossValidation: {type(self.ranker).__name__}, {len(self.parameters)} models, "
            f"{len(self.n_features)} folds, {len(self.query_ids):,} queries"
        ]
        for title, model in (("best", at), ("1 s.e.", self.one_standard_error())):
            shown = ", ".join(
                f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}"
                for key, value in self.parameters[model].items()
            )
            lines.append(
                f"  {title:6}  {name} {self.means[name][model]:.4f} "
                f"± {self.standard_errors[name][model]:.4f}, "
                f"{self.n_features[:, model].mean():.1f} features{': ' if shown else ''}{shown}"
            )
        return "\n".join(lines)

    def _alpha(self, at: int) -> float:
        parameters = self.parameters[at]
        if "alpha" not in parameters:
            raise InputError(f"alpha was not varied, only {sorted(parameters)}: see parameters")
        return float(parameters["alpha"])

    def _measure(self, measure: str | None) -> str:
        name = self.measures[0] if measure is None else measure
        if name not in self.fold_means:
            raise InputError(f"{name!r} was not measured, only {list(self.measures)}")
        return name

    def _worth(self, measure: str | None) -> FloatArray:
        """Return what to maximise; −inf for models that cannot be chosen."""
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
    """Return the folds in which a measure is defined for any model."""
    kept = ~np.isnan(values).all(axis=1)
    return values[kept] if kept.any() else values
