"""A partition of documents, in the process that holds it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.grouping import one_dimensional
from leanrank.data.matrices import stacked
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError

MOST_LEVELS = 1_024
"""Distinct labels of a partition beyond which they are not collected."""


class Rows(NamedTuple):
    """A partition of documents, grouped by query."""

    data: RankingData
    gain_weight: FloatArray | None


class Facts(NamedTuple):
    """What is known of a partition elsewhere: nothing that grows with its documents."""

    n_rows: int
    n_features: int
    names: tuple[str, ...] | None
    n_queries: int
    n_informative: int
    levels: FloatArray | None
    text_qid: bool
    lowest: Any
    highest: Any


def read_rows(
    at: int, checks: tuple[Any, ...], X: Any, y: Any = None, qid: Any = None, **columns: Any
) -> Rows | InputError:
    """Check one partition and group it by query.

    What is wrong with it is returned, because Dask logs what a task raises.
    """
    try:
        return _rows(checks, X, y, qid, **columns)
    except ValueError as error:
        return InputError(f"partition {at}: {error}")


def _rows(
    checks: tuple[Any, ...], X: Any, y: Any, qid: Any, gain_weight: Any = None, **columns: Any
) -> Rows:
    names, query_weight, check, scores = checks
    if isinstance(X, RankingData):
        data = X
    else:
        own = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
        if names is not None and own is not None and own != names:
            raise InputError(misnamed(own, names))
        matrix = _numbers(X, scores)
        qid = None if qid is None else np.asarray(qid)
        weights = None
        if query_weight is not None:
            ids = np.zeros(1) if qid is None else qid
            weights = {each: query_weight.get(each, 1.0) for each in set(np.ravel(ids).tolist())}
        labels = None if y is None else np.asarray(y)
        data = RankingData(
            matrix, labels, qid, feature_names=own or names, query_weight=weights, **columns
        )
    if check is not None:
        check(data)
    gains = None
    if gain_weight is not None:
        gains = np.asarray(one_dimensional(gain_weight, "gain_weight", len(data)), np.float64)
        if not (np.isfinite(gains) & (gains >= 0)).all():
            raise InputError("gain_weight must be finite and not negative")
        gains = gains if data.order is None else gains[data.order]
    return Rows(data.with_fields(order=None), gains)


def misnamed(own: tuple[str, ...], names: tuple[str, ...]) -> str:
    """Return the message for columns that are not the expected ones."""
    missing = [name for name in names if name not in own]
    if missing:
        return f"the column {missing[0]!r} is missing: give all partitions the same columns"
    at = next(j for j, name in enumerate(own) if j >= len(names) or name != names[j])
    expected = repr(names[at]) if at < len(names) else "no column"
    return f"column {at} is {own[at]!r} where other partitions have {expected}"


def _numbers(X: Any, scores: bool) -> Any:
    """Return a partition of a data frame or an array as a matrix."""
    if scores:
        return np.asarray(X, dtype=np.float64).reshape(-1, 1)
    if getattr(X, "ndim", 2) == 1:
        raise InputError("X has one dimension: give documents × features, such as X[:, None]")
    if not hasattr(X, "dtypes"):
        return X
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if getattr(dtype, "kind", "O") not in "biuf":
            raise InputError(f"the column {name!r} holds {dtype} values: features are numbers")
    if any(not isinstance(dtype, np.dtype) for dtype in X.dtypes):  # those that may be missing
        return X.to_numpy(dtype=np.float64, na_value=np.nan)
    return X.to_numpy()


def facts_of(rows: Rows | InputError) -> Facts | InputError:
    """Return what is known of a partition elsewhere, or what is wrong with it."""
    if isinstance(rows, InputError):
        return rows
    data = rows.data
    levels: FloatArray | None = data.levels
    ids = data.query_ids
    text = ids.dtype.kind not in "biuf"
    found = not text and len(ids) > 0
    return Facts(
        len(data),
        data.n_features,
        data.feature_names,
        data.n_queries,
        int(data.informative.sum()),
        levels if len(data.levels) <= MOST_LEVELS else None,
        text,
        ids.min() if found else None,
        ids.max() if found else None,
    )


def query_sizes(rows: Rows) -> tuple[AnyArray, IntArray]:
    """Return the queries of a partition and their numbers of documents."""
    return rows.data.query_ids, np.diff(rows.data.query_ptr)


def split_rows(rows: Rows, home: IntArray) -> dict[int, Rows]:
    """Cut a partition by where its queries go."""
    query_of = np.repeat(np.arange(rows.data.n_queries), np.diff(rows.data.query_ptr))
    out = {}
    for goal in np.unique(home).tolist():
        chosen = home == goal
        gains = None if rows.gain_weight is None else rows.gain_weight[chosen[query_of]]
        out[goal] = Rows(rows.data.queries[chosen], gains)
    return out


def merge_rows(pieces: list[Rows]) -> Rows:
    """Join pieces in the order of their partitions; the rows of a query come together."""
    parts = [piece.data for piece in pieces]
    first = parts[0]

    def joined(values: list[Any]) -> Any:
        return None if values[0] is None else np.concatenate(values)

    weight = None
    if first.query_weight is not None:
        weight = {
            each: value
            for part in parts
            for each, value in zip(part.query_ids.tolist(), part.query_weight, strict=True)  # type: ignore[arg-type]
        }
    data = RankingData(
        stacked([part.X for part in parts]),
        joined([part.y for part in parts]),
        joined([part.qid for part in parts]),
        feature_names=first.feature_names,
        sample_weight=joined([part.sample_weight for part in parts]),
        query_weight=weight,
        offset=joined([part.offset for part in parts]),
    )
    gains = joined([piece.gain_weight for piece in pieces])
    if gains is not None and data.order is not None:
        gains = gains[data.order]
    return Rows(data.with_fields(order=None), gains)
