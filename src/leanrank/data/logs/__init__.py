"""JSON records, one per line or inside a whole document, with the place of each for messages."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, NoReturn

from leanrank.data.sources import decimal, shown_name, text_lines
from leanrank.errors import ParseError

SUFFIXES = tuple(f"{s}{packed}" for s in (".json", ".ndjson", ".jsonl") for packed in ("", ".gz"))


class Place(NamedTuple):
    """Where a record stands: a line of a file, or a numbered record of one JSON document."""

    path: str
    line: int | None = None
    record: int | None = None

    @property
    def where(self) -> str:
        """The place within its file."""
        return f"line {self.line}" if self.line else f"record {self.record}"

    def fault(self, problem: str) -> ParseError:
        """Return an error about this record."""
        path = self.path if self.record is None else f"{self.path}, record {self.record}"
        return ParseError(problem, path=path, line=self.line)


def json_records(path: str | os.PathLike[str]) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Yield the objects of a file.

    A file with one object per line is read line by line. A document that spans several lines is
    read whole; the elements of a list, and documents that follow each other, are records of their
    own.
    """
    name = shown_name(path)
    lines = ((line, text) for line, text in text_lines(path) if text.strip())
    for line, text in lines:
        try:
            value = json.loads(text, parse_constant=_refuse_constant)
        except (ValueError, RecursionError) as error:
            cut = isinstance(error, json.JSONDecodeError) and error.pos >= len(text.rstrip())
            if not cut or line > 1:
                raise _bad_json(error, name, line) from None
            yield from _document(name, [text, *(text for _, text in lines)])
            return
        if isinstance(value, list) and line == 1:
            yield from _objects(value, name)
        else:
            yield _checked(value, Place(name, line))


def sources(records: Iterator[tuple[Place, dict[str, Any]]]) -> Iterator[tuple[Place, Any]]:
    """Yield the documents of an index dump: whole, ``_source`` of a hit, or hits of a response."""
    for place, record in records:
        hits = at(record, "hits.hits")
        for hit in hits if isinstance(hits, list) else [record]:
            found = hit.get("_source", hit) if isinstance(hit, dict) else hit
            yield _checked(found, place)


def at(record: Any, path: str) -> Any:
    """Return what a dotted path leads to, or None.

    >>> at({"a": {"b": 3}}, "a.b"), at({"a": 1}, "a.b"), at({"a.b": 2}, "a.b")
    (3, None, 2)
    """
    if isinstance(record, Mapping) and path in record:
        return record[path]
    for key in path.split("."):
        if not isinstance(record, Mapping) or key not in record:
            return None
        record = record[key]
    return record


def identifier(value: Any, what: str, place: Place) -> str:
    """Return an identifier as text; whole numbers are written out."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise place.fault(f"the {what} is {brief(value)}: an identifier is text or a whole number")
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise place.fault(f"the {what} {brief(value)} holds a character that is no text")
    return value


def number(value: Any, what: str, place: Place) -> float:
    """Return a finite number, given as a number or as text."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise place.fault(f"the {what} is {brief(value)}, not a number")
    try:
        real = decimal(value.strip()) if isinstance(value, str) else float(value)
    except OverflowError:
        real = math.inf
    if not math.isfinite(real):
        raise place.fault(f"the {what} {brief(value)} is not a finite number")
    return real


def timestamp(value: Any, place: Place) -> str:
    """Return a moment as UTC text in ISO 8601, from such text or from milliseconds since 1970."""
    text = value.strip() if isinstance(value, str) else value
    try:
        if isinstance(text, str) and not text.lstrip("-").isdecimal():
            moment = datetime.fromisoformat(text)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
        elif isinstance(text, (str, int)) and not isinstance(text, bool):
            moment = datetime.fromtimestamp(int(text) / 1000, UTC)
        else:
            raise ValueError
        moment = moment.astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise place.fault(
            f"the timestamp is {brief(value)}: give ISO 8601 or milliseconds since 1970"
        ) from None
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def _document(name: str, lines: list[str]) -> Iterator[tuple[Place, dict[str, Any]]]:
    text = "\n".join(lines)
    decoder = json.JSONDecoder(parse_constant=_refuse_constant)
    start, found = 0, []
    while start < len(text):
        try:
            value, start = decoder.raw_decode(text, start)
        except (ValueError, RecursionError) as error:
            raise _bad_json(error, name, 1) from None
        found.extend(value if isinstance(value, list) else [value])
        while start < len(text) and text[start].isspace():
            start += 1
    yield from _objects(found, name)


def _objects(values: list[Any], name: str) -> Iterator[tuple[Place, dict[str, Any]]]:
    for record, value in enumerate(values, start=1):
        yield _checked(value, Place(name, record=record))


def _checked(value: Any, place: Place) -> tuple[Place, dict[str, Any]]:
    if not isinstance(value, dict):
        raise place.fault(f"expected a JSON object, found {brief(value)}")
    return place, value


def _bad_json(error: Exception, name: str, line: int) -> ParseError:
    """Return an error about a text that begins in a line."""
    if isinstance(error, json.JSONDecodeError):
        line, column = line + error.lineno - 1, error.colno
        return ParseError(f"this is not JSON ({error.msg})", path=name, line=line, column=column)
    why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
    return ParseError(f"this JSON cannot be used ({why})", path=name, line=line)


def brief(value: Any) -> str:
    """Describe a value in a few words.

    >>> brief(None), brief({}), brief("x")
    ('missing', 'an object', "'x'")
    """
    if isinstance(value, (dict, list)):
        return "a list" if isinstance(value, list) else "an object"
    text = "missing" if value is None else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
