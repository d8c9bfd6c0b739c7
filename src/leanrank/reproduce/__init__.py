"""Published experiments, run again: what was printed beside what comes out here.

Each paper is a module with ``run(data_dir, out_dir, *, say, n_jobs) -> Report``; the module is
loaded when it is asked for.
"""

from __future__ import annotations

import importlib
from typing import Any

PAPERS: dict[str, str] = {
    "cheng2018": "leanrank.reproduce.cheng2018",
    "pahikkala2010": "leanrank.reproduce.pahikkala2010",
    "stevens2013": "leanrank.reproduce.stevens2013",
    "tsivtsivadze2012": "leanrank.reproduce.tsivtsivadze2012",
}
"""The name of each paper on the command line, and its module."""


def get_paper(name: str) -> Any:
    """Give the module of a paper.

    >>> get_paper("pahikkala2010").TITLE
    'Greedy RankRLS: a Linear Time Algorithm for Learning Sparse Ranking Models'
    """
    if name not in PAPERS:
        from leanrank.errors import InputError

        raise InputError(
            f"there is no paper {name!r} to reproduce: choose from {', '.join(PAPERS)}"
        )
    return importlib.import_module(PAPERS[name])
