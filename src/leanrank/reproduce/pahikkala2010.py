"""Pahikkala, Airola, Naula & Salakoski 2010, Section 4: Greedy RankRLS on LETOR 4.0.

On each fold the strength λ, and for Greedy RankRLS also the number k of features, are those with
the best MAP on the validation part, to four decimals; among equals the smaller λ, then the smaller
k. The measures are LETOR 4.0's.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.public_sets import RankingFolds, data_directory, fetch
from leanrank.data.ranking_data import RankingData
from leanrank.errors import DataWarning, FileError
from leanrank.metrics import evaluate
from leanrank.rankers.least_squares.greedy_rankrls import GreedyRankRLS
from leanrank.rankers.least_squares.rankrls import RankRLS
from leanrank.rankers.path import measure_models
from leanrank.reproduce.pahikkala2010_published import MEASURES, PUBLISHED, Published
from leanrank.reproduce.plots import Plot
from leanrank.reproduce.report import Cell, ComparedTable, Report

TITLE = "Greedy RankRLS: a Linear Time Algorithm for Learning Sparse Ranking Models"
RANKRLS_EXPONENTS = range(-10, 11)
GREEDY_EXPONENTS = range(11)
CONVENTION = "letor4"


def run(
    data_dir: str | os.PathLike[str] | None = None,
    out_dir: str | os.PathLike[str] | None = None,
    *,
    say: Callable[[str], None] = lambda text: None,
    n_jobs: int | None = None,
) -> Report:
    """Run the paper's experiments on those of its data sets that are there.

    Parameters
    ----------
    data_dir : path, optional
        Where MQ2008 (and MQ2007) are; by default ``$LEANRANK_DATA``.
    out_dir : path, optional
        Where to write report.md, report.json and the plots; by default nothing is written.
    say : callable
        Told what is being done.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    """
    report = Report("pahikkala2010", TITLE)
    for name, published in sorted(PUBLISHED.items(), reverse=True):  # MQ2008 is the smaller
        try:
            folds = fetch(name, data_dir=data_dir, download=False)
        except FileError as error:
            report.notes.append(f"Left out: {name}, as {error}.")
            continue
        _run_set(name, folds, published, report, say, n_jobs)
    if not report.tables:
        folder = data_directory(data_dir)
        raise FileError(f"{folder}: neither MQ2008 nor MQ2007 is there: {report.notes[0]}")
    if out_dir is not None:
        report.write(Path(out_dir))
    return report


@dataclass(frozen=True)
class _Chosen:
    """A model chosen on validation data, measured on test data."""

    exponent: int
    features: tuple[int, ...]
    measures: dict[str, float]


@dataclass(frozen=True)
class _Fold:
    rankrls: _Chosen
    greedy: _Chosen
    curves: dict[str, FloatArray]
    """By measure: exponents × sizes, on the validation part."""


def _run_set(
    name: str,
    folds: RankingFolds,
    published: Published,
    report: Report,
    say: Callable[[str], None],
    n_jobs: int | None,
) -> None:
    found = []
    for number in range(1, folds.n_folds + 1):
        say(f"{name}, fold {number} of {folds.n_folds}")
        train, vali, test = folds.fold(number)
        with warnings.catch_warnings():
            # Sizes that take in constant features, and models of one feature that tie: the
            # experiment looks at all of them.
            warnings.simplefilter("ignore", DataWarning)
            greedy, curves = _greedy(train, vali, test, n_jobs)
            found.append(_Fold(_rankrls(train, vali, test, n_jobs), greedy, curves))
    report.tables.append(_features_table(name, published, found))
    for at, measure in enumerate(MEASURES):
        report.tables.append(_measures_table(name, published, at, measure, found))
    for at, measure in enumerate(("map", "mean_ndcg")):
        mean = np.mean([fold.curves[measure] for fold in found], axis=0)
        number = published.first_figure + at
        report.plots[f"figure{number}"] = Plot(
            title=f"Figure {number}: average {MEASURES[measure]} on validation sets, {name}",
            x_label="number of selected features k",
            y_label=MEASURES[measure],
            x=[float(k) for k in range(1, mean.shape[1] + 1)],
            lines={
                f"λ = 2^{e}": row.tolist() for e, row in zip(GREEDY_EXPONENTS, mean, strict=True)
            },
        )


def _rankrls(
    train: RankingData, vali: RankingData, test: RankingData, n_jobs: int | None
) -> _Chosen:
    path = RankRLS(normalize="none", n_jobs=n_jobs).path(
        train,
        alphas=[2.0**e for e in RANKRLS_EXPONENTS],
        validation=vali,
        measures=["map"],
        convention=CONVENTION,
    )
    ascending = path.measures["map"][::-1]
    best = first_best(ascending)
    return _measured(RANKRLS_EXPONENTS[best], path.coefs[::-1][best], (), test)


def _greedy(
    train: RankingData, vali: RankingData, test: RankingData, n_jobs: int | None
) -> tuple[_Chosen, dict[str, FloatArray]]:
    rankers = []
    curves: dict[str, list[FloatArray]] = {"map": [], "mean_ndcg": []}
    for exponent in GREEDY_EXPONENTS:
        ranker = GreedyRankRLS(
            train.n_features, alpha=2.0**exponent, normalize="none", n_jobs=n_jobs
        ).fit(train)
        measured = measure_models(ranker.coef_path_, vali, list(curves), CONVENTION)
        for name, curve in curves.items():
            curve.append(measured[name])
        rankers.append(ranker)
    joined = {name: np.array(rows) for name, rows in curves.items()}
    row, column = divmod(first_best(joined["map"].ravel()), joined["map"].shape[1])
    ranker = rankers[row].resize(column + 1)
    features = tuple(int(f) + 1 for f in ranker.selected_)
    return _measured(GREEDY_EXPONENTS[row], ranker.coef_, features, test), joined


def first_best(values: FloatArray) -> int:
    """Give the position of the largest value to four decimals, the first among equals.

    >>> first_best(np.array([0.1, 0.50002, 0.50004, 0.2]))
    1
    """
    return int(np.argmax(np.round(values, 4)))


def _measured(
    exponent: int, coef: FloatArray, features: tuple[int, ...], test: RankingData
) -> _Chosen:
    scores = np.asarray(test.X @ coef)
    result = evaluate(test, scores, measures=list(MEASURES), convention=CONVENTION)
    return _Chosen(exponent, features, result.means)


def _features_table(name: str, published: Published, found: list[_Fold]) -> ComparedTable:
    folds = range(len(found))
    shown = max(len(printed) for printed in published.selected)
    rows = [
        (
            "log2 λ",
            tuple(Cell(str(published.exponents[f]), str(found[f].greedy.exponent)) for f in folds),
        ),
        (
            "k",
            tuple(Cell(str(published.sizes[f]), str(len(found[f].greedy.features))) for f in folds),
        ),
    ]
    for at in range(shown):
        cells = tuple(_entry(published.selected[f], found[f].greedy.features, at) for f in folds)
        rows.append((f"selected {at + 1}", cells))
    return ComparedTable(
        title=f"Table {published.first_table}: selected features on {name}, by fold",
        columns=tuple(str(f + 1) for f in folds),
        rows=tuple(rows),
    )


def _measures_table(
    name: str, published: Published, at: int, measure: str, found: list[_Fold]
) -> ComparedTable:
    ours: dict[str, list[float] | None] = {
        "GRankRLS": [fold.greedy.measures[measure] for fold in found],
        "RankRLS": [fold.rankrls.measures[measure] for fold in found],
        "RankSVM": None,  # taken by the authors from the distribution of the data
    }
    for values in ours.values():
        if values is not None:
            values.append(sum(values) / len(values))
    printed = published.measures[measure]
    rows = []
    for row in range(len(found) + 1):
        cells = []
        for method in printed:
            values = ours[method]
            cells.append(
                Cell(printed[method][row], None if values is None else f"{values[row]:.4f}")
            )
        rows.append((str(row + 1) if row < len(found) else "avg", tuple(cells)))
    return ComparedTable(
        title=f"Table {published.measures_table + at}: {MEASURES[measure]} on {name}",
        columns=tuple(printed),
        rows=tuple(rows),
    )


def _entry(printed: tuple[int, ...], ours: tuple[int, ...], at: int) -> Cell:
    """Compare one place of two lists of features; where both have ended, there is nothing."""
    if at >= len(printed) and at >= len(ours):
        return Cell()
    return Cell(*(str(list_[at]) if at < len(list_) else "none" for list_ in (printed, ours)))
