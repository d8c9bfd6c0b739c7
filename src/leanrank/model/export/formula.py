"""The description of a scoring function from which every export is written."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, FloatArray
from leanrank.data.ranking_data import feature_name
from leanrank.errors import ModelError
from leanrank.model.curves import Curve, Line, Scale, T, Writer
from leanrank.model.model import Model
from leanrank.model.terms import Levels, Surface, term_name


@dataclass(frozen=True)
class Term:
    """A term of the sum with its features."""

    features: tuple[int, ...]
    names: tuple[str, ...]
    curve: Curve | Surface

    @property
    def name(self) -> str:
        """The name of the term."""
        return term_name(self.names)

    @property
    def is_pair(self) -> bool:
        """Whether the term is a surface of two features."""
        return len(self.features) > 1

    @property
    def weight(self) -> float:
        """The weight of a line; not for other terms."""
        return self.curve.size


@dataclass(frozen=True)
class Formula:
    """A scoring function: terms added in the order of features, then a constant.

    Attributes
    ----------
    terms : tuple of Term
        Curves in the order of features, then surfaces.
    constant : float
        Added last. Some targets leave it out, since it does not change the order.
    scaler : str or None
        The per-query normaliser applied to the features first, such as ``"query-minmax"``.
    scaler_options : tuple of pairs
        Its parameters, if it has any.
    provenance : mapping
        How the model was made.
    fill : mapping
        The number that replaces a missing feature before a per-query scaler and before surfaces, by
        name. In other terms, it is part of their values for missing features.
    """

    terms: tuple[Term, ...]
    constant: float = 0.0
    scaler: str | None = None
    scaler_options: tuple[tuple[str, Any], ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    fill: Mapping[str, float] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The names of the features, in their order."""
        found = {at: n for t in self.terms for at, n in zip(t.features, t.names, strict=True)}
        return [found[at] for at in sorted(found)]

    @property
    def categories(self) -> dict[str, Levels]:
        """The categories by the names of their features."""
        return {t.name: t.curve for t in self.terms if isinstance(t.curve, Levels)}

    @property
    def texts(self) -> dict[str, Levels]:
        """The categories of texts by the names of their features."""
        return {name: one for name, one in self.categories.items() if one.is_text}

    @property
    def lines(self) -> list[Line]:
        """The straight lines."""
        return [term.curve for term in self.terms if isinstance(term.curve, Line)]

    @property
    def is_weighted(self) -> bool:
        """Whether every term is a weight times a feature, or a number where that is missing."""
        return len(self.lines) == len(self.terms)

    @property
    def is_linear(self) -> bool:
        """Whether every term is a weight times a feature."""
        return self.is_weighted and all(line.missing is None for line in self.lines)

    @property
    def version(self) -> str:
        """Eight hexadecimal digits that differ between different functions."""
        parts = (self.terms, self.constant, self.scaler, self.scaler_options, {**self.fill})
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:8]

    def renamed(self, names: Mapping[str, str]) -> Formula:
        """Return a copy in which features have other names."""
        terms = (replace(t, names=tuple(names.get(n, n) for n in t.names)) for t in self.terms)
        fill = {names.get(name, name): value for name, value in self.fill.items()}
        return replace(self, terms=tuple(terms), fill=fill)

    def part(self, term: Term, writer: Writer[T], features: Sequence[T]) -> T:
        """Return one term as written by a target; ``features`` has one entry per name."""
        known = dict(zip(self.names, features, strict=True))
        x = [known[name] for name in term.names]
        fill = {} if self.scaler is not None else self.fill
        if isinstance(term.curve, Line) and term.name in fill:
            return writer.times(writer.number(term.weight), writer.filled(x[0], fill[term.name]))
        if term.is_pair:
            given = zip(term.names, x, strict=True)
            x = [writer.filled(a, fill[name]) if name in fill else a for name, a in given]
        return term.curve.written(writer, *x)

    def parts(self, writer: Writer[T], features: Sequence[T]) -> list[T]:
        """Return the terms as written by a target, and the constant unless it is 0."""
        written = [self.part(term, writer, features) for term in self.terms]
        return [*written, writer.number(self.constant)] if self.constant != 0 else written

    def written(self, writer: Writer[T], features: Sequence[T]) -> T:
        """Return the sum as written by a target.

        >>> from leanrank.model.export.text import Syntax
        >>> from leanrank.model import Model
        >>> formula_of(Model.from_coef([0.5, -2.0])).written(Syntax(filled="{x}"), ["a", "b"])
        '0.5 * a + -2.0 * b'
        """
        return reduce(partial(writer.apply, "plus"), self.parts(writer, features))

    def scaled(self, X: AnyArray, qid: Any = None) -> FloatArray:
        """Return the features of the terms in float64, after the per-query scaler if any."""
        used = np.asarray(X, dtype=np.float64)
        if self.scaler is None or not self.terms:
            return used
        from leanrank.data.scaling.normalizers import normalizer_from_dict

        normalizer = normalizer_from_dict({"kind": self.scaler, **dict(self.scaler_options)})
        fill = np.array([self.fill.get(name, 0.0) for name in self.names])
        scaled: FloatArray = normalizer.transform(np.where(np.isnan(used), fill, used), qid=qid)
        raw = [at for at, name in enumerate(self.names) if name in self.categories]
        scaled[:, raw] = used[:, raw]
        return scaled

    def scores(self, X: AnyArray, qid: Any = None) -> FloatArray:
        """Return the scores in float64, added in the order of terms.

        An exact target computes the same bits. ``leanrank.model.Model.predict`` may add in another
        order.

        Parameters
        ----------
        X : array
            Documents × the features, in the order of ``names``.
        qid : array-like, optional
            The query of each document, for a function that scales per query.
        """
        total, x = np.zeros(len(X)), dict(zip(self.names, self.scaled(X, qid).T, strict=True))
        for term in self.terms:
            fill = [self.fill.get(name, np.nan) for name in term.names]
            if not term.is_pair:
                fill = [0.0 if term.curve.missing is None else np.nan]
            given = [
                np.nan_to_num(x[name], nan=f) for name, f in zip(term.names, fill, strict=True)
            ]
            total = total + term.curve(*given)
        return total + self.constant


