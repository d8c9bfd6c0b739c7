"""What ``leanrank tune`` loses against the best single system chosen with hindsight.

On every fold each system is fitted with its parameters chosen on the validation part, as
``leanrank compare`` does, and ``leanrank tune`` searches with each budget (``--budget
10s,60s,300s``) on one thread. A budget is processor time here, so that other load on the machine
does not shorten a search. All are measured on the test part. The best single system is the one with
the best mean over the test parts of a set: a choice that nobody can make beforehand. The sets are
MQ2008 and OHSUMED (with ``--data``) and four made-up worlds. ``--before DIR`` runs the search of
another source tree as well, ``--repeat N`` takes N of five folds, and ``--reports DIR`` keeps each
result in a file, so that a run goes on where the one before ended. *Refit both*: the chosen model,
fitted to the training and the validation part together; all others learn from the training part
only.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Kept, Options, Table
from benchmarks.tune.trees import CONVENTIONS, SEARCH, WIDTHS
from leanrank import RankingData, dump_letor, load_letor, load_model
from leanrank.data.scaling.spread import scale_wanted
from leanrank.metrics import compare_values
from leanrank.metrics.judge import Judge
from leanrank.selection import Split, fit_system
from leanrank.selection.tuning import default_systems

MEASURE = "ndcg@10"
N_FOLDS = 5
PARTS = ("train", "vali", "test")
Shape = Callable[[np.ndarray[Any, Any]], np.ndarray[Any, Any]]
WORLDS: dict[str, tuple[int, int, Shape]] = {
    "linear": (20, 5, lambda X: X),
    "saturating": (20, 5, lambda X: np.minimum(X, 0.0)),
    "step-like": (20, 5, lambda X: (X > 0.5).astype(float)),
    "many weak": (100, 100, lambda X: X),
}
"""Features, how many of them count, and how a feature acts."""


def run(options: Options) -> list[Table]:
    budgets = (options.budget or ("5s" if options.quick else "10s,60s,300s")).split(",")
    names = [*(CONVENTIONS if options.data is not None else ()), *WORLDS]
    folds = range(1, 1 + min(N_FOLDS, 1 if options.quick else options.repeat))
    with tempfile.TemporaryDirectory() as scratch:
        kept = Kept((options.reports or Path(scratch)) / "regret.jsonl")
        table = Table(f"Regret of tune by {MEASURE} on the test parts of {len(folds)} folds")
        for name in names:
            if options.only in (None, name):
                for fold in folds:
                    _one_fold(options, name, fold, budgets, kept)
                _add_rows(table, name, folds, kept)
    table.note = (
        "Regret: the mean of the best single system, chosen with hindsight, less that of tune; "
        "p: paired randomisation test over all test queries. The best of many systems looks better "
        "by chance on the queries that chose it, so the last columns take for each fold the system "
        "that is best on the test parts of the other folds."
    )
    return [table]


def _kept(kept: Kept, of: tuple[Any, ...], make: Callable[[], Any]) -> None:
    """Keep the values per test query of a contestant; print their mean when they are new."""
    if of in kept.results:
        return
    values = kept.get(of, lambda: [None if np.isnan(v) else float(v) for v in make()])
    mean = np.nanmean(np.array(values, dtype=float))
    print(f"{of[0]} fold {of[1]}: {of[2]}: {MEASURE} {mean:.4f}", flush=True)


def _one_fold(options: Options, name: str, fold: int, budgets: list[str], kept: Kept) -> None:
    convention = CONVENTIONS.get(name, "standard")
    judge = Judge(MEASURE, convention)
    with tempfile.TemporaryDirectory() as scratch:
        if name in WORLDS:
            files = [Path(scratch) / f"{part}.txt" for part in PARTS]
            for part, file in zip(make_world(name, WORLDS[name], fold), files, strict=True):
                dump_letor(part, file)
        else:
            assert options.data is not None
            files = [options.data / name / f"Fold{fold}" / f"{part}.txt" for part in PARTS]
        parts = [load_letor(file, n_features=WIDTHS.get(name)) for file in files]
        scale = scale_wanted(parts[0], "auto")  # as the search does
        normalizer = None if scale.kind is None else scale.make().fit(parts[0])
        scaled = [part if normalizer is None else normalizer.transform(part) for part in parts]

        def on_test(scores: Any) -> Any:
            return judge.per_query(parts[2], scores)[MEASURE]

        def single(system: str) -> Any:
            chosen = fit_system(system, Split(scaled[0], scaled[1], MEASURE, convention))
            return on_test(chosen.model.predict(scaled[2]))

        def tuned(how: list[str], tree: Path | None = None) -> Any:
            path = Path(scratch) / "model.json"
            words = ["tune", str(files[0]), "--vali", str(files[1]), "--measure", MEASURE]
            words += ["--convention", convention, "--model", str(path), "-j1", *how]
            source = {} if tree is None else {"PYTHONPATH": str(tree.resolve() / "src")}
            done = subprocess.run(
                [sys.executable, "-c", SEARCH, *words],
                capture_output=True,
                text=True,
                env={**os.environ, **source},
                check=False,
            )
            if done.returncode:
                raise RuntimeError(f"leanrank {' '.join(words)}: {done.stderr}")
            return on_test(load_model(path).predict(parts[2]))

        for system in default_systems():
            _kept(kept, (name, fold, system), lambda system=system: single(system))
        for budget in budgets:
            journal = Path(scratch) / f"{budget}.jsonl"
            how = ["--budget", budget]
            keep = ["--journal", str(journal)]
            _kept(kept, (name, fold, f"tune {budget}"), lambda h=[*how, *keep]: tuned(h))
            if journal.exists():  # the same search: it has had its trials
                again = ["--trials", "1", "--refit", "both", *keep]
                _kept(kept, (name, fold, f"tune {budget}, refit both"), lambda h=again: tuned(h))
            if options.before is not None:
                of = name, fold, f"tune before {budget}"
                _kept(kept, of, lambda h=how: tuned(h, options.before))


def make_world(name: str, world: tuple[int, int, Shape], fold: int) -> list[RankingData]:
    """Draw a made-up set: 60 queries to learn from, 20 to validate and 60 to test."""
    n_features, n_informative, shape = world
    rng = np.random.default_rng([fold, *name.encode()])
    weights = rng.uniform(0.5, 1.0, n_informative) * rng.choice([-1, 1], n_informative)
    parts = []
    for n_queries in (60, 20, 60):
        X = rng.normal(size=(20 * n_queries, n_features))
        utility = shape(X[:, :n_informative]) @ weights
        utility += utility.std() * rng.normal(size=len(X))
        y = np.searchsorted(np.quantile(utility, [0.6, 0.85]), utility)
        parts.append(RankingData(X, y, group=[20] * n_queries))
    return parts


def _add_rows(table: Table, name: str, folds: range, kept: Kept) -> None:
    """Set each search of a set beside its best single system, on the folds that it was run on."""
    values: dict[str, dict[int, Any]] = {}
    for (of, fold, contestant), each in kept.results.items():
        if of == name and fold in folds:
            values.setdefault(contestant, {})[fold] = np.array(each, dtype=float)

    def mean(who: str, some: Iterable[int]) -> float:
        return float(np.mean([np.nanmean(values[who][fold]) for fold in some]))

    def best_on(some: Iterable[int]) -> str:
        return max(default_systems(), key=lambda system: mean(system, some))

    best = best_on(folds)
    for who in (who for who in values if who.startswith("tune ")):
        mine = list(values[who])
        hindsight = dict.fromkeys(mine, best)
        others = {fold: best_on([f for f in folds if f != fold] or [fold]) for fold in mine}
        (regret, errors, p), (fair, fair_errors, fair_p) = (
            _regret(values, who, rivals) for rivals in (hindsight, others)
        )
        ahead = sum(mean(one, mine) > mean(who, mine) for one in default_systems())
        table.add(
            set=name,
            search=who,
            folds=len(mine),
            tune=f"{mean(who, mine):.4f}",
            **{"best single system": f"{best} {mean(best, mine):.4f}"},
            regret=f"{regret:+.4f}",
            **{"in standard errors": f"{errors:+.2f}"},
            p=f"{p:.2g}",
            **{"systems ahead": f"{ahead} of {len(default_systems())}"},
            **{"regret, best of other folds": f"{fair:+.4f}"},
            **{"its standard errors": f"{fair_errors:+.2f}"},
            **{"its p": f"{fair_p:.2g}"},
        )


def _regret(
    values: dict[str, dict[int, Any]], who: str, rivals: dict[int, str]
) -> tuple[float, float, float]:
    """Return the mean loss against one rival per fold, in standard errors too, and its p."""
    pairs = [(values[who][fold], values[rival][fold]) for fold, rival in rivals.items()]
    regret = float(np.mean([np.nanmean(theirs) - np.nanmean(ours) for ours, theirs in pairs]))
    ours, theirs = (np.concatenate(each) for each in zip(*pairs, strict=True))
    error = np.nanstd(theirs - ours) / np.sqrt(np.count_nonzero(~np.isnan(theirs - ours)))
    p = compare_values(ours, theirs, random_state=0).p_randomization
    return regret, float(regret / error) if error else 0.0, p
