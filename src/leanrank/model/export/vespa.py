"""Vespa: a rank profile. Expressions are computed in float64.

A feature is a document attribute, unless ``--names`` gives a rank feature such as ``bm25(title)``.
"""

from __future__ import annotations

import re

from leanrank.errors import InputError
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import IDENTIFIER, Syntax

# A name, words in parentheses, and an output: nothing that could end the expression.
_RANK_FEATURE = re.compile(r"[a-z]\w*\( ?[\w.-]+(, ?[\w.-]+)* ?\)(\.\w+)*", re.ASCII | re.I)

# An attribute without a value is NaN in a rank expression.
SYNTAX = Syntax(
    is_missing="isNan({x}) == 1",
    choice="if ({test}, {then}, {otherwise})",
    sum="{a} +\n            {b}",
)


def write(formula: Formula, options: Options, target: Target) -> str:
    """Write the profile, one term per line."""
    features = [_rank_feature(name, target) for name in formula.names]
    expression = formula.written(SYNTAX, features)
    return (
        f"rank-profile {options.name} {{\n"
        "    first-phase {\n"
        "        expression {\n"
        f"            {expression}\n"
        "        }\n"
        "    }\n"
        "}\n"
    )


def _rank_feature(name: str, target: Target) -> str:
    if IDENTIFIER.fullmatch(name):
        return f"attribute({name})"
    if _RANK_FEATURE.fullmatch(name):
        return name
    raise InputError(
        f"the feature name {name!r} is no field or rank feature of {target.name}: give it another, "
        "such as bm25(title), in a file for --names"
    )
