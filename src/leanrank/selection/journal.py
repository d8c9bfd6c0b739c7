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
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._files import HeldFile
from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.model.model import Model
from leanrank.model.provenance import to_json_values
from leanrank.selection.candidate import Candidate

VERSION = 4


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
        self._digest = ""
        if self.path is None:
            return
        wanted = json.loads(json.dumps(to_json_values(dict(settings))))
        header = {"format": f"leanrank-{command}-journal", "version": VERSION, "settings": wanted}
        file = HeldFile(self.path)
        try:
            content = file.read()
            whole = content.rfind(b"\n") + 1  # a kill may cut off the last line
            self._read(content[:whole], header)
            if not whole and not _line(header, "")[1].startswith(content):
                raise self.refusal("line 1 is not the first line of its journal")
            file.append(b"", at=whole)
            self._file = file
            if not whole:
                self._write(header)
        except BaseException:
            file.close()
            raise

    def add(self, entry: Mapping[str, Any]) -> None:
        """Write one trial; on return it is on disk."""
        self.entries.append(dict(entry))
        if self._file is not None:
            self._write(entry)

    def refusal(self, reason: str) -> InputError:
        """Return the error of a journal that cannot be used."""
        return InputError(
            f"{self.path}: cannot resume from this journal, {reason}: give another name, or "
            "remove the file to start again"
        )

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _read(self, content: bytes, header: Mapping[str, Any]) -> None:
        """Read whole lines; each must fit its checksum, and the first the header."""
        for number, line in enumerate(content.split(b"\n")[:-1], 1):
            try:
                entry = json.loads(line)["entry"]
                self._digest, intact = _line(entry, self._digest)
            except (ValueError, LookupError, TypeError, RecursionError):
                intact = b""
            if intact != line + b"\n":
                raise self.refusal(f"line {number} does not fit its checksum")
            self.entries.append(entry)
        if self.entries:
            first = self.entries.pop(0)
            if any(header[name] != first.get(name) for name in ("format", "version")):
                raise self.refusal(f"it is not {header['format']}, version {VERSION}")
            then, now = first["settings"], header["settings"]
            changed = [name for name in {**now, **then} if then.get(name) != now.get(name)]
            if changed:
                raise self.refusal(f"it belongs to another run: not the same {changed[0]}")

    def _write(self, entry: Mapping[str, Any]) -> None:
        assert self._file is not None
        self._digest, line = _line(entry, self._digest)
        self._file.append(line)


def pack(values: FloatArray) -> str:
    """Write numbers as compact text, exactly.

    >>> unpack(pack(np.array([0.1, np.nan]))).tolist()
    [0.1, nan]
    """
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode()


def unpack(text: str) -> FloatArray:
    """Read what ``pack`` wrote."""
    return np.frombuffer(base64.b64decode(text, validate=True), dtype="<f8").astype(np.float64)


def to_entry(one: Candidate) -> dict[str, Any]:
    """Return a candidate as a line of a journal holds it."""
    return {
        "name": one.name,
        "algorithm": one.algorithm,
        "parameters": to_json_values(dict(one.parameters)),
        "model": one.model.to_dict(),
        **{part: {name: pack(v) for name, v in getattr(one, part).items()} for part in _VALUES},
        "seconds": one.seconds,
    }


def from_entry(entry: Mapping[str, Any], source: str, costs: FloatArray | None) -> Candidate:
    """Return a candidate from what ``to_entry`` gave; ``source`` is the file, for messages."""
    model = Model.from_dict(entry["model"], source)
    each = {part: {name: unpack(v) for name, v in entry[part].items()} for part in _VALUES}
    parameters, seconds = entry["parameters"], entry["seconds"]
    made = Candidate.of(entry["algorithm"], parameters, model, costs=costs, seconds=seconds, **each)
    return replace(made, name=entry["name"])


_VALUES = ("values", "training_values")


def _line(entry: Mapping[str, Any], before: str) -> tuple[str, bytes]:
    """Return the digest of an entry and all entries before it, and its line with the digest."""
    text = json.dumps(entry, allow_nan=False, separators=(",", ":"))
    digest = hashlib.sha256((before + text).encode()).hexdigest()
    return digest, b'{"sha256":"%s","entry":%s}\n' % (digest.encode(), text.encode())
