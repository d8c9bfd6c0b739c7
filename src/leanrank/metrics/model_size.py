"""The size of a linear model."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank.errors import InputError


def sparsity(w: Any) -> float:
    """Return ‖w‖₀/n, the share of the weights that are not zero.

    >>> sparsity([0.0, 0.5, 0.0, -2.0])
    0.5
    """
    weights = np.asarray(w)
    if weights.size == 0:
        raise InputError("w holds no weights: the sparsity of an empty model is not defined")
    return int(np.count_nonzero(weights)) / weights.size


def percent_zero(w: Any) -> float:
    """Return 100·(1 − ‖w‖₀/n), the percentage of the weights that are exactly zero.

    >>> percent_zero([0.0, 0.5, 0.0, 0.0])
    75.0
    """
    return 100.0 * (1.0 - sparsity(w))
