"""The products with a sparse X: by column with vectors, by row for outer products."""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel_view
from leanrank._mapped import empty_beside, is_mapped
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.designs import _sparse_kernels as kernels
from leanrank.designs.base import Block, Design, Fold, WeightedColumns
from leanrank.execution import ROWS_PER_RANGE, Executor, cached_property, query_ranges, row_blocks
from leanrank.losses.base import Curvature

SAMPLE_RIDGE = 1e-4
"""Share of its squares added to each column of a sample: few rows may not tell columns apart."""


class SparseDesign(Design):
    """A sparse matrix by row and by column: a sparse weight vector touches only its own columns.

    Parameters
    ----------
    X : SciPy CSR array
    executor : Executor
    anchor : array of int64
    nonzeros_per_block : int
        Non-zeros in one unit of work over the columns.
    rows_per_band : int
        Rows whose scores stay in a cache while columns are multiplied.
    far : float
        The anchor's value is subtracted where a column has a value in every row of a query, all
        within this share of the anchor's: that loses no digit, and products keep more of them.
    """

    def __init__(
        self,
        X: Matrix,
        executor: Executor,
        anchor: IntArray,
        *,
        nonzeros_per_block: int = 1 << 19,
        rows_per_band: int = 2 * ROWS_PER_RANGE,
        far: float = 1e-3,
    ) -> None:
        self.nonzeros_per_block = nonzeros_per_block
        self.rows_per_band = rows_per_band
        self.n_rows, self.n_features = X.shape
        self.executor = executor
        self.anchor = anchor
        self.n_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        columns = turned(X)
        sizes = np.bincount(anchor, minlength=self.n_rows)
        if kernels.subtract_anchors(
            columns.data, columns.indices, columns.indptr, anchor, sizes, far
        ):
            X = turned(columns)
        self.X = X
        self.rows = kernel_view(X.data), kernel_view(X.indices), kernel_view(X.indptr)
        self.by_column = columns.data, columns.indices, columns.indptr
        self._all_columns = self.column_blocks(self.column_sizes)

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw from the columns of non-zero weights."""
        support = np.flatnonzero(w)
        return self.take(support).matvec(w[support])

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute Xᵀg, one dot product per column."""
        return self.column_products(np.arange(self.n_features), g)

    def column_products(self, features: IntArray, g: FloatArray) -> FloatArray:
        """Compute Xᵀg of some features."""
        blocks = self.column_blocks(self.column_sizes[features])
        out = np.empty(len(features))
        self.executor.map(
            lambda at: kernels.sparse_rmatvec(*self.by_column, features, g, out, *at), blocks
        )
        return out

    def column_blocks(self, stored: IntArray, *, coarse: int = 1) -> list[tuple[int, int]]:
        """Split columns, given their numbers of non-zeros, into blocks of about equal work."""
        ptr = np.concatenate(([0], np.cumsum(stored, dtype=np.int64)))
        return query_ranges(ptr, coarse * self.nonzeros_per_block)

    @cached_property
    def column_sizes(self) -> IntArray:
        """Stored entries of each column."""
        return np.diff(self.by_column[2])

    @property
    def column_norms(self) -> FloatArray:
        """Length of each column less its mean.

        Score gradients add up to zero, so a shift of a column does not change its product.
        """
        return self._norms[0]

    @property
    def summed_norms(self) -> FloatArray:
        """Length of each column itself, without anchors, which would make it dense."""
        return self._norms[1]

    @cached_property
    def _norms(self) -> FloatArray:
        (data, _, indptr), out = self.by_column, np.zeros((2, self.n_features))
        self.executor.map(
            lambda at: kernels.sparse_norms(data, indptr, self.n_rows, *out, *at),
            self._all_columns,
        )
        return out

    def take(self, features: IntArray) -> SparseBlock:
        """Select some columns without a copy."""
        return SparseBlock(self, features)


def turned(X: Matrix) -> Matrix:
    """Return a CSR array by column or a CSC array by row; a mapped one stays out of memory."""
    if not is_mapped(X):
        return X.tocsc() if X.format == "csr" else X.tocsr()
    from scipy.sparse import csc_array, csr_array

    n_minor = X.shape[1 if X.format == "csr" else 0]
    data, indices = empty_beside(X.data), empty_beside(X.data, X.indices.shape, X.indices.dtype)
    indptr = np.zeros(n_minor + 1, dtype=X.indptr.dtype)
    kernels.turn(*(kernel_view(a) for a in (X.data, X.indices, X.indptr)), data, indices, indptr)
    make = csc_array if X.format == "csr" else csr_array
    return make((data, indices, indptr), shape=X.shape, copy=False)


