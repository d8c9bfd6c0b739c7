"""A journal of trials: one line each, on disk before the next trial, to resume after a kill.

The first line identifies the search; every other holds the models of a trial and their values. Each
line carries a checksum of itself and the lines before it. Numbers are stored exactly: with or
without a kill, the answer is the same to the bit.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._files import HeldFile
from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.model.fields import Field
from leanrank.model.model import Model
from leanrank.model.provenance import to_json_values
from leanrank.selection.candidate import Candidate
from leanrank.selection.costs import Costs

VERSION = 3

_OTHER = "so it is left alone: give another name, or remove the file to start anew"


class Journal:
    """An append-only file of JSON lines.

    Parameters
    ----------
    path : path or None
        None: nothing is written.
    settings : mapping
        What the results depend on; a journal with others is refused.
    command : str
        Whose journal it is.

    Attributes
    ----------
    entries : list of dict
        The trials so far.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Journal(f"{folder}/j.jsonl", {"measure": "map"}) as journal:
    ...         journal.add({"trial": 0})
    ...     with Journal(f"{folder}/j.jsonl", {"measure": "map"}) as journal:
    ...         journal.entries
    [{'trial': 0}]
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        settings: Mapping[str, Any],
        command: str = "tune",
    ) -> None:
        self.path = None if path is None else Path(path)
        self.entries: list[dict[str, Any]] = []
        self._file: HeldFile | None = None
        if self.path is None:
            return
        wanted = json.loads(json.dumps(to_json_values(dict(settings))))
        header = {"format": f"leanrank-{command}-journal", "version": VERSION, "settings": wanted}
        file = HeldFile(self.path)
        try:
            content = file.read()
            whole = content.rfind(b"\n") + 1  # a kill may cut off the last line
            if not whole and not _line(header, "").startswith(content):
                raise InputError(f"{self.path}: this is no journal of leanrank {command}, {_OTHER}")
            found, self._digest = _parse(content[:whole], self.path, command)
            if found:
                _compare(found[0]["settings"], wanted, self.path)
            self.entries = found[1:]
            file.append(b"", at=whole)
            self._file = file
            if not found:
                self._write(header)
        except BaseException:
            file.close()
            raise

    def add(self, entry: Mapping[str, Any]) -> None:
        """Write one trial; on return it is on disk."""
        self.entries.append(dict(entry))
        if self._file is not None:
            self._write(entry)

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, entry: Mapping[str, Any]) -> None:
        assert self._file is not None
        line = _line(entry, self._digest)
        self._file.append(line)
        self._digest = _digest_of(line)


def pack(values: FloatArray) -> str:
    """Write numbers as compact text, exactly.

    >>> unpack(pack(np.array([0.1, np.nan]))).tolist()
    [0.1, nan]
    """
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()


def unpack(text: str) -> FloatArray:
    """Read what ``pack`` wrote."""
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f8").astype(np.float64)


def written(one: Candidate) -> dict[str, Any]:
    """Return a candidate as a line of a journal holds it."""
    return {
        "name": one.name,
        "algorithm": one.algorithm,
        "parameters": to_json_values(dict(one.parameters)),
        "model": one.model.to_dict(),
        "values": {name: pack(values) for name, values in one.values.items()},
        "training_values": {name: pack(values) for name, values in one.training_values.items()},
        "seconds": one.seconds,
    }


def read_trial(
    entry: Any,
    source: str,
    *,
    n_queries: tuple[int, int],
    n_features: int,
    n_planned: int,
    measures: Collection[str],
    costs: Costs | None = None,
) -> list[Candidate]:
    """Check a trial of a journal from end to end, and return its candidates.

    Parameters
    ----------
    entry : object
        What ``Journal.add`` was given, read from the file.
    source : str
        The file and its line, for messages.
    n_queries : (int, int)
        Of the validation and of the training data.
    n_features : int
    n_planned : int
        Settings that the search may try.
    measures : collection of str
        Those that every candidate has values for.
    costs : Costs, optional
    """
    root = Field(entry, source)
    needed = ("trial", "kind", "name", "candidates", "seconds")
    root.object(needed, ("at", "setting", "support", "problem", "incomplete"))
    if root["kind"].string() not in ("system", "local"):
        root["kind"].wrong("'system' or 'local'")
    root["trial"].integer(0, 2**53)
    root["name"].string()
    _seconds(root["seconds"])
    if entry["kind"] == "system":
        root.object(("at", "setting"))
        root["at"].integer(0, n_planned - 1)
        root["setting"].object().json()
    else:
        root.object(("support",))
        for feature in root["support"].array():
            feature.integer(0, n_features - 1)
    if "problem" in entry:
        root["problem"].string()
    if not isinstance(entry.get("incomplete", True), bool):
        root["incomplete"].wrong("true or false")
    return [
        _candidate(one, source, n_queries, n_features, measures, costs)
        for one in root["candidates"].array()
    ]


