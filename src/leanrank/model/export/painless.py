"""Scripts of Elasticsearch and OpenSearch for those without a plugin.

A feature is a numeric field, or ``_score`` if ``--names`` says so. Painless reads each field once;
Lucene expressions, which have no variables, take about a fifth of the time all the same. A field
that is not mapped is an error in both, and servers refuse scripts above 65,535 bytes.
"""

from __future__ import annotations

from math import frexp

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import Syntax, pretty, quoted, rescored

MOST_BYTES = 65_535
PAINLESS = Syntax(text=lambda word: quoted(word, "'"))
_SCORE = "\0"  # no name holds it


class _Expression(Syntax):
    """Lucene expressions, in which a missing field counts as 0."""

    def filled(self, x: str, value: float) -> str:
        return super().filled(x, value) if value else self.value.format(x=x)


EXPRESSION = _Expression(value="{x}.value", is_missing="{x}.empty")


def write(formula: Formula, options: Options, target: Target) -> str:
    """Write a script, an expression, or a rescore query around one of them."""
    if target.name == "lucene-expression":
        return _checked(_expression(formula), target) + "\n"
    if target.name == "painless":
        return _checked(_painless(formula) + "\n", target)
    if "_score" in formula.names:
        raise InputError(
            f"{target.name} has no score of the query (_score is 1 inside a rescore query): export "
            "to painless or lucene-expression, and sort by the script"
        )
    # Scores of a script may not be negative. This increasing function makes them positive; in
    # float32 it needs scores that are not all tiny.
    unit, language = score_unit(formula), "expression"
    s = f"({unit!r} * ({_expression(formula)}))"
    source = f"{s} < 0 ? 1 / (1 - {s}) : 1 + {s}"
    if formula.categories or len(source.encode()) > MOST_BYTES:
        body, language = _painless(formula, "double s = "), "painless"
        source = f"{body} s *= {unit!r}; return s < 0 ? 1 / (1 - s) : 1 + s;"
    script = {"lang": language, "source": _checked(source, target)}
    query = {"script_score": {"query": {"match_all": {}}, "script": script}}
    return pretty(rescored(query, options.top))


def score_unit(formula: Formula) -> float:
    """Return the power of two that makes the largest weight or curve at least 1."""
    largest = max(abs(term.curve.size) for term in formula.terms)
    return 2.0 ** max(0, 1 - frexp(largest)[1])


def mapped_scores(scores: FloatArray, unit: float) -> FloatArray:
    """Return what the script of a rescore query makes of scores.

    >>> mapped_scores(np.array([-1.0, 0.0, 2.0]), 1.0).tolist()
    [0.5, 1.0, 3.0]
    """
    s = unit * scores
    mapped: FloatArray = np.where(s < 0, 1 / (1 - np.minimum(s, 0.0)), 1 + s)
    return mapped


def _painless(formula: Formula, before: str = "return ") -> str:
    """Write one variable per field, NaN or null where it is missing, and the sum."""
    lines = []
    for at, name in enumerate(formula.names):
        category = formula.categories.get(name)
        text = category is not None and category.is_text
        doc = f"doc[{quoted(name, chr(39))}]"
        value = f"{doc}.size() == 0 ? {'null' if text else 'Double.NaN'} : {doc}.value"
        value = "_score" if name == "_score" else value
        lines.append(f"{'String' if text else 'double'} x{at} = {value};")
    total = formula.written(PAINLESS, [f"x{at}" for at in range(len(formula.names))])
    return "\n".join([*lines, f"{before}{total};"])


def _expression(formula: Formula) -> str:
    names = (
        _SCORE if name == "_score" else f"doc[{quoted(name, chr(39))}]" for name in formula.names
    )
    text = formula.written(EXPRESSION, list(names))
    return text.replace(f"{_SCORE}.value", "_score").replace(f"{_SCORE}.empty", "0 == 1")


def _checked(source: str, target: Target) -> str:
    size = len(source.encode())
    if size > MOST_BYTES:
        raise InputError(
            f"the script has {size:,} bytes, and servers take {MOST_BYTES:,}: {target.name} needs "
            "a smaller model; opensearch-ltr, elasticsearch-ltr and elasticsearch-inference write "
            "curves as trees"
        )
    return source
