"""Logs of search engines as JSON records, and the features in them.

Elasticsearch and OpenSearch LTR, Solr and Vespa log features.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from leanrank.data.sources import decimal, shown_name, text_lines
from leanrank.errors import FileError, ParseError

_HALF = re.compile("[\ud800-\udfff]")  # JSON may hold half of a character, which is no text
SUFFIXES = tuple(f"{s}{packed}" for s in (".json", ".ndjson", ".jsonl") for packed in ("", ".gz"))


class Place(NamedTuple):
    """Where a record stands: a line of a file, or a numbered record of one JSON document."""

    path: str
    where: str

    def fault(self, problem: str) -> ParseError:
        """Return an error about this record."""
        return ParseError(problem, path=f"{self.path}, {self.where}")


def json_records(path: str | os.PathLike[str]) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield the objects of a file.

    A file with one object per line is read line by line. A document that spans several lines is
    read whole; the elements of a list are records of their own.
    """
    name = shown_name(path)
    lines = ((line, text) for line, text in text_lines(path) if text.strip())
    for line, text in lines:
        try:
            value = _parsed(text, name, line)
        except ParseError:
            rest = [text for _, text in lines] if line == 1 else []
            if not rest or text.rstrip().endswith("}"):
                raise
            value = _parsed("\n".join([text, *rest]), name, line)
        if isinstance(value, list) and line == 1:
            for number, one in enumerate(value, start=1):
                yield _checked(one, Place(name, f"record {number}"))
        else:
            yield _checked(value, Place(name, f"line {line}"))


def sources(records: Iterator[tuple[Place, dict[str, Any]]]) -> Iterator[tuple[Place, Any]]:
    """Yield the documents of an index dump: whole, ``_source`` of a hit, or hits of a response."""
    for place, record in records:
        hits = at(record, "hits.hits")
        for hit in hits if isinstance(hits, list) else [record]:
            yield _checked(hit.get("_source", hit) if isinstance(hit, dict) else hit, place)


def at(record: Any, path: str) -> Any:
    """Return the value at a dotted path, or None.

    >>> at({"a": {"b": 3}}, "a.b"), at({"a": 1}, "a.b"), at({"a.b": 2}, "a.b")
    (3, None, 2)
    """
    for key in [path] if isinstance(record, Mapping) and path in record else path.split("."):
        record = record.get(key) if isinstance(record, Mapping) else None
    return record


def identifier(value: Any, what: str, place: Place) -> str:
    """Return an identifier as text; whole numbers are written out."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip() or _HALF.search(value):
        raise place.fault(f"the {what} is {brief(value)}: an identifier is text or a whole number")
    return value


def number(value: Any, what: str, place: Place) -> float:
    """Return a finite number, given as a number or as text."""
    real = math.nan
    if isinstance(value, str):
        real = decimal(value.strip())
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        with suppress(OverflowError):
            real = float(value)
    if not math.isfinite(real):
        raise place.fault(f"the {what} is {brief(value)}, not a finite number")
    return real


def brief(value: Any) -> str:
    """Return a short description of a value.

    >>> brief(None), brief({}), brief("x")
    ('missing', 'an object', "'x'")
    """
    if isinstance(value, (dict, list)):
        return "a list" if isinstance(value, list) else "an object"
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _parsed(text: str, name: str, line: int) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        line += error.lineno - 1
        problem = f"this is not JSON ({error.msg})"
        raise ParseError(problem, path=name, line=line, column=error.colno) from None
    except (ValueError, RecursionError) as error:
        raise ParseError(f"this JSON cannot be used ({error})", path=name, line=line) from None


def _checked(value: Any, place: Place) -> tuple[Place, dict[str, Any]]:
    if not isinstance(value, dict):
        raise place.fault(f"expected a JSON object, found {brief(value)}")
    return place, value


QUERY_FIELDS = ("query", "qid", "query_id", "user_query", "q", "responseHeader.params.q")
"""Where a record names its query, tried in this order."""
DOCUMENT_FIELDS = ("_id", "id", "doc_id", "docid")
"""Where a hit names its document."""


class LoggedDocument(NamedTuple):
    """The features of one document for one query; None is a value that the engine did not have."""

    query: str
    document: str
    features: dict[str, float | None]


def feature_log(
    path: str | os.PathLike[str],
    *,
    query_field: str | None = None,
    document_field: str | None = None,
    feature_field: str | None = None,
) -> Iterator[LoggedDocument]:
    """Yield the documents of a feature log, one by one: a log of any size can be read.

    A record is a search response with the query beside it: of Elasticsearch or OpenSearch with
    ``fields._ltrlog`` in its hits, or of Solr with ``[features]`` in its documents, dense or
    sparse. The response may be the record or stand in its field ``response`` or ``body``; a record
    may also be one hit, or an ``_msearch`` answer whose ``responses`` each name their query.

    Parameters
    ----------
    path : str or path
        One JSON record per line, one JSON document, or a directory of such files; also compressed
        (``.gz``). In a directory, a response that names no query is that of its file's name.
    query_field, document_field : str, optional
        Dotted paths of the query in a record and of the document in a hit. By default the first
        that is there of ``query``, ``qid``, ``query_id``, ``user_query``, ``q`` and
        ``responseHeader.params.q``; of ``_id``, ``id``, ``doc_id`` and ``docid``.
    feature_field : str, optional
        The field of Solr's features if the request renamed ``[features]``.

    Examples
    --------
    >>> import tempfile
    >>> entry = '[{"name": "bm25", "value": 0.5}, {"name": "age"}]'
    >>> hit = '{"_id": "d1", "fields": {"_ltrlog": [{"log": %s}]}}' % entry
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder, "log.ndjson")
    ...     _ = file.write_text('{"query": "jazz", "hits": {"hits": [%s]}}' % hit)
    ...     list(feature_log(file))
    [LoggedDocument(query='jazz', document='d1', features={'bm25': 0.5, 'age': None})]
    """
    for file, name in _files(path):
        for place, record in json_records(file):
            responses = record.get("responses")
            for part in responses if isinstance(responses, list) else [record]:
                hits = _hits(part, place)
                around = [part, record, at(part, "response"), at(record, "response")]
                for hit in hits:
                    query = _named(around, "query", QUERY_FIELDS, query_field, place, name)
                    document = _named([hit], "document", DOCUMENT_FIELDS, document_field, place)
                    if document.startswith("id:"):  # Vespa's own ids: id:NAMESPACE:TYPE::DOCUMENT
                        document = document.partition("::")[2] or document
                    features = _features(hit, feature_field, f"document {document[:60]!r}", place)
                    yield LoggedDocument(query, document, features)


def _files(path: str | os.PathLike[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each file, with the query that its name stands for."""
    folder = Path(path)
    if os.fspath(path) == "-" or not folder.is_dir():
        yield os.fspath(path), None
        return
    for file in log_files(folder):
        yield os.fspath(file), file.name.removesuffix(".gz").rpartition(".")[0]


