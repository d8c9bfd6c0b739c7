"""The colours and type of all charts."""

from __future__ import annotations

from typing import Any

LINES = {
    "#1f5fa6": "#6db3f8", "#c2561a": "#f2a06c", "#1b8a5a": "#5fd3a0", "#8a4fbf": "#c79bf0",
    "#8f7200": "#d9bd45", "#b83a78": "#f089b8", "#5b6570": "#9aa4b0", "#007f93": "#52cadb",
}  # fmt: skip
"""Colours of lines that have no order, on a light page and on a dark one."""


def theme(*, dark: bool = False) -> dict[str, Any]:
    """Return the colours and fonts of all charts, as a Vega-Lite configuration.

    One accent colour, a second one for its opposite, grey for context.
    """
    text, muted, faint = ("#dfe3e8", "#9aa4b0", "#323a45") if dark else (
        "#1c2024", "#5b6570", "#e3e6ea",
    )  # fmt: skip
    accent, against, context = ("#6db3f8", "#f2a06c", "#566170") if dark else (
        "#1f5fa6", "#b5501b", "#b4bcc6",
    )  # fmt: skip
    font = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
    return {
        "background": "transparent",
        "font": font,
        "view": {"stroke": None},
        "axis": {
            "labelColor": muted, "titleColor": muted, "gridColor": faint, "domainColor": faint,
            "tickColor": faint, "labelFontSize": 11, "titleFontSize": 11.5,
            "titleFontWeight": "normal", "titlePadding": 8, "labelPadding": 4,
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
    }  # fmt: skip
