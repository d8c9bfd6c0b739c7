"""Numbers for a page: as many digits as can be seen, and none that JSON does not know."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from leanrank.plots.rows import brief


def numbers(values: Iterable[Any], digits: int = 5) -> list[float | None]:
    """Round all of them."""
    return [brief(value, digits) for value in values]


def figures(mean: float, interval: Iterable[float]) -> list[float | None]:
    """Round a mean and its interval to the decimals that a screen shows: four, and three.

    The page then shows the same digits: rounding twice could change the last one.

    >>> figures(0.0312499, (0.01, float("nan")))
    [0.0312, 0.01, None]
    """
    rounded = [float(f"{mean:.4f}"), *(float(f"{end:.3f}") for end in interval)]
    return [value if math.isfinite(value) else None for value in rounded]
