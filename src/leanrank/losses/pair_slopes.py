"""Losses of a single pair, for solvers that draw pairs one by one.

With z the difference of the two scores, higher document first, and g > 0 that of their labels:

================== =============================================
hinge              max(0, 1 − z)
squared-hinge      max(0, 1 − z)²
squared            (g − z)²
logistic           log(1 + e^{−z})
================== =============================================

The squared loss is that of pairs with different labels; RankRLS's includes ties and is another.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

import math

from leanrank._jit import kernel
from leanrank.errors import InputError

PAIR_LOSSES = ("hinge", "squared-hinge", "squared", "logistic")

_HINGE, _SQUARED_HINGE, _SQUARED = 0, 1, 2


def pair_loss_code(name: str, allowed: tuple[str, ...] = PAIR_LOSSES) -> int:
    """Give the number by which kernels know a loss.

    >>> pair_loss_code("logistic")
    3
    """
    if name not in allowed:
        raise InputError(f"loss={name!r} is not known: choose one of {allowed}")
    return PAIR_LOSSES.index(name)


@kernel
def pair_loss(code, z, gap):  # type: ignore[no-untyped-def]
    """Give the loss of a pair and its derivative in z."""
    if code == _HINGE:
        return (1.0 - z, -1.0) if z < 1.0 else (0.0, 0.0)
    if code == _SQUARED_HINGE:
        return ((1.0 - z) ** 2, -2.0 * (1.0 - z)) if z < 1.0 else (0.0, 0.0)
    if code == _SQUARED:
        return (gap - z) ** 2, -2.0 * (gap - z)
    if z > 0.0:
        e = math.exp(-z)
        return math.log1p(e), -e / (1.0 + e)
    e = math.exp(z)
    return math.log1p(e) - z, -1.0 / (1.0 + e)
