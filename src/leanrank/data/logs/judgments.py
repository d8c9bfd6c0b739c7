"""Judgments: Quepid CSV, the search relevance workbench of OpenSearch, TREC qrels."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from leanrank.data.logs.records import SUFFIXES, Place, identifier, json_records, number, sources
from leanrank.data.ranking_data import counted
from leanrank.data.sources import shown_name, text_lines
from leanrank.data.trec import Qrels, load_qrels
from leanrank.errors import InputError, ParseError, check_choice, warn

FORMATS = ("quepid", "workbench", "qrels")
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
    name = os.fspath(path).lower()
    if format is None:
        packed = name.removesuffix(".gz")
        format = "quepid" if packed.endswith(".csv") else "qrels"
        format = "workbench" if name.endswith(SUFFIXES) else format
    check_choice("format", format, FORMATS)
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
    for places, what in (
        (blank, "without a rating left out"),
        (again, "of a document rated before left out"),
    ):
        if places:
            place = places[0]
            count = counted(len(places), "entry", "entries")
            text = f"{place.path}: {count} {what} (the first: {place.where})"
            warn(text)
    pairs = list(found)
    return Qrels(
        np.array([query for query, _ in pairs], dtype=object),
        np.array([document for _, document in pairs], dtype=object),
        np.array([value for value, _ in found.values()]),
    )


def _quepid(path: str | os.PathLike[str]) -> Iterator[_Rated]:
    name = shown_name(path)
    reader = csv.reader((text for _, text in text_lines(path)), strict=True)
    columns: dict[str, int] | None = None
    try:
        for row in reader:
            if not any(cell.strip() for cell in row):
                continue
            place = Place(name, reader.line_num)
            if columns is None:
                columns = _header(row, place)
                continue
            if len(row) <= max(columns.values()):
                raise place.fault(f"the line has {len(row)} cells, fewer than the header")
            query, document, rating = (row[columns[role]].strip() for role in _COLUMNS)
            yield _Rated(
                place,
                identifier(query, "query", place),
                identifier(document, "document", place),
                rating,
            )
    except csv.Error as error:
        problem = f"this is not CSV ({error})"
        raise ParseError(problem, path=name, line=reader.line_num) from None


def _header(row: list[str], place: Place) -> dict[str, int]:
    names = ["".join(c for c in cell.lower() if c.isalnum()) for cell in row]
    columns = {}
    for role, known in _COLUMNS.items():
        found = [at for name in known for at, cell in enumerate(names) if cell == name]
        if not found:
            raise place.fault(
                f"the header has no column for the {role} (one of {', '.join(known)}): Quepid "
                "writes query,docid,rating"
            )
        columns[role] = found[0]
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
                if not isinstance(rating, dict):
                    raise place.fault(f"a rating of query {query[:60]!r} is not an object")
                document = identifier(rating.get("docId"), "docId", place)
                yield _Rated(place, query, document, rating.get("rating"))
