"""Judging models: every choice in the package follows the rules of this module.

*Sign.* The sign of a measure is changed if lower values are better (``better_sign``).
*Ties.* Measures are averaged over the orders of equal scores, also in conventions that use the
order of the file: in public sets that order follows the labels.
*Empty models.* Scores that are not finite, or equal within every query, give no ranking: such a
model is never chosen.
*Equals.* Among equally good models the one with the fewest features is chosen, then the first.
*One standard error.* A model is as good as the best if its mean falls short by at most one standard
error of the difference between the two over the same queries (in cross-validation, over the folds).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._typing import BoolArray, FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, check_choice
from leanrank.metrics.conventions import Convention, find_convention
from leanrank.metrics.evaluation import evaluate
from leanrank.metrics.measures import Measure

RULES = ("best", "1se")


@dataclass(frozen=True)
class Judge:
    """A measure in a convention, to judge models by.

    Parameters
    ----------
    measure : str or tuple of str
        Measures of ``leanrank.metrics.evaluate``; a choice by several goes by their mean.
    convention : str or Convention, default="standard"
    average_ties : bool, default=True
        False leaves ties in input order if the convention does, for published protocols only.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0]], [0, 1])
    >>> judge = Judge("map", "letor4")
    >>> judge.value(data, [0.0, 1.0]), judge.value(data, [1.0, 1.0])
    (1.0, nan)
    """

    measure: str | tuple[str, ...] = "ndcg@10"
    convention: str | Convention = "standard"
    average_ties: bool = True

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures of a choice."""
        return (self.measure,) if isinstance(self.measure, str) else self.measure

    @property
    def rules(self) -> Convention:
        """The convention, with averaged ties unless ``average_ties`` is False."""
        convention = find_convention(self.convention)
        average = self.average_ties and convention.ties == "input"
        return convention.replace(ties="average") if average else convention

    def per_query(
        self, data: RankingData, scores: Any, measures: Sequence[str] | None = None
    ) -> dict[str, FloatArray]:
        """Return each measure on every query; NaN where it is undefined."""
        chosen = measures or self.measures
        return evaluate(data, scores, measures=chosen, convention=self.rules, n_jobs=1).per_query

    def means(
        self, data: RankingData, scores: Any, measures: Sequence[str] | None = None
    ) -> dict[str, float]:
        """Return the mean of each measure; NaN for scores that rank nothing."""
        if not ranks_something(scores, data):
            return dict.fromkeys(measures or self.measures, float("nan"))
        return {name: mean_of(v) for name, v in self.per_query(data, scores, measures).items()}

    def value(self, data: RankingData, scores: Any) -> float:
        """Return the measure of some scores; NaN if they rank nothing."""
        return float(np.mean(list(self.means(data, scores).values())))

    def worth(self, values: Any) -> FloatArray:
        """Return values of the measure with a sign such that higher is better; −inf for NaN."""
        signs = {better_sign(name) for name in self.measures}
        if len(signs) > 1:
            names = ", ".join(self.measures)
            raise InputError(f"{names}: higher is better for some only: choose by one kind")
        signed = signs.pop() * np.asarray(values, dtype=np.float64)
        return np.where(np.isnan(signed), -np.inf, signed)


def better_sign(measure: str) -> float:
    """Return 1 if a higher value is better, else −1.

    >>> better_sign("map"), better_sign("domination_error")
    (1.0, -1.0)
    """
    return 1.0 if Measure.parse(measure).higher_is_better else -1.0


def mean_of(values: FloatArray) -> float:
    """Return the mean of the defined values; NaN if there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")


def ranks_something(scores: Any, data: RankingData) -> bool:
    """Return whether scores are finite and differ within some query.

    For other scores, a measure can depend on the order of the file.
    """
    values = np.asarray(scores, dtype=np.float64)
    starts = data.query_ptr[:-1][np.diff(data.query_ptr) > 0]
    if not len(starts) or not np.isfinite(values).all():
        return False
    return bool(np.any(np.maximum.reduceat(values, starts) > np.minimum.reduceat(values, starts)))


def best_of(worth: Any, sizes: Any = None) -> int:
    """Return the position of the highest worth: the smallest among equals, then the first.

    >>> best_of([0.5, 0.5, -np.inf], [9, 3, 0])
    1
    """
    worth = np.asarray(worth, dtype=np.float64)
    if not (worth > -np.inf).any():
        raise InputError(
            "no model ranks anything: all weights are zero or not finite; try other parameters, "
            "such as a smaller alpha, or bring the features to one scale"
        )
    top = np.flatnonzero(worth == worth.max())
    return int(top[0] if sizes is None else top[np.argmin(np.asarray(sizes)[top])])


def as_good_as(worth: FloatArray, best: int, n_independent: int | None = None) -> BoolArray:
    """Return which models are worse than the best by at most one standard error.

    Parameters
    ----------
    worth : array of shape (models, units)
        The worth of each model on every query or fold; NaN where undefined.
    best : int
        The position of the best model.
    n_independent : int, optional
        Number of independent units; by default all that are defined.

    Examples
    --------
    >>> as_good_as(np.array([[0.1, 0.3], [0.4, 0.62], [0.45, 0.61]]), 2).tolist()
    [False, True, True]
    """
    gaps = worth[best] - worth
    defined = ~np.isnan(gaps)
    counts = defined.sum(axis=1)
    few = np.maximum(counts, 1)
    means = np.where(defined, gaps, 0.0).sum(axis=1) / few
    squares = (np.where(defined, gaps - means[:, None], 0.0) ** 2).sum(axis=1)
    independent = few if n_independent is None else np.minimum(few, n_independent)
    errors = np.sqrt(squares / np.maximum(few - 1, 1) / independent)
    good: BoolArray = (counts > 1) & (means <= errors)
    good[best] = True
    return good


def check_rule(rule: str) -> None:
    """Reject a rule that does not exist."""
    check_choice("rule", rule, RULES)
