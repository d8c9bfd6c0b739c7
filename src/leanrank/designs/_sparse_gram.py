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
    diag: FloatArray, atoms: FloatArray, cell: IntArray, first: int, begin: int, end: int,
    gram: AnyArray, sums: AnyArray,
) -> None:  # fmt: skip
    """Add rows [begin, end): tail × all to the lower triangle, atoms × rows to their cells' sums.

    Row ``start`` is the first of ``row_ptr``. The head's rows are left multiplied by the root of
    their weight, for the product of the head with itself.
    """
    n_head = head.shape[1]
    for i in range(begin, end):
        weight = diag[i]
        dense = head[i - begin]
        if weight <= 0.0:
            dense[:] = 0.0
            continue
        low, high = row_ptr[i - start], row_ptr[i - start + 1]
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
def pick_rows(
    diag: FloatArray, atoms: FloatArray, cell: IntArray, n_cells: int, n_picked: int,
) -> tuple[IntArray, FloatArray, FloatArray]:  # fmt: skip
    """Pick rows in proportion to their weight: the heavy ones, others at even steps of its sum.

    Returns the rows, their weights and their atoms. Weights and each atom of a cell add up over the
    picked rows to what they do over all. Where weights are a multiple of one atom in each cell, as
    with two levels, the Hessian of the picked rows is as convex as that of all.
    """
    n_atoms = atoms.shape[1]
    total = 0.0
    for i in range(len(diag)):
        total += diag[i]
    step = total / n_picked
    most = min(n_picked + 1, len(diag))
    rows = np.empty(most, dtype=np.int64)
    factors = np.empty(most)
    whole, found = np.zeros((n_cells, n_atoms + 1)), np.zeros((n_cells, n_atoms + 1))
    n, reached = 0, 0.5 * step
    for i in range(len(diag)):
        weight, c = diag[i], cell[i]
        whole[c, n_atoms] += weight
        for t in range(n_atoms):
            whole[c, t] += atoms[i, t]
        if weight < step:
            reached += weight
            if reached < step or weight < 1e-200 * step:  # a factor must not overflow
                continue
            reached -= step
            weight = step
        if weight > 0.0 and n < most:
            rows[n], factors[n] = i, weight / diag[i]
            found[c, n_atoms] += weight
            for t in range(n_atoms):
                found[c, t] += factors[n] * atoms[i, t]
            n += 1
    weights, picked = np.empty(n), np.empty((n, n_atoms))
    for r in range(n):
        i, c = rows[r], cell[rows[r]]
        weights[r] = factors[r] * diag[i] * whole[c, n_atoms] / found[c, n_atoms]
        for t in range(n_atoms):
            share = whole[c, t] / found[c, t] if found[c, t] > 0.0 else 1.0
            picked[r, t] = factors[r] * share * atoms[i, t]
    return rows[:n], weights, picked


@kernel
def add_picked(
    data: AnyArray, indices: AnyArray, indptr: AnyArray, place: AnyArray, cell: IntArray,
    rows: IntArray, weights: FloatArray, atoms: FloatArray, begin: int, end: int, gram: FloatArray,
    sums: FloatArray,
) -> None:  # fmt: skip
    """Add picked rows [begin, end) to the lower triangle and to their cells' sums.

    ``place`` is the number of each column of X in the working set, −1 for those outside.
    """
    longest = 1
    for r in range(begin, end):
        longest = max(longest, indptr[rows[r] + 1] - indptr[rows[r]])
    places, values = np.empty(longest, dtype=np.int64), np.empty(longest)
    for r in range(begin, end):
        i = rows[r]
        n = 0
        for at in range(indptr[i], indptr[i + 1]):
            p = place[indices[at]]
            places[n] = p
            values[n] = data[at]
            n += p >= 0
        for a in range(n):
            scaled = weights[r] * values[a]
            row = gram[places[a]]
            for b in range(a + 1):
                row[places[b]] += scaled * values[b]
        for t in range(atoms.shape[1]):
            if atoms[r, t] != 0.0:
                for a in range(n):
                    sums[cell[i], t, places[a]] += atoms[r, t] * values[a]


