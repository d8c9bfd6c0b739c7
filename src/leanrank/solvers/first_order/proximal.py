"""Proximal gradient descent: a gradient step of the loss, then the proximal step of the penalty.

    w ← argmin_x  penalty(x) + K/2 · ‖x − (w − ∇/K)‖²

For ℓ1 that is w ← S(w − ∇/K), soft thresholding at λ/K. With K at least the Lipschitz constant of
the gradient, every step lowers the objective, but steps are short. SparseRank deliberately uses a
smaller K: steps are longer, some raise the objective, and the best point is returned. After
``patience`` steps without a better point, K is doubled and the iteration continues from the best.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from leanrank._typing import FloatArray
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem
from leanrank.solvers.base import Certificate, Solution, Solver


@dataclass(frozen=True)
class Proximal(Solver):
    """Proximal gradient steps.

    The solver also stops, not converged, when a step from the best point changes no weight. As K
    is doubled whenever steps no longer help, the number of steps is bounded.

    Attributes
    ----------
    lipschitz : float, optional
        K at the start. None: a tenth of the curvature of the loss at the start in the direction of
        the gradient; this curvature is at most the Lipschitz constant.
    patience : int
        Steps without a better point after which K is doubled.
    check_every : int
        Steps between two computations of the duality gap, which take as long as a step.
    """

    tol: float = 1e-3
    max_iter: int = 10_000
    lipschitz: float | None = None
    patience: int = 10
    check_every: int = 10

    name: ClassVar[str] = "proximal"
    depends_on_scale: ClassVar[bool] = True
    loss_needs: ClassVar[tuple[str, ...]] = ("dual",)
    penalty_needs: ClassVar[tuple[str, ...]] = ("prox",)

    def solve(self, problem: Problem, penalty: Penalty, w: FloatArray | None = None) -> Solution:
        """Minimise loss + penalty to a relative duality gap of ``tol``."""
        self.check(problem.loss, penalty)
        start = np.zeros(problem.n_features) if w is None else penalty.permitted(w)
        best = latest = _Iterate(
            start, problem.at(start) + penalty.value(start), problem.gradient()
        )
        k = 0.1 * _curvature(problem, best.c) if self.lipschitz is None else self.lipschitz
        certificate = Certificate(problem, penalty)
        free_scale = problem.gradient_scale()
        history: list[dict[str, Any]] = []
        n_iter, waited, settled = 0, 0, False
        while True:
            if latest is not best:
                certificate.raise_bound(latest.w, latest.c)
            problem.at(best.w)
            certificate.raise_bound(best.w, best.c)
            free_residual = penalty.free_residual(best.w, best.c, free_scale)
            gap = certificate.gap(best.objective, problem.rounding(best.w, best.objective))
            entry = {"objective": best.objective, "gap": gap, "lipschitz": k}
            self.note(history, best.w, iteration=n_iter, **entry)
            converged = gap <= self.tol and free_residual <= self.tol
            if converged or settled or n_iter >= self.max_iter:
                break
            for _ in range(min(self.check_every, self.max_iter - n_iter)):
                new = penalty.prox(latest.w - latest.c / k, k)
                n_iter += 1
                # a step to the best point from another one is part of a cycle, not the end
                settled = latest is best and np.array_equal(new, best.w)
                if settled:
                    break
                objective = problem.at(new) + penalty.value(new)
                waited = 0 if objective < best.objective else waited + 1
                if waited >= self.patience or not np.isfinite(objective):
                    k, latest, waited = 2.0 * k, best, 0
                    continue
                latest = _Iterate(new, objective, problem.gradient())
                best = latest if waited == 0 else best
        return Solution(best.w, best.objective, gap, free_residual, n_iter, converged, history)


class _Iterate(NamedTuple):
    """Weights, the objective there, and the loss's gradient."""

    w: FloatArray
    objective: float
    c: FloatArray


def _curvature(problem: Problem, c: FloatArray) -> float:
    """Return the curvature of the loss in the direction of its gradient; 1 if it is 0."""
    squared = float(c @ c)
    if squared == 0.0:
        return 1.0
    problem.try_step(c, 0.0)
    curvature = problem.curvature_along_step() / squared
    return curvature if curvature > 0.0 else 1.0
