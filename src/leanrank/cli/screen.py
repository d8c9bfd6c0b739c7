"""Output: tables, progress on a terminal, and JSON."""

from __future__ import annotations

import contextlib
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import IO, TYPE_CHECKING, Any

from leanrank._display import UNSAFE, printable_lines
from leanrank._numbers import defined

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from leanrank.metrics import Comparison, Evaluation
    from leanrank.model import Model

SHOWN_FEATURES = 12
_BLANKS = re.compile(r"[ ]+\n")


@contextlib.contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Return a function that shows the current step, on a terminal only."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    text = TextColumn("{task.description}", markup=False)
    columns = (SpinnerColumn(), text, TimeElapsedColumn())
    with Progress(*columns, console=screen(error=True), transient=True) as shown:
        task = shown.add_task("Starting", total=None)
        yield lambda text: shown.update(task, description=text)


def screen(*, error: bool = False) -> Console:
    """Return a console on standard output or error that shows markup and control codes as text.

    All output goes through such a console, which passes it to ``printable_lines``.
    """
    from rich.console import Console
    from rich.segment import Segment

    class Screen(Console):
        def render(self, *shown: Any) -> Iterator[Segment]:
            for text, style, control in super().render(*shown):
                # rich moves the cursor by segments with ``control``
                yield Segment(text if control else printable_lines(text), style, control)

    stream = Trimmed(sys.stderr if error else sys.stdout)
    return Screen(file=stream, highlight=False, markup=False, emoji=False)  # type: ignore[arg-type]


class Trimmed:
    """A text stream that drops blanks at the ends of lines, which rich writes in tables."""

    def __init__(self, stream: IO[str]) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write whole lines, as rich does."""
        self.stream.write(_BLANKS.sub("\n", text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def print_json(result: Mapping[str, Any]) -> None:
    """Print one JSON object; undefined numbers are null."""
    text = json.dumps(defined(result), allow_nan=False, ensure_ascii=False)
    print(UNSAFE.sub(lambda found: json.dumps(found[0])[1:-1], text))


def facts(rows: Mapping[str, str]) -> Table:
    """Return a table of names and texts, one per line; empty texts are left out."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows.items():
        if text:
            grid.add_row(name, text)
    return grid


def weights_table(model: Model, console: Console) -> Table:
    """Return a table of the features with the largest weights."""
    from rich.bar import Bar

    table = empty_table()
    table.add_column("feature", overflow="fold")
    table.add_column("weight", justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    shown = list(model.weights.items())[:SHOWN_FEATURES]
    largest = abs(shown[0][1]) if shown else 1.0
    width = min(20, console.width // 4)
    for name, weight in shown:
        colour = "cyan" if weight > 0 else "magenta"
        bar = Bar(largest, 0, abs(weight), width=width, color=colour)
        table.add_row(name, signed(weight, largest), bar)
    return table


def weights_caption(model: Model) -> str:
    """Return a sentence on how many features have a weight, and how many are shown."""
    n_all, n_used = model.n_features, model.n_nonzero
    caption = f"{n_used:,} of {n_all:,} feature{'s' * (n_all != 1)} with a weight"
    if n_used > SHOWN_FEATURES:
        caption += f", the {SHOWN_FEATURES} largest shown"
    return caption


def print_model(console: Console, model: Model, columns: Mapping[str, Evaluation]) -> None:
    """Print the largest terms of a model, and its measures."""
    if model.n_nonzero:
        console.print(weights_table(model, console))
    console.print(weights_caption(model), style="dim")
    if columns:
        console.print()
        console.print(measures_table(columns))
        console.print(measures_note(list(columns.values())[-1]), style="dim")


def print_written(console: Console, files: Mapping[str, str | None]) -> None:
    """Print the files that were written."""
    for what, file in files.items():
        if file is not None and file != "-":
            console.print(f"{what} written to {file}", soft_wrap=True)


def measures_table(columns: Mapping[str, Evaluation]) -> Table:
    """Return a table of evaluations side by side, one measure per row."""
    first = next(iter(columns.values()))
    rows = [[name, *(number(one.means[name]) for one in columns.values())] for name in first.means]
    return plain_table("measure", *columns, rows=rows)


def measures_note(evaluation: Evaluation) -> str:
    """Return a note on the convention and on queries left out of a mean."""
    left_out = [f"{n:,} for {name}" for name, n in evaluation.undefined.items() if n]
    note = f"convention {evaluation.convention}"
    if left_out:
        note += f"; left out of {len(evaluation.query_ids):,} queries: {', '.join(left_out)}"
    return note


def plain_table(*columns: str, rows: Iterable[Sequence[Any]] = (), justify: Any = "right") -> Table:
    """Return a table; ``justify`` is for all columns but the first, which is left-justified."""
    table = empty_table()
    for at, column in enumerate(columns):
        table.add_column(column, justify="left" if at == 0 else justify, overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


def difference(one: Comparison) -> list[str]:
    """Return the difference of a comparison and its interval as texts."""
    low, high = one.interval
    return [f"{one.difference:+.4f}", f"{low:+.4f} to {high:+.4f}"]


def number(value: float) -> str:
    """Return a number with four decimals, or a dash for NaN.

    >>> number(0.25), number(float("nan"))
    ('0.2500', '–')
    """
    return "–" if math.isnan(value) else f"{value:.4f}"


def signed(weight: float, largest: float) -> str:
    """Return a weight as text, with as many decimals as the largest has in four digits.

    >>> signed(-0.25, 1.5), signed(0.5, 1234.0), signed(3e-9, 1e-7)
    ('-0.250', '+0', '+3.00e-09')
    """
    size = math.floor(math.log10(largest))
    return f"{weight:+.{max(0, 3 - size)}f}" if -5 < size < 9 else f"{weight:+.2e}"


def sizes(data: Any) -> dict[str, int]:
    """Return the sizes of a data set, for JSON."""
    return {"queries": data.n_queries, "documents": len(data), "features": data.n_features}


def data_summary(data: Any) -> str:
    """Return the description of a data set without its class name."""
    return " ".join(repr(data).partition(": ")[2].split())


def empty_table() -> Table:
    """Return a table without columns, in the style of all tables."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, pad_edge=False, header_style="dim", show_edge=False)
