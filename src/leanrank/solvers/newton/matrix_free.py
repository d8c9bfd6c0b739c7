"""The same quadratic problem without its matrix, for working sets too large for one.

Each iteration costs two products with the working set's columns. Smooth penalties are solved by
conjugate gradients, others by accelerated proximal gradients that start anew when they overshoot.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leanrank._typing import FloatArray

MOST_PRODUCTS = 200
POWER_STEPS = 8


def minimise_by_products(
    product: Callable[[FloatArray], FloatArray],
    c: FloatArray,
    w: FloatArray,
    above: FloatArray,
    below: FloatArray,
    ridge: FloatArray,
    *,
    accuracy: float = 1e-2,
) -> FloatArray:
    """Minimise ½ sᵀHs + cᵀs + penalty(w + s) over the step s, roughly.

    Parameters
    ----------
    product : callable
        Gives H times a vector.
    c, w, above, below, ridge : array
        As for ``minimise_quadratic``.
    accuracy : float
        Relative residual at which to stop.
    """
    if not (above.any() or below.any()):
        return _conjugate_gradients(product, c + ridge * w, ridge, accuracy)
    return _proximal_gradients(product, c, w, above, below, ridge, accuracy)


def _conjugate_gradients(
    product: Callable[[FloatArray], FloatArray],
    force: FloatArray,
    ridge: FloatArray,
    accuracy: float,
) -> FloatArray:
    from scipy.sparse.linalg import LinearOperator, cg

    n = len(force)

    def regularised(v: FloatArray) -> FloatArray:
        flat = np.ravel(v)
        return product(flat) + ridge * flat

    operator: Any = LinearOperator((n, n), matvec=regularised, dtype=np.float64)
    step, _ = cg(operator, -force, rtol=accuracy, maxiter=MOST_PRODUCTS)
    return np.asarray(step)


def _proximal_gradients(
    product: Callable[[FloatArray], FloatArray],
    c: FloatArray,
    w: FloatArray,
    above: FloatArray,
    below: FloatArray,
    ridge: FloatArray,
    accuracy: float,
) -> FloatArray:
    lipschitz = 1.1 * _largest_eigenvalue(product, len(c)) + float(ridge.max(initial=0.0))
    x, y, inertia = w.copy(), w.copy(), 1.0
    first = -1.0
    for _ in range(MOST_PRODUCTS):
        z = y - (c + product(y - w) + ridge * y) / lipschitz
        new = np.maximum(z - above / lipschitz, 0.0) + np.minimum(z + below / lipschitz, 0.0)
        move = new - x
        size = float(np.linalg.norm(new - y))
        first = size if first < 0 else first
        if size <= accuracy * first:
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
