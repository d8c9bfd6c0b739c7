"""Reading logged scores of an engine, and matching them with documents."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data import RankingData
from leanrank.data.logs import QUERY_FIELDS, Place, at, json_records, number
from leanrank.data.sources import text_lines
from leanrank.errors import InputError, ParseError

_QUERY = ("qid", "query_id", "query")
_DOCUMENT = ("doc_id", "docid", "_id", "id")
_SCORE = ("score", "_score", "relevance")
_RESPONSES = ("hits.hits", "response.docs", "docs", "root.children", "response.hits.hits")


class Logged(NamedTuple):
    """Scores by row of the data, NaN if not logged, and the number without a document."""

    scores: FloatArray
    unmatched: int


def read_logged(path: str | os.PathLike[str], data: RankingData) -> Logged:
    """Return logged scores: CSV with a header, one JSON object per line, or search responses.

    Each record has a ``score`` (or ``_score``). With ``qid`` (``query_id``, ``query``) and
    ``doc_id`` (``docid``, ``_id``, ``id``), and data that have document identifiers, scores are
    matched by them, in any order; otherwise there must be one record per document, in the data's
    order.

    Returns
    -------
    Logged
        One score per row of ``data.X``; NaN is a document without a record.
    """
    name = os.fspath(path)
    rows = _csv(name) if name.endswith(".csv") else _hits(name)
    records = [_record(record, place) for place, record in rows]
    if not records:
        raise InputError(f"{name} holds no scores")
    keyed = all(query is not None and document is not None for query, document, _ in records)
    if keyed and data.doc_ids is not None:
        return _matched(records, data, name)
    if len(records) != len(data):
        raise InputError(
            f"{name} has {len(records):,} scores but the data have {len(data):,} documents: log "
            "one per document in the data's order, or qid and doc_id with each score and document"
        )
    scores = np.array([score for _, _, score in records])
    return Logged(scores if data.order is None else scores[data.order], 0)


def _matched(
    records: list[tuple[str | None, str | None, float]], data: RankingData, name: str
) -> Logged:
    assert data.doc_ids is not None
    known = zip(map(str, data.qid.tolist()), map(str, data.doc_ids), strict=True)
    rows = {key: at for at, key in enumerate(known)}
    scores = np.full(len(data), np.nan)
    unmatched = 0
    for query, document, score in records:
        row = rows.get((str(query), str(document)))
        if row is None:
            unmatched += 1
        elif not math.isnan(scores[row]) and scores[row] != score:
            raise InputError(
                f"{name} has two scores for document {document!r} of query {query!r}: keep one"
            )
        else:
            scores[row] = score
    return Logged(scores, unmatched)


def _hits(name: str) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield records; hits of a search response get the query of the response."""
    for place, record in json_records(name):
        hits = next((at(record, f) for f in _RESPONSES if at(record, f) is not None), [record])
        query = next((at(record, f) for f in QUERY_FIELDS if at(record, f) is not None), None)
        for hit in hits if isinstance(hits, list) else [record]:
            if not isinstance(hit, dict):
                raise place.fault("a hit of the response is not an object")
            document = hit.get("fields", {}) if "relevance" in hit else {}  # of Vespa
            named = {} if _first(hit, _QUERY) is not None or query is None else {"qid": query}
            yield place, {**document, **hit, **named}


def _csv(name: str) -> Iterator[tuple[Place, dict[str, Any]]]:
    reader = csv.DictReader(text for _, text in text_lines(name))
    try:
        if not set(_SCORE) & set(reader.fieldnames or ()):
            raise ParseError("the header has no column 'score'", path=name, line=1)
        for record in reader:
            yield Place(name, f"line {reader.line_num}"), record
    except csv.Error as error:
        line = reader.line_num + 1  # after the last that was read
        raise ParseError(f"this is not CSV ({error})", path=name, line=line) from None


def _record(record: dict[str, Any], place: Place) -> tuple[str | None, str | None, float]:
    score = number(_first(record, _SCORE), "score", place)
    document = _first(record, _DOCUMENT)
    if isinstance(document, str) and document.startswith("id:"):  # of Vespa
        document = document.partition("::")[2] or document
    return _first(record, _QUERY), document, score


def _first(record: dict[str, Any], keys: tuple[str, ...]) -> Any:
    return next((record[key] for key in keys if record.get(key) is not None), None)
