"""The arithmetic of the normalisers: plain functions on matrices, then their kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leanrank._jit import kernel, kernel_view
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.errors import InputError
from leanrank.execution import make_executor, query_ranges, row_blocks


def by_query(
    rows: Callable[..., Any], X: AnyArray, query_ptr: IntArray, n_jobs: int | None
) -> AnyArray:
    """Run a kernel over ranges of queries; each writes the rows of its own."""
    X = kernel_view(np.ascontiguousarray(X))
    ptr = kernel_view(query_ptr)
    out = np.empty_like(X)
    make_executor(n_jobs).map(lambda r: rows(X, ptr, r[0], r[1], out), query_ranges(ptr))
    return out


def minmax_sparse(X: Matrix, query_ptr: IntArray) -> Matrix:
    """Scale the stored entries of a CSR matrix to [0, 1] within each query and feature."""
    X = X.copy()  # scaled in place below
    X.sum_duplicates()
    n_features = X.shape[1]
    sizes = np.diff(query_ptr)
    query_of_row = np.repeat(np.arange(len(sizes)), sizes)
    stored = np.diff(X.indptr)
    cells = np.repeat(query_of_row, stored) * n_features + X.indices
    order = np.argsort(cells)
    by_cell, values = cells[order], X.data[order].astype(np.float64)
    if len(cells) == 0:
        return X
    starts = np.flatnonzero(np.concatenate(([True], np.diff(by_cell) > 0)))
    counts = np.diff(np.append(starts, len(cells)))
    low, high = np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts)
    has_zero = counts < sizes[by_cell[starts] // n_features]
    bad = np.flatnonzero(has_zero & (low < 0))
    if len(bad):
        raise InputError(
            f"feature {by_cell[starts[bad[0]]] % n_features} has negative values and unstored "
            "zeros in one query, so min–max scaling would fill a sparse X: make it dense with "
            "X.toarray() first"
        )
    low = np.where(has_zero, 0.0, low)
    high = np.where(has_zero, np.maximum(high, 0.0), high)
    cell_of = np.repeat(np.arange(len(starts)), counts)
    span = np.where(high > low, high - low, np.inf)
    X.data[order] = (values - low[cell_of]) / span[cell_of]
    return X


def column_ranges(X: Matrix) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest value of each column in float64; NaN does not count."""
    if isinstance(X, np.ndarray):
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    else:
        low, high = (part.toarray().ravel() for part in (X.nanmin(axis=0), X.nanmax(axis=0)))
    return low.astype(np.float64), high.astype(np.float64)


def mean_and_deviation(X: AnyArray) -> tuple[FloatArray, FloatArray]:
    """Give mean and deviation of each column in float64; a constant column has deviation 1."""
    mean = X.mean(axis=0, dtype=np.float64)
    squares = np.zeros(X.shape[1])
    for a, b in row_blocks(X.shape[0]):
        squares += np.square(X[a:b] - mean).sum(axis=0)
    deviation = np.sqrt(squares / X.shape[0])
    constant = X.min(axis=0) == X.max(axis=0)
    mean[constant] = X[0, constant]
    deviation[constant | (deviation == 0)] = 1.0
    return mean, deviation


def shift_and_divide(X: AnyArray, shift: FloatArray, scale: FloatArray) -> AnyArray:
    """Compute (X − shift) / scale in float64 and store it in the type of X."""
    out = np.empty_like(X)
    for a, b in row_blocks(X.shape[0]):
        out[a:b] = (X[a:b] - shift) / scale
    return out


@kernel
def minmax_rows(X: AnyArray, ptr: IntArray, q0: int, q1: int, out: AnyArray) -> None:
    """Scale the rows of queries q0:q1 to [0, 1]."""
    n_features = X.shape[1]
    low = np.empty(n_features)
    high = np.empty(n_features)
    for q in range(q0, q1):
        low[:] = np.inf
        high[:] = -np.inf
        for i in range(ptr[q], ptr[q + 1]):
            for j in range(n_features):
                low[j] = min(low[j], X[i, j])
                high[j] = max(high[j], X[i, j])
        for i in range(ptr[q], ptr[q + 1]):
            for j in range(n_features):
                span = high[j] - low[j]
                if span == 0:
                    out[i, j] = 0
                elif span < np.inf:
                    out[i, j] = (X[i, j] - low[j]) / span
                else:  # the difference of the largest numbers is not a number: halve them first
                    out[i, j] = (X[i, j] / 2 - low[j] / 2) / (high[j] / 2 - low[j] / 2)


@kernel
def standard_rows(X: AnyArray, ptr: IntArray, q0: int, q1: int, out: AnyArray) -> None:
    """Give the rows of queries q0:q1 mean 0 and deviation 1."""
    n_features = X.shape[1]
    low = np.empty(n_features)
    high = np.empty(n_features)
    mean = np.empty(n_features)
    squares = np.empty(n_features)
    for q in range(q0, q1):
        n_rows = ptr[q + 1] - ptr[q]
        low[:] = np.inf
        high[:] = -np.inf
        mean[:] = 0
        squares[:] = 0
        for i in range(ptr[q], ptr[q + 1]):
            for j in range(n_features):
                low[j] = min(low[j], X[i, j])
                high[j] = max(high[j], X[i, j])
                mean[j] += X[i, j] / n_rows
        for i in range(ptr[q], ptr[q + 1]):
            for j in range(n_features):
                squares[j] += (X[i, j] - mean[j]) ** 2
        for i in range(ptr[q], ptr[q + 1]):
            for j in range(n_features):
                if low[j] == high[j] or squares[j] == 0:
                    out[i, j] = 0
                else:
                    out[i, j] = (X[i, j] - mean[j]) / np.sqrt(squares[j] / n_rows)


@kernel
def rank_rows(X: AnyArray, ptr: IntArray, q0: int, q1: int, out: AnyArray) -> None:
    """Replace the rows of queries q0:q1 by scaled mean ranks."""
    for q in range(q0, q1):
        start = ptr[q]
        n_rows = ptr[q + 1] - start
        column = np.empty(n_rows, dtype=X.dtype)
        for j in range(X.shape[1]):
            for i in range(n_rows):
                column[i] = X[start + i, j]
            order = np.argsort(column)
            first = 0
            while first < n_rows:
                last = first
                while last + 1 < n_rows and column[order[last + 1]] == column[order[first]]:
                    last += 1
                rank = 0.5 if n_rows == 1 else (first + last) / 2 / (n_rows - 1)
                for at in range(first, last + 1):
                    out[start + order[at], j] = rank
                first = last + 1
