"""Tables, charts and the decision of the online experiment, from its runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.metrics.comparison import Comparison, compare_values
from leanrank.selection.compare import holm
from papers.report import ComparedTable, Plot, Report, beside

FAILED, STEPS, CUMULATIVE, FIRST = range(4)
"""Columns of a run: FIRST is that of the measure on test data at the first place."""

Cells = dict[tuple[str, float | None], FloatArray]
"""By system and ε: one row per seed."""

Results = dict[tuple[str, str], Cells]
"""By data set and user."""


def fill_report(
    report: Report,
    results: Results,
    chosen: Mapping[str, Mapping[str, Mapping[str, Any]]],
    places: IntArray,
    start: int,
) -> None:
    """Put tables, charts and the conclusion into a report."""
    measures = {
        "cumulative NDCG of the lists shown": CUMULATIVE,
        f"NDCG@10 on test data after {start} lists": FIRST + int(np.searchsorted(places, start)),
        f"NDCG@10 on test data after {places[-1]:,} lists": FIRST + len(places) - 1,
    }
    decisions: dict[str, Decision] = {}
    details = []
    for against in ("SPD-MV", "SPD"):
        for title, column in measures.items():
            name = f"LCRA less {against}: {title}"
            found = _gains(results, against, column)
            details.append(_compared(name, found, (against, "LCRA"), column))
            decisions[name] = decide(found)
        for title, column in measures.items():
            name = f"LCRA's gain over {against} without exploration less that with: {title}"
            found = _extra_gains(results, against, column)
            details.append(_compared(name, found, ("with", "without"), column))
            decisions[name] = decide(found)
    report.tables += [_decisions(decisions), *details]
    in_words = [decision.words for decision in decisions.values()]
    report.conclusion = (
        f"Agreement of the views on unlabelled documents speeds up the start: {in_words[1]}. "
        f"It reduces the need for exploration: {in_words[3]}."
    )
    report.tables += [_exploration(results), _all_learners(results, places), _settings(chosen)]
    for (name, visitor), cells in results.items():
        for explore in (0.0, 0.5):
            plot = f"online-{name}-{visitor}-{explore:g}".lower()
            report.plots[plot] = _curves(name, visitor, explore, cells, places)
    report.notes += _notes(results, places)


def _gains(results: Results, against: str, column: int) -> dict[str, Comparison]:
    """Compare LCRA with another system, by set, user and ε."""
    found = {}
    for (name, visitor), cells in results.items():
        for explore in _explored(cells):
            pair = (cells[system, explore][:, column] for system in (against, "LCRA"))
            found[f"{name}, {visitor}, ε = {explore:g}"] = _compare(*pair)
    return found


def _extra_gains(results: Results, against: str, column: int) -> dict[str, Comparison]:
    """Compare LCRA's gain without exploration with its mean gain at 0 < ε < 1."""
    found = {}
    for (name, visitor), cells in results.items():
        gains = {
            e: cells["LCRA", e][:, column] - cells[against, e][:, column] for e in _explored(cells)
        }
        explored = np.mean([gain for e, gain in gains.items() if 0.0 < e < 1.0], axis=0)
        found[f"{name}, {visitor}"] = _compare(explored, gains[0.0])
    return found


def _explored(cells: Cells) -> list[float]:
    return [explore for system, explore in cells if system == "LCRA" and explore is not None]


def _compare(a: FloatArray, b: FloatArray) -> Comparison:
    return compare_values(a, b, n_permutations=1)


class Decision(NamedTuple):
    """In how many cells a difference is significantly above and below zero, of how many."""

    above: int
    below: int
    cells: int

    @property
    def words(self) -> str:
        """The answer, by the rule of the protocol."""
        if 2 * self.above > self.cells and not self.below:
            return "yes"
        if 2 * self.below > self.cells and not self.above:
            return "no, the contrary"
        return "not in general"


def decide(found: Mapping[str, Comparison]) -> Decision:
    """Count significant differences, by Holm's correction over all of them."""
    signs = [
        np.sign(found[cell].difference) * (p < 0.05)
        for cell, p in holm({cell: one.p_t_test for cell, one in found.items()}).items()
    ]
    return Decision(signs.count(1.0), signs.count(-1.0), len(signs))


def _decisions(decisions: Mapping[str, Decision]) -> ComparedTable:
    rows = []
    for title, one in decisions.items():
        texts = (one.words, str(one.above), str(one.below), str(one.cells))
        rows.append((title, tuple(beside(None, text) for text in texts)))
    heads = ("above zero?", "significantly above", "below", "of")
    return ComparedTable("The answers", heads, tuple(rows))


