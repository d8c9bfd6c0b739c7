"""Kernels that add up XᵀDX of sparse columns, row by row.

The few most frequent columns, the *head*, are filled out with zeros and go as dense rows: most
products of a row involve them, and on dense rows the compiler and BLAS work many at a time. Only
products within the rest, the *tail*, are added one by one.
"""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, FloatArray, IntArray


@kernel
def column_starts(indices: AnyArray, indptr: AnyArray, features: IntArray, row: int) -> IntArray:
    """Find where each column's entries from a row on begin."""
    out = np.empty(len(features), dtype=np.int64)
    for k in range(len(features)):
        begin, end = indptr[features[k]], indptr[features[k] + 1]
        out[k] = begin + np.searchsorted(indices[begin:end], row)
    return out


@kernel
def tail_rows(
    data: AnyArray, indices: AnyArray, starts: IntArray, ends: IntArray, first: int, begin: int,
    end: int,
) -> tuple[IntArray, AnyArray, AnyArray]:  # fmt: skip
    """Turn the columns from number ``first`` on into rows, columns ascending in each."""
    row_ptr = np.zeros(end - begin + 1, dtype=np.int64)
    for k in range(first, len(starts)):
        for at in range(starts[k], ends[k]):
            row_ptr[indices[at] - begin + 1] += 1
    for i in range(end - begin):
        row_ptr[i + 1] += row_ptr[i]
    free = row_ptr.copy()
    places = np.empty(row_ptr[-1] + 1, dtype=np.int32)
    values = np.empty(row_ptr[-1] + 1, dtype=data.dtype)
    for k in range(first, len(starts)):
        for at in range(starts[k], ends[k]):
            i = indices[at] - begin
            places[free[i]] = k
            values[free[i]] = data[at]
            free[i] += 1
    return row_ptr, places, values


@kernel
def head_rows(
    data: AnyArray, indices: AnyArray, nexts: IntArray, ends: IntArray, begin: int, end: int,
    out: AnyArray,
) -> None:  # fmt: skip
    """Fill rows [begin, end) of the first columns; ``nexts`` moves on behind them."""
    out[:] = 0.0
    for k in range(out.shape[1]):
        at = nexts[k]
        while at < ends[k] and indices[at] < end:
            out[indices[at] - begin, k] = data[at]
            at += 1
        nexts[k] = at


@kernel
def add_rows(
    head: AnyArray, row_ptr: IntArray, places: AnyArray, values: AnyArray, start: int,
    diag: FloatArray, cut: float, atoms: FloatArray, cell: IntArray, first: int, begin: int,
    end: int, gram: AnyArray, sums: AnyArray,
) -> None:  # fmt: skip
    """Add rows [begin, end): tail × all to the lower triangle, atoms × rows to their cells' sums.

    Row ``start`` is the first of ``row_ptr``. Rows whose weight is below ``cut`` enter the diagonal
    only. The head's rows are left multiplied by the root of their weight, for the product of the
    head with itself.
    """
    n_head = head.shape[1]
    for i in range(begin, end):
        weight = diag[i]
        dense = head[i - begin]
        if weight <= 0.0:
            dense[:] = 0.0
            continue
        low, high = row_ptr[i - start], row_ptr[i - start + 1]
        if weight < cut:
            for a in range(low, high):
                gram[places[a], places[a]] += weight * values[a] * values[a]
            for j in range(n_head):
                gram[j, j] += weight * dense[j] * dense[j]
                dense[j] = 0.0
            continue
        for a in range(low, high):
            scaled = weight * values[a]
            row = gram[places[a]]
            for j in range(n_head):
                row[j] += scaled * dense[j]
            for b in range(low, a + 1):
                row[places[b]] += scaled * values[b]
        for t in range(atoms.shape[1]):
            atom = atoms[i, t]
            if atom != 0.0:
                row = sums[cell[i] - first, t]
                for j in range(n_head):
                    row[j] += atom * dense[j]
                for a in range(low, high):
                    row[places[a]] += atom * values[a]
        root = np.sqrt(weight)
        for j in range(n_head):
            dense[j] *= root


@kernel
def mirrored(lower: FloatArray, low_rank: FloatArray, place: IntArray) -> FloatArray:
    """Complete a lower triangle, subtract, and put rows and columns where they belong."""
    n = len(place)
    out = np.empty((n, n))
    for i in range(n):
        p = place[i]
        for j in range(n):
            q = place[j]
            out[i, j] = (lower[p, q] if q <= p else lower[q, p]) - low_rank[p, q]
    return out


@kernel
def count_entries(
    indices: AnyArray, indptr: AnyArray, features: IntArray, counted: AnyArray, out: IntArray,
    begin: int, end: int,
) -> None:  # fmt: skip
    """Fill how many entries some columns have in the rows that count."""
    for k in range(begin, end):
        total = 0
        for at in range(indptr[features[k]], indptr[features[k] + 1]):
            total += counted[indices[at]]
        out[k] = total


@kernel
def weigh_columns(
    data: AnyArray, indices: AnyArray, bands: IntArray, place: AnyArray, weight: AnyArray,
    cell: AnyArray, ratios: AnyArray, ends: IntArray, values: AnyArray, rows: IntArray,
    sums: AnyArray, squares: FloatArray, extra: FloatArray, begin: int, end: int,
) -> None:  # fmt: skip
    """Fill some columns of A, their squares and sums over cells, and those of what is left out.

    ``bands`` says where each column enters each band of rows; a band's rows fit a cache. ``place``
    is the number of each row of X among those that count, −1 if it does not; ``weight`` the root of
    its curvature, or the curvature if it is left out. The rows that count have a ``cell``, and
    ``ratios`` of their one or two atoms to their weight. ``ends`` comes with the columns' starts.
    """
    n_cells, n_atoms = sums.shape[0], sums.shape[1]
    first, second = np.zeros(n_cells), np.zeros(n_cells)
    for b in range(len(bands) - 1):
        for k in range(begin, end):
            if bands[b, k] == bands[b + 1, k]:
                continue
            left_squares = left_sum = 0.0
            to = ends[k]
            for at in range(bands[b, k], bands[b + 1, k]):
                i = indices[at]
                x = np.float64(data[at])
                p, w = place[i], weight[i]
                # written always, kept if it counts: a branch would be mispredicted all the time
                values[to] = x * w
                rows[to] = p
                to += p >= 0
                left = 0.0 if p >= 0 else w * x
                left_sum += left
                left_squares += left * x
            extra[0, k] += left_squares
            extra[1, k] += left_sum
            total = 0.0
            for at in range(ends[k], to):
                p = rows[at]
                v = np.float64(values[at])
                total += v * v
                first[cell[p]] += ratios[p, 0] * v
                if n_atoms > 1:
                    second[cell[p]] += ratios[p, 1] * v
            squares[k] += total
            ends[k] = to
            for c in range(n_cells):
                sums[c, 0, k] += first[c]
                first[c] = 0.0
                if n_atoms > 1:
                    sums[c, 1, k] += second[c]
                    second[c] = 0.0
