"""The measure ``loss``: smooth in the scores, so that a choice by it is less a matter of luck.

With u the scores of a query and p its gains divided by their sum, a query's loss is

    log Σ exp(t·u_i) − t·Σ p_i u_i.

The scale t ≥ 0 is the one that suits all queries together best. So the measure does not depend on
the unit of the scores, and models of different losses can be compared by it.
"""

from __future__ import annotations

import numpy as np

from leanrank._typing import FloatArray, IntArray

STEEPEST = 100.0
"""Most that t may be, in units of 1 over the standard deviation of scores within queries."""


def softmax_losses(scores: FloatArray, gains: FloatArray, query_ptr: IntArray) -> FloatArray:
    """Return the loss of each query at the best scale; NaN where all gains are the same.

    Examples
    --------
    >>> ptr, gains = np.array([0, 2, 4]), np.array([1.0, 0.0, 1.0, 1.0])
    >>> softmax_losses(np.array([1.0, 1.0, 5.0, 3.0]), gains, ptr).tolist()
    [0.6931471805599453, nan]
    """
    from scipy.optimize import brentq

    out = np.full(len(query_ptr) - 1, np.nan)
    sizes = np.diff(query_ptr)
    starts = query_ptr[:-1][sizes > 0]
    differ = np.zeros(len(sizes), dtype=bool)
    if len(starts):
        gap = np.maximum.reduceat(gains, starts) - np.minimum.reduceat(gains, starts)
        differ[sizes > 0] = gap > 0
    if not differ.any():
        return out
    rows, sizes = np.repeat(differ, sizes), sizes[differ]
    starts = np.cumsum(sizes) - sizes
    u, p = scores[rows], gains[rows] / np.repeat(np.add.reduceat(gains[rows], starts), sizes)
    u = u - np.repeat(np.maximum.reduceat(u, starts), sizes)  # at most 0
    wanted = np.add.reduceat(p * u, starts)

    def slope(t: float) -> float:
        e = np.exp(t * u)
        means = np.add.reduceat(e * u, starts) / np.add.reduceat(e, starts)
        return float(np.mean(means - wanted))

    spread = float(np.std(u - np.repeat(np.add.reduceat(u, starts) / sizes, sizes)))
    t, steepest = 0.0, STEEPEST / spread if spread > 0 else 0.0
    if steepest and slope(0.0) < 0:
        t = steepest
        if slope(steepest) > 0:
            t = brentq(slope, 0.0, steepest, xtol=1e-4 / spread, rtol=1e-4)
    out[differ] = np.log(np.add.reduceat(np.exp(t * u), starts)) - t * wanted
    return out
