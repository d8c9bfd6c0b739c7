"""Tsivtsivadze, Hofmann & Heskes 2012, Section 5: the experiment that the paper leaves open.

The hypothesis: while a search engine learns from clicks, agreement of two views on unlabelled
documents speeds up the start and reduces the need for exploration.

The protocol, fixed before any test part was looked at:

- *Data.* The five folds of MQ2008 and OHSUMED, features scaled to [0, 1] within each query. Users
  ask queries of the training part, drawn at random, and see lists of ten.
- *Systems.* SPD, SPD-MV (two views, no agreement) and LCRA (two views, ten unlabelled pairs per
  step) differ in nothing else: the same pairs from clicks, hinge loss, one step for each list that
  tells something, constant rate, no penalty, ε-greedy lists with ε of 0, 0.2, 0.5 and 1. Beside
  them, on three seeds, IPS with ε of 0.2, PDGD and DBGD.
- *Parameters.* One setting per set, user and system, for all folds and ε: the one with the highest
  NDCG@10 on the validation parts, mean over the folds, ε of 0 and 0.5, two seeds that are used for
  nothing else, and 10, 30, 100, 300, 1,000 and 2,000 lists.
- *Measured.* The NDCG of the lists shown, cumulative with discount 0.995, and NDCG@10 of the
  weights on the test part after 100 lists and at the end.
- *Tested.* LCRA against SPD and against SPD-MV, for each set, user and ε: a paired t-test over the
  seeds, each seed's value the mean over the folds, and Holm's correction over all cells of a table.
  So p is about other users and other views on these data, not about other data.
- *Decided.* Agreement "speeds up the start" if LCRA is significantly better than SPD-MV after 100
  lists in more than half of the cells and significantly worse in none, "slows it down" if it is the
  other way round, and otherwise the answer is by cell. Exploration is "needed less" if LCRA's gain
  over SPD-MV in cumulative NDCG without exploration exceeds its mean gain with ε of 0.2 and 0.5, by
  the same rule over sets and users. Both are asked of the other measures too, and against SPD,
  where two views also play a part.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from leanrank._files import make_folder
from leanrank._numbers import check_whole
from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.normalizers import QueryMinMaxScaler
from leanrank.errors import DataWarning, FileError, InputError
from leanrank.execution import Executor, make_executor
from leanrank.online.ranker import OnlineRanker
from leanrank.online.simulation import Collection, Simulation, looks, make_collection, simulate
from leanrank.online.users import user
from leanrank.selection.journal import Journal, pack, unpack
from papers.public_sets import fetch
from papers.report import Report
from papers.tsivtsivadze2012_online_tables import Cells, Results, fill_report

TITLE = "Co-regularisation in online learning to rank"
SETS = ("MQ2008", "OHSUMED")
USERS = ("perfect", "navigational", "informational")
EXPLORE = (0.0, 0.2, 0.5, 1.0)
TUNING_LISTS = (10, 30, 100, 300, 1_000, 2_000)
TUNING_SEEDS = (1_000_001, 1_000_002)
TUNING_EXPLORE = (0.0, 0.5)
START = 100

Setting = dict[str, Any]


@dataclass(frozen=True)
class Learner:
    """A learner, what to choose its parameters from, and the ε that it is run with."""

    name: str
    method: str
    settings: tuple[Setting, ...]
    explore: tuple[float, ...] = ()
    most_seeds: int | None = None


def _grid(**values: Iterable[Any]) -> tuple[Setting, ...]:
    return tuple(
        dict(zip(values, each, strict=True)) for each in itertools.product(*values.values())
    )


_RATES = (0.001, 0.01, 0.1)
SYSTEMS = (
    Learner("SPD", "spd", _grid(eta0=_RATES), EXPLORE),
    Learner("SPD-MV", "lcra", _grid(eta0=_RATES, mu=(0.0,)), EXPLORE),
    Learner("LCRA", "lcra", _grid(eta0=_RATES, mu=(0.001, 0.01, 0.1, 1.0)), EXPLORE),
    Learner("PDGD", "pdgd", _grid(eta0=(0.01, 0.1, 1.0)), most_seeds=3),
    Learner("DBGD", "dbgd", _grid(eta0=_RATES), most_seeds=3),
    Learner("IPS", "ips", _grid(eta0=_RATES), (0.2,), most_seeds=3),
)


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
    systems: tuple[Learner, ...] = SYSTEMS,
    users: tuple[str, ...] = USERS,
    tuning_lists: tuple[int, ...] = TUNING_LISTS,
) -> Report:
    """Run the experiment of Section 5 on those of its data sets that are there.

    Parameters
    ----------
    data_dir, out_dir, say, n_jobs
        As for every paper: see ``papers``. Runs that are there are not repeated.
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
    data, missing = {}, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        for name in SETS:
            try:
                data[name] = read_folds(name, data_dir)
            except FileError as error:
                missing.append(f"Left out: {name}, as {error}.")
    if not data:
        raise FileError(f"neither MQ2008 nor OHSUMED is there: {missing[0]}")
    with open_journal(out_dir, seeds, queries) as journal:
        tune = partial(choose, executor=executor, lists=tuning_lists)
        cases = list(itertools.product(data, users))
        results, chosen = collect(
            journal, data, systems, cases, seeds, queries, tune, executor, say
        )
    report.notes += missing
    fill_report(report, results, chosen, _places(queries), START)
    report.write(out_dir)
    return report


