"""Subproblems of first-order solvers: minimisation on a segment, and over a simplex."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from leanrank._typing import FloatArray

PROBES = 60
"""Largest number of evaluations of the slope."""


def minimise_on_segment(
    probe: Callable[[float], tuple[float, float]],
    high: float = 1.0,
    *,
    accuracy: float = 1e-3,
) -> float:
    """Return t in [0, high] where the slope of a convex function vanishes, or the nearest end.

    Takes Newton steps, and bisects after a step that does not halve the slope.

    Parameters
    ----------
    probe : callable
        Returns slope and curvature at t; the curvature may be 0.
    high : float
    accuracy : float
        Stop at this share of the slope at 0, or when the bracket is this share of its upper end.

    Returns
    -------
    t : float
        0 if the function does not fall.

    Examples
    --------
    >>> minimise_on_segment(lambda t: (t - 0.25, 1.0))
    0.25
    >>> minimise_on_segment(lambda t: (t - 3.0, 1.0))
    1.0
    """
    slope, curvature = probe(0.0)
    if slope >= 0.0 or high <= 0.0:
        return 0.0
    enough = accuracy * -slope
    low, end, at = 0.0, high, 0.0
    trusted = curvature > 0.0
    for _ in range(PROBES):
        new = at - slope / curvature if trusted else 0.5 * (low + end)
        if new >= end == high:
            new = high  # the Newton step leaves the segment: try its end
        elif not low < new < end:
            new = 0.5 * (low + end)
        before, at = slope, new
        slope, curvature = probe(at)
        if abs(slope) <= enough or (at == high and slope <= 0.0):
            return at
        if slope < 0.0:
            low = at
        else:
            end = at
        if end - low <= accuracy * end:
            break
        trusted = curvature > 0.0 and abs(slope) <= 0.5 * abs(before)
    return low if low > 0.0 else at


RIDGE = 1e-11
"""Added to the diagonal, after scaling it to 1, as matrices may be singular."""

EPSILON, TINY = (float(each) for each in (np.finfo(np.float64).eps, np.finfo(np.float64).tiny))

STEPS_PER_UNKNOWN = 20


def minimise_over_simplex(
    Q: FloatArray, b: FloatArray, x: FloatArray, tol: float
) -> tuple[FloatArray, float]:
    """Minimise ½xᵀQx + bᵀx over x ≥ 0, Σx = 1, starting at a point of the simplex.

    Steps are Newton's on the coordinates in use. A coordinate that would become negative is
    removed; if there is none, the coordinate with the least slope is added. Every step lowers the
    value up to rounding; if as many steps as there are coordinates do not, the current point is
    returned.

    Parameters
    ----------
    Q : array of shape (n, n)
        Symmetric, positive semidefinite.
    b, x : array of shape (n,)
    tol : float
        Largest distance of the value from the minimum.

    Returns
    -------
    x : array of shape (n,)
    gap : float
        Bound on the distance of the value from the minimum; above ``tol`` if rounding prevents a
        smaller one, and NaN if Q or b overflow.

    Examples
    --------
    >>> x, gap = minimise_over_simplex(np.eye(3), np.array([0.0, 0.0, 5.0]), np.eye(3)[2], 1e-12)
    >>> x.round(6).tolist()
    [0.5, 0.5, 0.0]
    """
    x = x.copy()
    slope = Q @ x + b
    lowest, idle = 0.5 * float(x @ (slope + b)), 0
    for _ in range(STEPS_PER_UNKNOWN * len(b)):
        used = np.flatnonzero(x)
        step = _free_step(Q[np.ix_(used, used)], slope[used])
        reach = np.divide(-x[used], step, out=np.full(len(used), np.inf), where=step < 0.0)
        first = int(np.argmin(reach))
        blocked = reach[first] < 1.0
        x[used] = np.maximum(x[used] + min(1.0, reach[first]) * step, 0.0)
        if blocked:
            x[used[first]] = 0.0
        x /= x.sum()
        slope = Q @ x + b
        value = 0.5 * float(x @ (slope + b))
        idle = 0 if value < lowest - EPSILON * abs(lowest) else idle + 1
        if idle > len(b):
            break
        lowest = min(lowest, value)
        if blocked:
            continue
        entering = int(np.argmin(slope))
        gap = float(x @ slope - slope[entering])
        if gap <= tol:
            break
        away = -x
        away[entering] += 1.0
        curvature = float(away @ Q @ away)
        x += away * (1.0 if curvature <= gap else gap / curvature)
        x[x < 0.0] = 0.0
        slope = Q @ x + b
    return x, float(np.maximum(0.0, x @ slope - slope.min()))


def _free_step(Q: FloatArray, slope: FloatArray) -> FloatArray:
    """Return the step that minimises the quadratic over steps that add up to zero.

    One coordinate is replaced by minus the sum of the others: the one with the least curvature,
    since a large curvature would dominate the entries of all others. For the same reason the system
    is scaled to a diagonal of ones.
    """
    n = len(slope)
    if n == 1:
        return np.zeros(1)
    flat = int(np.argmin(np.diag(Q)))
    rest = np.arange(n) != flat
    row = Q[flat, rest]
    reduced = Q[np.ix_(rest, rest)] - row - row[:, np.newaxis] + Q[flat, flat]
    # Between two equal planes the entry is rounding, which must not be scaled to 1.
    rounding = n * EPSILON * (np.diag(Q)[rest] + Q[flat, flat])
    diagonal = np.maximum(np.diag(reduced), np.maximum(rounding, TINY))
    unit = 1.0 / np.sqrt(diagonal)
    reduced[np.diag_indices(n - 1)] = diagonal
    reduced = reduced * np.outer(unit, unit)
    reduced[np.diag_indices(n - 1)] += RIDGE
    step = np.empty(n)
    step[rest] = unit * np.linalg.solve(reduced, unit * (slope[flat] - slope[rest]))
    step[flat] = -step[rest].sum()
    return step
