"""``leanrank check``: is a model still right for today's documents?"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import Argument, Option

from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_apart, check_folder, read_documents, stdin_once
from leanrank.cli.entry import FAILED

SHOWN_FEATURES = 20


def check(
    model: Annotated[str, Argument(metavar="MODEL", help="The model in use, or -.")],
    data: Annotated[
        str | None,
        Argument(
            metavar="DATA", help="Today's documents, or -; labels are optional.", show_default=False
        ),
    ] = None,
    clicks: Annotated[
        str | None,
        Option(
            metavar="LOG",
            help="A table of served lists, as for `leanrank evaluate`: expected clicks instead of "
            "measures.",
        ),
    ] = None,
    measures: options.Measures = options.DEFAULT_MEASURES,
    output: Annotated[
        str | None, Option("--output", "-o", metavar="FILE", help="Write a page about it.")
    ] = None,
    format: options.Format = None,
    read: options.Read = None,
    jobs: options.Jobs = -1,
    json: options.Json = False,
) -> None:
    """Check whether a model is still right, and end with exit code 1 if it is not.

    For example: leanrank check m.json today.parquet -o check.html
    """
    stdin_once(model, data, clicks)
    if output is not None:
        check_folder(output, json, "page", "the page -o FILE")
        check_apart([output], [model, data, clicks])
        options.check_report()
    with screen.progress() as report:
        from leanrank.model import load_model
        from leanrank.service.check import check as compare

        options.check_measures(measures, "standard")
        known = load_model(model)
        report(f"Reading {clicks or data}")
        documents = read_documents(data, clicks, [known], format, read)
        report("Checking")
        found = compare(known, *documents, measures=measures, n_jobs=jobs)
        if output is not None:
            found.write(output)
    if json:
        screen.print_json({"model": model, **found.to_dict()})
    else:
        _print(found, error=output == "-")
    if found.alarms:
        raise typer.Exit(FAILED)


def _print(found: Any, *, error: bool) -> None:
    console = screen.screen(error=error)
    console.print(found.verdict)
    for text in found.alarms[:SHOWN_FEATURES]:
        console.print(f"- {text}", soft_wrap=True)
    if len(found.alarms) > SHOWN_FEATURES:
        console.print(f"and {len(found.alarms) - SHOWN_FEATURES} more", style="dim")
    if found.measures:
        console.print()
        table = screen.plain_table("measure", "then", "now", "p")
        for name, one in found.measures.items():
            then = "–" if one.then is None else f"{one.then:.4f}"
            if one.then_error is not None:
                then += f" ± {one.then_error:.4f}"
            p = "–" if one.p is None else f"{one.p:.2g}"
            table.add_row(name, then, f"{one.now:.4f} ± {one.now_error:.4f}", p)
        console.print(table)
    if found.clicks:
        console.print()
        table = screen.plain_table("clicks per list", "value", "95% interval")
        for name, one in found.clicks.items():
            table.add_row(name, f"{one.value:.4f}", f"{one.low:.4f} to {one.high:.4f}")
        console.print(table)
    if found.bound is not None:
        console.print(f"\n{found.refit_text}", soft_wrap=True)
        bound = found.bound
        console.print(
            f"objective {bound.objective:.5f}, at least {bound.lower:.5f} after a refit",
            style="dim",
        )
        moves = [f"{name} {size:.2g}" for name, size in list(bound.moves.items())[:5]]
        if found.held_out is not None:
            console.print(f"weights that should move most: {', '.join(moves)}", style="dim")
    for note in found.notes:
        console.print(f"note: {note}", style="dim", soft_wrap=True)
    console.print(f"{found.n_queries:,} queries, {found.n_documents:,} documents", style="dim")
