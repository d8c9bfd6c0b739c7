"""Ramps of features: the columns of a piecewise linear model, which are never stored.

A feature with knots a₀ < a₁ < … < a_K has the ramps

    r_k(x) = clip((x − a_k)/(a_{k+1} − a_k), 0, 1),   k = 0 … K − 1,

so that weights w_k are the rises of a curve over its segments; a missing value (NaN) is 0 on all of
them and has a column of its own. Only *positions* among the knots are kept, as large as X. One pass
over them gives Xᵀg for all ramps of all features.

Ramps lie between 0 and 1, whatever the units of a feature. So rows need no anchor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from leanrank.data.ranking_data import feature_name
from leanrank.designs import _ramp_kernels as kernels
from leanrank.designs.base import Block, Curvature, Design
from leanrank.errors import InputError
from leanrank.execution import (
    ROWS_PER_RANGE,
    Executor,
    add_up,
    cached_property,
    query_ranges,
    row_blocks,
)
from leanrank.model.curves import Curve, Ramps, Steps

ROWS_FOR_KNOTS = 50_000
"""Rows, evenly spaced, from which knots are taken if there are more."""

OUTSIDE = 0.01
"""Share of the documents beyond the outermost knots at either end. A knot at an outlier would leave
a last segment in which all other documents stand at its start, so that its slope costs too much."""

NARROWEST = float(np.finfo(np.float64).tiny)
"""Shortest segment whose slope is a number; the longest is 1 / NARROWEST."""

ROWS_AT_ONCE = 2_048
"""Rows of which columns are written out at a time, so that they stay in a cache."""


@dataclass(frozen=True)
class RampColumns:
    """Which columns features have: the ramps of the first, its gap, those of the second, …

    Attributes
    ----------
    knots : tuple of arrays
        Ascending, one array per feature; one with less than two knots has no ramps.
    gap : array of bool
        Which features have a column for missing values.
    """

    knots: tuple[FloatArray, ...]
    gap: BoolArray

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
    def starts(self) -> IntArray:
        """Where the columns of each feature begin, and where they end."""
        return np.concatenate(([0], np.cumsum(self.sizes + self.gap))).astype(np.int64)

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
    def knot_starts(self) -> IntArray:
        """Where the sums of each feature begin: missing, its knots, and one more, always zero."""
        return np.concatenate(([0], np.cumsum(self.sizes + 3))).astype(np.int64)

    def restrict(self, features: IntArray) -> RampColumns:
        """Return the ramps of some features."""
        return RampColumns(tuple(self.knots[j] for j in features), self.gap[features])

    @cached_property
    def segments(self) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Where the segments of each feature begin; the ends of all segments, and 1 / length."""
        first = np.concatenate(([0], np.cumsum(self.sizes))).astype(np.int64)
        curved = [self.knots[j] for j in np.flatnonzero(self.sizes).tolist()]
        low = np.concatenate([np.zeros(0), *(a[:-1] for a in curved)])
        high = np.concatenate([np.zeros(0), *(a[1:] for a in curved)])
        with np.errstate(over="ignore"):
            return first, low, high, 1.0 / (high - low)

    def from_knots(self, sums: FloatArray) -> FloatArray:
        """Return Xᵀg for all ramps from the sums of g per knot."""
        c: FloatArray = kernels.ramp_sums(sums, self.knot_starts, self.sizes, self.gap, self.starts)
        return c

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
            begin, size = int(self.starts[j]), int(self.sizes[j])
            missing = float(w[begin + size]) if self.gap[j] else 0.0 if self.gap.any() else None
            if size == 0:
                found[j] = Steps((), (0.0,), missing)
            else:
                found[j] = Ramps.of(self.knots[j], w[begin : begin + size], missing)
        return found

    def lines(self, w: FloatArray, features: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
        """Return where the bins of some features begin, and base and slope in the position.

        The bins of a feature: missing, the segments, and from the last knot on.
        """
        first = np.concatenate(([0], np.cumsum(self.sizes[features] + 2))).astype(np.int64)
        slope, base = np.zeros((2, first[-1]))
        for j, low, high in zip(features, first[:-1], first[1:], strict=True):
            begin, size = self.starts[j], int(self.sizes[j])
            rises = w[begin : begin + size]
            slope[low + 1 : high - 1] = rises
            base[low + 1 : high] = np.concatenate(([0.0], np.cumsum(rises)))
            base[low + 1 : high - 1] -= rises * np.arange(1, size + 1)
            if self.gap[j]:
                base[low] = w[self.starts[j + 1] - 1]
        return first, base, slope


def sample_step(n_rows: int) -> int:
    """Return from how many rows one is taken to find knots.

    >>> sample_step(50_000), sample_step(50_001)
    (1, 2)
    """
    return max(1, -(-n_rows // ROWS_FOR_KNOTS))


def ramp_design(
    X: Matrix, ramps: RampColumns, executor: Executor, **sizes: int
) -> RampDesign | SparseRampDesign:
    """Make the design of ramps with given knots; features with gaps in X get a column for them.

    ``sizes`` are those of a unit of work, see the designs.

    Examples
    --------
    >>> from leanrank.execution import SerialExecutor
    >>> X = np.array([[0.0], [1.0], [3.0], [np.nan]])
    >>> design = ramp_design(X, RampColumns.at_quantiles(X, 2), SerialExecutor())
    >>> design.take(np.arange(3)).columns((0, 4), 0, 3)
    array([[0., 0., 0.],
           [1., 0., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    values = X if isinstance(X, np.ndarray) else X.data
    if np.isinf(values).any():
        at = int(np.flatnonzero(np.isinf(values))[0])
        column = at % X.shape[1] if isinstance(X, np.ndarray) else int(X.tocsr().indices[at])
        raise InputError(
            f"feature {feature_name(column)} (column {column}) holds infinity, which no curve "
            "reaches: replace it by a number, or by NaN if it is missing"
        )
    kind = RampDesign if isinstance(X, np.ndarray) else SparseRampDesign
    return kind(X, ramps, executor, **sizes)


class _Positions:
    """Positions of documents among the knots of features, row by row."""

    places: AnyArray
    ramps: RampColumns
    executor: Executor
    n_rows: int
    rows_per_block: int

    def _matvec(self, w: FloatArray) -> FloatArray:
        """Add up the curves of the features that have one."""
        features = self.ramps.used(w)
        lines = self.ramps.lines(w, features)
        out = np.zeros(self.n_rows)
        self.executor.map(
            lambda at: kernels.curve_scores(self.places, features, *lines, *at, out),
            row_blocks(self.n_rows, self.rows_per_block),
        )
        return out

    def _rmatvec(self, g: FloatArray) -> FloatArray:
        """Sum g by knot, block sums added in the order of the rows; then run over the knots."""
        ramps = self.ramps
        parts = self.executor.map(
            lambda at: kernels.knot_sums(self.places, g, ramps.knot_starts, *at),
            row_blocks(self.n_rows, self.rows_per_block),
        )
        return ramps.from_knots(add_up(parts) if parts else np.zeros(ramps.knot_starts[-1]))


class _AllRamps(Design):
    """Common base of designs of ramps."""

    ramps: RampColumns

    @cached_property
    def column_norms(self) -> FloatArray:
        """An upper bound of the length of each column, from entries of at most 1."""
        return np.sqrt(self.rmatvec(np.ones(self.n_rows)))

    @property
    def summed_norms(self) -> FloatArray:
        """Products add up columns as they are."""
        return self.column_norms


class RampDesign(_Positions, _AllRamps):
    """The ramps of a dense matrix, read in blocks of rows."""

    def __init__(
        self,
        X: AnyArray,
        ramps: RampColumns,
        executor: Executor,
        *,
        rows_per_block: int = ROWS_PER_RANGE,
    ) -> None:
        self.n_rows, self.executor = len(X), executor
        self.rows_per_block = rows_per_block
        self.places = np.empty_like(X, order="C")
        found = executor.map(
            lambda at: kernels.place_rows(X, *ramps.segments, *at, self.places),
            row_blocks(len(X), rows_per_block),
        )
        self.ramps = replace(ramps, gap=ramps.gap | np.any(found, axis=0))
        self.n_features = self.ramps.n_columns
        self.n_bytes = self.places.nbytes

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw by one look-up per document and feature with a curve."""
        return self._matvec(w)

    def rmatvec(self, g: FloatArray, features: IntArray | None = None) -> FloatArray:
        """Compute Xᵀg; all ramps come at once."""
        c = self._rmatvec(g)
        return c if features is None else c[features]

    @property
    def column_sizes(self) -> IntArray:
        """Every column has all rows."""
        return np.full(self.n_features, self.n_rows)

    def take(self, features: IntArray) -> RampBlock:
        """Copy the positions of the features that some columns belong to."""
        used = np.unique(self.ramps.feature[features])
        places = self.places
        if len(used) < places.shape[1]:
            places = np.empty((self.n_rows, len(used)), dtype=places.dtype)
            self.executor.map(  # "clip" writes to out without a buffer
                lambda at: self.places[slice(*at)].take(
                    used, axis=1, out=places[slice(*at)], mode="clip"
                ),
                row_blocks(self.n_rows, self.rows_per_block),
            )
        return RampBlock(places, self.ramps, used, features, self.executor, self.rows_per_block)


class SparseRampDesign(_AllRamps):
    """The ramps of a sparse matrix: a value that is not stored has the position of zero.

    ``entries_per_block`` are the stored entries in one unit of work over the columns.
    """

    skips_columns = True

    def __init__(
        self,
        X: Matrix,
        ramps: RampColumns,
        executor: Executor,
        *,
        entries_per_block: int = 1 << 19,
    ) -> None:
        self.n_rows, self.executor = X.shape[0], executor
        self.entries_per_block = entries_per_block
        columns: Any = X.tocsc()
        self.indices, self.indptr = columns.indices, columns.indptr
        self.places = np.empty_like(columns.data)
        found = executor.map(
            lambda at: kernels.place_entries(
                columns.data, self.indptr, *ramps.segments, *at, self.places
            ),
            query_ranges(self.indptr, entries_per_block),
        )
        self.ramps = replace(ramps, gap=ramps.gap | np.concatenate([*found, np.zeros(0, bool)]))
        self.zero = np.empty((1, X.shape[1]))
        kernels.place_rows(np.zeros((1, X.shape[1])), *ramps.segments, 0, 1, self.zero)
        self.n_features = self.ramps.n_columns
        self.n_bytes = self.places.nbytes + self.indices.nbytes + self.indptr.nbytes

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw from the columns of non-zero weights."""
        support = np.flatnonzero(w)
        return self.take(support).matvec(w[support])

    def rmatvec(self, g: FloatArray, features: IntArray | None = None) -> FloatArray:
        """Compute Xᵀg, feature by feature."""
        ramps = self.ramps
        used = np.arange(len(ramps.knots))
        if features is not None:
            used = np.unique(ramps.feature[features])
        part = ramps.restrict(used) if features is not None else ramps
        sums = np.zeros(part.knot_starts[-1])
        total = float(g.sum())
        sizes = np.diff(self.indptr)[used]
        self.executor.map(
            lambda at: kernels.knot_sums_of_entries(
                self.places,
                self.indices,
                self.indptr,
                used,
                self.zero[0],
                g,
                total,
                part.knot_starts,
                *at,
                sums,
            ),
            query_ranges(np.concatenate(([0], np.cumsum(sizes))), self.entries_per_block),
        )
        c = part.from_knots(sums)
        return c if features is None else c[_own_columns(ramps, part, used, features)]

    @cached_property
    def column_sizes(self) -> IntArray:
        """Stored entries of the feature of each column."""
        sizes: IntArray = np.diff(self.indptr)[self.ramps.feature]
        return sizes

    def take(self, features: IntArray) -> RampBlock:
        """Write out the positions of the features that some columns belong to."""
        used = np.unique(self.ramps.feature[features])
        places = np.empty((self.n_rows, len(used)), dtype=self.places.dtype)
        places[:] = self.zero[0, used]
        for f, j in enumerate(used):
            stored = slice(self.indptr[j], self.indptr[j + 1])
            places[self.indices[stored], f] = self.places[stored]
        return RampBlock(places, self.ramps, used, features, self.executor)


class RampBlock(_Positions, Block):
    """Some columns of a design of ramps, by the positions of their features."""

    def __init__(
        self,
        places: AnyArray,
        ramps: RampColumns,
        used: IntArray,
        columns: IntArray,
        executor: Executor,
        rows_per_block: int = ROWS_PER_RANGE,
    ) -> None:
        self.places, self.executor = places, executor
        self.rows_per_block = rows_per_block
        self.ramps = ramps.restrict(used)
        self.own = _own_columns(ramps, self.ramps, used, columns)
        self.n_rows, self.n_features = len(places), len(columns)
        self.n_bytes = places.nbytes
        own, gaps = self.own, self.ramps.is_gap[self.own]
        self.feature = self.ramps.feature[own]
        # a ramp is its position less its bin; a gap is what a position lacks to 1
        bins = own - self.ramps.starts[self.feature] + 1.0
        self.sign = np.where(gaps, -1.0, 1.0).astype(places.dtype)
        self.shift = np.where(gaps, 1.0, -bins).astype(places.dtype)

    def matvec(self, v: FloatArray) -> FloatArray:
        """Compute X_W v by one look-up per document and feature."""
        w = np.zeros(self.ramps.n_columns)
        w[self.own] = v
        return self._matvec(w)

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g from sums by knot."""
        return self._rmatvec(g)[self.own]

    def add_rows(
        self,
        curvature: Curvature,
        rows: tuple[int, int],
        first_cell: int,
        gram: FloatArray,
        sums: FloatArray,
    ) -> None:
        """Write out some rows at a time and add them with BLAS, in the precision of X."""
        dtype = np.float64 if curvature.exact else self.places.dtype
        for low, high in row_blocks(rows[1] - rows[0], ROWS_AT_ONCE):
            begin, end = rows[0] + low, rows[0] + high
            part = self._written((begin, end), dtype)
            kernels.sum_and_scale(
                part, curvature.diag, curvature.atoms, curvature.cell, first_cell, begin, sums
            )
            gram += part.T @ part

    def finish(self, gram: FloatArray, low_rank: FloatArray) -> FloatArray:
        """Subtract the low-rank part."""
        return gram - low_rank

    def dense(self, rows: tuple[int, int]) -> AnyArray:
        """Write out some rows in the precision of X."""
        return self._written(rows, self.places.dtype)

    def columns(self, rows: tuple[int, int], begin: int, end: int) -> FloatArray:
        """Write out some rows of some columns."""
        return self._written(rows, np.float64, slice(begin, end))

    def cross(self, rows: tuple[int, int], values: FloatArray) -> FloatArray:
        """Multiply with BLAS, some rows at a time."""
        out = np.zeros((self.n_features, values.shape[1]))
        for low, high in row_blocks(rows[1] - rows[0], ROWS_AT_ONCE):
            part = rows[0] + low, rows[0] + high
            out += self._written(part, np.float64).T @ values[low:high]
        return out

    def _written(self, rows: tuple[int, int], dtype: Any, columns: slice = slice(None)) -> AnyArray:
        feature = self.feature[columns]
        out = np.empty((rows[1] - rows[0], len(feature)), dtype=dtype)
        kernels.ramp_columns(
            self.places, feature, self.sign[columns], self.shift[columns], *rows, out
        )
        return out


def _own_columns(
    whole: RampColumns, part: RampColumns, used: IntArray, columns: IntArray
) -> IntArray:
    """Number columns of all features as those of some features, which are sorted."""
    feature = whole.feature[columns]
    local: IntArray = part.starts[np.searchsorted(used, feature)]
    return local + columns - whole.starts[feature]


def _knots_of_sparse(columns: Any, n_segments: int) -> list[FloatArray]:
    """Return the knots of each feature; those without values share one array."""
    n_rows, n_features = columns.shape
    knots = [np.zeros(min(n_rows, 1))] * n_features
    for j in np.flatnonzero(np.diff(columns.indptr)).tolist():
        stored = columns.data[columns.indptr[j] : columns.indptr[j + 1]]
        knots[j] = _knots(_counted(stored, n_rows - len(stored)), n_segments)
    return knots


def _counted(stored: AnyArray, n_zeros: int = 0) -> tuple[FloatArray, IntArray]:
    """Return the values of a column, ascending and without missing ones, and how often they are.

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
            weight = np.minimum(weight, weight.sum() / max(n_segments, 2))
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
