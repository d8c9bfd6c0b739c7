"""Curves: the contribution of one feature to a score, as a straight line, ramps or steps."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from math import isfinite, ulp
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from leanrank._typing import AnyArray, FloatArray
from leanrank.errors import ModelError
from leanrank.execution import cached_property

T = TypeVar("T")


class Writer(ABC, Generic[T]):
    """Writes the terms of a model for a target; T is text, or a node of a graph or tree."""

    @abstractmethod
    def number(self, value: float) -> T:
        """Return a constant."""

    @abstractmethod
    def apply(self, operation: str, *operands: T) -> T:
        """Return an operation: missing, above, equal, choice, minus, times or plus."""

    def lookup(self, x: T, table: list[tuple[Any, float]], otherwise: float) -> T:
        """Return the value of the level x, or another; a missing feature is no level."""
        found = self.number(otherwise)
        for level, value in table:
            same = self.apply("equal", x, self.number(level))
            found = self.apply("choice", same, self.number(value), found)
        return found

    def filled(self, x: T, value: float) -> T:
        """Return a feature with a number where it is missing."""
        return self.if_missing(x, self.number(value), x)

    def if_missing(self, x: T, then: T, otherwise: T) -> T:
        """Return ``then`` where a feature is missing, else ``otherwise``."""
        return self.apply("choice", self.apply("missing", x), then, otherwise)

    def fraction(self, x: T, start: T, rate: T) -> T:
        """Return (x − start) × rate of a feature that is not missing."""
        return self.times(self.apply("minus", x, start), rate)

    def times(self, a: T, b: T) -> T:
        """Return a product."""
        return self.apply("times", a, b)


@dataclass(frozen=True)
class Scale:
    """A global scaler of one feature: (x − shift) / divisor, with the same rounding."""

    shift: float
    divisor: float

    def __call__(self, x: Any) -> Any:
        return (x - self.shift) / self.divisor

    def unscaled(self, knots: Iterable[float]) -> tuple[float, ...]:
        """Return the unscaled values of scaled numbers."""
        return tuple(knot * self.divisor + self.shift for knot in knots)

    def largest_not_above(self, threshold: float) -> float:
        """Return the largest number that, once scaled, is not above a threshold.

        Scaling is monotone, also after rounding, so bisection down to neighbouring numbers finds
        the exact threshold.

        >>> Scale(1.0, 2.0).largest_not_above(3.0)
        7.0
        """
        near = threshold * self.divisor + self.shift
        if not isfinite(near):
            raise ModelError(f"the threshold {threshold!r} is too large for the scaler's numbers")
        reach = ulp(near)
        while self(near - reach) > threshold or self(near + reach) <= threshold:
            reach *= 2
        low, high = near - reach, near + reach
        while low < (middle := low + (high - low) / 2) < high:
            if self(middle) > threshold:
                high = middle
            else:
                low = middle
        return low


def search(writer: Writer[T], x: T, cuts: Sequence[float], piece: Callable[[int], T]) -> T:
    """Return a binary search for the piece of x among cuts: languages limit nesting depth."""

    def between(low: int, high: int) -> T:
        if low == high:
            return piece(low)
        middle = (low + high) // 2
        cut = writer.number(cuts[middle])
        then, otherwise = between(middle + 1, high), between(low, middle)
        return writer.apply("choice", writer.apply("above", x, cut), then, otherwise)

    return between(0, len(cuts))


def on_pieces(x: FloatArray, at: AnyArray, pieces: Sequence[FloatArray]) -> FloatArray:
    """Return the values of a curve at x, each on one of the pieces; NaN where x is not finite.

    Rounding keeps the order: a curve that never falls does not fall by rounding either. There is no
    division, which some engines replace by a multiplication.
    """
    start, rate, rise, level = (each[at] for each in pieces)
    out: FloatArray = x - start
    out *= rate
    out *= rise
    out += level
    return out


def starts(knots: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the start and 1 / width of each piece; the outer ones are flat."""
    return (
        np.concatenate(([0.0], knots[:-1], [0.0])),
        np.concatenate(([1.0], 1 / np.diff(knots), [1.0])),
    )


