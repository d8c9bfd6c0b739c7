"""The products with a dense X, over blocks of rows."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.designs import products
from leanrank.designs.base import Block, Curvature, Design
from leanrank.execution import ROWS_PER_RANGE, Executor, add_up, row_blocks


class _Rows:
    """A dense matrix, read in blocks of rows."""

    def __init__(
        self,
        X: AnyArray,
        executor: Executor,
        anchor: IntArray,
        *,
        rows_per_block: int = ROWS_PER_RANGE,
    ) -> None:
        self.X = kernel_view(X)
        self.n_rows, self.n_features = X.shape
        self.n_bytes = X.nbytes
        self.executor = executor
        self.anchor = anchor
        self.rows_per_block = rows_per_block
        self.blocks = row_blocks(self.n_rows, rows_per_block)

    @cached_property
    def column_norms(self) -> FloatArray:
        """Length of each column, rows less their anchors."""
        parts = self.executor.map(
            lambda at: products.dense_squares(self.X, self.anchor, *at), self.blocks
        )
        return np.sqrt(add_up(parts) if parts else np.zeros(self.n_features))

    def _matvec(self, w: FloatArray) -> FloatArray:
        out = np.zeros(self.n_rows)
        support = np.flatnonzero(w)
        if 4 * len(support) < self.n_features:
            weights = w[support]
            self.executor.map(
                lambda at: products.dense_matvec_some(
                    self.X, self.anchor, support, weights, out, *at
                ),
                self.blocks,
            )
        else:
            self.executor.map(
                lambda at: products.dense_matvec(self.X, self.anchor, w, out, *at), self.blocks
            )
        return out

    def _rmatvec(self, g: FloatArray) -> FloatArray:
        parts = self.executor.map(
            lambda at: products.anchored_rmatvec(self.X, self.anchor, g, *at), self.blocks
        )
        total: FloatArray = add_up(parts) if parts else np.zeros(self.n_features)
        return total


class DenseDesign(_Rows, Design):
    """A dense matrix."""

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw; only the columns of non-zero weights are read when they are few."""
        return self._matvec(w)

    def rmatvec(self, g: FloatArray, features: IntArray | None = None) -> FloatArray:
        """Compute Xᵀg, block sums added in the order of the rows; rows are read whole."""
        c = self._rmatvec(g)
        return c if features is None else c[features]

    @property
    def column_sizes(self) -> IntArray:
        """Every column has all rows."""
        return np.full(self.n_features, self.n_rows)

    @property
    def summed_norms(self) -> FloatArray:
        """Products add up rows less their anchors."""
        return self.column_norms

    def take(self, features: IntArray) -> DenseBlock:
        """Copy some columns, row-major; all of them are not copied."""
        if np.array_equal(features, np.arange(self.n_features)):
            return self._block(self.X)
        out = np.empty((self.n_rows, len(features)), dtype=self.X.dtype)
        self.executor.map(  # "clip" writes to out without a buffer
            lambda at: self.X[slice(*at)].take(features, axis=1, out=out[slice(*at)], mode="clip"),
            self.blocks,
        )
        block = self._block(out)
        if "column_norms" in self.__dict__:
            block.column_norms = self.column_norms[features]
        return block

    def _block(self, X: AnyArray) -> DenseBlock:
        return DenseBlock(X, self.executor, self.anchor, rows_per_block=self.rows_per_block)


class DenseBlock(_Rows, Block):
    """Some columns of a dense matrix, with what a Hessian needs."""

    def matvec(self, v: FloatArray) -> FloatArray:
        """Compute X_W v."""
        return self._matvec(v)

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g, block sums added in the order of the rows."""
        return self._rmatvec(g)

    @cached_property
    def spread(self) -> FloatArray:
        """What columns are divided by before they are squared: single precision overflows soon."""
        spread = self.column_norms / np.sqrt(max(1, self.n_rows))
        return np.where(spread > 0, spread, 1.0)

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
        products.dense_scaled(self.X, self.anchor, self.spread, curvature.diag, *rows, scaled)
        gram += scaled.T @ scaled
        atoms, cell = curvature.atoms, curvature.cell
        products.dense_cell_sums(self.X, self.anchor, atoms, cell, *rows, first_cell, sums)

    def finish(self, gram: FloatArray, low_rank: FloatArray) -> FloatArray:
        """Undo the scaling."""
        return gram * np.outer(self.spread, self.spread) - low_rank

    def dense(self, rows: tuple[int, int]) -> AnyArray:
        """Return some rows as they are."""
        return self.X[rows[0] : rows[1]]

    def columns(self, rows: tuple[int, int], begin: int, end: int) -> FloatArray:
        """Copy some rows of some columns, less their anchors."""
        out = np.empty((rows[1] - rows[0], end - begin))
        products.dense_columns(self.X, self.anchor, *rows, begin, end, out)
        return out

    def cross(self, rows: tuple[int, int], values: FloatArray) -> FloatArray:
        """Multiply with BLAS, some rows at a time."""
        out = np.zeros((self.n_features, values.shape[1]))
        for low, high in row_blocks(rows[1] - rows[0]):
            part = rows[0] + low, rows[0] + high
            out += self.columns(part, 0, self.n_features).T @ values[low:high]
        return out
