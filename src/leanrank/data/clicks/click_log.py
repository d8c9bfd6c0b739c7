"""Click logs: the documents that were shown, their positions and their clicks.

A click is a comparison, not a judgment: users prefer the documents that they click to those that
they saw and did not click (``click_preferences``). They see the top of a list more often than the
rest; weights correct for that (``leanrank.data.clicks``).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from leanrank.data.clicks.columns import feature_data, identifiers, read_columns
from leanrank.data.grouping import run_starts
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError


class ClickWeights(NamedTuple):
    """Labels and gain weights from clicks, for ``fit(clicks, weights)``.

    Attributes
    ----------
    y : array
        Clicks per expected examination of each document.
    gain_weight : array
        The clicks of each document, each counted 1/p times, per list of its query.
    """

    y: FloatArray
    gain_weight: FloatArray


@dataclass(frozen=True, repr=False)
class ClickLog:
    """Shown lists and their clicks, joined with the features of the documents.

    Attributes
    ----------
    data : RankingData
        The features of every document that was shown, without labels.
    row : array of int64
        The row in ``data`` of each document shown, list by list from the top down.
    position : array of int64
        The position of each document shown, from 1.
    clicked : array of bool
    list_ptr : array of int64
        List l is ``row[list_ptr[l]:list_ptr[l + 1]]``.
    propensity : array, optional
        The probability of each document at its position, given those above it.
    """

    data: RankingData
    row: IntArray
    position: IntArray
    clicked: BoolArray
    list_ptr: IntArray
    propensity: FloatArray | None = None

    @property
    def X(self) -> Matrix:  # noqa: N802
        """The features of the shown documents, for ``fit``."""
        return self.data.X

    @property
    def qid(self) -> AnyArray:
        """Their queries, for ``fit``."""
        return self.data.qid

    @property
    def n_lists(self) -> int:
        """Number of lists."""
        return len(self.list_ptr) - 1

    @property
    def n_without_clicks(self) -> int:
        """Number of lists without a click, which count in click rates by position."""
        return int((~np.logical_or.reduceat(self.clicked, self.list_ptr[:-1])).sum())

    @property
    def lists_per_query(self) -> IntArray:
        """Number of lists of each query of ``data``: a ``query_weight`` by popularity."""
        query_of_row = np.searchsorted(self.data.query_ptr, self.row, side="right") - 1
        return np.bincount(query_of_row[self.list_ptr[:-1]], minlength=self.data.n_queries)

    def labelled(
        self, y: Any, *, explicit: bool = False, gain_weight: Any = None, **parts: Any
    ) -> tuple[RankingData, Any]:
        """Return the shown documents with labels and weights, and their gain weights, for ``fit``.

        ``y`` is a ClickWeights or one label per document; ``explicit`` preferences replace it.
        Without either, clicks are weighted by propensities that are estimated from the log.
        """
        if y is None and not explicit:
            from leanrank.data.clicks import click_weights, estimate_propensities

            y = click_weights(self, estimate_propensities(self))
        if isinstance(y, ClickWeights):
            if gain_weight is not None:
                raise InputError("ClickWeights include gain_weight: leave it out")
            y, gain_weight = y
        given = {name: value for name, value in parts.items() if value is not None}
        for name in {"qid", "group"} & set(given):
            raise InputError(f"a ClickLog includes {name}: leave {name} out")
        return self.data.replace(y=y, **given), gain_weight

    def __repr__(self) -> str:
        return (
            f"ClickLog: {self.n_lists:,} lists ({self.n_without_clicks:,} without clicks), "
            f"{int(self.clicked.sum()):,} clicks on {len(self.row):,} documents shown; "
            f"{self.data.n_queries:,} queries, {len(self.data):,} distinct documents, "
            f"{self.data.n_features:,} features"
        )


class Preferences(NamedTuple):
    """Preferences between rows: ``winner`` was preferred to ``loser``, ``weight`` times.

    The tuple of three arrays that ``fit(X, preferences=...)`` takes.
    """

    winner: IntArray
    loser: IntArray
    weight: AnyArray


def read_clicks(
    log: Any,
    features: Any = None,
    *,
    session: str = "session",
    query: str = "query",
    document: str = "document",
    position: str = "position",
    clicked: str = "clicked",
    propensity: str | None = None,
    keep_unshown: bool = False,
) -> ClickLog:
    """Read a click log and join it with the features of its documents.

    Parameters
    ----------
    log : mapping of columns, data frame, Arrow table, or path of a .csv, .parquet or .arrow file
        One row per document shown, in any order. A session may hold several queries; one session
        and query is one list.
    features : the same, or a RankingData with doc_ids, or a LETOR file with document ids
        One row per query and document, in columns of the same names as in the log; every other
        column is a feature, except those named label, qid, doc_id, weight, query_weight or offset.
        Identifiers are compared as text. None: the features are the other columns of the log, from
        the first row of each document.
    session, query, document, position, clicked : str
        The names of the columns. Positions count from 1 and may have gaps; clicked is 0 or 1, or a
        truth value.
    propensity : str, optional
        The column of the probability that the serving system shows this document at this position,
        given the documents above it: 1 if it does not randomise. Then
        ``leanrank.online.evaluate_policy`` can estimate the clicks of another ranker.
    keep_unshown : bool, default=False
        Keep the documents of ``features`` that no list shows.

    Returns
    -------
    ClickLog

    Examples
    --------
    >>> log = {
    ...     "session": [1, 1, 1, 2, 2, 2],
    ...     "query": ["jazz"] * 6,
    ...     "document": ["a", "b", "c", "b", "a", "c"],
    ...     "position": [1, 2, 3, 1, 2, 3],
    ...     "clicked": [0, 1, 0, 0, 0, 0],
    ... }
    >>> features = {"query": ["jazz"] * 3, "document": ["a", "b", "c"], "bm25": [1.0, 2.0, 0.5]}
    >>> clicks = read_clicks(log, features)
    >>> clicks
    ClickLog: 2 lists (1 without clicks), 1 clicks on 6 documents shown; 1 queries, 3 distinct
    documents, 1 features
    >>> click_preferences(clicks)
    Preferences(winner=array([1, 1]), loser=array([0, 2]), weight=array([1., 1.]))
    """
    names = {"session": session, "query": query, "document": document}
    names |= {"position": position, "clicked": clicked}
    if propensity is not None:
        names["propensity"] = propensity
    where = os.fspath(log) if isinstance(log, (str, os.PathLike)) else "the click log"
    table = read_columns(log, names, where, only=None if features is None else names.values())
    if not len(table):
        raise InputError(f"{where} has no rows: give at least one list with a click")
    numbers = {
        role: _numbers(table, role, name, where) for role, name in names.items() if role in _CHECKS
    }
    places = numbers["position"] = numbers["position"].astype(np.int64)
    numbers["clicked"] = numbers["clicked"].astype(bool)
    sessions, queries, documents = (
        identifiers(table[name], name, where) for name in (session, query, document)
    )
    if features is None:
        n_documents = int(_codes(documents).max()) + 1
        _, first = np.unique(_codes(queries) * n_documents + _codes(documents), return_index=True)
        features = table.drop_columns([*(set(names.values()) - {query, document})])
        features = features.take(np.sort(first))
    known = feature_data(features, query, document)
    found = _find(queries, documents, known, where)
    query_of_row = np.repeat(np.arange(known.n_queries), np.diff(known.query_ptr))
    list_of = _codes(sessions) * known.n_queries + query_of_row[found]
    in_order = list_of * (int(places.max()) + 1) + places
    for key, what in ((in_order, "position"), (list_of * len(known) + found, "document")):
        if (at := _repeated(key)) is not None:
            first = int(np.flatnonzero(key == key[at])[0])
            raise InputError(
                f"{where} has {what} {table[names[what]][at].as_py()!r} twice in session "
                f"{sessions[at].as_py()} for query {queries[at].as_py()!r} (rows {first} and "
                f"{at}, counted from 0): a list shows one document at each position"
            )
    # sorting by one number, which holds list and position, is twice as fast as by two
    order = np.argsort(in_order, kind="stable")
    list_of, found = list_of[order], found[order]
    numbers = {role: values[order] for role, values in numbers.items()}
    starts = run_starts(list_of)
    data, row = (known, found) if keep_unshown else only_shown(known, found)
    list_ptr = np.append(starts, len(found)).astype(np.int64)
    return ClickLog(data, row, list_ptr=list_ptr, **numbers)


def click_preferences(clicks: ClickLog) -> Preferences:
    """Return the preferences between documents that clicks express (Joachims 2002).

    A clicked document is preferred to each one above it that was not clicked ("skip above"), and to
    the one right below it, if that was not clicked ("skip next").

    Parameters
    ----------
    clicks : ClickLog

    Returns
    -------
    Preferences
        Rows of ``clicks.data``; the weight is how often a preference was expressed. Opposite
        preferences of different users are both listed.

    Examples
    --------
    >>> from leanrank.data import make_clicks, make_ranking
    >>> documents = make_ranking(n_queries=20, docs_per_query=10, random_state=0)
    >>> clicks = make_clicks(documents, n_sessions=500, random_state=0)
    >>> winner, loser, weight = click_preferences(clicks)
    >>> bool(np.all(clicks.qid[winner] == clicks.qid[loser]))
    True
    """
    keys = np.concatenate([_above(clicks), _next(clicks)])
    if len(keys) == 0:
        raise InputError(
            f"the {clicks.n_lists:,} lists of the click log express no preference: no click is "
            "below or right above a document that was not clicked"
        )
    keys, counts = np.unique(keys, return_counts=True)
    winner, loser = np.divmod(keys, len(clicks.data))
    return Preferences(winner, loser, counts.astype(np.float64))


def _above(clicks: ClickLog) -> IntArray:
    """Return each clicked document × documents + each one above it that was not clicked."""
    passed_over = np.flatnonzero(~clicks.clicked)
    before = np.concatenate(([0], np.cumsum(~clicks.clicked)))  # number before each document
    sizes = np.diff(clicks.list_ptr)
    first = np.repeat(before[clicks.list_ptr[:-1]], sizes)[clicks.clicked]
    count = before[:-1][clicks.clicked] - first
    winner = np.repeat(clicks.row[clicks.clicked], count)
    at = np.arange(len(winner)) + np.repeat(first - (np.cumsum(count) - count), count)
    return winner * len(clicks.data) + clicks.row[passed_over[at]]


def _next(clicks: ClickLog) -> IntArray:
    """Return each clicked document × documents + the one right below it, if not clicked."""
    below = np.ones(len(clicks.row), dtype=bool)
    below[clicks.list_ptr[:-1]] = False
    at = np.flatnonzero(clicks.clicked[:-1] & ~clicks.clicked[1:] & below[1:])
    return clicks.row[at] * len(clicks.data) + clicks.row[at + 1]


_CHECKS: dict[str, Any] = {
    "position": lambda values: (values >= 1) & (values <= 1_000_000) & (values % 1 == 0),
    "clicked": lambda values: (values == 0) | (values == 1),
    "propensity": lambda values: (values > 0) & (values <= 1),
}
_REMEDIES = {
    "position": "positions are whole numbers that count from 1 at the top, up to a million",
    "clicked": "give 1 for a document that was clicked and 0 for one that was not",
    "propensity": "a propensity is above 0 and at most 1",
}


def _numbers(table: Any, role: str, name: str, where: str) -> AnyArray:
    """Return a column of numbers; raise an error for the first invalid row."""
    from leanrank.data.tables.arrow import is_number, side_numbers

    if not is_number(table[name].type):
        raise InputError(f"column {name!r} holds something that is not a number")
    values = side_numbers(table[name], name, where)
    wrong = np.flatnonzero(~_CHECKS[role](values))
    if len(wrong):
        place = f"row {wrong[0]} (counted from 0)"
        raise InputError(f"{where} has {role} {values[wrong[0]]:g} in {place}: {_REMEDIES[role]}")
    return values


def _codes(ids: Any) -> IntArray:
    """Number the distinct identifiers in the order of their first appearance."""
    return np.asarray(ids.dictionary_encode().indices).astype(np.int64)


def _repeated(key: IntArray) -> int | None:
    """Return the first row whose key occurs in an earlier row, or None."""
    ordered = np.sort(key)  # much faster than argsort
    if not (ordered[1:] == ordered[:-1]).any():
        return None
    order = np.argsort(key, kind="stable")
    return int(np.delete(order, run_starts(key[order])).min())


def _find(queries: Any, documents: Any, known: RankingData, where: str) -> IntArray:
    """Return the row in ``known`` of each document shown."""
    from leanrank.data.tables import pa, pc

    assert known.doc_ids is not None
    ids = pa.array(map(str, known.doc_ids.tolist()), pa.large_string())
    distinct = ids.unique()
    query_of_row = np.repeat(np.arange(known.n_queries), np.diff(known.query_ptr))
    key = query_of_row * len(distinct) + np.asarray(pc.index_in(ids, distinct))
    if (twice := _repeated(key)) is not None:
        raise InputError(
            f"the features hold document {ids[twice].as_py()} of query {known.qid[twice]!s} twice: "
            "give one row per query and document"
        )
    names = pa.array(map(str, known.query_ids.tolist()), pa.large_string())
    query, document = (
        np.asarray(pc.index_in(each, among).fill_null(-1)).astype(np.int64)
        for each, among in ((queries, names), (documents, distinct))
    )
    wanted = query * len(distinct) + document
    order = np.argsort(key)
    found = order[np.minimum(np.searchsorted(key[order], wanted), len(key) - 1)]
    absent = np.flatnonzero((query < 0) | (document < 0) | (key[found] != wanted))
    if len(absent):
        at = int(absent[0])
        raise InputError(
            f"{where} shows document {documents[at].as_py()!r} for query {queries[at].as_py()!r} "
            f"in row {at} (counted from 0), which has no features: add it to the feature table, or "
            "drop its list from the log"
        )
    return found


def only_shown(known: RankingData, found: IntArray) -> tuple[RankingData, IntArray]:
    """Return the documents that some list shows, and the new rows of those shown."""
    shown = np.zeros(len(known), dtype=bool)
    shown[found] = True
    rows: Any = slice(None) if shown.all() else shown
    assert known.doc_ids is not None
    data = RankingData(
        known.X[rows],
        qid=known.qid[rows],
        doc_ids=known.doc_ids[rows],
        feature_names=known.feature_names,
    )
    return data, (np.cumsum(shown) - 1)[found]
