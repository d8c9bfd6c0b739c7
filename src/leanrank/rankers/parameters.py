"""What each parameter of a ranker may be: one table for all rankers, by name.

A parameter means the same wherever it occurs. A class whose own is narrower or wider says so in
``parameter_kinds``; a parameter that only some values of another make use of is in ``used_with``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils import check_random_state

from leanrank._numbers import is_number, is_whole
from leanrank.data.ranking_data import feature_name
from leanrank.errors import InputError, suggest
from leanrank.metrics.conventions import Convention
from leanrank.metrics.measures import Measure


@dataclass(frozen=True)
class Kind:
    """A kind of value: how messages call it, which values are of it, and the words among them."""

    name: str
    includes: Callable[[Any], bool]
    words: tuple[str, ...] = ()

    def __or__(self, other: Kind) -> Kind:
        return Kind(
            f"{self.name} or {other.name}",
            lambda value: self.includes(value) or other.includes(value),
            self.words + other.words,
        )


Kinds: TypeAlias = Mapping[str, Kind]
Uses: TypeAlias = Mapping[str, tuple[str, tuple[str, ...]]]


def number(low: float = 0.0, high: float = math.inf, *, open_low: bool = False) -> Kind:
    """Return the kind of finite numbers in a range."""
    bound = f"{'above' if open_low else 'at least'} {low:g}"
    bound += f" and at most {high:g}" if high < math.inf else ""

    def includes(value: Any) -> bool:
        inside = is_number(value) and math.isfinite(value) and value <= high
        return inside and bool(value > low if open_low else value >= low)

    return Kind(f"a finite number, {bound}", includes)


def whole(low: int = 1) -> Kind:
    """Return the kind of whole numbers from ``low`` on."""
    return Kind(
        f"a whole number, at least {low}", lambda value: is_whole(value) and bool(value >= low)
    )


def words(*known: str) -> Kind:
    """Return the kind of a few words."""
    listed = " or ".join(map(repr, known))
    return Kind(listed, lambda value: isinstance(value, str) and value in known, known)


def instance(name: str, *kinds: type) -> Kind:
    """Return the kind of all values of some types."""
    return Kind(name, lambda value: isinstance(value, kinds))


ANY_NUMBER = Kind("a number", is_number)
POSITIVE, SHARE = number(open_low=True), number(high=1.0)
ANY_WHOLE = Kind("a whole number", is_whole)
SWITCH = instance("True or False", bool, np.bool_)
TEXT = instance("a text", str)
FUNCTION = Kind("a function", callable)
NOTHING = Kind("None", lambda value: value is None)
SEVERAL = Kind(
    "a list", lambda value: np.iterable(value) and not isinstance(value, (str, bytes, Mapping))
)
TABLE = instance("a dict by feature", Mapping)
BY_FEATURE = Kind("one per feature in a list", SEVERAL.includes) | TABLE

_NAMES = (
    (number(), "alpha coef0 epsilon margin_scale mu p power_t rho"),
    (POSITIVE, "C degree min_strength tol"),
    (Kind("a number, at least 0", lambda value: is_number(value) and value >= 0), "ceiling"),
    (number(high=1e150), "radius"),
    (number() | NOTHING, "budget gamma"),
    (POSITIVE | NOTHING, "eta0 lipschitz"),
    (SHARE | NOTHING, "group_ratio l1_ratio"),
    (ANY_NUMBER | NOTHING, "max_cost"),
    (whole(), "epochs max_iter n_labeled n_rounds n_steps n_strengths truncate_every"),
    (whole(0), "n_unlabeled"),
    (whole() | NOTHING, "batch_pairs candidates max_features n_thresholds patience"),
    (ANY_WHOLE | NOTHING, "n_jobs"),
    (whole() | words("auto"), "n_features_to_select n_folds"),
    (whole(0) | words("auto") | NOTHING, "max_pairs"),
    (ANY_WHOLE | TEXT | TABLE | NOTHING, "curves"),
    (whole() | SEVERAL, "views"),
    (SWITCH, "project relative shuffle warm_start"),
    (SWITCH | NOTHING, "average"),
    (SWITCH | ANY_WHOLE, "verbose"),
    (words("range", "paper"), "bound"),
    (words("lqo", "training"), "criterion"),
    (words("pre", "back"), "fitting"),
    (words("linear", "poly", "rbf", "precomputed"), "kernel"),
    (words("total", "per_step"), "l1"),
    (words("optimal", "pegasos", "invscaling", "constant"), "learning_rate"),
    (words("standard", "low"), "memory"),
    (words("query", "term", "none"), "normalize"),
    (words("feature", "uniform"), "rates"),
    (words("progress", "always", "never"), "repeats"),
    (words("best", "1se"), "rule"),
    (words("pairs", "queries"), "sampling"),
    (words("label", "gain", "gains"), "target"),
    (TEXT, "select_by"),
    (TEXT | instance("a Convention", Convention), "convention"),
    (TEXT | instance("a Measure", Measure), "measure"),
    (FUNCTION | NOTHING, "callback"),
    (SEVERAL, "alphas"),
    (SEVERAL | NOTHING, "categories"),
    (TEXT | SEVERAL, "gain"),
    (TEXT | SEVERAL | NOTHING, "importance"),
    (words("scaled") | SEVERAL | NOTHING, "margin"),
    (BY_FEATURE | NOTHING, "costs penalty_factors"),
    (ANY_WHOLE | BY_FEATURE | NOTHING, "monotone signs"),
)
PARAMETERS = {name: kind for kind, names in _NAMES for name in names.split()}


def check_parameters(ranker: Any) -> None:
    """Reject a parameter of the wrong kind, and one that has no effect beside another.

    >>> from leanrank import RankRLS, SparseRank
    >>> check_parameters(RankRLS(alpha=-1))
    Traceback (most recent call last):
    leanrank.errors.InputError: alpha=-1 must be a finite number, at least 0
    >>> check_parameters(SparseRank(lipschitz=2.0))
    Traceback (most recent call last):
    leanrank.errors.InputError: SparseRank: lipschitz has no effect with solver='newton': leave ...
    """
    own = ranker.parameter_kinds
    for name, value in vars(ranker).items():  # scikit-learn's get_params takes ten times as long
        kind = own.get(name) or PARAMETERS.get(name)
        if kind is not None and not kind.includes(value):
            if kind.words and isinstance(value, str):
                raise InputError(f"{name}={value!r} is not known: {suggest(value, kind.words)}")
            raise InputError(f"{name}={value!r} must be {kind.name}")
    for name, (other, users) in ranker.used_with.items():
        value = getattr(ranker, other)
        if not (isinstance(value, str) and value in users):
            reject_unused(ranker, (name,), f"{other}={value!r}")


def reject_unused(ranker: Any, names: Iterable[str], because: str) -> None:
    """Reject parameters that were changed but have no effect.

    >>> from leanrank import SPD
    >>> reject_unused(SPD(C=2.0), ["C"], "loss='hinge'")
    Traceback (most recent call last):
    leanrank.errors.InputError: SPD: C has no effect with loss='hinge': leave it out
    """
    for name in changed(ranker, names):
        raise InputError(
            f"{type(ranker).__name__}: {name} has no effect with {because}: leave it out"
        )


def changed(ranker: Any, names: Iterable[str]) -> list[str]:
    """Return the parameters that differ from their defaults; a system may have fixed some.

    >>> from leanrank import SPD
    >>> changed(SPD(C=2.0), ["C", "loss"])
    ['C']
    """
    usual = _defaults(ranker.__class__)
    given = (name for name in names if name in usual)
    return [name for name in given if repr(getattr(ranker, name)) != usual[name]]


@cache
def _defaults(kind: type) -> dict[str, str]:
    """Return the default of each parameter, as code."""
    return {name: repr(known.default) for name, known in signature(kind).parameters.items()}


def seed_of(random_state: Any) -> int:
    """Draw a seed from a ``random_state``: a number, a RandomState, or None for another each time.

    >>> seed_of(0), seed_of("zero")
    Traceback (most recent call last):
    leanrank.errors.InputError: random_state='zero' must be a whole number from 0 to 2³² − 1, ...
    """
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise InputError(
            f"random_state={random_state!r} must be a whole number from 0 to 2³² − 1, a "
            "RandomState, or None"
        ) from error


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
        known = [feature_name(j, names) for j in range(n_features)]
        if feature not in known:
            raise InputError(f"{of} has the feature {feature!r}: {suggest(feature, known)}")
        return known.index(feature)
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
        try:
            return np.asarray(values, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"{of} holds something that is not a number ({error})") from error
    array = np.full(n_features, rest)
    for feature, value in values.items():
        if not is_number(value):
            raise InputError(f"{of} has {value!r} for the feature {feature!r}: give a number")
        array[feature_number(feature, n_features, names, of)] = value
    return array
