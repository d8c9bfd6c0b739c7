"""``python -m papers PAPER --data DIR``: run a published experiment again, and compare."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text
from typer import Typer

from leanrank.cli import options, screen
from leanrank.cli.entry import run_app
from leanrank.errors import InputError
from papers import get_paper
from papers.report import ComparedTable


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and give its exit code."""
    return run_app(_app, argv, name="python -m papers")


def _app(arguments: Sequence[str]) -> Typer:
    app = Typer(
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.command()(options.explained(reproduce))
    return app


def reproduce(
    paper: str,
    /,
    data: str | None = None,
    out: str | None = None,
    jobs: int = -1,
    splits: int | None = None,
    online: bool = False,
    seeds: int | None = None,
    queries: int | None = None,
    json: bool = False,
) -> None:
    """Run a published experiment again, and show what was printed beside what comes out.

    Writes report.md, report.json and the plots. For example: python -m papers pahikkala2010

    Parameters
    ----------
    paper : PAPER
        Which: cheng2018, pahikkala2010, stevens2013 or tsivtsivadze2012.
    data : DIR
        Directory of the public sets; by default $LEANRANK_DATA.
    out : DIR
        Where to write; by default reproduce-PAPER.
    splits : N >= 2
        Random splits, where a paper has them; by default 20.
    online : --online
        tsivtsivadze2012: the experiment with clicks that its Section 5 leaves open. Runs that DIR
        holds are not repeated.
    seeds : N >= 2
        With --online: runs per fold; by default 25.
    queries : N >= 100
        With --online: lists per run; by default 10,000.
    """
    module = get_paper(paper, online=online)
    folder = Path(f"reproduce-{paper}{'-online' * online}" if out is None else out)
    given = {"splits": splits, "seeds": seeds, "queries": queries}
    more = {name: value for name, value in given.items() if value is not None}
    for name in more:
        if name not in inspect.signature(module.run).parameters:
            raise InputError(f"{paper}{' --online' * online} has no {name}: leave out --{name}")
    with screen.progress() as say:
        report = module.run(data, folder, say=say, n_jobs=jobs, **more)
    if json:
        screen.print_json(report.to_dict())
        return
    console = screen.screen()
    for table in report.tables:
        console.print(f"\n{table.title}")
        console.print(fitting(console, table))
    console.print()
    for note in report.notes:
        console.print(note, style="dim", soft_wrap=True)
    console.print(report.summary, style="bold green" if not report.n_different else "bold red")
    console.print(f"Written to {folder}", soft_wrap=True)


def fitting(console: Console, table: ComparedTable) -> Table:
    """Lay out a table with our figures beside the printed ones or, if too wide, below them."""
    wide = _table(table)
    endless = console.options.update(max_width=10_000)
    if Measurement.get(console, endless, wide).maximum <= console.width:
        return wide
    return _stacked(table)


def _stacked(table: ComparedTable) -> Table:
    grid = _grid()
    for name in table.columns:
        grid.add_column(name, justify="right")
    for label, cells in table.rows:
        pairs = [cell.texts() for cell in cells]
        if any(published for published, _ in pairs):
            grid.add_row(Text(label), *(Text(published, style="dim") for published, _ in pairs))
            label = "  ours"
        if any(ours for _, ours in pairs):
            styles = ["bold red" if cell.differs else "" for cell in cells]
            figures = [Text(ours, style=s) for (_, ours), s in zip(pairs, styles, strict=True)]
            grid.add_row(Text(label), *figures)
    return grid


def _grid() -> Table:
    grid = screen.empty_table()
    grid.add_column("", no_wrap=True)
    return grid


def _table(table: ComparedTable) -> Table:
    """Lay out a table; what differs is red."""
    grid = _grid()
    printed = [table.has_published(at) for at in range(len(table.columns))]
    for at, name in enumerate(table.columns):
        if printed[at]:
            grid.add_column(name, justify="right", style="dim", no_wrap=True)
        if table.has_ours(at):
            heading = "ours" if printed[at] else name
            grid.add_column(heading, justify="right", no_wrap=True)
    for label, cells in table.rows:
        texts: list[Text] = [Text(label)]
        for at, cell in enumerate(cells):
            published, ours = cell.texts()
            if printed[at]:
                texts.append(Text(published))
            if table.has_ours(at):
                texts.append(Text(ours, style="bold red" if cell.differs else ""))
        grid.add_row(*texts)
    return grid


if __name__ == "__main__":
    sys.exit(main())
