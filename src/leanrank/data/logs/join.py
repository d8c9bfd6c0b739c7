"""Joining features with judgments, and saying what did not match."""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, FloatArray
from leanrank.data.logs.features import LoggedDocument, feature_log
from leanrank.data.logs.judgments import read_judgments
from leanrank.data.ranking_data import RankingData, counted, feature_name
from leanrank.data.trec import Qrels
from leanrank.errors import InputError, warn

_EXAMPLES = 3


@dataclass
class Unmatched:
    """How many (query, document) pairs had no partner, and the first of them."""

    count: int = 0
    examples: list[tuple[str, str]] = field(default_factory=list)

    def add(self, query: str, document: str) -> None:
        """Count a pair."""
        self.count += 1
        if len(self.examples) < _EXAMPLES:
            self.examples.append((query, document))

    def __str__(self) -> str:
        shown = ", ".join(f"{d[:24]!r} of query {q[:24]!r}" for q, d in self.examples)
        return f"{shown}{', ...' if self.count > len(self.examples) else ''}"


@dataclass(frozen=True)
class Join:
    """Joined data, and an account of everything that is not in it.

    Attributes
    ----------
    data : RankingData
        The documents with both features and a label.
    n_logged, n_judged : int
        Entries of the feature log, and judgments.
    unjudged : Unmatched
        Entries of the log without a judgment.
    unlogged : Unmatched
        Judged documents without features.
    n_queries_unlogged, n_queries_unjudged : int
        Queries of which no document was logged, or none was judged.
    n_repeated : int
        Entries of the log that an entry further down, of the same query and document, replaced.
    filled : dict of str to int
        How many joined documents had no value, by feature.
    fill : float
        What stands in for these values.
    label : float or None
        The label that documents without a judgment got; None: they are left out.
    """

    data: RankingData
    n_logged: int
    n_judged: int
    unjudged: Unmatched
    unlogged: Unmatched
    n_queries_unlogged: int
    n_queries_unjudged: int
    n_repeated: int
    filled: dict[str, int]
    fill: float
    label: float | None

    def sentences(self) -> list[str]:
        """Return one sentence per kind of thing that did not match, was repeated or was filled."""
        told = []
        if self.unjudged.count:
            fate = "left out" if self.label is None else f"labelled {self.label:g}"
            queries = counted(self.n_queries_unjudged, "query", "queries")
            told.append(
                f"of {counted(self.n_logged, 'logged entry', 'logged entries')}, "
                f"{self.unjudged.count:,} without a judgment {fate} ({queries} without any): "
                f"{self.unjudged}"
            )
        if self.unlogged.count:
            queries = counted(self.n_queries_unlogged, "query", "queries")
            told.append(
                f"of {counted(self.n_judged, 'judgment')}, {self.unlogged.count:,} without "
                f"features left out ({queries} not in the log): {self.unlogged}"
            )
        if self.n_repeated:
            told.append(
                f"{counted(self.n_repeated, 'logged entry', 'logged entries')} replaced by a later "
                "one of the same query and document"
            )
        if self.filled:
            most = sorted(self.filled.items(), key=lambda item: (-item[1], item[0]))[:_EXAMPLES]
            named = ", ".join(f"{name[:40]} {count:,}" for name, count in most)
            told.append(
                f"{counted(sum(self.filled.values()), 'missing value')} became {self.fill:g} "
                f"({named}{', ...' if len(self.filled) > len(most) else ''})"
            )
        return told


def join_judgments(features: Any, judgments: Any, **options: Any) -> RankingData:
    """Join features with judgments into training data.

    Parameters
    ----------
    features, judgments, **options
        As for ``match_judgments``.

    Returns
    -------
    RankingData
        The documents that have both, with ``doc_ids`` and ``feature_names``.

    Warns
    -----
    DataWarning
        One sentence, with a count and examples, for documents without a judgment, judgments without
        features, repeated entries, and missing values.

    Examples
    --------
    >>> from leanrank.data.trec import Qrels
    >>> features = RankingData([[0.5], [2.0]], qid=["jazz"] * 2, doc_ids=["d1", "d2"])
    >>> join_judgments(features, Qrels(["jazz", "jazz"], ["d2", "d1"], [3, 0])).y.tolist()
    [0.0, 3.0]
    """
    joined = match_judgments(features, judgments, **options)
    for sentence in joined.sentences():
        warn(sentence)
    return joined.data


def match_judgments(
    features: Any, judgments: Any, *, fill: float = 0.0, label: float | None = None, **fields: Any
) -> Join:
    """Join features with judgments and return the account beside the data.

    Parameters
    ----------
    features : path, RankingData with doc_ids, or iterable of LoggedDocument
        A path is a feature log of an engine (see ``leanrank.data.logs.features.feature_log``),
        or a data set in one of leanrank's own formats with document ids. A log is read entry by
        entry, and only documents that are kept take memory: about eight bytes per value.
    judgments : path or Qrels
        As ``leanrank.data.logs.judgments.read_judgments`` reads them.
    fill : float, default=0
        What a missing value becomes; 0 is what the engines compute with. NaN keeps the gap.
    label : float, optional
        The label of logged documents without a judgment; by default they are left out.
    **fields
        ``query_field``, ``document_field`` and ``feature_field``, as for ``feature_log``.

    Returns
    -------
    Join
    """
    qrels = judgments if isinstance(judgments, Qrels) else read_judgments(judgments)
    matcher = _Matcher(qrels, label)
    if isinstance(features, RankingData) or _is_table(features):
        X, names = _match_table(features, matcher, fields)
    else:
        path = isinstance(features, (str, os.PathLike))
        X, names = _match_log(feature_log(features, **fields) if path else features, matcher)
    matcher.check(features)
    X, counts = _filled(X, fill)
    queries, documents = zip(*matcher.rows, strict=True)
    qid: AnyArray = np.empty(len(queries), dtype=object)
    qid[:], doc_ids = queries, np.array(documents, dtype=object)
    return Join(
        data=RankingData(X, matcher.labels, qid, doc_ids=doc_ids, feature_names=names),
        n_logged=matcher.n_logged,
        n_judged=len(qrels.qid),
        unjudged=matcher.unjudged,
        unlogged=matcher.unlogged(),
        n_queries_unlogged=len(matcher.judged.keys() - matcher.queries),
        n_queries_unjudged=len(matcher.queries - matcher.judged.keys()),
        n_repeated=matcher.n_repeated,
        filled={name: int(n) for name, n in zip(names, counts, strict=True) if n},
        fill=fill,
        label=label,
    )