def usable(rates: FloatArray, *numbers: FloatArray) -> bool:
    """Return whether no rate is subnormal, and all numbers are finite."""
    small = rates.min() < np.finfo(np.float64).tiny
    return not small and all(bool(np.isfinite(each).all()) for each in (rates, *numbers))


class BaseTerm(ABC):
    """The contribution of one or two features to a score.

    Attributes
    ----------
    missing : float, tuple of float or None
        The contribution where a feature is missing (NaN). None: a model rejects such documents, and
        an export treats the feature as 0.
    keys : tuple of str
        The other attributes that define the term, in the order of the file.
    """

    missing: Any
    keys: ClassVar[tuple[str, ...]]

    @property
    def cuts(self) -> tuple[float, ...]:
        """The boundaries between pieces, in increasing order."""
        return ()

    @property
    @abstractmethod
    def heights(self) -> Sequence[float]:
        """The values of the term at its knots or levels, from left to right."""

    @property
    def size(self) -> float:
        """The largest difference of the term between two documents."""
        among = np.append(self.heights, () if self.missing is None else self.missing)
        return float(among.max() - among.min())

    @property
    def is_zero(self) -> bool:
        """Whether the term adds nothing to any score."""
        return not (any(self.heights) or np.any(self.missing or 0.0))

    @abstractmethod
    def described(self) -> str:
        """Describe the term in a few words."""

    def _set_plain(self, what: str) -> None:
        """Store plain numbers, and reject those that are not finite."""
        for key in (*self.keys, "missing"):
            given = getattr(self, key)
            if given is not None:
                object.__setattr__(self, key, _plain(given, what, texts=key == "levels"))


def _plain(given: Any, what: str, texts: bool) -> Any:
    if isinstance(given, (tuple, list, np.ndarray)):
        return tuple(_plain(one, what, texts) for one in given)
    if isinstance(given, str):
        if not texts:
            raise ModelError(f"{given!r} is a text where a number is expected")
        return given
    if not isfinite(given):
        raise ModelError(f"a number of {what} is not finite")
    return float(given) + 0.0


class Curve(BaseTerm):
    """The contribution of one feature to a score."""

    missing: float | None

    def __call__(self, column: AnyArray) -> FloatArray:
        """Return the contribution of the feature to the score of each document.

        It is NaN for an infinite value, unless the curve is a line, and for a missing value if
        ``missing`` is None.
        """
        x = np.asarray(column, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            out = self._values(x)
        if self.missing is not None:
            out[np.isnan(x)] = self.missing
        return out

    @property
    def absent(self) -> float:
        """The contribution of a missing feature in an export."""
        return float(self(np.zeros(1))[0]) if self.missing is None else self.missing

    @abstractmethod
    def written(self, writer: Writer[T], x: T) -> T:
        """Write the curve of the feature x for a target."""

    @abstractmethod
    def folded(self, scale: Scale) -> tuple[Curve, float]:
        """Return the curve of the unscaled feature, and a constant that it lacks."""

    @abstractmethod
    def _values(self, x: FloatArray) -> FloatArray:
        """Return a new array: the curve at x, and NaN where x is NaN."""

    def to_dict(self) -> dict[str, Any]:
        """Return the curve as in a model file."""
        given = {key: getattr(self, key) for key in (*self.keys, "missing")}
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in given.items()}
        return {key: value for key, value in plain.items() if value is not None}

    def _absent(self) -> str:
        return "" if self.missing is None else f"; {self.missing!r} if missing"