@kernel
def complete(lower: FloatArray, scale: FloatArray, left: FloatArray, right: FloatArray) -> None:
    """Turn a lower triangle G into SGS − LᵀR − RᵀL in place, S being a diagonal."""
    n, side = len(lower), 64
    for top in range(0, n, side):  # by squares that fit a cache
        for first in range(0, top + 1, side):
            for i in range(top, min(top + side, n)):
                for j in range(first, min(first + side, i + 1)):
                    entry = lower[i, j] * scale[i] * scale[j]
                    for t in range(len(left)):
                        entry -= left[t, i] * right[t, j] + right[t, i] * left[t, j]
                    lower[i, j] = entry
                    lower[j, i] = entry


@kernel
def weighted_squares(
    data: AnyArray, indices: AnyArray, indptr: AnyArray, features: IntArray, weights: FloatArray,
    out: FloatArray, begin: int, end: int,
) -> None:  # fmt: skip
    """Fill the sums of weight × x² of some columns."""
    for k in range(begin, end):
        total = 0.0
        for at in range(indptr[features[k]], indptr[features[k] + 1]):
            x = np.float64(data[at])
            total += weights[indices[at]] * x * x
        out[k] = total


@kernel
def mirrored(lower: FloatArray, low_rank: FloatArray, place: IntArray) -> FloatArray:
    """Complete a lower triangle in place, subtract, and put rows and columns where they belong."""
    n, side = len(place), 64
    for top in range(0, n, side):  # by squares that fit a cache
        for first in range(0, top + 1, side):
            for i in range(top, min(top + side, n)):
                for j in range(first, min(first + side, i)):
                    lower[j, i] = lower[i, j]
    out = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            out[i, j] = lower[place[i], place[j]] - low_rank[place[i], place[j]]
    return out


@kernel
def weigh_columns(
    data: AnyArray, indices: AnyArray, bands: IntArray, place: AnyArray, root: AnyArray,
    gain: AnyArray, cell: AnyArray, ratios: AnyArray, starts: IntArray, ends: IntArray,
    values: AnyArray, rows: IntArray, sums: FloatArray, squares: FloatArray, extra: FloatArray,
    begin: int, end: int,
) -> None:  # fmt: skip
    """Fill some columns of A, their squares over all rows, and their sums over cells.

    ``bands`` says where each column enters each band of rows; a band's rows fit a cache. ``root``
    is the root of each row's curvature, ``place`` its number among the picked rows, −1 if it is
    none. A picked row has a ``gain`` on top of its root, a ``cell``, and ``ratios`` of its one or
    two atoms to its weight. Columns are scaled to their squares over all rows; ``extra`` has the
    squares of those without an entry in a picked row. ``ends`` comes with the columns' starts.
    """
    n_cells, n_atoms = sums.shape[0], sums.shape[1]
    first, second = np.zeros(n_cells), np.zeros(n_cells)
    found = np.zeros(end - begin)
    for b in range(len(bands) - 1):
        for k in range(begin, end):
            if bands[b, k] == bands[b + 1, k]:
                continue
            total, to = 0.0, ends[k]
            for at in range(bands[b, k], bands[b + 1, k]):
                i = indices[at]
                v = np.float64(data[at]) * root[i]
                total += v * v
                # written always, kept if picked: a branch would be mispredicted all the time
                values[to] = v
                rows[to] = place[i]
                to += place[i] >= 0
            squares[k] += total
            for at in range(ends[k], to):
                p = rows[at]
                v = np.float64(values[at]) * gain[p]
                values[at] = v
                found[k - begin] += v * v
                first[cell[p]] += ratios[p, 0] * v
                if n_atoms > 1:
                    second[cell[p]] += ratios[p, 1] * v
            ends[k] = to
            for c in range(n_cells):
                sums[c, 0, k] += first[c]
                first[c] = 0.0
                if n_atoms > 1:
                    sums[c, 1, k] += second[c]
                    second[c] = 0.0
    for k in range(begin, end):
        if found[k - begin] > 0.0:
            scale = np.sqrt(squares[k] / found[k - begin])
            for at in range(starts[k], ends[k]):
                values[at] *= scale
            sums[:, :, k] *= scale
        else:
            extra[k], squares[k] = squares[k], 0.0
