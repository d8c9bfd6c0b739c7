"""Constraints of the parameters of rankers, early stopping and progress.

A parameter means the same wherever it occurs, in the terms of scikit-learn's constraints. A class
whose own is narrower or wider says so in ``_constraints``; a parameter that only some
values of another make use of is in ``_used_with``. Both add to those of the classes above.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from functools import cache
from inspect import signature
from numbers import Integral, Real
from typing import Any, ClassVar, TypeAlias

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

from leanrank._numbers import is_number, is_whole
from leanrank._typing import Callback
from leanrank.data.grouping import as_floats
from leanrank.data.ranking_data import feature_name
from leanrank.errors import InputError, suggest
from leanrank.metrics.conventions import Convention, find_convention
from leanrank.metrics.measures import Measure

Constraints: TypeAlias = dict[str, list[Any]]
Uses: TypeAlias = Mapping[str, tuple[str, tuple[str, ...] | None]]


class Words(StrOptions):
    """The constraint of a few words; messages list them in order."""

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, sorted(self.options)))}"


def words(*allowed: str) -> Words:
    """Return the constraint of a few words."""
    return Words(set(allowed))


def whole(low: int = 1) -> Interval:
    """Return the constraint of whole numbers from ``low`` on."""
    return Interval(Integral, low, None, closed="left")


NUMBER = Interval(Real, 0, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
SHARE = Interval(Real, 0, 1, closed="both")
SWITCH = "boolean"
SEVERAL = "array-like"

_NAMES: tuple[tuple[list[Any], str], ...] = (
    ([NUMBER], "alpha coef0 margin_scale mu rho"),
    ([POSITIVE], "C degree epsilon tol"),
    ([Interval(Real, 0, 1, closed="neither")], "p"),
    ([Interval(Real, 0, 1, closed="right")], "min_strength"),
    ([Interval(Real, 0, None, closed="both")], "ceiling"),
    ([Interval(Real, 0, 1e150, closed="both")], "radius"),
    ([POSITIVE, None], "eta0 gamma lipschitz"),
    ([SHARE, None], "group_ratio l1_ratio"),
    ([Real, None], "max_cost"),
    ([whole()], "epochs max_iter n_labeled n_rounds n_steps n_strengths truncate_every"),
    ([whole(0)], "n_unlabeled"),
    ([whole(), SEVERAL], "views"),
    ([whole(), None], "candidates max_features n_thresholds patience"),
    ([Integral, None], "n_jobs"),
    ([whole(), words("auto")], "n_features_to_select n_folds"),
    ([whole(0), words("auto")], "max_pairs"),
    ([whole(0), SEVERAL, None], "pairs"),
    ([Integral, str, Mapping, None], "curves"),
    ([SWITCH], "relative shuffle warm_start"),
    ([SWITCH, None], "average"),
    ([SWITCH, Integral], "verbose"),
    ([words("range", "paper")], "bound"),
    ([words("linear", "poly", "rbf", "precomputed")], "kernel"),
    ([words("total", "per_step")], "l1"),
    ([words("optimal", "pegasos", "constant")], "learning_rate"),
    ([words("standard", "low")], "memory"),
    ([words("pre", "back")], "fitting"),
    ([words("query", "term", "none")], "normalize"),
    ([words("feature", "uniform")], "rates"),
    ([words("progress", "always", "never")], "repeats"),
    ([words("best", "1se")], "rule"),
    ([str], "select_by"),
    ([words("pairs", "queries")], "sampling"),
    ([words("label", "gain", "gains")], "target"),
    ([str, Convention], "convention"),
    ([str, Measure], "measure"),
    ([callable, None], "callback"),
    (["random_state"], "random_state"),
    ([SEVERAL], "alphas"),
    ([SEVERAL, None], "categories"),
    ([str, SEVERAL], "gain"),
    ([str, SEVERAL, None], "importance"),
    ([words("scaled"), None], "margin"),
    ([SEVERAL, Mapping, None], "costs penalty_factors"),
    ([Integral, SEVERAL, Mapping, None], "monotone signs"),
)
CONSTRAINTS: Constraints = {name: kinds for kinds, names in _NAMES for name in names.split()}


def fixed(value: Any) -> Any:
    """Return the field of a parameter that a system fixes."""
    return field(default=value, init=False)


def check_parameters(ranker: Any) -> None:
    """Reject a parameter of the wrong kind, and one that has no effect beside another.

    >>> from leanrank.rankers import RankRLS, SparseRank
    >>> check_parameters(RankRLS(alpha=-1))
    Traceback (most recent call last):
    leanrank.errors.InputError: alpha=-1 must be a float in the range [0.0, inf)
    >>> check_parameters(SparseRank(lipschitz=2.0))
    Traceback (most recent call last):
    leanrank.errors.InputError: SparseRank: lipschitz has no effect with solver='newton': leave ...
    """
    kind, given = type(ranker), vars(ranker)
    constraints, used_with = merged(kind, "_constraints"), merged(kind, "_used_with")
    for name, value in given.items():
        for other, allowed in ((bool, SWITCH), (Mapping, Mapping)):  # not numbers or lists
            if isinstance(value, other) and allowed not in constraints.get(name, [allowed]):
                raise InputError(f"{name}={value!r} must not be a {other.__name__}")
    try:
        validate_parameter_constraints(constraints, given, kind.__name__)
    except InvalidParameterError as error:
        text = r"The '(\w+)' parameter of \w+ must be (.*)\. Got (.*) instead\."
        raise InputError(re.sub(text, r"\1=\3 must be \2", str(error), flags=re.S)) from None
    for name, (other, users) in used_with.items():
        value = getattr(ranker, other)
        if value is None if users is None else not (isinstance(value, str) and value in users):
            shown = repr(value) if isinstance(value, str | None) else type(value).__name__
            reject_unused(ranker, (name,), f"{other}={shown}")


def merged(kind: type, table: str) -> dict[str, Any]:
    """Return the entries of a table of a class and of those above it."""
    out: dict[str, Any] = {}
    for each in reversed(kind.__mro__):
        out |= vars(each).get(table, {})
    return out


def reject_unused(ranker: Any, names: Iterable[str], because: str) -> None:
    """Reject parameters that were changed but have no effect.

    >>> from leanrank.rankers import SPD
    >>> reject_unused(SPD(truncate_every=9), ["truncate_every"], "no ℓ1 penalty")
    Traceback (most recent call last):
    leanrank.errors.InputError: SPD: truncate_every has no effect with no ℓ1 penalty: leave it out
    """
    for name in changed(ranker, names):
        raise InputError(
            f"{type(ranker).__name__}: {name} has no effect with {because}: leave it out"
        )


def changed(ranker: Any, names: Iterable[str]) -> list[str]:
    """Return the parameters that differ from their defaults; a system may have fixed some.

    >>> from leanrank.rankers import SPD
    >>> changed(SPD(average=True), ["average", "loss"])
    ['average']
    """
    usual = _defaults(ranker.__class__)
    given = (name for name in names if name in usual)
    return [name for name in given if repr(getattr(ranker, name)) != usual[name]]


@cache
def _defaults(kind: type) -> dict[str, str]:
    """Return the default of each parameter, as code."""
    return {name: repr(parameter.default) for name, parameter in signature(kind).parameters.items()}


def seed_of(random_state: Any) -> int:
    """Draw a seed from a ``random_state``: a number, a RandomState, or None for another each time.

    >>> seed_of(0)
    209652396
    """
    return int(check_random_state(random_state).randint(2**31 - 1))


def feature_number(feature: Any, n_features: int, names: Any, of: str) -> int:
    """Return the column of a feature that a parameter gives by name, or by column from 0.

    Without names, ``f1`` is the first.

    >>> feature_number("bm25", 2, ["age", "bm25"], "signs"), feature_number("f1", 2, None, "signs")
    (1, 0)
    >>> feature_number("bn25", 2, ["age", "bm25"], "signs")
    Traceback (most recent call last):
    leanrank.errors.InputError: signs has the feature 'bn25': did you mean 'bm25'?
    """
    if isinstance(feature, str):
        columns = [feature_name(j, names) for j in range(n_features)]
        if feature not in columns:
            raise InputError(f"{of} has the feature {feature!r}: {suggest(feature, columns)}")
        return columns.index(feature)
    if not is_whole(feature) or not 0 <= feature < n_features:
        raise InputError(
            f"{of} has the feature {feature!r}: give a name, or a column from 0 to {n_features - 1}"
        )
    return int(feature)


def by_feature(of: str, values: Any, n_features: int, names: Any, rest: float) -> Any:
    """Return values as an array; a dict is by feature, and leaves the others at ``rest``.

    >>> by_feature("signs", {"bm25": 1}, 3, ["age", "bm25", "spam"], 0.0).tolist()
    [0.0, 1.0, 0.0]
    """
    if values is None:
        return None
    if not isinstance(values, Mapping):
        return as_floats(values, of).astype(np.float64, copy=False)
    array = np.full(n_features, rest)
    for feature, value in values.items():
        if not is_number(value):
            raise InputError(f"{of} has {value!r} for the feature {feature!r}: give a number")
        array[feature_number(feature, n_features, names, of)] = value
    return array


@dataclass(eq=False, repr=False)
class Rounds:
    """A ranker that learns in rounds or passes; validation data choose the best one."""

    _takes_validation: ClassVar[bool] = True

    _: KW_ONLY
    measure: str = "ndcg@10"
    convention: str = "standard"
    patience: int | None = None
    verbose: int = 0
    callback: Callback | None = None


class BestSoFar:
    """The best model of a run by the measure of the ranker, and early stopping.

    Parameters
    ----------
    ranker : estimator
        With ``measure``, ``convention`` and ``patience``: passes or rounds without a better model
        after which to stop.
    held_out : RankingData, optional
        Validation data.

    Attributes
    ----------
    at : int
        The pass or round of the best model; 0 while there is none.
    model : object
        The best model; None while there is none.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import SPD
    >>> best = BestSoFar(SPD(patience=2), make_ranking(3, random_state=0))
    >>> [best.update(at, value, at) for at, value in enumerate([0.1, 0.5, 0.4, 0.3], 1)]
    [False, False, False, True]
    >>> best.at, best.model
    (2, 2)
    >>> BestSoFar(SPD(patience=3))
    Traceback (most recent call last):
    leanrank.errors.InputError: SPD: patience has no effect without validation data: ...
    """

    def __init__(self, ranker: Any, held_out: Any = None) -> None:
        from leanrank.metrics.judge import Judge, better_sign

        self.measure, self.patience = ranker.measure, ranker.patience
        self.sign = better_sign(self.measure)
        self.judge = Judge(self.measure, ranker.convention)
        find_convention(ranker.convention)  # reject a misspelt name before the fit
        self.held_out = held_out
        self.quality = -np.inf
        self.at = 0
        self.model: Any = None
        by_training = getattr(ranker, "_stops_by_training", False)
        if self.patience is not None and held_out is None and not by_training:
            name = type(ranker).__name__
            raise InputError(f"{name}: patience has no effect without validation data: omit it")

    def measured(self, scores: Any) -> float:
        """Return the measure of scores of the validation data."""
        from leanrank.metrics.judge import mean_of

        return mean_of(self.judge.per_query(self.held_out, scores)[self.measure])

    def update(self, at: int, value: float, model: Any) -> bool:
        """Record the measure of pass ``at``, None for an empty model; return whether to stop."""
        if np.isnan(value):
            raise InputError(
                f"{self.measure} is not defined on any query of the validation data: give others"
            )
        if model is not None and self.sign * value > self.quality:
            self.quality, self.at, self.model = self.sign * value, at, model
        # a threshold for the whole run may keep the model empty for a while
        return self.patience is not None and self.at > 0 and at - self.at >= self.patience


def record(ranker: Any, entry: dict[str, Any]) -> None:
    """Append an entry to ``history_`` and report it."""
    ranker.history_.append(entry)
    report(ranker, entry)


def report(ranker: Any, entry: dict[str, Any]) -> None:
    """Print an entry if ``verbose``, and call ``callback`` with it."""
    if ranker.verbose:
        texts = (f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in entry.items())
        print(f"[{type(ranker).__name__}] {'  '.join(texts)}", file=sys.stderr)
    callback = getattr(ranker, "callback", None)
    if callback is not None:
        callback(entry)
