"""Data frames as people have them: labels among the columns, and columns whose values are names.

Each level of a category has a number of its own, and rare ones share one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, FloatArray
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.designs.ramp_columns import sample_step
from leanrank.errors import InputError, warn

RARE = 10
"""Documents below which a level shares its value with the other rare ones."""

MOST_LEVELS = 10_000
"""Levels of one category with a value of their own, the most frequent ones."""

Groups = tuple[tuple[Any, ...], ...]
"""The levels of a category; several in one group share a value."""


def find_levels(values: AnyArray, known: AnyArray) -> tuple[FloatArray, Groups]:
    """Return the code of each value, NaN for those that are not ``known``, and the levels.

    >>> codes, groups = find_levels(np.array(["a"] * 12 + ["b", "c"]), np.ones(14, bool))
    >>> groups, codes[-3:].tolist()
    ((('a',), ('b', 'c')), [0.0, 1.0, 1.0])
    """
    names, inverse, counts = np.unique(values[known], return_inverse=True, return_counts=True)
    frequent = np.zeros(len(names), dtype=bool)
    frequent[np.argsort(-counts, kind="stable")[:MOST_LEVELS]] = True
    frequent &= counts >= min(RARE, int(counts.max(initial=0)))
    code = np.cumsum(frequent) - 1.0
    rare = tuple(names[~frequent].tolist())
    code[~frequent] = frequent.sum()
    codes = np.full(len(values), np.nan)
    codes[known] = code[inverse.ravel()]
    groups = tuple((name,) for name in names[frequent].tolist())
    return codes, (*groups, rare) if rare else groups


def beside_features(X: Any, **given: Any) -> list[str]:
    """Return the columns of a frame that are what was given beside it, by the names of both.

    So ``fit(frame, frame["grade"], qid=frame["query"])`` learns from the other columns.
    """
    found = []
    columns = list(getattr(X, "columns", ()))
    for what, values in given.items():
        name = getattr(values, "name", None)
        if not isinstance(name, str) or name not in columns or name in found:
            continue
        found.append(name)
        if len(values) != len(X) or not np.array_equal(np.asarray(X[name]), np.asarray(values)):
            warn(
                f"column {name!r} is left out of the features, since {what} has the same name: "
                f"rename one of them if it is a feature"
            )
    return found


def without_columns(X: Any, names: Sequence[str]) -> Any:
    """Return a frame of pandas or polars without some columns, where it has them."""
    columns = list(getattr(X, "columns", ()))
    if not any(name in columns for name in names):
        return X
    return X[[name for name in columns if name not in names]]


def warn_of_labels(data: RankingData, names: Sequence[str] | None) -> None:
    """Warn if a feature is the label itself, as in a frame from which it was not taken out."""
    if not isinstance(data.X, np.ndarray) or data.informative.sum() == 0:
        return
    step = sample_step(len(data.y))
    same = (data.X[::step] == data.y[::step, None]).all(axis=0)
    for at in np.flatnonzero(same).tolist():
        if (data.X[:, at] == data.y).all():
            warn(f"feature {feature_name(at, names)!r} is the label itself: leave it out of X")


def read_frame(X: Any) -> tuple[FloatArray, list[str], dict[int, Groups]] | None:
    """Return a frame with columns of texts as a matrix with codes, its names, and the levels.

    None for anything else, which scikit-learn's own checks read.
    """
    if not (hasattr(X, "__arrow_c_stream__") or hasattr(X, "__dataframe__")):
        return None
    try:
        import narwhals.stable.v1 as nw
    except ModuleNotFoundError:
        return None
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    texts = [name for name, kind in frame.schema.items() if _is_text(kind, nw)]
    for name, kind in frame.schema.items():
        if isinstance(kind, (nw.Datetime, nw.Date, nw.Duration)):
            raise InputError(
                f"column {name!r} holds dates: give a number instead, such as the age in days"
            )
    if not texts:
        return None
    matrix = np.empty((len(frame), len(frame.columns)))
    levels: dict[int, Groups] = {}
    for at, name in enumerate(frame.columns):
        column = frame[name]
        if name in texts:
            values = column.cast(nw.String).to_numpy()
            known = ~column.is_null().to_numpy().astype(bool)
            as_text = np.array([str(v) for v in values], dtype=object)
            matrix[:, at], levels[at] = find_levels(as_text.astype(str), known)
        else:
            try:
                matrix[:, at] = column.cast(nw.Float64).to_numpy()
            except Exception as error:
                raise InputError(
                    f"column {name!r} cannot be read as numbers or texts ({type(error).__name__})"
                ) from error
    return matrix, [str(name) for name in frame.columns], levels


def _is_text(kind: Any, nw: Any) -> bool:
    return kind in (nw.String, nw.Categorical, nw.Object) or isinstance(kind, nw.Enum)


def coded_columns(X: FloatArray, columns: Sequence[int]) -> tuple[FloatArray, dict[int, Groups]]:
    """Return X with the values of some columns replaced by codes, and their levels."""
    X, levels = X.copy(), {}
    for at in columns:
        X[:, at], levels[at] = find_levels(X[:, at].copy(), ~np.isnan(X[:, at]))
    return X, levels
