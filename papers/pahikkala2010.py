"""Pahikkala, Airola, Naula & Salakoski 2010, Section 4: Greedy RankRLS on LETOR 4.0.

On each fold the strength λ, and for Greedy RankRLS also the number k of features, are those with
the best MAP on the validation part, to four decimals; among equals the smaller λ, then the smaller
k. The measures are LETOR 4.0's, with ties in the order of the file.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import DataWarning
from leanrank.execution import make_executor
from leanrank.metrics import evaluate
from leanrank.registry import AlphaPath, Sizes, Space
from leanrank.selection.candidate import Candidate
from leanrank.selection.engine import Split, make_ranker, run_space
from papers import find_sets, published
from papers.public_sets import RankingFolds
from papers.report import Cell, ComparedTable, Plot, Report

TITLE = "Greedy RankRLS: a Linear Time Algorithm for Learning Sparse Ranking Models"
CONVENTION = "letor4"
MEASURES = {"map": "MAP", "p@10": "P@10", "mean_ndcg": "MeanNDCG", "ndcg@10": "NDCG@10"}
"""The measures in the order of the tables, and their printed names."""

CURVES = ("map", "mean_ndcg")
GREEDY_EXPONENTS = range(11)
RANKRLS = Space(
    "rankrls", {"normalize": "none"}, sweep=AlphaPath(tuple(2.0**e for e in range(-10, 11)))
)


def run(
    data_dir: str | os.PathLike[str] | None = None,
    out_dir: str | os.PathLike[str] | None = None,
    *,
    say: Callable[[str], None] = lambda text: None,
    n_jobs: int | None = None,
) -> Report:
    """Run the paper's experiments on MQ2008 and MQ2007, as far as they are there.

    The parameters are those of every paper: see ``papers``.
    """
    report = Report("pahikkala2010", TITLE)
    printed = published("pahikkala2010")
    sets, report.notes = find_sets(sorted(printed, reverse=True), data_dir)
    for name, folds in sets.items():
        _run_set(name, folds, printed[name], report, say, n_jobs)
    report.write(out_dir)
    return report


class _Fold(NamedTuple):
    rankrls: dict[str, float]  # test measures
    greedy: dict[str, float]
    exponent: int
    features: tuple[int, ...]  # from 1
    curves: FloatArray  # CURVES × exponents × sizes, on the validation part


def _run_set(
    name: str,
    folds: RankingFolds,
    printed: dict[str, Any],
    report: Report,
    say: Callable[[str], None],
    n_jobs: int | None,
) -> None:
    def run_fold(number: int) -> _Fold:
        say(f"{name}, fold {number} of {folds.n_folds}")
        train, vali, test = folds.fold(number)
        split = Split(train, vali, CURVES, CONVENTION, average_ties=False)

        def fit(space: Space, trial: Candidate) -> tuple[Any, dict[str, float]]:
            ranker = make_ranker(space, trial.parameters, split.judge).fit(train)
            scores = ranker.predict(test)
            found = evaluate(test, scores, measures=list(MEASURES), convention=CONVENTION)
            return ranker, found.means

        path = list(run_space(RANKRLS, split))[::-1]
        space = Space(
            "greedyrankrls",
            {"normalize": "none"},
            {"alpha": tuple(2.0**e for e in GREEDY_EXPONENTS)},
            Sizes(train.n_features),
        )
        trials = list(run_space(space, split))
        chosen = trials[first_best(trials)]
        greedy, measures = fit(space, chosen)
        shape = (len(GREEDY_EXPONENTS), -1)
        return _Fold(
            fit(RANKRLS, path[first_best(path)])[1],
            measures,
            int(np.log2(chosen.parameters["alpha"])),
            tuple(int(f) + 1 for f in greedy.selected_),
            np.array([np.reshape([t.means[m] for t in trials], shape) for m in CURVES]),
        )

    with warnings.catch_warnings():
        # constant features and tied scores are expected here
        warnings.simplefilter("ignore", DataWarning)
        found = make_executor(n_jobs).map(run_fold, range(1, folds.n_folds + 1))
    report.tables.append(_features_table(name, printed, found))
    for at, measure in enumerate(MEASURES):
        report.tables.append(_measures_table(name, printed, at, measure, found))
    for at, (measure, mean) in enumerate(
        zip(CURVES, np.mean([fold.curves for fold in found], axis=0), strict=True)
    ):
        number = printed["first_figure"] + at
        report.plots[f"figure{number}"] = Plot(
            title=f"Figure {number}: average {MEASURES[measure]} on validation sets, {name}",
            x_label="number of selected features k",
            y_label=MEASURES[measure],
            x=[float(k) for k in range(1, mean.shape[1] + 1)],
            lines={
                f"λ = 2^{e}": row.tolist() for e, row in zip(GREEDY_EXPONENTS, mean, strict=True)
            },
        )


def first_best(trials: list[Candidate]) -> int:
    """Return the position of the highest MAP to four decimals, the first among equals.

    >>> from leanrank.model import Model
    >>> model = Model.from_coef([1.0])
    >>> values = [{"map": np.array([v])} for v in (0.1, 0.50002, 0.50004, 0.2)]
    >>> first_best([Candidate.of("rankrls", {}, model, each) for each in values])
    1
    """
    return int(np.argmax(np.round(np.nan_to_num([t.means["map"] for t in trials]), 4)))


def _features_table(name: str, printed: dict[str, Any], found: list[_Fold]) -> ComparedTable:
    folds = list(enumerate(found))
    rows = [
        ("log2 λ", [Cell(str(printed["exponents"][f]), str(fold.exponent)) for f, fold in folds]),
        ("k", [Cell(str(printed["sizes"][f]), str(len(fold.features))) for f, fold in folds]),
    ]
    for at in range(max(map(len, printed["selected"]))):
        cells = [_entry(printed["selected"][f], fold.features, at) for f, fold in folds]
        rows.append((f"selected {at + 1}", cells))
    return ComparedTable(
        title=f"Table {printed['first_table']}: selected features on {name}, by fold",
        columns=tuple(str(f + 1) for f, _ in folds),
        rows=tuple((label, tuple(cells)) for label, cells in rows),
    )


def _measures_table(
    name: str, printed: dict[str, Any], at: int, measure: str, found: list[_Fold]
) -> ComparedTable:
    ours = {
        "GRankRLS": [fold.greedy[measure] for fold in found],
        "RankRLS": [fold.rankrls[measure] for fold in found],
    }  # the authors took RankSVM from the distribution of the data
    columns = printed["measures"][measure]
    texts = {
        method: [f"{v:.4f}" for v in (*values, sum(values) / len(values))]
        for method, values in ours.items()
    }
    rows = []
    for row in range(len(found) + 1):
        label = str(row + 1) if row < len(found) else "avg"
        cells = (
            Cell(figures[row], texts[method][row] if method in texts else None)
            for method, figures in columns.items()
        )
        rows.append((label, tuple(cells)))
    return ComparedTable(
        title=f"Table {printed['measures_table'] + at}: {MEASURES[measure]} on {name}",
        columns=tuple(columns),
        rows=tuple(rows),
    )


def _entry(printed: list[int], ours: tuple[int, ...], at: int) -> Cell:
    """Compare one position of two lists of features; empty where both have ended."""
    if at >= len(printed) and at >= len(ours):
        return Cell()
    first, second = (str(some[at]) if at < len(some) else "none" for some in (printed, ours))
    return Cell(first, second)
