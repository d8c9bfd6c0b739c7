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
from functools import cached_property
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from leanrank.data.ranking_data import feature_name
from leanrank.designs import _ramp_kernels as kernels
from leanrank.designs.base import Block, Curvature, Design
from leanrank.errors import InputError
from leanrank.execution import ROWS_PER_RANGE, Executor, add_up, query_ranges, row_blocks
from leanrank.model.curves import Curve, Ramps, Steps

ROWS_FOR_KNOTS = 50_000
"""Rows, evenly spaced, from which knots are taken if there are more."""

OUTSIDE = 0.01
"""Share of the documents beyond the outermost knots at either end. A knot at an outlier would leave
a last segment in which all other documents stand at its start, so that its slope costs too much."""

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

        The outermost knots leave 1% of the documents outside, where a curve is flat. A value that
        very many documents share, such as zero, becomes one knot and does not count for the others.
        A feature with few values has a knot at each.

        Examples
        --------
        >>> X = np.array([[0.0], [0.0], [0.0], [0.0], [1.0], [2.0], [3.0], [4.0]])
        >>> RampColumns.at_quantiles(X, 2).knots[0].tolist()
        [0.0, 2.0, 4.0]
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

    @property
    def width(self) -> int:
        """Bins of a feature: missing, the segments, and from the last knot on."""
        return int(self.sizes.max(initial=0)) + 2

    def restrict(self, features: IntArray) -> RampColumns:
        """Return the ramps of some features."""
        return RampColumns(tuple(self.knots[j] for j in features), self.gap[features])

    @cached_property
    def segments(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Both ends of segment k of feature j, and one over its length; missing ones never rise."""
        shape = self.width - 2, len(self.knots)
        low, high, rate = np.zeros(shape), np.full(shape, np.inf), np.zeros(shape)
        for j in np.flatnonzero(self.sizes).tolist():
            a, size = self.knots[j], self.sizes[j]
            low[:size, j], high[:size, j] = a[:-1], a[1:]
            with np.errstate(over="ignore"):
                rate[:size, j] = 1.0 / np.diff(a)
        return low, high, rate

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

    def lines(self, w: FloatArray, features: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return base and slope in the position, for some features and all bins."""
        slope, base = np.zeros((2, len(features), self.width))
        for f, j in enumerate(features):
            begin, size = self.starts[j], int(self.sizes[j])
            rises = w[begin : begin + size]
            slope[f, 1 : size + 1] = rises
            base[f, 1 : size + 2] = np.concatenate(([0.0], np.cumsum(rises)))
            base[f, 1 : size + 1] -= rises * np.arange(1, size + 1)
            if self.gap[j]:
                base[f, 0] = w[self.starts[j + 1] - 1]
        return base, slope


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
        base, slope = self.ramps.lines(w, features)
        out = np.zeros(self.n_rows)
        self.executor.map(
            lambda at: kernels.curve_scores(self.places, features, base, slope, *at, out),
            row_blocks(self.n_rows, self.rows_per_block),
        )
        return out

    def _rmatvec(self, g: FloatArray) -> FloatArray:
        """Sum g by knot, block sums added in the order of the rows; then run over the knots."""
        ramps = self.ramps
        parts = self.executor.map(
            lambda at: kernels.knot_sums(self.places, g, ramps.width, *at),
            row_blocks(self.n_rows, self.rows_per_block),
        )
        shape = len(ramps.knots), ramps.width + 1
        sums = add_up(parts).reshape(shape) if parts else np.zeros(shape)
        c: FloatArray = kernels.ramp_sums(sums, ramps.sizes, ramps.gap, ramps.starts)
        return c


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
        sums = np.zeros((len(used), ramps.width + 1))
        total = float(g.sum())
        sizes = np.diff(self.indptr)[used]
        self.executor.map(
            lambda at: kernels.knot_sums_of_entries(
                self.places, self.indices, self.indptr, used, self.zero[0], g, total, *at, sums
            ),
            query_ranges(np.concatenate(([0], np.cumsum(sizes))), self.entries_per_block),
        )
        c: FloatArray = kernels.ramp_sums(sums, part.sizes, part.gap, part.starts)
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
        for _ in range(50):  # no value counts for more than a segment
            weight = np.minimum(weight, weight.sum() / n_segments)
        reached = np.cumsum(weight) - 0.5 * weight
        first = max(reached[0], OUTSIDE * weight.sum())
        last = min(reached[-1], (1 - OUTSIDE) * weight.sum())
        wanted = np.linspace(first, last, n_segments + 1)
        values = values[np.unique(np.searchsorted(reached, wanted - 1e-9 * reached[-1]))]
    with np.errstate(over="ignore"):
        apart = np.concatenate(([True], np.isfinite(1.0 / np.diff(values))))
    return values[apart[: len(values)]]
