"""Descent on a quadratic plus a penalty, one weight or group of weights at a time."""

from __future__ import annotations

import math

import numpy as np

from leanrank._jit import column_dot, kernel
from leanrank._typing import FloatArray, IntArray
from leanrank.penalties.base import Columns, Groups, Rates

SWEEPS_EXTRAPOLATED = 5
"""Number of sweeps after which their points are extrapolated."""
EPSILON = float(np.finfo(np.float64).eps)


@kernel
def sweep_blocks(
    hessian: FloatArray,
    first: IntArray,
    slope: FloatArray,
    x: FloatArray,
    rates: Rates,
    groups: Groups,
    target: float,
    n_sweeps: int,
) -> tuple[float, bool]:
    """Sweep over the groups; return the size of a move at which to stop, and if it was reached.

    Row j of the Hessian begins at column ``first[j]``; entries that it does not have are 0.

    A move minimises a quadratic bound on the group's block, which is exact for one weight.
    ``rates.ridge`` has one entry per group. Most sweeps visit only groups that are not zero; every
    tenth, and those that might be the last, visit all.
    """
    nu, order, starts = groups
    above, below, ridge = rates
    curve, idle = _curvatures(hessian, first, order, starts), np.zeros(len(nu))
    new = np.zeros(len(x))
    everything = True
    for sweep in range(n_sweeps):
        largest = 0.0
        for g in range(len(nu)):
            if not everything and idle[g] > 0.0:
                continue
            bend = curve[g] + ridge[g]
            length = 0.0
            for k in range(starts[g], starts[g + 1]):
                j = order[k]
                pull = curve[g] * x[j] - slope[j]
                new[j] = 0.0
                if pull > above[j]:
                    new[j] = pull - above[j]
                elif pull < -below[j]:
                    new[j] = pull + below[j]
                length = math.hypot(length, new[j])
            if bend <= 0.0 and length > nu[g]:
                continue  # linear, and decreasing away from zero
            left = (1.0 - nu[g] / length) / bend if length > nu[g] else 0.0
            idle[g] = 0.0 if left > 0.0 else 1.0
            moved = 0.0
            for k in range(starts[g], starts[g + 1]):
                j = order[k]
                change = left * new[j] - x[j]
                if change != 0.0:
                    x[j] = left * new[j]
                    moved = math.hypot(moved, change)
                    row, near = hessian[j], slope[first[j] :]
                    for i in range(min(len(row), len(near))):
                        near[i] += row[i] * change
            largest = max(largest, moved * np.sqrt(max(bend, 0.0)))
        if target < 0.0:
            target = -target * largest
        if largest <= target and everything:
            return target, True
        everything = largest <= target or sweep % 10 == 9
    return target, False


@kernel
def _curvatures(
    hessian: FloatArray, first: IntArray, order: IntArray, starts: IntArray
) -> FloatArray:
    """Return a bound on the largest eigenvalue of each group's block, its largest row sum."""
    out = np.zeros(len(starts) - 1)
    for g in range(len(out)):
        for k in range(starts[g], starts[g + 1]):
            total = 0.0
            row, begin = hessian[order[k]], first[order[k]]
            for l in range(starts[g], starts[g + 1]):  # noqa: E741
                if 0 <= order[l] - begin < len(row):
                    total += abs(row[order[l] - begin])
            out[g] = max(out[g], total)
    return out


@kernel
def _lowest(pull: float, h: float, above: float, below: float, old: float) -> float:
    """Return the minimiser of ½ h x² − pull·x + above·x⁺ + below·x⁻.

    With h = 0 it is 0 or, if there is no minimum, ``old``.
    """
    if h <= 0.0:
        return 0.0 if -below <= pull <= above else old
    if pull > above:
        return (pull - above) / h
    if pull < -below:
        return (pull + below) / h
    return 0.0


