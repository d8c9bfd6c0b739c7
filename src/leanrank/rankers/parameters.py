"""Constraints of the parameters of rankers, early stopping and progress.

A parameter has the same constraint in all rankers, in the terms of scikit-learn. A class with
another constraint has it in ``_constraints``; parameters that are used only with some values of
another one are in ``_used_with``. Both tables add to those of the base classes.
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


class OneOf(StrOptions):
    """The constraint of a choice among strings; messages list them in alphabetical order."""

    def __str__(self) -> str:
        return f"one of {', '.join(map(repr, sorted(self.options)))}"


def one_of(*allowed: str) -> OneOf:
    """Return the constraint of a choice among strings."""
    return OneOf(set(allowed))


def whole_number(low: int = 1) -> Interval:
    """Return the constraint of whole numbers of at least ``low``."""
    return Interval(Integral, low, None, closed="left")


NUMBER = Interval(Real, 0, None, closed="left")
POSITIVE = Interval(Real, 0, None, closed="neither")
FRACTION = Interval(Real, 0, 1, closed="both")
BOOLEAN = "boolean"
ARRAY = "array-like"

_NAMES: tuple[tuple[list[Any], str], ...] = (
    ([NUMBER], "alpha coef0 margin_scale mu rho"),
    ([POSITIVE], "C degree epsilon tol"),
    ([Interval(Real, 0, 1, closed="neither")], "p"),
    ([Interval(Real, 0, 1, closed="right")], "min_strength"),
    ([Interval(Real, 0, None, closed="both")], "ceiling"),
    ([Interval(Real, 0, 1e150, closed="both")], "radius"),
    ([POSITIVE, None], "eta0 gamma lipschitz"),
    ([FRACTION], "l1_ratio"),
    ([FRACTION, None], "group_ratio"),
    ([Real, None], "max_cost"),
    ([whole_number()], "epochs max_iter n_labeled n_rounds n_steps n_strengths truncate_every"),
    ([whole_number(0)], "n_unlabeled"),
    ([whole_number(), ARRAY], "views"),
    ([whole_number(), None], "candidates max_features n_thresholds patience"),
    ([Integral, None], "n_jobs"),
    ([whole_number(), one_of("auto")], "n_features_to_select n_folds"),
    ([whole_number(0), one_of("auto")], "max_pairs"),
    ([whole_number(0), ARRAY, None], "pairs"),
    ([Integral, str, Mapping, None], "curves"),
    ([BOOLEAN], "relative shuffle warm_start"),
    ([BOOLEAN, None], "average"),
    ([BOOLEAN, Integral], "verbose"),
    ([one_of("range", "paper")], "bound"),
    ([one_of("linear", "poly", "rbf", "precomputed")], "kernel"),
    ([one_of("total", "per_step")], "l1"),
    ([one_of("optimal", "pegasos", "constant")], "learning_rate"),
    ([one_of("standard", "low")], "memory"),
    ([one_of("pre", "back")], "fitting"),
    ([one_of("query", "term", "none")], "normalize"),
    ([one_of("feature", "uniform")], "rates"),
    ([one_of("progress", "always", "never")], "repeats"),
    ([one_of("best", "1se")], "rule"),
    ([str], "select_by"),
    ([one_of("pairs", "queries")], "sampling"),
    ([one_of("label", "gain", "gains")], "target"),
    ([str, Convention], "convention"),
    ([str, Measure], "measure"),
    ([callable, None], "callback"),
    (["random_state"], "random_state"),
    ([ARRAY], "alphas"),
    ([ARRAY, None], "categories"),
    ([str, ARRAY], "gain"),
    ([str, ARRAY, None], "importance"),
    ([one_of("scaled"), None], "margin"),
    ([ARRAY, Mapping, None], "costs penalty_factors"),
    ([Integral, ARRAY, Mapping, None], "monotone signs"),
)
CONSTRAINTS: Constraints = {name: kinds for kinds, names in _NAMES for name in names.split()}


def fixed(value: Any) -> Any:
    """Return the dataclass field of a parameter with a fixed value, which is not an argument."""
    return field(default=value, init=False)


def check_parameters(ranker: Any) -> None:
    """Reject parameters of the wrong kind, and parameters without effect.

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
        for other, allowed in ((bool, BOOLEAN), (Mapping, Mapping)):  # not numbers or lists
            if isinstance(value, other) and allowed not in constraints.get(name, [allowed]):
                raise InputError(f"{name}={value!r} must not be a {other.__name__}")
    try:
        validate_parameter_constraints(constraints, given, kind.__name__)
    except InvalidParameterError as error:
        text = r"The '(\w+)' parameter of \w+ must be (.*)\. Got (.*) instead\."
        message = re.sub(text, r"\1=\3 must be \2", str(error), flags=re.S)
        message = message.replace("an instance of 'collections.abc.Mapping'", "a dict")
        raise InputError(re.sub(r"an instance of '(?:\w+\.)*(\w+)'", r"a \1", message)) from None
    for name, (other, users) in used_with.items():
        value = getattr(ranker, other)
        if value is None if users is None else not (isinstance(value, str) and value in users):
            shown = repr(value) if isinstance(value, str | None) else type(value).__name__
            reject_unused(ranker, (name,), f"{other}={shown}")


def merged(kind: type, table: str) -> dict[str, Any]:
    """Return the entries of a table in a class and its base classes."""
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
    """Return those of some parameters that differ from their defaults; others are ignored.

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
    """Draw a seed from a number or a RandomState; from None, another one on every call.

    >>> seed_of(0)
    209652396
    """
    return int(check_random_state(random_state).randint(2**31 - 1))


def feature_number(feature: Any, n_features: int, names: Any, of: str) -> int:
    """Return the column of a feature that is given by name or by column, counted from 0.

    Without names, the first feature is ``f1``. ``of`` is the parameter, for messages.

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
    """Return values as an array; features that a dict does not contain get ``rest``.

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
    """The parameters of a ranker that learns in rounds or passes and can stop early."""

    _takes_validation: ClassVar[bool] = True

    _: KW_ONLY
    measure: str = "ndcg@10"
    convention: str = "standard"
    patience: int | None = None
    verbose: int = 0
    callback: Callback | None = None


class BestSoFar:
    """The best model of a run by the ranker's measure, and early stopping.

    Parameters
    ----------
    ranker : estimator
        Has ``measure``, ``convention`` and ``patience``, the number of passes or rounds without a
        better model after which to stop.
    held_out : RankingData, optional
        Validation data.

    Attributes
    ----------
    at : int
        The pass or round of the best model; 0 if there is none yet.
    model : object
        The best model; None if there is none yet.

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
        """Record a model, None if it is empty, and its measure; return whether to stop."""
        if np.isnan(value):
            raise InputError(
                f"{self.measure} is not defined on any query of the validation data: give others"
            )
        if model is not None and self.sign * value > self.quality:
            self.quality, self.at, self.model = self.sign * value, at, model
        # with a threshold for the whole run, the model may be empty in the first passes
        return self.patience is not None and self.at > 0 and at - self.at >= self.patience


def record(ranker: Any, entry: dict[str, Any]) -> None:
    """Append an entry to ``history_``, and report it."""
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
