"""Compiled sums over the columns of pairs; documents come as ``surfaces.HalfCodes``."""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, FloatArray, IntArray


@kernel
def _half(
    X: AnyArray, bins: AnyArray, first: IntArray, table: FloatArray, i: int, f: int
) -> tuple[float, float]:
    k = first[f] + np.int64(bins[i, f])
    distance = X[i, f] - table[k, 0]
    distance = distance if distance > 0.0 else 0.0
    return table[k, 1] + table[k, 2] * distance, table[k, 3] + table[k, 4] * distance


@kernel
def pair_sums(
    X: AnyArray, bins: AnyArray, first: IntArray, table: FloatArray, g: FloatArray,
    features: IntArray, local: IntArray, begin: int, end: int, at: FloatArray, sums: FloatArray,
) -> None:  # fmt: skip
    """Add up g × column over some rows, four sums per pair of some features.

    ``at`` has room for two numbers per feature.
    """
    for i in range(begin, end):
        weight = g[i]
        if weight == 0.0:
            continue
        for j in range(len(features)):
            at[j, 0], at[j, 1] = _half(X, bins, first, table, i, features[j])
        for k in range(len(local)):
            a, b = weight * at[local[k, 0], 0], weight * at[local[k, 0], 1]
            c, d = at[local[k, 1], 0], at[local[k, 1], 1]
            sums[k, 0] += a * c
            sums[k, 1] += a * d
            sums[k, 2] += b * c
            sums[k, 3] += b * d


@kernel
def pair_scores(
    X: AnyArray, bins: AnyArray, first: IntArray, table: FloatArray, pairs: IntArray,
    w: FloatArray, begin: int, end: int, out: FloatArray,
) -> None:  # fmt: skip
    """Add the surfaces of some pairs to the scores of some rows."""
    for i in range(begin, end):
        total = 0.0
        for k in range(len(pairs)):
            a, b = _half(X, bins, first, table, i, pairs[k, 0])
            c, d = _half(X, bins, first, table, i, pairs[k, 1])
            total += a * (w[k, 0] * c + w[k, 1] * d) + b * (w[k, 2] * c + w[k, 3] * d)
        out[i] += total


@kernel
def pair_columns(
    X: AnyArray, bins: AnyArray, first: IntArray, table: FloatArray, pairs: IntArray,
    columns: IntArray, begin: int, end: int, out: AnyArray,
) -> None:  # fmt: skip
    """Write out columns of pairs for some rows."""
    for i in range(begin, end):
        for c in range(len(columns)):
            k, which = columns[c] // 4, columns[c] % 4
            one = _half(X, bins, first, table, i, pairs[k, 0])
            other = _half(X, bins, first, table, i, pairs[k, 1])
            out[i - begin, c] = one[which // 2] * other[which % 2]


@kernel
def pair_steps(
    X: AnyArray, bins: AnyArray, first: IntArray, table: FloatArray, pairs: IntArray,
    g: FloatArray, weight: FloatArray, query_ptr: IntArray, gradient: FloatArray,
    hessian: FloatArray,
) -> None:  # fmt: skip
    """Add up gradient and Hessian of the columns of each pair and its features' half ramps."""
    z, mean = np.zeros(8), np.zeros(8)
    for k in range(len(pairs)):
        f, h = pairs[k, 0], pairs[k, 1]
        own = hessian[k]
        for q in range(len(query_ptr) - 1):
            total = 0.0
            mean[:] = 0.0
            for i in range(query_ptr[q], query_ptr[q + 1]):
                if weight[i] == 0.0 and g[i] == 0.0:
                    continue
                a, b = _half(X, bins, first, table, i, f)
                c, d = _half(X, bins, first, table, i, h)
                z[0], z[1], z[2], z[3] = a * c, a * d, b * c, b * d
                z[4], z[5], z[6], z[7] = a, b, c, d
                total += weight[i]
                for r in range(8):
                    gradient[k, r] += g[i] * z[r]
                    mean[r] += weight[i] * z[r]
                    for s in range(r + 1):
                        own[r, s] += weight[i] * z[r] * z[s]
            if total > 0.0:
                for r in range(8):
                    for s in range(r + 1):
                        own[r, s] -= mean[r] * mean[s] / total
        for r in range(8):
            for s in range(r):
                own[s, r] = own[r, s]