def _compared(
    title: str, found: Mapping[str, Comparison], names: tuple[str, str], column: int
) -> ComparedTable:
    corrected = holm({cell: one.p_t_test for cell, one in found.items()})
    digits = 2 if column == CUMULATIVE else 4
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
    heads = (*names, "difference", "95 % interval", "p (Holm)")
    return ComparedTable(title, heads, tuple(rows))


def _exploration(results: Results) -> ComparedTable:
    """Show which ε serves users best, for each system."""
    rows = []
    for (name, visitor), cells in results.items():
        texts = []
        for system in ("SPD", "SPD-MV", "LCRA"):
            means = {e: cells[system, e][:, CUMULATIVE].mean() for e in _explored(cells)}
            best = max(means, key=lambda e: float(means[e]))
            texts += [f"{best:g}", f"{means[best]:.2f}"]
        rows.append((f"{name}, {visitor}", tuple(beside(None, text) for text in texts)))
    heads = [f"{name}{what}" for name in ("SPD", "SPD-MV", "LCRA") for what in (", best ε", "")]
    return ComparedTable(
        "Exploration that serves users best (cumulative NDCG)", tuple(heads), tuple(rows)
    )


def _all_learners(results: Results, places: IntArray) -> ComparedTable:
    """List all systems, the ε-greedy ones with ε = 0.2."""
    rows = []
    for (name, visitor), cells in results.items():
        for (system, explore), runs in cells.items():
            if explore not in (None, 0.2):
                continue
            texts = [f"{runs[:, STEPS].mean():,.0f}"]
            for column in (CUMULATIVE, FIRST + len(places) - 1):
                digits = 2 if column == CUMULATIVE else 4
                low, high = _interval(runs[:, column])
                texts.append(f"{runs[:, column].mean():.{digits}f} ± {(high - low) / 2:.{digits}f}")
            title = f"{name}, {visitor}, {system}"
            rows.append((title, tuple(beside(None, text) for text in texts)))
    heads = ("steps", "cumulative NDCG", f"test NDCG@10 after {places[-1]:,} lists")
    return ComparedTable("All learners; ε-greedy ones with ε = 0.2", heads, tuple(rows))


def _settings(chosen: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> ComparedTable:
    names = {"eta0": "η₀", "mu": "μ"}
    rows = []
    for title, settings in chosen.items():
        texts = [
            ", ".join(f"{names[name]} {value:g}" for name, value in each.items() if value)
            for each in settings.values()
        ]
        rows.append((title, tuple(beside(None, text) for text in texts)))
    heads = tuple(next(iter(chosen.values())))
    return ComparedTable("Parameters chosen on the validation parts", heads, tuple(rows))


def _curves(name: str, visitor: str, explore: float, cells: Cells, places: IntArray) -> Plot:
    lines: dict[str, list[float]] = {}
    bands: dict[str, list[tuple[float, float]]] = {}
    varied = {system for system, e in cells if e == 0.0}
    for (system, e), runs in cells.items():
        if system in varied and e != explore:
            continue
        columns = runs[:, FIRST:].T
        lines[system] = [float(each.mean()) for each in columns]
        bands[system] = [_interval(each) for each in columns]
    return Plot(
        title=f"{name}, {visitor} users, ε = {explore:g}: NDCG@10 on test data while learning",
        x_label="lists shown",
        y_label="NDCG@10",
        x=places.tolist(),
        lines=lines,
        bands=bands,
        log_x=True,
        ordered=False,
    )


def _interval(values: FloatArray) -> tuple[float, float]:
    return _compare(np.zeros(len(values)), values).interval


def _notes(results: Results, places: IntArray) -> list[str]:
    runs = [(system, each) for cells in results.values() for (system, _), each in cells.items()]
    seeds = max(len(each) for _, each in runs)
    fewer = {system: len(each) for system, each in runs if len(each) < seeds}
    failed = {system for system, each in runs if each[:, FAILED].any()}
    few = "".join(f"; {system} {n} seeds" for system, n in fewer.items())
    notes = [
        f"{seeds} seeds, {places[-1]:,} lists per run, five folds{few}.",
        "Intervals hold 95 % of the mean difference over seeds; p is two-sided, of a paired t-test "
        "over the seeds, corrected by Holm's method over all cells of its table.",
    ]
    if failed:
        notes.append(f"Runs whose weights overflowed count as zero: of {', '.join(failed)}.")
    return notes
