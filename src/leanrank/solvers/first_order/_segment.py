"""The minimum of a convex function on a segment, from its slope."""

from __future__ import annotations

from collections.abc import Callable

PROBES = 60
"""Largest number of slopes; a Newton step that does not halve the slope leads to a bisection."""


def minimise_on_segment(
    probe: Callable[[float], tuple[float, float]],
    high: float = 1.0,
    *,
    accuracy: float = 1e-3,
) -> float:
    """Find t in [0, high] where the slope of a convex function vanishes, or the nearest end.

    Parameters
    ----------
    probe : callable
        Returns slope and curvature at t; a curvature of 0 where there is none.
    high : float
    accuracy : float
        Stop at this share of the slope at 0, or when the bracket is this share of its end.

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
    slope, bend = probe(0.0)
    if slope >= 0.0 or high <= 0.0:
        return 0.0
    enough = accuracy * -slope
    low, end, at = 0.0, high, 0.0
    trusted = bend > 0.0
    for _ in range(PROBES):
        new = at - slope / bend if trusted else 0.5 * (low + end)
        if new >= end == high:
            new = high  # the Newton step leaves the segment: try its end
        elif not low < new < end:
            new = 0.5 * (low + end)
        before, at = slope, new
        slope, bend = probe(at)
        if abs(slope) <= enough or (at == high and slope <= 0.0):
            return at
        if slope < 0.0:
            low = at
        else:
            end = at
        if end - low <= accuracy * end:
            break
        trusted = bend > 0.0 and abs(slope) <= 0.5 * abs(before)
    return low if low > 0.0 else at
