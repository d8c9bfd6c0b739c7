"""Logs of search engines: JSON records with their places, and the feature logs among them.

Elasticsearch and OpenSearch LTR, Solr and Vespa log features.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from leanrank.data.sources import decimal, shown_name, text_lines
from leanrank.errors import FileError, ParseError

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
    """Return what a dotted path leads to, or None.

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
    if not isinstance(value, str) or not value.strip() or not _encodes(value):
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


def timestamp(value: Any, place: Place) -> str:
    """Return a moment as UTC text in ISO 8601, from such text or from milliseconds since 1970.

    Empty where there is none.
    """
    if value is None:
        return ""
    text = str(value).strip()
    try:
        if text.lstrip("-").isdecimal():
            moment = datetime.fromtimestamp(int(text) / 1000, UTC)
        else:
            moment = datetime.fromisoformat(text)
        moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise place.fault(
            f"the timestamp is {brief(value)}: give ISO 8601 or milliseconds since 1970"
        ) from None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def brief(value: Any) -> str:
    """Describe a value in a few words.

    >>> brief(None), brief({}), brief("x")
    ('missing', 'an object', "'x'")
    """
    if isinstance(value, (dict, list)):
        return "a list" if isinstance(value, list) else "an object"
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _encodes(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


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
                if not hits:
                    continue
                query = _query([part, record], query_field, name, place)
                for hit in hits:
                    if not isinstance(hit, dict):
                        raise place.fault("a hit of the response is not an object")
                    document = _document(hit, document_field, place)
                    where = f"document {document[:60]!r}"
                    yield LoggedDocument(
                        query, document, _features(hit, feature_field, where, place)
                    )


def _files(path: str | os.PathLike[str]) -> Iterator[tuple[str, str | None]]:
    """Yield each file, with the query that its name stands for."""
    folder = Path(path)
    if os.fspath(path) == "-" or not folder.is_dir():
        yield os.fspath(path), None
        return
    files = sorted(file for file in folder.iterdir() if file.name.lower().endswith(SUFFIXES))
    if not files:
        raise FileError(f"{folder}: this directory holds no .json, .ndjson or .jsonl file")
    for file in files:
        yield os.fspath(file), file.name.removesuffix(".gz").rpartition(".")[0]


def _hits(part: Any, place: Place) -> list[Any]:
    """Return the hits of a search response, which may be wrapped."""
    body = part
    for _ in range(4):
        if not isinstance(body, dict):
            break
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


def _query(records: list[Any], field: str | None, name: str | None, place: Place) -> str:
    for record in records:
        for candidate in QUERY_FIELDS if field is None else (field,):
            for value in (at(record, candidate), at(record, f"response.{candidate}")):
                if isinstance(value, (str, int)) or (field is not None and value is not None):
                    return identifier(value, f"query ({candidate})", place)
    if name is not None and field is None:
        return name
    looked = ", ".join(QUERY_FIELDS) if field is None else field
    raise place.fault(
        f"the record names no query (looked at {looked}): write it beside the response, or name "
        "its field with query_field (--query-field)"
    )


def _document(hit: Mapping[str, Any], field: str | None, place: Place) -> str:
    for candidate in DOCUMENT_FIELDS if field is None else (field,):
        value = at(hit, candidate)
        if isinstance(value, list) and len(value) == 1:  # Solr and `fields` wrap single values
            value = value[0]
        if value is not None:
            named = identifier(value, f"document ({candidate})", place)
            # Vespa's own ids are id:NAMESPACE:TYPE::DOCUMENT
            return named.partition("::")[2] or named if named.startswith("id:") else named
    looked = ", ".join(DOCUMENT_FIELDS) if field is None else field
    raise place.fault(
        f"a hit names no document (looked at {looked}): name its field with document_field "
        "(--document-field)"
    )


def _features(
    hit: Mapping[str, Any], field: str | None, where: str, place: Place
) -> dict[str, float | None]:
    text = hit.get("[features]" if field is None else field)
    entries = at(hit, "fields._ltrlog")
    matched = at(hit, "fields.matchfeatures")
    if isinstance(matched, Mapping):
        entries = [{"vespa": [{"name": name, "value": value} for name, value in matched.items()]}]
    if text is None and entries is None:
        raise place.fault(
            f"{where} has no features: ask Elasticsearch and OpenSearch for ext.ltr_log, Solr for "
            "fl=[features], Vespa for match-features"
        )
    pairs = _ltr_pairs(entries, where, place) if text is None else _solr_pairs(text, where, place)
    features: dict[str, float | None] = {}
    for name, value in pairs:
        real: float | None = value  # nearly always a number, and a log has millions
        if type(value) is not float or type(name) is not str or not math.isfinite(value):
            name = identifier(name, f"name of a feature of {where}", place)
            what = f"feature {name[:60]!r} of {where}"
            real = None if value is None else number(value, what, place)
        if features.setdefault(name, real) != real:
            raise place.fault(f"{where} has the feature {name[:60]!r} twice, with other values")
    return features


def _solr_pairs(text: Any, where: str, place: Place) -> Iterator[tuple[Any, Any]]:
    if not isinstance(text, str):
        raise place.fault(f"the features of {where} are not text such as bm25=0.25,age=3.0")
    for pair in text.split(",") if text.strip() else []:
        name, equals, value = pair.rpartition("=")
        if not equals:
            raise place.fault(f"{where} has the feature {pair[:60]!r}, which is not name=value")
        yield name.strip(), value


def _ltr_pairs(entries: Any, where: str, place: Place) -> Iterator[tuple[Any, Any]]:
    logs = entries if isinstance(entries, list) else [entries]
    for log in logs:
        for listed in log.values() if isinstance(log, dict) else [None]:
            if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
                raise place.fault(f"the _ltrlog of {where} does not list features by name")
            yield from ((one.get("name"), one.get("value")) for one in listed)
