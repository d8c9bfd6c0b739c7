"""Terms other than curves: look-up tables of a category, and surfaces of two features."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise, product
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.ranking_data import feature_name
from leanrank.errors import ModelError, first_repeated
from leanrank.model.curves import BaseTerm, Curve, Scale, Steps, T, Writer, search, starts, usable


@dataclass(frozen=True)
class Levels(Curve):
    """A look-up table of one category: ``values[i]`` where the feature is ``levels[i]``.

    Parameters
    ----------
    levels : tuple of str, or tuple of float
        The known levels, all texts or all numbers. Texts are compared as they are written.
    values : tuple of float
        The contribution of each level.
    missing : float
        The contribution where the feature is missing or another level.

    Notes
    -----
    A column of a data frame or of an array of objects has the levels themselves. In a matrix of
    numbers, numeric levels are themselves, and texts are positions in ``levels``; any other number
    is another level. Scalers do not change categories.

    >>> table = Levels(("de", "en"), (0.5, -0.25), missing=0.125)
    >>> table(table.encoded(["en", "de", None, "fr"])).tolist()
    [-0.25, 0.5, 0.125, 0.125]
    """

    levels: tuple[str, ...] | tuple[float, ...]
    values: tuple[float, ...]
    missing: float = 0.0
    keys: ClassVar[tuple[str, ...]] = ("levels", "values")

    def __post_init__(self) -> None:
        if len({isinstance(one, str) for one in self.levels}) > 1:
            raise ModelError("the levels of a category are texts and numbers: give one kind")
        self._set_plain("a category")
        levels = self.levels
        if len(levels) != len(self.values):
            raise ModelError(
                f"a category has {len(levels)} levels and {len(self.values)} values: give one each"
            )
        if (twice := first_repeated(levels)) is not None:
            raise ModelError(f"the level {twice!r} occurs twice: levels must be distinct")

    @property
    def is_text(self) -> bool:
        """Whether the levels are texts."""
        return bool(self.levels) and isinstance(self.levels[0], str)

    @property
    def heights(self) -> Sequence[float]:
        """The values of the levels."""
        return self.values

    def encoded(self, column: Any) -> FloatArray:
        """Return a column of a frame as numbers: NaN where it is missing.

        Numeric levels stay as they are; of texts, the position in ``levels``, or −1.
        """
        if not self.is_text:
            return np.asarray(column, dtype=np.float64)
        listed = next((getattr(column, m) for m in _LISTS if hasattr(column, m)), None)
        known: dict[str | None, float] = {text: float(at) for at, text in enumerate(self.levels)}  # type: ignore[misc]
        known[None] = np.nan
        cells = map(_as_text, column if listed is None else listed())
        return np.array([known.get(cell, -1.0) for cell in cells], dtype=np.float64)

    def written(self, writer: Writer[T], x: T) -> T:
        """Write the table."""
        if not self.levels:
            return writer.number(self.missing)
        return writer.lookup(x, list(zip(self.levels, self.values, strict=True)), self.missing)

    def folded(self, scale: Scale) -> tuple[Curve, float]:
        """Return the table itself: scalers do not change categories."""
        return self, 0.0

    def described(self) -> str:
        """Return the table in words."""
        parts = [f"{v!r} for {level!r}" for level, v in zip(self.levels, self.values, strict=True)]
        return ", ".join(parts) + f"; {self.missing!r} otherwise"

    def positions(self, x: FloatArray) -> IntArray:
        """Return the position in ``levels`` of each number of a matrix; n for any other."""
        n = len(self.levels)
        if self.is_text:
            return np.where((x >= 0) & (x < n) & (x == np.floor(x)), x, n).astype(np.int64)
        at = np.searchsorted(self._sorted[0], x)
        known = np.append(self._sorted[0], np.nan)[at] == x
        return np.where(known, np.append(self._sorted[1], n)[at], n)

    def _values(self, x: FloatArray) -> FloatArray:
        return np.asarray(np.append(self.values, self.missing)[self.positions(x)])

    @cached_property
    def _sorted(self) -> tuple[FloatArray, AnyArray]:
        """The numeric levels in ascending order, and their positions."""
        levels = np.array(self.levels, dtype=np.float64)
        order = np.argsort(levels)
        return levels[order], order


@dataclass(frozen=True)
class Surface(BaseTerm):
    """The joint contribution of two features: bilinear in a grid of knots, constant outside.

    Parameters
    ----------
    first, second : tuple of float
        The knots of the two features, at least two each, increasing.
    values : tuple of tuples of float
        ``values[i][j]`` is the contribution where the features are ``first[i]`` and ``second[j]``.
    missing : (float, float, float)
        The contribution where the first feature is missing, the second, or both.

    >>> corner = Surface((0.0, 1.0), (0.0, 2.0), ((0.0, 0.0), (0.0, 4.0)), (0.5, 0.25, 0.0))
    >>> corner(np.array([0.5, 9.0, np.nan]), np.array([1.0, 1.0, 1.0])).tolist()
    [1.0, 2.0, 0.5]
    """

    first: tuple[float, ...]
    second: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    missing: tuple[float, float, float] = (0.0, 0.0, 0.0)
    keys: ClassVar[tuple[str, ...]] = ("first", "second", "values")

    def __post_init__(self) -> None:
        sides = (self.first, self.second)
        if min(map(len, sides)) < 2 or len(self.missing) != 3:
            raise ModelError("a surface needs two knots on each side, and three values for missing")
        if [len(row) for row in self.values] != [len(self.second)] * len(self.first):
            raise ModelError(
                f"a surface has {len(self.first)} × {len(self.second)} knots: give one value each"
            )
        self._set_plain("a surface")
        sides = (self.first, self.second)
        if any(b <= a for side in sides for a, b in pairwise(side)):
            raise ModelError("the knots of a surface do not increase")
        with np.errstate(all="ignore"):
            if not usable(np.concatenate([rates for _, rates in self._sides])):
                raise ModelError("two knots of a surface are too near or too far apart")
            if not usable(np.ones(1), *self._cells):
                raise ModelError("two values of a surface are too far apart")

    @property
    def cuts(self) -> tuple[float, ...]:
        """The knots of both sides."""
        return self.first + self.second

    @property
    def heights(self) -> Sequence[float]:
        """The values at the knots."""
        return [value for row in self.values for value in row]

    def __call__(self, x: AnyArray, y: AnyArray) -> FloatArray:
        """Return the contribution to the score of each document; NaN for an infinite value."""
        x, y = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
        i, j = np.searchsorted(self.first, x), np.searchsorted(self.second, y)
        with np.errstate(over="ignore", invalid="ignore"):
            s, t = (
                (v - a[k]) * r[k] for v, k, (a, r) in zip((x, y), (i, j), self._sides, strict=True)
            )
            level, along, across, both = (each[i, j] for each in self._cells)
            out: FloatArray = level + along * s + across * t + both * s * t
        no_x, no_y = np.isnan(x), np.isnan(y)
        for rows, value in zip((no_x, no_y, no_x & no_y), self.missing, strict=True):
            out[rows] = value
        return out

    def written(self, writer: Writer[T], x: T, y: T) -> T:
        """Write nested conditions, a binary search for each feature."""
        absent = [writer.number(value) for value in self.missing]

        def cell(i: int, j: int) -> T:
            level, along, across, both = (float(each[i, j]) for each in self._cells)
            s, t = (
                writer.fraction(v, *(writer.number(float(each[k])) for each in side))
                for v, k, side in zip((x, y), (i, j), self._sides, strict=True)
            )
            value = writer.number(level)
            for factor, parts in ((along, [s]), (across, [t]), (both, [s, t])):
                if factor != 0:
                    product = reduce(writer.times, parts, writer.number(factor))
                    value = writer.apply("plus", value, product)
            return value

        def row(i: int) -> T:
            return search(writer, y, self.second, lambda j: cell(i, j))

        value = search(writer, x, self.first, row)
        without_x = writer.if_missing(y, absent[2], absent[0])
        return writer.if_missing(x, without_x, writer.if_missing(y, absent[1], value))

    def folded(self, first: Scale, second: Scale) -> tuple[Surface, float]:
        """Replace the knots by unscaled ones."""
        sides = first.unscaled(self.first), second.unscaled(self.second)
        return replace(self, first=sides[0], second=sides[1]), 0.0

    def described(self) -> str:
        """Return the values at the knots in words."""
        places = zip(product(self.first, self.second), self.heights, strict=True)
        points = (f"{value!r} at {place!r}" for place, value in places)
        a, b, both = self.missing
        return f"{', '.join(points)}; {a!r} or {b!r} if one is missing, {both!r} if both are"

    def to_dict(self) -> dict[str, Any]:
        """Return the surface as in a model file."""
        return {
            "knots": [list(self.first), list(self.second)],
            "values": [list(row) for row in self.values],
            "missing": list(self.missing),
        }

    @cached_property
    def _sides(self) -> tuple[tuple[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        return starts(np.array(self.first)), starts(np.array(self.second))

    @cached_property
    def _cells(self) -> tuple[FloatArray, ...]:
        """Level and slopes along the first feature, the second and both, of each cell.

        Outside the grid, a cell has the values of its border, so that its slopes are zero there.
        """
        grid = np.pad(np.array(self.values), 1, mode="edge")
        a, b, c, d = grid[:-1, :-1], grid[1:, :-1], grid[:-1, 1:], grid[1:, 1:]
        return a, b - a, c - a, (d - c) - (b - a)


Term = Curve | Surface
"""A model is a sum of these."""

_LISTS = ("to_pylist", "to_list", "tolist")  # of Arrow, of data frames, of arrays


def _as_text(cell: Any) -> str | None:
    """Return a cell as a level: None if it is missing, whole numbers without a decimal point."""
    if cell is None or isinstance(cell, str):
        return cell
    if isinstance(cell, float):
        return None if cell != cell else str(int(cell)) if cell.is_integer() else str(cell)
    return None if type(cell).__name__ in ("NAType", "NaTType") else str(cell)


def sum_of_weak_rankers(weak: Iterable[tuple[int, float, int, float]]) -> dict[int, Curve]:
    """Return the curves of a sum of weak rankers.

    Each is a feature, a threshold, whether it holds where the feature is missing (0 or 1), and a
    value that is added where it holds: above the threshold. −inf is below any value.

    >>> sum_of_weak_rankers([(4, 1.5, 0, 2.0), (4, float("-inf"), 1, 0.5), (4, 1.5, 0, 1.0)])
    {4: Steps(thresholds=(1.5,), levels=(0.5, 3.5), missing=0.5)}
    """
    sums: dict[tuple[int, float, int], float] = {}
    for feature, threshold, absent, value in weak:
        key = (feature, threshold + 0.0, absent)  # −0 and 0 are one threshold
        sums[key] = sums.get(key, 0.0) + value
    levels: dict[int, dict[float, float]] = {}
    missing: dict[int, float] = {}
    for (feature, threshold, absent), value in sorted(sums.items()):
        if value != 0:
            reached = levels.setdefault(feature, {-np.inf: 0.0})
            reached[threshold] = next(reversed(reached.values())) + value
            missing[feature] = missing.get(feature, 0.0) + absent * value
    curves = {
        feature: Steps(tuple(reached)[1:], tuple(reached.values()), missing[feature])
        for feature, reached in levels.items()
    }
    return {feature: curve for feature, curve in curves.items() if not curve.is_zero}


def term_name(names: Iterable[str]) -> str:
    """Return the name of a term: that of its feature, or of both features of a pair.

    >>> term_name(["bm25"]), term_name(["bm25", "age"])
    ('bm25', 'bm25 × age')
    """
    return " × ".join(names)


def check_terms(terms: Mapping[tuple[int, ...], Term], n_features: int) -> None:
    """Reject terms of unknown features, terms without effect, and invalid pairs."""
    for features, term in terms.items():
        if min(features) < 0 or max(features) >= n_features:
            raise ModelError(
                f"features are from 0 to {n_features - 1}, but there is a curve of {max(features)}"
            )
        if term.is_zero:
            name = term_name(map(feature_name, features))
            raise ModelError(
                f"the weight of feature {name} is zero: only features with a weight belong in a "
                "model"
            )
        if len(features) > 1 and features[0] >= features[-1]:
            raise ModelError(f"the features {features} of a surface do not ascend")
        for at in features if len(features) > 1 else ():
            if isinstance(terms.get((at,)), Levels):
                raise ModelError(f"a surface needs numbers, but {feature_name(at)} is a category")