def log_files(folder: Path, begin: str = "") -> list[Path]:
    """Return the JSON files of a directory whose names begin so."""
    found = [file for file in folder.iterdir() if file.name.lower().startswith(begin)]
    files = sorted(file for file in found if file.name.lower().endswith(SUFFIXES))
    if not files:
        raise FileError(f"{folder}: this directory holds no {begin}*.json, .ndjson or .jsonl file")
    return files


def _hits(part: Any, place: Place) -> list[Any]:
    """Return the hits of a search response, which may be wrapped."""
    body = part
    while isinstance(body, dict):
        for field in ("hits.hits", "docs", "root.children"):
            if isinstance(found := at(body, field), list):
                return found
        if "fields" in body or "[features]" in body:
            return [body]
        body = body.get("response", body.get("body"))
    if isinstance(part, dict) and "error" in part:
        why = at(part, "error.reason") or at(part, "error.msg") or part["error"]
        raise place.fault(f"the engine answered with an error: {str(why)[:120]}")
    raise place.fault("this is no search response: it has neither hits.hits nor response.docs")


def _named(
    records: list[Any],
    what: str,
    known: Sequence[str],
    given: str | None,
    place: Place,
    otherwise: str | None = None,
) -> str:
    """Return the identifier in the first field that is there."""
    fields = known if given is None else (given,)
    for record in records:
        for field in fields:
            value = at(record, field)
            if isinstance(value, list) and len(value) == 1:  # Solr and `fields` wrap single values
                value = value[0]
            if value is not None and not isinstance(value, (dict, list)):
                return identifier(value, f"{what} ({field})", place)
    if otherwise is None or given is not None:
        raise place.fault(
            f"no {what} is named (looked at {', '.join(fields)}): write it beside the response, or "
            f"name its field with {what}_field (--{what}-field)"
        )
    return otherwise


def _features(
    hit: Mapping[str, Any], field: str | None, where: str, place: Place
) -> dict[str, float | None]:
    features: dict[str, float | None] = {}
    try:
        for name, value in _pairs(hit, "[features]" if field is None else field):
            real: float | None = value  # nearly always a number, and a log has millions
            if type(value) is not float or type(name) is not str or not math.isfinite(value):
                name = identifier(name, f"name of a feature of {where}", place)
                what = f"feature {name[:60]!r} of {where}"
                real = None if value is None else number(value, what, place)
            if features.setdefault(name, real) != real:
                raise place.fault(f"{where} has the feature {name[:60]!r} twice, with other values")
    except (TypeError, AttributeError, KeyError) as error:
        raise place.fault(
            f"{where} has no features that can be read ({type(error).__name__}: {error}): ask "
            "Elasticsearch and OpenSearch for ext.ltr_log, Solr for fl=[features], Vespa for "
            "match-features"
        ) from error
    return features


def _pairs(hit: Mapping[str, Any], field: str) -> Iterator[tuple[Any, Any]]:
    """Yield the names and values of a hit; KeyError if it has none."""
    if field in hit:  # of Solr
        for pair in hit[field].split(",") if hit[field] else []:
            name, _, value = pair.rpartition("=")
            yield name.strip(), value
    elif at(hit, "fields.matchfeatures") is not None:  # of Vespa
        yield from hit["fields"]["matchfeatures"].items()
    else:
        logs = hit["fields"]["_ltrlog"]
        for log in logs if isinstance(logs, list) else [logs]:
            for listed in log.values():
                for one in listed:
                    yield one.get("name"), one.get("value")
