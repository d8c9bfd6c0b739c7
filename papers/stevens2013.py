"""Stevens, Bengio & Singer 2013, Section 1.5: Domination Rank on LETOR, pictures and news.

The paper's data are not available: its LETOR sets are not named, its pictures are not public and
its news need an agreement. Public or synthetic data of the same shape replace them, so the
published figures are shown for orientation only.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from papers.report import Report
from papers.stevens2013_images import ImageSizes, image_table
from papers.stevens2013_letor import letor_table
from papers.stevens2013_text import text_table

TITLE = "Efficient Learning of Sparse Ranking Functions"


def run(
    data_dir: str | os.PathLike[str] | None = None,
    out_dir: str | os.PathLike[str] | None = None,
    *,
    say: Callable[[str], None] = lambda text: None,
    n_jobs: int | None = None,
    shape: ImageSizes = ImageSizes(),  # noqa: B008
) -> Report:
    """Run the paper's experiments on the data that are available.

    Parameters
    ----------
    data_dir, out_dir, say, n_jobs
        As for every paper: see ``papers``. Tables whose data (the LETOR sets and
        Reuters-21578) are missing are left out, with a note. The last digits of liblinear's results
        may depend on the threads, which share one random generator.
    shape : ImageSizes
        Of the made-up pictures.
    """
    report = Report(
        "stevens2013",
        TITLE,
        conclusion="The published figures come from other data, and stand beside ours to be read, "
        "not to be matched.",
    )
    for table, notes in (
        letor_table(data_dir, say=say),
        image_table(say=say, n_jobs=n_jobs, shape=shape),
        text_table(data_dir, say=say, n_jobs=n_jobs),
    ):
        if table is not None:
            report.tables.append(table)
        report.notes.extend(notes)
    report.write(out_dir)
    return report
