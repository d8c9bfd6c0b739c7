"""Click logs of engines: OpenSearch's User Behavior Insights, and Metarank's events."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from leanrank._files import atomic_write
from leanrank.data.clicks.click_log import ClickLog, read_clicks
from leanrank.data.logs import Place, at, brief, identifier, json_records, log_files, sources
from leanrank.data.ranking_data import counted
from leanrank.errors import InputError, warn

COLUMNS = ("session", "query", "document", "position", "clicked", "timestamp")
_EVENTS = ("ranking", "interaction", "item", "user")
_PART_ROWS = 65_536


class EngineClicks(NamedTuple):
    """The click log of an engine, one row per document shown.

    Attributes
    ----------
    table : pyarrow.Table
        With the columns session, query, document, position, clicked, and timestamp as it was
        logged.
    notes : tuple of str
        What was left out or guessed, a sentence each.
    """

    table: Any
    notes: tuple[str, ...]

    @property
    def sizes(self) -> dict[str, int]:
        """The numbers of ``lists``, ``clicks`` and ``rows``."""
        clicks = self.table["clicked"].to_numpy().sum(dtype=int)
        n_lists = len(self.table["session"].unique())
        return {"lists": n_lists, "clicks": int(clicks), "rows": len(self.table)}

    def write(self, target: str | os.PathLike[str]) -> None:
        """Write the table as Parquet or CSV."""
        from leanrank.data.tables import csv, pq

        name = os.fspath(target).lower()
        if not name.endswith((".parquet", ".csv")):
            raise InputError(f"{target}: clicks are written as .parquet or .csv")
        write = pq.write_table if name.endswith(".parquet") else csv.write_csv
        with atomic_write(target, "wb") as stream:
            write(self.table, stream)


_Shown = tuple[str, str | None, list[str], Any]
"""Session, query, documents and time of a list."""
_Click = tuple[str | None, str | None, int | None]
"""Session, document and ordinal of a click."""


def load_engine_clicks(
    path: str | os.PathLike[str], *, actions: Sequence[str] = ("click",)
) -> EngineClicks:
    """Read a UBI log or Metarank's events as a table.

    Parameters
    ----------
    path : str or path
        A directory with the records of ``ubi_queries`` and ``ubi_events`` (files whose names begin
        so, ``.json``, ``.ndjson`` or ``.jsonl``, also ``.gz``), or a file of Metarank events.
    actions : sequence of str, default=("click",)
        The kinds of events that count as a click: UBI's ``action_name``, Metarank's ``type``.
    """
    from leanrank.data.tables import pa

    kinds = {"position": pa.int64(), "clicked": pa.int8()}
    schema = pa.schema([(column, kinds.get(column, pa.string())) for column in COLUMNS])
    folder, notes = Path(path), _Notes()
    events = lists = [folder]
    click_of: Any = _metarank_click
    list_of: Any = _metarank_list
    if folder.is_dir():
        events, lists = (log_files(folder, begin) for begin in ("ubi_events", "ubi_queries"))
        click_of, list_of = _ubi_click, _ubi_list
    wanted = [actions] if isinstance(actions, str) else actions
    clicks: dict[str | None, list[_Click]] = {}
    for place, record in _records(events):
        if (click := click_of(place, record, wanted)) is not None:
            clicks.setdefault(click[0], []).append(click)
    if not clicks:
        raise InputError(
            f"{events[0]}: no event is a click ({', '.join(sorted(wanted))}): name the actions "
            "that count as one"
        )
    for _, document, _ in clicks.pop(None, ()):
        notes.add("click", "without the id of a list left out", document)
    seen: set[str] = set()

    def rows() -> Iterator[tuple[Any, ...]]:
        for place, record in _records(lists):
            if (shown := list_of(place, record)) is None:
                continue
            session, query, documents, time = shown
            own = clicks.pop(session, [])
            if query is None and documents and not folder.is_dir():
                notes.add("list", "without a query taken as a query of its own", session)
                query = session
            if session in seen:
                notes.add("list", "with the id of another left out", session)
            elif query is None:
                notes.add("list", "without query text left out", session)
            elif not documents:
                notes.add("list", "without documents left out", session)
            else:
                yield from _rows((session, query, documents, time), own, notes)
            seen.add(session)

    tables, each = [], rows()
    while part := list(islice(each, _PART_ROWS)):  # a table is far smaller than Python's lists
        tables.append(pa.table(list(zip(*part, strict=True)), schema=schema))
    if not tables:
        raise InputError(f"{folder}: there is no list with a query and documents in this log")
    for session, left in clicks.items():
        for _ in left:
            notes.add("click", "on a list that is not in the log left out", session)
    return EngineClicks(pa.concat_tables(tables), notes.sentences(folder))


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
        As for ``load_engine_clicks``.
    features
        As for ``leanrank.data.read_clicks``.

    Returns
    -------
    ClickLog
        For ``click_preferences``, ``estimate_propensities`` and ``click_weights``.
    """
    log = load_engine_clicks(path, actions=actions)
    joined = read_clicks(log.table, features)
    for sentence in log.notes:
        warn(sentence)
    return joined


