"""Kernels on positions: where a value stands among the knots of its feature.

A position is 0 for a missing value, 1 up to the first knot, b + t at the share t of segment b, and
one more than the number of segments from the last knot on. Its whole part is its *bin*.
"""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray


@kernel
def place_rows(
    X: AnyArray,
    low: FloatArray,
    high: FloatArray,
    rate: FloatArray,
    begin: int,
    end: int,
    out: AnyArray,
) -> BoolArray:
    """Fill the positions of some rows; return which features have a missing value there.

    Of segment k of feature j, ``low[k, j]`` and ``high[k, j]`` are the ends and ``rate[k, j]`` is
    one over the length.
    """
    n_segments, n = low.shape
    gaps = np.zeros(n, dtype=np.bool_)
    place = np.empty(n)
    for i in range(begin, end):
        place[:] = 1.0
        for k in range(n_segments):
            for j in range(n):
                x = np.float64(X[i, j])
                t = min(max((x - low[k, j]) * rate[k, j], 0.0), 1.0)
                place[j] += 1.0 if x >= high[k, j] else t
        for j in range(n):
            missing = np.isnan(X[i, j])
            gaps[j] |= missing
            out[i, j] = 0.0 if missing else place[j]
    return gaps


@kernel
def place_entries(
    data: AnyArray,
    indptr: IntArray,
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
        for at in range(indptr[j], indptr[j + 1]):
            x = np.float64(data[at])
            place = 1.0
            for k in range(low.shape[0]):
                t = min(max((x - low[k, j]) * rate[k, j], 0.0), 1.0)
                place += 1.0 if x >= high[k, j] else t
            missing = np.isnan(x)
            gaps[j - begin] |= missing
            out[at] = 0.0 if missing else place
    return gaps


@kernel
def knot_sums(places: AnyArray, g: FloatArray, width: int, begin: int, end: int) -> FloatArray:
    """Return for each feature and knot the sum of g × hat over some rows.

    A document at position b + t gives the share 1 − t of its g to knot b and t to knot b + 1; a
    missing value gives all to knot 0, which has no other. Bins are found for a whole row first:
    that loop works on several features at a time.
    """
    n = places.shape[1]
    sums = np.zeros(n * (width + 1))
    first = ((width + 1) * np.arange(n)).astype(np.int32)
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
    begin: int,
    end: int,
    out: FloatArray,
) -> None:
    """Fill the same sums for some columns; rows that are not stored are at ``zero``."""
    for f in range(begin, end):
        j = features[f]
        rest = total
        for at in range(indptr[j], indptr[j + 1]):
            weight, place = g[indices[at]], np.float64(places[at])
            b = np.int64(place)
            up = weight * (place - b)
            rest -= weight
            out[f, b] += weight - up
            out[f, b + 1] += up
        b = np.int64(zero[j])
        up = rest * (zero[j] - b)
        out[f, b] += rest - up
        out[f, b + 1] += up


@kernel
def ramp_sums(sums: FloatArray, sizes: IntArray, gap: BoolArray, starts: IntArray) -> FloatArray:
    """Return Xᵀg for all ramps from the sums per knot.

    A ramp is 0 up to its first knot and 1 from the next one on, so one running sum from above
    serves all ramps of a feature.
    """
    out = np.empty(starts[-1])
    for j in range(len(sizes)):
        above = sums[j, sizes[j] + 2]
        for b in range(sizes[j], 0, -1):
            above += sums[j, b + 1]
            out[starts[j] + b - 1] = above
        if gap[j]:
            out[starts[j] + sizes[j]] = sums[j, 0]
    return out


@kernel
def curve_scores(
    places: AnyArray,
    features: IntArray,
    base: FloatArray,
    slope: FloatArray,
    begin: int,
    end: int,
    out: FloatArray,
) -> None:
    """Add up the curves of some features: in bin b, ``base[f, b] + slope[f, b]`` × position."""
    for i in range(begin, end):
        total = 0.0
        for f in range(len(features)):
            place = np.float64(places[i, np.uint64(features[f])])
            b = np.uint64(np.uint32(np.int32(place)))  # a signed index may count from the end: slow
            total += base[f, b] + slope[f, b] * place
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