class _Matcher:
    """Which logged documents are kept, in which row, and what is left over on both sides."""

    def __init__(self, qrels: Qrels, label: float | None) -> None:
        self.label = label
        self.judged: dict[str, dict[str, float]] = {}
        rated = zip(qrels.qid.tolist(), qrels.doc_id.tolist(), qrels.label.tolist(), strict=True)
        for query, document, value in rated:
            self.judged.setdefault(query, {})[document] = value
        self.rows: dict[tuple[str, str], int] = {}
        self.labels: list[float] = []
        self.queries: set[str] = set()
        self.unjudged = Unmatched()
        self.n_logged = self.n_matched = self.n_repeated = 0
        self._strays: dict[str, str] = {}  # a logged document that was not judged, by query

    def row(self, query: str, document: str) -> int:
        """Return the row of a logged document, −1 if it is left out."""
        self.n_logged += 1
        self.queries.add(query)
        if (query, document) in self.rows:
            self.n_repeated += 1
            return self.rows[query, document]
        value = self.judged.get(query, {}).get(document)
        if value is None:
            self.unjudged.add(query, document)
            if query in self.judged:
                self._strays.setdefault(query, document)
            if self.label is None:
                return -1
            value = self.label
        else:
            self.n_matched += 1
        self.labels.append(value)
        return self.rows.setdefault((query, document), len(self.rows))

    def unlogged(self) -> Unmatched:
        """Return the judgments that no logged document took."""
        left = Unmatched()
        for query, documents in self.judged.items():
            for document in documents:
                if (query, document) not in self.rows:
                    left.add(query, document)
        return left

    def check(self, features: Any) -> None:
        """Reject a join without a single match, showing both sides."""
        where = os.fspath(features) if isinstance(features, (str, os.PathLike)) else "the features"
        if not self.queries:
            raise InputError(f"{where}: there are no logged documents")
        if self.n_matched:
            return
        if self._strays:
            query, logged = next(iter(self._strays.items()))
            raise InputError(
                f"{where}: no document of the judgments is in the log; query {query[:40]!r} has "
                f"{logged[:40]!r} in the log and {next(iter(self.judged[query]))[:40]!r} among the "
                "judgments: name the field of the right id (--document-field)"
            )
        raise InputError(
            f"{where}: no query of the judgments is in the log, which has {_few(self.queries)} "
            f"where the judgments have {_few(self.judged)}: name the field of the right query "
            "(--query-field)"
        )


def _few(names: Iterable[str]) -> str:
    return ", ".join(f"{name[:30]!r}" for name in sorted(names)[:2])


def _is_table(features: Any) -> bool:
    from leanrank.data.formats import FORMATS

    return isinstance(features, (str, os.PathLike)) and any(
        os.fspath(features).lower().endswith(known) for known in FORMATS.values()
    )


def _match_table(features: Any, matcher: _Matcher, fields: dict[str, Any]) -> tuple[Any, Any]:
    if not isinstance(features, RankingData):
        from leanrank.data.formats import load

        features = load(features)
    if fields:
        raise InputError(f"{min(fields)} is for feature logs: a data set has its own queries")
    if features.doc_ids is None:
        raise InputError(
            "the features have no document ids: a judgment could not find its document"
        )
    kept: list[int] = []
    pairs = zip(features.qid.tolist(), features.doc_ids.tolist(), strict=True)
    for at, (query, document) in enumerate(pairs):
        row = matcher.row(str(query), str(document))
        if row == len(kept):
            kept.append(at)
        elif row >= 0:
            kept[row] = at
    names = features.feature_names or tuple(map(feature_name, range(features.n_features)))
    return features.X[kept], names


def _match_log(log: Iterable[LoggedDocument], matcher: _Matcher) -> tuple[FloatArray, list[str]]:
    columns: dict[str, int] = {}
    rows: list[array[float]] = []
    for query, document, features in log:
        row = matcher.row(query, document)
        if row < 0:
            continue
        for name in features:
            columns.setdefault(name, len(columns))
        found = map(features.get, columns)
        values = array("d", (np.nan if value is None else value for value in found))
        if row == len(rows):
            rows.append(values)
        else:
            rows[row] = values
    X = np.full((len(rows), len(columns)), np.nan)
    for at, values in enumerate(rows):
        X[at, : len(values)] = values
    if not columns and len(X):
        raise InputError("the feature log has no feature: each document has an empty list")
    return X, list(columns)


def _filled(X: Any, fill: float) -> tuple[Any, AnyArray]:
    """Fill what is missing, and count it by feature; sparse data have no missing values."""
    if not isinstance(X, np.ndarray):
        return X, np.zeros(X.shape[1], dtype=np.int64)
    missing = np.isnan(X)
    if missing.any():
        X[missing] = fill
    return X, missing.sum(axis=0)
