"""Score files: one number per line, in the order of the documents in their file."""

from __future__ import annotations

import numpy as np

from leanrank._files import atomic_write
from leanrank._typing import FloatArray
from leanrank.data.ranking_data import counted
from leanrank.data.sources import decimal, open_bytes, quoted, shown_name
from leanrank.errors import InputError, ParseError


def write_scores(scores: FloatArray, path: str) -> None:
    """Write scores so that reading them gives the same bits; ``"-"`` is standard output."""
    with atomic_write(path) as stream:
        stream.writelines(f"{score!r}\n" for score in scores.tolist())


def read_scores(path: str, n_documents: int, described: str) -> FloatArray:
    """Read one score per document; ``"-"`` is standard input, compression is recognised.

    ``described`` names the data that the scores are for. Blank lines at the end are tolerated.
    """
    name = shown_name(path)
    with open_bytes(path) as stream:
        lines = [line.strip(b" \t\r") for line in stream.read().split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    scores = np.array([decimal(line.decode("latin-1")) for line in lines], dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        raise ParseError(
            f"{quoted(lines[wrong[0]], 30)} is not a score: one finite number per line is expected",
            path=name,
            line=int(wrong[0]) + 1,
        )
    if len(scores) != n_documents:
        raise InputError(
            f"{name} has {counted(len(scores), 'score')} but {described} has "
            f"{counted(n_documents, 'document')}: give one score per line, in the documents' order"
        )
    return scores
