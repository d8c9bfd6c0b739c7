"""Numbers for charts and pages: as many digits as are shown, and none that JSON does not know."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


def brief(value: Any, digits: int = 5) -> float | None:
    """Round to some digits; what is not finite is None, since JSON knows no NaN.

    >>> brief(0.123456789), brief(float("nan")), brief(3)
    (0.12346, None, 3.0)
    """
    number = float(value)
    return float(f"{number:.{digits}g}") if math.isfinite(number) else None


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
