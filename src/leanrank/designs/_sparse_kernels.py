"""Compiled sums over the entries of a sparse X, by column or by row, in a fixed order."""

from __future__ import annotations

import numpy as np

from leanrank._jit import column_dot, kernel
from leanrank._typing import AnyArray, FloatArray, IntArray


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
def sparse_rmatvec(
    data: AnyArray, indices: AnyArray, indptr: AnyArray, features: IntArray, g: AnyArray,
    out: AnyArray, begin: int, end: int,
) -> None:  # fmt: skip
    for k in range(begin, end):
        j = features[k]
        out[k] = column_dot(data, indices, indptr[j], indptr[j + 1], g)


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
def add_rows(
    data: AnyArray, indices: AnyArray, indptr: AnyArray, place: AnyArray, rows: IntArray,
    cell: IntArray, weights: FloatArray, atoms: FloatArray, gram: FloatArray, sums: FloatArray,
) -> None:  # fmt: skip
    """Add the outer products of some rows, each entry of the matrix at one side of its diagonal
    only, and atoms × rows to their cells' sums.

    ``place`` is the number of each column of X in the working set, −1 for those outside.
    """
    longest = 1
    for i in rows:
        longest = max(longest, indptr[i + 1] - indptr[i])
    places, values = np.empty(longest, dtype=np.int64), np.empty(longest)
    for r in range(len(rows)):
        if weights[r] <= 0.0:
            continue
        n = 0
        for at in range(indptr[rows[r]], indptr[rows[r] + 1]):
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
                    sums[cell[r], t, places[a]] += atoms[r, t] * values[a]


@kernel
def mirror(gram: FloatArray) -> None:
    """Fill a symmetric matrix, of which each entry is at one side of the diagonal, in place."""
    n, side = len(gram), 64
    for top in range(0, n, side):  # by squares that fit a cache
        for first in range(0, top + 1, side):
            for i in range(top, min(top + side, n)):
                for j in range(first, min(first + side, i)):
                    gram[i, j] += gram[j, i]
                    gram[j, i] = gram[i, j]


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
