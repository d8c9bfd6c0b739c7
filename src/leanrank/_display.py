"""Text without control characters, and small HTML tables for notebooks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

# Control characters, line separators, changes of direction and invalid characters.
UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
)
CELL = "padding:.15em .8em .15em 0;border:0;background:none;text-align:"


def printable(text: object) -> str:
    r"""Return text that is safe to show on a terminal: control characters become ``�``.

    Names come from files, and could otherwise move the cursor or set the title.

    >>> printable("a\x1b[2Jb")
    'a�[2Jb'
    """
    return UNSAFE.sub("\ufffd", str(text))


def printable_lines(text: str) -> str:
    """Return several lines that are safe to show on a terminal.

    Every ``__repr__`` with names returns this.
    """
    return "\n".join(map(printable, text.split("\n")))


def html_table(title: str, note: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table with a title line, texts in the first column and numbers in the others.

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
