"""Graphs: ONNX in float64 with one named input per feature, and PMML 4.4.

The ONNX graph has products and sums: ``LinearRegressor`` is float32 only, and a matrix product adds
in another order. A missing feature is NaN; a category of texts is a text, and missing if it is no
level.
"""

from __future__ import annotations

from typing import Any
from xml.etree.ElementTree import Element, SubElement, indent, tostring

import numpy as np

from leanrank._version import __version__
from leanrank.errors import MissingDependencyError
from leanrank.model.curves import Writer
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import unused

OPSET, IR_VERSION = 13, 8  # old enough for every runtime since 2021
_NUMBER = {"optype": "continuous", "dataType": "double"}
_OPERATIONS = ("missing", "above", "choice", "minus", "times", "plus")
_ONNX = dict(zip(_OPERATIONS, ("IsNaN", "Greater", "Where", "Sub", "Mul", "Add"), strict=True))
_ONNX["equal"] = "Equal"
_PMML = dict(zip(_OPERATIONS, ("isMissing", "greaterThan", "if", "-", "*", "+"), strict=True))


def write(formula: Formula, options: Options, target: Target) -> bytes | str:
    """Return the graph of ONNX, or the regression model of PMML."""
    return (_onnx if target.name == "onnx" else _pmml)(formula, options, target)


def _onnx(formula: Formula, options: Options, target: Target) -> bytes:
    """Return the graph; each input and the output have one number per document."""
    try:
        import onnx
    except ImportError as error:
        raise MissingDependencyError("onnx", "engines", "writing an ONNX model") from error
    helper, double = onnx.helper, onnx.TensorProto.DOUBLE
    score = unused("score", formula.names)
    graph = _Graph(onnx, [*formula.names, score])
    total = formula.written(graph, formula.names)
    graph.add("Identity", [total], score)
    kinds = dict.fromkeys(formula.texts, onnx.TensorProto.STRING)
    inputs = [
        helper.make_tensor_value_info(name, kinds.get(name, double), ["documents"])
        for name in formula.names
    ]
    output = helper.make_tensor_value_info(score, double, ["documents"])
    used = {name for node in graph.nodes for name in node.input}
    constants = [one for one in graph.constants if one.name in used]
    made = helper.make_graph(graph.nodes, options.name, inputs, [output], constants)
    sets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", 2)]
    about = {"ir_version": IR_VERSION, "producer_name": "leanrank"}
    model = helper.make_model(made, opset_imports=sets if kinds else sets[:1], **about)
    onnx.checker.check_model(model)
    content: bytes = model.SerializeToString(deterministic=True)
    return content


class _Graph(Writer[str]):
    """The nodes and constants of a formula; values are referred to by name."""

    def __init__(self, onnx: Any, taken: list[str]) -> None:
        self.onnx = onnx
        self.taken = set(taken)
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.known: dict[float, str] = {}
        self.values: dict[str, float] = {}

    def add(self, operation: str, inputs: list[str], output: str | None = None, **more: Any) -> str:
        """Add a node and return the name of its output."""
        result = output or self._new("v", len(self.nodes))
        self.nodes.append(self.onnx.helper.make_node(operation, inputs, [result], **more))
        return result

    def number(self, value: float) -> str:
        if value not in self.known:
            self.known[value] = self._constant([], [value])
            self.values[self.known[value]] = value
        return self.known[value]

    def apply(self, operation: str, *operands: str) -> str:
        return self.add(_ONNX[operation], list(operands))

    def lookup(self, x: str, table: list[tuple[Any, float]], otherwise: float) -> str:
        levels, values = zip(*table, strict=True)
        if not isinstance(levels[0], str):
            return super().lookup(x, table, otherwise)
        keys: dict[str, Any] = {"keys_strings": levels, "values_int64s": range(len(levels))}
        keys["default_int64"] = len(levels)
        at = self.add("LabelEncoder", [x], None, domain="ai.onnx.ml", **keys)
        column = [*values, otherwise]
        return self.add("Gather", [self._constant([len(column)], column), at])

    def times(self, a: str, b: str) -> str:
        for factor, other in ((a, b), (b, a)):
            value = self.values.get(factor, 1.0)
            with np.errstate(over="ignore"):
                near = value != 1 and np.float32(value) == 1
            if near:  # ONNX Runtime would drop a factor that is 1 in float32
                return self.add("Neg", [self.add("Mul", [self.number(-value), other])])
        return super().times(a, b)

    def _constant(self, shape: list[int], values: list[float]) -> str:
        name, double = self._new("c", len(self.constants)), self.onnx.TensorProto.DOUBLE
        self.constants.append(self.onnx.helper.make_tensor(name, double, shape, values))
        return name

    def _new(self, prefix: str, at: int) -> str:
        name = unused(f"{prefix}{at}", self.taken)
        self.taken.add(name)
        return name


def _pmml(formula: Formula, options: Options, target: Target) -> str:
    """Return the document: weights of features, or a derived field per term."""
    root = Element("PMML", xmlns="http://www.dmg.org/PMML-4_4", version="4.4")
    header = SubElement(root, "Header", description="ranking function; higher is better")
    SubElement(header, "Application", name="leanrank", version=__version__)
    dictionary = SubElement(root, "DataDictionary")
    for name in formula.names:
        SubElement(dictionary, "DataField", {"name": name, **_NUMBER})
    model = SubElement(root, "RegressionModel", modelName=options.name, functionName="regression")
    schema = SubElement(model, "MiningSchema")
    # Without the replacement, the score of a document that lacks the feature is missing.
    missing = {"missingValueReplacement": "0"} if formula.is_linear else {}
    for name in formula.names:
        SubElement(schema, "MiningField", {"name": name, **missing})
    output = SubElement(model, "Output")
    named = {"name": unused("score", formula.names), "feature": "predictedValue", **_NUMBER}
    SubElement(output, "OutputField", named)
    transformations = model if formula.is_linear else SubElement(model, "LocalTransformations")
    table = SubElement(model, "RegressionTable", intercept=repr(formula.constant))
    for at, term in enumerate(formula.terms):
        if formula.is_linear:
            name, weight = term.name, term.weight
        else:
            name, weight = unused(f"term_{at}", formula.names), 1.0
            field = SubElement(transformations, "DerivedField", {"name": name, **_NUMBER})
            features = [Element("FieldRef", field=one) for one in formula.names]
            field.append(formula.part(term, _Tree(), features))
        SubElement(table, "NumericPredictor", name=name, coefficient=repr(weight))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


class _Tree(Writer[Element]):
    """PMML's built-in functions, as elements."""

    def number(self, value: float) -> Element:
        constant = Element("Constant", dataType="double")
        constant.text = repr(value)
        return constant

    def apply(self, operation: str, *operands: Element) -> Element:
        element = Element("Apply", function=_PMML[operation])
        element.extend(operands)
        return element
