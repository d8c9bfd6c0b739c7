"""Judgments of Quepid, OpenSearch's workbench and TREC, and joining them with logged features."""

from __future__ import annotations

import csv
import os
from array import array
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.formats import FORMATS, load
from leanrank.data.logs import (
    SUFFIXES,
    LoggedDocument,
    Place,
    at,
    feature_log,
    identifier,
    json_records,
    number,
    sources,
)
from leanrank.data.ranking_data import RankingData, counted, feature_name
from leanrank.data.sources import shown_name, text_lines
from leanrank.data.trec import Qrels, load_qrels
from leanrank.errors import InputError, ParseError, check_choice, warn

_EXAMPLES = 3


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
        A path is a feature log of an engine (see ``leanrank.data.logs.feature_log``),
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
    joined = Join(qrels, fill, label)
    is_path = isinstance(features, (str, os.PathLike))
    where = os.fspath(features) if is_path else "the features"
    suffixes = tuple(suffix for known in FORMATS.values() for suffix in known)
    if is_path and where.lower().endswith(suffixes):
        features = load(features)
    if isinstance(features, RankingData):
        if fields:
            raise InputError(f"{min(fields)} is for feature logs: a data set has its own queries")
        X, names = _match_table(features, joined)
    else:
        X, names = _match_log(feature_log(features, **fields) if is_path else features, joined)
    joined.finish(X, names, where)
    return joined


def _shown(pairs: list[tuple[str, str]]) -> str:
    """Return the first of some pairs of a query and a document in words."""
    shown = ", ".join(f"{d[:24]!r} of query {q[:24]!r}" for q, d in pairs[:_EXAMPLES])
    return f"{shown}{', ...' if len(pairs) > _EXAMPLES else ''}"


class Join:
    """Joined data, and an account of everything that is not in it.

    Attributes
    ----------
    data : RankingData
        The documents with both features and a label.
    n_logged, n_judged, n_repeated : int
        Entries of the feature log, judgments, and entries of the log that an entry further down, of
        the same query and document, replaced.
    unjudged, unlogged : list of (str, str)
        Entries of the log without a judgment, and judged documents without features: queries and
        documents.
    filled : dict of str to int
        How many joined documents had no value, by feature; ``fill`` stands in for these.
    """

    data: RankingData

    def __init__(self, qrels: Qrels, fill: float, label: float | None) -> None:
        self.fill, self.label = fill, label
        pairs = zip(qrels.qid.tolist(), qrels.doc_id.tolist(), strict=True)
        self._judged = dict(zip(pairs, qrels.label.tolist(), strict=True))
        self.n_judged = len(self._judged)
        self.n_logged = self.n_matched = self.n_repeated = 0
        self.unjudged: list[tuple[str, str]] = []
        self.unlogged: list[tuple[str, str]] = []
        self.filled: dict[str, int] = {}
        self._rows: dict[tuple[str, str], int] = {}
        self._labels: list[float] = []
        self._queries: set[str] = set()

    def row(self, query: str, document: str) -> int:
        """Return the row of a logged document, −1 if it is left out."""
        self.n_logged += 1
        self._queries.add(query)
        pair = query, document
        if pair in self._rows:
            self.n_repeated += 1
            return self._rows[pair]
        value = self._judged.get(pair, self.label)
        if pair in self._judged:
            self.n_matched += 1
        else:
            self.unjudged.append(pair)
        if value is None:
            return -1
        self._labels.append(value)
        return self._rows.setdefault(pair, len(self._rows))

    def finish(self, X: Any, names: Any, where: str) -> None:
        """Make the data of the matched rows; reject a join without a single match."""
        if not self.n_logged:
            raise InputError(f"{where}: there are no logged documents")
        if not self.n_matched:
            raise InputError(
                f"{where}: no judged document is in the log, which has {_shown(self.unjudged[:1])} "
                f"where the judgments have {_shown(list(self._judged)[:1])}: name the fields of "
                "the right ids (--query-field, --document-field)"
            )
        self.unlogged = [pair for pair in self._judged if pair not in self._rows]
        if isinstance(X, np.ndarray):
            missing = np.isnan(X)
            X = np.where(missing, self.fill, X)
            counts = zip(names, missing.sum(axis=0).tolist(), strict=True)
            self.filled = {name: count for name, count in counts if count}
        qid, ids = (np.array(each, dtype=object) for each in zip(*self._rows, strict=True))
        self.data = RankingData(X, self._labels, qid, doc_ids=ids, feature_names=names)

    def sentences(self) -> list[str]:
        """Return one sentence per kind of thing that did not match, was repeated or was filled."""
        found = []
        judged = {query for query, _ in self._judged}
        if self.unjudged:
            fate = "left out" if self.label is None else f"labelled {self.label:g}"
            queries = counted(len(self._queries - judged), "query", "queries")
            found.append(
                f"of {counted(self.n_logged, 'logged entry', 'logged entries')}, "
                f"{len(self.unjudged):,} without a judgment {fate} ({queries} without any): "
                f"{_shown(self.unjudged)}"
            )
        if self.unlogged:
            queries = counted(len(judged - self._queries), "query", "queries")
            found.append(
                f"of {counted(self.n_judged, 'judgment')}, {len(self.unlogged):,} without "
                f"features left out ({queries} not in the log): {_shown(self.unlogged)}"
            )
        if self.n_repeated:
            found.append(
                f"{counted(self.n_repeated, 'logged entry', 'logged entries')} replaced by a later "
                "one of the same query and document"
            )
        if self.filled:
            most = sorted(self.filled.items(), key=lambda item: (-item[1], item[0]))[:_EXAMPLES]
            named = ", ".join(f"{name[:40]} {count:,}" for name, count in most)
            found.append(
                f"{counted(sum(self.filled.values()), 'missing value')} became {self.fill:g} "
                f"({named}{', ...' if len(self.filled) > len(most) else ''})"
            )
        return found


