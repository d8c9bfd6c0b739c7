"""A model as a notebook shows it: its features by weight, with bars."""

from __future__ import annotations

from html import escape

from leanrank._display import CELL
from leanrank.model.model import Model


def weights_html(model: Model, title: str | None = None, note: str = "", most: int = 15) -> str:
    """Write the features with the largest weights as an HTML table; every name is escaped.

    >>> from leanrank.model import Model
    >>> "&lt;b&gt;" in weights_html(Model.from_coef([1.0], feature_names=["<b>"]))
    True
    """
    shown = list(model.weights.items())[:most]
    largest = max((abs(value) for _, value in shown), default=1.0)
    rows = [
        f'<tr><td style="{CELL}left">{escape(str(name))}</td>'
        f'<td style="{CELL}right;font-variant-numeric:tabular-nums">{value:+.4g}</td>'
        f'<td style="{CELL}left"><span style="{_bar(value / largest)}"></span></td></tr>'
        for name, value in shown
    ]
    head = title or type(model).__name__
    used = f"{model.n_nonzero:,} of {model.n_features:,} features"
    if model.n_nonzero > len(shown):
        used += f", the {len(shown)} largest shown"
    text = ", ".join(filter(None, (used, note)))
    return (
        f"<div><div><strong>{escape(head)}</strong> "
        f'<span style="opacity:.7">{escape(text)}</span></div>'
        f'<table style="border-collapse:collapse;margin:.3em 0">{"".join(rows)}</table></div>'
    )


def _bar(share: float) -> str:
    colour = "#2563a8" if share > 0 else "#a3552b"
    return (
        f"display:inline-block;height:.7em;width:{max(0.05, 8 * abs(share)):.2f}em;"
        f"background:{colour};border-radius:1px"
    )
