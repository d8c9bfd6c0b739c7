"""What rankers are given, checked: features, numbers, and one weight per document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from inspect import signature
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from leanrank._numbers import check_number as check_number
from leanrank._numbers import check_whole as check_whole
from leanrank._numbers import is_number, is_whole
from leanrank._typing import FloatArray, Matrix
from leanrank.data.dask.collections import refuse_dask
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.data.scaling.spread import spread_of
from leanrank.errors import InputError, suggest, warn
from leanrank.execution import row_blocks


def validated_matrix(estimator: Any, X: Any, *, reset: bool) -> Matrix:
    """Check a feature matrix; with ``reset`` the estimator learns its width and names from it."""
    refuse_dask(X, type(estimator).__name__)
    matrix = validate_data(
        estimator,
        X,
        reset=reset,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        order="C",
        ensure_all_finite=False,
    )
    if not isinstance(matrix, np.ndarray) and not matrix.has_canonical_format:
        matrix = matrix.copy()  # an entry that is stored twice counts as its sum
        matrix.sum_duplicates()
    names = getattr(estimator, "feature_names_in_", None)
    allow_nan = getattr(estimator, "takes_nan", False)
    check_finite(matrix, matrix.shape[1], names, allow_nan=allow_nan)
    return matrix


class NamedFeatures:
    """An estimator that knows the number and the names of its features."""

    n_features_in_: int

    def checked_features(self, X: Any, *, reset: bool = False) -> Matrix:
        """Return features checked against those of ``fit``; with ``reset``, those of a ``fit``."""
        if not isinstance(X, RankingData):
            return validated_matrix(self, X, reset=reset)
        if reset:
            self.take_names(X)
        if X.n_features != self.n_features_in_:
            raise InputError(
                f"X has {X.n_features} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input"
            )
        own = self._names()
        if own is not None and X.feature_names is not None and own != X.feature_names:
            at = next(j for j, name in enumerate(own) if name != X.feature_names[j])
            raise InputError(
                f"column {at} of X is {X.feature_names[at]!r}, but {type(self).__name__} was "
                f"fitted with {own[at]!r} there: give the same columns in the same order"
            )
        allow_nan = getattr(self, "takes_nan", False)
        check_finite(X.X, X.n_features, X.feature_names, allow_nan=allow_nan)
        return X.X

    def take_names(self, data: RankingData) -> None:
        """Set the number and the names of the features, as ``fit`` does."""
        self.n_features_in_ = data.n_features
        if data.feature_names is not None:
            self.feature_names_in_ = np.array(data.feature_names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _names(self) -> tuple[str, ...] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else tuple(map(str, names))


def check_finite(X: Matrix, n_features: int, names: Any = None, *, allow_nan: bool = False) -> None:
    """Reject NaN, unless it is allowed, and infinity with a sentence that names the column."""
    values = X if isinstance(X, np.ndarray) else X.data
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=np.float64)
    if np.isfinite(total):
        return
    flat = values.reshape(-1)
    for low, high in row_blocks(len(flat), 1 << 20):
        part = flat[low:high]
        wrong = np.flatnonzero(np.isinf(part) if allow_nan else ~np.isfinite(part))
        if len(wrong):
            at = low + int(wrong[0])
            break
    else:
        return
    column = at % n_features if isinstance(X, np.ndarray) else int(X.indices[at])
    kind, remedy = "infinity", "correct or drop the infinite values first"
    if np.isnan(flat[at]):
        remedy = "fill in or drop missing values first, or use curves or RankBoost, which take them"
        kind = "NaN"
    named = f"feature {feature_name(column, names)!r} (column {column})"
    raise InputError(f"Input X contains {kind} in {named}: {remedy}")


def warn_of_units(data: Any, *, by_query: bool = False, slow: bool = False) -> None:
    """Warn if features differ so much in spread that a model depends on their units.

    ``by_query`` names a remedy that needs no other part of the data, as for a stream; ``slow`` says
    that the solver takes far longer on such features.
    """
    found = spread_of(data)
    if found is not None:
        scaler, scale = "GlobalStandardScaler", "standard"
        if by_query:
            scaler, scale = "QueryStandardScaler", "query-standard"
        warn(
            f"{found}, so weights depend on the units of features"
            f"{', and this solver needs far more iterations' if slow else ''}: standardise the "
            f"features first, with {scaler} or --scale {scale}"
        )


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


def refuse_idle(ranker: Any, names: Iterable[str], because: str) -> None:
    """Reject parameters that were changed but have no effect.

    >>> from leanrank import SPD
    >>> refuse_idle(SPD(C=2.0), ["C"], "loss='hinge'")
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


def grouped_gains(values: Any, data: RankingData, *, grouped: bool) -> FloatArray | None:
    """Check one gain weight per document, and put them into grouped order unless they are."""
    if values is None:
        return None
    try:
        gains = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"gain_weight holds something that is not a number ({error})") from error
    if gains.shape != (len(data),):
        raise InputError(
            f"gain_weight has shape {gains.shape} but there are {len(data)} documents: give one "
            "weight per document"
        )
    wrong = ~(np.isfinite(gains) & (gains >= 0))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"gain_weight is {gains[row]} in row {row}: it must be finite and not negative"
        )
    return gains if grouped or data.order is None else gains[data.order]
