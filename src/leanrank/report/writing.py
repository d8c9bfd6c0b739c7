"""Writing a report: one HTML file that needs nothing but itself."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from leanrank._files import atomic_write
from leanrank.report.contents import report_contents
from leanrank.report.page import make_page

if TYPE_CHECKING:
    from leanrank.data.ranking_data import RankingData
    from leanrank.selection.study import Study


def write_report(
    study: Study,
    path: str | os.PathLike[str],
    *,
    test: RankingData | None = None,
    title: str | None = None,
) -> None:
    """Write what a study found as one HTML file that opens from disk.

    It shows the chosen model against baselines, the accuracy-sparsity front to choose another model
    from, coefficient paths, features, single queries with what their scores are made of, and what
    is odd about the data. It loads nothing from a network, and every name in it is only text.

    Parameters
    ----------
    study : Study
        From ``leanrank.selection.tune``, or ``study_of_model`` for a model that is there.
    path : path
        Where to write; ``"-"`` is standard output.
    test : RankingData, optional
        Held-out data, to be measured for the models of the front and the baselines.
    title : str, optional
    """
    page = make_page(report_contents(study, test=test, title=title))
    with atomic_write(path) as stream:
        stream.write(page)
