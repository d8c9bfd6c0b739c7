"""Tsivtsivadze, Hofmann & Heskes 2012, Section 4: does agreement on unlabelled pairs help?

MAP of SPD, SPD-MV and LCRA over random splits of LETOR sets, of whose training documents 20 % keep
their labels; and over the share of labels.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.normalizers import QueryMinMaxScaler
from leanrank.errors import DataWarning, InputError
from leanrank.execution import make_executor
from leanrank.selection.engine import joined_sets
from papers import find_sets
from papers.public_sets import RankingFolds
from papers.report import ComparedTable, Plot, Report, beside
from papers.tsivtsivadze2012_protocol import (
    FOLDS,
    GRID,
    LCRA,
    SPD,
    SPD_MV,
    SYSTEMS,
    Grid,
    PaperRanker,
    SplitResult,
    run_split,
)

TITLE = "Large Scale Co-Regularized Ranking"
SETS = {"OHSUMED": "letor3", "MQ2008": "letor4"}
"""The sets, and the tool whose MAP it is."""

FRACTION = 0.2
CURVE = (0.02, 0.05, 0.1, 0.2, 0.5)
CURVE_SYSTEMS = (SPD, SPD_MV, LCRA[1, 10])


def run(
    data_dir: str | os.PathLike[str] | None = None,
    out_dir: str | os.PathLike[str] | None = None,
    *,
    say: Callable[[str], None] = lambda text: None,
    n_jobs: int | None = None,
    splits: int = 20,
    grid: Grid = GRID,
) -> Report:
    """Run the paper's experiment on OHSUMED and MQ2008, as far as they are there.

    Parameters
    ----------
    data_dir, out_dir, say, n_jobs
        As for every paper: see ``papers``.
    splits : int
        Random splits; the curve over the share of labels takes half as many.
    grid : Grid
        What each system chooses from.
    """
    if splits < 2:
        raise InputError(f"splits={splits} is too few to tell a difference: use at least 2")
    report = Report("tsivtsivadze2012", TITLE)
    findings = []
    executor = make_executor(n_jobs)
    sets, report.notes = find_sets(SETS, data_dir)
    for name, folds in sets.items():
        data = whole_set(folds)

        def one(
            task: tuple[float, int],
            name: str = name,
            data: RankingData = data,
        ) -> dict[str, SplitResult]:
            fraction, seed = task
            say(f"{name}, {100 * fraction:g} % labelled, split {seed + 1}")
            systems = SYSTEMS if fraction == FRACTION else CURVE_SYSTEMS
            return run_split(data, SETS[name], fraction, seed, systems, grid)

        shorter = max(2, splits // 2)
        tasks = [(f, seed) for f in CURVE for seed in range(splits if f == FRACTION else shorter)]
        with warnings.catch_warnings():  # once, since all threads share the filters
            warnings.simplefilter("ignore", DataWarning)
            found = executor.map(one, tasks)
        results = dict(zip(tasks, found, strict=True))
        at_fraction = [results[FRACTION, seed] for seed in range(splits)]
        table, finding = _table(name, at_fraction)
        findings.append(finding)
        report.tables.append(table)
        report.tables.append(_curve_table(name, results, shorter))
        report.plots[f"labelled-{name.lower()}"] = _curve(name, results, shorter)
    report.conclusion = " ".join(findings)
    report.notes += _notes(splits, grid)
    report.write(out_dir)
    return report


def whole_set(folds: RankingFolds) -> RankingData:
    """Put the test parts of the folds together, which are all queries; scale within each."""
    whole = joined_sets(*(folds.fold(number)[2] for number in range(1, folds.n_folds + 1)))
    dense = whole.X.toarray() if whole.is_sparse else whole.X
    scaled: RankingData = QueryMinMaxScaler().fit_transform(whole.replace(X=dense))
    return scaled


def paired_test(differences: FloatArray, test_share: float = 3 / 7) -> tuple[float, float]:
    """Test whether a mean difference over random splits is zero; return t and the p-value.

    The splits share queries, so their differences are not independent. The variance is enlarged for
    it (Nadeau & Bengio 2003): by 1/n + (test part / training part) in place of 1/n.

    >>> t, p = paired_test(np.array([0.01, 0.02, 0.015, 0.012]))
    >>> round(t, 2), round(p, 3)
    (3.98, 0.028)
    """
    from scipy.special import stdtr

    n, mean = len(differences), float(differences.mean())
    deviation = float(differences.std(ddof=1))
    if deviation == 0.0:
        return (0.0, 1.0) if mean == 0.0 else (math.copysign(math.inf, mean), 0.0)
    t = mean / (deviation * math.sqrt(1 / n + test_share))
    return t, 2.0 * float(stdtr(n - 1, -abs(t)))


def _maps(results: list[dict[str, SplitResult]], system: PaperRanker) -> FloatArray:
    return np.array([result[system.name].map for result in results if result])


def _table(name: str, results: list[dict[str, SplitResult]]) -> tuple[ComparedTable, str]:
    """Compare all systems with SPD and SPD-MV; return which differ."""
    against = {SPD.name: _maps(results, SPD), SPD_MV.name: _maps(results, SPD_MV)}
    rows = []
    better: list[str] = []
    worse: list[str] = []
    for system in SYSTEMS:
        maps = _maps(results, system)
        error = maps.std(ddof=1) / math.sqrt(len(maps))
        texts = [f"{maps.mean():.4f}", f"{error:.4f}"]
        for other, theirs in against.items():
            if system.name == other or (system is SPD and other == SPD_MV.name):
                texts += ["", ""]
                continue
            away = maps - theirs
            _, p = paired_test(away)
            texts += [f"{away.mean():+.4f}", f"{p:.3f}"]
            if p < 0.05:
                (better if away.mean() > 0 else worse).append(f"{system.name} over {other}")
        rows.append((system.name, tuple(beside(None, text) for text in texts)))
    found = f"{name}: "
    found += f"significantly better: {', '.join(better)}. " if better else ""
    found += f"significantly worse: {', '.join(worse)}. " if worse else ""
    found += "" if better or worse else "no system differs significantly from SPD or SPD-MV."
    table = ComparedTable(
        title=f"MAP on {name}, {100 * FRACTION:g} % labelled, over {len(results)} splits",
        columns=("MAP", "s.e.", "− SPD", "p", "− SPD-MV", "p"),
        rows=tuple(rows),
    )
    return table, found.strip()


def _curve_table(
    name: str, results: dict[tuple[float, int], dict[str, SplitResult]], splits: int
) -> ComparedTable:
    """List the differences to SPD by the share of labels, with their p-values."""
    rows = []
    for fraction in CURVE:
        here = [results[fraction, seed] for seed in range(splits)]
        base = _maps(here, SPD)
        texts = [f"{base.mean():.4f}"] if len(base) else [""]
        for system in CURVE_SYSTEMS[1:]:
            away = _maps(here, system) - base
            if len(away) > 1:
                texts += [f"{away.mean():+.4f}", f"{paired_test(away)[1]:.3f}"]
            else:
                texts += ["", ""]
        rows.append((f"{100 * fraction:g} %", tuple(beside(None, text) for text in texts)))
    columns = ["SPD"]
    for system in CURVE_SYSTEMS[1:]:
        columns += [f"{system.name} − SPD", "p"]
    return ComparedTable(
        title=f"MAP on {name} by share of labelled documents, over {splits} splits",
        columns=tuple(columns),
        rows=tuple(rows),
    )


def _curve(
    name: str, results: dict[tuple[float, int], dict[str, SplitResult]], splits: int
) -> Plot:
    lines = {}
    shares = [f for f in CURVE if all(results[f, seed] for seed in range(splits))]
    for system in CURVE_SYSTEMS:
        lines[system.name] = [
            float(_maps([results[f, seed] for seed in range(splits)], system).mean())
            for f in shares
        ]
    return Plot(
        title=f"{name}: MAP by share of labelled documents",
        x_label="labelled documents, % of the training part",
        y_label="MAP",
        x=[100 * f for f in shares],
        lines=lines,
    )


def _notes(splits: int, grid: Grid) -> list[str]:
    return [
        "The figures of the paper's Table 1 are not at hand; it says that LCRA beats SPD and "
        "SPD-MV on every set.",
        f"Grids: η₀ {_list(grid.eta0)}; λ {_list(grid.alpha)}, equal in both views; "
        f"μ·l {_list(grid.pull)}. "
        f"{FOLDS}-fold cross-validation by query on the labelled documents; "
        f"{grid.labelled_pairs:,} labelled pairs per model, η = η₀/(1 + λη₀t), averaged over the "
        "later half; hinge loss.",
        f"p is two-sided, of a paired t-test over {splits} random splits (half as many where the "
        "share of labels varies), with the variance corrected for splits that share queries.",
    ]


def _list(values: tuple[float, ...]) -> str:
    return ", ".join(f"{v:g}" for v in values)
