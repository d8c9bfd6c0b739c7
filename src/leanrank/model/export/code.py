"""Source code: one function without dependencies, and its test.

The function takes the features that have a weight, in the order of the list in the file; NaN is a
missing feature. Categories of texts are in a second argument at the same positions, and other texts
count as missing. Sums are in float64 in the order of terms, so that every language gives the same
bits. The test scores one document, and one whose features are all missing.
"""

from __future__ import annotations

import json
from functools import partial

import numpy as np

from leanrank._typing import FloatArray
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import Syntax, filled, quoted
from leanrank.model.terms import Levels, Surface


def write(formula: Formula, options: Options, target: Target) -> str:
    """Return the function, the names of its features, and the test."""
    language = LANGUAGES[target.name]
    names, texts, parts = formula.names, formula.texts, language.templates
    features = [f"{'t' if name in texts else 'x'}[{at}]" for at, name in enumerate(names)]
    terms = formula.parts(language, features)
    x, score = sample_document(formula)
    missing = formula.scores(np.full((1, len(x)), np.nan))
    cells = dict.fromkeys(names, parts["null"])
    for name, one in texts.items():
        level = str(one.levels[int(x[names.index(name)])])
        cells[name] = parts["some"].format(text=language.text(level))
    fields = {
        "name": options.name,
        "class": options.name[:1].upper() + options.name[1:],
        "n": str(len(names)),
        "features": ", ".join(map(language.text, names)),
        "cells": ", ".join(cells.values()),
        "nulls": ", ".join([parts["null"]] * len(names)),
        "body": "\n".join(parts["line"].format(part=part) for part in terms),
        "vector": ", ".join(map(language.number, x.tolist())),
        "expected": language.number(score),
        "missing": language.number(float(missing[0])),
    }
    return filled(f"{target.name}.txt", fields, texts)


def sample_document(formula: Formula) -> tuple[FloatArray, float]:
    """Return the features of a document, in the order of their names, and its score."""
    found: dict[str, float] = {}
    for at, term in enumerate(formula.terms):  # values differ between features
        curve = term.curve
        if isinstance(curve, Surface):
            for name, knots in zip(term.names, (curve.first, curve.second), strict=True):
                found.setdefault(name, (knots[0] + knots[1]) / 2)
        elif isinstance(curve, Levels):
            level = at % max(len(curve.levels), 1)
            known = not curve.is_text and curve.levels
            found[term.name] = float(curve.levels[level] if known else level)
        elif curve.cuts:
            found[term.name] = float(np.nextafter(curve.cuts[at % len(curve.cuts)], np.inf))
        else:
            found[term.name] = (at % 7 - 2) / 4  # exact in binary
    x = np.array([found[name] for name in formula.names])
    return x, float(formula.scores(x[None])[0])


# Templates have parts for models with texts, where a missing text is ``null``, and others ``some``.
_language = partial(Syntax, null="null", some="{text}", line="    s += {part};")
LANGUAGES = {
    "c": _language(
        filled="(({x} != {x}) ? {1} : {x})",
        text=lambda word: quoted(word, '"').replace("?", "\\?"),  # no trigraphs
        text_equal="{x} && strcmp({x}, {level}) == 0",
        null="NULL",
    ),
    "java": _language(
        missing="Double.isNaN({x})",
        text_row="case {level} -> {value}; ",
        # no level holds a control character
        text_table='(switch ({x} == null ? "\\0" : {x}) {{ {rows}default -> {otherwise}; }})',
        line="        s += {part};",
    ),
    "javascript": _language(
        missing="{x} !== {x}",
        row="case {level}: return {value}; ",
        table="(() => {{ switch ({x}) {{ {rows}}} return {otherwise}; }})()",
        line="  s += {part};",
    ),
    "python": _language(
        choice="({1} if {x} else {2})",
        text=repr,
        row="{level}: {value}, ",
        table="{{{rows}}}.get({x}, {otherwise})",
        null="None",
        line="    s += {part}",
    ),
    "rust": _language(
        literal=lambda value: f"{value!r}_f64",
        missing="{x}.is_nan()",
        choice="(if {x} {{ {1} }} else {{ {2} }})",
        text=lambda word: quoted(word, '"'),
        text_equal="{x} == Some({level})",
        row="if {test} {{ {value} }} else ",
        table="({rows}{{ {otherwise} }})",
        null="None",
        some="Some({text})",
    ),
    "go": _language(
        choice="choose({x}, {1}, {2})",
        times="float64({x} * {1})",
        text=partial(json.dumps, ensure_ascii=False),
        row="case {level}: return {value}; ",
        table="func() float64 {{ switch {x} {{ {rows}}}; return {otherwise} }}()",
        null="nil",
        line="\ts += {part}",
    ),
}
