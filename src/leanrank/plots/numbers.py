"""Numbers for charts and pages: as many digits as are shown, and none that JSON does not know."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import Any

_ALL_DIGITS = 17  # of a float64


def brief(value: Any, digits: int = 5) -> float | None:
    """Round to some digits; what is not finite is None, since JSON knows no NaN.

    >>> brief(0.123456789), brief(float("nan")), brief(3)
    (0.12346, None, 3.0)
    """
    number = float(value)
    return float(f"{number:.{digits}g}") if math.isfinite(number) else None


def digits_along(magnitude: float, width: float, digits: int) -> int:
    """Return how many digits tell numbers apart that lie within a width, far from zero.

    ``digits`` of them are left when an offset that all numbers share is taken away.

    >>> digits_along(2.0, 4.0, 7), digits_along(1.7e9, 100.0, 7), digits_along(1.0, 0.0, 7)
    (7, 15, 17)
    """
    if not width > 0:
        return _ALL_DIGITS
    shared = math.ceil(math.log10(max(magnitude, sys.float_info.min)) - math.log10(width))
    return min(_ALL_DIGITS, digits + max(0, shared))


def numbers(values: Iterable[Any], digits: int = 5) -> list[float | None]:
    """Round all of them."""
    return [brief(value, digits) for value in values]


def figures(mean: float, interval: Iterable[float]) -> list[float | None]:
    """Round a mean and its interval to the decimals that are shown: four, and three.

    A page, a chart and the command line then show the same digits: rounding twice could change the
    last one.

    >>> figures(0.0312499, (0.01, float("nan")))
    [0.0312, 0.01, None]
    """
    rounded = [float(f"{mean:.4f}"), *(float(f"{end:.3f}") for end in interval)]
    return [value if math.isfinite(value) else None for value in rounded]
