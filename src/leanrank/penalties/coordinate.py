"""Coordinate descent on a quadratic plus a separable penalty, and the minimum over one weight."""

from __future__ import annotations

import numpy as np

from leanrank._jit import column_dot, kernel
from leanrank._typing import AnyArray, FloatArray, IntArray


@kernel
def sweep_gram(
    hessian: FloatArray,
    slope: FloatArray,
    x: FloatArray,
    above: FloatArray,
    below: FloatArray,
    ridge: FloatArray,
    target: float,
    accuracy: float,
    n_sweeps: int,
) -> tuple[float, bool]:
    """Sweep over the weights; return the move to stop at and whether it was reached.

    Most sweeps visit only weights that are not zero; every tenth, and those that might be the last,
    visit all.
    """
    everything = True
    for sweep in range(n_sweeps):
        largest = 0.0
        for j in range(len(x)):
            if everything or x[j] != 0.0:
                largest = max(largest, _coordinate(hessian, slope, x, above, below, ridge, j))
        if target < 0.0:
            target = accuracy * largest
        if largest <= target and everything:
            return target, True
        everything = largest <= target or sweep % 10 == 9
    return target, False


@kernel
def _coordinate(
    hessian: FloatArray,
    slope: FloatArray,
    x: FloatArray,
    above: FloatArray,
    below: FloatArray,
    ridge: FloatArray,
    j: int,
) -> float:
    """Minimise over one weight; return the size of the move in the Hessian's metric."""
    h = hessian[j, j] + ridge[j]
    old = x[j]
    pull = hessian[j, j] * old - slope[j]
    new = 0.0
    if h <= 0.0:  # a straight line: zero is best unless it leads away from it
        new = 0.0 if -below[j] <= pull <= above[j] else old
    elif pull > above[j]:
        new = (pull - above[j]) / h
    elif pull < -below[j]:
        new = (pull + below[j]) / h
    change = new - old
    if change == 0.0:
        return 0.0
    x[j] = new
    row = hessian[j]
    for i in range(len(x)):
        slope[i] += row[i] * change
    return abs(change) * np.sqrt(max(h, 0.0))


@kernel
def sweep_columns(
    values: AnyArray,
    rows: AnyArray,
    starts: IntArray,
    ends: IntArray,
    z: FloatArray,
    left: FloatArray,
    right: FloatArray,
    extra: FloatArray,
    curve: FloatArray,
    c: FloatArray,
    w: FloatArray,
    above: FloatArray,
    below: FloatArray,
    ridge: FloatArray,
    accuracy: float,
    n_sweeps: int,
) -> FloatArray:
    """Minimise ½ sᵀHs + cᵀs + penalty(w + s) over the step s; z holds A s as it grows.

    Stops when the largest move of a sweep over all weights is below ``accuracy`` times that of
    the first.
    """
    n, n_terms = left.shape
    x = w.copy()
    on_left, on_right = np.zeros(n_terms), np.zeros(n_terms)
    active = np.ones(n, dtype=np.bool_)
    everything = True
    target = -1.0
    for sweep in range(n_sweeps):
        largest = 0.0
        for j in range(n):
            h = curve[j] + ridge[j]
            if not (everything or active[j]):
                continue
            slope = c[j] + extra[j] * (x[j] - w[j])
            slope += column_dot(values, rows, starts[j], ends[j], z)
            for t in range(n_terms):
                slope -= left[j, t] * on_right[t] + right[j, t] * on_left[t]
            pull = curve[j] * x[j] - slope
            new = 0.0
            if h <= 0.0:  # a straight line: zero is best unless it leads away from it
                new = 0.0 if -below[j] <= pull <= above[j] else x[j]
            elif pull > above[j]:
                new = (pull - above[j]) / h
            elif pull < -below[j]:
                new = (pull + below[j]) / h
            change = new - x[j]
            active[j] = new != 0.0
            if change != 0.0:
                x[j] = new
                for at in range(starts[j], ends[j]):
                    z[rows[at]] += change * values[at]
                for t in range(n_terms):
                    on_left[t] += change * left[j, t]
                    on_right[t] += change * right[j, t]
                largest = max(largest, abs(change) * np.sqrt(max(h, 0.0)))
        if target < 0.0:
            target = accuracy * largest
        if largest <= target and everything:
            break
        everything = largest <= target or sweep % 10 == 9
    return x - w


@kernel
def coordinate_minimum(z: float, beta: float, above: float, below: float, ridge: float) -> float:
    """Minimise ½ beta (x − z)² + above·x⁺ + below·x⁻ + ½ ridge x² over x."""
    pull = beta * z
    if pull > above:
        return (pull - above) / (beta + ridge)
    if pull < -below:
        return (pull + below) / (beta + ridge)
    return 0.0
