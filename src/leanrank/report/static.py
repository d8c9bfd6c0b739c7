"""Pages without scripts: charts are drawn as SVG, once for wide and once for narrow screens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from leanrank._version import __version__
from leanrank.plots.charts import lines
from leanrank.plots.colours import LINES, theme
from leanrank.report.page import asset, drawn

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
_STYLE = """
.narrow { display: none; }
@media (max-width: 46rem) { .wide { display: none; } .narrow { display: block; } }
"""
SIZES = {"wide": (640, 300, "right"), "narrow": (280, 230, "bottom")}


def static_page(title: str, lead: str, body: str, *, links: str = "", style: str = "") -> str:
    """Return a page as text; ``body`` and ``links`` are HTML."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n"
        f'<link rel="icon" href="data:,">\n'
        f"<style>{asset('page.css')}{_STYLE}{style}{_dark()}</style>\n"
        f'</head>\n<body>\n<header class="top"><div><h1>{escape(title)}</h1>'
        f'<p class="lead">{escape(lead)}</p></div></header>\n'
        f'{links}<main id="main">\n{body}</main>\n'
        f"<footer><p>leanrank {escape(__version__)}</p></footer>\n</body>\n</html>\n"
    )


def figures_table(name: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of figures as HTML: texts are escaped, the first cell of a row names it."""
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    body = "".join(
        f'<tr><th scope="row">{escape(first)}</th>'
        + "".join(f"<td>{escape(text)}</td>" for text in rest)
        + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}">'
        f'<table class="figures"><thead><tr>{head}</tr></thead><tbody>{body}'
        "</tbody></table></div>\n"
    )


def drawn_lines(
    x: Sequence[float],
    values: Mapping[str, Sequence[float]],
    sizes: Mapping[str, tuple[int, int, str]] = SIZES,
    **options: Any,
) -> str:
    """Draw lines of unlike colours for each kind of screen, as HTML."""
    forms = []
    for kind, (width, height, legend) in sizes.items():
        chart = lines(
            x, values, ordered=False, legend=legend, width=width, height=height, **options
        )  # fmt: skip
        forms.append(f'<div class="{kind}">{drawn(chart)}</div>')
    return "".join(forms)


def _dark() -> str:
    """Return the rules of a dark page; SVG has its colours as attributes, which rules replace."""
    sheet = asset("page.css")
    start = sheet.index(':root[data-theme="dark"]')
    variables = sheet[sheet.index("{", start) : sheet.index("}", start) + 1]
    light, dark = theme(), theme(dark=True)
    pairs = dict(LINES)
    for part in ("labelColor", "gridColor"):
        pairs[light["axis"][part]] = dark["axis"][part]
    pairs[light["style"]["chosen"]["color"]] = dark["style"]["chosen"]["color"]
    rules = "".join(
        f'svg [{name}="{old}"] {{ {name}: {new}; }}'
        for old, new in pairs.items()
        for name in ("fill", "stroke")
    )
    return f"@media (prefers-color-scheme: dark) {{ :root {variables} {rules} }}"
