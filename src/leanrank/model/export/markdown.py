"""A model card: the terms of the score, and how the model was made."""

from __future__ import annotations

import json
import re

from leanrank._display import printable
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target, able_targets
from leanrank.model.export.text import filled
from leanrank.model.terms import Levels

_SCALERS = {
    "query-minmax": "scaled to [0, 1] within each query",
    "query-standard": "scaled to mean 0 and deviation 1 within each query",
    "query-rank": "replaced by their rank within each query, scaled to [0, 1]",
}


def write(formula: Formula, options: Options, target: Target) -> str:
    """Return the card."""
    scaled = "" if formula.scaler is None else _SCALERS.get(formula.scaler, f"({formula.scaler})")
    rows = []
    for term in formula.terms:
        adds = term.curve.described()
        adds = _code(adds) if isinstance(term.curve, Levels) else adds
        rows.append(f"| {_code(term.name)} | {adds} |")
    fields = {
        "name": options.name,
        "n": str(len(formula.names)),
        "version": formula.version,
        "scaled": f", which are first {scaled}" if scaled else "",
        "constant": f", plus {formula.constant!r}" if formula.constant else "",
        "missing": "" if formula.is_linear else ", or as given in the table",
        "rows": "\n".join(rows),
        "targets": ", ".join(f"`{t}`" for t in able_targets(formula)),
        "made": json.dumps(dict(formula.provenance), indent=2, sort_keys=True),  # in plain letters
    }
    return filled("markdown.md", fields, formula.provenance)


def _code(text: str) -> str:
    """Return text as Markdown code, between more backquotes than it has in a row."""
    shown = printable(text)
    marks = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    space = " " if shown[:1] in ("`", "") or shown[-1:] == "`" else ""
    return f"{marks}{space}{shown}{space}{marks}".replace("|", "\\|")
