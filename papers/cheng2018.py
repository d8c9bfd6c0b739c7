"""Cheng et al. 2018, Section 4: MinBatSRank on LETOR 3.0, beside sparse and dense rankers.

The paper does not state the number or order of its passes, nor how parameters were chosen, so its
figures cannot be matched digit by digit. Ours are chosen fold by fold on the validation parts, by
the mean of MAP and NDCG@10, for each seed by itself, and averaged over folds and seeds.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import DataWarning, InputError
from leanrank.execution import Executor, make_executor
from leanrank.metrics import evaluate
from leanrank.metrics.judge import Judge, best_of
from leanrank.model import Model
from leanrank.rankers import get_ranker
from leanrank.registry import Fits, Space
from leanrank.selection.candidate import Candidate
from leanrank.selection.engine import Split, make_ranker, run_setting
from papers import find_sets, published
from papers.cheng2018_systems import (
    DENSE,
    LISTWISE,
    MEANS,
    NONFEA_MEANS,
    NONFEA_PLAIN,
    PLAIN,
    SPARSE,
    TableRow,
)
from papers.report import Cell, ComparedTable, Plot, Report, beside

TITLE = "A Mini-batch Stochastic Gradient Method for Sparse Learning to Rank"
SETS = ("HP2004", "NP2004", "TD2004", "OHSUMED")
SEEDS = (0, 1, 2, 3, 4)
SYSTEMS = (*SPARSE, PLAIN, MEANS, LISTWISE, NONFEA_PLAIN, NONFEA_MEANS, *DENSE)
CONVENTION = "letor3"
CUTOFFS = tuple(range(1, 11))
MEASURES = (*(f"ndcg@{k}" for k in CUTOFFS), "map")
CHOOSE_BY = ("map", "ndcg@10")
STRICT = "map, label 2"
COLUMNS = {
    "ndcg@1": "N@1",
    "ndcg@3": "N@3",
    "ndcg@5": "N@5",
    "ndcg@10": "N@10",
    "map": "MAP",
    STRICT: "MAP ≥2",
}
PUBLISHED_AS = {"MinBatSRank, plain sums": "MinBatSRank", MEANS.label: ""}
"""Our rows that are compared with a printed row of another name."""

SHORT = {
    "AdaRank-NDCG": "AdaRank",
    "RankSVM-struct": "RankSVM",
    PLAIN.label: "plain sums",
    NONFEA_PLAIN.label: "Nonfea, sums",
}
"""Names that fit beside a figure."""

FIGURES = {
    "dense rankers": (MEANS, *DENSE),
    "MinBatSRank with uniform rates": (MEANS, NONFEA_MEANS, PLAIN, NONFEA_PLAIN),
}

Part = tuple[RankingData, RankingData, RankingData]


@dataclass(frozen=True)
class Reached:
    """The figures of a system on one data set.

    Attributes
    ----------
    measures : dict of str to array
        One mean over folds for each seed; empty if in some fold no model could be used.
    sparsity : array
        The share of the features in use, by seed.
    seconds : float
        To train the chosen model once; mean over folds.
    n_models, n_unusable : int
        Models trained, and those that diverged or rank nothing.
    chosen_by : dict
        The mean MAP and NDCG@10 had validation chosen by one measure alone.
    """

    measures: dict[str, FloatArray]
    sparsity: FloatArray
    seconds: float
    n_models: int
    n_unusable: int
    chosen_by: dict[str, tuple[float, float]]


ReachedBySet = dict[str, dict[str, Reached]]
"""By data set and system."""


def run(
    data_dir: str | os.PathLike[str] | None = None,
    out_dir: str | os.PathLike[str] | None = None,
    *,
    say: Callable[[str], None] = lambda text: None,
    n_jobs: int | None = None,
    seeds: Sequence[int] = SEEDS,
    systems: Sequence[TableRow] = SYSTEMS,
) -> Report:
    """Run the paper's experiments on those of OHSUMED, TD2004, HP2004 and NP2004 that are there.

    Parameters
    ----------
    data_dir, out_dir, say, n_jobs
        As for every paper: see ``papers``.
    seeds : sequence of int
        For the randomised systems.
    systems : sequence of TableRow
        Which rows to fill.
    """
    outcomes: ReachedBySet = {}
    sets, missing = find_sets(SETS, data_dir)
    for name in reversed(sets):  # OHSUMED is the smallest
        folds = list(sets[name].folds())
        outcomes[name] = {}
        for system in systems:
            say(f"{name}: {system.label}")
            outcomes[name][system.label] = learn(system, folds, seeds, make_executor(n_jobs))
    printed = published("cheng2018")
    report = Report("cheng2018", TITLE, conclusion=_summary(outcomes))
    for name, found in outcomes.items():
        report.tables.append(_accuracy(name, printed["accuracy"][name], systems, found))
        report.plots |= _figures(name, found)
    report.tables += [
        _by_set(
            "Table 3: share of the features in use",
            printed["sparsity"],
            systems,
            outcomes,
            _sparsity,
        ),
        _by_set(
            "Table 4: seconds to train the chosen model (the published on another machine)",
            printed["seconds"],
            systems,
            outcomes,
            lambda outcome: f"{outcome.seconds:.3f}",
        ),
    ]
    report.notes += _notes(outcomes, systems, len(seeds), missing)
    report.write(out_dir)
    return report


def learn(
    system: TableRow, folds: Sequence[Part], seeds: Sequence[int], executor: Executor
) -> Reached:
    """Train a system with all its settings on all folds and seeds, choose and measure."""
    used = seeds if system.seeded else seeds[:1]
    spaces = [_space(system, train) for train, _, _ in folds]
    runs = [(seed, at) for seed in used for at in range(len(folds))]

    def search(task: tuple[int, int]) -> list[Candidate]:
        seed, at = task
        split = Split(*folds[at][:2], CHOOSE_BY, CONVENTION, average_ties=False)
        return _trials(spaces[at], {"random_state": seed} if system.seeded else {}, split)

    with warnings.catch_warnings():
        # empty models, ties and rough optima are expected in a grid
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = dict(zip(runs, executor.map(search, runs), strict=True))
        n_models = sum(map(len, found.values()))
        n_unusable = sum(np.isnan(t.value) for trials in found.values() for t in trials)
        if any(all(np.isnan(t.value) for t in trials) for trials in found.values()):
            return Reached({}, np.zeros(0), np.nan, n_models, n_unusable, {})
        by_choice = {
            by: [[_chosen(spaces[at], found[seed, at], folds[at], by) for at in range(len(folds))]
                 for seed in used]
            for by in (CHOOSE_BY, *((name,) for name in CHOOSE_BY))
        }  # fmt: skip
    best = by_choice[CHOOSE_BY]
    names = (*MEASURES, STRICT)
    return Reached(
        measures={m: np.array([np.mean([c.measures[m] for c in row]) for row in best])
                  for m in names},
        sparsity=np.array([np.mean([c.share for c in row]) for row in best]),
        seconds=float(np.mean([c.seconds for c in best[0]])),
        n_models=n_models,
        n_unusable=n_unusable,
        chosen_by={
            by[0]: (_mean(rows, "map"), _mean(rows, "ndcg@10"))
            for by, rows in by_choice.items()
            if len(by) == 1
        },
    )  # fmt: skip


@dataclass(frozen=True)
class _TestFigures:
    measures: dict[str, float]
    share: float
    seconds: float


def _space(system: TableRow, train: RankingData) -> Space:
    """Return what to try; strengths given as shares are of the training data's alpha_max."""
    fixed, grid = dict(system.fixed), dict(system.grid)
    if system.shares:
        top = get_ranker(system.ranker)(**fixed).alpha_max(train)
        grid["alpha"] = tuple(float(share * top) for share in system.shares)
    return Space(system.ranker, fixed, grid, Fits(stop_early=False))


