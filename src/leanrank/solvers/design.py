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

from functools import partial
from typing import Any, Protocol

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.execution import Executor, add_up, query_ranges, row_blocks
from leanrank.solvers import _products

NONZEROS_PER_BLOCK = 1 << 19
"""Non-zeros in one unit of work over the columns of a sparse matrix."""


class Block(Protocol):
    """A compact copy of some columns."""

    n_features: int

    def matvec(self, v: FloatArray) -> FloatArray:
        """Compute X_W v."""

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g."""

    def gram(self, diag: FloatArray, anchor: IntArray, *, exact: bool = False) -> FloatArray:
        """Compute X_Wᵀ diag X_W of rows less their anchors; ``exact`` in float64."""

    def cell_sums(
        self,
        begin: int,
        end: int,
        atoms: FloatArray,
        cell: IntArray,
        first: int,
        n_cells: int,
        anchor: IntArray,
    ) -> FloatArray:
        """Sum atoms × rows over each cell of the rows [begin, end), less anchors as in ``gram``."""


class Design(Protocol):
    """The whole matrix."""

    n_rows: int
    n_features: int

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

    def gram(self, diag: FloatArray, anchor: IntArray, *, exact: bool = False) -> FloatArray:
        """Compute (X − A)ᵀ diag (X − A) with BLAS on scaled blocks, in the precision of X."""
        root = np.sqrt(np.maximum(diag, 0.0))
        dtype = np.float64 if exact else self.X.dtype

        def part(at: tuple[int, int]) -> FloatArray:
            scaled = np.empty((at[1] - at[0], self.n_features), dtype=dtype)
            _products.dense_scaled(self.X, anchor, self.spread, root, at[0], at[1], scaled)
            return (scaled.T @ scaled).astype(np.float64)

        shape = (self.n_features, self.n_features)
        total = add_in_lanes(self.executor, part, self.blocks, shape)
        return total * np.outer(self.spread, self.spread)

    def cell_sums(
        self,
        begin: int,
        end: int,
        atoms: FloatArray,
        cell: IntArray,
        first: int,
        n_cells: int,
        anchor: IntArray,
    ) -> FloatArray:
        """Sum atoms × (row − anchor) over each cell of the rows [begin, end)."""
        return _products.dense_cell_sums(self.X, anchor, atoms, cell, begin, end, first, n_cells)


class SparseDesign:
    """A sparse matrix in column form: a sparse weight vector touches only its own columns."""

    def __init__(self, X: Matrix, executor: Executor) -> None:
        self.n_rows, self.n_features = X.shape
        self.executor = executor
        columns = X.tocsc()
        self.data = columns.data
        self.indices = columns.indices
        self.indptr = columns.indptr
        self.column_blocks = _column_blocks(np.diff(self.indptr))

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw from the columns of non-zero weights."""
        out = np.zeros(self.n_rows)
        support = np.flatnonzero(w)
        _products.sparse_matvec(self.data, self.indices, self.indptr, support, w[support], out)
        return out

    def rmatvec(self, g: FloatArray, features: IntArray | None = None) -> FloatArray:
        """Compute Xᵀg, one dot product a column."""
        if features is not None:
            out = np.empty(len(features))
            blocks = _column_blocks(np.diff(self.indptr)[features])
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

    def take(self, features: IntArray) -> SparseBlock:
        """Copy some columns, both by column and by row."""
        return SparseBlock(self, features)


class SparseBlock:
    """Some columns of a sparse matrix, by row."""

    def __init__(self, design: SparseDesign, features: IntArray) -> None:
        self.design = design
        self.features = features
        self.n_features = len(features)
        self.n_rows = design.n_rows
        self.executor = design.executor
        self.indptr, self.indices, self.data = _products.sparse_take_rows(
            design.data, design.indices, design.indptr, features, design.n_rows
        )
        self.blocks = row_blocks(self.n_rows)

    def matvec(self, v: FloatArray) -> FloatArray:
        """Compute X_W v, blocks of rows."""
        out = np.empty(self.n_rows)
        self.executor.map(
            lambda at: _products.csr_matvec(
                self.data, self.indices, self.indptr, v, out, at[0], at[1]
            ),
            self.blocks,
        )
        return out

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g from the columns of the whole matrix."""
        return self.design.rmatvec(g, self.features)

    def gram(self, diag: FloatArray, anchor: IntArray, *, exact: bool = False) -> FloatArray:
        """Compute X_Wᵀ diag X_W, one outer product a row, in float64; anchors would fill it in."""
        del anchor, exact
        shape = (self.n_features, self.n_features)
        lower = add_in_lanes(
            self.executor,
            partial(_gram_part, self, diag),
            self.blocks,
            shape,
            in_place=True,
        )
        return lower + np.tril(lower, -1).T

    def cell_sums(
        self,
        begin: int,
        end: int,
        atoms: FloatArray,
        cell: IntArray,
        first: int,
        n_cells: int,
        anchor: IntArray,
    ) -> FloatArray:
        """Sum atoms × row over each cell of the rows [begin, end)."""
        del anchor
        return _products.csr_cell_sums(
            self.data,
            self.indices,
            self.indptr,
            self.n_features,
            atoms,
            cell,
            begin,
            end,
            first,
            n_cells,
        )


def _column_blocks(stored: IntArray) -> list[tuple[int, int]]:
    """Cut columns with so many non-zeros each into consecutive blocks of about equal work."""
    ptr = np.concatenate(([0], np.cumsum(stored, dtype=np.int64)))
    return query_ranges(ptr, NONZEROS_PER_BLOCK)


def add_in_lanes(
    executor: Executor,
    part: Any,
    items: list[Any],
    shape: tuple[int, int],
    *,
    in_place: bool = False,
    lanes: int = 4,
) -> FloatArray:
    """Add up matrices over items in a fixed number of lanes: few partial sums, fixed order.

    ``part(item)`` returns a matrix, or with ``in_place`` adds into ``part(item, total)``.
    """

    def run(lane: int) -> FloatArray:
        total = np.zeros(shape)
        for item in items[lane::lanes]:
            if in_place:
                part(item, total)
            else:
                total += part(item)
        return total

    return _sum_or_zero(executor.map(run, range(min(lanes, len(items)))), shape)


def _gram_part(
    block: SparseBlock, diag: FloatArray, at: tuple[int, int], total: FloatArray
) -> None:
    _products.csr_gram(block.data, block.indices, block.indptr, diag, at[0], at[1], total)


def _sum_or_zero(parts: list[Any], shape: Any) -> FloatArray:
    total: FloatArray = add_up(parts) if parts else np.zeros(shape)
    return total
