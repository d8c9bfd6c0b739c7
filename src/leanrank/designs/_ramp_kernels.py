"""Kernels on bins: between which knots of its feature a value lies.

The bin of a missing value is 0. That of another is one more than the number of knots, but for the
first, that it has reached. In a bin, a curve is a line in the distance from the knot below.
"""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, FloatArray, IntArray


@kernel
def find_bins(
    X: AnyArray, side_by_side: AnyArray, begin: int, end: int, out: AnyArray,
) -> None:  # fmt: skip
    """Fill the bins of some rows.

    Row k of ``side_by_side`` has cut k of every feature, infinity where it has no more, so that
    several features are compared at a time.
    """
    n = X.shape[1]
    for i in range(begin, end):
        for j in range(n):
            out[i, j] = X[i, j] == X[i, j]
        for k in range(side_by_side.shape[0]):
            for j in range(n):
                out[i, j] += X[i, j] >= side_by_side[k, j]


@kernel
def bin_sums(
    X: AnyArray, bins: AnyArray, g: FloatArray, starts: IntArray, low: FloatArray, begin: int,
    end: int, sums: FloatArray,
) -> None:  # fmt: skip
    """Add up for each bin g and g × distance from the knot below, over some rows.

    Bins in which curves are flat begin at infinity, where no distance is above 0.
    """
    first = starts[:-1].astype(np.uint64)  # a signed index could count from the end: slow
    for i in range(begin, end):
        weight = g[i]
        if weight == 0.0:
            continue
        for j in range(X.shape[1]):
            k = first[j] + np.uint64(bins[i, j])
            distance = X[i, j] - low[k]
            sums[k, 0] += weight
            sums[k, 1] += weight * (distance if distance > 0.0 else 0.0)


@kernel
def bin_sums_of_entries(
    data: AnyArray, bins: AnyArray, indices: IntArray, indptr: IntArray, zero: IntArray,
    g: FloatArray, total: float, starts: IntArray, low: FloatArray, begin: int, end: int,
    out: FloatArray,
) -> None:  # fmt: skip
    """Fill the same sums for some columns; values that are not stored are in the bin ``zero``."""
    for j in range(begin, end):
        first, rest = starts[j], total
        for at in range(indptr[j], indptr[j + 1]):
            weight, k = g[indices[at]], first + bins[at]
            rest -= weight
            out[k, 0] += weight
            out[k, 1] += weight * max(0.0, data[at] - low[k])
        k = first + zero[j]
        out[k, 0] += rest
        out[k, 1] += rest * max(0.0, 0.0 - low[k])


@kernel
def curve_scores(
    X: AnyArray, bins: AnyArray, features: IntArray, first: IntArray, low: FloatArray,
    base: FloatArray, slope: FloatArray, begin: int, end: int, out: FloatArray,
) -> None:  # fmt: skip
    """Add up curves: in bin b of feature f, base + slope × distance at ``first[f] + b``."""
    for i in range(begin, end):
        total = 0.0
        for f in range(len(features)):
            j = np.uint64(features[f])  # a signed index may count from the end: slow
            k = np.uint64(first[f]) + np.uint64(bins[i, j])
            distance = X[i, j] - low[k]
            total += base[k] + slope[k] * (distance if distance > 0.0 else 0.0)
        out[i] = total


@kernel
def ramp_columns(
    X: AnyArray, feature: IntArray, low: FloatArray, rate: FloatArray, height: FloatArray,
    begin: int, end: int, out: AnyArray,
) -> None:  # fmt: skip
    """Write out columns: ``rate`` × distance from ``low``, between 0 and ``height``."""
    for i in range(begin, end):
        for c in range(len(feature)):
            value = (X[i, feature[c]] - low[c]) * rate[c]
            value = value if value > 0.0 else 0.0  # also of a missing one
            out[i - begin, c] = min(value, height[c])
