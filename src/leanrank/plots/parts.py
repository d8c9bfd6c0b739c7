"""What all charts are made with."""

from __future__ import annotations

from typing import Any

from leanrank.errors import MissingDependencyError
from leanrank.plots.colours import theme


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
    return chart.properties(width=width, height=height).configure(**theme())
