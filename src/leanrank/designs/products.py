"""Compiled products over ranges of rows or columns; sums in float64, in a fixed order."""

from __future__ import annotations

from functools import partial

import numpy as np

from leanrank._jit import column_dot, kernel
from leanrank._typing import AnyArray, FloatArray, IntArray

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


@kernel
def dense_matvec_some(
    X: AnyArray, anchor: AnyArray, features: IntArray, weights: AnyArray, out: AnyArray, begin: int,
    end: int,
) -> None:  # fmt: skip
    for i in range(begin, end):
        at = anchor[i]
        total = 0.0
        for k in range(len(features)):
            total += (np.float64(X[i, features[k]]) - X[at, features[k]]) * weights[k]
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
    X: AnyArray, anchor: AnyArray, features: IntArray, begin: int, end: int, out: AnyArray,
) -> None:  # fmt: skip
    for i in range(begin, end):
        a = anchor[i]
        for j in range(len(features)):
            out[i - begin, j] = np.float64(X[i, features[j]]) - np.float64(X[a, features[j]])


@_dot_kernel
def dense_weighed(
    X: AnyArray, anchor: AnyArray, features: IntArray, whole: bool, spread: FloatArray,
    diag: AnyArray, atoms: AnyArray, cell: IntArray, begin: int, end: int, first: int,
    scaled: AnyArray, sums: AnyArray,
) -> None:  # fmt: skip
    """Fill rows in units of columns times the root of their weights, and add them to the sums of
    their cells.

    ``whole`` says that the features are all columns in order, which are read faster.
    """
    n = len(features)
    inverse, away = np.empty(n), np.empty(n)
    for j in range(n):
        inverse[j] = 1.0 / spread[j]
    for i in range(begin, end):
        at = anchor[i]
        for j in range(n):
            column = j if whole else features[j]
            away[j] = np.float64(X[i, column]) - X[at, column]
        factor = np.sqrt(max(diag[i], 0.0))
        for j in range(n):
            scaled[i - begin, j] = factor * (away[j] * inverse[j])
        for a in range(atoms.shape[1]):
            weight = atoms[i, a]
            if weight != 0.0:
                row = sums[cell[i] - first, a]
                for j in range(n):
                    row[j] += weight * away[j]


@kernel
def subtract_anchors(
    data: AnyArray, indices: AnyArray, indptr: AnyArray, anchor: AnyArray, sizes: IntArray,
    far: FloatArray,
) -> bool:  # fmt: skip
    """Subtract the anchor's value where all values of a query are close to it; return if any are.

    The difference of two numbers within a factor of two is exact.
    """
    changed = False
    for j in range(len(indptr) - 1):
        at = indptr[j]
        while at < indptr[j + 1]:
            row = anchor[indices[at]]
            end = at + sizes[row]
            base = data[at]
            close = end <= indptr[j + 1] and indices[end - 1] - row == sizes[row] - 1
            k = at
            while close and k < end:
                close = abs(data[k] - base) < far * abs(base)
                k += 1
            if close:
                changed = True
                for k in range(at, end):
                    data[k] -= base
                at = end
            else:
                while at < indptr[j + 1] and anchor[indices[at]] == row:
                    at += 1
    return changed


@kernel
def turn(
    data: AnyArray, indices: AnyArray, indptr: AnyArray, out_data: AnyArray,
    out_indices: AnyArray, out_indptr: AnyArray,
) -> None:  # fmt: skip
    """Fill the arrays of a compressed matrix along its other dimension."""
    n = len(out_indptr) - 1
    for at in range(len(indices)):
        out_indptr[indices[at] + 1] += 1
    for j in range(n):
        out_indptr[j + 1] += out_indptr[j]
    nexts = out_indptr[:n].copy()
    for i in range(len(indptr) - 1):
        for at in range(indptr[i], indptr[i + 1]):
            place = nexts[indices[at]]
            nexts[indices[at]] += 1
            out_data[place] = data[at]
            out_indices[place] = i


@kernel
def sparse_matvec(
    data: AnyArray, indices: AnyArray, starts: IntArray, ends: IntArray, weights: AnyArray,
    out: AnyArray,
) -> None:  # fmt: skip
    for k in range(len(weights)):
        w = weights[k]
        for at in range(starts[k], ends[k]):
            out[indices[at]] += data[at] * w


@kernel
def sparse_bands(
    indices: AnyArray, indptr: AnyArray, features: IntArray, edges: IntArray,
) -> IntArray:  # fmt: skip
    out = np.empty((len(edges), len(features)), dtype=np.int64)
    for k in range(len(features)):
        begin, end = indptr[features[k]], indptr[features[k] + 1]
        column = indices[begin:end]
        for b in range(len(edges)):
            out[b, k] = begin + np.searchsorted(column, edges[b])
    return out


@kernel
def sparse_norms(
    data: AnyArray, indptr: AnyArray, n_rows: int, centred: FloatArray, plain: FloatArray,
    begin: int, end: int,
) -> None:  # fmt: skip
    """Fill the length of each column less its mean, and as it is."""
    for j in range(begin, end):
        total = 0.0
        for at in range(indptr[j], indptr[j + 1]):
            total += data[at]
        mean = total / n_rows
        stored = indptr[j + 1] - indptr[j]
        squares = (n_rows - stored) * mean * mean
        whole = 0.0
        for at in range(indptr[j], indptr[j + 1]):
            squares += (data[at] - mean) ** 2
            whole += np.float64(data[at]) ** 2
        centred[j] = np.sqrt(squares)
        plain[j] = np.sqrt(whole)


@kernel
def sparse_columns(
    data: AnyArray, indices: AnyArray, indptr: AnyArray, features: IntArray, begin: int, end: int,
    out: AnyArray,
) -> None:  # fmt: skip
    for f in range(len(features)):
        low, high = _between(indices, indptr[features[f]], indptr[features[f] + 1], begin, end)
        for at in range(low, high):
            out[indices[at] - begin, f] = data[at]


@kernel
def sparse_cross(
    data: AnyArray, indices: AnyArray, indptr: AnyArray, features: IntArray, begin: int, end: int,
    values: AnyArray, out: AnyArray,
) -> None:  # fmt: skip
    for f in range(len(features)):
        low, high = _between(indices, indptr[features[f]], indptr[features[f] + 1], begin, end)
        for at in range(low, high):
            x, i = data[at], indices[at] - begin
            for j in range(values.shape[1]):
                out[f, j] += x * values[i, j]


@kernel
def _between(indices: AnyArray, low: int, high: int, begin: int, end: int) -> tuple[int, int]:
    """Return where the entries of rows [begin, end) lie among a column's."""
    column = indices[low:high]
    return low + int(np.searchsorted(column, begin)), low + int(np.searchsorted(column, end))


@kernel
def sparse_rmatvec(
    data: AnyArray, indices: AnyArray, indptr: AnyArray, g: AnyArray, out: AnyArray, begin: int,
    end: int,
) -> None:  # fmt: skip
    for j in range(begin, end):
        out[j] = column_dot(data, indices, indptr[j], indptr[j + 1], g)


@kernel
def sparse_rmatvec_some(
    data: AnyArray, indices: AnyArray, indptr: AnyArray, features: IntArray, g: AnyArray,
    out: AnyArray, begin: int, end: int,
) -> None:  # fmt: skip
    for k in range(begin, end):
        j = features[k]
        out[k] = column_dot(data, indices, indptr[j], indptr[j + 1], g)
