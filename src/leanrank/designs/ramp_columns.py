"""Which columns a feature has in a sum of curves, and where its knots are.

A feature with knots a₀ < a₁ < … < a_K has the ramps

    r_k(x) = clip((x − a_k)/(a_{k+1} − a_k), 0, 1),   k = 0 … K − 1,

so that weights w_k are the rises of a curve over its segments. It may have a *line* beside them,
``rate``·clip(x − a₀, 0, a_K − a₀): a direction that the ramps have too, but cheaper in a penalty,
so that a curve shrinks towards a line. A category has one column per level instead, its codes 0, 1,
… being the knots. A missing value (NaN) is 0 in all of these and has a column of its own.

All columns of a feature are piecewise linear between its knots. So two sums of a score gradient per
*bin*, that is between two knots, give Xᵀg.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from leanrank.execution import cached_property
from leanrank.model.curves import Curve, Ramps, Steps
from leanrank.model.terms import Levels

ROWS_FOR_KNOTS = 50_000
"""Rows, evenly spaced, from which knots are taken if there are more."""

OUTSIDE = 0.01
"""Share of the documents beyond the outermost knots at either end. A knot at an outlier would leave
a last segment in which all other documents stand at its start, so that its slope costs too much."""

NARROWEST = float(np.finfo(np.float64).tiny)
"""Shortest segment whose slope is a number; the longest is 1 / NARROWEST."""


@dataclass(frozen=True)
class RampColumns:
    """The columns of features: the ramps of the first, its line, its gap, then the second, …

    Attributes
    ----------
    knots : tuple of arrays
        Ascending, one array per feature; one with less than two knots has no ramps.
    gap : array of bool
        Which features have a column for missing values.
    rate : array
        Slope of the line of each feature; 0 where it has none.
    levels : dict of int to tuple
        The levels of features that are categories, in groups of names that share a value; the
        knots are the numbers 0, 1, … of the groups.
    """

    knots: tuple[FloatArray, ...]
    gap: BoolArray
    rate: FloatArray = field(default_factory=lambda: np.zeros(0))
    levels: dict[int, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Without lines, every rate is 0."""
        if len(self.rate) != len(self.knots):
            object.__setattr__(self, "rate", np.zeros(len(self.knots)))

    def with_lines(self, X: Matrix, height: float) -> RampColumns:
        """Give each feature with ramps a line of standard deviation ``height`` on X."""
        sample = X[:: sample_step(X.shape[0])]
        rate = np.zeros(len(self.knots))
        for j in np.flatnonzero((self.sizes > 1) & ~self.is_category).tolist():
            column = sample[:, [j]]
            values = column[:, 0] if isinstance(column, np.ndarray) else column.toarray()[:, 0]
            spread = float(np.nanstd(np.clip(values, self.knots[j][0], self.knots[j][-1])))
            rate[j] = height / spread if spread > 0.0 else 0.0
        return replace(self, rate=np.where(np.isfinite(rate), rate, 0.0))

    def with_levels(self, levels: dict[int, tuple[Any, ...]]) -> RampColumns:
        """Make some features categories, whose values are codes 0, 1, …."""
        knots = list(self.knots)
        for j, names in levels.items():
            knots[j] = np.arange(float(len(names)))
        return replace(self, knots=tuple(knots), levels=dict(levels))

    @classmethod
    def at_quantiles(cls, X: Matrix, n_segments: int) -> RampColumns:
        """Split features into at most ``n_segments`` with about equally many documents.

        The outermost knots leave 1% of the documents outside, or half a segment if that is less;
        there a curve is flat. A value that very many documents share, such as zero, becomes one
        knot and does not count for the others. A feature with few values has a knot at each.

        Examples
        --------
        >>> X = np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [2.0], [3.0], [4.0]])
        >>> RampColumns.at_quantiles(X, 2).knots[0].tolist()
        [0.0, 1.0, 4.0]
        """
        sample = X[:: sample_step(X.shape[0])]
        if isinstance(sample, np.ndarray):
            knots = [_knots(_counted(stored), n_segments) for stored in sample.T]
        else:
            knots = _knots_of_sparse(sample.tocsc(), n_segments)
        return cls(tuple(knots), np.zeros(X.shape[1], dtype=bool))

    @cached_property
    def sizes(self) -> IntArray:
        """Number of ramps of each feature."""
        return np.maximum(np.fromiter(map(len, self.knots), np.int64, len(self.knots)) - 1, 0)

    @cached_property
    def is_category(self) -> BoolArray:
        """Which features are categories."""
        out = np.zeros(len(self.knots), dtype=bool)
        out[list(self.levels)] = True
        return out

    @cached_property
    def widths(self) -> IntArray:
        """Number of ramps, or of levels, of each feature."""
        return self.sizes + self.is_category

    @cached_property
    def starts(self) -> IntArray:
        """Where the columns of each feature begin, and where they end."""
        each = self.widths + (self.rate > 0) + self.gap
        return np.concatenate(([0], np.cumsum(each))).astype(np.int64)

    @property
    def n_columns(self) -> int:
        """Columns of all features."""
        return int(self.starts[-1])

    @cached_property
    def feature(self) -> IntArray:
        """The feature of each column."""
        return np.repeat(np.arange(len(self.knots)), np.diff(self.starts))

    @cached_property
    def is_gap(self) -> BoolArray:
        """Which columns are for missing values."""
        out = np.zeros(self.n_columns, dtype=bool)
        out[(self.starts[1:] - 1)[self.gap]] = True
        return out

    @cached_property
    def is_line(self) -> BoolArray:
        """Which columns are lines."""
        out = np.zeros(self.n_columns, dtype=bool)
        out[(self.starts[:-1] + self.widths)[self.rate > 0]] = True
        return out

    @cached_property
    def is_bend(self) -> BoolArray:
        """Which columns are ramps of a feature that has a line as well."""
        return (self.rate[self.feature] > 0) & ~self.is_line & ~self.is_gap

    @cached_property
    def heights(self) -> FloatArray:
        """The largest entry that each column can have."""
        out = np.ones(self.n_columns)
        for j in np.flatnonzero(self.rate).tolist():
            at = self.starts[j] + self.widths[j]
            out[at] = self.rate[j] * (self.knots[j][-1] - self.knots[j][0])
        return out

    @cached_property
    def knot_starts(self) -> IntArray:
        """Where the sums of each feature begin: missing, its knots, and one more, always zero."""
        return np.concatenate(([0], np.cumsum(self.sizes + 3))).astype(np.int64)

    def restrict(self, features: IntArray) -> RampColumns:
        """Return the ramps of some features."""
        levels = {at: self.levels[j] for at, j in enumerate(features.tolist()) if j in self.levels}
        knots = tuple(self.knots[j] for j in features)
        return RampColumns(knots, self.gap[features], self.rate[features], levels)

    @cached_property
    def bins(self) -> tuple[FloatArray, FloatArray]:
        """Where the bins of all features begin, and one over their lengths, as ``knot_starts``.

        Those in which all curves are flat begin at infinity and have a rate of 0: missing values,
        values from the last knot on, levels.
        """
        low, rate = np.full(self.knot_starts[-1], np.inf), np.zeros(self.knot_starts[-1])
        for j in np.flatnonzero((self.sizes > 0) & ~self.is_category).tolist():
            at = slice(self.knot_starts[j] + 1, self.knot_starts[j] + 1 + self.sizes[j])
            with np.errstate(over="ignore"):
                rate[at] = 1.0 / np.diff(self.knots[j])
            low[at] = np.where(rate[at] > 0.0, self.knots[j][:-1], np.inf)
        return low, rate

    def cuts(self, dtype: Any) -> tuple[IntArray, AnyArray]:
        """Return all knots but the first of each feature, and where those of each feature begin.

        A value of this dtype reaches a cut if and only if it reaches the knot.
        """
        first = np.concatenate(([0], np.cumsum(self.sizes))).astype(np.int64)
        knots = np.concatenate([np.zeros(0), *(a[1:] for a in self.knots)])
        with np.errstate(over="ignore"):
            cuts = knots.astype(dtype)
            return first, np.where(cuts < knots, np.nextafter(cuts, cuts.dtype.type(np.inf)), cuts)

    @cached_property
    def line_values(self) -> FloatArray:
        """The line of each feature at its knots, in the order of the sums per knot."""
        out = np.zeros(self.knot_starts[-1])
        for j in np.flatnonzero(self.rate).tolist():
            begin = self.knot_starts[j] + 1
            knots = self.knots[j]
            out[begin : begin + len(knots)] = self.rate[j] * (knots - knots[0])
        return out

    def from_bins(self, sums: FloatArray) -> FloatArray:
        """Return Xᵀg for all columns from the sums of g, and of g × distance, per bin."""
        up = sums[:, 1] * self.bins[1]  # what the knot above gets, by hats
        at_knots = sums[:, 0] - up
        at_knots[1:] += up[:-1]
        above = np.append(np.cumsum(at_knots[::-1])[::-1], 0.0)
        begin, end = self._summed
        c: FloatArray = above[begin] - above[end]
        lines = np.add.reduceat(np.append(self.line_values * at_knots, 0.0), self.knot_starts[:-1])
        c[self.is_line] = lines[self.rate > 0]
        return c

    @cached_property
    def _summed(self) -> tuple[IntArray, IntArray]:
        """The range of sums by knot that each column adds up, except for lines.

        A ramp is 0 up to its first knot and 1 from the next one on. A level, or a gap, has one sum.
        """
        first = self.knot_starts[self.feature]
        rank = np.arange(self.n_columns) - self.starts[self.feature] + 1
        alone = self.is_category[self.feature] | self.is_gap
        begin = first + np.where(self.is_gap, 0, np.where(alone, rank, rank + 1))
        return begin, np.where(alone, begin + 1, first + self.sizes[self.feature] + 3)

    def at_knots(self, j: int, w: FloatArray) -> FloatArray:
        """Return the part of a score that feature j contributes at each of its knots, or levels."""
        begin, size = self.starts[j], int(self.widths[j])
        own = w[begin : begin + size]
        if self.is_category[j]:
            return own
        out = np.concatenate(([0.0], np.cumsum(own)))
        if self.rate[j]:
            out += w[begin + size] * self.rate[j] * (self.knots[j] - self.knots[j][0])
        return out

    def if_missing(self, j: int, w: FloatArray) -> float:
        """Return the part of a score that a missing value of feature j contributes."""
        return float(w[self.starts[j + 1] - 1]) if self.gap[j] else 0.0

    def used(self, w: FloatArray) -> IntArray:
        """Return the features with a weight that is not zero."""
        return np.unique(self.feature[np.flatnonzero(w)])

    def curves(self, w: FloatArray) -> dict[int, Curve]:
        """Return the curves of the features in use; 0 at the first knot.

        Where some feature has gaps, a missing value of one that had none is 0 too. Where none has,
        a model refuses missing values.
        """
        found: dict[int, Curve] = {}
        for j in self.used(w).tolist():
            missing = self.if_missing(j, w) if self.gap.any() else None
            heights = self.at_knots(j, w)
            if j in self.levels:
                pairs = zip(self.levels[j], heights.tolist(), strict=True)
                values = {name: value for names, value in pairs for name in names}
                found[j] = Levels(tuple(values), tuple(values.values()), missing or 0.0)
            elif len(heights) < 2:
                found[j] = Steps((), (0.0,), missing)
            else:
                rises = w[self.starts[j] : self.starts[j] + self.sizes[j]]
                found[j] = Ramps.of(
                    self.knots[j], np.diff(heights) if self.rate[j] else rises, missing
                )
        return found

    def lines(
        self, w: FloatArray, features: IntArray
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Return where the bins of some features are, where each begins, its height and slope."""
        size = np.diff(self.knot_starts)[features]
        first = np.concatenate(([0], np.cumsum(size))).astype(np.int64)
        at = np.repeat(self.knot_starts[features] - first[:-1], size) + np.arange(first[-1])
        slope, base = np.zeros((2, first[-1]))
        base[first[:-1]] = np.where(self.gap[features], w[self.starts[features + 1] - 1], 0.0)
        for f in np.flatnonzero(self.is_category[features]).tolist():
            levels = self.at_knots(int(features[f]), w)
            base[first[f] + 1 : first[f] + 1 + len(levels)] = levels
        n_ramps = np.where(self.is_category[features], 0, self.sizes[features])
        rank = np.arange(n_ramps.max(initial=0))
        inside = rank < n_ramps[:, None]
        rises = w.take((self.starts[features, None] + rank)[inside])
        heights = np.zeros(inside.shape)
        heights[inside] = rises
        knot = (first[:-1, None] + 2 + rank)[inside]
        base[knot] = np.cumsum(heights, axis=1)[inside]
        line = np.zeros(len(self.knots))
        line[self.rate > 0] = w[self.is_line]
        base += np.repeat(line[features], size) * self.line_values[at]
        slope[knot - 1] = base[knot] - base[knot - 1]
        low, rate = self.bins
        return first, low[at], base, slope * rate[at]


def sample_step(n_rows: int) -> int:
    """Return the distance between the sampled rows from which knots are found.

    >>> sample_step(50_000), sample_step(50_001)
    (1, 2)
    """
    return max(1, -(-n_rows // ROWS_FOR_KNOTS))


def _knots_of_sparse(columns: Any, n_segments: int) -> list[FloatArray]:
    """Return the knots of each feature; those without values share one array."""
    n_rows, n_features = columns.shape
    knots = [np.zeros(min(n_rows, 1))] * n_features
    for j in np.flatnonzero(np.diff(columns.indptr)).tolist():
        stored = columns.data[columns.indptr[j] : columns.indptr[j + 1]]
        knots[j] = _knots(_counted(stored, n_rows - len(stored)), n_segments)
    return knots


def _counted(stored: AnyArray, n_zeros: int = 0) -> tuple[FloatArray, IntArray]:
    """Return the distinct values of a column in ascending order, and their counts.

    ``n_zeros`` more are zero.
    """
    values, counts = np.unique(stored[~np.isnan(stored)].astype(np.float64), return_counts=True)
    if n_zeros:
        at = np.searchsorted(values, 0.0)
        if at < len(values) and values[at] == 0.0:
            counts[at] += n_zeros
        else:
            values, counts = np.insert(values, at, 0.0), np.insert(counts, at, n_zeros)
    return values, counts


def _knots(column: tuple[FloatArray, IntArray], n_segments: int) -> FloatArray:
    values, counts = column
    if len(values) > n_segments + 1:
        weight = counts.astype(np.float64)
        for _ in range(50):  # no value counts for more than a segment, or for more than half
            most = weight.sum() / max(n_segments, 2)
            if weight.max() <= most:
                break
            weight = np.minimum(weight, most)
        reached = np.cumsum(weight)
        total, middle = reached[-1], reached - 0.5 * weight
        close = 1e-9 * total
        outside = min(OUTSIDE, 0.5 / n_segments) * total - close
        inside = middle[(middle >= outside) & (middle <= total - outside)]
        wanted = np.linspace(inside[0], inside[-1], n_segments + 1)
        # A quantile between two values is their mean, so that −x has the negatives of the knots.
        below, above = (values[np.searchsorted(reached, wanted + d)] for d in (-close, close))
        values = np.unique(0.5 * below + 0.5 * above)
    with np.errstate(over="ignore"):
        apart = np.concatenate(([True], np.diff(values) >= NARROWEST))
    return values[apart[: len(values)]]