def _match_table(features: RankingData, joined: Join) -> tuple[Any, Any]:
    if features.doc_ids is None:
        raise InputError(
            "the features have no document ids: a judgment could not find its document"
        )
    kept: dict[int, int] = {}
    pairs = zip(features.qid.tolist(), features.doc_ids.tolist(), strict=True)
    for place, (query, document) in enumerate(pairs):
        kept[joined.row(str(query), str(document))] = place
    kept.pop(-1, None)
    names = features.feature_names or tuple(map(feature_name, range(features.n_features)))
    return features.X[list(kept.values())], names


def _match_log(log: Iterable[LoggedDocument], joined: Join) -> tuple[FloatArray, list[str]]:
    columns: dict[str, int] = {}
    rows: dict[int, array[float]] = {}
    for query, document, features in log:
        row = joined.row(query, document)
        if row < 0:
            continue
        for name in features:
            columns.setdefault(name, len(columns))
        found = map(features.get, columns)
        rows[row] = array("d", (np.nan if value is None else value for value in found))
    X = np.full((len(rows), len(columns)), np.nan)
    for row, values in rows.items():
        X[row, : len(values)] = values
    if not columns and len(X):
        raise InputError("the feature log has no feature: each document has an empty list")
    return X, list(columns)


JUDGMENT_FORMATS = ("quepid", "workbench", "qrels")
_COLUMNS = {
    "query": ("query", "querytext", "queryid", "qid"),
    "document": ("docid", "documentid", "document", "doc"),
    "rating": ("rating", "grade", "label", "judgment", "relevance"),
}


class _Rated(NamedTuple):
    place: Place
    query: str
    document: str
    rating: str | int | float | None


