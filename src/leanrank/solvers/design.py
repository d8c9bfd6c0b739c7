"""The products with X that solvers need, over blocks of rows or columns in a fixed order.

A design wraps the whole matrix; a *block* is a compact copy of the columns of a working set, on
which a solver can iterate without touching the rest. Sums are float64 whatever X is stored in; only
the Gram part of a Hessian uses the storage precision, where it steers and does not certify.

Each row enters a Hessian less its *anchor*, one row of its query: ranking losses do not see a
constant added to a query's scores, and the variance between queries, which may be many times that
within, would otherwise have to cancel.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import BoolArray, FloatArray, IntArray, Matrix
from leanrank.execution import ROWS_PER_RANGE, Executor, add_up, query_ranges, row_blocks
from leanrank.solvers import _products, _quadratic_columns

NONZEROS_PER_BLOCK = 1 << 19
"""Non-zeros in one unit of work over the columns of a sparse matrix."""


@dataclass(frozen=True)
class Curvature:
    """A score Hessian in parts: what rows weigh, and what of them is summed over cells.

    Attributes
    ----------
    diag : array
        Weight of each row's outer product.
    atoms : array of shape (n_rows, n_atoms)
        Weights of each row in the sums of its cell.
    cell : array of int64
    anchor : array of int64
        A row of the same query: dense rows enter less their anchor, which ranking losses do not
        see, so that a large mean does not drown a small variance.
    cut : float
        Rows of smaller weight enter the diagonal only, where a block can profit from it.
    exact : bool
        Whether to work in float64 even if X is float32.
    thinned : bool
        Whether a sample of the rows stands for all.
    """

    diag: FloatArray
    atoms: FloatArray
    cell: IntArray
    anchor: IntArray
    cut: float
    exact: bool
    thinned: bool


class Block(Protocol):
    """Some columns, as a working set needs them."""

    n_features: int
    sparse: bool

    def matvec(self, v: FloatArray) -> FloatArray:
        """Compute X_W v."""

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g."""

    def add_rows(
        self,
        curvature: Curvature,
        rows: tuple[int, int],
        first_cell: int,
        gram: FloatArray,
        sums: FloatArray,
    ) -> None:
        """Add some rows' outer products to ``gram`` and their atoms × rows to their cells' sums."""

    def finish(self, gram: FloatArray, low_rank: FloatArray) -> FloatArray:
        """Turn what rows added up to into X_Wᵀ diag X_W − low_rank."""


class Design(Protocol):
    """The whole matrix."""

    n_rows: int
    n_features: int
    n_bytes: int

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw; only the columns of non-zero weights are read."""

    def rmatvec(self, g: FloatArray, features: IntArray | None = None) -> FloatArray:
        """Compute Xᵀg, of some features or of all."""

    def take(self, features: IntArray) -> Block:
        """Copy some columns into a compact block."""


def make_design(X: Matrix, executor: Executor) -> Design:
    """Wrap a C-contiguous array or a SciPy CSR array."""
    if isinstance(X, np.ndarray):
        return DenseDesign(X, executor)
    return SparseDesign(X, executor)


class DenseDesign:
    """A dense matrix, read in blocks of rows."""

    def __init__(self, X: np.ndarray[Any, Any], executor: Executor) -> None:
        self.X = kernel_view(X)
        self.n_rows, self.n_features = X.shape
        self.n_bytes = X.nbytes
        self.executor = executor
        self.blocks = row_blocks(self.n_rows)

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw; only the columns of non-zero weights are read when they are few."""
        out = np.zeros(self.n_rows)
        support = np.flatnonzero(w)
        if 4 * len(support) < self.n_features:
            weights = w[support]
            self.executor.map(
                lambda at: _products.dense_matvec_some(self.X, support, weights, out, at[0], at[1]),
                self.blocks,
            )
        else:
            self.executor.map(
                lambda at: _products.dense_matvec(self.X, w, out, at[0], at[1]), self.blocks
            )
        return out

    def rmatvec(self, g: FloatArray, features: IntArray | None = None) -> FloatArray:
        """Compute Xᵀg, block sums added in the order of the rows; rows are read whole."""
        if features is not None:
            return self.rmatvec(g)[features]
        return _sum_or_zero(
            self.executor.map(
                lambda at: _products.dense_rmatvec(self.X, g, at[0], at[1]), self.blocks
            ),
            self.n_features,
        )

    def take(self, features: IntArray) -> DenseBlock:
        """Copy some columns, row-major; all of them are not copied."""
        if np.array_equal(features, np.arange(self.n_features)):
            return DenseBlock(self.X, self.executor)
        out = np.empty((self.n_rows, len(features)), dtype=self.X.dtype)
        self.executor.map(
            lambda at: np.take(self.X[at[0] : at[1]], features, axis=1, out=out[at[0] : at[1]]),
            self.blocks,
        )
        return DenseBlock(out, self.executor)


