"""Kernels on positions: where a value stands among the knots of its feature.

A position is 0 for a missing value, 1 up to the first knot, b + t at the share t of segment b, and
one more than the number of segments from the last knot on. Its whole part is its *bin*.
"""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray

ROWS_OF_A_COLUMN = 128
"""Rows of which one column is copied at a time, to find several positions at once."""


@kernel
def place_rows(
    X: AnyArray,
    first: IntArray,
    low: FloatArray,
    high: FloatArray,
    rate: FloatArray,
    begin: int,
    end: int,
    out: AnyArray,
) -> BoolArray:
    """Fill the positions of some rows; return which features have a missing value there.

    The segments of feature j begin at ``first[j]``. Of segment k, ``low[k]`` and ``high[k]`` are
    the ends and ``rate[k]`` is one over the length.
    """
    n = X.shape[1]
    gaps = np.zeros(n, dtype=np.bool_)
    column, places = np.empty(ROWS_OF_A_COLUMN), np.empty(ROWS_OF_A_COLUMN)
    for top in range(begin, end, ROWS_OF_A_COLUMN):
        n_rows = min(ROWS_OF_A_COLUMN, end - top)
        for j in range(n):
            for r in range(n_rows):
                column[r] = X[top + r, j]
            gaps[j] |= _place(column, low, high, rate, first[j], first[j + 1], 0, n_rows, places)
            for r in range(n_rows):
                out[top + r, j] = places[r]
    return gaps


@kernel
def place_entries(
    data: AnyArray,
    indptr: IntArray,
    first: IntArray,
    low: FloatArray,
    high: FloatArray,
    rate: FloatArray,
    begin: int,
    end: int,
    out: AnyArray,
) -> BoolArray:
    """Fill the positions of the stored entries of some columns; return which have a gap."""
    gaps = np.zeros(end - begin, dtype=np.bool_)
    for j in range(begin, end):
        gaps[j - begin] = _place(
            data, low, high, rate, first[j], first[j + 1], indptr[j], indptr[j + 1], out
        )
    return gaps


@kernel
def _place(
    values: AnyArray,
    low: FloatArray,
    high: FloatArray,
    rate: FloatArray,
    first: int,
    last: int,
    begin: int,
    end: int,
    out: AnyArray,
) -> bool:
    """Fill the positions of some values of one feature; return whether one is missing."""
    for i in range(begin, end):
        out[i] = 1.0
    for k in range(first, last):
        a, b, slope = low[k], high[k], rate[k]
        for i in range(begin, end):
            x = np.float64(values[i])
            t = min(max((x - a) * slope, 0.0), 1.0)
            out[i] += 1.0 if x >= b else t
    gap = False
    for i in range(begin, end):
        if np.isnan(values[i]):
            out[i] = 0.0
            gap = True
    return gap


@kernel
def knot_sums(
    places: AnyArray, g: FloatArray, knot_starts: IntArray, begin: int, end: int
) -> FloatArray:
    """Return for each feature and knot the sum of g × hat over some rows.

    A document at position b + t gives the share 1 − t of its g to knot b and t to knot b + 1; a
    missing value gives all to knot 0, which has no other. Bins are found for a whole row first:
    that loop works on several features at a time.
    """
    n = places.shape[1]
    sums = np.zeros(knot_starts[-1])
    first = knot_starts[:-1].astype(np.int32)
    at = np.empty(n, dtype=np.int64)
    up = np.empty(n)
    for i in range(begin, end):
        weight = g[i]
        if weight == 0.0:
            continue
        for j in range(n):
            b = np.int32(places[i, j])
            at[j] = np.int64(first[j] + b)
            up[j] = weight * (places[i, j] - np.float32(b))
        for j in range(n):
            k = np.uint64(at[j])  # a signed one could count from the end, which takes a test
            sums[k] += weight - up[j]
            sums[k + np.uint64(1)] += up[j]
    return sums


