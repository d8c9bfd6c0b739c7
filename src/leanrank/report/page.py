"""HTML pages: one kind with a script and charts, one without a script, of text and SVG."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Any

from leanrank._version import __version__
from leanrank.errors import MissingDependencyError
from leanrank.plots.parts import alt

_UNSAFE = {ord(one): f"\\u{ord(one):04x}" for one in "<>&\u2028\u2029"}


def make_page(contents: Mapping[str, Any]) -> str:
    """Return contents as an HTML page.

    The policy of the page forbids every connection and all scripts except its own, which are listed
    by hash: a name that looks like HTML is shown as text and cannot run.
    """
    library = f'"use strict";(function(){{{chart_library()}}})();'
    script = asset("page.js")
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
        # the chart library compiles expressions, which are all from this package
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
    return _filled("page.html", parts)


def _filled(template: str, parts: Mapping[str, str]) -> str:
    """Return a template with its parts, in one pass: parts are not searched again."""
    return re.sub(r"{{(\w+)}}", lambda name: parts[name[1]], asset(template))


def embed_json(value: Any) -> str:
    r"""Return JSON that cannot end the script element around it.

    >>> embed_json({"name": "</script>"})
    '{"name":"\\u003c/script\\u003e"}'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    text = text.translate(_UNSAFE)
    return text.encode("utf-8", "replace").decode("utf-8")  # drops lone surrogates


@lru_cache(maxsize=1)
def chart_library() -> str:
    """Return Vega and Vega-Lite as one script, in the version that Altair writes for."""
    converter = _converter()
    wanted = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    known = converter.get_vegalite_versions()
    version = wanted if wanted in known else known[-1]
    library: str = converter.javascript_bundle(vl_version=version)
    # it occurs only in strings, where the escape means the same
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


def static_page(title: str, lead: str, body: str) -> str:
    """Return a page without a script as text; ``body`` is HTML."""
    parts = {"TITLE": escape(title), "LEAD": escape(lead), "BODY": body}
    style, version = asset("page.css"), escape(__version__)
    return _filled("plain.html", {**parts, "STYLE": style, "VERSION": version, "DATE": today()})


def today() -> str:
    """Return the date, or that of ``SOURCE_DATE_EPOCH`` where pages are to be the same bytes."""
    given = os.environ.get("SOURCE_DATE_EPOCH", "")
    return time.strftime("%Y-%m-%d", time.gmtime(int(given) if given.isdigit() else None))


def figures_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of numbers as HTML: texts are escaped, the first cell of a row is its head.

    On a narrow page, each row is a block of lines with the heads of the columns.
    """
    first, *others = map(escape, heads)
    head = "".join(f'<th scope="col">{text}</th>' for text in (first, *others))
    body = ""
    for name, *figures in rows:
        cells = zip(others, map(escape, figures), strict=True)
        body += f'<tr><th scope="row">{escape(name)}</th>'
        body += "".join(f'<td data-head="{what}">{text}</td>' for what, text in cells) + "</tr>"
    return f'<table class="stacked"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>\n'
