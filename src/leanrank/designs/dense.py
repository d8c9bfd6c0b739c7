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
from typing import Any, Protocol

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.designs import products as _products
from leanrank.execution import Executor, add_up, row_blocks


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
    n_bytes: int
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

    def columns(self, rows: tuple[int, int], begin: int, end: int, anchor: IntArray) -> FloatArray:
        """Copy some rows of columns [begin, end), dense, in float64, less a row of their query."""

    def cross(self, rows: tuple[int, int], values: FloatArray, anchor: IntArray) -> FloatArray:
        """Compute X_Wᵀ values over some rows; each column of values adds up to 0 in a query."""


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
    from leanrank.designs.sparse import SparseDesign

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

    def dense(self, rows: tuple[int, int]) -> np.ndarray[Any, Any]:
        """Give some rows as they are."""
        return self.X[rows[0] : rows[1]]

    def columns(self, rows: tuple[int, int], begin: int, end: int, anchor: IntArray) -> FloatArray:
        """Copy some rows of some columns, less their anchors."""
        out = np.empty((rows[1] - rows[0], end - begin))
        _products.dense_columns(self.X, anchor, rows[0], rows[1], begin, end, out)
        return out

    def cross(self, rows: tuple[int, int], values: FloatArray, anchor: IntArray) -> FloatArray:
        """Multiply with BLAS, some rows at a time."""
        out = np.zeros((self.n_features, values.shape[1]))
        for low, high in row_blocks(rows[1] - rows[0]):
            part = rows[0] + low, rows[0] + high
            out += self.columns(part, 0, self.n_features, anchor).T @ values[low:high]
        return out


def _sum_or_zero(parts: list[Any], shape: Any) -> FloatArray:
    total: FloatArray = add_up(parts) if parts else np.zeros(shape)
    return total
