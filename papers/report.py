"""The result of a reproduction: tables of published and obtained figures, and plots."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from leanrank._files import atomic_write, make_folder
from leanrank.errors import MissingDependencyError


@dataclass(frozen=True)
class Cell:
    """A figure as printed and as obtained here; None where there is none.

    Attributes
    ----------
    exact : bool
        Whether the two should agree to the last digit; not if the data differ.
    """

    published: str | None = None
    ours: str | None = None
    exact: bool = True

    @property
    def is_compared(self) -> bool:
        """Whether there are two figures that should agree."""
        return self.exact and self.published is not None and self.ours is not None

    @property
    def differs(self) -> bool:
        """Whether the two figures are not the same to the last digit."""
        return self.is_compared and self.published != self.ours

    def texts(self) -> tuple[str, str]:
        """Return both as text, ours with the difference if there is one.

        >>> Cell("0.4524", "0.4531").texts(), Cell("39", "39").texts(), Cell("0.45").texts()
        (('0.4524', '0.4531 (+0.0007)'), ('39', '39'), ('0.45', ''))
        """
        ours = self.ours or ""
        if self.differs:
            ours += f" ({_difference(self.published or '', ours)})"
        return self.published or "", ours


def beside(published: str | None, ours: str | None) -> Cell:
    """Put figures side by side that need not match, since the data differ."""
    return Cell(published, ours, exact=False)


@dataclass(frozen=True)
class ComparedTable:
    """A published table; a column is shown as published, as obtained, or both."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]

    @property
    def n_compared(self) -> int:
        """How many figures could be compared."""
        return sum(cell.is_compared for _, cells in self.rows for cell in cells)

    @property
    def n_different(self) -> int:
        """How many of them are not the same."""
        return sum(cell.differs for _, cells in self.rows for cell in cells)

    def has_ours(self, column: int) -> bool:
        """Whether a column was obtained here."""
        return any(cells[column].ours is not None for _, cells in self.rows)

    def has_published(self, column: int) -> bool:
        """Whether a column was published."""
        return any(cells[column].published is not None for _, cells in self.rows)

    def markdown(self) -> str:
        """Write the table; figures that differ are bold."""
        heads = [""]
        shown = [(self.has_published(at), self.has_ours(at)) for at in range(len(self.columns))]
        for name, (printed, obtained) in zip(self.columns, shown, strict=True):
            heads += [f"{name}, published"] * printed
            heads += ["ours" if printed else name] * obtained
        lines = [f"### {self.title}", "", _row(heads), _row(["---"] * len(heads))]
        for label, cells in self.rows:
            out = [label]
            for cell, (printed, obtained) in zip(cells, shown, strict=True):
                published, ours = cell.texts()
                out += [published] * printed + [f"**{ours}**" if cell.differs else ours] * obtained
            lines.append(_row(out))
        if self.n_compared:
            same = self.n_compared - self.n_different
            lines += ["", f"{same} of {self.n_compared} figures agree."]
        return "\n".join(lines)


