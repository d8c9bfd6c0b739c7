"""Plain code: one function without dependencies, with a test in it.

The function takes the features that have a weight, in the order of the list in the file; NaN is a
missing feature. If some are categories of texts, a second argument has these at the same places,
and what is no level counts as missing. Sums are in float64 in the order of terms, so that every
language gives the same bits. The test scores one document, and one whose features are all missing.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import partial

import numpy as np

from leanrank._typing import FloatArray
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import Syntax, quoted
from leanrank.model.terms import Levels, Surface


@dataclass(frozen=True)
class Language:
    """How a language writes the file: a template with ``@names@`` to fill in.

    ``texts`` is the second parameter of models with texts and ``given`` an argument for it, in
    which a missing text is ``null`` and others are ``some``.
    """

    template: str
    syntax: Syntax
    texts: str
    given: str
    null: str
    some: str = "{text}"
    line: str = "    s += {part};"


def write(formula: Formula, options: Options, target: Target) -> str:
    """Write the function, the names of its features, and the test."""
    language = LANGUAGES[target.name]
    names, texts = formula.names, formula.texts
    features = [f"{'t' if name in texts else 'x'}[{at}]" for at, name in enumerate(names)]
    parts = formula.parts(language.syntax, features)
    x, score = sample_document(formula)
    missing = formula.scores(np.full((1, len(x)), np.nan))
    nulls, cells = [language.null] * len(names), [language.null] * len(names)
    for name, one in texts.items():
        at = names.index(name)
        level = language.syntax.text(str(one.levels[int(x[at])]))
        cells[at] = language.some.format(text=level)
    fields = {
        "name": options.name,
        "class": options.name[:1].upper() + options.name[1:],
        "n": str(len(names)),
        "features": ", ".join(map(language.syntax.text, names)),
        "texts": language.texts if texts else "",
        "t": language.given.format(cells=", ".join(cells)) if texts else "",
        "none": language.given.format(cells=", ".join(nulls)) if texts else "",
        "body": "\n".join(language.line.format(part=part) for part in parts),
        "vector": ", ".join(map(language.syntax.number, x.tolist())),
        "expected": language.syntax.number(score),
        "missing": language.syntax.number(float(missing[0])),
    }
    return re.sub("@([a-z]+)@", lambda found: fields[found[1]], language.template)


def sample_document(formula: Formula) -> tuple[FloatArray, float]:
    """Return a document, by the names of the features, and its score."""
    found: dict[str, float] = {}
    for at, term in enumerate(formula.terms):  # by which features differ
        curve = term.curve
        if isinstance(curve, Surface):
            for name, knots in zip(term.names, (curve.first, curve.second), strict=True):
                found.setdefault(name, (knots[0] + knots[1]) / 2)
        elif isinstance(curve, Levels):
            place = at % max(len(curve.levels), 1)
            known = not curve.is_text and curve.levels
            found[term.name] = float(curve.levels[place] if known else place)
        elif curve.cuts:
            found[term.name] = float(np.nextafter(curve.cuts[at % len(curve.cuts)], np.inf))
        else:
            found[term.name] = (at % 7 - 2) / 4  # exact in binary
    x = np.array([found[name] for name in formula.names])
    return x, float(formula.scores(x[None])[0])


_C = """\
/* Score of @name@, a ranking function: within a query, higher is better.
   Compile with -ffp-contract=off for the same bits everywhere, and without -ffast-math. */
#include <math.h>
#include <string.h>

#define @name@_n @n@

const char *const @name@_features[@name@_n] = {@features@};

double @name@_score(const double *x@texts@) {
    double s = 0.0;
@body@
    return s;
}

/* Returns 1 if the function computes what it should. */
int @name@_test(void) {
    const double x[@name@_n] = {@vector@};
    double missing[@name@_n];
    int i;
    for (i = 0; i < @name@_n; i++) missing[i] = NAN;
    return @name@_score(x@t@) == @expected@ && @name@_score(missing@none@) == @missing@;
}
"""

_JAVA = """\
/** Score of @name@, a ranking function: within a query, higher is better. */
public final class @class@ {
    public static final String[] FEATURES = {@features@};

    public static double score(double[] x@texts@) {
        double s = 0.0;
@body@
        return s;
    }

    /** Returns true if the function computes what it should. */
    public static boolean test() {
        double[] missing = new double[@n@];
        java.util.Arrays.fill(missing, Double.NaN);
        return score(new double[] {@vector@}@t@) == @expected@ && score(missing@none@) == @missing@;
    }
}
"""

_JAVASCRIPT = """\
// Score of @name@, a ranking function: within a query, higher is better.
const @name@Features = [@features@];

// undefined, null and NaN are missing features.
function @name@Score(x@texts@) {
  x = Array.from(x, (value) => (value == null ? NaN : value));
  let s = 0.0;
@body@
  return s;
}

