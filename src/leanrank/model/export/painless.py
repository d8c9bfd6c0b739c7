"""Scripts of Elasticsearch and OpenSearch for those without a plugin.

A feature is a numeric field, or ``_score`` if ``--names`` says so.
"""

from __future__ import annotations

from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import Syntax, pretty, quoted, rescored

PAINLESS = Syntax(
    value="doc[{x}].value",
    is_missing="doc[{x}].size() == 0",
    text=lambda word: quoted(word, "'"),
    text_value="doc[{x}].value",
    table="(doc[{name}].size() == 0 ? {otherwise} : {rows}{otherwise})",
)
# A missing field counts as 0 in an expression.
EXPRESSION = Syntax(
    value="doc[{x}].value", zero_filled="doc[{x}].value", is_missing="doc[{x}].empty"
)


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
    parts = [
        term.curve.written(syntax, *(quoted(name, "'") for name in term.names))
        for term in formula.terms
    ]
    if formula.constant != 0:
        parts.append(syntax.number(formula.constant))
    text = " + ".join(parts)
    for field, score in _SCORE.items():  # no text between quotes can look like these
        text = text.replace(field, score)
    return text


# The score of the query is no field.
_SCORE = {
    "(doc['_score'].size() == 0 ? 0.0 : doc['_score'].value)": "_score",
    "doc['_score'].size() == 0": "false",
    "doc['_score'].empty": "false",
    "doc['_score'].value": "_score",
}
