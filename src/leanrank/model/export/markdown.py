"""A model card: what the score is made of, and how the model came about."""

from __future__ import annotations

import json
import re

from leanrank._display import printable
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target, able_targets
from leanrank.model.terms import Levels

_SCALERS = {
    "query-minmax": "scaled to [0, 1] within each query",
    "query-standard": "scaled to mean 0 and deviation 1 within each query",
    "query-rank": "replaced by their rank within each query, scaled to [0, 1]",
}


def write(formula: Formula, options: Options, target: Target) -> str:
    """Write the card."""
    scaled = "" if formula.scaler is None else _SCALERS.get(formula.scaler, f"({formula.scaler})")
    lines = [
        f"# {options.name}",
        "",
        f"A ranking function of {len(formula.names)} features. Within a query, a document with a "
        "higher score ranks higher; scores of different queries cannot be compared.",
        "",
        f"Version `{formula.version}`.",
        "",
        "## Score",
        "",
        "The score is the sum of the column *adds* over the features"
        + (f", which are first {scaled}" if scaled else "")
        + (f", plus {formula.constant!r}" if formula.constant else "")
        + ". A missing feature counts as 0"
        + ("" if formula.is_linear else ", or as said in the table")
        + ".",
        "",
        "| feature | adds |",
        "| --- | --- |",
    ]
    for term in formula.terms:
        name = _code(term.name).replace("|", "\\|")
        adds = term.curve.described()
        if isinstance(term.curve, Levels):
            adds = _code(adds).replace("|", "\\|")
        lines.append(f"| {name} | {adds} |")
    lines += ["", "## Where it can run", "", ", ".join(f"`{t}`" for t in able_targets(formula))]
    made = formula.provenance
    if made:
        text = json.dumps(dict(made), indent=2, sort_keys=True)  # escapes what is no plain letter
        lines += ["", "## How it was made", "", "```json", text, "```"]
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    """Return text between more backquotes than it has in a row."""
    shown = printable(text)
    marks = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    space = " " if shown[:1] in ("`", "") or shown[-1:] == "`" else ""
    return f"{marks}{space}{shown}{space}{marks}"