def formula_of(model: Model) -> Formula:
    """Return the formula of a model.

    A global scaler is folded into weights, thresholds and a constant.

    Examples
    --------
    >>> from leanrank.model import Model
    >>> scaler = {"kind": "standard", "mean": [1.0, 0.0], "scale": [2.0, 4.0]}
    >>> model = Model.from_coef([3.0, 2.0], normalizer=scaler)
    >>> formula = formula_of(model)
    >>> [term.weight for term in formula.terms], formula.constant
    ([1.5, 0.5], -1.5)
    """
    options = dict(model.normalizer or {})
    scale_of = _global_scales(options)
    scaler = None if scale_of else options.pop("kind", None)
    terms, constant = [], 0.0
    for features, curve in model.terms.items():
        names = tuple(feature_name(at, model.feature_names) for at in features)
        if scale_of is not None:
            curve, added = curve.folded(*map(scale_of, features))
            constant += added
        gap = model.fill.get(features[0])
        filled = gap is not None and scaler is None
        # exports treat a missing value of a line as 0 anyway
        if filled and isinstance(curve, Curve) and (gap != 0 or not isinstance(curve, Line)):
            curve = replace(curve, missing=float(curve(np.array([gap]))[0]))  # type: ignore[type-var]
        terms.append(Term(features, names, curve))
    if not np.isfinite(constant):
        raise ModelError("the scaler's shifts add up to a constant that is not finite")
    fill = {feature_name(at, model.feature_names): value for at, value in model.fill.items()}
    settings = () if scaler is None else tuple(sorted(options.items()))
    return Formula(tuple(terms), constant, scaler, settings, model.provenance, fill)


def in_units_of_data(model: Model) -> Model:
    """Return a model without a normaliser whose curves are those of the unscaled features.

    A constant is left out. The model is returned unchanged if its normaliser cannot be folded into
    the curves: one per query, or one with too large numbers.

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
    curves = {one.features[0]: one.curve for one in terms if isinstance(one.curve, Curve)}
    surfaces: Any = {one.features: one.curve for one in terms if one.is_pair}
    return model.replace(curves=curves, surfaces=surfaces, normalizer=None)


def _global_scales(spec: Mapping[str, Any]) -> Callable[[int], Scale] | None:
    """Return a function from a feature to its global scaler, if the normaliser is one."""

    def standard(at: int) -> Scale:
        return Scale(float(spec["mean"][at]), float(spec["scale"][at]))

    def minmax(at: int) -> Scale:
        low, high = float(spec["min"][at]), float(spec["max"][at])
        return Scale(low, high - low if high > low else 1.0)

    return {"standard": standard, "minmax": minmax}.get(spec.get("kind", ""))
