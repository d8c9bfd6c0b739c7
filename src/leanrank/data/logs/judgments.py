"""Judgments of Quepid, OpenSearch's workbench and TREC, and joining them with logged features."""

from __future__ import annotations

import csv
import os
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank.data.formats import FORMATS, load
from leanrank.data.logs import (
    SUFFIXES,
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
    for sentence in joined.notes:
        warn(sentence)
    return joined.data


@dataclass(frozen=True)
class Join:
    """Joined data, and counts of what did not match.

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
    notes : list of str
        The same in sentences.
    """

    data: RankingData
    n_logged: int
    n_judged: int
    n_repeated: int
    unjudged: list[tuple[str, str]]
    unlogged: list[tuple[str, str]]
    filled: dict[str, int]
    notes: list[str]


def match_judgments(
    features: Any, judgments: Any, *, fill: float = 0.0, label: float | None = None, **fields: Any
) -> Join:
    """Join features with judgments, and return counts of what did not match as well.

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
    pairs = zip(qrels.qid.tolist(), qrels.doc_id.tolist(), strict=True)
    judged = dict(zip(pairs, qrels.label.tolist(), strict=True))
    is_path = isinstance(features, (str, os.PathLike))
    where = os.fspath(features) if is_path else "the features"
    suffixes = tuple(suffix for known in FORMATS.values() for suffix in known)
    if is_path and where.lower().endswith(suffixes):
        features = load(features)
    elif is_path:
        features = feature_log(features, **fields)
    columns: dict[str, int] = {}
    table = features if isinstance(features, RankingData) else None
    if table is not None and (fields or table.doc_ids is None):
        raise InputError(
            f"{where} are a data set, which needs document ids (doc_ids), and takes no "
            "query_field, document_field or feature_field"
        )
    kept: dict[tuple[str, str], Any] = {}  # the row of a data set, or the values of a log
    n_logged = n_repeated = 0
    unjudged, queries = [], set()
    if table is not None:
        documents: Any = table.doc_ids
        pairs = zip(table.qid.tolist(), documents.tolist(), strict=True)
        features = ((str(query), str(document), row) for row, (query, document) in enumerate(pairs))
    for query, document, found in features:
        n_logged += 1
        queries.add(query)
        pair = query, document
        n_repeated += pair in kept
        if pair not in judged and pair not in kept:
            unjudged.append(pair)
        if pair not in judged and label is None:
            continue
        kept[pair] = found
        if table is None:
            for name in found:
                columns.setdefault(name, len(columns))
            values = map(found.get, columns)
            kept[pair] = array("d", (np.nan if value is None else value for value in values))
    if not n_logged:
        raise InputError(f"{where}: there are no logged documents")
    if judged.keys().isdisjoint(kept):
        raise InputError(
            f"{where}: no judged document is in the log, which has {_shown(unjudged[:1])} where "
            f"the judgments have {_shown(list(judged)[:1])}: name the fields of the right ids "
            "(--query-field, --document-field)"
        )
    if table is not None:
        X: Any = table.X[list(kept.values())]
        names = table.feature_names or tuple(map(feature_name, range(table.n_features)))
    else:
        names = tuple(columns)
        if not names:
            raise InputError("the feature log has no feature: each document has an empty list")
        X = np.full((len(kept), len(names)), np.nan)
        for row, values in enumerate(kept.values()):
            X[row, : len(values)] = values
    filled: dict[str, int] = {}
    if isinstance(X, np.ndarray):
        missing = np.isnan(X)
        X = np.where(missing, fill, X)
        counts = zip(names, missing.sum(axis=0).tolist(), strict=True)
        filled = {name: count for name, count in counts if count}
    labels = [judged.get(pair, label) for pair in kept]
    qid, ids = (np.array(each, dtype=object) for each in zip(*kept, strict=True))
    data = RankingData(X, labels, qid, doc_ids=ids, feature_names=names)
    unlogged = [pair for pair in judged if pair not in kept]

    join = Join(data, n_logged, len(judged), n_repeated, unjudged, unlogged, filled, [])
    join.notes.extend(_notes(join, queries, {query for query, _ in judged}, fill, label))
    return join


def _notes(
    join: Join, logged: set[str], judged: set[str], fill: float, label: float | None
) -> Iterator[str]:
    """Yield a sentence for entries that did not match, were repeated or were filled.

    ``logged`` and ``judged`` are the queries.
    """
    entries = "logged entry", "logged entries"
    if join.unjudged:
        fate = "left out" if label is None else f"labelled {label:g}"
        others = counted(len(logged - judged), "query", "queries")
        yield (
            f"of {counted(join.n_logged, *entries)}, {len(join.unjudged):,} without a judgment "
            f"{fate} ({others} without any): {_shown(join.unjudged)}"
        )
    if join.unlogged:
        others = counted(len(judged - logged), "query", "queries")
        yield (
            f"of {counted(join.n_judged, 'judgment')}, {len(join.unlogged):,} without features "
            f"left out ({others} not in the log): {_shown(join.unlogged)}"
        )
    if join.n_repeated:
        again = counted(join.n_repeated, *entries)
        yield f"{again} replaced by a later one of the same query and document"
    if join.filled:
        most = sorted(join.filled.items(), key=lambda item: (-item[1], item[0]))[:_EXAMPLES]
        named = ", ".join(f"{name[:40]} {count:,}" for name, count in most)
        yield (
            f"{counted(sum(join.filled.values()), 'missing value')} became {fill:g} "
            f"({named}{', ...' if len(join.filled) > len(most) else ''})"
        )


def _shown(pairs: list[tuple[str, str]]) -> str:
    """Return the first pairs of a query and a document as text."""
    shown = ", ".join(f"{d[:24]!r} of query {q[:24]!r}" for q, d in pairs[:_EXAMPLES])
    return f"{shown}{', ...' if len(pairs) > _EXAMPLES else ''}"


JUDGMENT_FORMATS = ("quepid", "workbench", "qrels")
_COLUMNS = {
    "query": ("query", "querytext", "queryid", "qid"),
    "document": ("docid", "documentid", "document", "doc"),
    "rating": ("rating", "grade", "label", "judgment", "relevance"),
    "judge": ("judge", "rater", "user", "annotator", "assessor", "judgename"),
}


_Rated = tuple[Place, str, str, str, "str | int | float | None"]
"""A record, its query, document, judge and rating."""


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
        qrels = _collect(rated_cells(path) if format == "quepid" else _workbench(path))
    if len(qrels.qid) == 0:
        raise InputError(f"{shown_name(path)}: there is no judgment in this file")
    return qrels


def _collect(rated: Iterator[_Rated]) -> Qrels:
    found: dict[tuple[str, str], tuple[float, Place]] = {}
    left: dict[str, list[Place]] = {"without a rating": [], "of a document rated before": []}
    blank, again = left.values()
    for place, query, document, _, rating in rated:
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
    for which, places in left.items():
        if places:
            entries = f"{counted(len(places), 'entry', 'entries')} {which}"
            warn(f"{places[0].path}: {entries} left out (the first: {places[0].where})")
    queries, documents = (np.array([pair[side] for pair in found]) for side in (0, 1))
    return Qrels(queries, documents, np.array([value for value, _ in found.values()]))


def rated_cells(
    path: str | os.PathLike[str], *, judges: bool = False
) -> Iterator[tuple[Place, str, str, str, str]]:
    """Yield the ratings of a CSV file: where each stands, query, document, judge, and rating.

    With ``judges``, a file has either columns for both judge and rating, or one column per judge.
    """
    name = shown_name(path)
    reader = csv.reader((text for _, text in text_lines(path)), strict=True)
    try:
        header = next(reader, [])
        if reader.line_num == 0:
            return
        plain = ["".join(filter(str.isalnum, cell.lower())) for cell in header]
        found = {
            role: next((plain.index(one) for one in known if one in plain), -1)
            for role, known in _COLUMNS.items()
        }
        query_at, document_at, rating_at, judge_at = found.values()
        alone = judges and max(rating_at, judge_at) < 0
        wanted = "query,docid,rating" + ",judge, or query,docid and a column per judge" * judges
        for role in [*found][: 2 if alone else 3 + judges]:
            if found[role] < 0:
                known = ", ".join(_COLUMNS[role])
                raise Place(name, "line 1").fault(
                    f"the header has no column for the {role} (one of {known}): write {wanted}"
                )
        ratings = [rating_at]
        if alone:
            ratings = [at for at in range(len(header)) if at not in (query_at, document_at)]
        for cells in reader:
            place = Place(name, f"line {reader.line_num}")
            if not any(cells):
                continue
            if (n := len(cells)) != len(header):
                than = f"{'fewer' if n < len(header) else 'more'} cells than it should"
                raise place.fault(f"the line has {than}: {n} cells, and the header {len(header)}")
            # Quepid puts a blank before a query that a spreadsheet could take for a formula
            query = identifier(cells[query_at].strip(), "query", place)
            document = identifier(cells[document_at].strip(), "document", place)
            for at in ratings:
                judge = header[at] if alone else cells[judge_at]
                yield place, query, document, judge.strip(), cells[at].strip()
    except csv.Error as error:
        problem = f"this is not CSV ({error})"
        raise ParseError(problem, path=name, line=reader.line_num) from None


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
                yield place, query, document, "", rating.get("rating")
