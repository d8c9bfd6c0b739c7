"""Score files: one number a line, in the order of the documents in their file."""

from __future__ import annotations

import math
import os
import sys
from typing import Any

import numpy as np

from leanrank._files import atomic_write
from leanrank._typing import FloatArray
from leanrank.errors import FileError, InputError, ParseError


def write_scores(scores: FloatArray, path: str) -> None:
    """Write scores so that reading them gives the same bits; ``"-"`` is standard output."""
    with atomic_write(path) as stream:
        stream.writelines(f"{score!r}\n" for score in scores.tolist())


def read_scores(path: str, n_documents: int, described: str) -> FloatArray:
    """Read one score a document; ``"-"`` is standard input.

    ``described`` names the data that the scores are for. Blank lines at the end are tolerated.
    """
    name, content = _read(path)
    lines = content.split(b"\n")
    while lines and not lines[-1].strip():
        lines.pop()
    scores = _all_at_once(lines)
    if scores is None:
        scores = np.array([_number(line, name, at + 1) for at, line in enumerate(lines)])
    if len(scores) != n_documents:
        raise InputError(
            f"{name} has {_count(len(scores), 'score')} but {described} has "
            f"{_count(n_documents, 'document')}: give one score a line, in the documents' order"
        )
    return scores


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"


def _read(path: str) -> tuple[str, bytes]:
    if path == "-":
        return "<stdin>", sys.stdin.buffer.read()
    try:
        with open(path, "rb") as stream:
            return path, stream.read()
    except OSError as error:
        raise FileError(f"{os.fspath(path)}: cannot be read ({error.strerror})") from error


def _all_at_once(lines: list[bytes]) -> FloatArray | None:
    """Convert the usual case quickly; None when some line needs a closer look."""
    try:
        scores: Any = np.array([float(line) for line in lines])
    except ValueError:
        return None
    if not np.isfinite(scores).all() or any(b"_" in line for line in lines):
        return None
    return scores


def _number(line: bytes, name: str, at: int) -> float:
    text = line.decode("utf-8", "replace").strip()
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in text:
        shown = text if len(text) <= 30 else text[:29] + "…"
        raise ParseError(
            f"{shown!r} is not a score: one finite number a line is expected", path=name, line=at
        )
    return number
