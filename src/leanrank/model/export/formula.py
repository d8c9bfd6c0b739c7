"""The neutral description of a scoring function, from which every export is written."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from leanrank._typing import AnyArray, FloatArray
from leanrank.data.ranking_data import feature_name
from leanrank.errors import ModelError
from leanrank.model.base import Model
from leanrank.model.boosted import BoostedModel
from leanrank.model.linear import LinearModel

T = TypeVar("T")


class Writer(Protocol[T]):
    """What a target must be able to write; T is text, or a node of a graph or tree."""

    def number(self, value: float) -> T:
        """Return a constant."""

    def filled(self, x: T) -> T:
        """Return a feature with 0 where it is missing."""

    def if_missing(self, x: T, then: T, otherwise: T) -> T:
        """Return one of two values, by whether a feature is missing."""

    def if_above(self, x: T, threshold: T, then: T, otherwise: T) -> T:
        """Return one of two values, by whether a feature is above a threshold."""

    def times(self, a: T, b: T) -> T:
        """Return a product."""

    def plus(self, a: T, b: T) -> T:
        """Return a sum."""


class Curve(Protocol):
    """What one feature adds to a score."""

    def values(self, column: FloatArray) -> FloatArray:
        """Return what the feature adds to the score of each document; NaN is missing."""

    def written(self, writer: Writer[T], x: T) -> T:
        """Write the curve of the feature x for a target."""

    def folded(self, scale: Scale) -> tuple[Curve, float]:
        """Return the curve of the unscaled feature, and a constant to add."""

    def numbers(self) -> list[float]:
        """Return the numbers that define the curve."""

    def described(self) -> str:
        """Describe the curve in a few words."""

    def sample(self, at: int) -> float:
        """Return a value of the feature for a test; ``at`` makes features differ."""


@dataclass(frozen=True)
class Scale:
    """A global scaler of one feature: (x − shift) / divisor, rounded as the scaler does."""

    shift: float
    divisor: float

    def __call__(self, x: float) -> float:
        return (x - self.shift) / self.divisor


@dataclass(frozen=True)
class Line:
    """A weight times the feature; a missing feature counts as 0."""

    weight: float

    def values(self, column: FloatArray) -> FloatArray:
        """Return the weighted feature."""
        return self.weight * np.where(np.isnan(column), 0.0, column)

    def written(self, writer: Writer[T], x: T) -> T:
        """Write the product."""
        return writer.times(writer.number(self.weight), writer.filled(x))

    def folded(self, scale: Scale) -> tuple[Curve, float]:
        """Move the divisor into the weight and the shift into a constant."""
        weight = self.weight / scale.divisor
        return Line(weight), -weight * scale.shift

    def numbers(self) -> list[float]:
        """Return the weight."""
        return [self.weight]

    def described(self) -> str:
        """Return the product in words."""
        return f"{self.weight!r} × value"

    def sample(self, at: int) -> float:
        """Return a small number that is exact in binary."""
        return (at % 7 - 2) / 4


@dataclass(frozen=True)
class Steps:
    """A constant between any two thresholds: ``levels[i]`` above i of them."""

    thresholds: tuple[float, ...]
    levels: tuple[float, ...]
    missing: float

    def values(self, column: FloatArray) -> FloatArray:
        """Return the level that each value of the feature reaches."""
        above = np.searchsorted(np.array(self.thresholds), column, side="left")
        return np.where(np.isnan(column), self.missing, np.array(self.levels)[above])

    def written(self, writer: Writer[T], x: T) -> T:
        """Write nested conditions: a binary search, so that no language runs out of depth."""

        def between(low: int, high: int) -> T:
            if low == high:
                return writer.number(self.levels[low])
            middle = (low + high) // 2
            threshold = writer.number(self.thresholds[middle])
            return writer.if_above(x, threshold, between(middle + 1, high), between(low, middle))

        value = between(0, len(self.levels) - 1)
        return writer.if_missing(x, writer.number(self.missing), value)

    def folded(self, scale: Scale) -> tuple[Curve, float]:
        """Move the thresholds so that exactly the same unscaled values are above them."""
        moved = tuple(_largest_not_above(scale, cut) for cut in self.thresholds)
        return replace(self, thresholds=moved), 0.0

    def numbers(self) -> list[float]:
        """Return levels, thresholds and the value for missing."""
        return [*self.levels, *self.thresholds, self.missing]

    def described(self) -> str:
        """Return the levels in words."""
        steps = zip(self.levels[1:], self.thresholds, strict=True)
        parts = [repr(self.levels[0]), *(f"{level!r} above {cut!r}" for level, cut in steps)]
        return ", ".join(parts) + f"; {self.missing!r} if missing"

    def sample(self, at: int) -> float:
        """Return a value just above one of the thresholds."""
        if not self.thresholds:
            return 0.0
        return float(np.nextafter(self.thresholds[at % len(self.thresholds)], np.inf))


@dataclass(frozen=True)
class Term:
    """One feature with its curve.

    ``scale`` is what a normaliser of the target must still do to the feature, if that was wished.
    """

    feature: int
    name: str
    curve: Curve
    scale: Scale | None = None

    @property
    def weight(self) -> float:
        """The weight of a line; only asked for where the target has lines only."""
        assert isinstance(self.curve, Line)
        return self.curve.weight


@dataclass(frozen=True)
class Formula:
    """A scoring function: terms added in the order of features, then a constant.

    Attributes
    ----------
    terms : tuple of Term
        One per feature that the score depends on.
    constant : float
        Added last. It changes no order, so that some targets leave it out.
    scaler : str or None
        The per-query normaliser applied to the features first, such as ``"query-minmax"``.
    scaler_options : tuple of pairs
        Its parameters, if it has any.
    provenance : mapping
        How the model was made.
    """

    terms: tuple[Term, ...]
    constant: float = 0.0
    scaler: str | None = None
    scaler_options: tuple[tuple[str, Any], ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of the features, in the order of terms."""
        return [term.name for term in self.terms]

    @property
    def least_weight(self) -> float:
        """The smallest weight of a line; 0 without lines."""
        lines = (term.curve for term in self.terms if isinstance(term.curve, Line))
        return min((line.weight for line in lines), default=0.0)

    @property
    def n_numbers(self) -> int:
        """How many numbers the curves are made of."""
        return sum(len(term.curve.numbers()) for term in self.terms)

    @property
    def is_linear(self) -> bool:
        """Whether every term is a weight times a feature."""
        return all(isinstance(term.curve, Line) for term in self.terms)

    @property
    def version(self) -> str:
        """Eight hexadecimal digits that differ between different functions."""
        parts: list[Any] = [self.scaler, *self.scaler_options, self.constant]
        parts += [(t.name, *t.curve.numbers(), t.scale) for t in self.terms]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]

    def renamed(self, names: Mapping[str, str]) -> Formula:
        """Return a copy in which features have other names."""
        return replace(
            self, terms=tuple(replace(t, name=names.get(t.name, t.name)) for t in self.terms)
        )

    def written(self, writer: Writer[T], features: Sequence[T], constant: bool = True) -> T:
        """Write the sum for a target.

        >>> from leanrank.model.export.text import Syntax
        >>> from leanrank.model import LinearModel
        >>> formula_of(LinearModel.from_coef([0.5, -2.0])).written(Syntax(), ["a", "b"])
        '0.5 * a + -2.0 * b'
        """
        total: T | None = None
        for term, x in zip(self.terms, features, strict=True):
            part = term.curve.written(writer, x)
            total = part if total is None else writer.plus(total, part)
        if total is None:
            return writer.number(self.constant)
        if constant and self.constant != 0:
            return writer.plus(total, writer.number(self.constant))
        return total

    def scaled(self, X: AnyArray, qid: Any = None) -> FloatArray:
        """Return the features of the terms in float64, scaled per query if the function does so."""
        used = np.asarray(X, dtype=np.float64)
        if self.scaler is None or not self.terms:
            return used
        from leanrank.data.normalize import normalizer_from_dict

        normalizer = normalizer_from_dict({"kind": self.scaler, **dict(self.scaler_options)})
        scaled: FloatArray = normalizer.transform(np.nan_to_num(used, nan=0.0), qid=qid)
        return scaled

    def scores(self, X: AnyArray, qid: Any = None) -> FloatArray:
        """Return the scores in float64, added in the order of terms.

        This is what an exact target computes, bit for bit. :meth:`leanrank.model.Model.predict`
        may add in another order.

        Parameters
        ----------
        X : array
            Documents × the features of the terms.
        qid : array-like, optional
            The query of each document, for a function that scales per query.
        """
        total = np.zeros(len(X))
        for term, column in zip(self.terms, self.scaled(X, qid).T, strict=True):
            total = total + term.curve.values(column)
        return total + self.constant


