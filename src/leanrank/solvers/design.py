"""The products with X that solvers need, over blocks of rows or columns in a fixed order.

A design wraps the whole matrix; a *block* is a compact copy of the columns of a working set, on
which a solver can iterate without touching the rest. Sums are float64 whatever X is stored in; only
the Gram part of a Hessian uses the storage precision, because it steers and does not certify.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.execution import Executor, add_up, row_blocks
from leanrank.solvers import _products

COLUMNS_PER_BLOCK_NNZ = 1 << 20
"""Non-zeros in one unit of work over the columns of a sparse matrix."""


class Block(Protocol):
    """A compact copy of some columns."""

    n_features: int

    def matvec(self, v: FloatArray) -> FloatArray:
        """Compute X_W v."""

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g."""

    def gram(self, diag: FloatArray) -> FloatArray:
        """Compute X_Wᵀ diag X_W, up to a shift of every column by a constant."""

    def cell_sums(
        self, begin: int, end: int, atoms: FloatArray, cell: IntArray, first: int, n_cells: int
    ) -> FloatArray:
        """Sum atoms × rows over each cell of the rows [begin, end), with the shift of ``gram``."""


class Design(Protocol):
    """The whole matrix."""

    n_rows: int
    n_features: int

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw; only the columns of non-zero weights are read."""

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute Xᵀg."""

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

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute Xᵀg, block sums added in the order of the rows."""
        return _sum_or_zero(
            self.executor.map(
                lambda at: _products.dense_rmatvec(self.X, g, at[0], at[1]), self.blocks
            ),
            self.n_features,
        )

    def take(self, features: IntArray) -> DenseBlock:
        """Copy some columns, row-major; all of them are not copied."""
        if len(features) == self.n_features:
            return DenseBlock(self.X, self.executor)
        out = np.empty((self.n_rows, len(features)), dtype=self.X.dtype)
        self.executor.map(
            lambda at: np.take(self.X[at[0] : at[1]], features, axis=1, out=out[at[0] : at[1]]),
            self.blocks,
        )
        return DenseBlock(out, self.executor)


class DenseBlock(DenseDesign):
    """Some columns of a dense matrix, with what a Hessian needs.

    Columns are shifted by their mean and divided by their spread before they are squared: ranking
    losses do not see a constant added to a query's scores, and single precision would lose a small
    variance beside a large mean.
    """

    def __init__(self, X: np.ndarray[Any, Any], executor: Executor) -> None:
        super().__init__(X, executor)
        count = max(1, self.n_rows)
        self.centre = self.rmatvec(np.full(self.n_rows, 1.0 / count))
        variance = _sum_or_zero(
            executor.map(
                lambda at: _products.dense_variance(self.X, self.centre, at[0], at[1]), self.blocks
            ),
            self.n_features,
        )
        spread = np.sqrt(variance / count)
        self.spread = np.where(spread > 0, spread, 1.0)

    def gram(self, diag: FloatArray) -> FloatArray:
        """Compute (X − c)ᵀ diag (X − c) with BLAS on scaled blocks, in the precision of X."""
        root = np.sqrt(np.maximum(diag, 0.0))

        def part(at: tuple[int, int]) -> FloatArray:
            scaled = _products.dense_scaled(
                self.X, self.centre, self.spread, root, at[0], at[1]
            )
            return (scaled.T @ scaled).astype(np.float64)

        shape = (self.n_features, self.n_features)
        total = add_in_lanes(self.executor, part, self.blocks, shape)
        return total * np.outer(self.spread, self.spread)

    def cell_sums(
        self, begin: int, end: int, atoms: FloatArray, cell: IntArray, first: int, n_cells: int
    ) -> FloatArray:
        """Sum atoms × (row − c) over each cell of the rows [begin, end)."""
        return _products.dense_cell_sums(
            self.X, self.centre, atoms, cell, begin, end, first, n_cells
        )


class SparseDesign:
    """A sparse matrix in column form: a sparse weight vector touches only its own columns."""

    def __init__(self, X: Matrix, executor: Executor) -> None:
        self.n_rows, self.n_features = X.shape
        self.executor = executor
        columns = X.tocsc()
        self.data = columns.data
        self.indices = columns.indices
        self.indptr = columns.indptr
        stored = int(self.indptr[-1])
        cuts = np.searchsorted(
            self.indptr, np.arange(0, stored + COLUMNS_PER_BLOCK_NNZ, COLUMNS_PER_BLOCK_NNZ)
        )
        bounds = np.unique(np.clip(np.concatenate(([0], cuts, [self.n_features])), 0, self.n_features))
        self.column_blocks = list(zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True))

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw from the columns of non-zero weights."""
        out = np.zeros(self.n_rows)
        support = np.flatnonzero(w)
        _products.sparse_matvec(self.data, self.indices, self.indptr, support, w[support], out)
        return out

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute Xᵀg, one dot product a column."""
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
        d = self.design
        return _products.sparse_rmatvec_some(d.data, d.indices, d.indptr, self.features, g)

    def gram(self, diag: FloatArray) -> FloatArray:
        """Compute X_Wᵀ diag X_W, one outer product a row."""
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
        self, begin: int, end: int, atoms: FloatArray, cell: IntArray, first: int, n_cells: int
    ) -> FloatArray:
        """Sum atoms × row over each cell of the rows [begin, end)."""
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