def _trials(space: Space, more: Mapping[str, Any], split: Split) -> list[Candidate]:
    found = []
    for setting in space.settings():
        try:
            found += run_setting(space, {**setting, **more}, split)
        except InputError:  # diverged
            nothing = {name: np.full(split.validation.n_queries, np.nan) for name in CHOOSE_BY}
            empty = Model.from_coef(np.zeros(split.train.n_features))
            parameters = {**space.fixed, **setting, **more}
            found.append(Candidate.of(space.ranker, parameters, empty, nothing))
    return found


def _chosen(space: Space, trials: list[Candidate], part: Part, by: tuple[str, ...]) -> _TestFigures:
    """Fit the model that validation prefers, and measure it on the test part."""
    train, _, test = part
    worth = Judge(by).worth([np.mean([t.means[m] for m in by]) for t in trials])
    best = trials[best_of(worth, [t.n_features for t in trials])]
    ranker = make_ranker(space, best.parameters, Judge(CHOOSE_BY, CONVENTION))
    start = time.perf_counter()
    ranker.fit(train)
    seconds = time.perf_counter() - start
    scores = ranker.predict(test)
    means = evaluate(test, scores, measures=MEASURES, convention=CONVENTION, n_jobs=1).means
    strict = np.nan
    if test.levels[-1] >= 2:
        strict = evaluate(test, scores, measures="map", convention=CONVENTION, rel=2.0)["map"]
    share = ranker.to_model().n_nonzero / train.n_features
    return _TestFigures({**means, STRICT: strict}, share, seconds)


def _mean(rows: list[list[_TestFigures]], measure: str) -> float:
    return float(np.mean([np.mean([c.measures[measure] for c in row]) for row in rows]))