// Returns true if the function computes what it should.
function @name@Test() {
  const gaps = [NaN, null, undefined].map((gap) => new Array(@n@).fill(gap));
  return (
    @name@Score([@vector@]@t@) === @expected@ &&
    gaps.every((missing) => @name@Score(missing@none@) === @missing@)
  );
}

if (typeof module !== "undefined") {
  module.exports = { features: @name@Features, score: @name@Score, test: @name@Test };
}
"""

_PYTHON = '''\
"""Score of @name@, a ranking function: within a query, higher is better."""

FEATURES = [@features@]


def score(x@texts@):
    """Return the score of a document from its features, in the order of FEATURES.

    None and NaN are missing features.
    """
    x = [float("nan") if value is None else value for value in x]
    s = 0.0
@body@
    return s


def test():
    """Return True if the function computes what it should."""
    gaps = ([None] * @n@, [float("nan")] * @n@)
    return score([@vector@]@t@) == @expected@ and all(
        score(missing@none@) == @missing@ for missing in gaps
    )
'''

_RUST = """\
//! Score of @name@, a ranking function: within a query, higher is better.

pub const FEATURES: [&str; @n@] = [@features@];

pub fn score(x: &[f64]@texts@) -> f64 {
    let mut s: f64 = 0.0;
@body@
    s
}

/// Returns true if the function computes what it should.
pub fn test() -> bool {
    score(&[@vector@]@t@) == @expected@ && score(&[f64::NAN; @n@]@none@) == @missing@
}
"""

_GO = """\
// Package @name@ computes a ranking function: within a query, higher is better.
package @name@

import "math"

var Features = []string{@features@}

// Score returns the score of a document. The conversions keep the compiler from fusing a product
// and a sum, which would round once instead of twice.
func Score(x []float64@texts@) float64 {
	s := 0.0
@body@
	return s
}

func choose(test bool, then, otherwise float64) float64 {
	if test {
		return then
	}
	return otherwise
}

// Test returns true if the function computes what it should.
func Test() bool {
	missing := make([]float64, @n@)
	for i := range missing {
		missing[i] = math.NaN()
	}
	return Score([]float64{@vector@}@t@) == @expected@ && Score(missing@none@) == @missing@
}
"""


def _c_text(word: str) -> str:
    return quoted(word, '"').replace("?", "\\?")  # no trigraphs


LANGUAGES = {
    "c": Language(
        _C,
        Syntax(
            filled="(({x} != {x}) ? {1} : {x})",
            text=_c_text,
            text_equal="{x} && strcmp({x}, {level}) == 0",
        ),
        ", const char *const *t",
        ", (const char *const[]){{{cells}}}",
        "NULL",
    ),
    "java": Language(
        _JAVA,
        Syntax(
            missing="Double.isNaN({x})",
            text_row="case {level} -> {value}; ",
            # no level holds a control character
            text_table='(switch ({x} == null ? "\\0" : {x}) {{ {rows}default -> {otherwise}; }})',
        ),
        ", String[] t",
        ", new String[] {{{cells}}}",
        "null",
        line="        s += {part};",
    ),
    "javascript": Language(
        _JAVASCRIPT,
        Syntax(
            missing="{x} !== {x}",
            row="case {level}: return {value}; ",
            table="(() => {{ switch ({x}) {{ {rows}}} return {otherwise}; }})()",
        ),
        ", t",
        ", [{cells}]",
        "null",
        line="  s += {part};",
    ),
    "python": Language(
        _PYTHON,
        Syntax(
            choice="({1} if {x} else {2})",
            text=repr,
            row="{level}: {value}, ",
            table="{{{rows}}}.get({x}, {otherwise})",
        ),
        ", t",
        ", [{cells}]",
        "None",
        line="    s += {part}",
    ),
    "rust": Language(
        _RUST,
        Syntax(
            literal=lambda value: f"{value!r}_f64",
            missing="{x}.is_nan()",
            choice="(if {x} {{ {1} }} else {{ {2} }})",
            text=lambda word: quoted(word, '"'),
            text_equal="{x} == Some({level})",
            row="if {test} {{ {value} }} else ",
            table="({rows}{{ {otherwise} }})",
        ),
        ", t: &[Option<&str>]",
        ", &[{cells}]",
        "None",
        "Some({text})",
    ),
    "go": Language(
        _GO,
        Syntax(
            choice="choose({x}, {1}, {2})",
            times="float64({x} * {1})",
            text=partial(json.dumps, ensure_ascii=False),
            row="case {level}: return {value}; ",
            table="func() float64 {{ switch {x} {{ {rows}}}; return {otherwise} }}()",
        ),
        ", t []any",
        ", []any{{{cells}}}",
        "nil",
        line="\ts += {part}",
    ),
}
