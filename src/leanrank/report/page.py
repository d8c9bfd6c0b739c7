"""Two kinds of pages: one with a script and its charts, and one without, of text and SVG."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Any

from leanrank._version import __version__
from leanrank.errors import MissingDependencyError
from leanrank.plots.parts import LINES, alt, theme

_UNSAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def make_page(contents: Mapping[str, Any]) -> str:
    """Write contents as an HTML page.

    The page forbids itself every connection and every script but its own three, which are named by
    their hashes: a name that looks like HTML is shown as text and cannot run.
    """
    library = f'"use strict";(function(){{{chart_library()}}})();'
    script = asset("page.js")
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        # the charts' library compiles expressions; they come from our own code only
        f"form-action 'none'; script-src 'unsafe-eval' {_hash(library)} {_hash(script)}"
    )
    parts = {
        "POLICY": escape(policy, quote=True),
        "TITLE": escape(str(contents["title"])),
        "STYLE": asset("page.css"),
        "CONTENTS": embed_json(contents),
        "LIBRARY": library,
        "SCRIPT": script,
    }
    page = []
    for piece in asset("page.html").split("{{"):  # one pass: a part is never searched again
        name, mark, rest = piece.partition("}}")
        page.append(parts[name] + rest if mark and name in parts else piece)
    return "".join(page)


def embed_json(value: Any) -> str:
    r"""Write JSON that cannot end the script element around it.

    >>> embed_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character, code in _UNSAFE.items():
        text = text.replace(character, code)
    return text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate is no text


@lru_cache(maxsize=1)
def chart_library() -> str:
    """Return Vega and Vega-Lite as one script, in the version that Altair writes for."""
    converter = _converter()
    wanted = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    known = converter.get_vegalite_versions()
    version = wanted if wanted in known else known[-1]
    library: str = converter.javascript_bundle(vl_version=version)
    # inside a string, the only place for it, the escape means the same
    return re.sub("</(script)", r"<\\/\1", library, flags=re.IGNORECASE)


def drawn(chart: Any) -> str:
    """Return a chart as SVG."""
    svg: str = _converter().vegalite_to_svg(chart.to_json())
    return svg


def _converter() -> Any:
    try:
        import vl_convert
    except ImportError as error:
        raise MissingDependencyError("vl-convert-python", "report", "a page") from error
    return vl_convert


def asset(name: str) -> str:
    """Return the text of a file of this package."""
    return files("leanrank.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


def static_page(title: str, lead: str, body: str, *, style: str = "") -> str:
    """Return a page as text; ``body`` is HTML."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n"
        f'<link rel="icon" href="data:,">\n'
        f"<style>{asset('page.css')}{style}{_dark()}</style>\n"
        f'</head>\n<body>\n<header class="top"><div><h1>{escape(title)}</h1>'
        f'<p class="lead">{escape(lead)}</p></div></header>\n'
        f'<main id="main">\n{body}</main>\n'
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
