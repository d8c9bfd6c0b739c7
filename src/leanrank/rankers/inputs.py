"""What rankers are given, checked: features, numbers, and one weight a document."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import signature
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import validate_data

from leanrank._typing import FloatArray, Matrix
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.errors import InputError


def validated_matrix(estimator: Any, X: Any, *, reset: bool) -> Matrix:
    """Check a feature matrix; with ``reset`` the estimator learns its width and names from it."""
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
    allow_nan = getattr(estimator, "_takes_nan", False)
    check_finite(matrix, matrix.shape[1], names, allow_nan=allow_nan)
    return matrix


def check_finite(X: Matrix, n_features: int, names: Any = None, *, allow_nan: bool = False) -> None:
    """Refuse NaN, unless it is allowed, and infinity with a sentence that names the column."""
    values = X if isinstance(X, np.ndarray) else X.data
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=np.float64)
    if np.isfinite(total):
        return
    wrong = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if not wrong.any():
        return
    at = int(np.flatnonzero(wrong.ravel())[0])
    column = at % n_features if isinstance(X, np.ndarray) else int(X.indices[at])
    kind = "NaN" if np.isnan(values.ravel()[at]) else "infinity"
    named = f"feature {feature_name(column, names)!r} (column {column})"
    raise InputError(
        f"Input X contains {kind} in {named}: fill in or drop the missing and infinite values first"
    )


def check_number(
    name: str, value: Any, *, low: float = 0.0, open_low: bool = False, high: float = np.inf
) -> float:
    """Check a numeric parameter of a ranker.

    >>> check_number("alpha", 0.5)
    0.5
    >>> check_number("alpha", -1)
    Traceback (most recent call last):
    leanrank.errors.InputError: alpha=-1 must be a finite number, at least 0
    """
    number = isinstance(value, (int, float, np.integer, np.floating))
    number = number and not isinstance(value, bool) and bool(np.isfinite(value))
    if not number or not (value > low if open_low else value >= low) or not value <= high:
        bound = f"{'above' if open_low else 'at least'} {low:g}"
        if np.isfinite(high):
            bound += f" and at most {high:g}"
        raise InputError(f"{name}={value!r} must be a finite number, {bound}")
    return float(value)


def check_whole(name: str, value: Any, low: int = 1) -> int:
    """Check a parameter that counts something.

    >>> check_whole("epochs", 0)
    Traceback (most recent call last):
    leanrank.errors.InputError: epochs=0 must be a whole number, at least 1
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < low:
        raise InputError(f"{name}={value!r} must be a whole number, at least {low}")
    return int(value)


def refuse_idle(ranker: Any, names: Iterable[str], because: str) -> None:
    """Refuse parameters that were changed but have no effect.

    >>> from leanrank import SPD
    >>> refuse_idle(SPD(C=2.0), ["C"], "loss='hinge'")
    Traceback (most recent call last):
    leanrank.errors.InputError: SPD: C has no effect with loss='hinge': leave it out
    """
    defaults = signature(type(ranker)).parameters
    for name in names:
        if repr(getattr(ranker, name)) != repr(defaults[name].default):
            raise InputError(
                f"{type(ranker).__name__}: {name} has no effect with {because}: leave it out"
            )


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
    """Check one gain weight a document, and put them into grouped order unless they are."""
    if values is None:
        return None
    try:
        gains = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"gain_weight holds something that is not a number ({error})") from error
    if gains.shape != (len(data),):
        raise InputError(
            f"gain_weight has shape {gains.shape} but there are {len(data)} documents: give one "
            "weight a document"
        )
    wrong = ~(np.isfinite(gains) & (gains >= 0))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"gain_weight is {gains[row]} in row {row}: it must be finite and not negative"
        )
    return gains if grouped or data.order is None else gains[data.order]