class SparseBlock(Block):
    """Some columns of a sparse matrix: vectors are multiplied by column, outer products by row."""

    picks_rows = True

    def __init__(self, design: SparseDesign, features: IntArray) -> None:
        self.design = design
        self.features = features
        self.n_features = len(features)
        self.n_rows = design.n_rows
        self.n_bytes = design.n_bytes
        self.executor = design.executor
        self.bands = row_blocks(self.n_rows, design.rows_per_band)

    @cached_property
    def place(self) -> AnyArray:
        """The number of each column of X in the block, −1 for those outside."""
        place = np.full(self.design.n_features, -1, dtype=np.int32)
        place[self.features] = np.arange(self.n_features, dtype=np.int32)
        return place

    @cached_property
    def band_starts(self) -> IntArray:
        """The first entry of each column in each band of rows; a band of scores fits the cache."""
        edges = np.array([begin for begin, _ in self.bands] + [self.n_rows], dtype=np.int64)
        starts: IntArray = kernels.sparse_bands(*self.design.by_column[1:], self.features, edges)
        return starts

    def matvec(self, v: FloatArray) -> FloatArray:
        """Compute X_W v, column after column within a band of rows; then less the anchors."""
        out = np.zeros(self.n_rows)
        starts = self.band_starts
        self.executor.map(
            lambda b: kernels.sparse_matvec(
                *self.design.by_column[:2], starts[b], starts[b + 1], v, out
            ),
            range(len(self.bands)),
        )
        out -= out[self.design.anchor]
        return out

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g, one dot product per column."""
        return self.design.column_products(self.features, g)

    def add_rows(
        self,
        curvature: Curvature,
        rows: tuple[int, int],
        first_cell: int,
        gram: FloatArray,
        sums: FloatArray,
    ) -> None:
        """Add rows in float64, without anchors, which would make them dense."""
        own = slice(*rows)
        kernels.add_rows(
            *self.design.rows, self.place, np.arange(*rows), curvature.cell[own] - first_cell,
            curvature.diag[own], curvature.atoms[own], gram, sums,
        )  # fmt: skip

    def sampled(self, curvature: Curvature, n_picked: int, n_lanes: int, fold: Fold) -> FloatArray:
        """Compute the Hessian from rows picked by curvature, each column's squares from all rows.

        A rare column may have few of its entries in a sample, but all of its curvature.
        """
        design, n, lanes = self.design, self.n_features, range(n_lanes)
        diag, atoms, cell = curvature.diag, curvature.atoms, curvature.cell
        n_cells = len(curvature.aux)
        rows, weights, some = kernels.pick_rows(diag, atoms, cell, n_cells, n_picked)
        cuts = [slice(len(rows) * k // n_lanes, len(rows) * (k + 1) // n_lanes) for k in lanes]
        grams = [np.zeros((n, n)) for _ in lanes]
        sums = [np.zeros((n_cells, atoms.shape[1], n)) for _ in lanes]
        self.executor.map(
            lambda lane: kernels.add_rows(
                *design.rows, self.place, rows[cuts[lane]], cell[rows[cuts[lane]]],
                weights[cuts[lane]], some[cuts[lane]], grams[lane], sums[lane],
            ),
            lanes,
        )  # fmt: skip
        squares = np.empty(n)
        self.executor.map(
            lambda at: kernels.weighted_squares(
                *self.design.by_column, self.features, diag, squares, *at
            ),
            design.column_blocks(design.column_sizes[self.features]),
        )
        gram = grams[0]
        for lane in lanes[1:]:
            gram += grams[lane]
            sums[0] += sums[lane]
        found = gram.diagonal().copy()
        seen = found > 0.0
        scale = np.sqrt(np.divide(squares, found, out=np.zeros(n), where=seen))
        left, right = fold(scale * sums[0])
        kernels.mirror(gram)
        gram *= scale[:, None] * scale
        half = left.T @ right
        gram -= half + half.T
        gram[np.diag_indices(n)] += np.where(seen, SAMPLE_RIDGE * squares, squares)
        return gram

    def weighed(
        self, curvature: Curvature, n_picked: int | None
    ) -> tuple[WeightedColumns, FloatArray]:
        """Weigh the columns by the root of the curvature; sum over cells."""
        design, n, dtype = self.design, self.n_features, self.design.by_column[0].dtype
        diag, atoms, cell = curvature.diag, curvature.atoms, curvature.cell
        n_cells = len(curvature.aux)
        if n_picked is None:
            picked = np.flatnonzero(diag >= np.finfo(np.float64).tiny)
            weights, some = diag[picked], atoms[picked]
        else:
            picked, weights, some = kernels.pick_rows(diag, atoms, cell, n_cells, n_picked)
        place = np.full(self.n_rows, -1, dtype=np.int32)
        place[picked] = np.arange(len(picked), dtype=np.int32)
        root, gain = np.sqrt(diag), np.sqrt(weights / diag[picked])
        ratios = some / np.sqrt(weights)[:, None]
        sizes = design.column_sizes[self.features]
        starts = np.concatenate(([0], np.cumsum(sizes + 1)))  # and one unused entry
        ends = starts[:-1].copy()
        values = empty_beside(design.by_column[0], (int(starts[-1]),))
        rows = empty_beside(design.by_column[0], (int(starts[-1]),), np.int32)
        sums, squares, extra = np.zeros((n_cells, atoms.shape[1], n)), np.zeros(n), np.zeros(n)
        arrays = place, root.astype(dtype), gain, cell[picked].astype(np.int32), ratios, starts
        self.executor.map(
            lambda at: kernels.weigh_columns(
                *design.by_column[:2], self.band_starts, *arrays, ends, values, rows, sums,
                squares, extra, *at,
            ),
            design.column_blocks(sizes, coarse=2),
        )  # fmt: skip
        if n_picked is not None and n_picked <= self.n_rows:
            extra += SAMPLE_RIDGE * squares
        columns = WeightedColumns(values, rows, starts[:-1], ends, squares, extra, len(picked))
        return columns, sums

    def finish(self, gram: FloatArray, low_rank: FloatArray) -> FloatArray:
        """Copy the sums on one side of the diagonal to the other."""
        kernels.mirror(gram)
        gram -= low_rank
        return gram

    def columns(self, rows: tuple[int, int], begin: int, end: int) -> FloatArray:
        """Write out some rows of some columns, without anchors."""
        found: FloatArray = self._some(rows, begin, end).astype(np.float64).toarray()
        return found

    def cross(self, rows: tuple[int, int], values: FloatArray) -> FloatArray:
        """Multiply entry by entry."""
        found: FloatArray = self._some(rows, 0, self.n_features).T @ values
        return found

    def _some(self, rows: tuple[int, int], begin: int, end: int) -> Matrix:
        return self.design.X[slice(*rows)][:, self.features[begin:end]]
