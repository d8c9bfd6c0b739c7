"""``leanrank train --on-disk``: a file beside the data that is mapped instead of read."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leanrank._files import file_identity
from leanrank.cli.datafiles import check_folder, read_options
from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.data import RankingData


def store_beside(
    source: str, format: str | None, given: Sequence[str] | None, say: Callable[[str], None]
) -> tuple[RankingData, str]:
    """Map the store of a source, made if it is not there or the source has changed.

    Returns
    -------
    data : RankingData
    note : str
        What became of the file, for people.
    """
    from leanrank.data import RankingData, write_store
    from leanrank.data.formats import format_name
    from leanrank.data.store import store_notes

    if source == "-":
        raise InputError("--on-disk needs a place for its file, and standard input has none")
    if format_name(source, format) == "arrow":
        raise InputError(f"{source} is mapped as it is, if it can be: leave --on-disk out")
    target = f"{source.rstrip('/').replace('*', '_')}.arrow"
    made_from = _identity(source, format, given)
    if Path(target).exists():
        noted = store_notes(target)
        if noted == made_from:
            return RankingData.open(target), f"{target}, made before"
        if noted is None:
            raise InputError(
                f"{target} is in the way, and was not made from {source} with --on-disk: rename "
                "it, or train on it as it is"
            )
    check_folder(target)
    say(f"Writing {target}")
    options = read_options(source, format, given)
    write_store(source, target, format=format, made_from=made_from, **options)
    return RankingData.open(target), f"written to {target}"


def _identity(source: str, format: str | None, given: Sequence[str] | None) -> dict[str, Any]:
    """Describe the files of a source and how they are read, so that a change is noticed."""
    from leanrank.data.formats import check_exists
    from leanrank.data.tables.files import part_files

    check_exists(source)
    path = Path(source)
    files = part_files(path) if path.is_dir() or "*" in path.name else [path]
    facts = [{**file_identity(str(file)), "changed": os.stat(file).st_mtime_ns} for file in files]
    return {"files": facts, "format": format, "read": list(given or [])}
