"""Scripts of Elasticsearch and OpenSearch without a plugin, and Vespa's expressions.

In scripts, a feature is a numeric field, or ``_score`` if ``--names`` names it so. Lucene
expressions take about a fifth of the time of Painless, although they have no variables and read a
field each time. A field that is not mapped is an error in both, and servers reject scripts above
65,535 bytes.

For Vespa, the export is a rank profile, or an application package with it. A feature is a document
attribute, unless ``--names`` gives a rank feature such as ``bm25(title)``.
"""

from __future__ import annotations

import re
from math import frexp
from textwrap import indent
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import IDENTIFIER, Syntax, filled, pretty, quoted, rescored

MOST_BYTES = 65_535
PAINLESS = Syntax(text=lambda word: quoted(word, "'"))


class _Expression(Syntax):
    """Lucene expressions, in which a missing field counts as 0."""

    def apply(self, operation: str, *operands: str) -> str:
        if operation != "missing":
            return super().apply(operation, *operands)
        field = operands[0].removesuffix(".value")
        return "0 == 1" if field == operands[0] else f"{field}.empty"  # the score, or a filled one

    def filled(self, x: str, value: float) -> str:
        return super().filled(x, value) if value else x


def write(formula: Formula, options: Options, target: Target) -> Any:
    """Return a script, an expression, a rescore query with one of them, or Vespa's profile."""
    if target.dialect == "vespa":
        return _vespa(formula, options, target)
    if target.name == "lucene-expression":
        return _checked(_expression(formula), target) + "\n"
    if target.name == "painless":
        return _checked(_painless(formula) + "\n", target)
    if "_score" in formula.names:
        raise InputError(
            f"{target.name} cannot read the score of the query (_score is 1 in a rescore query): "
            "export to painless or lucene-expression, and sort by the script"
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
    return pretty(rescored(options.top, query=query))


def score_unit(formula: Formula) -> float:
    """Return the power of two that makes the largest weight or curve at least 1."""
    largest = max(abs(term.curve.size) for term in formula.terms)
    return 2.0 ** max(0, 1 - frexp(largest)[1])


def mapped_scores(scores: FloatArray, unit: float) -> FloatArray:
    """Return the positive scores of the script of a rescore query.

    >>> mapped_scores(np.array([-1.0, 0.0, 2.0]), 1.0).tolist()
    [0.5, 1.0, 3.0]
    """
    s = unit * scores
    return np.where(s < 0, 1 / (1 - np.minimum(s, 0.0)), 1 + s)


def _painless(formula: Formula, before: str = "return ") -> str:
    """Return one variable per field, NaN or null where it is missing, and the sum."""
    lines = []
    for at, name in enumerate(formula.names):
        text, doc = name in formula.texts, _doc(name)
        value = f"{doc}.size() == 0 ? {'null' if text else 'Double.NaN'} : {doc}.value"
        value = "_score" if name == "_score" else value
        lines.append(f"{'String' if text else 'double'} x{at} = {value};")
    total = formula.written(PAINLESS, [f"x{at}" for at in range(len(formula.names))])
    return "\n".join([*lines, f"{before}{total};"])


def _expression(formula: Formula) -> str:
    names = ("_score" if name == "_score" else f"{_doc(name)}.value" for name in formula.names)
    return formula.written(_Expression(), list(names))


def _doc(name: str) -> str:
    return f"doc[{quoted(name, chr(39))}]"


def _checked(source: str, target: Target) -> str:
    size = len(source.encode())
    if size > MOST_BYTES:
        raise InputError(
            f"the script has {size:,} bytes, and servers take {MOST_BYTES:,}: {target.name} needs "
            "a smaller model; opensearch-ltr, elasticsearch-ltr and elasticsearch-inference write "
            "curves as trees"
        )
    return source


# A name, words in parentheses, and an output: nothing that could end the expression.
_RANK_FEATURE = re.compile(r"[a-z]\w*\( ?[\w.-]+(, ?[\w.-]+)* ?\)(\.\w+)*", re.ASCII | re.I)

# An attribute without a value is NaN in a rank expression.
VESPA = Syntax(
    missing="isNan({x}) == 1",
    choice="if ({x}, {1}, {2})",
    plus="{x} +\n            {1}",
)


def _vespa(formula: Formula, options: Options, target: Target) -> Any:
    """Return the profile; for an application package, the files by name."""
    features = [_rank_feature(name, target) for name in formula.names]
    score = _block(formula.written(VESPA, features))
    if target.name == "vespa":
        return f"rank-profile {options.name} {{\n    first-phase {{\n{score}    }}\n}}\n"
    # the first phase ranks by the strongest term, the second by the model
    strongest = max(formula.terms, key=lambda term: abs(term.curve.size))
    first = _block(formula.part(strongest, VESPA, features))
    texts = sorted({one[5:-1] for one in features if one.startswith("bm25(")})
    numbers = [one[10:-1] for one in features if one.startswith("attribute(")]
    document = [f"field {one} type string {{\n{_TEXT}}}\n" for one in texts]
    document += [f"field {one} type double {{\n{_NUMBER}}}\n" for one in numbers]
    other = [_OTHER.format(one) for one in features if not one.startswith(("bm25(", "attribute("))]
    fields = {
        "name": options.name,
        "document": indent("".join(document), " " * 8),
        "texts": ", ".join(texts),
        "first": indent(first, " " * 4),
        "count": str(max(100, options.top)),
        "score": indent(score, " " * 4),
        "features": "".join(f"                {one}\n" for one in features),
    }
    return {
        "services.xml": filled("services.xml", {"name": options.name}),
        f"schemas/{options.name}.sd": filled("vespa.sd", fields, texts),
        "README.md": filled("vespa.md", {"name": options.name}) + "".join(other),
    }


_OTHER = "- `{}` needs a field, and perhaps an input, of your own.\n"
_TEXT = "    indexing: index | summary\n    index: enable-bm25\n"
_NUMBER = "    indexing: attribute | summary\n"


def _block(expression: str) -> str:
    return f"        expression {{\n            {expression}\n        }}\n"


def _rank_feature(name: str, target: Target) -> str:
    if IDENTIFIER.fullmatch(name):
        return f"attribute({name})"
    if _RANK_FEATURE.fullmatch(name):
        return name
    raise InputError(
        f"the feature name {name!r} is not a field or rank feature of {target.name}: give another "
        "name, such as bm25(title), in a file for --names"
    )
