"""Intervals that hold at all times at once, so that a test may be stopped on what it shows."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.grouping import one_dimensional
from leanrank.errors import InputError


def confidence_sequence(
    values: Any, *, low: float = -1.0, high: float = 1.0, alpha: float = 0.05
) -> tuple[FloatArray, FloatArray]:
    """Return bounds on the mean after each value, all of which hold together.

    With probability 1 − alpha the true mean lies between the bounds at every time. So you may look
    after every list, and stop as soon as zero is outside. No distribution is assumed but that the
    values are bounded and that each has the same mean given those before it. (The predictable
    plug-in empirical Bernstein bound of Waudby-Smith & Ramdas 2024.)

    Parameters
    ----------
    values : array-like
        One number per list, in the order of time, such as the sign of the difference of credits.
    low, high : float
        Bounds of what a value can be.
    alpha : float, default=0.05
        Probability of an error at any time.

    Returns
    -------
    lower, upper : arrays
        As long as ``values``; the interval only shrinks.

    Examples
    --------
    >>> wins = np.random.default_rng(0).choice([-1, 0, 1], p=[0.2, 0.5, 0.3], size=3_000)
    >>> lower, upper = confidence_sequence(wins)
    >>> int(np.argmax(lower > 0)), bool(lower[-1] < 0.1 < upper[-1])
    (256, True)
    """
    given = np.asarray(one_dimensional(values, "values"), dtype=np.float64)
    if not low < high or not 0 < alpha < 1:
        raise InputError(f"low={low!r} must be below high={high!r}, and alpha={alpha!r} in (0, 1)")
    if not ((given >= low) & (given <= high)).all():
        raise InputError(f"a value lies outside [{low:g}, {high:g}]: give the bounds low and high")
    x = (given - low) / (high - low)
    t = np.arange(1, len(x) + 1)
    mean = (0.5 + np.cumsum(x)) / (t + 1)
    before = np.concatenate([[0.5], mean[:-1]])
    spread = (0.25 + np.cumsum((x - mean) ** 2)) / (t + 1)
    spread_before = np.concatenate([[0.25], spread[:-1]])
    error = np.log(2.0 / alpha)
    bet = np.minimum(np.sqrt(2.0 * error / (spread_before * t * np.log1p(t))), 0.5)
    price = (x - before) ** 2 * (-np.log1p(-bet) - bet)
    centre, total = np.cumsum(bet * x), np.cumsum(bet)
    width = (error + np.cumsum(price)) / total
    scale = high - low
    lower = np.maximum.accumulate(np.maximum(centre / total - width, 0.0))
    upper = np.minimum.accumulate(np.minimum(centre / total + width, 1.0))
    return low + scale * lower, low + scale * upper
