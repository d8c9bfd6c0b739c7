"""Gradients of only those features that may matter, without losing the certificate.

Between two score gradients g and g₀ a feature's gradient moves by at most ‖x_j‖·‖g − g₀‖. Where
that cannot carry it past its threshold, its product need not be computed: the bound itself shows
that the feature neither enters the working set nor limits the dual point.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.problem.memory import Problem

WORTH_IT = 0.6
"""Share of the non-zeros above which everything is computed anew."""


class LazyGradient:
    """Xᵀg for a sequence of score gradients g that move less and less.

    Parameters
    ----------
    problem : Problem
        Skips features only if its design saves time by it.
    """

    def __init__(self, problem: Problem) -> None:
        self.design = problem.design
        self.reference: FloatArray | None = None
        self.at_reference: FloatArray | None = None

    @classmethod
    def of(cls, problem: Problem) -> LazyGradient:
        """Return the one that a problem keeps, so that the next penalty of a path profits."""
        if problem.lazy_gradient is None:
            problem.lazy_gradient = cls(problem)
        kept: LazyGradient = problem.lazy_gradient
        return kept

    def __call__(self, g: FloatArray, penalty: Any) -> FloatArray:
        """Return Xᵀg; for a feature that provably stays within its threshold, an old value."""
        if not self.design.skips_columns or self.reference is None or self.at_reference is None:
            return self._anew(g)
        reach = self.design.column_norms * float(np.linalg.norm(g - self.reference))
        needed = np.flatnonzero(~penalty.stays_zero(self.at_reference, reach))
        sizes = self.design.column_sizes
        if sizes[needed].sum() > WORTH_IT * sizes.sum():
            return self._anew(g)
        c = self.at_reference.copy()
        c[needed] = self.design.rmatvec(g, needed)
        return c

    def _anew(self, g: FloatArray) -> FloatArray:
        self.reference, self.at_reference = g, self.design.rmatvec(g)
        return self.at_reference.copy()