@dataclass(frozen=True)
class Plot:
    """Lines over a common axis, each with a band around it if there are any."""

    title: str
    x_label: str
    y_label: str
    x: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    bands: Mapping[str, Sequence[tuple[float, float]]] = field(default_factory=dict)
    log_x: bool = False
    ordered: bool = True

    def svg(self) -> str:
        """Draw the chart; needs the packages of ``leanrank[report]``."""
        from leanrank.plots.charts import decades
        from leanrank.plots.parts import LINES, alt, finished, inline
        from leanrank.report.page import drawn

        rows = []
        for name, line in self.lines.items():
            bands = self.bands.get(name) or zip(line, line, strict=True)
            for at, y, (low, high) in zip(self.x, line, bands, strict=True):
                ends = {"value": float(y), "low": float(low), "high": float(high)}
                if math.isfinite(y):
                    rows.append({"x": float(at), "line": name, **ends})
        scale = alt.Scale(zero=False)
        marks: dict[str, Any] = {}
        if self.log_x:
            scale = alt.Scale(type="log", nice=False)
            marks = {"values": decades(self.x), "format": ",d"}
        shades: dict[str, Any] = {"scheme": "viridis"}  # from dark to light in their order
        if not self.ordered:
            shades = {"range": LINES, "domain": list(self.lines)}
        chart = (
            alt.Chart(inline("lines", rows), title=self.title)
            .mark_line(strokeWidth=1.6)
            .encode(
                x=alt.X("x:Q", title=self.x_label, axis=alt.Axis(grid=False, **marks), scale=scale),
                y=alt.Y("value:Q", title=self.y_label, scale=alt.Scale(zero=False)),
                color=alt.Color(
                    "line:O" if self.ordered else "line:N",
                    sort=list(self.lines),
                    title=None,
                    scale=alt.Scale(**shades),
                    legend=alt.Legend(orient="right", symbolType="stroke", symbolOpacity=1.0),
                ),
            )
        )
        if self.bands:
            edge = alt.Y("low:Q", title=self.y_label)
            chart = chart.mark_area(opacity=0.15).encode(y=edge, y2="high:Q") + chart
        return drawn(finished(chart, 560, 300))


@dataclass
class Report:
    """All results of a reproduction.

    Attributes
    ----------
    paper, title : str
    tables : list of ComparedTable
    plots : dict of str to Plot
        By the name of the file, without its suffix.
    notes : list of str
        What was left out, and why.
    conclusion : str
        Replaces the count of figures that agree.
    """

    paper: str
    title: str
    tables: list[ComparedTable] = field(default_factory=list)
    plots: dict[str, Plot] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    conclusion: str = ""

    @property
    def n_compared(self) -> int:
        """How many figures could be compared."""
        return sum(table.n_compared for table in self.tables)

    @property
    def n_different(self) -> int:
        """How many of them are not the same."""
        return sum(table.n_different for table in self.tables)

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        same = self.n_compared - self.n_different
        return self.conclusion or (
            f"{same} of {self.n_compared} published figures come out to the last printed digit."
        )

    def markdown(self) -> str:
        """Write everything as one page."""
        parts = [f"# {self.title}", self.summary, *self.notes]
        parts += [table.markdown() for table in self.tables]
        parts += [f"### {plot.title}\n\n![{plot.title}]({n}.svg)" for n, plot in self.plots.items()]
        return "\n\n".join(parts) + "\n"

    def to_dict(self) -> dict[str, object]:
        """Return plain values, ready for JSON."""
        return {
            "paper": self.paper,
            "title": self.title,
            "compared": self.n_compared,
            "different": self.n_different,
            "notes": self.notes,
            "tables": [
                {
                    "title": table.title,
                    "columns": list(table.columns),
                    "rows": [
                        {
                            "row": label,
                            "published": [cell.published for cell in cells],
                            "ours": [cell.ours for cell in cells],
                        }
                        for label, cells in table.rows
                    ],
                }
                for table in self.tables
            ],
            "plots": {name: asdict(plot) for name, plot in self.plots.items()},
        }

    def write(self, out_dir: str | os.PathLike[str] | None) -> list[Path]:
        """Write report.md, report.json and the plots to a folder, if any; returns the files.

        Without the packages that draw, the plots are in report.json only.
        """
        if out_dir is None:
            return []
        folder, texts = make_folder(out_dir), {}
        try:
            texts = {f"{name}.svg": plot.svg() for name, plot in self.plots.items()}
        except MissingDependencyError as error:
            self.notes.append(f"The figures are not drawn: {error}.")
        texts["report.md"] = self.markdown()
        texts["report.json"] = json.dumps(self.to_dict(), indent=1, ensure_ascii=False) + "\n"
        for name, text in texts.items():
            with atomic_write(folder / name) as stream:
                stream.write(text)
        return [folder / name for name in texts]


def _difference(published: str, ours: str) -> str:
    try:
        away = float(ours) - float(published)
    except ValueError:
        return "differs"
    digits = len(published.partition(".")[2])
    return f"{away:+.{digits}f}"


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"
