"""Small tables for notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

CELL = "padding:.15em .8em .15em 0;border:0;background:none;text-align:"


def html_table(title: str, note: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Write a table with a title line: words in its first column, figures in the others.

    >>> "&lt;b&gt;" in html_table("Path", "", ["name"], [["<b>"]])
    True
    """
    styles = [CELL + "left"] + [CELL + "right;font-variant-numeric:tabular-nums"] * (len(head) - 1)

    def line(kind: str, cells: Sequence[str]) -> str:
        written = (
            f'<{kind} style="{style}">{escape(cell)}</{kind}>'
            for style, cell in zip(styles, cells, strict=True)
        )
        return f"<tr>{''.join(written)}</tr>"

    body = line("th", head) + "".join(line("td", row) for row in rows)
    return (
        f"<div><div><strong>{escape(title)}</strong> "
        f'<span style="opacity:.7">{escape(note)}</span></div>'
        f'<table style="border-collapse:collapse;margin:.3em 0">{body}</table></div>'
    )
