"""Explicit preferences between documents, as ``fit(X, preferences=(i, j, weight))`` takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.losses.base import Edges, Labels


def grouped_edges(preferences: Any, data: RankingData, *, grouped: bool) -> Edges:
    """Check preferences between rows and renumber them in grouped order.

    Parameters
    ----------
    preferences : (i, j) or (i, j, weight)
        Document i should rank above document j of the same query, ``weight`` times.
    data : RankingData
    grouped : bool
        Whether row numbers are those of ``data`` already, and not of what it was made from.
    """
    if not isinstance(preferences, (tuple, list)) or len(preferences) not in (2, 3):
        raise InputError(
            "preferences must be a tuple (i, j) or (i, j, weight) of arrays: document i should "
            "rank above document j"
        )
    winner, loser = (
        _row_numbers(preferences[k], name, len(data)) for k, name in enumerate(("i", "j"))
    )
    if len(winner) != len(loser):
        raise InputError(
            f"preferences has {len(winner)} documents i but {len(loser)} documents j: give one of "
            "each a preference"
        )
    if len(winner) == 0:
        raise InputError("preferences is empty: give at least one pair of documents")
    given = preferences[2] if len(preferences) == 3 else None
    weight = _weights(given, len(winner))
    if grouped or data.order is None:
        rows = winner, loser
    else:
        place = np.empty(len(data), dtype=np.int64)
        place[data.order] = np.arange(len(data))
        rows = place[winner], place[loser]
    query_of = np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))
    same, apart = winner == loser, query_of[rows[0]] != query_of[rows[1]]
    if same.any():
        at = int(np.flatnonzero(same)[0])
        raise InputError(
            f"preference {at} says that document {winner[at]} should rank above itself: leave it "
            "out"
        )
    if apart.any():
        at = int(np.flatnonzero(apart)[0])
        raise InputError(
            f"preference {at} compares the documents {winner[at]} and {loser[at]} of two queries: "
            "documents are ranked within one query"
        )
    if not weight.any():
        raise InputError("every weight in preferences is zero: at least one pair must count")
    return Edges(*rows, weight)


def count_informative(data: RankingData, labels: Labels) -> int:
    """Count the queries with documents at two levels or, if preferences were given, with one."""
    edges = labels.edges
    if edges is None:
        return int(data.informative.sum())
    counted = edges.winner[edges.weight > 0]
    return len(np.unique(np.searchsorted(labels.query_ptr, counted, side="right")))


def _row_numbers(values: Any, name: str, n_rows: int) -> IntArray:
    rows = np.asarray(values)
    if rows.ndim != 1 or (rows.dtype.kind not in "iu" and len(rows)):
        raise InputError(
            f"{name} in preferences must be a list of row numbers, not {rows.ndim}-dimensional "
            f"{rows.dtype}"
        )
    rows = rows.astype(np.int64)
    wrong = (rows < 0) | (rows >= n_rows)
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"preference {at} names document {rows[at]} as {name}, but documents are numbered from "
            f"0 to {n_rows - 1}"
        )
    return rows


def _weights(values: Any, count: int) -> FloatArray:
    if values is None:
        return np.ones(count)
    try:
        weight = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"weight in preferences holds something that is not a number ({error})"
        ) from error
    if weight.shape != (count,):
        raise InputError(
            f"weight in preferences has shape {weight.shape} but there are {count} pairs: give one "
            "weight per pair"
        )
    wrong = ~(np.isfinite(weight) & (weight >= 0))
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"preference {at} has the weight {weight[at]}: it must be finite and not negative"
        )
    return weight
