"""Differences of two documents, dense or sparse, and their products with weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from leanrank._jit import kernel, kernel_view
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix


class PairRows(NamedTuple):
    """Documents for kernels: a dense array, or the three arrays of a CSR array."""

    dense: AnyArray
    indptr: AnyArray
    indices: AnyArray
    values: AnyArray


def as_rows(X: Matrix) -> PairRows:
    """Return a matrix for kernels; the arrays of the other form are empty."""
    if isinstance(X, np.ndarray):
        none = np.empty(0, dtype=np.int32)
        return PairRows(kernel_view(X), none, none, np.empty(0, dtype=X.dtype))
    if not X.has_sorted_indices:
        X = X.sorted_indices()
    return PairRows(
        np.empty((0, 0), dtype=X.dtype),
        kernel_view(X.indptr),
        kernel_view(X.indices),
        kernel_view(X.data),
    )


def pair_width(X: Matrix) -> int:
    """Return the largest number of features in which two documents may differ."""
    if isinstance(X, np.ndarray):
        return int(X.shape[1])
    longest = int(np.diff(X.indptr).max(initial=0))
    return min(int(X.shape[1]), 2 * longest)


class Buffers(NamedTuple):
    """Working memory for pairs and their differences."""

    pairs: IntArray
    features: IntArray
    values: FloatArray
    counts: IntArray


def make_buffers(width: int, n_pairs: int | None = None) -> Buffers:
    """Return memory for ``n_pairs``; the default was set by ``benchmarks stochastic``."""
    if n_pairs is None:
        n_pairs = min(64, max(1, 4096 // max(width, 1)))
    every = np.arange(max(width, 1), dtype=np.int64)  # the features of a dense matrix
    return Buffers(
        pairs=np.zeros((n_pairs, 2), dtype=np.int64),
        features=np.tile(every, (n_pairs, 1)),
        values=np.zeros((n_pairs, len(every))),
        counts=np.zeros(n_pairs, dtype=np.int64),
    )


@kernel
def fill_differences(rows, pairs, n_pairs, features, values, counts):  # type: ignore[no-untyped-def]
    """Fill for each pair the features in which its documents differ, the differences, and a count.

    For a dense matrix, all differences are filled, and ``features`` is not changed. Many pairs are
    filled in one call, so that reads of distant rows overlap.
    """
    if rows.dense.shape[0] > 0:
        dense = rows.dense
        for t in range(n_pairs):
            a, b = pairs[t, 0], pairs[t, 1]
            for j in range(dense.shape[1]):
                values[t, j] = np.float64(dense[a, j]) - np.float64(dense[b, j])
            counts[t] = dense.shape[1]
        return
    indptr, indices, data = rows.indptr, rows.indices, rows.values
    for t in range(n_pairs):
        counts[t] = _sparse_difference(
            indptr, indices, data, pairs[t, 0], pairs[t, 1], features[t], values[t]
        )


@kernel
def _sparse_difference(indptr, indices, data, a, b, features, values):  # type: ignore[no-untyped-def]
    n = 0
    i, i_end = indptr[a], indptr[a + 1]
    k, k_end = indptr[b], indptr[b + 1]
    while i < i_end or k < k_end:
        if k >= k_end or (i < i_end and indices[i] < indices[k]):
            features[n] = indices[i]
            values[n] = data[i]
            i += 1
        elif i >= i_end or indices[k] < indices[i]:
            features[n] = indices[k]
            values[n] = -data[k]
            k += 1
        else:
            features[n] = indices[i]
            values[n] = np.float64(data[i]) - np.float64(data[k])
            i += 1
            k += 1
        if values[n] != 0.0:  # equal values are left out
            n += 1
    return n


@kernel
def dot(is_dense, weights, features, values, at, n):  # type: ignore[no-untyped-def]
    """Return the product of weights and the difference in row ``at``.

    Four partial sums hide the latency of additions. Rows are not sliced, since counting references
    to a slice would take longer than the product.
    """
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = n - n % 4
    if is_dense:
        for j in range(0, whole, 4):
            s0 += weights[j] * values[at, j]
            s1 += weights[j + 1] * values[at, j + 1]
            s2 += weights[j + 2] * values[at, j + 2]
            s3 += weights[j + 3] * values[at, j + 3]
    else:
        for j in range(0, whole, 4):
            s0 += weights[features[at, j]] * values[at, j]
            s1 += weights[features[at, j + 1]] * values[at, j + 1]
            s2 += weights[features[at, j + 2]] * values[at, j + 2]
            s3 += weights[features[at, j + 3]] * values[at, j + 3]
    for j in range(whole, n):
        s0 += weights[j if is_dense else features[at, j]] * values[at, j]
    return (s0 + s1) + (s2 + s3)


@kernel
def add(is_dense, weights, features, values, at, n, factor):  # type: ignore[no-untyped-def]
    """Add a multiple of a difference to weights."""
    if is_dense:
        for j in range(n):
            weights[j] += factor * values[at, j]
    else:
        for j in range(n):
            weights[features[at, j]] += factor * values[at, j]


@kernel
def squared_norm(values, at, n):  # type: ignore[no-untyped-def]
    """Return the squared norm of a difference."""
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    whole = n - n % 4
    for j in range(0, whole, 4):
        s0 += values[at, j] * values[at, j]
        s1 += values[at, j + 1] * values[at, j + 1]
        s2 += values[at, j + 2] * values[at, j + 2]
        s3 += values[at, j + 3] * values[at, j + 3]
    for j in range(whole, n):
        s0 += values[at, j] * values[at, j]
    return (s0 + s1) + (s2 + s3)
