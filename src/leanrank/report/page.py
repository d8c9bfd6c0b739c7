"""Putting the page together: template, style, script, contents, and the library of the charts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from html import escape
from importlib.resources import files
from typing import Any

from leanrank.errors import MissingDependencyError

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
    try:
        import vl_convert
    except ImportError as error:
        raise MissingDependencyError("vl-convert-python", "report", "a report") from error
    try:
        from altair import SCHEMA_VERSION
    except ImportError as error:
        raise MissingDependencyError("altair", "report", "a report") from error
    wanted = ".".join(SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    known = vl_convert.get_vegalite_versions()
    version = wanted if wanted in known else known[-1]
    library: str = vl_convert.javascript_bundle(vl_version=version)
    # inside a string, the only place for it, the escape means the same
    return re.sub("</(script)", r"<\\/\1", library, flags=re.IGNORECASE)


def drawn(chart: Any, purpose: str = "a report") -> str:
    """Draw a chart as SVG."""
    try:
        import vl_convert
    except ImportError as error:
        raise MissingDependencyError("vl-convert-python", "report", purpose) from error
    svg: str = vl_convert.vegalite_to_svg(chart.to_json())
    return svg


def asset(name: str) -> str:
    """Return the text of a file of this package."""
    return files("leanrank.report").joinpath(name).read_text(encoding="utf-8")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"
