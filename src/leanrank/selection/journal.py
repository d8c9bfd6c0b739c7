"""A journal of trials: one line each, on disk before the next begins, to go on after a kill.

The first line says which search it belongs to; every other holds a trial's models and what they are
worth. Numbers survive the way to disk and back exactly, and a search reads its own trials from the
journal's form even when it was never interrupted, so that both give the same answer to the bit.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import FileError, InputError
from leanrank.model.base import Model
from leanrank.model.fields import Field
from leanrank.model.provenance import to_json_values
from leanrank.model.reading import KINDS, check_header

FORMAT = "leanrank-tune-journal"
VERSION = 1

_OTHER = "so it is left alone: give another name, or remove the file to start anew"


class Journal:
    """Lines of JSON that are only ever added to.

    Parameters
    ----------
    path : path or None
        None: nothing is kept.
    settings : mapping
        What the results depend on; a journal with others is refused.

    Attributes
    ----------
    entries : list of dict
        The trials there are.

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

    def __init__(self, path: str | os.PathLike[str] | None, settings: Mapping[str, Any]) -> None:
        self.path = None if path is None else Path(path)
        self.entries: list[dict[str, Any]] = []
        self._stream: IO[bytes] | None = None
        if self.path is None:
            return
        wanted = json.loads(json.dumps(to_json_values(dict(settings))))
        first = _line({"format": FORMAT, "version": VERSION, "settings": wanted})
        try:
            content = self.path.read_bytes() if self.path.exists() else b""
            whole = content.rfind(b"\n") + 1  # what comes after was cut off by a kill
            if not whole and not first.startswith(content):
                raise InputError(f"{self.path}: this is no journal of leanrank tune, {_OTHER}")
            header, self.entries = _parse(content[:whole], self.path)
            if header is not None:
                _compare(header, wanted, self.path)
            self._stream = open(self.path, "r+b" if content else "wb")  # noqa: SIM115
            self._stream.truncate(whole)
            self._stream.seek(whole)
        except OSError as error:
            raise FileError(
                f"{self.path}: the journal cannot be used ({error.strerror or error})"
            ) from error
        if header is None:
            self._write(first)

    def add(self, entry: Mapping[str, Any]) -> None:
        """Keep one trial: when this returns, it is on disk."""
        self.entries.append(dict(entry))
        if self._stream is not None:
            self._write(_line(entry))

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _write(self, line: bytes) -> None:
        assert self._stream is not None
        try:
            self._stream.write(line)
            self._stream.flush()
            os.fsync(self._stream.fileno())
        except OSError as error:
            raise FileError(
                f"{self.path}: the journal cannot be written ({error.strerror or error})"
            ) from error


def pack(values: FloatArray) -> str:
    """Write numbers as text, exactly and shortly.

    >>> unpack(pack(np.array([0.1, np.nan]))).tolist()
    [0.1, nan]
    """
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()


def unpack(text: str) -> FloatArray:
    """Read what :func:`pack` wrote."""
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f8").astype(np.float64)


def read_model(document: Mapping[str, Any], source: str) -> Model:
    """Read a model of any kind from its document."""
    root = check_header(Field(dict(document), source))
    return KINDS[root["kind"].value](root)


def _line(entry: Mapping[str, Any]) -> bytes:
    return json.dumps(entry, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _parse(content: bytes, path: Path) -> tuple[dict[str, Any] | None, list[dict[str, Any]]]:
    lines = content.splitlines()
    read = []
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line)
        except ValueError as error:
            raise InputError(
                f"{path}, line {number}: this is no line of a journal ({error}), {_OTHER}"
            ) from error
        if not isinstance(entry, dict) or (number == 1 and entry.get("format") != FORMAT):
            raise InputError(
                f"{path}, line {number}: this is no journal of leanrank tune, {_OTHER}"
            )
        read.append(entry)
    if not read:
        return None, []
    if read[0].get("version") != VERSION:
        raise InputError(
            f"{path}: the journal has version {read[0].get('version')}, this release reads "
            f"{VERSION}, {_OTHER}"
        )
    return read[0], read[1:]


def _compare(header: Mapping[str, Any], wanted: Mapping[str, Any], path: Path) -> None:
    old = header.get("settings", {})
    for name in {**wanted, **old}:
        if old.get(name) != wanted.get(name):
            now, then = (_short(found.get(name)) for found in (wanted, old))
            raise InputError(
                f"{path}: this journal belongs to another search, whose {name} is {then} and not "
                f"{now}, {_OTHER}"
            )


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else text[:57] + "…"
