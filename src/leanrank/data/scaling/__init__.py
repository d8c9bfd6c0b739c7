"""Statistics of columns: ranges, means and variances of a matrix, which may be in parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.execution import row_blocks

Apply: TypeAlias = Callable[[Callable[[Matrix], Any]], Sequence[Any]]
"""Called as ``apply(function)``, returns ``function(X)`` of each part of X."""


def column_ranges(X: Matrix) -> tuple[FloatArray, FloatArray]:
    """Return the least and the greatest value of each column in float64; NaN is ignored."""
    if isinstance(X, np.ndarray):
        low, high = np.fmin.reduce(X, axis=0), np.fmax.reduce(X, axis=0)
    else:
        low, high = np.full((2, X.shape[1]), np.nan, dtype=X.dtype)
        for a, b in row_blocks(X.shape[0], 4_096):  # SciPy copies the block
            low = np.fmin(low, X[a:b].nanmin(axis=0).toarray().ravel())
            high = np.fmax(high, X[a:b].nanmax(axis=0).toarray().ravel())
    return low.astype(np.float64), high.astype(np.float64)


Moments: TypeAlias = tuple[FloatArray, FloatArray, FloatArray]
"""Numbers of values, means and variances of columns; NaN is ignored."""


def column_moments(apply: Apply) -> Moments:
    """Return the moments of the columns of a matrix in parts; means are 0 for a sparse one."""
    with np.errstate(all="ignore"):  # empty columns, and squares that overflow
        return _merged(apply(_moments))


def _moments(X: Matrix) -> Moments:
    from sklearn.preprocessing import StandardScaler

    found, sparse = [], not isinstance(X, np.ndarray)
    for a, b in row_blocks(X.shape[0]):
        block = X[a:b].astype(np.float64) if sparse else X[a:b]
        with np.errstate(all="ignore"):
            part = StandardScaler(with_mean=not sparse).fit(block)
        count = np.broadcast_to(np.float64(part.n_samples_seen_), X.shape[1])
        found.append((count, part.mean_, part.var_))
    return _merged(found)


def _merged(parts: Sequence[Moments]) -> Moments:
    counts, means, variances = (np.nan_to_num([part[at] for part in parts]) for at in range(3))
    total = np.maximum(counts.sum(axis=0), 1)
    mean = (counts * means).sum(axis=0) / total
    variance = (counts * (variances + (means - mean) ** 2)).sum(axis=0) / total
    return total, mean, variance


def n_values(X: Matrix) -> IntArray:
    """Count the values of each column that are neither zero nor missing."""
    if isinstance(X, np.ndarray):
        blocks = row_blocks(X.shape[0])
        return np.sum([((X[a:b] != 0) & ~np.isnan(X[a:b])).sum(axis=0) for a, b in blocks], axis=0)
    return np.bincount(X.indices[(X.data != 0) & ~np.isnan(X.data)], minlength=X.shape[1])
