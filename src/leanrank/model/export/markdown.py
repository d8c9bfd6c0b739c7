"""A model card: what the score is made of, and how the model came about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target, able_targets

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
        f"A ranking function of {len(formula.terms)} features. Within a query, a document with a "
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
        name = term.name.replace("\\", "\\\\").replace("|", "\\|").replace("`", "'")
        lines.append(f"| `{name}` | {term.curve.described()} |")
    lines += ["", "## Where it can run", "", ", ".join(f"`{t}`" for t in able_targets(formula))]
    made = formula.provenance
    if made:
        lines += ["", "## How it was made", ""]
        lines += [f"- {key}: {_flat(made[key])}" for key in sorted(made)]
    return "\n".join(lines) + "\n"


def _flat(value: Any) -> str:
    if isinstance(value, Mapping):
        given = {key: inner for key, inner in value.items() if inner is not None}
        return ", ".join(f"{key} {_flat(inner)}" for key, inner in given.items())
    return str(value)
