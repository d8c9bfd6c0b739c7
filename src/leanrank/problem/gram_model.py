"""A quadratic in the weights of a working set, with its Hessian at hand.

Sweeps find the support and its signs quickly but crawl where features are collinear; given support
and signs, the minimum is one linear system. So the two alternate: the penalty's own sweeps, then a
step on the support by its smooth piece, cut where a weight would change its sign.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leanrank._typing import FloatArray
from leanrank.penalties.base import Penalty
from leanrank.problem.base import QuadraticModel


@dataclass(frozen=True)
class GramModel(QuadraticModel):
    """A quadratic model whose Hessian is at hand.

    Attributes
    ----------
    hessian : array
    sampled, exact_diagonal : bool
        Whether a sample of the documents represents all, but for the diagonal.
    accuracy : float
        The minimum is found when the largest move of a sweep, in the metric of the Hessian's
        diagonal, is below that times the first sweep's.
    max_rounds : int
        Most rounds of sweeps and a step.
    fewest_sweeps : int
        Sweeps of a round, or a third of the support if that is more: about the cost of a solution.
    largest_solve : int
        Features up to which the support is solved for.
    """

    hessian: FloatArray
    sampled: bool = False
    exact_diagonal: bool = True
    accuracy: float = 1e-4
    max_rounds: int = 100
    fewest_sweeps: int = 10
    largest_solve: int = 2_048

    def minimise(self, penalty: Penalty, c: FloatArray, w: FloatArray) -> FloatArray:
        """Return the step s that minimises ½ sᵀHs + cᵀs + penalty(w + s)."""
        x, slope, target = w.copy(), c.copy(), -1.0
        for _ in range(self.max_rounds):
            n_sweeps = max(self.fewest_sweeps, int(np.count_nonzero(x)) // 3)
            target, done = penalty.sweep_gram(
                self.hessian, slope, x, target, self.accuracy, n_sweeps
            )
            if done:
                break
            self._solve_on_support(penalty, slope, x)
        return x - w

    def damped(self, ridge: FloatArray) -> GramModel:
        """Return the model with ½ Σ_j ridge_j s_j² added."""
        return replace(self, hessian=self.hessian + np.diag(ridge))

    def _solve_on_support(self, penalty: Penalty, slope: FloatArray, x: FloatArray) -> None:
        """Move to the minimum for the present signs, dropping weights that reach zero."""
        from scipy.linalg import lapack

        for _ in range(8):
            piece = penalty.piece(x)
            support = piece.support
            if len(support) == 0 or len(support) > self.largest_solve:
                return
            now = x[support]
            force = slope[support] + piece.slope
            system = self.hessian[np.ix_(support, support)]
            diagonal = np.diag_indices(len(support))
            if piece.curvature.ndim == 1:
                system[diagonal] += piece.curvature
            else:
                system += piece.curvature
            system[diagonal] *= 1.0 + 1e-12
            _, direction, fault = lapack.dposv(system, -force, lower=True, overwrite_a=True)
            if fault or not force @ direction < 0.0:
                return
            crossing = piece.kinked & (now * (now + direction) < 0.0)
            reach = np.where(crossing, -now / np.where(crossing, direction, 1.0), 1.0)
            t = float(reach.min())
            moved = now + t * direction
            moved[reach == t] *= 0.0 if t < 1.0 else 1.0
            step = moved - now
            rise = step @ self.hessian[support]
            if not piece.quadratic:
                whole = np.zeros_like(x)
                whole[support] = step
                model = float(step @ (slope[support] + 0.5 * rise[support]))
                if model + penalty.change(x, whole) > 0.0:
                    return
            slope += rise
            x[support] = moved
            if t == 1.0:
                return
