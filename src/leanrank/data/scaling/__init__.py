"""Bringing features to comparable ranges: the arithmetic, plain functions on matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from leanrank._mapped import empty_beside, is_mapped
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.execution import make_executor, query_ranges, row_blocks

Apply: TypeAlias = Callable[..., list[Any]]
"""Called as ``apply(function, *more)``, returns ``function(X, *more)`` of each part of X."""


def by_query(how: str, X: AnyArray, query_ptr: IntArray, n_jobs: int | None) -> AnyArray:
    """Scale each query by itself: "minmax", "standard" or "rank"."""
    X = np.ascontiguousarray(X)
    out = empty_beside(X)
    ptr = np.unique(query_ptr)  # without empty queries

    def scale(queries: tuple[int, int]) -> None:
        own = ptr[queries[0] : queries[1] + 1]
        rows = slice(own[0], own[-1])
        out[rows] = _BY_QUERY[how](X[rows].astype(np.float64), own[:-1] - own[0], np.diff(own))

    make_executor(n_jobs).map(scale, query_ranges(ptr))
    return out


def _minmax(X: FloatArray, starts: IntArray, sizes: IntArray) -> FloatArray:
    low, high = (f.reduceat(X, starts, axis=0) for f in (np.minimum, np.maximum))
    span = high - low
    span[span == 0] = np.inf
    X -= np.repeat(low, sizes, axis=0)
    X /= np.repeat(span, sizes, axis=0)
    return X


def _standard(X: FloatArray, starts: IntArray, sizes: IntArray) -> FloatArray:
    low, high = (f.reduceat(X, starts, axis=0) for f in (np.minimum, np.maximum))
    mean = np.add.reduceat(X, starts, axis=0) / sizes[:, None]
    X -= np.repeat(mean, sizes, axis=0)
    deviation = np.sqrt(np.add.reduceat(X**2, starts, axis=0) / sizes[:, None])
    deviation[(deviation == 0) | (low == high)] = np.inf
    X /= np.repeat(deviation, sizes, axis=0)
    return X


def _rank(X: FloatArray, starts: IntArray, sizes: IntArray) -> FloatArray:
    from scipy.stats import rankdata

    for start, n_rows in zip(starts.tolist(), sizes.tolist(), strict=True):
        rows = X[start : start + n_rows]
        rows[:] = (rankdata(rows, axis=0) - 1) / (n_rows - 1) if n_rows > 1 else 0.5
    return X


_BY_QUERY = {"minmax": _minmax, "standard": _standard, "rank": _rank}


def column_ranges(X: Matrix) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest value of each column in float64; NaN does not count."""
    if isinstance(X, np.ndarray):
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    else:
        low, high = np.full((2, X.shape[1]), np.nan, dtype=X.dtype)
        for a, b in row_blocks(X.shape[0], 4_096):  # SciPy copies what it reads by column
            low = np.fmin(low, X[a:b].nanmin(axis=0).toarray().ravel())
            high = np.fmax(high, X[a:b].nanmax(axis=0).toarray().ravel())
    return low.astype(np.float64), high.astype(np.float64)


def ranges_of_parts(apply: Apply) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest value of each column of a matrix in parts."""
    low, high = zip(*apply(column_ranges), strict=True)
    return np.fmin.reduce(low), np.fmax.reduce(high)


class Moments(NamedTuple):
    """Numbers of values, means and variances of columns, and whether X is sparse."""

    n_values: FloatArray
    mean: FloatArray
    variance: FloatArray
    sparse: bool


def moments_of_parts(apply: Apply) -> Moments:
    """Return the moments of the columns of a matrix in parts; NaN does not count."""
    with np.errstate(all="ignore"):  # columns without a value, and beyond the range of squares
        return _merged(apply(_moments))


def _moments(X: Matrix) -> Moments:
    from sklearn.preprocessing import StandardScaler

    found = []
    sparse = not isinstance(X, np.ndarray)
    for a, b in row_blocks(X.shape[0]):
        block = X[a:b].astype(np.float64) if sparse else X[a:b]
        with np.errstate(all="ignore"):
            part = StandardScaler(with_mean=not sparse).fit(block)
        count = np.broadcast_to(np.float64(part.n_samples_seen_), X.shape[1])
        found.append(Moments(count, part.mean_, part.var_, sparse))
    return _merged(found)


def _merged(parts: list[Moments]) -> Moments:
    counts, means, variances = (np.nan_to_num([part[at] for part in parts]) for at in range(3))
    total = np.maximum(counts.sum(axis=0), 1)
    mean = (counts * means).sum(axis=0) / total
    variance = (counts * (variances + (means - mean) ** 2)).sum(axis=0) / total
    return Moments(total, mean, variance, parts[0].sparse)


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
    scaled = type(X)((values, X.indices, X.indptr), shape=X.shape, copy=not is_mapped(X))
    scaled.has_canonical_format = X.has_canonical_format
    return scaled
