"""Columns of curves, which are never stored: ramps, lines, levels and gaps of features.

Only the *bin* of each value is kept beside X: between which knots it lies, in one byte unless there
are many. One pass over both gives Xᵀg for all columns of all features. Ramps lie between 0 and 1,
whatever the units of a feature. So rows need no anchor.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any, Self, TypeAlias

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from leanrank.data.ranking_data import feature_name
from leanrank.designs import _ramp_kernels as kernels
from leanrank.designs.base import Design, WrittenBlock
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

FEW_KNOTS = 32
"""Knots up to which a value is compared with all of them, several features at a time."""

VALUES_PER_LOOKUP = 4
"""Cost of reading a bin and its line, in values of a stored column."""


def ramp_design(
    X: Matrix, ramps: RampColumns, executor: Executor, **sizes: int
) -> RampDesign | SparseRampDesign:
    """Make the design of ramps with given knots; features with gaps in X get a column for them.

    ``sizes`` are those of a unit of work, see the designs.

    Examples
    --------
    >>> from leanrank.execution import Executor
    >>> X = np.array([[0.0], [1.0], [3.0], [np.nan]])
    >>> design = ramp_design(X, RampColumns.at_quantiles(X, 2), Executor())
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


class _Binned:
    """Values of documents and their bins, row by row."""

    X: AnyArray
    bins: AnyArray
    ramps: RampColumns
    executor: Executor
    n_rows: int
    rows_per_block: int

    @cached_property
    def row_blocks(self) -> list[tuple[int, int]]:
        """The rows, in units of work."""
        return row_blocks(self.n_rows, self.rows_per_block)

    def matvec(self, w: FloatArray) -> FloatArray:
        """Add up the curves of the features that have one: one look-up per document and feature."""
        features = self.ramps.used(w)
        lines = self.ramps.lines(w, features)
        out = np.zeros(self.n_rows)
        self.executor.map(
            lambda at: kernels.curve_scores(self.X, self.bins, features, *lines, *at, out),
            self.row_blocks,
        )
        return out

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Sum g by bin, block sums added in the order of the rows; then run over the knots."""
        parts = self.executor.map(lambda at: self._bin_sums(g, at), self.row_blocks)
        sums = add_up(parts) if parts else np.zeros((self.ramps.knot_starts[-1], 2))
        return self.ramps.from_bins(sums)

    def _bin_sums(self, g: FloatArray, rows: tuple[int, int]) -> FloatArray:
        ramps = self.ramps
        sums = np.zeros((ramps.knot_starts[-1], 2))
        kernels.bin_sums(self.X, self.bins, g, ramps.knot_starts, ramps.bins[0], *rows, sums)
        return sums


class _AllRamps(Design):
    """Base class of designs of ramps."""

    ramps: RampColumns
    rows_per_block: int = ROWS_PER_RANGE

    @cached_property
    def column_norms(self) -> FloatArray:
        """An upper bound of the length of each column, from its sum and its largest entry."""
        return np.sqrt(self.rmatvec(np.ones(self.n_rows)) * self.ramps.heights)


class RampDesign(_Binned, _AllRamps):
    """The ramps of a dense matrix, read in blocks of rows."""

    def __init__(
        self,
        X: AnyArray,
        ramps: RampColumns,
        executor: Executor,
        *,
        rows_per_block: int = ROWS_PER_RANGE,
    ) -> None:
        self.X = kernel_view(np.ascontiguousarray(X))
        self.n_rows, self.executor = len(X), executor
        self.rows_per_block = rows_per_block
        self.bins = np.empty(X.shape, dtype=_bin_dtype(ramps))
        first, cuts = ramps.cuts(X.dtype)
        many = np.flatnonzero(ramps.sizes > FEW_KNOTS).tolist()
        few = np.flatnonzero(ramps.sizes <= FEW_KNOTS)
        side_by_side = np.full((ramps.sizes[few].max(initial=0), X.shape[1]), np.inf, X.dtype)
        for j in few.tolist():
            side_by_side[: ramps.sizes[j], j] = cuts[first[j] : first[j + 1]]

        def find(at: tuple[int, int]) -> BoolArray:
            kernels.find_bins(self.X, side_by_side, *at, self.bins)
            for j in many:
                own = cuts[first[j] : first[j + 1]]
                self.bins[slice(*at), j] = bins_of(self.X[slice(*at), j], own)
            missing: BoolArray = self.bins[slice(*at)].min(axis=0) == 0
            return missing

        found = executor.map(find, row_blocks(len(X), rows_per_block))
        self.ramps = replace(ramps, gap=ramps.gap | np.any(found, axis=0))
        self.n_features = self.ramps.n_columns
        self.n_bytes = self.X.nbytes + self.bins.nbytes

    def squares(self, rows: tuple[int, int]) -> FloatArray:
        """Return what ``column_norms`` bounds the squared lengths by, over some rows."""
        sums = self._bin_sums(np.ones(self.n_rows), rows)
        return self.ramps.from_bins(sums) * self.ramps.heights

    def take(self, features: IntArray) -> RampBlock:
        """Return some columns; they are read in place, which takes no memory."""
        used = np.arange(self.X.shape[1])
        return RampBlock(self, used, features, self.X, self.bins, reads_all=True)


class SparseRampDesign(_AllRamps):
    """The ramps of a sparse matrix: a value that is not stored is in the bin of zero.

    ``entries_per_block`` are the stored entries in one unit of work over the columns.
    """

    def __init__(
        self, X: Matrix, ramps: RampColumns, executor: Executor, *, entries_per_block: int = 1 << 19
    ) -> None:
        self.n_rows, self.executor = X.shape[0], executor
        self.entries_per_block = entries_per_block
        self.X: Any = X.tocsc()
        self.data, self.indices, self.indptr = self.X.data, self.X.indices, self.X.indptr
        self.bins = np.empty(len(self.data), dtype=_bin_dtype(ramps))
        first, cuts = ramps.cuts(self.data.dtype)
        for j in np.flatnonzero(np.diff(self.indptr)).tolist():
            stored = slice(self.indptr[j], self.indptr[j + 1])
            self.bins[stored] = bins_of(self.data[stored], cuts[first[j] : first[j + 1]])
        missing = np.searchsorted(self.indptr, np.flatnonzero(self.bins == 0), side="right") - 1
        gaps = np.bincount(missing, minlength=X.shape[1]) > 0
        self.ramps = replace(ramps, gap=ramps.gap | gaps)
        reached = np.add.reduceat(np.append(cuts <= 0.0, False), first[:-1], dtype=np.int64)
        self.zero = 1 + np.where(ramps.sizes > 0, reached, 0)
        self.n_features = self.ramps.n_columns
        arrays = self.data, self.bins, self.indices, self.indptr
        self.n_bytes = sum(array.nbytes for array in arrays)

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw from the columns of non-zero weights."""
        support = np.flatnonzero(w)
        return self.take(support).matvec(w[support])

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute Xᵀg, feature by feature."""
        ramps = self.ramps
        sums = np.zeros((ramps.knot_starts[-1], 2))
        stored = self.data, self.bins, self.indices, self.indptr
        weights = self.zero, g, float(g.sum()), ramps.knot_starts, ramps.bins[0]
        self.executor.map(
            lambda at: kernels.bin_sums_of_entries(*stored, *weights, *at, sums),
            query_ranges(self.indptr, self.entries_per_block),
        )
        return ramps.from_bins(sums)

    def take(self, features: IntArray) -> RampBlock:
        """Write out the values and bins of the features that some columns belong to."""
        used = np.unique(self.ramps.feature[features])
        return RampBlock(self, used, features, *self.dense(used))

    def dense(self, used: IntArray) -> tuple[AnyArray, AnyArray]:
        """Write out the values and bins of some features."""
        X = np.zeros((self.n_rows, len(used)), dtype=self.data.dtype)
        bins = np.empty(X.shape, dtype=self.bins.dtype)
        bins[:] = self.zero[used]
        for f, j in enumerate(used):
            stored = slice(self.indptr[j], self.indptr[j + 1])
            X[self.indices[stored], f] = self.data[stored]
            bins[self.indices[stored], f] = self.bins[stored]
        return X, bins


class RampBlock(_Binned, WrittenBlock):
    """Some columns of a design of ramps, by the values and bins of their features."""

    feature: IntArray

    def __init__(
        self,
        design: _AllRamps,
        used: IntArray,
        columns: IntArray,
        X: AnyArray,
        bins: AnyArray,
        *,
        reads_all: bool = False,
    ) -> None:
        self.X, self.bins, self.executor, self.reads_all = X, bins, design.executor, reads_all
        self.rows_per_block = design.rows_per_block
        self.ramps = ramps = design.ramps if reads_all else design.ramps.restrict(used)
        self.own = own = _own_columns(design.ramps, ramps, used, columns)
        self.n_rows, self.n_features = len(X), len(columns)
        self.n_bytes = X.nbytes + bins.nbytes
        self.feature = ramps.feature[own]
        # the bin of a gap, a level or a ramp; a line begins where the first ramp does
        self.bin = np.where(ramps.is_gap[own], 0, own - ramps.starts[self.feature] + 1)
        lines = ramps.is_line[own]
        low, rate = ramps.bins
        at = ramps.knot_starts[self.feature] + np.where(lines, 1, self.bin)
        self.low, self.height = low[at], ramps.heights[own]
        self.rate = np.where(lines, ramps.rate[self.feature], rate[at])
        self.flat = ramps.is_gap[own] | ramps.is_category[self.feature]

    @property
    def values_per_product(self) -> int:
        """A look-up takes as long as several values of a stored column."""
        return VALUES_PER_LOOKUP * self.X.shape[1]

    def of_rows(self, rows: list[tuple[int, int]]) -> Self:
        """Return a block whose products are of some rows."""
        part = copy(self)
        part.row_blocks = rows
        return part

    def matvec(self, v: FloatArray) -> FloatArray:
        """Compute X_W v by one look-up per document and feature."""
        w = np.zeros(self.ramps.n_columns)
        w[self.own] = v
        return super().matvec(w)

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g from sums by knot."""
        return super().rmatvec(g)[self.own]

    def written(self, rows: tuple[int, int], dtype: Any, columns: slice = slice(None)) -> AnyArray:
        """Write out some rows of some columns."""
        feature = self.feature[columns]
        out = np.empty((rows[1] - rows[0], len(feature)), dtype=dtype)
        kernels.ramp_columns(
            self.X,
            feature,
            *(each[columns] for each in (self.low, self.rate, self.height)),
            *rows,
            out,
        )
        flat = np.flatnonzero(self.flat[columns])
        if len(flat):
            bins = self.bins[slice(*rows)].take(feature[flat], axis=1)
            out[:, flat] = bins == self.bin[columns][flat]
        return out


Curves: TypeAlias = RampDesign | SparseRampDesign
"""Designs of curves."""


def bins_of(values: AnyArray, cuts: AnyArray) -> IntArray:
    """Return the bins of values of a feature: one more than the cuts reached, 0 of a missing one.

    >>> bins_of(np.array([0.5, 1.0, 7.0, np.nan]), np.array([1.0, 2.0])).tolist()
    [1, 2, 3, 0]
    """
    return np.where(np.isnan(values), 0, 1 + np.searchsorted(cuts, values, side="right"))


def _bin_dtype(ramps: RampColumns) -> Any:
    return np.min_scalar_type(int(ramps.sizes.max(initial=0)) + 1)


def _own_columns(
    whole: RampColumns, part: RampColumns, used: IntArray, columns: IntArray
) -> IntArray:
    """Number columns of all features as those of some features, which are sorted."""
    feature = whole.feature[columns]
    local: IntArray = part.starts[np.searchsorted(used, feature)]
    return local + columns - whole.starts[feature]
