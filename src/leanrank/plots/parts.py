"""What all charts are made with: colours, data, axes, tooltips."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leanrank.errors import MissingDependencyError

ROW_HEIGHT = 20
"""Height of a bar with its name, in pixels."""


def altair_for(purpose: str) -> Any:
    """Import Altair, or say what it is needed for."""
    try:
        import altair
    except ImportError as error:
        raise MissingDependencyError("altair", "report", purpose) from error
    return altair


def inline(name: str, rows: list[dict[str, Any]]) -> Any:
    """Return rows as data of a chart that a page can replace by name."""
    import altair

    return altair.InlineData(values=rows, name=name)


def finished(chart: Any, width: int | str, height: Any) -> Any:
    """Set the size and colours of a chart; ``"container"`` fills the width of a page."""
    import altair

    if width == "container":
        chart = chart.properties(autosize=altair.AutoSizeParams(type="fit-x", contains="padding"))
    return _offline(chart.properties(width=width, height=height).configure(**theme()))


def _offline(chart: Any) -> Any:
    """Let ``save`` write pages that hold their scripts instead of loading them."""
    kind = type(chart)

    def save(self: Any, fp: Any, *args: Any, **options: Any) -> None:
        kind.save(self, fp, *args, **{"inline": True, **options})

    object.__setattr__(chart, "__class__", type(kind.__name__, (kind,), {"save": save}))
    return chart


def tips(*fields: str) -> list[Any]:
    """Return a tooltip: each field is followed by its format or -, and its title if it differs."""
    import altair

    made = []
    for field, how, *title in (one.split(maxsplit=2) for one in fields):
        more = {"title": title[0]} if title else {}
        made.append(altair.Tooltip(field, **({} if how == "-" else {"format": how}), **more))
    return made


def bar_axis(field: str) -> Any:
    """Return an axis of named bars, in the order of their ``place``."""
    import altair

    return altair.Y(
        f"{field}:N",
        # by a number: names stay out of the chart's code
        sort=altair.EncodingSortField("place", op="min", order="ascending"),
        title=None,
        axis=altair.Axis(
            domain=False,
            ticks=False,
            labelLimit=150,
            labelPadding=6,
            grid=False,
            labelExpr=middle("datum.label", "24"),
        ),
    )


def names_of(names: dict[str, str], data: str) -> list[Any]:
    """Return layers with the name of what is drawn, and of its axes, which are data."""
    import altair

    rows = altair.Chart(inline(data, [names]))
    where = {
        "feature": ({"align": "left", "fontWeight": "bold", "dy": -5}, 0, 0),
        "x": ({"align": "right", "dy": 32}, "width", "height"),
        "y": ({"align": "right", "angle": 270, "dy": -34}, 0, 0),
    }
    return [
        rows.mark_text(
            style="chosen" if key == "feature" else "baseline", baseline="bottom", **how
        ).encode(text=f"{key}:N", x=altair.value(x), y=altair.value(y))
        for key, (how, x, y) in where.items()
        if key in names
    ]


def value_axis(ends: Sequence[Any], title: str | None = None, **scale: Any) -> dict[str, Any]:
    """Return title, scale and axis of values; ends are numbers, or name parameters."""
    import altair

    domain = {"domainMin": ends[0], "domainMax": ends[1]}
    return {
        "title": title,
        "scale": altair.Scale(nice=False, zero=False, **domain, **scale),
        "axis": altair.Axis(grid=False, tickCount=4, labelOverlap=True, format=".15~g"),
    }


def middle(name: str, most: str) -> str:
    """Return an expression that leaves out the middle of a long name: ends often differ."""
    ends = f"slice({name}, 0, {most} / 2 - 1) + '…' + slice({name}, 1 - {most} / 2)"
    return f"length({name}) > {most} ? {ends} : {name}"


LINES = {
    "#1f5fa6": "#6db3f8",
    "#c2561a": "#f2a06c",
    "#1b8a5a": "#5fd3a0",
    "#8a4fbf": "#c79bf0",
    "#8f7200": "#d9bd45",
    "#b83a78": "#f089b8",
    "#5b6570": "#9aa4b0",
    "#007f93": "#52cadb",
}
"""Colours of lines that have no order, on a light page and on a dark one."""


def theme(*, dark: bool = False) -> dict[str, Any]:
    """Return the colours and fonts of all charts, as a Vega-Lite configuration.

    One accent colour, a second one for its opposite, grey for context.
    """
    light = "#1c2024 #5b6570 #e3e6ea #1f5fa6 #b5501b #b4bcc6"
    colours = "#dfe3e8 #9aa4b0 #323a45 #6db3f8 #f2a06c #566170" if dark else light
    text, muted, faint, accent, against, context = colours.split()
    font = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
    return {
        "background": "transparent",
        "font": font,
        "view": {"stroke": None},
        "axis": {
            "labelColor": muted,
            "titleColor": muted,
            "gridColor": faint,
            "domainColor": faint,
            "tickColor": faint,
            "labelFontSize": 11,
            "titleFontSize": 11.5,
            "titleFontWeight": "normal",
            "titlePadding": 8,
            "labelPadding": 4,
        },
        "range": {"diverging": [against, faint, accent]},
        "legend": {"labelColor": muted, "titleColor": muted},
        "style": {
            "accent": {"color": accent},
            "against": {"color": against},
            "context": {"color": context},
            "baseline": {"color": muted},
            "chosen": {"color": text},
        },
    }
