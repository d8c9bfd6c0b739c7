"""The products with X that solvers need, over blocks of rows or columns in a fixed order.

A design wraps the whole matrix; a *block* is a compact copy of the columns of a working set, on
which a solver iterates without touching the rest. Sums are float64 whatever X is stored in; only
the Gram part of a Hessian uses the storage precision: no certificate depends on it.

The *anchor*, one row of each query, is subtracted from the query's rows. Ranking losses do not
change when a constant is added to a query's scores, and their score gradients add up to zero in a
query, so products keep their meaning. Without it, a column whose offset is large beside its spread
would lose significant digits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self, TypeAlias

import numpy as np

from leanrank._jit import kernel
from leanrank._mapped import is_mapped
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.execution import Executor, row_blocks
from leanrank.losses.base import Curvature

MOST_COPIED_BYTES = 64 << 20
"""Largest copy that a design may keep of an X in a mapped file, which may exceed memory."""

ROWS_AT_ONCE = 2_048
"""Rows of which columns are written out at a time, so that they stay in a cache."""


class WeightedColumns(NamedTuple):
    """Columns times the root of a curvature, compressed to the rows that were picked.

    Column j is ``values[starts[j]:ends[j]]`` at ``rows[starts[j]:ends[j]]``, scaled to its
    ``squares`` over all rows; ``extra`` has the squares of columns without an entry there.
    """

    values: AnyArray
    rows: AnyArray
    starts: IntArray
    ends: IntArray
    squares: FloatArray
    extra: FloatArray
    n_rows: int


Fold: TypeAlias = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


class Block(ABC):
    """Some columns, as a working set needs them.

    Attributes
    ----------
    n_features, n_bytes : int
    picks_rows : bool
        Whether ``sampled`` and ``weighed`` are available, for models of some rows.
    reads_all : bool
        Whether products cost as much as those of the whole design.
    """

    n_features: int
    n_bytes: int
    picks_rows: ClassVar[bool] = False
    reads_all: bool = False

    @abstractmethod
    def matvec(self, v: FloatArray) -> FloatArray:
        """Compute X_W v, each row less its anchor."""

    @abstractmethod
    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g for a g that adds up to zero in each query."""

    @abstractmethod
    def add_rows(
        self,
        curvature: Curvature,
        rows: tuple[int, int],
        first_cell: int,
        gram: FloatArray,
        sums: FloatArray,
    ) -> None:
        """Add some rows' outer products to ``gram`` and their atoms × rows to their cells' sums."""

    @abstractmethod
    def finish(self, gram: FloatArray, low_rank: FloatArray) -> FloatArray:
        """Return X_Wᵀ diag X_W − low_rank from what rows added up to."""

    @abstractmethod
    def columns(self, rows: tuple[int, int], begin: int, end: int) -> FloatArray:
        """Copy some rows of columns [begin, end), dense and in float64."""

    @abstractmethod
    def cross(self, rows: tuple[int, int], values: FloatArray) -> FloatArray:
        """Compute X_Wᵀ values over some rows; each column of values adds up to 0 in a query."""

    def weighed(
        self, curvature: Curvature, n_picked: int | None
    ) -> tuple[WeightedColumns, FloatArray]:
        """Weigh the columns by the root of the curvature, in about ``n_picked`` rows or in all.

        A number above that of the rows thins only those whose curvature is far below the mean.
        Returns their sums over cells as well.
        """
        raise NotImplementedError(f"{type(self).__name__} does not weigh columns")

    def sampled(self, curvature: Curvature, n_picked: int, n_lanes: int, fold: Fold) -> FloatArray:
        """Compute the Hessian from about ``n_picked`` rows; ``fold`` turns cell sums into L, R."""
        raise NotImplementedError(f"{type(self).__name__} does not pick rows")