def formula_of(model: Model, *, fold: bool = True) -> Formula:
    """Describe the scoring function of a model.

    Parameters
    ----------
    model : Model
        Any model; nothing else is needed.
    fold : bool
        Fold a global scaler into weights and thresholds; otherwise it stays beside each term.

    Examples
    --------
    >>> from leanrank.model import LinearModel
    >>> scaler = {"kind": "standard", "mean": [1.0, 0.0], "scale": [2.0, 4.0]}
    >>> model = LinearModel.from_coef([3.0, 2.0], normalizer=scaler)
    >>> formula = formula_of(model)
    >>> [term.weight for term in formula.terms], formula.constant
    ([1.5, 0.5], -1.5)
    """
    terms = [Term(at, feature_name(at, model.feature_names), curve) for at, curve in _curves(model)]
    kind, scale_of = _scaler(model)
    constant = 0.0
    if scale_of is not None:
        for at, term in enumerate(terms):
            scale = scale_of(term.feature)
            if not fold:
                terms[at] = replace(term, scale=scale)
                continue
            curve, added = term.curve.folded(scale)
            constant += added
            terms[at] = replace(term, curve=curve)
    formula = Formula(tuple(terms), constant, *kind, model.provenance)
    for term in formula.terms:
        if not np.isfinite(term.curve.numbers()).all():
            raise ModelError(
                f"the weight of {term.name!r} is not finite once the scaler is folded into it: "
                "train again with features of a sensible range"
            )
    if not np.isfinite(constant):
        raise ModelError("the scaler's shifts add up to a constant that is not finite")
    return formula