class DenseBlock(DenseDesign):
    """Some columns of a dense matrix, with what a Hessian needs.

    Columns are divided by their spread before they are squared, so that single precision does not
    overflow.
    """

    sparse = False

    def __init__(self, X: np.ndarray[Any, Any], executor: Executor) -> None:
        super().__init__(X, executor)
        count = max(1, self.n_rows)
        centre = self.rmatvec(np.full(self.n_rows, 1.0 / count))
        variance = _sum_or_zero(
            executor.map(
                lambda at: _products.dense_variance(self.X, centre, at[0], at[1]), self.blocks
            ),
            self.n_features,
        )
        spread = np.sqrt(variance / count)
        self.spread = np.where(spread > 0, spread, 1.0)

    def add_rows(
        self,
        curvature: Curvature,
        rows: tuple[int, int],
        first_cell: int,
        gram: FloatArray,
        sums: FloatArray,
    ) -> None:
        """Add scaled rows with BLAS, in the precision of X unless the curvature is exact."""
        dtype = np.float64 if curvature.exact else self.X.dtype
        scaled = np.empty((rows[1] - rows[0], self.n_features), dtype=dtype)
        diag, anchor = curvature.diag, curvature.anchor
        _products.dense_scaled(self.X, anchor, self.spread, diag, rows[0], rows[1], scaled)
        gram += scaled.T @ scaled
        _products.dense_cell_sums(
            self.X, anchor, curvature.atoms, curvature.cell, rows[0], rows[1], first_cell, sums
        )

    def finish(self, gram: FloatArray, low_rank: FloatArray) -> FloatArray:
        """Undo the scaling."""
        return gram * np.outer(self.spread, self.spread) - low_rank


