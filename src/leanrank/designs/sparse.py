"""The products with a sparse X: by column with vectors, by row for outer products."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._jit import kernel_view
from leanrank._mapped import empty_beside, is_mapped
from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.designs import _sparse_gram
from leanrank.designs import products as _products
from leanrank.designs.base import MOST_COPIED_BYTES, Block, Curvature, Design, Fold, WeightedColumns
from leanrank.execution import ROWS_PER_RANGE, Executor, cached_property, query_ranges, row_blocks

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
    head_share, most_in_head : int
        Columns with an entry in at least one of ``head_share`` rows, at most ``most_in_head`` of
        them, are dense in a Hessian; set, as the next, by ``benchmarks domination``.
    rows_of_head : int
        Dense rows at a time, so that they stay in a cache.
    rows_per_band : int
        Rows whose scores stay in a cache while columns are multiplied.
    far : float
        The anchor's value is subtracted where a column has a value in every row of a query, all
        within this share of the anchor's: that loses no digit, and products keep more of them.
    """

    skips_columns = True

    def __init__(
        self,
        X: Matrix,
        executor: Executor,
        anchor: IntArray,
        *,
        nonzeros_per_block: int = 1 << 19,
        head_share: int = 8,
        most_in_head: int = 32,
        rows_of_head: int = 2_048,
        rows_per_band: int = 2 * ROWS_PER_RANGE,
        far: float = 1e-3,
    ) -> None:
        self.nonzeros_per_block = nonzeros_per_block
        self.head_share, self.most_in_head = head_share, most_in_head
        self.rows_of_head, self.rows_per_band = rows_of_head, rows_per_band
        self.n_rows, self.n_features = X.shape
        self.executor = executor
        self.anchor = anchor
        self.n_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        columns = turned(X)
        sizes = np.bincount(anchor, minlength=self.n_rows)
        if _products.subtract_anchors(
            columns.data, columns.indices, columns.indptr, anchor, sizes, far
        ):
            X = turned(columns)
        self.rows = kernel_view(X.data), kernel_view(X.indices), kernel_view(X.indptr)
        self.data, self.indices, self.indptr = columns.data, columns.indices, columns.indptr
        self._all_columns = self.column_blocks(self.column_sizes)

        self.most_kept = MOST_COPIED_BYTES if is_mapped(X) else None

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw from the columns of non-zero weights."""
        support = np.flatnonzero(w)
        return self.take(support).matvec(w[support])

    def rmatvec(self, g: FloatArray, features: IntArray | None = None) -> FloatArray:
        """Compute Xᵀg, one dot product per column."""
        if features is not None:
            out = np.empty(len(features))
            blocks = self.column_blocks(self.column_sizes[features])
            self.executor.map(
                lambda at: _products.sparse_rmatvec_some(
                    self.data, self.indices, self.indptr, features, g, out, at[0], at[1]
                ),
                blocks,
            )
            return out
        out = np.zeros(self.n_features)
        self.executor.map(
            lambda at: _products.sparse_rmatvec(
                self.data, self.indices, self.indptr, g, out, at[0], at[1]
            ),
            self._all_columns,
        )
        return out

    def column_blocks(self, stored: IntArray, *, coarse: int = 1) -> list[tuple[int, int]]:
        """Split columns, given their numbers of non-zeros, into blocks of about equal work."""
        ptr = np.concatenate(([0], np.cumsum(stored, dtype=np.int64)))
        return query_ranges(ptr, coarse * self.nonzeros_per_block)

    @cached_property
    def column_sizes(self) -> IntArray:
        """Stored entries of each column."""
        return np.diff(self.indptr)

    @property
    def column_norms(self) -> FloatArray:
        """Length of each column less its mean.

        Score gradients add up to zero, so a shift of a column does not change its product.
        """
        return self._norms[0]

    @property
    def summed_norms(self) -> FloatArray:
        """Length of each column as it is: anchors would fill it in and are left out."""
        return self._norms[1]

    @cached_property
    def _norms(self) -> FloatArray:
        out = np.zeros((2, self.n_features))
        self.executor.map(
            lambda at: _products.sparse_norms(self.data, self.indptr, self.n_rows, *out, *at),
            self._all_columns,
        )
        return out

    def take(self, features: IntArray) -> SparseBlock:
        """Single out some columns; nothing is copied."""
        return SparseBlock(self, features)


def turned(X: Matrix) -> Matrix:
    """Return a CSR array by column or a CSC array by row; a mapped one stays out of memory."""
    if not is_mapped(X):
        return X.tocsc() if X.format == "csr" else X.tocsr()
    from scipy.sparse import csc_array, csr_array

    n_minor = X.shape[1 if X.format == "csr" else 0]
    data, indices = empty_beside(X.data), empty_beside(X.data, X.indices.shape, X.indices.dtype)
    indptr = np.zeros(n_minor + 1, dtype=X.indptr.dtype)
    _products.turn(*(kernel_view(a) for a in (X.data, X.indices, X.indptr)), data, indices, indptr)
    make = csc_array if X.format == "csr" else csr_array
    return make((data, indices, indptr), shape=X.shape, copy=False)


class SparseBlock(Block):
    """Some columns of a sparse matrix.

    Products with a vector run over the columns. Outer products run over the rows, in a copy of the
    block's entries that is made for the first exact Hessian.
    """

    picks_rows = True

    def __init__(self, design: SparseDesign, features: IntArray) -> None:
        self.design = design
        self.features = features
        self.n_features = len(features)
        self.n_rows = design.n_rows
        self.n_bytes = design.n_bytes
        self.executor = design.executor
        # frequent features first: their products share a corner of the Gram matrix that fits a
        # cache
        order = np.argsort(-design.column_sizes[features], kind="stable")
        self.place = np.empty(len(features), dtype=np.int64)
        self.place[order] = np.arange(len(features))
        self.by_frequency = features[order]
        frequent = design.column_sizes[features] * design.head_share >= max(1, self.n_rows)
        self.n_head = min(design.most_in_head, int(np.count_nonzero(frequent)))
        self.bands = row_blocks(self.n_rows, design.rows_per_band)
        self._tails: dict[tuple[int, int], tuple[Any, Any, Any]] = {}
        self._kept = 0  # bytes of them

    @cached_property
    def band_starts(self) -> IntArray:
        """Where each column enters each band of rows: a band's scores fit the cache."""
        edges = np.array([begin for begin, _ in self.bands] + [self.n_rows], dtype=np.int64)
        starts: IntArray = _products.sparse_bands(
            self.design.indices, self.design.indptr, self.features, edges
        )
        return starts

    def matvec(self, v: FloatArray) -> FloatArray:
        """Compute X_W v, column after column within a band of rows; then less the anchors."""
        out = np.zeros(self.n_rows)
        starts = self.band_starts
        self.executor.map(
            lambda b: _products.sparse_matvec(
                self.design.data, self.design.indices, starts[b], starts[b + 1], v, out
            ),
            range(len(self.bands)),
        )
        out -= out[self.design.anchor]
        return out

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g, one dot product per column."""
        return self.design.rmatvec(g, self.features)

    def add_rows(
        self,
        curvature: Curvature,
        rows: tuple[int, int],
        first_cell: int,
        gram: FloatArray,
        sums: FloatArray,
    ) -> None:
        """Add rows in float64; anchors would fill them in and are left out."""
        data, indices = self.design.data, self.design.indices
        starts, ends = (self._starts(row) for row in rows)
        n_head, tail = self.n_head, self._tail(rows, starts, ends)
        buffer = np.empty((self.design.rows_of_head, n_head))
        nexts = starts.copy()
        for low, high in row_blocks(rows[1] - rows[0], self.design.rows_of_head):
            begin, end = rows[0] + low, rows[0] + high
            head = buffer[: end - begin]
            _sparse_gram.head_rows(data, indices, nexts, ends, begin, end, head)
            _sparse_gram.add_rows(
                head,
                *tail,
                rows[0],
                curvature.diag,
                curvature.atoms,
                curvature.cell,
                first_cell,
                begin,
                end,
                gram,
                sums,
            )
            gram[:n_head, :n_head] += head.T @ head

    def sampled(
        self, curvature: Curvature, n_cells: int, n_picked: int, n_lanes: int, fold: Fold
    ) -> FloatArray:
        """Compute the Hessian from rows picked by curvature, each column's squares from all rows.

        A rare column may have few of its entries in a sample, but all of its curvature.
        """
        design, n, lanes = self.design, self.n_features, range(n_lanes)
        place = np.full(design.n_features, -1, dtype=np.int32)
        place[self.features] = np.arange(n, dtype=np.int32)
        diag, atoms, cell = curvature.diag, curvature.atoms, curvature.cell
        rows, weights, some = _sparse_gram.pick_rows(diag, atoms, cell, n_cells, n_picked)
        cuts = [len(rows) * lane // n_lanes for lane in range(n_lanes + 1)]
        grams = [np.zeros((n, n)) for _ in lanes]
        sums = [np.zeros((n_cells, atoms.shape[1], n)) for _ in lanes]
        self.executor.map(
            lambda lane: _sparse_gram.add_picked(
                *design.rows, place, cell, rows, weights, some, cuts[lane], cuts[lane + 1],
                grams[lane], sums[lane],
            ),
            lanes,
        )  # fmt: skip
        squares = np.empty(n)
        self.executor.map(
            lambda at: _sparse_gram.weighted_squares(
                *self._by_column, self.features, diag, squares, *at
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
        _sparse_gram.complete(gram, scale, left, right)
        gram[np.diag_indices(n)] += np.where(seen, SAMPLE_RIDGE * squares, squares)
        return gram

    def weighed(
        self, curvature: Curvature, n_cells: int, n_picked: int | None
    ) -> tuple[WeightedColumns, FloatArray]:
        """Weigh the columns by the root of the curvature; sum over cells."""
        design, n, dtype = self.design, self.n_features, self.design.data.dtype
        diag, atoms, cell = curvature.diag, curvature.atoms, curvature.cell
        if n_picked is None:
            picked = np.flatnonzero(diag >= np.finfo(np.float64).tiny)
            weights, some = diag[picked], atoms[picked]
        else:
            picked, weights, some = _sparse_gram.pick_rows(diag, atoms, cell, n_cells, n_picked)
        place = np.full(self.n_rows, -1, dtype=np.int32)
        place[picked] = np.arange(len(picked), dtype=np.int32)
        root, gain = np.sqrt(diag), np.sqrt(weights / diag[picked])
        ratios = some / np.sqrt(weights)[:, None]
        sizes = design.column_sizes[self.features]
        starts = np.concatenate(([0], np.cumsum(sizes + 1)))  # and a place to write in vain
        ends = starts[:-1].copy()
        values = empty_beside(design.data, (int(starts[-1]),))
        rows = empty_beside(design.data, (int(starts[-1]),), np.int32)
        sums, squares, extra = np.zeros((n_cells, atoms.shape[1], n)), np.zeros(n), np.zeros(n)
        arrays = place, root.astype(dtype), gain, cell[picked].astype(np.int32), ratios, starts
        self.executor.map(
            lambda at: _sparse_gram.weigh_columns(
                design.data, design.indices, self.band_starts, *arrays, ends, values, rows, sums,
                squares, extra, *at,
            ),
            design.column_blocks(sizes, coarse=2),
        )  # fmt: skip
        if n_picked is not None and n_picked <= self.n_rows:
            extra += SAMPLE_RIDGE * squares
        columns = WeightedColumns(values, rows, starts[:-1], ends, squares, extra, len(picked))
        return columns, sums

    def _starts(self, row: int) -> IntArray:
        starts: IntArray = _sparse_gram.column_starts(
            self.design.indices, self.design.indptr, self.by_frequency, row
        )
        return starts

    def _tail(
        self, rows: tuple[int, int], starts: IntArray, ends: IntArray
    ) -> tuple[Any, Any, Any]:
        """Return the entries of some rows outside the head; they are kept for the next time."""
        if rows in self._tails:
            return self._tails[rows]
        tail: tuple[Any, Any, Any] = _sparse_gram.tail_rows(
            self.design.data, self.design.indices, starts, ends, self.n_head, *rows
        )
        self._kept += sum(part.nbytes for part in tail)
        if self.design.most_kept is None or self._kept <= self.design.most_kept:
            self._tails[rows] = tail
        return tail

    def finish(self, gram: FloatArray, low_rank: FloatArray) -> FloatArray:
        """Mirror the lower triangle and put the features back into their order."""
        whole: FloatArray = _sparse_gram.mirrored(gram, low_rank, self.place)
        return whole

    def columns(self, rows: tuple[int, int], begin: int, end: int) -> FloatArray:
        """Write out some rows of some columns; anchors would fill them in and are left out."""
        out = np.zeros((rows[1] - rows[0], end - begin))
        _products.sparse_columns(*self._by_column, self.features[begin:end], *rows, out)
        return out

    def cross(self, rows: tuple[int, int], values: FloatArray) -> FloatArray:
        """Multiply entry by entry."""
        out = np.zeros((self.n_features, values.shape[1]))
        _products.sparse_cross(*self._by_column, self.features, *rows, values, out)
        return out

    @property
    def _by_column(self) -> tuple[Any, Any, Any]:
        return self.design.data, self.design.indices, self.design.indptr