def _candidate(
    one: Field,
    source: str,
    n_queries: tuple[int, int],
    n_features: int,
    measures: Collection[str],
    costs: Costs | None,
) -> Candidate:
    one.object((*_KEYS, "training_values"), ())
    parameters = one["parameters"].object().json()
    if "alpha" in parameters:
        one["parameters"]["alpha"].number()
    model = Model.from_dict(one["model"].object().value, f"{source}, {one.path}")
    if model.n_features != n_features:
        one["model"].fail(f"has {model.n_features} features: {n_features} are expected")
    values, training_values = (
        {key: _values(one[part][key], size) for key in one[part].object(needed).value}
        for part, size, needed in zip(
            ("values", "training_values"), n_queries, (measures, ()), strict=True
        )
    )
    candidate = Candidate.of(
        one["algorithm"].string(),
        parameters,
        model,
        values,
        training_values=training_values,
        seconds=None if one["seconds"].value is None else _seconds(one["seconds"]),
        **({} if costs is None else {"cost": costs.of(model.indices)}),
    )
    return replace(candidate, name=one["name"].string())


_KEYS = ("name", "algorithm", "parameters", "model", "values", "seconds")


def _seconds(field: Field) -> float:
    if field.number() < 0:
        field.wrong("a number from 0")
    return float(field.value)


def _values(field: Field, n_values: int) -> FloatArray:
    try:
        values = unpack(field.string())
    except ValueError:
        field.fail("is not a list of numbers in base 64")
    if len(values) != n_values:
        field.fail(f"has {len(values)} values: one per query, {n_values}, is expected")
    return values


def _line(entry: Mapping[str, Any], before: str) -> bytes:
    """Write an entry with a digest of it and of all entries before it."""
    text = json.dumps(entry, allow_nan=False, separators=(",", ":"))
    digest = hashlib.sha256((before + text).encode()).hexdigest()
    return b'{"sha256":"%s","entry":%s}\n' % (digest.encode(), text.encode())


def _digest_of(line: bytes) -> str:
    return line[11:75].decode("ascii", "replace")


def _parse(content: bytes, path: Path, command: str) -> tuple[list[dict[str, Any]], str]:
    """Return the header and the trials, and the digest of all."""
    unknown = f"{path}, line 1: this is no journal of leanrank {command}, {_OTHER}"
    read: list[dict[str, Any]] = []
    digest = ""
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        try:
            entry = json.loads(line)["entry"]
            intact = _line(entry, digest) == line + b"\n"
        except (ValueError, LookupError, TypeError, RecursionError):
            entry, intact = None, False
        named = entry.get("format") if isinstance(entry, dict) else None
        if number == 1 and named != f"leanrank-{command}-journal":
            raise InputError(unknown)
        if number == 1 and entry.get("version") != VERSION:
            raise InputError(
                f"{path}: the journal has version {str(entry.get('version'))[:9]}, this release "
                f"reads {VERSION}, {_OTHER}"
            )
        if not intact or not isinstance(entry, dict):
            rest = f"keep the {number - 1} lines before it to go on from there, or "
            raise InputError(
                f"{path}, line {number}: this line of the journal is damaged (its checksum does "
                f"not fit it): {rest if number > 1 else ''}remove the file to start anew"
            )
        read.append(entry)
        digest = _digest_of(line)
    if read and not isinstance(read[0].get("settings"), dict):
        raise InputError(unknown)
    return read, digest


def _compare(old: Mapping[str, Any], wanted: Mapping[str, Any], path: Path) -> None:
    for name in {**wanted, **old}:
        if old.get(name) != wanted.get(name):
            now, then = (_short(found.get(name)) for found in (wanted, old))
            raise InputError(
                f"{path}: this journal belongs to another run, whose {name} is {then} and not "
                f"{now}, {_OTHER}"
            )


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
