"""Compiled products over ranges of rows or columns; sums in float64, in a fixed order."""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numba
import numpy as np

from leanrank._jit import kernel

# Lets the compiler split one row's dot product over vector lanes. The split is the same in every
# thread, so results stay reproducible.
_dot_kernel = numba.njit(
    cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"}
)


@_dot_kernel
def dense_matvec(X, w, out, begin, end):
    n = X.shape[1]
    for i in range(begin, end):
        total = 0.0
        for j in range(n):
            total += X[i, j] * w[j]
        out[i] = total


@kernel
def dense_matvec_some(X, features, weights, out, begin, end):
    for i in range(begin, end):
        total = 0.0
        for k in range(len(features)):
            total += X[i, features[k]] * weights[k]
        out[i] = total


@kernel
def dense_rmatvec(X, g, begin, end):
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


@kernel
def dense_variance(X, centre, begin, end):
    n = X.shape[1]
    out = np.zeros(n)
    for i in range(begin, end):
        for j in range(n):
            away = X[i, j] - centre[j]
            out[j] += away * away
    return out


@kernel
def dense_scaled(X, anchor, spread, root, begin, end, out):
    n = X.shape[1]
    inverse = 1.0 / spread
    for i in range(begin, end):
        factor = root[i]
        at = anchor[i]
        for j in range(n):
            out[i - begin, j] = factor * ((np.float64(X[i, j]) - X[at, j]) * inverse[j])


@kernel
def dense_cell_sums(X, anchor, atoms, cell, begin, end, first, n_cells):
    n = X.shape[1]
    n_atoms = atoms.shape[1]
    out = np.zeros((n_cells, n_atoms, n))
    for i in range(begin, end):
        for a in range(n_atoms):
            weight = atoms[i, a]
            if weight != 0.0:
                row = out[cell[i] - first, a]
                at = anchor[i]
                for j in range(n):
                    row[j] += weight * (np.float64(X[i, j]) - X[at, j])
    return out


@kernel
def sparse_matvec(data, indices, indptr, features, weights, out):
    for k in range(len(features)):
        w = weights[k]
        for at in range(indptr[features[k]], indptr[features[k] + 1]):
            out[indices[at]] += data[at] * w


@kernel
def sparse_rmatvec(data, indices, indptr, g, out, begin, end):
    for j in range(begin, end):
        out[j] = _column_dot(data, indices, indptr[j], indptr[j + 1], g)


@kernel
def sparse_rmatvec_some(data, indices, indptr, features, g, out, begin, end):
    for k in range(begin, end):
        j = features[k]
        out[k] = _column_dot(data, indices, indptr[j], indptr[j + 1], g)


@kernel
def _column_dot(data, indices, begin, end, g):
    # Four running sums hide the latency of the additions.
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    at = begin
    while at + 4 <= end:
        s0 += data[at] * g[indices[at]]
        s1 += data[at + 1] * g[indices[at + 1]]
        s2 += data[at + 2] * g[indices[at + 2]]
        s3 += data[at + 3] * g[indices[at + 3]]
        at += 4
    while at < end:
        s0 += data[at] * g[indices[at]]
        at += 1
    return (s0 + s1) + (s2 + s3)


@kernel
def sparse_take_rows(data, indices, indptr, features, n_rows):
    row_ptr = np.zeros(n_rows + 1, dtype=np.int64)
    for k in range(len(features)):
        for at in range(indptr[features[k]], indptr[features[k] + 1]):
            row_ptr[indices[at] + 1] += 1
    for i in range(n_rows):
        row_ptr[i + 1] += row_ptr[i]
    stored = row_ptr[n_rows]
    columns = np.empty(stored, dtype=np.int32)
    values = np.empty(stored, dtype=data.dtype)
    fill = row_ptr[:-1].copy()
    for k in range(len(features)):
        for at in range(indptr[features[k]], indptr[features[k] + 1]):
            i = indices[at]
            columns[fill[i]] = k
            values[fill[i]] = data[at]
            fill[i] += 1
    return row_ptr, columns, values


@kernel
def csr_matvec(data, indices, indptr, v, out, begin, end):
    for i in range(begin, end):
        total = 0.0
        for at in range(indptr[i], indptr[i + 1]):
            total += data[at] * v[indices[at]]
        out[i] = total


@kernel
def csr_gram(data, indices, indptr, diag, begin, end, lower):
    for i in range(begin, end):
        weight = diag[i]
        if weight != 0.0:
            for a in range(indptr[i], indptr[i + 1]):
                scaled = weight * data[a]
                row = lower[indices[a]]
                for b in range(indptr[i], a + 1):
                    row[indices[b]] += scaled * data[b]


@kernel
def csr_cell_sums(data, indices, indptr, n_features, atoms, cell, begin, end, first, n_cells):
    n_atoms = atoms.shape[1]
    out = np.zeros((n_cells, n_atoms, n_features))
    for i in range(begin, end):
        for a in range(n_atoms):
            weight = atoms[i, a]
            if weight != 0.0:
                row = out[cell[i] - first, a]
                for at in range(indptr[i], indptr[i + 1]):
                    row[indices[at]] += weight * data[at]
    return out
