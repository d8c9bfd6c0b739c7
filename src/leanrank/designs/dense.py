"""The products with a dense X, over blocks of rows; sums in float64, in a fixed order."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

import numpy as np

from leanrank._jit import kernel, kernel_view
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.designs.base import Design, WrittenBlock
from leanrank.execution import ROWS_PER_RANGE, Executor, add_up, cached_property, row_blocks

_Part: TypeAlias = tuple[AnyArray, IntArray, tuple[int, int], slice]
"""Rows for a kernel: an X, its anchors, which of its rows, and where their vectors' entries are."""


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

    def _part(self, rows: tuple[int, int]) -> _Part:
        return self.X, self.anchor, rows, slice(None)

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw."""
        out = np.zeros(self.n_rows)

        def multiply(rows: tuple[int, int]) -> None:
            X, anchor, at, own = self._part(rows)
            dense_matvec(X, anchor, w, out[own], *at)

        self.executor.map(multiply, self.blocks)
        return out

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute Xᵀg, block sums added in the order of the rows; rows are read whole."""

        def multiply(rows: tuple[int, int]) -> FloatArray:
            X, anchor, at, own = self._part(rows)
            found: FloatArray = anchored_rmatvec(X, anchor, g[own], *at)
            return found

        parts = self.executor.map(multiply, self.blocks)
        total: FloatArray = add_up(parts) if parts else np.zeros(self.n_features)
        return total


class DenseDesign(_Rows, Design):
    """A dense matrix.

    Parameters
    ----------
    X : array
    executor : Executor
    anchor : array of int64
    most_copied : int, optional
        Bytes up to which the columns of a working set are copied. Beyond, they are taken from X
        whenever they are needed: the same bits, without the memory. By default all are copied.
    rows_per_block : int
    """

    def __init__(
        self,
        X: AnyArray,
        executor: Executor,
        anchor: IntArray,
        *,
        most_copied: int | None = None,
        rows_per_block: int = ROWS_PER_RANGE,
    ) -> None:
        super().__init__(X, executor, anchor, rows_per_block=rows_per_block)
        self.most_copied = most_copied

    def matvec(self, w: FloatArray) -> FloatArray:
        """Compute Xw; only the columns of non-zero weights are read when they are few."""
        support = np.flatnonzero(w)
        if 4 * len(support) < self.n_features:
            return _BlockByParts(self, support).matvec(w[support])
        return super().matvec(w)

    def squares(self, rows: tuple[int, int]) -> FloatArray:
        """Return the squared length of each column over some rows, less their anchors."""
        found: FloatArray = dense_squares(self.X, self.anchor, *rows)
        return found

    @cached_property
    def column_norms(self) -> FloatArray:
        """Length of each column, rows less their anchors."""
        parts = self.executor.map(self.squares, self.blocks)
        return np.sqrt(add_up(parts) if parts else np.zeros(self.n_features))

    def take(self, features: IntArray) -> DenseBlock:
        """Copy some columns, row-major, unless they are many or too large.

        Products read the whole row of X where more than a quarter of its columns are wanted, as
        ``matvec`` does: a copy would cost more than it saves.
        """
        if 4 * len(features) > self.n_features:
            return _BlockInPlace(self, features)
        n_bytes = self.n_rows * len(features) * self.X.itemsize
        if self.most_copied is not None and n_bytes > self.most_copied:
            return _BlockByParts(self, features)
        out = np.empty((self.n_rows, len(features)), dtype=self.X.dtype)
        self.executor.map(  # "clip" writes to out without a buffer
            lambda at: self.X[slice(*at)].take(features, axis=1, out=out[slice(*at)], mode="clip"),
            self.blocks,
        )
        return DenseBlock(self, features, out)


class DenseBlock(_Rows, WrittenBlock):
    """Some columns of a dense matrix, with what a Hessian needs.

    Parameters
    ----------
    design : DenseDesign
    features : array of int64
        The columns of the design.
    copied : array, optional
        A copy of them. Without it, Hessians take them from X.
    """

    def __init__(
        self, design: DenseDesign, features: IntArray, copied: AnyArray | None = None
    ) -> None:
        X = design.X if copied is None else copied
        super().__init__(X, design.executor, design.anchor, rows_per_block=design.rows_per_block)
        self.design = design
        self.features = features
        self.stored = features if copied is None else np.arange(len(features))  # columns of X
        self.whole = np.array_equal(self.stored, np.arange(X.shape[1]))
        self.n_features = len(features)
        self.n_bytes = self.n_rows * self.n_features * X.itemsize
        self.rough = X.dtype

    @cached_property
    def spread(self) -> FloatArray:
        """The divisor of each column before squaring, which could overflow in single precision."""
        spread = self.design.column_norms[self.features] / np.sqrt(max(1, self.n_rows))
        return np.where(spread > 0, spread, 1.0)

    def written(self, rows: tuple[int, int], dtype: Any, columns: slice = slice(None)) -> AnyArray:
        """Write out some rows of some columns, less their anchors, in units of their spread."""
        return self._away(rows, dtype, columns, 1.0 / self.spread[columns])

    def finish(self, gram: FloatArray, low_rank: FloatArray) -> FloatArray:
        """Subtract the low-rank part, and undo the scaling."""
        return (gram - low_rank) * np.outer(self.spread, self.spread)

    def columns(self, rows: tuple[int, int], begin: int, end: int) -> FloatArray:
        """Copy some rows of some columns, less their anchors."""
        return self._away(rows, np.float64, slice(begin, end), np.ones(end - begin))

    def _away(
        self, rows: tuple[int, int], dtype: Any, columns: slice, inverse: FloatArray
    ) -> AnyArray:
        stored = self.stored[columns]
        out = np.empty((rows[1] - rows[0], len(stored)), dtype=dtype)
        whole = self.whole and len(stored) == self.n_features
        dense_columns(self.X, self.anchor, stored, whole, inverse, *rows, out)
        return out


