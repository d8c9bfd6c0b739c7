"""The arithmetic of the normalisers: plain functions on matrices."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from leanrank._mapped import empty_beside, is_mapped
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.errors import InputError
from leanrank.execution import add_up, make_executor, query_ranges, row_blocks

Apply: TypeAlias = Callable[..., list[Any]]
"""Called as ``apply(function, *more)``, returns ``function(X, *more)`` of each part of X."""


def by_query(
    how: str, X: AnyArray, query_ptr: IntArray, n_jobs: int | None, *, most_in_numpy: int = 100_000
) -> AnyArray:
    """Scale each query by itself: "minmax", "standard" or "rank".

    Up to ``most_in_numpy`` rows no kernel is used, so that scoring with a saved model compiles
    nothing. The bits are the same either way.
    """
    X = np.ascontiguousarray(X)
    out = empty_beside(X)
    if len(X) <= most_in_numpy:
        for start, stop in pairwise(query_ptr.tolist()):
            if start < stop:
                out[start:stop] = _IN_NUMPY[how](X[start:stop].astype(np.float64))
        return out
    from leanrank._jit import kernel_view
    from leanrank.data.scaling.kernels import KERNELS

    X, ptr, rows = kernel_view(X), kernel_view(query_ptr), KERNELS[how]
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
            f"feature f{by_cell[starts[bad[0]]] % n_features + 1} has negative values and unstored "
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
        low, high = _over_rows(np.fmin, X), _over_rows(np.fmax, X)
    else:
        low, high = np.full((2, X.shape[1]), np.nan, dtype=X.dtype)
        for a, b in row_blocks(X.shape[0], 4_096):  # SciPy copies what it reads by column
            low = np.fmin(low, X[a:b].nanmin(axis=0).toarray().ravel())
            high = np.fmax(high, X[a:b].nanmax(axis=0).toarray().ravel())
    return low.astype(np.float64), high.astype(np.float64)


def _over_rows(function: np.ufunc, X: AnyArray, values_at_once: int = 4_096) -> AnyArray:
    """Reduce over rows, several of them side by side: NumPy is slow on short rows."""
    width = max(1, values_at_once // max(1, X.shape[1]))
    whole = len(X) - len(X) % width
    if whole:
        first = function.reduce(X[:whole].reshape(-1, width * X.shape[1]), axis=0)
        X = np.concatenate([first.reshape(width, X.shape[1]), X[whole:]])
    return np.asarray(function.reduce(X, axis=0))


def ranges_of_parts(apply: Apply) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest value of each column of a matrix in parts."""
    found = apply(column_ranges)
    low, high = ([each[end] for each in found] for end in (0, 1))
    return np.fmin.reduce(low), np.fmax.reduce(high)


def mean_and_deviation(apply: Apply) -> tuple[FloatArray, FloatArray]:
    """Return mean and deviation of each column in float64; a constant column has deviation 1.

    Missing values (NaN) do not count.
    The mean of a sparse X is returned as 0: centring would fill it, and rankers compare documents
    of one query, between which a shift of a column makes no difference.

    ``apply(function, *more)`` returns ``function(X, *more)`` of each part of X; the sums are added
    in the order of the parts.
    """
    low, high = ranges_of_parts(apply)
    mean, deviation, sparse = moments(apply, low, high)
    deviation[(low == high) | (deviation == 0)] = 1.0
    return np.zeros(len(mean)) if sparse else mean, deviation


def moments(apply: Apply, low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray, bool]:
    """Return mean and deviation of columns of these ranges, and whether X is sparse."""
    scale = _powers_of_two(low, high)
    if (scale != 1).any():
        scaled = moments(partial(apply, _of_scaled, scale), low / scale, high / scale)
        return scaled[0] * scale, scaled[1] * scale, scaled[2]
    found = apply(_sums)
    n_values = np.maximum(add_up([counts for _, counts, _ in found]), 1)
    mean = add_up([sums for sums, _, _ in found]) / n_values
    sparse = found[0][2]
    if not sparse:
        mean[low == high] = low[low == high]
    return mean, np.sqrt(add_up(apply(_squares, mean)) / n_values), sparse


def _powers_of_two(low: FloatArray, high: FloatArray) -> FloatArray:
    """Return the scale of columns whose squares may leave the range of doubles, 1 for others."""
    exponents = np.frexp(np.fmax(np.abs(low), np.abs(high)))[1]
    # 2^1000 because 2^1074, for the least number there is, is none
    return np.ldexp(1.0, np.where(np.abs(exponents) > 400, np.clip(exponents, -1000, 1000), 0))


