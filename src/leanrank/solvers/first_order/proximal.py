"""Proximal gradient: a gradient step of the loss, then the minimum of the penalty around it.

    w ← argmin_x  penalty(x) + K/2 · ‖x − (w − ∇/K)‖²

For ℓ1 that is w ← S(w − ∇/K), soft thresholding at λ/K. With K at least the Lipschitz constant of
the gradient, every step descends, but steps are short. The published SparseRank takes a smaller K
on purpose: steps are longer, some raise the objective, and the best point is returned. After
``patience`` steps without a better point, K is doubled and the iteration continues from the best.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leanrank._part import require
from leanrank._typing import Callback, FloatArray
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem
from leanrank.solvers.base import Solution
from leanrank.solvers.certificate import Certificate


def solve_proximal(
    problem: Problem,
    penalty: Penalty,
    *,
    lipschitz: float | None = None,
    w: FloatArray | None = None,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    patience: int = 10,
    check_every: int = 10,
    callback: Callback | None = None,
) -> Solution:
    """Minimise loss + penalty to a relative duality gap of ``tol``.

    It also ends, unconverged, when a step from the best point changes no weight: K doubles whenever
    steps stop helping, so this happens after a bounded number of steps.

    Parameters
    ----------
    problem : Problem
    penalty : ElasticNet
    lipschitz : float, optional
        K at the start. None: a tenth of the curvature at the start in the direction of the
        gradient, which is itself at most the Lipschitz constant.
    w : array, optional
        Starting point.
    tol : float
    max_iter : int
        Largest number of steps, each of which reads all of X.
    patience : int
        Steps without a better point after which K is doubled.
    check_every : int
        Steps between two duality gaps, each of which costs as much as a step.
    callback : callable, optional
        Called with each entry of the history, one per duality gap.
    """
    require(problem.loss, "proximal", "dual")
    require(penalty, "proximal", "prox")
    start = np.zeros(problem.n_features) if w is None else penalty.permitted(w)
    best = latest = _Iterate(start, problem.at(start) + penalty.value(start), problem.gradient())
    k = 0.1 * _curvature(problem, best.c) if lipschitz is None else lipschitz
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
        rounding = problem.rounding(best.w, best.objective)
        entry = {
            "iteration": n_iter,
            "objective": best.objective,
            "gap": certificate.gap(best.objective, rounding),
            "support": int(np.count_nonzero(best.w)),
            "lipschitz": k,
        }
        history.append(entry)
        if callback is not None:
            callback(entry)
        converged = entry["gap"] <= tol and free_residual <= tol
        if converged or settled or n_iter >= max_iter:
            break
        for _ in range(min(check_every, max_iter - n_iter)):
            new = penalty.prox(latest.w - latest.c / k, k)
            n_iter += 1
            # a step that lands on the best point from elsewhere is half of a cycle, not an end
            settled = latest is best and np.array_equal(new, best.w)
            if settled:
                break
            objective = problem.at(new) + penalty.value(new)
            waited = 0 if objective < best.objective else waited + 1
            if waited >= patience or not np.isfinite(objective):
                k, latest, waited = 2.0 * k, best, 0
                continue
            latest = _Iterate(new, objective, problem.gradient())
            best = latest if waited == 0 else best
    return Solution(best.w, best.objective, entry["gap"], free_residual, n_iter, converged, history)


class _Iterate(NamedTuple):
    """Weights, the objective there, and the loss's gradient."""

    w: FloatArray
    objective: float
    c: FloatArray


def _curvature(problem: Problem, c: FloatArray) -> float:
    """Return the curvature of the loss in the direction of its gradient."""
    squared = float(c @ c)
    if squared == 0.0:
        return 1.0
    problem.try_step(c, 0.0)
    bend = problem.bend() / squared
    return bend if bend > 0.0 else 1.0
