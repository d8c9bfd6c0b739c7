"""Columns of curves, which are never stored: ramps, lines, levels and gaps of features.

Only *positions* among the knots are kept, as large as X. One pass over them gives Xᵀg for all
columns of all features. Ramps lie between 0 and 1, whatever the units of a feature. So rows need no
anchor.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.ranking_data import feature_name
from leanrank.designs import _ramp_kernels as kernels
from leanrank.designs.base import Block, Curvature, Design
from leanrank.designs.ramp_columns import RampColumns
from leanrank.errors import InputError
from leanrank.execution import (
    ROWS_PER_RANGE,
    Executor,
    add_up,
    cached_property,
    query_ranges,
    row_blocks,
)

ROWS_AT_ONCE = 2_048
"""Rows of which columns are written out at a time, so that they stay in a cache."""


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
    if any(np.isinf(values[a:b]).any() for a, b in row_blocks(len(values))):
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
    rows_per_block: int = ROWS_PER_RANGE

    @cached_property
    def column_norms(self) -> FloatArray:
        """An upper bound of the length of each column, from its sum and its largest entry."""
        return np.sqrt(self.rmatvec(np.ones(self.n_rows)) * self.ramps.heights)

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

    def squares(self, rows: tuple[int, int]) -> FloatArray:
        """Return what ``column_norms`` bounds the squared lengths by, over some rows."""
        sums = kernels.knot_sums(self.places, np.ones(self.n_rows), self.ramps.knot_starts, *rows)
        return self.ramps.from_knots(sums) * self.ramps.heights

    @property
    def column_sizes(self) -> IntArray:
        """Every column has all rows."""
        return np.full(self.n_features, self.n_rows)

    def take(self, features: IntArray) -> RampBlock:
        """Return some columns; they are read in place, which takes no memory."""
        used = np.arange(self.places.shape[1])
        return RampBlock(self, used, features, self.places, reads_all=True)


class SparseRampDesign(_AllRamps):
    """The ramps of a sparse matrix: a value that is not stored has the position of zero.

    ``entries_per_block`` are the stored entries in one unit of work over the columns.
    """

    skips_columns = True

    def __init__(
        self, X: Matrix, ramps: RampColumns, executor: Executor, *, entries_per_block: int = 1 << 19
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
        return RampBlock(self, used, features, places)


class WrittenBlock(Block):
    """Columns that are written out, some rows at a time, where a Hessian needs them."""

    dtype: Any

    @abstractmethod
    def written(self, rows: tuple[int, int], dtype: Any, columns: slice = slice(None)) -> AnyArray:
        """Write out some rows of some columns."""

    def add_rows(
        self,
        curvature: Curvature,
        rows: tuple[int, int],
        first_cell: int,
        gram: FloatArray,
        sums: FloatArray,
    ) -> None:
        """Write out some rows at a time and add them with BLAS, exactly or in single precision.

        Columns are between 0 and about 1, so nothing overflows.
        """
        dtype = np.float64 if curvature.exact else np.float32
        for low, high in row_blocks(rows[1] - rows[0], ROWS_AT_ONCE):
            begin, end = rows[0] + low, rows[0] + high
            part = self.written((begin, end), dtype)
            kernels.sum_and_scale(
                part, curvature.diag, curvature.atoms, curvature.cell, first_cell, begin, sums
            )
            gram += part.T @ part

    def finish(self, gram: FloatArray, low_rank: FloatArray) -> FloatArray:
        """Subtract the low-rank part."""
        return gram - low_rank

    def dense(self, rows: tuple[int, int]) -> AnyArray:
        """Write out some rows in the precision of X."""
        return self.written(rows, self.dtype)

    def columns(self, rows: tuple[int, int], begin: int, end: int) -> FloatArray:
        """Write out some rows of some columns."""
        return self.written(rows, np.float64, slice(begin, end))

    def cross(self, rows: tuple[int, int], values: FloatArray) -> FloatArray:
        """Multiply with BLAS, some rows at a time."""
        out = np.zeros((self.n_features, values.shape[1]))
        for low, high in row_blocks(rows[1] - rows[0], ROWS_AT_ONCE):
            part = rows[0] + low, rows[0] + high
            out += self.written(part, np.float64).T @ values[low:high]
        return out


class RampBlock(_Positions, WrittenBlock):
    """Some columns of a design of ramps, by the positions of their features."""

    def __init__(
        self,
        design: _AllRamps,
        used: IntArray,
        columns: IntArray,
        places: AnyArray,
        *,
        reads_all: bool = False,
    ) -> None:
        self.places, self.executor, self.reads_all = places, design.executor, reads_all
        self.rows_per_block = design.rows_per_block
        self.ramps = design.ramps if reads_all else design.ramps.restrict(used)
        self.own = _own_columns(design.ramps, self.ramps, used, columns)
        self.n_rows, self.n_features = len(places), len(columns)
        self.n_bytes, self.dtype = places.nbytes, places.dtype
        own, gaps = self.own, self.ramps.is_gap[self.own]
        self.feature = self.ramps.feature[own]
        # a ramp is its position less its bin; a gap is what a position lacks to 1
        bins = own - self.ramps.starts[self.feature] + 1.0
        self.sign = np.where(gaps, -1.0, 1.0).astype(places.dtype)
        self.shift = np.where(gaps, 1.0, -bins).astype(places.dtype)
        self.line = np.flatnonzero(self.ramps.is_line[own])
        self.level = self.ramps.is_category[self.feature] & ~gaps

    def matvec(self, v: FloatArray) -> FloatArray:
        """Compute X_W v by one look-up per document and feature."""
        w = np.zeros(self.ramps.n_columns)
        w[self.own] = v
        return self._matvec(w)

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g from sums by knot."""
        return self._rmatvec(g)[self.own]

    def written(self, rows: tuple[int, int], dtype: Any, columns: slice = slice(None)) -> AnyArray:
        """Write out some rows of some columns."""
        feature = self.feature[columns]
        out = np.empty((rows[1] - rows[0], len(feature)), dtype=dtype)
        kernels.ramp_columns(
            self.places, feature, self.sign[columns], self.shift[columns], *rows, out
        )
        begin, end, _ = columns.indices(len(self.feature))
        lines = self.line[(self.line >= begin) & (self.line < end)]
        if len(lines):
            values, first = self.ramps.line_values, self.ramps.knot_starts
            at, which = lines - begin, self.feature[lines]
            kernels.line_columns(self.places, which, at, values, first, *rows, out)
        levels = np.flatnonzero(self.level[columns])
        if len(levels):
            place = self.places[slice(*rows)].take(feature[levels], axis=1)
            out[:, levels] = place == -self.shift[columns][levels]
        return out


def _own_columns(
    whole: RampColumns, part: RampColumns, used: IntArray, columns: IntArray
) -> IntArray:
    """Number columns of all features as those of some features, which are sorted."""
    feature = whole.feature[columns]
    local: IntArray = part.starts[np.searchsorted(used, feature)]
    return local + columns - whole.starts[feature]
