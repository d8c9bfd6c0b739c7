"""Cheng et al. 2018, Section 4: MinBatSRank on LETOR 3.0, beside sparse and dense rankers.

The paper does not say how many passes it makes, in which order, nor how parameters were chosen: so
its figures are not to be matched digit by digit. Ours are chosen on the validation parts, averaged
over seeds, with the spread beside them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from leanrank.data.public_sets import data_directory, fetch
from leanrank.errors import FileError
from leanrank.execution import make_executor
from leanrank.reproduce.cheng2018_published import SETS, TABLE2, TABLE3, TABLE4
from leanrank.reproduce.cheng2018_systems import (
    CUTOFFS,
    DENSE,
    LISTWISE,
    MEANS,
    NONFEA_MEANS,
    NONFEA_PLAIN,
    PLAIN,
    SPARSE,
    STRICT,
    Outcome,
    System,
    learn,
)
from leanrank.reproduce.plots import Plot
from leanrank.reproduce.report import Cell, ComparedTable, Report
from leanrank.reproduce.side_by_side import Beside, SideBySideReport, SideBySideTable

TITLE = "A Mini-batch Stochastic Gradient Method for Sparse Learning to Rank"
SEEDS = (0, 1, 2, 3, 4)
SYSTEMS = (*SPARSE, PLAIN, MEANS, LISTWISE, NONFEA_PLAIN, NONFEA_MEANS, *DENSE)
COLUMNS = {
    "ndcg@1": "N@1",
    "ndcg@3": "N@3",
    "ndcg@5": "N@5",
    "ndcg@10": "N@10",
    "map": "MAP",
    STRICT: "MAP ≥2",
}
PUBLISHED_AS = {"MinBatSRank, plain sums": "MinBatSRank"}
"""Which of our rows stands beside which printed one, where the names differ."""

SHORT = {
    "AdaRank-NDCG": "AdaRank",
    "RankSVM-struct": "RankSVM",
    PLAIN.label: "plain sums",
    NONFEA_PLAIN.label: "Nonfea, sums",
}
"""Names that fit beside a figure."""

FIGURE1 = (MEANS, *DENSE)
FIGURE2 = (MEANS, NONFEA_MEANS, PLAIN, NONFEA_PLAIN)

Outcomes = dict[str, dict[str, Outcome]]
"""By data set and system."""


def run(
    data_dir: str | os.PathLike[str] | None = None,
    out_dir: str | os.PathLike[str] | None = None,
    *,
    say: Callable[[str], None] = lambda text: None,
    n_jobs: int | None = None,
    seeds: Sequence[int] = SEEDS,
    systems: Sequence[System] = SYSTEMS,
) -> Report:
    """Run the paper's experiments on those of its data sets that are there.

    Parameters
    ----------
    data_dir : path, optional
        Where OHSUMED, TD2004, HP2004 and NP2004 are; by default ``$LEANRANK_DATA``.
    out_dir : path, optional
        Where to write report.md, report.json and the plots; by default nothing is written.
    say : callable
        Told what is being done.
    n_jobs : int, optional
        Threads; the result does not depend on it, but for the times.
    seeds : sequence of int
        For the systems with chance in them.
    systems : sequence of System
        Which rows to fill.
    """
    outcomes: Outcomes = {}
    missing = []
    for name in reversed(SETS):  # OHSUMED is the smallest
        try:
            folds = list(fetch(name, data_dir=data_dir, download=False).folds())
        except FileError:
            missing.append(name)
            continue
        outcomes[name] = {}
        for system in systems:
            if system.exists:
                say(f"{name}: {system.label}")
                outcomes[name][system.label] = learn(system, folds, seeds, make_executor(n_jobs))
    if not outcomes:
        raise FileError(f"{data_directory(data_dir)}: none of {', '.join(SETS)} is there")
    report = ChengReport("cheng2018", TITLE, outcomes=outcomes)
    report.tables += [_table2(name, systems, found) for name, found in outcomes.items()]
    report.tables += [_table3(systems, outcomes), _table4(systems, outcomes)]
    for name, found in outcomes.items():
        report.plots |= _figures(name, found)
    report.notes += _notes(outcomes, systems, len(seeds), missing)
    if out_dir is not None:
        report.write(Path(out_dir))
    return report


@dataclass
class ChengReport(SideBySideReport):
    """The report, which sums up what MinBatSRank reached."""

    outcomes: Outcomes | None = None

    @property
    def summary(self) -> str:
        """Say what the two ways of MinBatSRank reach on each set."""
        parts = []
        for name, found in (self.outcomes or {}).items():
            for label in (MEANS.label, PLAIN.label):
                outcome = found.get(label)
                if outcome is not None and outcome.measures:
                    parts.append(
                        f"{label} on {name}: MAP {outcome.mean('map'):.4f}, NDCG@10 "
                        f"{outcome.mean('ndcg@10'):.4f} with {outcome.sparsity.mean():.0%} of the "
                        "features."
                    )
        return " ".join(parts)


def _table2(name: str, systems: Sequence[System], found: dict[str, Outcome]) -> ComparedTable:
    rows: list[tuple[str, tuple[Cell, ...]]] = []
    for system in systems:
        printed: list[str | None] = [*TABLE2[name].get(_published_name(system), ())]
        printed += [None] * (len(COLUMNS) - len(printed))
        outcome = found.get(system.label)
        if outcome is None or not outcome.measures:
            ours = "not built" if outcome is None else "diverges"
            rows.append((system.label, tuple(Beside(p, ours) for p in printed)))
            continue
        means = [_number(outcome.measures[m].mean()) for m in COLUMNS]
        rows.append((system.label, tuple(map(Beside, printed, means))))
        if len(outcome.sparsity) > 1:
            spread = [_number(outcome.measures[m].std(ddof=1), "±") for m in COLUMNS]
            rows.append(("   over seeds", tuple(Beside(None, s) for s in spread)))
    title = f"Table 2: ranking accuracy on {name}, mean of five folds"
    return SideBySideTable(title, tuple(COLUMNS.values()), tuple(rows))


def _number(value: float, sign: str = "") -> str | None:
    """Write a figure; None where the labels do not define it."""
    return None if np.isnan(value) else f"{sign}{value:.4f}"


def _table3(systems: Sequence[System], outcomes: Outcomes) -> ComparedTable:
    def ours(outcome: Outcome) -> str:
        text = f"{outcome.sparsity.mean():.4f}"
        return text if len(outcome.sparsity) == 1 else f"{text} ±{outcome.sparsity.std(ddof=1):.2f}"

    return _by_set("Table 3: share of the features in use", TABLE3, systems, outcomes, ours)


def _table4(systems: Sequence[System], outcomes: Outcomes) -> ComparedTable:
    def ours(outcome: Outcome) -> str:
        return f"{outcome.seconds:.3f}"

    title = "Table 4: seconds to train the chosen model (the published on another machine)"
    return _by_set(title, TABLE4, systems, outcomes, ours)


def _by_set(
    title: str,
    published: Mapping[str, tuple[str, ...]],
    systems: Sequence[System],
    outcomes: Outcomes,
    ours: Callable[[Outcome], str],
) -> ComparedTable:
    rows = []
    for system in systems:
        printed = published.get(_published_name(system))
        cells = []
        for at, name in enumerate(SETS):
            outcome = outcomes.get(name, {}).get(system.label)
            text = ours(outcome) if outcome is not None and outcome.measures else None
            cells.append(Beside(None if printed is None else printed[at], text))
        rows.append((system.label, tuple(cells)))
    return SideBySideTable(title, SETS, tuple(rows))


def _figures(name: str, found: dict[str, Outcome]) -> dict[str, Plot]:
    """Draw NDCG@1..10 beside dense rankers, and beside uniform rates."""
    plots = {}
    for number, systems, beside in (
        (1, FIGURE1, "dense rankers"),
        (2, FIGURE2, "MinBatSRank with uniform rates"),
    ):
        lines = {
            SHORT.get(s.label, s.label): [
                float(found[s.label].measures[f"ndcg@{k}"].mean()) for k in CUTOFFS
            ]
            for s in systems
            if s.label in found and found[s.label].measures
        }
        if lines:
            plots[f"figure{number}-{name.lower()}"] = Plot(
                title=f"Figure {number}: MinBatSRank beside {beside}, {name}",
                x_label="k",
                y_label="NDCG@k",
                x=[float(k) for k in CUTOFFS],
                lines=lines,
            )
    return plots


def _notes(
    outcomes: Outcomes, systems: Sequence[System], n_seeds: int, missing: Sequence[str]
) -> list[str]:
    notes = [
        "Parameters are chosen fold by fold by the mean of MAP and NDCG@10 on the validation part, "
        f"for each of {n_seeds} seeds by itself. Measures are LETOR's, in which a label of 1 is "
        "relevant; the last column counts label 2 only, which is what the paper says of its MAP "
        "but not what its figures fit."
    ]
    notes += [f"{s.label}: {s.about}." for s in systems if s.about]
    if missing:
        notes.append(f"Left out: {', '.join(missing)}, not in the data directory.")
    not_built = [s.label for s in systems if not s.exists]
    if not_built:
        notes.append(f"Not built yet: {', '.join(not_built)}.")
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


def _published_name(system: System) -> str:
    if system.label == MEANS.label:  # the faithful row stands beside the printed one
        return ""
    return PUBLISHED_AS.get(system.label, system.label)