class _Notes(dict[tuple[str, str], list[str]]):
    """Examples of what was left out or guessed, by noun and what became of it."""

    def add(self, noun: str, fate: str, example: Any) -> None:
        self.setdefault((noun, fate), []).append(str(example))

    def sentences(self, path: Path) -> tuple[str, ...]:
        return tuple(
            f"{path}: {counted(len(found), noun)} {fate} (the first: {found[0][:60]!r})"
            for (noun, fate), found in self.items()
        )


def _rows(shown: _Shown, clicks: list[_Click], notes: _Notes) -> Iterator[tuple[Any, ...]]:
    """Yield a row per document of a list, clicked or not."""
    session, query, documents, timestamp = shown
    position: dict[str, int] = {}
    for rank, document in enumerate(documents, start=1):
        if position.setdefault(document, rank) != rank:
            notes.add("document", "repeated in a list left out at the lower place", document)
    clicked = set()
    for _, named, ordinal in clicks:
        if named in position:
            clicked.add(named)
        elif ordinal is not None and 1 <= ordinal <= len(documents):
            clicked.add(documents[ordinal - 1])
            notes.add("click", "on an object that is not in its list placed by its ordinal", named)
        else:
            notes.add("click", "on a document that is not in its list left out", named)
    time = "" if timestamp is None else str(timestamp)
    time = time.encode("utf-8", "replace").decode()  # JSON may hold half of a character
    for document, rank in position.items():
        yield session, query, document, rank, int(document in clicked), time


def _records(files: list[Path]) -> Iterator[tuple[Place, dict[str, Any]]]:
    for file in files:
        yield from sources(json_records(file))


def _optional(value: Any, what: str, place: Place) -> str | None:
    return None if value is None or value == "" else identifier(value, what, place)


def _listed(value: Any, what: str, place: Place) -> list[Any]:
    if not isinstance(value, list):
        raise place.fault(f"{what} is {brief(value)}, not a list")
    return value


def _ubi_click(place: Place, record: Any, actions: Collection[str]) -> _Click | None:
    if record.get("action_name") not in actions:
        return None
    named = at(record, "event_attributes.object.object_id")
    ordinal = at(record, "event_attributes.position.ordinal")
    if type(ordinal) is not int and (ordinal is not None or named is None):
        raise place.fault(
            "a click has an object.object_id, or a position.ordinal that is a whole number: the "
            f"ordinal is {brief(ordinal)}"
        )
    session = _optional(record.get("query_id"), "query_id", place)
    return session, _optional(named, "object_id", place), ordinal


def _ubi_list(place: Place, record: Any) -> _Shown:
    hits = _listed(record.get("query_response_hit_ids") or [], "query_response_hit_ids", place)
    session = identifier(record.get("query_id"), "query_id", place)
    query = _optional(record.get("user_query"), "user_query", place)
    documents = [identifier(hit, "hit id", place) for hit in hits]
    return session, query, documents, record.get("timestamp")


def _metarank_click(place: Place, record: Any, actions: Collection[str]) -> _Click | None:
    kind = record.get("event")
    if kind not in _EVENTS:
        raise place.fault(f"the event is {brief(kind)}: Metarank has {', '.join(_EVENTS)}")
    if kind != "interaction" or record.get("type") not in actions:
        return None
    session = _optional(record.get("ranking"), "ranking", place)
    return session, identifier(record.get("item"), "item", place), None


def _metarank_list(place: Place, record: Any) -> _Shown | None:
    if record["event"] != "ranking":
        return None
    items = _listed(record.get("items"), "items", place)
    fields = [field for field in record.get("fields") or [] if at(field, "name") == "query"]
    session = identifier(record.get("id"), "id", place)
    query = _optional(at(fields[-1], "value"), "query", place) if fields else None
    documents = [identifier(at(item, "id"), "id of an item", place) for item in items]
    return session, query, documents, record.get("timestamp")