def read_judgments(path: str | os.PathLike[str], *, format: str | None = None) -> Qrels:
    r"""Read judgments.

    Parameters
    ----------
    path : str or path
        A file, also compressed (``.gz``).
    format : {"quepid", "workbench", "qrels"}, optional
        CSV with the columns query, docid and rating, as Quepid exports it; the JSON of OpenSearch's
        search relevance workbench; TREC's ``query iteration document label``. By default the suffix
        decides: ``.csv``; ``.json``, ``.ndjson`` or ``.jsonl``; anything else is qrels.

    Returns
    -------
    Qrels

    Warns
    -----
    DataWarning
        When documents have no rating, which are left out, or are listed again with the same
        rating, which are counted once. Two different ratings are an error.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "ratings.csv")
    ...     _ = file.write_text("query,docid,rating\njazz,d1,3\njazz,d2,0\n")
    ...     read_judgments(file)
    Qrels: 1 query, 2 documents
    """
    if format is None:
        name = os.fspath(path).lower().removesuffix(".gz")
        found = {".csv": "quepid"} | dict.fromkeys(SUFFIXES, "workbench")
        format = next((kind for end, kind in found.items() if name.endswith(end)), "qrels")
    check_choice("format", format, JUDGMENT_FORMATS)
    if format == "qrels":
        qrels = load_qrels(path)
    else:
        qrels = _collect(_quepid(path) if format == "quepid" else _workbench(path))
    if len(qrels.qid) == 0:
        raise InputError(f"{shown_name(path)}: there is no judgment in this file")
    return qrels


def _collect(rated: Iterator[_Rated]) -> Qrels:
    found: dict[tuple[str, str], tuple[float, Place]] = {}
    blank: list[Place] = []
    again: list[Place] = []
    for place, query, document, rating in rated:
        if rating is None or rating == "":
            blank.append(place)
            continue
        value = number(rating, f"rating of document {document[:60]!r}", place)
        before, first = found.setdefault((query, document), (value, place))
        if before != value:
            raise place.fault(
                f"document {document[:60]!r} of query {query[:60]!r} is rated {value:g}, and "
                f"{before:g} in {first.where}: keep one rating"
            )
        if first is not place:
            again.append(place)
    fates = {"without a rating left out": blank, "of a document rated before left out": again}
    for fate, places in fates.items():
        if places:
            count = counted(len(places), "entry", "entries")
            warn(f"{places[0].path}: {count} {fate} (the first: {places[0].where})")
    queries, documents = (np.array([pair[side] for pair in found]) for side in (0, 1))
    return Qrels(queries, documents, np.array([value for value, _ in found.values()]))


def _quepid(path: str | os.PathLike[str]) -> Iterator[_Rated]:
    name = shown_name(path)
    reader = csv.reader((text for _, text in text_lines(path)), strict=True)
    columns: list[int] = []
    try:
        for row in reader:
            place = Place(name, f"line {reader.line_num}")
            if not columns:
                columns = _header(row, place)
            elif len(row) > max(columns):
                query, document, rating = (row[at].strip() for at in columns)
                query = identifier(query, "query", place)
                yield _Rated(place, query, identifier(document, "document", place), rating)
            elif any(cell.strip() for cell in row):
                raise place.fault(f"the line has {len(row)} cells, fewer than the header")
    except csv.Error as error:
        problem = f"this is not CSV ({error})"
        raise ParseError(problem, path=name, line=reader.line_num) from None


def _header(row: list[str], place: Place) -> list[int]:
    names = ["".join(c for c in cell.lower() if c.isalnum()) for cell in row]
    columns = []
    for role, known in _COLUMNS.items():
        found = [names.index(name) for name in known if name in names]
        if not found:
            raise place.fault(
                f"the header has no column for the {role} (one of {', '.join(known)}): Quepid "
                "writes query,docid,rating"
            )
        columns.append(found[0])
    return columns


def _workbench(path: str | os.PathLike[str]) -> Iterator[_Rated]:
    for place, record in sources(json_records(path)):
        listed = record.get("judgmentRatings", record.get("judgments", record))
        for entry in listed if isinstance(listed, list) else [listed]:
            ratings = entry.get("ratings") if isinstance(entry, dict) else None
            if not isinstance(ratings, list):
                raise place.fault(
                    'expected {"judgmentRatings": [{"query": ..., "ratings": [...]}]}, found none'
                )
            query = identifier(entry.get("query"), "query", place)
            for rating in ratings:
                document = identifier(at(rating, "docId"), "docId", place)
                yield _Rated(place, query, document, rating.get("rating"))