def open_journal(out_dir: str | os.PathLike[str] | None, seeds: int, queries: int) -> Journal:
    """Open the file that keeps the runs, one line per system, ε, set and user."""
    protocol = {"seeds": seeds, "queries": queries}
    if out_dir is None:
        return Journal(None, protocol)
    return Journal(make_folder(out_dir) / "runs.jsonl", protocol, "reproduce")


def collect(
    journal: Journal,
    data: Mapping[str, list[Fold]],
    systems: tuple[Learner, ...],
    cases: list[tuple[str, str]],
    seeds: int,
    queries: int,
    tune: Callable[[Learner, list[Fold], str], Setting],
    executor: Executor,
    say: Callable[[str], None],
) -> tuple[Results, dict[str, dict[str, Setting]]]:
    """Return the runs of all systems and the settings chosen; those not in the journal are run."""
    results: Results = {case: Cells() for case in cases}
    chosen: dict[str, dict[str, Setting]] = {f"{name}, {visitor}": {} for name, visitor in cases}
    known = {_key(entry): entry for entry in journal.entries}
    for (system, explore), (name, visitor) in itertools.product(_cells(systems), cases):
        settings, folds = chosen[f"{name}, {visitor}"], data[name]
        cell = {
            "set": name, "user": visitor, "system": system.name, "explore": explore,
            "grid": list(system.settings),
        }  # fmt: skip
        taken = min(seeds, system.most_seeds or seeds)
        if _key(cell) not in known:
            say(f"{system.name}{_said(explore)}: {name}, {visitor}")
            if system.name not in settings:
                settings[system.name] = tune(system, folds, visitor)
            setting = settings[system.name]
            size = queries, _places(queries)
            values = measure(system, setting, explore, folds, visitor, taken, size, executor)
            journal.add({**cell, "setting": setting, "values": pack(values)})
            known[_key(cell)] = journal.entries[-1]
        found = known[_key(cell)]
        settings[system.name] = found["setting"]
        rows = unpack(found["values"]).reshape(taken, -1)
        results[name, visitor][system.name, explore] = rows
    return results, chosen


def _places(queries: int) -> IntArray:
    return np.union1d(looks(queries, per_decade=2), [START])


def _key(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(str(entry[name]) for name in ("set", "user", "system", "explore", "grid"))


def _cells(systems: tuple[Learner, ...]) -> list[tuple[Learner, float | None]]:
    return [(system, explore) for system in systems for explore in system.explore or (None,)]


def _said(explore: float | None) -> str:
    return "" if explore is None else f", ε = {explore:g}"


def read_folds(name: str, data_dir: str | os.PathLike[str] | None) -> list[Fold]:
    """Read a set, with features scaled to [0, 1] within each query."""
    found = fetch(name, data_dir=data_dir, download=False)
    folds = []
    for number in range(1, found.n_folds + 1):
        train, vali, test = (QueryMinMaxScaler().fit_transform(x) for x in found.fold(number))
        folds.append(Fold(make_collection(train), vali, test))
    return folds


def choose(
    system: Learner, folds: list[Fold], visitor: str, executor: Executor, lists: tuple[int, ...]
) -> Setting:
    """Return the setting of the highest validation NDCG, over folds, ε, seeds and lists."""

    def worth(task: tuple[Setting, Fold, float | None, int]) -> float:
        setting, fold, explore, seed = task
        more = (lists[-1], np.array(lists))
        done, _ = _simulate(system, setting, explore, fold, visitor, seed, *more)
        return 0.0 if done is None else float(done.offline(fold.validation).mean())

    explored = TUNING_EXPLORE if len(system.explore) > 1 else system.explore or (None,)
    each = list(itertools.product(folds, explored, TUNING_SEEDS))
    tasks = [(setting, *rest) for setting in system.settings for rest in each]
    values = np.reshape(executor.map(worth, tasks), (len(system.settings), -1))
    return system.settings[int(np.argmax(values.mean(axis=1).round(6)))]


def measure(
    system: Learner,
    setting: Setting,
    explore: float | None,
    folds: list[Fold],
    visitor: str,
    seeds: int,
    size: tuple[int, IntArray],
    executor: Executor,
) -> FloatArray:
    """Run a system on every fold; return one row per seed, the mean over the folds.

    A row has the share of failed runs, steps, cumulative NDCG, and NDCG@10 on the test part at each
    place. A run fails if its steps were so large that the weights overflowed; it counts as zeros.
    """

    def one(seed: int) -> FloatArray:
        rows = []
        for fold in folds:
            done, steps = _simulate(system, setting, explore, fold, visitor, seed, *size)
            if done is None:
                rows.append(np.array([1.0, *np.zeros(2 + len(size[1]))]))
            else:
                rows.append(np.array([0.0, steps, done.cumulative, *done.offline(fold.test)]))
        return np.asarray(np.mean(rows, axis=0))

    return np.array(executor.map(one, range(seeds)))


def _simulate(
    system: Learner,
    setting: Setting,
    explore: float | None,
    fold: Fold,
    visitor: str,
    seed: int,
    queries: int,
    places: IntArray,
) -> tuple[Simulation | None, int]:
    more = setting if explore is None else {**setting, "explore": explore}
    n_features = fold.test.n_features
    ranker = OnlineRanker(system.method, n_features=n_features, random_state=seed, **more)
    try:
        done = simulate(ranker, fold.training, user(visitor), queries, at=places, random_state=seed)
    except InputError:  # the steps were too large
        return None, 0
    return done, ranker.n_steps_