@dataclass(frozen=True)
class Line(Curve):
    """A weight times the feature.

    >>> Line(0.5)(np.array([4.0, -2.0])).tolist()
    [2.0, -1.0]
    """

    weight: float
    missing: float | None = None
    keys: ClassVar[tuple[str, ...]] = ("weight",)

    def __post_init__(self) -> None:
        self._set_plain("a line")

    @property
    def heights(self) -> Sequence[float]:
        """The weight."""
        return (self.weight,)

    @property
    def size(self) -> float:
        """The weight."""
        return self.weight

    def written(self, writer: Writer[T], x: T) -> T:
        """Write the product."""
        product = writer.times(writer.number(self.weight), writer.filled(x, 0.0))
        if self.missing is None:
            return product
        return writer.if_missing(x, writer.number(self.missing), product)

    def folded(self, scale: Scale) -> tuple[Curve, float]:
        """Move the divisor into the weight and the shift into a constant."""
        weight = self.weight / scale.divisor
        added = -weight * scale.shift
        return Line(weight, None if self.missing is None else self.missing - added), added

    def described(self) -> str:
        """Return the product in words."""
        return f"{self.weight!r} × value{self._absent()}"

    def _values(self, x: FloatArray) -> FloatArray:
        return self.weight * x


class Bent(Curve):
    """A curve in pieces between cuts."""

    @property
    def cuts(self) -> tuple[float, ...]:
        """The knots of ramps, the thresholds of steps."""
        return tuple(getattr(self, self.keys[0]))

    @property
    def size(self) -> float:
        """The largest difference between two documents, negative for a curve that falls."""
        return -super().size if self.heights[-1] < self.heights[0] else super().size

    def written(self, writer: Writer[T], x: T) -> T:
        """Write nested conditions."""
        value = search(writer, x, self.cuts, lambda at: self._piece(at, writer, x))
        return writer.if_missing(x, writer.number(self.absent), value)

    def _piece(self, at: int, writer: Writer[T], x: T) -> T:
        """Write the piece above ``at`` of the cuts."""
        start, rate, rise, level = (float(each[at]) for each in self.pieces)
        if rise == 0:
            return writer.number(level)
        part = writer.fraction(x, writer.number(start), writer.number(rate))
        return writer.apply("plus", writer.number(level), writer.times(writer.number(rise), part))

    @property
    @abstractmethod
    def pieces(self) -> tuple[FloatArray, ...]:
        """Start, 1 / width, rise and level of each piece; the outer ones are flat."""

    def _values(self, x: FloatArray) -> FloatArray:
        return on_pieces(x, np.searchsorted(self._cuts, x), self.pieces)

    @cached_property
    def _cuts(self) -> FloatArray:
        return np.array(self.cuts, dtype=np.float64)

    def _check(self, what: str) -> None:
        """Store plain numbers, and reject those that are not finite or do not increase."""
        self._set_plain(f"a curve of {what}")
        if any(b <= a for a, b in pairwise(self.cuts)):
            raise ModelError(f"the {self.keys[0]} of a curve of {what} do not increase")


