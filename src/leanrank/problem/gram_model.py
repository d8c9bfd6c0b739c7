"""A quadratic in the weights of a working set plus an elastic net.

Coordinate descent finds the support and its signs quickly but crawls where features are collinear;
given support and signs, the minimum is one linear system. So the two alternate: sweeps, then an
exact step on the support, cut where a weight would change its sign.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import FloatArray

FEWEST_SWEEPS = 10
LARGEST_SOLVE = 1_024


@dataclass(frozen=True)
class GramModel:
    """A quadratic model whose Hessian is at hand."""

    hessian: FloatArray

    def minimise(
        self,
        c: FloatArray,
        w: FloatArray,
        above: FloatArray,
        below: FloatArray,
        ridge: FloatArray,
    ) -> FloatArray:
        """Minimise ½ sᵀHs + cᵀs + penalty(w + s) over the step s."""
        return minimise_quadratic(self.hessian, c, w, above, below, ridge)


def minimise_quadratic(
    hessian: FloatArray,
    c: FloatArray,
    w: FloatArray,
    above: FloatArray,
    below: FloatArray,
    ridge: FloatArray,
    *,
    accuracy: float = 1e-4,
    max_rounds: int = 100,
) -> FloatArray:
    """Minimise ½ sᵀHs + cᵀs + penalty(w + s) over the step s.

    Stops when the largest move of a sweep, in the metric of the Hessian's diagonal, is below
    ``accuracy`` times that of the first sweep.
    """
    x = w.copy()
    slope = c.copy()
    target = -1.0
    for _ in range(max_rounds):
        n_sweeps = max(FEWEST_SWEEPS, np.count_nonzero(x) // 3)  # about the cost of a solution
        target, done = _sweeps(hessian, slope, x, above, below, ridge, target, accuracy, n_sweeps)
        if done:
            break
        _solve_on_support(hessian, slope, x, above, below, ridge)
    return x - w


def _solve_on_support(
    hessian: FloatArray,
    slope: FloatArray,
    x: FloatArray,
    above: FloatArray,
    below: FloatArray,
    ridge: FloatArray,
) -> None:
    """Move to the minimum for the present signs, dropping weights that reach zero on the way."""
    from scipy.linalg import lapack

    for _ in range(8):
        kink = above + below > 0
        support = np.flatnonzero((x != 0) | ~kink)
        if len(support) == 0 or len(support) > LARGEST_SOLVE:
            return
        now = x[support]
        force = slope[support] + ridge[support] * now
        force += np.where(now > 0, above[support], -below[support])
        system = hessian[np.ix_(support, support)]
        system[np.diag_indices(len(support))] += ridge[support]
        system[np.diag_indices(len(support))] *= 1.0 + 1e-12
        _, direction, fault = lapack.dposv(system, -force, lower=True, overwrite_a=True)
        if fault:
            return
        if not force @ direction < 0.0:
            return
        crossing = kink[support] & (now * (now + direction) < 0.0)
        reach = np.where(crossing, -now / np.where(crossing, direction, 1.0), 1.0)
        t = float(reach.min())
        moved = now + t * direction
        moved[reach == t] *= 0.0 if t < 1.0 else 1.0
        slope += (moved - now) @ hessian[support]
        x[support] = moved
        if t == 1.0:
            return


@kernel
def _sweeps(hessian, slope, x, above, below, ridge, target, accuracy, n_sweeps):
    """Sweep over the weights; return the move to stop at and whether it was reached.

    Most sweeps visit only weights that are not zero; every tenth, and those that might be the last,
    visit all.
    """
    active = np.ones(len(x), dtype=np.bool_)
    everything = True
    for sweep in range(n_sweeps):
        largest = 0.0
        for j in range(len(x)):
            if everything or active[j]:
                largest = max(largest, _coordinate(hessian, slope, x, above, below, ridge, j))
                active[j] = x[j] != 0.0
        if target < 0.0:
            target = accuracy * largest
        if largest <= target and everything:
            return target, True
        everything = largest <= target or sweep % 10 == 9
    return target, False


@kernel
def _coordinate(hessian, slope, x, above, below, ridge, j):
    """Minimise over one weight; return the size of the move in the Hessian's metric."""
    h = hessian[j, j] + ridge[j]
    if h <= 0.0:
        return 0.0
    old = x[j]
    pull = hessian[j, j] * old - slope[j]
    new = 0.0
    if pull > above[j]:
        new = (pull - above[j]) / h
    elif pull < -below[j]:
        new = (pull + below[j]) / h
    change = new - old
    if change == 0.0:
        return 0.0
    x[j] = new
    row = hessian[j]
    for i in range(len(x)):
        slope[i] += row[i] * change
    return abs(change) * np.sqrt(h)