def _curves(model: Model) -> list[tuple[int, Curve]]:
    if isinstance(model, LinearModel):
        return [
            (at, Line(weight))
            for at, weight in zip(model.indices.tolist(), model.values.tolist(), strict=True)
        ]
    if isinstance(model, BoostedModel):
        return [(at, _steps(model, at)) for at in model.indices.tolist()]
    raise ModelError(f"a {type(model).__name__} cannot be exported: it is no sum over features")


def _steps(model: BoostedModel, feature: int) -> Steps:
    rows = model.features == feature
    values = model.values[rows]
    thresholds = model.thresholds[rows]
    missing = float(values[model.missing[rows] == 1].sum())
    levels = np.concatenate(([0.0], np.cumsum(values)))
    # One level per distinct threshold; what is above −inf holds for every value.
    last = np.append(thresholds[1:] != thresholds[:-1], True)
    cuts, reached = thresholds[last], levels[1:][last]
    lowest = 0.0
    if len(cuts) and cuts[0] == -np.inf:
        lowest, cuts, reached = float(reached[0]), cuts[1:], reached[1:]
    return Steps(tuple(cuts.tolist()), (lowest, *reached.tolist()), missing)


def _scaler(
    model: Model,
) -> tuple[tuple[str | None, tuple[tuple[str, Any], ...]], Callable[[int], Scale] | None]:
    """Return the per-query scaler, or a function from a feature to its global scaler."""
    spec = model.normalizer
    if spec is None:
        return (None, ()), None
    kind = spec["kind"]
    if kind == "standard":
        return (None, ()), lambda at: Scale(float(spec["mean"][at]), float(spec["scale"][at]))
    if kind == "minmax":

        def minmax(at: int) -> Scale:
            low, high = float(spec["min"][at]), float(spec["max"][at])
            return Scale(low, high - low if high > low else 1.0)

        return (None, ()), minmax
    options = tuple(sorted((key, value) for key, value in spec.items() if key != "kind"))
    return (kind, options), None


def _largest_not_above(scale: Scale, threshold: float) -> float:
    """Return the largest number that, once scaled, is not above a threshold.

    Scaling is monotone also after rounding, so that bisection over the floating-point numbers in
    their order finds it: a document at a threshold stays on its side.
    """
    low, high = _ordinal(-np.finfo(float).max), _ordinal(np.finfo(float).max)
    while high - low > 1:
        middle = (low + high) // 2
        if scale(_from_ordinal(middle)) > threshold:
            high = middle
        else:
            low = middle
    return _from_ordinal(low)


def _ordinal(x: float) -> int:
    """Number the floating-point numbers in their order."""
    bits: int = struct.unpack("<q", struct.pack("<d", x))[0]
    return bits if bits >= 0 else -(bits & 0x7FFFFFFFFFFFFFFF)


def _from_ordinal(at: int) -> float:
    bits = at if at >= 0 else -at | -0x8000000000000000
    x: float = struct.unpack("<d", struct.pack("<q", bits))[0]
    return x