def _of_scaled(
    X: Matrix, scale: FloatArray, function: Callable[..., Any], *more: FloatArray
) -> Any:
    """Return a function of X with its columns divided by a scale."""
    dense = isinstance(X, np.ndarray)
    scaled = shift_and_divide(X, np.zeros(1), scale) if dense else divide_entries(X, scale)
    return function(scaled, *more)


def _sums(X: Matrix) -> tuple[FloatArray, IntArray, bool]:
    """Return the sum and the number of the values of each column, and whether X is sparse."""
    if isinstance(X, np.ndarray):
        sums = X.sum(axis=0, dtype=np.float64)
        if not np.isnan(sums).any():
            return sums, np.full(X.shape[1], X.shape[0]), False
        there = np.count_nonzero(~np.isnan(X), axis=0)
        return np.nansum(X, axis=0, dtype=np.float64), there, False
    stored, width = ~np.isnan(X.data), X.shape[1]
    at, values = X.indices[stored], X.data[stored].astype(np.float64)
    missing = np.bincount(X.indices[~stored], minlength=width)
    sums = np.bincount(at, values, width).astype(np.float64, copy=False)
    return sums, X.shape[0] - missing, True


def _squares(X: Matrix, mean: FloatArray) -> FloatArray:
    """Return the sum of the squared differences from a mean in each column."""
    if isinstance(X, np.ndarray):
        squares = np.zeros(X.shape[1])
        for a, b in row_blocks(X.shape[0]):
            block = np.square(X[a:b] - mean)
            total = block.sum(axis=0)
            squares += np.nansum(block, axis=0) if np.isnan(total).any() else total
        return squares
    there, width = ~np.isnan(X.data), X.shape[1]
    at, values = X.indices[there], X.data[there].astype(np.float64)
    unstored = X.shape[0] - np.bincount(X.indices, minlength=width)
    return np.bincount(at, np.square(values - mean[at]), width) + unstored * np.square(mean)


def shift_and_divide(X: AnyArray, shift: FloatArray, scale: FloatArray) -> AnyArray:
    """Compute (X − shift) / scale in float64 and store it in the type of X."""
    out = empty_beside(X)
    for a, b in row_blocks(X.shape[0]):
        out[a:b] = (X[a:b] - shift) / scale
    return out


def divide_entries(X: Matrix, scale: FloatArray) -> Matrix:
    """Divide the stored entries of a CSR matrix by one number per column."""
    values = empty_beside(X.data)
    for a, b in row_blocks(len(values), 1 << 20):
        values[a:b] = X.data[a:b] / scale[X.indices[a:b]]
    if is_mapped(X):
        scaled = type(X)((values, X.indices, X.indptr), shape=X.shape, copy=False)
        scaled.has_canonical_format = X.has_canonical_format
        return scaled
    scaled = X.copy()
    scaled.data = values
    return scaled


def _minmax(X: FloatArray) -> FloatArray:
    low, high = X.min(axis=0), X.max(axis=0)
    with np.errstate(over="ignore", invalid="ignore"):
        span = high - low
        # the difference of the largest numbers is not a number: halve them first
        scaled = np.where(span < np.inf, (X - low) / span, (X / 2 - low / 2) / (high / 2 - low / 2))
    return np.where(span == 0, 0.0, scaled)


def _standard(X: FloatArray) -> FloatArray:
    n_rows = len(X)
    mean = np.add.accumulate(X / n_rows, axis=0)[-1]  # row after row, as the kernel adds
    with np.errstate(over="ignore", invalid="ignore"):
        squares = np.add.accumulate((X - mean) ** 2, axis=0)[-1]
        scaled = (X - mean) / np.sqrt(squares / n_rows)
    return np.where((X.min(axis=0) == X.max(axis=0)) | (squares == 0), 0.0, scaled)


def _rank(X: FloatArray, most_compared: int = 64) -> FloatArray:
    n_rows = len(X)
    if n_rows == 1:
        return np.full(X.shape, 0.5)
    if n_rows <= most_compared:  # all pairs are quicker than a sort per column
        below = (X[None] < X[:, None]).sum(axis=1)
        same = (X[None] == X[:, None]).sum(axis=1)
        return np.asarray((below + below + same - 1) / 2 / (n_rows - 1))
    ranks = np.empty(X.shape)
    for j, column in enumerate(X.T):
        ordered = np.sort(column)
        first = np.searchsorted(ordered, column, side="left")
        last = np.searchsorted(ordered, column, side="right") - 1
        ranks[:, j] = (first + last) / 2 / (n_rows - 1)
    return ranks


_IN_NUMPY = {"minmax": _minmax, "standard": _standard, "rank": _rank}
