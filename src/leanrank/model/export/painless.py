"""Scripts of Elasticsearch and OpenSearch for those without a plugin.

A feature is a numeric field, or ``_score`` if ``--names`` says so.
"""

from __future__ import annotations

from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import Syntax, pretty, quoted, rescored

PAINLESS = Syntax(value="doc[{x}].value", is_missing="doc[{x}].size() == 0")
# A missing field counts as 0 in an expression.
EXPRESSION = Syntax(
    value="doc[{x}].value", zero_filled="doc[{x}].value", is_missing="doc[{x}].empty"
)
SCORE = Syntax(zero_filled="{x}", is_missing="false")


def write(formula: Formula, options: Options, target: Target) -> str:
    """Write a script, an expression, or a rescore query around a script."""
    if target.name == "lucene-expression":
        return _sum(formula, EXPRESSION) + "\n"
    if target.name == "painless":
        return f"return {_sum(formula, PAINLESS)};\n"
    # Scores of a script may not be negative. This increasing function makes them positive.
    source = f"double s = {_sum(formula, PAINLESS)}; return s < 0 ? 1 / (1 - s) : 1 + s;"
    script_score = {"query": {"match_all": {}}, "script": {"lang": "painless", "source": source}}
    return pretty(rescored({"script_score": script_score}, options.top))


def _sum(formula: Formula, syntax: Syntax) -> str:
    parts = []
    for term in formula.terms:
        if term.name == "_score":
            parts.append(term.curve.written(SCORE, "_score"))
        else:
            parts.append(term.curve.written(syntax, quoted(term.name, "'")))
    if formula.constant != 0:
        parts.append(syntax.number(formula.constant))
    return " + ".join(parts)