class WrittenBlock(Block):
    """Columns that are written out, some rows at a time, where a Hessian needs them.

    Attributes
    ----------
    rough : dtype
        What Hessians are added up in that need not be exact.
    feature : array of int64, optional
        The feature, or pair, of each column, if those of one are similar; they are neighbours.
    """

    rough: Any = np.float32
    feature: IntArray | None = None

    @property
    def values_per_product(self) -> int:
        """Cost of a product per row, in values of a stored column."""
        return self.n_features

    def of_rows(self, rows: list[tuple[int, int]]) -> Self:
        """Return a block whose products are of some rows; those of others count as zero."""
        raise NotImplementedError(f"{type(self).__name__} has no products of some rows")

    @abstractmethod
    def written(self, rows: tuple[int, int], dtype: Any, columns: slice = slice(None)) -> AnyArray:
        """Write out some rows of some columns, in units in which nothing overflows."""

    def add_rows(
        self,
        curvature: Curvature,
        rows: tuple[int, int],
        first_cell: int,
        gram: FloatArray,
        sums: FloatArray,
    ) -> None:
        """Write out some rows at a time and add them with BLAS."""
        dtype = np.float64 if curvature.exact else self.rough
        for low, high in row_blocks(rows[1] - rows[0], ROWS_AT_ONCE):
            begin, end = rows[0] + low, rows[0] + high
            part = self.written((begin, end), dtype)
            _sum_and_scale(
                part, curvature.diag, curvature.atoms, curvature.cell, first_cell, begin, sums
            )
            gram += part.T @ part

    def finish(self, gram: FloatArray, low_rank: FloatArray) -> FloatArray:
        """Subtract the low-rank part."""
        return gram - low_rank

    def columns(self, rows: tuple[int, int], begin: int, end: int) -> FloatArray:
        """Write out some rows of some columns."""
        return self.written(rows, np.float64, slice(begin, end))

    def cross(self, rows: tuple[int, int], values: FloatArray) -> FloatArray:
        """Multiply with BLAS, some rows at a time."""
        out = np.zeros((self.n_features, values.shape[1]))
        for low, high in row_blocks(rows[1] - rows[0], ROWS_AT_ONCE):
            part = self.columns((rows[0] + low, rows[0] + high), 0, self.n_features)
            out += part.T @ values[low:high]
        return out


class Design(ABC):
    """The whole matrix.

    Attributes
    ----------
    n_rows, n_features, n_bytes : int
    executor : Executor
    anchor : array of int64
        The anchor of each row.
    """

    n_rows: int
    n_features: int
    n_bytes: int
    executor: Executor
    anchor: IntArray

    @abstractmethod
    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw, each row less its anchor; only columns of non-zero weights are read."""

    @abstractmethod
    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute Xᵀg for a g that adds up to zero in each query."""

    @abstractmethod
    def take(self, features: IntArray) -> Block:
        """Copy some columns into a compact block."""

    def squares(self, rows: tuple[int, int]) -> FloatArray | None:
        """Return the squared length of each column over some rows; None where none are sampled."""
        del rows
        return None

    @property
    @abstractmethod
    def column_norms(self) -> FloatArray:
        """Length of each column: a feature's gradient is at most that × ‖g‖."""

    @property
    def summed_norms(self) -> FloatArray:
        """Length of the numbers that a column's products add up, which sets their rounding."""
        return self.column_norms


def make_design(
    X: Matrix | Design, executor: Executor | None = None, query_ptr: IntArray | None = None
) -> Design:
    """Wrap a C-contiguous array or a SciPy CSR array; a design is returned as it is.

    Parameters
    ----------
    X : array, SciPy CSR array or Design
    executor : Executor, optional
    query_ptr : array of int64, optional
        Where queries begin; each row's anchor is the first of its query. None: the first of all.
    """
    if isinstance(X, Design):
        return X
    executor = Executor() if executor is None else executor
    n_rows = int(X.shape[0])
    anchor = np.zeros(n_rows, dtype=np.int64)
    if query_ptr is not None:
        anchor = np.repeat(np.asarray(query_ptr[:-1], np.int64), np.diff(query_ptr))
    if isinstance(X, np.ndarray):
        from leanrank.designs.dense import DenseDesign

        return DenseDesign(
            X, executor, anchor, most_copied=MOST_COPIED_BYTES if is_mapped(X) else None
        )
    from leanrank.designs.sparse import SparseDesign

    return SparseDesign(X, executor, anchor)


@kernel
def _sum_and_scale(
    columns: AnyArray, diag: FloatArray, atoms: FloatArray, cell: IntArray, first: int, begin: int,
    sums: FloatArray,
) -> None:  # fmt: skip
    """Add atoms × rows to their cells' sums, then multiply each row by the root of its weight."""
    n = columns.shape[1]
    for r in range(len(columns)):
        i = begin + r
        for a in range(atoms.shape[1]):
            weight = atoms[i, a]
            if weight != 0.0:
                row = sums[cell[i] - first, a]
                for c in range(n):
                    row[c] += weight * columns[r, c]
        factor = np.sqrt(max(diag[i], 0.0))
        for c in range(n):
            columns[r, c] *= factor
