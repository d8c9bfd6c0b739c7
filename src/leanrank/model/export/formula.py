"""The neutral description of a scoring function, from which every export is written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from leanrank._typing import AnyArray, FloatArray
from leanrank.data.ranking_data import feature_name
from leanrank.errors import ModelError
from leanrank.model.curves import Curve, Line, Writer
from leanrank.model.model import Model
from leanrank.model.scale import Scale

T = TypeVar("T")


@dataclass(frozen=True)
class Term:
    """One feature with its curve.

    ``scale`` is what a normaliser of the target must still do to the feature, if asked for.
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
        return sum(len(term.curve.numbers) for term in self.terms)

    @property
    def is_linear(self) -> bool:
        """Whether every term is a weight times a feature."""
        curves = (term.curve for term in self.terms)
        return all(isinstance(curve, Line) and curve.missing is None for curve in curves)

    @property
    def version(self) -> str:
        """Eight hexadecimal digits that differ between different functions."""
        parts: list[Any] = [self.scaler, *self.scaler_options, self.constant]
        parts += [(t.name, *t.curve.numbers, t.scale) for t in self.terms]
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]

    def renamed(self, names: Mapping[str, str]) -> Formula:
        """Return a copy in which features have other names."""
        return replace(
            self, terms=tuple(replace(t, name=names.get(t.name, t.name)) for t in self.terms)
        )

    def written(self, writer: Writer[T], features: Sequence[T], constant: bool = True) -> T:
        """Write the sum for a target.

        >>> from leanrank.model.export.text import Syntax
        >>> from leanrank.model import Model
        >>> formula_of(Model.from_coef([0.5, -2.0])).written(Syntax(zero_filled="{x}"), ["a", "b"])
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
        from leanrank.data.scaling.normalizers import normalizer_from_dict

        normalizer = normalizer_from_dict({"kind": self.scaler, **dict(self.scaler_options)})
        scaled: FloatArray = normalizer.transform(np.nan_to_num(used, nan=0.0), qid=qid)
        return scaled

    def scores(self, X: AnyArray, qid: Any = None) -> FloatArray:
        """Return the scores in float64, added in the order of terms.

        This is what an exact target computes, bit for bit. ``leanrank.model.Model.predict``
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
            known = term.curve.missing is not None
            total = total + term.curve(column if known else np.nan_to_num(column, nan=0.0))
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
    >>> from leanrank.model import Model
    >>> scaler = {"kind": "standard", "mean": [1.0, 0.0], "scale": [2.0, 4.0]}
    >>> model = Model.from_coef([3.0, 2.0], normalizer=scaler)
    >>> formula = formula_of(model)
    >>> [term.weight for term in formula.terms], formula.constant
    ([1.5, 0.5], -1.5)
    """
    kind, scale_of = _scaler(model)
    terms, constant = [], 0.0
    for at, curve in model.curves.items():
        name = feature_name(at, model.feature_names)
        scale = None if scale_of is None else scale_of(at)
        if scale is not None and fold:
            try:
                curve, added = curve.folded(scale)
            except (ModelError, ZeroDivisionError) as error:
                raise ModelError(
                    f"the scaler cannot be folded into the weight of {name!r} ({error}): train "
                    "again with features of a sensible range"
                ) from error
            constant, scale = constant + added, None
        terms.append(Term(at, name, curve, scale))
    if not np.isfinite(constant):
        raise ModelError("the scaler's shifts add up to a constant that is not finite")
    return Formula(tuple(terms), constant, *kind, model.provenance)


def in_units_of_data(model: Model) -> Model:
    """Return a model without a normaliser whose curves are those of the unscaled features.

    A constant is left out. The model is returned as it is if its normaliser cannot be folded into
    its curves: one that scales per query, or whose numbers are too large.

    >>> from leanrank.model import Model, Ramps
    >>> scaler = {"kind": "standard", "mean": [10.0], "scale": [2.0]}
    >>> in_units_of_data(Model(1, {0: Ramps((0.0, 1.0), (3.0,))}, normalizer=scaler)).curves[0]
    Ramps(knots=(10.0, 12.0), rises=(3.0,), missing=None)
    """
    if model.normalizer is None or model.needs_qid:
        return model
    try:
        terms = formula_of(model).terms
    except ModelError:
        return model
    return model.replace(curves={term.feature: term.curve for term in terms}, normalizer=None)


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
