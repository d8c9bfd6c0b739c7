"""Coordinate descent on a quadratic bound (Fig. 1.1 of Stevens et al. 2013), for many queries.

For each feature in turn: the gradient of the loss, a bound β on its curvature that holds
everywhere, the minimum of the bound plus the penalty, and an update of the scores. Linear in the
documents per feature, monotone and slow: it is kept as the published algorithm and as a reference.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from leanrank._part import require
from leanrank._typing import Callback, FloatArray
from leanrank.errors import check_choice
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem
from leanrank.solvers.base import Solution
from leanrank.solvers.certificate import Certificate

RISE = 1e-10
"""Relative rise of the objective that is more than the rounding of its sums."""


def solve_bound_cd(
    problem: Problem,
    penalty: Penalty,
    *,
    w: FloatArray | None = None,
    bound: str = "range",
    tol: float = 1e-6,
    max_iter: int = 1_000,
    check_every: int = 10,
    callback: Callback | None = None,
) -> Solution:
    """Minimise loss + penalty by coordinate descent; one thread.

    Sweeps descend but for rounding. Where they rise, no digits are left in a feature's slope: the
    weights before are the answer, without having converged.

    Parameters
    ----------
    problem : Problem
    penalty : ElasticNet
    w : array, optional
        Starting point.
    bound : {"range", "paper"}
        β from (max − min)²/4 of the feature over each query, or the printed max x².
    tol : float
        Relative duality gap at which to stop.
    max_iter : int
        Largest number of sweeps.
    check_every : int
        Sweeps between two duality gaps.
    callback : callable, optional
    """
    check_choice("bound", bound, ("range", "paper"))
    require(problem.loss, "bound-cd", "term_mass", "compiled", "dual")
    require(penalty, "bound-cd", "coordinate_table")
    w = np.zeros(problem.n_features) if w is None else penalty.permitted(w)
    beta = problem.curvature_bounds(paper=bound == "paper")
    w[(beta <= 0.0) & ~penalty.free] = 0.0  # the loss does not depend on them
    certificate = Certificate(problem, penalty)
    value = problem.at(w)
    free_scale = problem.gradient_scale()
    n_iter, history = 0, []
    before: Solution | None = None
    while True:
        c = problem.gradient()
        objective = value + penalty.value(w)
        certificate.raise_bound(w, c)
        gap = certificate.gap(objective, problem.rounding(w, objective))
        free_residual = penalty.free_residual(w, c, free_scale)
        entry = {
            "iteration": n_iter,
            "objective": objective,
            "gap": gap,
            "support": int(np.count_nonzero(w)),
        }
        history.append(entry)
        if callback is not None:
            callback(entry)
        if before is not None and objective > before.objective * (1.0 + RISE):
            return replace(before, n_iter=n_iter, history=history)
        converged = gap <= tol and free_residual <= tol
        before = Solution(w.copy(), objective, gap, free_residual, n_iter, converged, history)
        if converged or n_iter >= max_iter:
            return before
        sweeps = min(check_every, max_iter - n_iter)
        value = problem.sweep(penalty, beta, w, sweeps)
        n_iter += sweeps
