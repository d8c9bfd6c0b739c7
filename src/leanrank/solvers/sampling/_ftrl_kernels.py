"""Kernels of follow-the-regularised-leader for mini-batches of dense or sparse documents.

Shared arguments: ``v`` and ``w`` of each feature, and ``s``, the sum of squared gradients (rates by
feature) or the step at which the feature was last brought up to date (uniform rates). ``t`` counts
steps. A feature without a value in a batch is not changed; the effect of the steps that it missed
follows in closed form from ``t``.
"""

from __future__ import annotations

import math

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, FloatArray, IntArray

ZETA_HALF = -1.4603545088095868
EXACT_TERMS = 32


@kernel
def dense_scores(X: AnyArray, begin: int, end: int, w: FloatArray, u: FloatArray) -> None:
    """Fill the scores; only the columns of non-zero weights are read."""
    support = np.empty(len(w) + 3, dtype=np.int64)
    weight = np.zeros(len(w) + 3)
    n = 0
    for j in range(len(w)):
        if w[j] != 0.0:
            support[n] = j
            weight[n] = w[j]
            n += 1
    while n % 4 != 0:  # pad with zero weights
        support[n] = 0
        weight[n] = 0.0
        n += 1
    for i in range(begin, end):
        a = b = c = d = 0.0  # four partial sums hide the latency of additions
        for k in range(0, n, 4):
            a += X[i, support[k]] * weight[k]
            b += X[i, support[k + 1]] * weight[k + 1]
            c += X[i, support[k + 2]] * weight[k + 2]
            d += X[i, support[k + 3]] * weight[k + 3]
        u[i] = (a + b) + (c + d)


@kernel
def dense_step(
    X: AnyArray, begin: int, end: int, g: FloatArray, factor: float, c: FloatArray, v: FloatArray,
    s: FloatArray, w: FloatArray, t: int, alpha: float, gamma: float, rho: float, uniform: bool,
    per_step: bool,
) -> None:  # fmt: skip
    n_features = X.shape[1]
    c[:] = 0.0
    for i in range(begin, end):
        weight = factor * g[i]
        if weight != 0.0:
            for j in range(n_features):
                c[j] += weight * X[i, j]
    for j in range(n_features):
        move(j, c[j], v, s, w, t, alpha, gamma, rho, uniform, per_step)


@kernel
def sparse_scores(
    values: AnyArray, columns: AnyArray, pointers: AnyArray, begin: int, end: int, u: FloatArray,
    seen: IntArray, touched: IntArray, v: FloatArray, s: FloatArray, w: FloatArray, t: int,
    alpha: float, gamma: float, rho: float, uniform: bool, per_step: bool,
) -> int:  # fmt: skip
    """Fill the scores; list the features of these documents and bring them up to date at step t."""
    n_touched = 0
    for i in range(begin, end):
        total = 0.0
        for at in range(pointers[i], pointers[i + 1]):
            j = columns[at]
            if seen[j] != t + 1:
                seen[j] = t + 1
                touched[n_touched] = j
                n_touched += 1
                catch_up(j, v, s, w, t, alpha, gamma, rho, uniform, per_step)
            total += values[at] * w[j]
        u[i] = total
    return n_touched


@kernel
def sparse_step(
    values: AnyArray, columns: AnyArray, pointers: AnyArray, begin: int, end: int, g: FloatArray,
    factor: float, c: FloatArray, touched: IntArray, n_touched: int, v: FloatArray, s: FloatArray,
    w: FloatArray, t: int, alpha: float, gamma: float, rho: float, uniform: bool, per_step: bool,
) -> None:  # fmt: skip
    for i in range(begin, end):
        weight = factor * g[i]
        if weight != 0.0:
            for at in range(pointers[i], pointers[i + 1]):
                c[columns[at]] += weight * values[at]
    for k in range(n_touched):
        j = touched[k]
        move(j, c[j], v, s, w, t, alpha, gamma, rho, uniform, per_step)
        c[j] = 0.0


