"""A loss along a line of scores."""

from __future__ import annotations

import numpy as np


def along(problem, u, d, t):
    """Return value, slope and curvature of a problem's loss at u + t·d."""
    at, product = u + t * d, np.zeros_like(u)
    value, g = problem.evaluate(at)
    problem.loss.product(problem.plan, 0, len(problem.plan.query_ptr) - 1, at, d, product)
    return value, g @ d, product @ d