@kernel
def knot_sums_of_entries(
    places: AnyArray,
    indices: IntArray,
    indptr: IntArray,
    features: IntArray,
    zero: FloatArray,
    g: FloatArray,
    total: float,
    knot_starts: IntArray,
    begin: int,
    end: int,
    out: FloatArray,
) -> None:
    """Fill the same sums for some columns; rows that are not stored are at ``zero``."""
    for f in range(begin, end):
        j, first = features[f], knot_starts[f]
        rest = total
        for at in range(indptr[j], indptr[j + 1]):
            weight, place = g[indices[at]], np.float64(places[at])
            b = np.int64(place)
            up = weight * (place - b)
            rest -= weight
            out[first + b] += weight - up
            out[first + b + 1] += up
        b = np.int64(zero[j])
        up = rest * (zero[j] - b)
        out[first + b] += rest - up
        out[first + b + 1] += up


@kernel
def ramp_sums(
    sums: FloatArray,
    knot_starts: IntArray,
    sizes: IntArray,
    gap: BoolArray,
    starts: IntArray,
    is_category: BoolArray,
    rate: FloatArray,
    line_values: FloatArray,
) -> FloatArray:
    """Return Xᵀg for all columns from the sums per knot.

    A ramp is 0 up to its first knot and 1 from the next one on, so one running sum from above
    serves all ramps of a feature. A level has its own sum; a line weighs those of all knots.
    """
    out = np.empty(starts[-1])
    for j in range(len(sizes)):
        first, at = knot_starts[j], starts[j]
        if is_category[j]:
            for b in range(1, sizes[j] + 2):
                out[at + b - 1] = sums[first + b]
            at += sizes[j] + 1
        else:
            above = sums[first + sizes[j] + 2]
            for b in range(sizes[j], 0, -1):
                above += sums[first + b + 1]
                out[at + b - 1] = above
            at += sizes[j]
        if rate[j] > 0.0:
            total = 0.0
            for k in range(first + 1, first + sizes[j] + 2):
                total += line_values[k] * sums[k]
            out[at] = total
            at += 1
        if gap[j]:
            out[at] = sums[first]
    return out


@kernel
def line_columns(
    places: AnyArray,
    feature: IntArray,
    column: IntArray,
    values: FloatArray,
    knot_starts: IntArray,
    begin: int,
    end: int,
    out: AnyArray,
) -> None:
    """Write the lines of some features into columns of ``out``."""
    for c in range(len(feature)):
        j = feature[c]
        first, last = knot_starts[j], knot_starts[j + 1] - 2
        for i in range(begin, end):
            place = np.float64(places[i, j])
            b = np.int64(place)
            low = first + b
            value = 0.0
            if b > 0:
                value = values[low]
                if low < last:
                    value += (values[low + 1] - values[low]) * (place - b)
            out[i - begin, column[c]] = value


@kernel
def curve_scores(
    places: AnyArray,
    features: IntArray,
    first: IntArray,
    base: FloatArray,
    slope: FloatArray,
    begin: int,
    end: int,
    out: FloatArray,
) -> None:
    """Add up the curves of some features: in bin b, base + slope × position at ``first[f] + b``."""
    for i in range(begin, end):
        total = 0.0
        for f in range(len(features)):
            place = np.float64(places[i, np.uint64(features[f])])
            # a signed index may count from the end: slow
            b = np.uint64(first[f]) + np.uint64(np.uint32(np.int32(place)))
            total += base[b] + slope[b] * place
        out[i] = total


@kernel
def ramp_columns(
    places: AnyArray,
    feature: IntArray,
    sign: AnyArray,
    shift: AnyArray,
    begin: int,
    end: int,
    out: AnyArray,
) -> None:
    """Write out columns: ``sign`` × position + ``shift`` between 0 and 1."""
    for i in range(begin, end):
        for c in range(len(feature)):
            out[i - begin, c] = min(max(sign[c] * places[i, feature[c]] + shift[c], 0.0), 1.0)


@kernel
def sum_and_scale(
    columns: AnyArray,
    diag: FloatArray,
    atoms: FloatArray,
    cell: IntArray,
    first: int,
    begin: int,
    sums: FloatArray,
) -> None:
    """Add atoms × rows to their cells' sums, then multiply each row by the root of its weight."""
    n = columns.shape[1]
    for r in range(len(columns)):
        i = begin + r
        for a in range(atoms.shape[1]):
            weight = atoms[i, a]
            if weight != 0.0:
                row = sums[cell[i] - first, a]
                for c in range(n):
                    row[c] += weight * columns[r, c]
        factor = np.sqrt(max(diag[i], 0.0))
        for c in range(n):
            columns[r, c] *= factor
