"""Published experiments, run again: printed figures beside ours.

Each paper is a module with ``run(data_dir, out_dir, *, say, n_jobs) -> Report``, which runs its
experiments on those of its data sets that are there; the module is loaded on first use. Its printed
figures are in ``published``. The parameters that all have:

data_dir : path, optional
    Where the data sets are; by default ``$LEANRANK_DATA``.
out_dir : path, optional
    Where to write report.md, report.json and the plots; by default nothing is written.
say : callable
    Called with what is being done.
n_jobs : int, optional
    Threads; the result does not depend on it, but for times.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

PAPERS = ("cheng2018", "pahikkala2010", "stevens2013", "tsivtsivadze2012")


def get_paper(name: str, *, online: bool = False) -> Any:
    """Return the module of a paper, or of the experiment with clicks that it leaves open.

    >>> get_paper("pahikkala2010").TITLE
    'Greedy RankRLS: a Linear Time Algorithm for Learning Sparse Ranking Models'
    """
    if name not in PAPERS:
        from leanrank.errors import InputError

        raise InputError(
            f"there is no paper {name!r} to reproduce: choose from {', '.join(PAPERS)}"
        )
    if online and name != "tsivtsivadze2012":
        from leanrank.errors import InputError

        raise InputError(f"{name} has no experiment with clicks: leave out --online")
    return importlib.import_module(f"papers.{name}{'_online' * online}")


def find_sets(names: Iterable[str], data_dir: Any) -> tuple[dict[str, Any], list[str]]:
    """Return those of some public sets that are there, and a note on each of the others."""
    from leanrank.errors import FileError
    from papers.public_sets import data_directory, fetch

    found, notes = {}, []
    for name in names:
        try:
            found[name] = fetch(name, data_dir=data_dir, download=False)
        except FileError as error:
            notes.append(f"Left out: {name}, as {error}.")
    if not found:
        folder, listed = data_directory(data_dir), ", ".join(names)
        raise FileError(f"{folder}: none of {listed} is there: {notes[0]}")
    return found, notes


def published(paper: str) -> dict[str, Any]:
    """Return the printed figures of a paper, as text.

    >>> published("stevens2013")["letor"]["Margin"]
    ['2.75', '2.38', '3.62']
    """
    file = files("papers").joinpath("published", f"{paper}.json")
    figures: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return figures
