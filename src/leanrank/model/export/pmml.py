"""PMML 4.4: a regression model, with derived fields for what is no straight line."""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from leanrank._version import __version__
from leanrank.model.curves import Line
from leanrank.model.export.formula import Formula, Term
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import unused

_NUMBER = {"optype": "continuous", "dataType": "double"}


def write(formula: Formula, options: Options, target: Target) -> str:
    """Write the document; a missing line counts as 0."""
    root = Element("PMML", xmlns="http://www.dmg.org/PMML-4_4", version="4.4")
    header = SubElement(root, "Header", description="ranking function; higher is better")
    SubElement(header, "Application", name="leanrank", version=__version__)
    dictionary = SubElement(root, "DataDictionary")
    for name in formula.names:
        SubElement(dictionary, "DataField", {"name": name, **_NUMBER})
    model = SubElement(root, "RegressionModel", modelName=options.name, functionName="regression")
    schema = SubElement(model, "MiningSchema")
    bent = {name for term in formula.terms if not _is_plain(term) for name in term.names}
    for name in formula.names:
        # Without the replacement, the score of a document that lacks the feature is missing.
        missing = {} if name in bent else {"missingValueReplacement": "0"}
        SubElement(schema, "MiningField", {"name": name, **missing})
    output = SubElement(model, "Output")
    named = {"name": unused("score", formula.names), "feature": "predictedValue", **_NUMBER}
    SubElement(output, "OutputField", named)
    transformations = SubElement(model, "LocalTransformations") if bent else model
    table = SubElement(model, "RegressionTable", intercept=repr(formula.constant))
    for at, term in enumerate(formula.terms):
        name, weight = term.name, 1.0
        if _is_plain(term) and name not in bent:
            weight = term.weight
        else:
            name = unused(f"curve_{at}", formula.names)
            field = SubElement(transformations, "DerivedField", {"name": name, **_NUMBER})
            features = [Element("FieldRef", field=one) for one in formula.names]
            field.append(formula.part(term, _Tree(), features))
        SubElement(table, "NumericPredictor", name=name, coefficient=repr(weight))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


class _Tree:
    """PMML's built-in functions, as elements."""

    def number(self, value: float) -> Element:
        constant = Element("Constant", dataType="double")
        constant.text = repr(value)
        return constant

    def filled(self, x: Element, value: float) -> Element:
        return self.if_missing(x, self.number(value), x)

    def if_missing(self, x: Element, then: Element, otherwise: Element) -> Element:
        return _apply("if", _apply("isMissing", x), then, otherwise)

    def if_above(self, x: Element, threshold: Element, then: Element, other: Element) -> Element:
        return _apply("if", _apply("greaterThan", x, threshold), then, other)

    def fraction(self, x: Element, start: Element, rate: Element) -> Element:
        return self.times(_apply("-", x, start), rate)

    def lookup(self, x: Element, table: list[tuple[Any, float]], otherwise: float) -> Element:
        raise NotImplementedError  # the target is declared without levels

    def times(self, a: Element, b: Element) -> Element:
        return _apply("*", a, b)

    def plus(self, a: Element, b: Element) -> Element:
        return _apply("+", a, b)


def _is_plain(term: Term) -> bool:
    return isinstance(term.curve, Line) and term.curve.missing is None


def _apply(function: str, *arguments: Element) -> Element:
    element = Element("Apply", function=function)
    element.extend(arguments)
    return element
