"""What ``leanrank tune`` shows: a bar with the time left, the front, the chosen model."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from leanrank.cli import screen
from leanrank.cli.screen import empty_table, print_json, sizes

if TYPE_CHECKING:
    from rich.table import Table

    from leanrank.model import Model
    from leanrank.selection.search import Progress
    from leanrank.selection.study import Difference, Study


def print_result(
    study: Study, final: Model, columns: dict[str, Any], path: str, raw: dict[str, Any]
) -> None:
    """Print the chosen model and the front as JSON."""
    print_json(
        {
            "model": path,
            "measure": study.measure,
            "chosen": _row(study, study.chosen),
            "front": [_row(study, one) for one in study.front],
            "candidates": len(study.candidates),
            "scale": None if study.normalizer is None else study.normalizer.kind,
            "leanness": _difference(study, study.leanness),
            "beside_default": _difference(study, study.beside_default),
            "not_tried": list(study.not_tried),
            "skipped": dict(study.skipped),
            "problems": dict(study.problems),
            "interrupted": study.interrupted,
            "weights": final.weights,
            "data": {name: sizes(part) for name, part in raw.items()},
            "measures": {name: column.to_dict() for name, column in columns.items()},
        }
    )


def _difference(study: Study, found: Difference | None) -> dict[str, Any] | None:
    if found is None:
        return None
    chosen = {"better": found.better, "standard_error": found.standard_error}
    return {"other": _row(study, found.other), **chosen}


def _row(study: Study, one: Any) -> dict[str, Any]:
    from leanrank.selection.candidate import bootstrap_interval

    return {
        "name": one.name,
        "algorithm": one.algorithm,
        "parameters": dict(one.parameters),
        "n_features": one.n_features,
        "cost": one.cost,
        "score": one.score(study.measure),
        "interval": list(bootstrap_interval(one.judged(study.measure))),
        "means": one.means,
    }


def print_summary(
    study: Study,
    final: Model,
    columns: dict[str, Any],
    path: str,
    journal: str | None,
    report: str | None,
    raw: dict[str, Any],
) -> None:
    """Print the front and the chosen model for people."""
    console = screen.screen(error=path == "-")
    facts = {name: screen.data_summary(part) for name, part in raw.items()}
    facts["models"] = f"{len(study.candidates):,} judged, {len(study.front)} on the front"
    if study.scale_reason:
        kind = "" if study.normalizer is None else f"{study.normalizer.kind}, because "
        facts["scaled"] = f"{kind}{study.scale_reason}"
    if study.not_tried:
        facts["not tried"] = ", ".join(study.not_tried)
    if study.skipped:
        needs = ", ".join(dict.fromkeys(study.skipped.values()))
        facts["left out"] = f"{', '.join(study.skipped)} (need {needs})"
    for name, problem in study.problems.items():
        facts[f"{name} failed"] = problem
    facts["chosen"] = study.chosen.name
    if study.leanness is not None:
        facts["leanness"] = f"the best of any size, {study.leanness}"
    if study.beside_default is not None:
        facts["LeanRanker"] = f"its best, {study.beside_default}"
    console.print(screen.facts(facts))
    console.print()
    console.print(_front_table(study))
    where = "cross-validation" if study.validation is study.training else "validation and training"
    console.print(
        f"{study.measure} on {where} queries that a model was not fitted to, with its 95% "
        "interval over queries",
        style="dim",
    )
    console.print()
    console.print(screen.weights_table(final, console))
    console.print(screen.weights_caption(final), style="dim")
    console.print()
    console.print(screen.measures_table(columns))
    console.print(screen.measures_note(list(columns.values())[-1]), style="dim")
    for what, file in (("Model", path), ("Journal", journal), ("Report", report)):
        if file is not None and file != "-":
            console.print(f"{what} written to {file}", soft_wrap=True)


def _front_table(study: Study, most: int = 20) -> Table:
    from leanrank.selection.candidate import bootstrap_interval

    table = empty_table()
    table.add_column("features", justify="right")
    if study.costs is not None:
        table.add_column("cost", justify="right")
    table.add_column(study.measure, justify="right", no_wrap=True)
    table.add_column("interval", no_wrap=True)
    table.add_column("model", overflow="fold")
    front = study.front
    step = max(1, -(-len(front) // most))
    for at, one in enumerate(front):
        is_chosen = one.name == study.chosen.name and one.n_features == study.chosen.n_features
        if at % step and not is_chosen:
            continue
        low, high = bootstrap_interval(one.judged(study.measure))
        cost = [] if study.costs is None else [study.costs.show(one.cost)]
        table.add_row(
            str(one.n_features),
            *cost,
            f"{one.score(study.measure):.4f}",
            f"{low:.3f}–{high:.3f}",
            one.name + (" ← chosen" if is_chosen else ""),
            style="bold" if is_chosen else "",
        )
    return table


@contextlib.contextmanager
def progress_bar(
    budget: float | None, trials: int | None
) -> Iterator[Callable[[str | Progress], None]]:
    """Show a bar with the time left, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda at: None
        return
    import time

    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

    total = 60.0 if budget is None and trials is None else budget
    began = time.perf_counter()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(20),
        TextColumn("{task.fields[left]}", markup=False),
    )
    with Progress(*columns, console=screen.screen(error=True), transient=True) as bar:
        task = bar.add_task("Starting", total=1.0, left="")

        def tell(at: str | Any) -> None:
            if isinstance(at, str):
                bar.update(task, description=at, left="")
                return
            if total is not None:
                left = total - at.seconds
            else:  # as long a trial as so far
                spent = time.perf_counter() - began
                left = spent * (1 - at.share) / at.share if at.share else float("nan")
            best = "" if at.best is None else f", {at.best.n_features} features"
            text = f"trial {at.trials + 1}: {at.doing[:40]}{best}"
            shown = "" if left != left else f"{max(0.0, left):.0f} s left"
            bar.update(task, description=text, completed=at.share, left=shown)

        yield tell