class _BlockInPlace(DenseBlock):
    """So many columns that it is faster to read all of X."""

    reads_all = True

    def matvec(self, v: FloatArray) -> FloatArray:
        """Compute X_W v."""
        w = np.zeros(self.design.n_features)
        w[self.features] = v
        return self.design.matvec(w)

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g, block sums added in the order of the rows."""
        return self.design.rmatvec(g)[self.features]


class _BlockByParts(DenseBlock):
    """Some columns that are too large to copy: products copy them for some rows at a time."""

    def _part(self, rows: tuple[int, int]) -> _Part:
        """Copy the columns of some rows, then the anchor of a query that began before them."""
        begin, end = rows
        n = end - begin
        anchor = self.anchor[begin:end] - begin
        before = anchor < 0
        out = np.empty((n + 1, self.n_features), dtype=self.X.dtype)
        self.X[begin:end].take(self.features, axis=1, out=out[:n], mode="clip")
        if before.any():
            out[n] = self.X[self.anchor[begin], self.features]
            anchor[before] = n
        return out, anchor, (0, n), slice(begin, end)


# Lets the compiler split one row's dot product over vector lanes and fuse products with sums. It is
# the same in every thread, so results stay reproducible.
_dot_kernel = partial(kernel, fastmath={"reassoc", "contract"})


@_dot_kernel
def dense_matvec(
    X: AnyArray, anchor: AnyArray, w: AnyArray, out: AnyArray, begin: int, end: int,
) -> None:  # fmt: skip
    n = X.shape[1]
    for i in range(begin, end):
        at = anchor[i]
        total = 0.0
        for j in range(n):
            total += (np.float64(X[i, j]) - X[at, j]) * w[j]
        out[i] = total


@_dot_kernel
def anchored_rmatvec(
    X: AnyArray, anchor: AnyArray, g: AnyArray, begin: int, end: int,
) -> FloatArray:  # fmt: skip
    n = X.shape[1]
    out = np.empty(n)
    for j in range(n):
        out[j] = 0.0
    i = begin
    while i < end:
        at = anchor[i]
        if i + 4 <= end and anchor[i + 3] == at:
            g0, g1, g2, g3 = g[i], g[i + 1], g[i + 2], g[i + 3]
            for j in range(n):
                x = np.float64(X[at, j])
                out[j] += (g0 * (X[i, j] - x) + g1 * (X[i + 1, j] - x)) + (
                    g2 * (X[i + 2, j] - x) + g3 * (X[i + 3, j] - x)
                )
            i += 4
        else:
            for j in range(n):
                out[j] += g[i] * (np.float64(X[i, j]) - X[at, j])
            i += 1
    return out


@kernel
def dense_rmatvec(X: AnyArray, g: AnyArray, begin: int, end: int) -> FloatArray:
    n = X.shape[1]
    out = np.zeros(n)
    i = begin
    while i + 4 <= end:
        g0, g1, g2, g3 = g[i], g[i + 1], g[i + 2], g[i + 3]
        for j in range(n):
            out[j] += (g0 * X[i, j] + g1 * X[i + 1, j]) + (g2 * X[i + 2, j] + g3 * X[i + 3, j])
        i += 4
    while i < end:
        for j in range(n):
            out[j] += g[i] * X[i, j]
        i += 1
    return out


@_dot_kernel
def dense_squares(X: AnyArray, anchor: AnyArray, begin: int, end: int) -> FloatArray:
    n = X.shape[1]
    out = np.empty(n)
    for j in range(n):
        out[j] = 0.0
    for i in range(begin, end):
        at = anchor[i]
        for j in range(n):
            away = np.float64(X[i, j]) - X[at, j]
            out[j] += away * away
    return out


@kernel
def dense_columns(
    X: AnyArray, anchor: AnyArray, features: IntArray, whole: bool, inverse: FloatArray,
    begin: int, end: int, out: AnyArray,
) -> None:  # fmt: skip
    """Fill rows of columns less their anchors, times ``inverse``.

    ``whole`` says that the features are all columns in order, which are read faster.
    """
    for i in range(begin, end):
        at = anchor[i]
        if whole:
            for j in range(len(features)):
                out[i - begin, j] = (np.float64(X[i, j]) - X[at, j]) * inverse[j]
        else:
            for j in range(len(features)):
                column = features[j]
                out[i - begin, j] = (np.float64(X[i, column]) - X[at, column]) * inverse[j]