@dataclass(frozen=True)
class Ramps(Bent):
    """A piecewise linear curve, constant outside: it rises by ``rises[k]`` between two knots.

    Its value is the sum over k of
    ``rises[k] * clip((x - knots[k]) / (knots[k + 1] - knots[k]), 0, 1)``.

    >>> Ramps((0.0, 1.0, 3.0), (2.0, -1.0))(np.array([-5.0, 0.5, 2.0, 9.0])).tolist()
    [0.0, 1.0, 1.5, 1.0]
    """

    knots: tuple[float, ...]
    rises: tuple[float, ...]
    missing: float | None = None
    keys: ClassVar[tuple[str, ...]] = ("knots", "rises")

    def __post_init__(self) -> None:
        self._check("ramps")
        if len(self.knots) < 2 or len(self.rises) != len(self.knots) - 1:
            raise ModelError(
                f"a curve of ramps has {len(self.knots)} knots and {len(self.rises)} rises: give "
                "at least two knots, and one rise between any two"
            )
        with np.errstate(all="ignore"):
            if not usable(self.pieces[1], *self.pieces):
                raise ModelError("a curve of ramps is too wide, narrow or high for a number")

    @classmethod
    def of(cls, knots: Any, rises: Any, missing: float | None = None) -> Curve:
        """Return the curve without redundant knots, where it is flat on both sides.

        A curve that is flat everywhere becomes ``Steps`` without thresholds.

        >>> Ramps.of([0, 1, 2, 3, 4, 5], [0, 2, 0, 0, 1])
        Ramps(knots=(1.0, 2.0, 4.0, 5.0), rises=(2.0, 0.0, 1.0), missing=None)
        """
        full = cls(knots, rises, missing)
        moves = np.concatenate(([0.0], full.rises, [0.0])) != 0
        kept = moves[1:] | moves[:-1]
        if not kept.any():
            return Steps((), (0.0,), full.missing)
        at = np.flatnonzero(kept)
        knots, rises = np.array(full.knots)[at], np.array(full.rises)[at[:-1]]
        return cls(knots, rises, full.missing)

    @cached_property
    def heights(self) -> Sequence[float]:
        """The values at the knots."""
        return list(accumulate(self.rises, initial=0.0))

    def folded(self, scale: Scale) -> tuple[Curve, float]:
        """Replace the knots by unscaled ones."""
        return replace(self, knots=scale.unscaled(self.knots)), 0.0

    def described(self) -> str:
        """Return the values at the knots in words."""
        points = zip(self.heights, self.knots, strict=True)
        return ", ".join(f"{y!r} at {x!r}" for y, x in points) + self._absent()

    @cached_property
    def pieces(self) -> tuple[FloatArray, ...]:
        """The pieces between the knots."""
        heights = np.array(self.heights)
        return (
            *starts(self._cuts),
            np.concatenate(([0.0], self.rises, [0.0])),
            np.concatenate(([0.0], heights[:-1], heights[-1:])),
        )


@dataclass(frozen=True)
class Steps(Bent):
    """A constant between any two thresholds: ``levels[i]`` above i of them.

    >>> Steps((1.0, 2.0), (0.0, 0.5, 0.25))(np.array([1.0, 1.5, 3.0])).tolist()
    [0.0, 0.5, 0.25]
    """

    thresholds: tuple[float, ...]
    levels: tuple[float, ...]
    missing: float | None = None
    keys: ClassVar[tuple[str, ...]] = ("thresholds", "levels")

    def __post_init__(self) -> None:
        self._check("steps")
        if len(self.levels) != len(self.thresholds) + 1:
            raise ModelError(
                f"a curve of steps has {len(self.thresholds)} thresholds and {len(self.levels)} "
                "levels: give one level more than thresholds"
            )

    @property
    def heights(self) -> Sequence[float]:
        """The levels."""
        return self.levels

    def folded(self, scale: Scale) -> tuple[Curve, float]:
        """Move the thresholds so that exactly the same unscaled values are above them."""
        moved = np.array([scale.largest_not_above(cut) for cut in self.thresholds])
        last = np.flatnonzero(np.append(moved[1:] != moved[:-1], True)[: len(moved)])
        levels = (self.levels[0], *(self.levels[at + 1] for at in last.tolist()))
        return Steps(tuple(moved[last].tolist()), levels, self.missing), 0.0

    def described(self) -> str:
        """Return the levels in words."""
        steps = zip(self.levels[1:], self.thresholds, strict=True)
        parts = [repr(self.levels[0]), *(f"{level!r} above {cut!r}" for level, cut in steps)]
        return ", ".join(parts) + self._absent()

    @cached_property
    def pieces(self) -> tuple[FloatArray, ...]:
        """Flat pieces."""
        flat = np.zeros(len(self.levels))
        return flat, flat, flat, np.array(self.levels)
