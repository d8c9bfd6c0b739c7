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
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._files import HeldFile
from leanrank._typing import FloatArray
from leanrank.errors import InputError
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

    def restore(self, take: Callable[[Mapping[str, Any], str], None]) -> None:
        """Hand each trial so far to a function, with the file and line it is on."""
        for number, entry in enumerate(self.entries, 2):
            source = f"{self.path}, line {number}"
            try:
                take(entry, source)
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise InputError(
                    f"{source}: no trial of this search ({error}), {_OTHER}"
                ) from error

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
    entry: Mapping[str, Any], source: str, n_queries: tuple[int, int], costs: Costs | None = None
) -> list[Candidate]:
    """Return the candidates of a trial, which its checksum has found intact.

    Parameters
    ----------
    entry : mapping
        What ``Journal.add`` was given, read from the file.
    source : str
        The file and its line, for messages.
    n_queries : (int, int)
        Of the validation and of the training data.
    costs : Costs, optional
    """
    return [_candidate(one, source, n_queries, costs) for one in entry["candidates"]]


def _candidate(
    one: Mapping[str, Any], source: str, n_queries: tuple[int, int], costs: Costs | None
) -> Candidate:
    model = Model.from_dict(one["model"], source)
    parts = [
        {name: unpack(text) for name, text in one[part].items()}
        for part in ("values", "training_values")
    ]
    for part, size in zip(parts, n_queries, strict=True):
        if any(len(values) != size for values in part.values()):
            raise ValueError(f"a measure needs one value for each of {size} queries")
    size = model.n_nonzero
    return Candidate(
        one["name"],
        one["algorithm"],
        one["parameters"],
        model,
        parts[0],
        size,
        float(size) if costs is None else costs.of(model.indices),
        training_values=parts[1],
        seconds=one["seconds"],
    )


def _line(entry: Mapping[str, Any], before: str) -> bytes:
    """Write an entry with a digest of it and of all entries before it."""
    text = json.dumps(entry, allow_nan=False, separators=(",", ":"))
    digest = hashlib.sha256((before + text).encode()).hexdigest()
    return b'{"sha256":"%s","entry":%s}\n' % (digest.encode(), text.encode())


def _digest_of(line: bytes) -> str:
    return line[11:75].decode("ascii", "replace")


def _parse(content: bytes, path: Path, command: str) -> tuple[list[dict[str, Any]], str]:
    """Return the header and the trials, and the digest of all."""
    read: list[dict[str, Any]] = []
    digest = ""
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        try:
            entry = json.loads(line)["entry"]
            intact = isinstance(entry, dict) and _line(entry, digest) == line + b"\n"
        except (ValueError, LookupError, TypeError, RecursionError):
            entry, intact = {}, False
        head = {"format": f"leanrank-{command}-journal", "version": VERSION}
        if number == 1 and not (intact and head.items() <= entry.items()):
            raise InputError(
                f"{path}, line 1: this is no intact journal of leanrank {command}, version "
                f"{VERSION}, {_OTHER}"
            )
        if not intact:
            raise InputError(
                f"{path}, line {number}: this line is damaged (its checksum does not fit): keep "
                f"the {number - 1} lines before it to go on from there, or remove the file"
            )
        read.append(entry)
        digest = _digest_of(line)
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
