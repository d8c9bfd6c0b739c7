"""Tsivtsivadze, Hofmann & Heskes 2012, Section 5: the experiment that the paper leaves open.

The hypothesis: while a search engine learns from clicks, agreement of two views on unlabelled
documents speeds up the start and reduces the need for exploration.

The protocol, fixed before any test part was looked at:

- *Data.* The five folds of MQ2008 and OHSUMED, features scaled to [0, 1] within each query. Users
  ask queries of the training part, drawn at random, and see lists of ten.
- *Systems.* SPD, SPD-MV (two views, no agreement) and LCRA (two views, ten unlabelled pairs per
  step) differ in nothing else: the same pairs from clicks, hinge loss, one step for each list that
  tells something, constant rate, no penalty, ε-greedy lists with ε from 0 to 1. Beside them
  learners that explore by themselves, and IPS with ε = 0.2.
- *Parameters.* One setting per set, user and system, for all folds and ε: the one with the highest
  NDCG@10 on the validation parts, mean over the folds, ε of 0, 0.4 and 0.8, two seeds that are used
  for nothing else, and 10, 30, 100, 300, 1,000 and 2,000 lists.
- *Measured.* The NDCG of the lists shown, cumulative with discount 0.995, and NDCG@10 of the
  weights on the test part after 100 lists and at the end.
- *Tested.* LCRA against SPD and against SPD-MV, for each set, user and ε: a paired t-test over the
  seeds, each seed's value the mean over the folds, and Holm's correction over all cells of a table.
  So p is about other users and other views on these data, not about other data.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._numbers import check_whole
from leanrank._typing import FloatArray, IntArray
from leanrank.data.normalize import QueryMinMaxScaler
from leanrank.data.public_sets import fetch
from leanrank.data.ranking_data import RankingData
from leanrank.errors import DataWarning, FileError, InputError
from leanrank.execution import Executor, make_executor
from leanrank.metrics.comparison import Comparison, compare_values
from leanrank.online.learners.ranker import OnlineRanker
from leanrank.online.simulation import Collection, looks, make_collection, simulate
from leanrank.online.users import user
from leanrank.reproduce.report import ComparedTable, Plot, Report, beside
from leanrank.selection.comparison import holm

TITLE = "Co-regularisation in online learning to rank"
SETS = ("MQ2008", "OHSUMED")
USERS = ("perfect", "navigational", "informational")
EXPLORE = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
TUNING_LISTS = (10, 30, 100, 300, 1_000, 2_000)
TUNING_SEEDS = (1_000_001, 1_000_002)
START = 100
SLOW_SEEDS = 3
TUNING_EXPLORE = (0.0, 0.4, 0.8)

Setting = dict[str, Any]
Runs = dict[tuple[str, float, int], FloatArray]
"""By system, ε and seed: the cumulative NDCG, then NDCG@10 on the test part at each look, one row
per fold."""


@dataclass(frozen=True)
class System:
    """A learner, what to choose its parameters from, and the ε that it is run with."""

    name: str
    method: str
    settings: tuple[Setting, ...]
    explore: tuple[float, ...] = ()
    slow: bool = False


def _grid(**values: Iterable[Any]) -> tuple[Setting, ...]:
    return tuple(
        dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())
    )


_RATES = (0.001, 0.01, 0.1)
SPD = System("SPD", "spd", _grid(eta0=_RATES), EXPLORE)
SPD_MV = System("SPD-MV", "lcra", _grid(eta0=_RATES, mu=(0.0,)), EXPLORE)
LCRA = System("LCRA", "lcra", _grid(eta0=_RATES, mu=(0.001, 0.01, 0.1, 1.0)), EXPLORE)
OTHERS = (
    System("PDGD", "pdgd", _grid(eta0=(0.01, 0.1, 1.0))),
    System("IPS", "ips", _grid(eta0=_RATES), (0.2,)),
    System("DBGD", "dbgd", _grid(eta0=_RATES), slow=True),
    System("MGD", "mgd", _grid(eta0=_RATES), slow=True),
)
SYSTEMS = (SPD, SPD_MV, LCRA, *OTHERS)


@dataclass(frozen=True)
class Fold:
    """One fold: queries to learn from, prepared, and those to measure on."""

    training: Collection
    validation: RankingData
    test: RankingData


def run(
    data_dir: str | os.PathLike[str] | None = None,
    out_dir: str | os.PathLike[str] | None = None,
    *,
    say: Callable[[str], None] = lambda text: None,
    n_jobs: int | None = None,
    seeds: int = 25,
    queries: int = 10_000,
    systems: tuple[System, ...] = SYSTEMS,
) -> Report:
    """Run the experiment of Section 5 on those of its data sets that are there.

    Parameters
    ----------
    data_dir, out_dir, say, n_jobs
        As for every reproduction.
    seeds : int
        Runs per fold; slow learners take at most three.
    queries : int
        Lists per run.
    """
    if check_whole("seeds", seeds) < 2:
        raise InputError("seeds=1 is too few to tell a difference: use at least 2")
    if check_whole("queries", queries) < START:
        raise InputError(f"queries={queries} is too few: use at least {START}")
    report, executor = Report("tsivtsivadze2012-online", TITLE), make_executor(n_jobs)
    places = np.union1d(looks(queries, per_decade=3), [START])
    results: dict[tuple[str, str], Runs] = {}
    chosen: list[tuple[str, tuple[str, ...]]] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for name in SETS:
            try:
                folds = read_folds(name, data_dir)
            except FileError as error:
                report.notes.append(f"Left out: {name}, as {error}.")
                continue
            for visitor in USERS:
                settings = {
                    system.name: choose(system, folds, visitor, executor) for system in systems
                }
                chosen.append((f"{name}, {visitor}", tuple(map(_shown, settings.values()))))
                say(f"{name}, {visitor}: parameters are chosen")
                results[name, visitor] = measure(
                    systems,
                    settings,
                    folds,
                    visitor,
                    (range(seeds), queries, places),
                    executor,
                    say,
                )
    if not results:
        raise FileError(f"neither MQ2008 nor OHSUMED is there: {report.notes[0]}")
    fill_report(report, results, systems, places, seeds)
    report.tables.append(
        ComparedTable(
            "Parameters chosen on the validation parts",
            tuple(system.name for system in systems),
            tuple((row, tuple(beside(None, cell) for cell in cells)) for row, cells in chosen),
        )
    )
    if out_dir is not None:
        report.write(Path(out_dir))
    return report


def read_folds(name: str, data_dir: str | os.PathLike[str] | None) -> list[Fold]:
    """Read a set, with features scaled to [0, 1] within each query."""
    found = fetch(name, data_dir=data_dir, download=False)
    folds = []
    for number in range(1, found.n_folds + 1):
        train, vali, test = (QueryMinMaxScaler().fit_transform(x) for x in found.fold(number))
        folds.append(Fold(make_collection(train), vali, test))
    return folds


def choose(system: System, folds: list[Fold], visitor: str, executor: Executor) -> Setting:
    """Return the setting of the highest validation NDCG, over folds, ε, seeds and lists."""

    def worth(task: tuple[Setting, Fold, float | None, int]) -> float:
        setting, fold, explore, seed = task
        ranker = _ranker(system, fold, setting, explore, seed)
        try:
            run = simulate(
                ranker, fold.training, user(visitor), TUNING_LISTS[-1], at=TUNING_LISTS,
                random_state=seed,
            )  # fmt: skip
        except InputError:  # the steps were too large
            return 0.0
        return float(run.offline(fold.validation).mean())

    if len(system.settings) == 1:
        return system.settings[0]
    explored = TUNING_EXPLORE if system.explore == EXPLORE else system.explore or (None,)
    each = list(itertools.product(folds, explored, TUNING_SEEDS))
    tasks = [(setting, *rest) for setting in system.settings for rest in each]
    values = np.reshape(executor.map(worth, tasks), (len(system.settings), -1))
    return system.settings[int(np.argmax(values.mean(axis=1).round(6)))]


def measure(
    systems: tuple[System, ...],
    settings: Mapping[str, Setting],
    folds: list[Fold],
    visitor: str,
    size: tuple[Sequence[int], int, IntArray],
    executor: Executor,
    say: Callable[[str], None],
) -> Runs:
    """Run every system with its setting, for every ε, seed and fold."""
    seeds, queries, places = size
    n_measured = 1 + len(places)

    def one(task: tuple[System, float | None, int]) -> FloatArray:
        system, explore, seed = task
        rows = []
        for fold in folds:
            ranker = _ranker(system, fold, settings[system.name], explore, seed)
            try:
                run = simulate(
                    ranker, fold.training, user(visitor), queries, at=places, random_state=seed
                )
            except InputError:  # the steps were too large: worth nothing
                rows.append(np.zeros(n_measured))
                continue
            rows.append(np.array([run.cumulative, *run.offline(fold.test)]))
        return np.array(rows)

    out: Runs = {}
    for system in systems:
        for explore in system.explore or (None,):
            taken = [seed for seed in seeds if seed < SLOW_SEEDS or not system.slow]
            say(f"{visitor}, {system.name}, ε {'its own' if explore is None else explore}")
            found = executor.map(one, [(system, explore, seed) for seed in taken])
            for seed, rows in zip(taken, found, strict=True):
                out[system.name, -1.0 if explore is None else explore, seed] = rows
    return out


def _ranker(
    system: System, fold: Fold, setting: Setting, explore: float | None, seed: int
) -> OnlineRanker:
    more = setting if explore is None else {**setting, "explore": explore}
    n_features = fold.test.n_features
    return OnlineRanker(system.method, n_features=n_features, random_state=seed, **more)


def by_seed(runs: Runs, system: str, explore: float, column: int) -> FloatArray:
    """Return one value per seed, the mean over the folds."""
    cells = [rows for (name, e, _), rows in runs.items() if (name, e) == (system, explore)]
    return np.array([rows[:, column].mean() for rows in cells])


def fill_report(
    report: Report,
    results: Mapping[tuple[str, str], Runs],
    systems: tuple[System, ...],
    places: IntArray,
    seeds: int,
) -> None:
    """Put tables, charts and the conclusion into a report."""
    start = 1 + int(np.searchsorted(places, START))
    columns = {
        "Cumulative NDCG of the lists shown": 0,
        f"NDCG@10 on test data after {START} lists": start,
        f"NDCG@10 on test data after {places[-1]:,} lists": len(places),
    }
    findings = []
    for against in (SPD, SPD_MV):
        for title, column in columns.items():
            table, better, worse, n = _compared(title, column, results, against)
            report.tables.append(table)
            findings.append(
                f"{title}: LCRA is significantly better than {against.name} in {better} and worse "
                f"in {worse} of {n} cells."
            )
    report.tables += [_exploration(results), _others(results, systems, places)]
    for (name, visitor), runs in results.items():
        for explore in (0.0, 0.4):
            plot = f"online-{name}-{visitor}-{explore:g}".lower()
            report.plots[plot] = _curves(name, visitor, explore, runs, systems, places)
    report.conclusion = " ".join(findings)
    report.notes += [
        f"{seeds} seeds, {places[-1]:,} lists per run, five folds; slow learners (DBGD, MGD) "
        f"{min(seeds, SLOW_SEEDS)} seeds.",
        "Intervals hold 95 % of the mean difference over seeds; p is two-sided, of a paired t-test "
        "over the seeds, corrected by Holm's method over all cells of its table.",
    ]


def _compared(
    title: str, column: int, results: Mapping[tuple[str, str], Runs], against: System
) -> tuple[ComparedTable, int, int, int]:
    found: dict[str, Comparison] = {}
    for (name, visitor), runs in results.items():
        for explore in EXPLORE:
            theirs = by_seed(runs, against.name, explore, column)
            ours = by_seed(runs, LCRA.name, explore, column)
            found[f"{name}, {visitor}, ε = {explore:g}"] = compare_values(theirs, ours)
    corrected = holm({cell: one.p_t_test for cell, one in found.items()})
    better = sum(p < 0.05 and found[cell].difference > 0 for cell, p in corrected.items())
    worse = sum(p < 0.05 and found[cell].difference < 0 for cell, p in corrected.items())
    digits = 2 if column == 0 else 4
    rows = []
    for cell, one in found.items():
        low, high = one.interval
        texts = (
            f"{one.mean_a:.{digits}f}",
            f"{one.mean_b:.{digits}f}",
            f"{one.difference:+.{digits}f}",
            f"{low:+.{digits}f} to {high:+.{digits}f}",
            f"{corrected[cell]:.3f}",
        )
        rows.append((cell, tuple(beside(None, text) for text in texts)))
    heads = (against.name, "LCRA", "difference", "95 % interval", "p (Holm)")
    table = ComparedTable(f"{title}: LCRA against {against.name}", heads, tuple(rows))
    return table, better, worse, len(found)


def _exploration(results: Mapping[tuple[str, str], Runs]) -> ComparedTable:
    """Show which ε serves best, and what LCRA without exploration loses against it."""
    rows = []
    for (name, visitor), runs in results.items():
        texts = []
        for system in (SPD, SPD_MV, LCRA):
            means = [by_seed(runs, system.name, e, 0).mean() for e in EXPLORE]
            at = int(np.argmax(means))
            texts += [f"{EXPLORE[at]:g}", f"{means[at]:.2f}"]
            if system is SPD:
                best = by_seed(runs, SPD.name, EXPLORE[at], 0)
        bare = compare_values(best, by_seed(runs, LCRA.name, 0.0, 0))
        texts += [f"{bare.difference:+.2f} ({bare.interval[0]:+.2f} to {bare.interval[1]:+.2f})"]
        rows.append((f"{name}, {visitor}", tuple(beside(None, text) for text in texts)))
    heads = [f"{name}{what}" for name in ("SPD", "SPD-MV", "LCRA") for what in (", best ε", "")]
    return ComparedTable(
        "Exploration that serves users best (cumulative NDCG)",
        (*heads, "LCRA, ε = 0, less best SPD"),
        tuple(rows),
    )


def _others(
    results: Mapping[tuple[str, str], Runs], systems: tuple[System, ...], places: IntArray
) -> ComparedTable:
    """List all systems, the ε-greedy ones with ε = 0.2."""
    rows = []
    for (name, visitor), runs in results.items():
        for system in systems:
            explore = 0.2 if system.explore else -1.0
            texts = []
            for column in (0, len(places)):
                values = by_seed(runs, system.name, explore, column)
                low, high = compare_values(np.zeros(len(values)), values).interval
                texts.append(f"{values.mean():.{4 if column else 2}f} ± {(high - low) / 2:.3f}")
            title = f"{name}, {visitor}, {system.name}"
            rows.append((title, tuple(beside(None, text) for text in texts)))
    heads = ("cumulative NDCG", f"test NDCG@10 after {places[-1]:,} lists")
    return ComparedTable("All learners; ε-greedy ones with ε = 0.2", heads, tuple(rows))


def _curves(
    name: str,
    visitor: str,
    explore: float,
    runs: Runs,
    systems: tuple[System, ...],
    places: IntArray,
) -> Plot:
    lines: dict[str, list[float]] = {}
    bands: dict[str, list[tuple[float, float]]] = {}
    for system in systems:
        own = explore if system.explore == EXPLORE else (*system.explore, -1.0)[0]
        columns = [by_seed(runs, system.name, own, 1 + at) for at in range(len(places))]
        lines[system.name] = [float(each.mean()) for each in columns]
        bands[system.name] = [
            compare_values(np.zeros(len(each)), each).interval for each in columns
        ]
    return Plot(
        title=f"{name}, {visitor} users, ε = {explore:g}: NDCG@10 on test data while learning",
        x_label="lists shown",
        y_label="NDCG@10",
        x=places.tolist(),
        lines=lines,
        bands=bands,
        log_x=True,
    )


def _shown(setting: Setting) -> str:
    names = {"eta0": "η₀", "mu": "μ"}
    return ", ".join(f"{names[name]} {value:g}" for name, value in setting.items() if value)
