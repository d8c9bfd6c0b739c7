"""Plain code: one function without dependencies, with a test in it.

The function takes the features that have a weight, in the order of the list in the file; NaN is a
missing feature. Sums are in float64 in that order, so that every language gives the same bits. The
test scores one document, and one whose features are all missing.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leanrank._typing import FloatArray
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import Syntax, quoted


@dataclass(frozen=True)
class Language:
    """How a language writes the file: a template with ``@names@`` to fill in."""

    template: str
    syntax: Syntax
    indent: str = "    "
    add: str = "s += {part};"
    element: Callable[[str], str] = json.dumps


def write(formula: Formula, options: Options, target: Target) -> str:
    """Write the function, the names of its features, and the test."""
    language = LANGUAGES[target.name]
    parts = [
        term.curve.written(language.syntax, f"x[{at}]") for at, term in enumerate(formula.terms)
    ]
    if formula.constant != 0:
        parts.append(language.syntax.number(formula.constant))
    x, score = sample_document(formula)
    missing = formula.scores(np.full((1, len(x)), np.nan))
    lines = [language.indent + language.add.format(part=part) for part in parts]
    fields = {
        "name": options.name,
        "class": options.name[:1].upper() + options.name[1:],
        "n": str(len(formula.terms)),
        "features": ", ".join(map(language.element, formula.names)),
        "body": "\n".join(lines),
        "vector": ", ".join(map(language.syntax.number, x.tolist())),
        "expected": language.syntax.number(score),
        "missing": language.syntax.number(float(missing[0])),
    }
    return re.sub("@([a-z]+)@", lambda found: fields[found[1]], language.template)


def sample_document(formula: Formula) -> tuple[FloatArray, float]:
    """Return a document, by the features of the terms, and its score."""
    x = np.array([term.curve.sample(at) for at, term in enumerate(formula.terms)])
    return x, float(formula.scores(x[None])[0])


_C = """\
/* Score of @name@, a ranking function: within a query, higher is better.
   Compile with -ffp-contract=off for the same bits everywhere, and without -ffast-math. */
#include <math.h>

#define @name@_n @n@

const char *const @name@_features[@name@_n] = {@features@};

double @name@_score(const double *x) {
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
    return @name@_score(x) == @expected@ && @name@_score(missing) == @missing@;
}
"""

_JAVA = """\
/** Score of @name@, a ranking function: within a query, higher is better. */
public final class @class@ {
    public static final String[] FEATURES = {@features@};

    public static double score(double[] x) {
        double s = 0.0;
@body@
        return s;
    }

    /** Returns true if the function computes what it should. */
    public static boolean test() {
        double[] missing = new double[@n@];
        java.util.Arrays.fill(missing, Double.NaN);
        return score(new double[] {@vector@}) == @expected@ && score(missing) == @missing@;
    }
}
"""

_JAVASCRIPT = """\
// Score of @name@, a ranking function: within a query, higher is better.
const @name@Features = [@features@];

function @name@Score(x) {
  let s = 0.0;
@body@
  return s;
}

// Returns true if the function computes what it should.
function @name@Test() {
  const missing = new Array(@n@).fill(NaN);
  return @name@Score([@vector@]) === @expected@ && @name@Score(missing) === @missing@;
}

if (typeof module !== "undefined") {
  module.exports = { features: @name@Features, score: @name@Score, test: @name@Test };
}
"""

_PYTHON = '''\
"""Score of @name@, a ranking function: within a query, higher is better."""

FEATURES = [@features@]


def score(x):
    """Return the score of a document from its features, in the order of FEATURES."""
    s = 0.0
@body@
    return s


def test():
    """Return True if the function computes what it should."""
    missing = [float("nan")] * @n@
    return score([@vector@]) == @expected@ and score(missing) == @missing@
'''

_RUST = """\
//! Score of @name@, a ranking function: within a query, higher is better.

pub const FEATURES: [&str; @n@] = [@features@];

pub fn score(x: &[f64]) -> f64 {
    let mut s: f64 = 0.0;
@body@
    s
}

/// Returns true if the function computes what it should.
pub fn test() -> bool {
    score(&[@vector@]) == @expected@ && score(&[f64::NAN; @n@]) == @missing@
}
"""

_GO = """\
// Package @name@ computes a ranking function: within a query, higher is better.
package @name@

import "math"

var Features = []string{@features@}

// Score returns the score of a document. The conversions keep the compiler from fusing a product
// and a sum, which would round once instead of twice.
func Score(x []float64) float64 {
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
	return Score([]float64{@vector@}) == @expected@ && Score(missing) == @missing@
}
"""

LANGUAGES = {
    "c": Language(
        _C,
        Syntax(zero_filled="(({x} != {x}) ? 0.0 : {x})"),
        element=lambda name: quoted(name, '"').replace("?", "\\?"),  # no trigraphs
    ),
    "java": Language(_JAVA, Syntax(is_missing="Double.isNaN({x})"), "        "),
    "javascript": Language(_JAVASCRIPT, Syntax(is_missing="{x} !== {x}"), "  "),
    "python": Language(
        _PYTHON,
        Syntax(choice="({then} if {test} else {otherwise})"),
        add="s += {part}",
        element=repr,
    ),
    "rust": Language(
        _RUST,
        Syntax(
            literal=lambda value: f"{value!r}_f64",
            is_missing="{x}.is_nan()",
            choice="(if {test} {{ {then} }} else {{ {otherwise} }})",
        ),
        element=lambda name: quoted(name, '"'),
    ),
    "go": Language(
        _GO,
        Syntax(
            choice="choose({test}, {then}, {otherwise})",
            product="float64({a} * {b})",
        ),
        "\t",
        "s += {part}",
        element=lambda name: json.dumps(name, ensure_ascii=False),
    ),
}