@kernel
def catch_up_all(
    v: FloatArray, s: FloatArray, w: FloatArray, t: int, alpha: float, gamma: float, rho: float,
    uniform: bool, per_step: bool,
) -> None:  # fmt: skip
    for j in range(len(w)):
        catch_up(j, v, s, w, t, alpha, gamma, rho, uniform, per_step)


@kernel
def move(
    j: int, c: float, v: FloatArray, s: FloatArray, w: FloatArray, t: int, alpha: float,
    gamma: float, rho: float, uniform: bool, per_step: bool,
) -> None:  # fmt: skip
    """Take step t in a feature whose weight is up to date after t − 1 steps."""
    if uniform:
        v[j] += c - (math.sqrt(t) - math.sqrt(t - 1)) / gamma * w[j]
        s[j] = t
        scale = math.sqrt(t)
    else:
        scale = math.sqrt(rho + s[j] + c * c)
        v[j] += c - (scale - math.sqrt(rho + s[j])) / gamma * w[j]
        s[j] += c * c
    w[j] = leader(v[j], scale, t, alpha, gamma, per_step)


@kernel
def catch_up(
    j: int, v: FloatArray, s: FloatArray, w: FloatArray, t: int, alpha: float, gamma: float,
    rho: float, uniform: bool, per_step: bool,
) -> None:  # fmt: skip
    """Apply the steps without a gradient up to step t to w and, with uniform rates, to v."""
    if not uniform:
        if per_step:
            w[j] = leader(v[j], math.sqrt(rho + s[j]), t, alpha, gamma, per_step)
        return
    last = int(s[j])
    s[j] = t
    if w[j] == 0.0 or last >= t:
        return
    # Each step lowers |w| by gamma·alpha/√τ (by 0 if the threshold is fixed), until w is zero; from
    # then on v does not change.
    sign = -1.0 if w[j] > 0.0 else 1.0
    if not per_step:
        v[j] = sign * (abs(w[j]) * math.sqrt(t) / gamma + alpha)
        return
    start = inverse_roots(last)
    left = abs(w[j]) - gamma * alpha * (inverse_roots(t) - start)
    if left > 0.0:
        v[j] = sign * (left * math.sqrt(t) / gamma + alpha * t)
        w[j] = -sign * left
        return
    low, high = last, t  # w is non-zero after step low and zero after step high
    while high - low > 1:
        middle = (low + high) // 2
        if abs(w[j]) - gamma * alpha * (inverse_roots(middle) - start) > 0.0:
            low = middle
        else:
            high = middle
    left = abs(w[j]) - gamma * alpha * (inverse_roots(low) - start)
    v[j] = sign * (left * math.sqrt(high) / gamma + alpha * low)
    w[j] = 0.0


@kernel
def leader(v: float, scale: float, t: int, alpha: float, gamma: float, per_step: bool) -> float:
    """Return the weight that minimises v·w + threshold·|w| + scale/(2·gamma)·w²."""
    threshold = alpha * t if per_step else alpha
    if abs(v) <= threshold or scale == 0.0:
        return 0.0
    if v > 0.0:
        return -gamma * (v - threshold) / scale
    return -gamma * (v + threshold) / scale


@kernel
def inverse_roots(n: int) -> float:
    """Return the sum of 1/√τ for τ = 1..n, by the Euler–Maclaurin formula if n is large."""
    if n < EXACT_TERMS:
        total = 0.0
        for k in range(1, n + 1):
            total += 1.0 / math.sqrt(k)
        return total
    root = math.sqrt(n)
    tail = 1.0 / (n * root)
    return (
        2.0 * root
        + ZETA_HALF
        + 0.5 / root
        - tail / 24.0
        + tail / (n * n) / 384.0
        - tail / (float(n) ** 4) / 1024.0
    )
