"""Reading data for a command: one place that knows how widths and streams are handled."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from leanrank.cli.parameters import parse_parameters
from leanrank.errors import FileError, InputError

if TYPE_CHECKING:
    from leanrank.data import RankingData


TEXT_OPTIONS = {"dtype": "float64", "storage": "auto", "zero_based": False}
COLUMNS = ("label", "qid", "doc_id", "weight", "query_weight", "offset")


def read_data(
    path: str,
    format: str | None,
    given: Sequence[str] | None = None,
    *,
    n_features: int | None = None,
) -> RankingData:
    """Load a data set.

    Parameters
    ----------
    path, format : str
        As :func:`leanrank.data.load` takes them.
    given : sequence of str
        ``name=value`` words of ``--read``.
    n_features : int, optional
        The width that text must get: its last features may be zero in every line.
    """
    from leanrank.data import load

    if _is_text(path, format):
        options = parse_parameters(given or [], TEXT_OPTIONS, "text", "--read")
        return load(path, format=format, n_features=n_features or None, **options)
    columns = dict.fromkeys(COLUMNS, "")
    return load(path, format=format, **parse_parameters(given or [], columns, "a table", "--read"))


def check_folder(path: str) -> None:
    """Refuse to start work whose result could not be written."""
    if path == "-":
        return
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileError(f"{path}: the directory {folder} does not exist: create it first")
    if Path(path).is_dir():
        raise FileError(f"{path} is a directory: give the name of a file")
    if Path(path).exists() and not Path(path).is_file():
        # A finished file is renamed to its place, which would do away with the device or pipe.
        raise FileError(f"{path} is not a regular file: give another, or - for standard output")
    if not os.access(folder, os.W_OK):
        raise FileError(f"{path}: the directory {folder} is not writable: choose another")


def shown(path: str, stream: str = "<stdin>") -> str:
    """Name a file in a message."""
    return stream if path == "-" else path


def stdin_once(*paths: str | None) -> None:
    """Refuse to read two things from one stream."""
    if sum(path == "-" for path in paths) > 1:
        raise InputError("standard input (-) can be read only once: give a file for the other")


def _is_text(path: str, format: str | None) -> bool:
    from leanrank.data.formats import FORMATS

    if format is not None:
        return format == "letor"
    return path == "-" or path.lower().endswith(FORMATS["letor"].suffixes)
