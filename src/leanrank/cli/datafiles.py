"""Reading data for a command: one place that knows how widths and streams are handled."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from leanrank.errors import FileError, InputError

if TYPE_CHECKING:
    from leanrank.data import RankingData


def read_data(path: str, format: str | None, n_features: int | None = None) -> RankingData:
    """Load a data set; ``n_features`` is the width that text without trailing zeros must get."""
    from leanrank.data import load

    return load(path, format=format, n_features=n_features)


def check_folder(path: str) -> None:
    """Refuse to start work whose result could not be written."""
    if path == "-":
        return
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileError(f"{path}: the directory {folder} does not exist: create it first")
    if Path(path).is_dir():
        raise FileError(f"{path} is a directory: give the name of a file")
    if not os.access(folder, os.W_OK):
        raise FileError(f"{path}: the directory {folder} is not writable: choose another")


def shown(path: str, stream: str = "<stdin>") -> str:
    """Name a file in a message."""
    return stream if path == "-" else path


def stdin_once(*paths: str | None) -> None:
    """Refuse to read two things from one stream."""
    if sum(path == "-" for path in paths) > 1:
        raise InputError("standard input (-) can be read only once: give a file for the other")