def _summary(outcomes: ReachedBySet) -> str:
    """Describe what the two variants of MinBatSRank reach on each set."""
    return " ".join(
        f"{label} on {name}: MAP {found[label].measures['map'].mean():.4f}, NDCG@10 "
        f"{found[label].measures['ndcg@10'].mean():.4f} with {found[label].sparsity.mean():.0%} of "
        "the features."
        for name, found in outcomes.items()
        for label in (MEANS.label, PLAIN.label)
        if label in found and found[label].measures
    )


def _accuracy(
    name: str,
    printed: Mapping[str, list[str]],
    systems: Sequence[TableRow],
    found: Mapping[str, Reached],
) -> ComparedTable:
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for system in systems:
        texts: list[str | None] = [*printed.get(_published_name(system), ())]
        texts += [None] * (len(COLUMNS) - len(texts))
        outcome = found[system.label]
        if not outcome.measures:
            rows.append((system.label, tuple(beside(text, "diverges") for text in texts)))
            continue
        means = [_number(outcome.measures[m].mean()) for m in COLUMNS]
        rows.append((system.label, tuple(map(beside, texts, means))))
        if len(outcome.sparsity) > 1:
            spread = [_number(outcome.measures[m].std(ddof=1), "±") for m in COLUMNS]
            rows.append(("   over seeds", tuple(beside(None, s) for s in spread)))
    title = f"Table 2: ranking accuracy on {name}, mean of five folds"
    return ComparedTable(title, tuple(COLUMNS.values()), tuple(rows))


def _number(value: float, sign: str = "") -> str | None:
    """Write a figure; None where the labels do not define it."""
    return None if np.isnan(value) else f"{sign}{value:.4f}"


def _sparsity(outcome: Reached) -> str:
    text = f"{outcome.sparsity.mean():.4f}"
    return text if len(outcome.sparsity) == 1 else f"{text} ±{outcome.sparsity.std(ddof=1):.2f}"


def _by_set(
    title: str,
    printed: Mapping[str, list[str]],
    systems: Sequence[TableRow],
    outcomes: ReachedBySet,
    ours: Callable[[Reached], str],
) -> ComparedTable:
    rows = []
    for system in systems:
        figures = printed.get(_published_name(system))
        cells = []
        for at, name in enumerate(SETS):
            outcome = outcomes.get(name, {}).get(system.label)
            text = ours(outcome) if outcome is not None and outcome.measures else None
            cells.append(beside(None if figures is None else figures[at], text))
        rows.append((system.label, tuple(cells)))
    return ComparedTable(title, SETS, tuple(rows))


def _figures(name: str, found: Mapping[str, Reached]) -> dict[str, Plot]:
    """Draw NDCG@1..10 beside dense rankers, and beside uniform rates."""
    plots = {}
    for number, (others, systems) in enumerate(FIGURES.items(), 1):
        lines = {
            SHORT.get(s.label, s.label): [
                float(found[s.label].measures[f"ndcg@{k}"].mean()) for k in CUTOFFS
            ]
            for s in systems
            if s.label in found and found[s.label].measures
        }
        if lines:
            plots[f"figure{number}-{name.lower()}"] = Plot(
                title=f"Figure {number}: MinBatSRank beside {others}, {name}",
                x_label="k",
                y_label="NDCG@k",
                x=[float(k) for k in CUTOFFS],
                lines=lines,
            )
    return plots


def _notes(
    outcomes: ReachedBySet, systems: Sequence[TableRow], n_seeds: int, missing: Sequence[str]
) -> list[str]:
    notes = [
        "Parameters are chosen fold by fold by the mean of MAP and NDCG@10 on the validation part, "
        f"for each of {n_seeds} seeds by itself. Measures are LETOR's, in which a label of 1 is "
        "relevant; the last column counts label 2 only, which is what the paper says of its MAP "
        "but not what its figures fit."
    ]
    notes += [f"{s.label}: {s.about}." for s in systems if s.about]
    notes += missing
    for name, found in outcomes.items():
        bad = [
            f"{o.n_unusable} of {o.n_models} of {label}"
            for label, o in found.items()
            if o.n_unusable
        ]
        if bad:
            notes.append(
                f"{name}: models that diverged or had no feature, and so were not in the choice: "
                f"{', '.join(bad)}."
            )
        for label in (MEANS.label, PLAIN.label):
            alone = found[label].chosen_by if label in found else {}
            if alone:
                texts = (f"{by}: MAP {v[0]:.4f}, NDCG@10 {v[1]:.4f}" for by, v in alone.items())
                notes.append(
                    f"{name}: what {label} reaches if validation goes by one measure alone, "
                    f"{'; '.join(texts)}."
                )
    if "OHSUMED" in outcomes:
        notes.append(
            "On OHSUMED a model that scores everything alike has MAP 0.427 and NDCG@10 0.399, as "
            "its files are partly sorted by relevance and ties keep their order: read the figures "
            "against those. A standard error over its 106 queries is about 0.02: most differences "
            "between rows are smaller."
        )
    return notes


def _published_name(system: TableRow) -> str:
    return PUBLISHED_AS.get(system.label, system.label)