class SparseDesign:
    """A sparse matrix by row and by column: a sparse weight vector touches only its own columns."""

    def __init__(self, X: Matrix, executor: Executor) -> None:
        self.n_rows, self.n_features = X.shape
        self.executor = executor
        self.n_bytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
        self.rows = kernel_view(X.data), kernel_view(X.indices), kernel_view(X.indptr)
        columns = X.tocsc()
        self.data, self.indices, self.indptr = columns.data, columns.indices, columns.indptr
        self.column_sizes = np.diff(self.indptr)
        self.column_blocks = _column_blocks(self.column_sizes)

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw from the columns of non-zero weights."""
        support = np.flatnonzero(w)
        return self.take(support).matvec(w[support])

    def rmatvec(self, g: FloatArray, features: IntArray | None = None) -> FloatArray:
        """Compute Xᵀg, one dot product a column."""
        if features is not None:
            out = np.empty(len(features))
            blocks = _column_blocks(self.column_sizes[features])
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
            self.column_blocks,
        )
        return out

    @cached_property
    def column_norms(self) -> FloatArray:
        """Euclidean length of each column less its mean.

        Score gradients add up to zero, so a shift of a column does not change its product.
        """
        out = np.zeros(self.n_features)
        self.executor.map(
            lambda at: _products.sparse_norms(
                self.data, self.indptr, self.n_rows, out, at[0], at[1]
            ),
            self.column_blocks,
        )
        return out

    def take(self, features: IntArray) -> SparseBlock:
        """Single out some columns; nothing is copied."""
        return SparseBlock(self, features)


class SparseBlock:
    """Some columns of a sparse matrix.

    Products with a vector run over the columns. Outer products run over the rows, in a copy of the
    block's entries that is made for the first exact Hessian.
    """

    sparse = True

    def __init__(self, design: SparseDesign, features: IntArray) -> None:
        self.design = design
        self.features = features
        self.n_features = len(features)
        self.n_rows = design.n_rows
        self.executor = design.executor
        # frequent features first: their products share a corner of the Gram matrix that fits a
        # cache
        self.place = np.empty(len(features), dtype=np.int64)
        self.place[np.argsort(-design.column_sizes[features], kind="stable")] = np.arange(
            len(features)
        )
        self.position = np.full(design.n_features, -1, dtype=np.int32)
        self.position[features] = self.place
        self.bands = row_blocks(self.n_rows, 2 * ROWS_PER_RANGE)
        self._picked: dict[tuple[int, int], tuple[Any, Any, Any]] = {}

    @cached_property
    def band_starts(self) -> IntArray:
        """Where each column enters each band of rows: a band's scores fit the cache."""
        edges = np.array([begin for begin, _ in self.bands] + [self.n_rows], dtype=np.int64)
        starts: IntArray = _products.sparse_bands(
            self.design.indices, self.design.indptr, self.features, edges
        )
        return starts

    def matvec(self, v: FloatArray) -> FloatArray:
        """Compute X_W v, column after column within a band of rows."""
        out = np.zeros(self.n_rows)
        starts = self.band_starts
        self.executor.map(
            lambda b: _products.sparse_matvec(
                self.design.data, self.design.indices, starts[b], starts[b + 1], v, out
            ),
            range(len(self.bands)),
        )
        return out

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g, one dot product a column."""
        return self.design.rmatvec(g, self.features)

    def add_rows(
        self,
        curvature: Curvature,
        rows: tuple[int, int],
        first_cell: int,
        gram: FloatArray,
        sums: FloatArray,
    ) -> None:
        """Add rows entry by entry, in float64; anchors would fill them in and are left out."""
        _products.csr_curvature(
            *self._by_row(curvature, rows),
            rows[0],
            curvature.diag,
            curvature.cut,
            curvature.atoms,
            curvature.cell,
            first_cell,
            rows[0],
            rows[1],
            gram,
            sums,
        )

    def weighed(
        self, curvature: Curvature, left_out: BoolArray, n_cells: int
    ) -> tuple[tuple[Any, ...], FloatArray, FloatArray]:
        """Weigh the columns by the root of the curvature; sum over cells, and what is left out.

        The columns come as values, rows, starts, ends and the number of rows that count.
        """
        design, n = self.design, self.n_features
        place_and_cell = np.empty((self.n_rows, 2), dtype=np.int32)
        place_and_cell[:, 0] = np.where(left_out, -1, np.cumsum(~left_out) - 1)
        place_and_cell[:, 1] = curvature.cell
        n_atoms = curvature.atoms.shape[1]
        row_weights = np.zeros((self.n_rows, 4))
        row_weights[:, 0] = np.sqrt(np.maximum(curvature.diag, 0.0))
        row_weights[left_out, 1] = curvature.diag[left_out]
        row_weights[:, 2 : 2 + n_atoms] = curvature.atoms
        row_weights[left_out, 2:] = 0.0
        sizes = design.column_sizes[self.features].astype(np.int64)
        starts = np.concatenate(([0], np.cumsum(sizes + 1)[:-1])).astype(np.int64)
        ends = starts.copy()
        stored = int((sizes + 1).sum())
        values, rows = np.empty(stored, dtype=design.data.dtype), np.empty(stored, dtype=np.int32)
        sums, extra = np.zeros((n_cells, n_atoms, n)), np.zeros((2, n))
        self.executor.map(
            lambda at: _quadratic_columns.weigh_columns(
                design.data,
                design.indices,
                self.band_starts,
                place_and_cell,
                row_weights,
                ends,
                values,
                rows,
                sums,
                extra,
                *at,
            ),
            _column_blocks(sizes),
        )
        count = self.n_rows - int(np.count_nonzero(left_out))
        return (values, rows, starts, ends, count), sums, extra

    def _by_row(self, curvature: Curvature, rows: tuple[int, int]) -> tuple[Any, Any, Any]:
        """Give the block's entries in some rows; all rows are kept for the next Hessian."""
        if curvature.thinned:
            return _products.csr_pick(*self.design.rows, self.position, curvature.diag, *rows)
        if rows not in self._picked:
            everything = np.broadcast_to(1.0, self.n_rows)
            self._picked[rows] = _products.csr_pick(
                *self.design.rows, self.position, everything, *rows
            )
        return self._picked[rows]

    def finish(self, gram: FloatArray, low_rank: FloatArray) -> FloatArray:
        """Mirror the lower triangle and put the features back into their order."""
        whole: FloatArray = _products.mirrored(gram, low_rank, self.place)
        return whole


def _column_blocks(stored: IntArray) -> list[tuple[int, int]]:
    """Cut columns with so many non-zeros each into consecutive blocks of about equal work."""
    ptr = np.concatenate(([0], np.cumsum(stored, dtype=np.int64)))
    return query_ranges(ptr, NONZEROS_PER_BLOCK)


def _sum_or_zero(parts: list[Any], shape: Any) -> FloatArray:
    total: FloatArray = add_up(parts) if parts else np.zeros(shape)
    return total
