"""Click logs of engines: OpenSearch's User Behavior Insights, and Metarank's events."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from leanrank._files import atomic_write
from leanrank.data.clicks.click_log import ClickLog, read_clicks
from leanrank.data.logs import (
    SUFFIXES,
    Place,
    at,
    brief,
    identifier,
    json_records,
    sources,
    timestamp,
)
from leanrank.data.ranking_data import counted
from leanrank.errors import FileError, InputError, warn

COLUMNS = ("session", "query", "document", "position", "clicked", "timestamp")
_EVENTS = ("ranking", "interaction", "item", "user")


class _Shown(NamedTuple):
    """A list as it was shown."""

    session: str
    query: str | None
    documents: list[str]
    timestamp: str


class _Click(NamedTuple):
    document: str | None
    ordinal: int | None


class EngineClicks:
    """The click log of an engine as rows of a table, with an account of what did not fit.

    Lists are read one by one: memory is taken by the clicks and the list ids, not by the log.

    Parameters
    ----------
    path : str or path
        A directory with the records of ``ubi_queries`` and ``ubi_events`` (files whose names begin
        so, ``.json``, ``.ndjson`` or ``.jsonl``, also ``.gz``), or a file of Metarank events.
    actions : sequence of str, default=("click",)
        The kinds of events that count as a click: UBI's ``action_name``, Metarank's ``type``.

    Attributes
    ----------
    totals : dict of str to int
        How many lists and clicked documents the batches held.
    """

    def __init__(
        self, path: str | os.PathLike[str], *, actions: Sequence[str] = ("click",)
    ) -> None:
        self.path = Path(path)
        self.actions = frozenset((actions,) if isinstance(actions, str) else actions)
        self.totals = {"lists": 0, "clicks": 0}
        self.counts: dict[str, int] = {}
        self.examples: dict[str, str] = {}
        self.ubi = self.path.is_dir()
        if self.ubi:
            self._events = _named(self.path, "ubi_events")
            self._lists = _named(self.path, "ubi_queries")
        elif self.path.exists():
            self._events = self._lists = [self.path]
        else:
            raise FileError(f"{self.path}: there is no such file or directory")

    def batches(self, part_rows: int = 65_536) -> Iterator[Any]:
        """Yield tables of session, query, document, position, clicked and timestamp.

        A table ends with the list that makes it ``part_rows`` long.
        """
        from leanrank.data.tables import pa

        self.totals = {"lists": 0, "clicks": 0}
        self.counts.clear()
        self.examples.clear()
        clicks = self._clicks()
        columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
        seen: set[str] = set()
        for shown in self._records(self._lists, _ubi_list if self.ubi else _metarank_list):
            if shown.query == shown.session and not self.ubi:
                self._count("list|without a query taken as a query of its own", shown.session)
            if shown.session in seen:
                self._count("list|with the id of another left out", shown.session)
                continue
            seen.add(shown.session)
            own = clicks.pop(shown.session, [])
            if shown.query is None or not shown.documents:
                lacks = "query text" if shown.query is None else "documents"
                self._count(f"list|without {lacks} left out", shown.session)
                continue
            self.totals["lists"] += 1
            self._add(columns, shown, own)
            if len(columns["session"]) >= part_rows:
                yield pa.table(columns, schema=_schema())
                columns = {name: [] for name in COLUMNS}
        for session, left in clicks.items():
            for _ in left:
                self._count("click|on a list that is not in the log left out", session)
        if not self.totals["lists"]:
            raise InputError(
                f"{self.path}: there is no list with a query and documents in this log"
            )
        if columns["session"]:
            yield pa.table(columns, schema=_schema())

    def sentences(self) -> list[str]:
        """Return what was left out or guessed, once all batches have been read."""
        told = []
        for kind, count in self.counts.items():
            noun, _, fate = kind.partition("|")
            first = self.examples[kind][:60]
            told.append(f"{self.path}: {counted(count, noun)} {fate} (the first: {first!r})")
        return told

    def join(self, features: Any) -> ClickLog:
        """Join the log with the features of its documents, as ``read_clicks`` takes them."""
        from leanrank.data.tables import pa

        return read_clicks(pa.concat_tables(self.batches()), features)

    def write(self, target: str | os.PathLike[str], part_rows: int = 65_536) -> int:
        """Write the table as Parquet or CSV, part by part, and return the number of its rows."""
        from leanrank.data.tables import csv, pq

        name, rows = os.fspath(target).lower(), 0
        if not name.endswith((".parquet", ".csv")):
            raise InputError(f"{target}: clicks are written as .parquet or .csv")
        make = pq.ParquetWriter if name.endswith(".parquet") else csv.CSVWriter
        with atomic_write(target, "wb") as stream, make(stream, _schema()) as writer:
            for table in self.batches(part_rows):
                writer.write_table(table)
                rows += len(table)
        return rows

    def _count(self, what: str, example: Any) -> None:
        self.counts[what] = self.counts.get(what, 0) + 1
        self.examples.setdefault(what, str(example))

    def _records(self, files: list[Path], parse: Callable[..., Any]) -> Iterator[Any]:
        """Yield what is made of the records, without those that are something else."""
        for file in files:
            for place, record in sources(json_records(file)):
                if (found := parse(place, record)) is not None:
                    yield found

    def _clicks(self) -> dict[str, list[_Click]]:
        clicks: dict[str, list[_Click]] = {}
        parse = partial(_ubi_click if self.ubi else _metarank_click, actions=self.actions)
        for session, click in self._records(self._events, parse):
            if session is None:
                self._count("click|without the id of a list left out", click.document)
            else:
                clicks.setdefault(session, []).append(click)
        if not clicks:
            raise InputError(
                f"{self._events[0]}: no event is a click ({', '.join(sorted(self.actions))}): name "
                "the actions that count as one"
            )
        return clicks

    def _add(self, columns: dict[str, list[Any]], shown: _Shown, clicks: list[_Click]) -> None:
        position: dict[str, int] = {}
        for rank, document in enumerate(shown.documents, start=1):
            if position.setdefault(document, rank) != rank:
                self._count("document|repeated in a list left out at the lower place", document)
        clicked = set()
        for named, ordinal in clicks:
            if named in position:
                clicked.add(named)
                continue
            fate = "a document that is not in its list left out"
            if ordinal is not None and 1 <= ordinal <= len(shown.documents):
                clicked.add(shown.documents[ordinal - 1])
                fate = "an object that is not in its list placed by its ordinal"
            self._count(f"click|on {fate}", named)
        self.totals["clicks"] += len(clicked)
        columns["session"] += [shown.session] * len(position)
        columns["query"] += [shown.query] * len(position)
        columns["document"] += position
        columns["position"] += position.values()
        columns["clicked"] += [int(document in clicked) for document in position]
        columns["timestamp"] += [shown.timestamp] * len(position)


def _schema() -> Any:
    from leanrank.data.tables import pa

    kinds = {"position": pa.int64(), "clicked": pa.int8()}
    return pa.schema([(column, kinds.get(column, pa.string())) for column in COLUMNS])


def read_engine_clicks(
    path: str | os.PathLike[str], features: Any, *, actions: Sequence[str] = ("click",)
) -> ClickLog:
    """Read a UBI log or Metarank's events, and join it with the features of its documents.

    A click goes to the document that it names; if that is not in the list (an object's id need not
    be the engine's), to the one at its ordinal, counted from 1. What fits nowhere is counted in a
    warning.

    Parameters
    ----------
    path, actions
        As for ``EngineClicks``.
    features
        As for ``leanrank.data.read_clicks``.

    Returns
    -------
    ClickLog
        For ``click_preferences``, ``estimate_propensities`` and ``click_weights``.
    """
    log = EngineClicks(path, actions=actions)
    joined = log.join(features)
    for sentence in log.sentences():
        warn(sentence)
    return joined


def _named(folder: Path, begin: str) -> list[Path]:
    found = [f for f in folder.iterdir() if f.name.lower().startswith(begin)]
    files = sorted(file for file in found if file.name.lower().endswith(SUFFIXES))
    if not files:
        raise FileError(f"{folder}: there is no {begin}.ndjson (or .json, .jsonl, .gz) in here")
    return files


def _ubi_click(place: Place, record: Any, actions: frozenset[str]) -> Any:
    if record.get("action_name") not in actions:
        return None
    session = record.get("query_id")
    named = at(record, "event_attributes.object.object_id")
    ordinal = at(record, "event_attributes.position.ordinal")
    if ordinal is not None and (isinstance(ordinal, bool) or not isinstance(ordinal, int)):
        raise place.fault(f"the ordinal of a click is {brief(ordinal)}, not a whole number")
    if named is None and ordinal is None:
        raise place.fault("a click has neither object.object_id nor position.ordinal")
    document = None if named is None else identifier(named, "object_id", place)
    session = None if session is None else identifier(session, "query_id", place)
    return session, _Click(document, ordinal)


def _ubi_list(place: Place, record: Any) -> _Shown:
    hits = record.get("query_response_hit_ids")
    if hits is not None and not isinstance(hits, list):
        raise place.fault("query_response_hit_ids is not a list of documents")
    query = record.get("user_query")
    return _Shown(
        identifier(record.get("query_id"), "query_id", place),
        None if query is None or query == "" else identifier(query, "user_query", place),
        [identifier(hit, "hit id", place) for hit in hits or []],
        timestamp(record.get("timestamp"), place),
    )


def _metarank_click(place: Place, record: Any, actions: frozenset[str]) -> Any:
    kind = record.get("event")
    if kind not in _EVENTS:
        raise place.fault(f"the event is {brief(kind)}: Metarank has {', '.join(_EVENTS)}")
    if kind != "interaction" or record.get("type") not in actions:
        return None
    click = _Click(identifier(record.get("item"), "item", place), None)
    ranking = record.get("ranking")
    return (None if ranking is None else identifier(ranking, "ranking", place)), click


def _metarank_list(place: Place, record: Any) -> _Shown | None:
    if record["event"] != "ranking":
        return None
    items, fields = record.get("items"), record.get("fields")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise place.fault("a ranking has no list of items")
    session = identifier(record.get("id"), "id", place)
    query = session
    for one in fields if isinstance(fields, list) else []:
        if isinstance(one, dict) and one.get("name") == "query" and one.get("value") != "":
            query = identifier(one.get("value"), "query", place)
    return _Shown(
        session,
        query,
        [identifier(item.get("id"), "id of an item", place) for item in items],
        timestamp(record.get("timestamp"), place),
    )
