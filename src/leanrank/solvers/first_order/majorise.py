"""Majorise and minimise: a non-convex penalty as a few weighted ℓ1 problems.

The first round is the plain ℓ1 problem: it needs no starting point, so the answer depends on the
data alone. Each further round minimises the loss plus the penalty's majorant at the last weights,
started there. The majorant lies above the penalty and touches it, so the objective never rises.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from leanrank._part import require
from leanrank._typing import Callback, FloatArray
from leanrank.penalties.concave import ConcavePenalty
from leanrank.problem.base import Problem
from leanrank.solvers.base import Solution
from leanrank.solvers.newton.solver import solve_newton


def solve_majorise(
    problem: Problem,
    penalty: ConcavePenalty,
    *,
    w: FloatArray | None = None,
    solve: Callable[..., Solution] = solve_newton,
    rounds: int = 10,
    tol: float = 1e-6,
    max_iter: int = 100,
    callback: Callback | None = None,
) -> Solution:
    """Minimise loss + concave penalty by at most ``rounds`` weighted ℓ1 problems.

    Parameters
    ----------
    problem : Problem
    penalty : ConcavePenalty
    w : array, optional
        Starting point of the first round.
    solve : callable, default=solve_newton
        The ℓ1 solver: ``solve(problem, elastic_net, w=, tol=, max_iter=)``.
    rounds : int, default=10
        Largest number of problems, including the plain one; stops when the objective falls by
        less than ``tol``, relative to itself.
    tol : float, default=1e-6
        Relative duality gap of each problem.
    max_iter : int, default=100
        Largest number of iterations of each problem.
    callback : callable, optional
        Called with each entry of the history.

    Returns
    -------
    Solution
        ``objective`` is loss + penalty, smoothed as the penalty says; ``gap`` the relative duality
        gap of the last problem solved. Each round has an entry in ``history``; the last one also
        has ``stationarity``: the largest distance, over the weights, of zero from the slopes of
        loss + penalty at w.
    """
    require(penalty, "majorise", "majorant")
    inner = solve(problem, penalty.base, w=w, tol=tol, max_iter=max_iter)
    surrogate = penalty.base
    n_iter, objective = 0, np.inf
    best = inner
    history: list[dict[str, Any]] = []
    for at in range(1, rounds + 1):
        if at > 1:
            surrogate = penalty.majorant(best.w)
            inner = solve(problem, surrogate, w=best.w.copy(), tol=tol, max_iter=max_iter)
        n_iter += inner.n_iter
        reached = inner.objective - surrogate.value(inner.w) + penalty.value(inner.w)
        settled = objective - reached <= tol * abs(reached)
        if reached <= objective:  # else the round only added rounding
            best, objective = inner, reached
        history.append(
            {
                "round": at,
                "objective": objective,
                "gap": inner.gap,
                "support": int(np.count_nonzero(best.w)),
                "iterations": inner.n_iter,
            }
        )
        if settled or at == rounds:
            history[-1]["stationarity"] = _stationarity(problem, penalty, best.w)
        if callback is not None:
            callback(history[-1])
        if settled:
            break
    return replace(best, objective=objective, n_iter=n_iter, history=history)


def _stationarity(problem: Problem, penalty: ConcavePenalty, w: FloatArray) -> float:
    problem.at(w)
    residual = penalty.majorant(w).residual(w, problem.gradient())
    return float(residual[~penalty.excluded].max(initial=0.0))
