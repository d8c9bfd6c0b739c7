"""The same quadratic without its matrix, for working sets too large for one.

Each iteration costs two products with the working set's columns. Smooth penalties are solved by
conjugate gradients, others by accelerated proximal gradients that start anew when they overshoot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.penalties.base import Penalty
from leanrank.problem.base import QuadraticModel

POWER_STEPS = 8


@dataclass(frozen=True)
class ProductModel(QuadraticModel):
    """A quadratic model whose Hessian can only be multiplied.

    Attributes
    ----------
    product : callable
        Returns H times a vector.
    accuracy : float
        Relative residual at which to stop.
    max_products : int
    """

    product: Callable[[FloatArray], FloatArray]
    accuracy: float = 1e-2
    max_products: int = 200

    lasting = False

    def minimise(self, penalty: Penalty, c: FloatArray, w: FloatArray) -> FloatArray:
        """Return the step s that minimises ½ sᵀHs + cᵀs + penalty(w + s), roughly."""
        ridge = penalty.quadratic_part
        if ridge is not None:
            return self._conjugate_gradients(c + ridge * w, ridge)
        return self._proximal_gradients(penalty, c, w)

    def damped(self, ridge: FloatArray) -> ProductModel:
        """Return the model with ½ Σ_j ridge_j s_j² added."""
        return replace(self, product=lambda v: self.product(v) + ridge * v)

    def _conjugate_gradients(self, force: FloatArray, ridge: FloatArray) -> FloatArray:
        from scipy.sparse.linalg import LinearOperator, cg

        n = len(force)

        def regularised(v: FloatArray) -> FloatArray:
            flat = np.ravel(v)
            return self.product(flat) + ridge * flat

        operator: Any = LinearOperator((n, n), matvec=regularised, dtype=np.float64)
        step, _ = cg(operator, -force, rtol=self.accuracy, maxiter=self.max_products)
        return np.asarray(step)

    def _proximal_gradients(self, penalty: Penalty, c: FloatArray, w: FloatArray) -> FloatArray:
        lipschitz = 1.1 * _largest_eigenvalue(self.product, len(c))
        x, y, inertia = w.copy(), w.copy(), 1.0
        first = -1.0
        for _ in range(self.max_products):
            new = penalty.prox(y - (c + self.product(y - w)) / lipschitz, lipschitz)
            move = new - x
            size = float(np.linalg.norm(new - y))
            first = size if first < 0 else first
            if size <= self.accuracy * first:
                x = new
                break
            if float((y - new) @ move) > 0.0:  # the momentum points uphill
                inertia, y, x = 1.0, new.copy(), new
                continue
            faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * inertia * inertia))
            y = new + (inertia - 1.0) / faster * move
            inertia, x = faster, new
        return x - w


def _largest_eigenvalue(product: Callable[[FloatArray], FloatArray], n: int) -> float:
    """Estimate by power iteration from a fixed start."""
    v = np.random.default_rng(0).standard_normal(n)
    value = 0.0
    for _ in range(POWER_STEPS):
        v /= np.linalg.norm(v)
        moved = product(v)
        value = float(v @ moved)
        v = moved
        if not v.any():
            break
    return max(value, np.finfo(np.float64).tiny)