@kernel
def sweep_columns(
    columns: Columns, c: FloatArray, w: FloatArray, rates: Rates, accuracy: float, n_sweeps: int
) -> FloatArray:
    """Return the step s that minimises ½ sᵀHs + cᵀs + penalty(w + s).

    Stops when the largest move of a sweep over all weights is below ``accuracy`` times that of
    the first. Sweeps are slow where columns are nearly collinear, so the points after a few sweeps
    are extrapolated, and the result is used if it is lower (Anderson acceleration).
    """
    values, rows, starts, ends, n_rows, left, right, extra, curve = columns
    n, n_terms = left.shape
    # a point: the weights x, z = As, Lᵀs and Rᵀs
    point = np.zeros(n + n_rows + 2 * n_terms)
    x, z = point[:n], point[n : n + n_rows]
    on_left, on_right = point[n + n_rows : n + n_rows + n_terms], point[n + n_rows + n_terms :]
    x[:] = w
    reached = np.empty((SWEEPS_EXTRAPOLATED + 1, len(point)))
    reached[0] = point
    n_reached = 1
    everything = True
    target = -1.0
    for sweep in range(n_sweeps):
        largest = 0.0
        for j in range(n):
            if not everything and x[j] == 0.0:
                continue
            h = curve[j] + rates.ridge[j]
            slope = c[j] + extra[j] * (x[j] - w[j])
            slope += column_dot(values, rows, starts[j], ends[j], z)
            for t in range(n_terms):
                slope -= left[j, t] * on_right[t] + right[j, t] * on_left[t]
            pull = curve[j] * x[j] - slope
            new = _lowest(pull, h, rates.above[j], rates.below[j], x[j])
            change = new - x[j]
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
        reached[n_reached] = point
        n_reached += 1
        if n_reached == len(reached):
            further = extrapolated(reached, n, n + n_rows)
            lowest = _height(point, n_rows, extra, c, w, rates)
            if _height(further, n_rows, extra, c, w, rates) < lowest:
                point[:] = further
            reached[0] = point
            n_reached = 1
    return x - w


@kernel
def extrapolated(points: FloatArray, begin: int, end: int) -> FloatArray:
    """Return an affine combination of all points but the first.

    Its factors f add up to one and minimise ‖Σ_k f_k m_k‖, where m_k is the move from point k − 1
    to point k in entries [begin, end).
    """
    n = len(points) - 1
    gram = np.zeros((n, n))
    moves = np.empty(n)
    for i in range(begin, end):
        for k in range(n):
            moves[k] = points[k + 1, i] - points[k, i]
            for b in range(k + 1):
                gram[k, b] += moves[k] * moves[b]
    # f solves (G + little·I) f = 1 up to a factor; by elimination
    little = EPSILON * np.trace(gram)  # the size of its rounding
    factors = np.ones(n)
    for k in range(n):
        gram[k, k] += little
        for b in range(k):
            gram[b, k] = gram[k, b]
    for k in range(n):
        for i in range(k + 1, n):
            share = gram[i, k] / gram[k, k]
            gram[i] -= share * gram[k]
            factors[i] -= share * factors[k]
    for k in range(n - 1, -1, -1):
        for b in range(k + 1, n):
            factors[k] -= gram[k, b] * factors[b]
        factors[k] /= gram[k, k]
    total = factors.sum()
    out = np.zeros(points.shape[1])
    for k in range(n):
        out += factors[k] / total * points[k + 1]
    return out


@kernel
def _height(
    point: FloatArray, n_rows: int, extra: FloatArray, c: FloatArray, w: FloatArray, rates: Rates
) -> float:
    """Return the objective of ``sweep_columns`` at one of its points."""
    above, below, ridge = rates
    n = len(w)
    n_terms = (len(point) - n - n_rows) // 2
    value = 0.0
    for j in range(n):
        x, s = point[j], point[j] - w[j]
        value += s * (c[j] + 0.5 * extra[j] * s) + 0.5 * ridge[j] * x * x
        if x != 0.0:  # a threshold may be infinite
            value += above[j] * x if x > 0.0 else -below[j] * x
    for i in range(n, n + n_rows):
        value += 0.5 * point[i] * point[i]
    for t in range(n + n_rows, n + n_rows + n_terms):
        value -= point[t] * point[t + n_terms]
    return value


@kernel
def coordinate_minimum(z: float, beta: float, above: float, below: float, ridge: float) -> float:
    """Return the minimiser of ½ beta (x − z)² + above·x⁺ + below·x⁻ + ½ ridge x²."""
    return _lowest(beta * z, beta + ridge, above, below, z)
