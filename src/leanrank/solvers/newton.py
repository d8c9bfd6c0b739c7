"""Working-set proximal Newton, stopped by a duality gap.

Outer iterations read all of X once: they compute the gap, discard features that provably stay at zero,
and choose a working set. Inner iterations minimise over the working set alone, on a compact copy of its
columns: the exact Hessian, a quadratic problem solved by coordinate descent on its Gram form, a line
search on the scores. Nearly all work is on the few columns that matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.losses.base import require
from leanrank.solvers._quadratic import minimise_quadratic
from leanrank.solvers.problem import Problem

INNER_SHARE = 0.3
"""The working set is solved until its own gap is this share of the whole gap."""


@dataclass
class Solution:
    """Where a solver stopped, and what it can promise.

    Attributes
    ----------
    w : array
    objective : float
        Loss plus penalty at w.
    gap : float
        Relative duality gap: (objective − best dual value) / objective. The optimum is at least
        ``objective · (1 − gap)``.
    free_residual : float
        Largest gradient in an unpenalised feature; the gap does not see it.
    n_iter : int
        Outer iterations: reads of the whole X.
    converged : bool
    history : list of dict
        One entry an outer iteration.
    """

    w: FloatArray
    objective: float
    gap: float
    free_residual: float
    n_iter: int
    converged: bool
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass
class _State:
    w: FloatArray
    u: FloatArray
    value: float
    g: FloatArray


def solve_newton(
    problem: Problem,
    penalty: Any,
    *,
    w: FloatArray | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
    radius: FloatArray | None = None,
    callback: Callable[[dict[str, Any]], None] | None = None,
) -> Solution:
    """Minimise loss + penalty to a relative duality gap of ``tol``.

    Parameters
    ----------
    problem : Problem
    penalty : ElasticNet
    w : array, optional
        Where to start.
    tol : float
    max_iter : int
        Most outer iterations.
    radius : array, optional
        For each feature, the factor by which √gap bounds how far its gradient can still move; enables
        safe screening.
    callback : callable, optional
        Called with each entry of the history.
    """
    require(problem.loss, "newton", "evaluate", "curvature", "fold", "dual")
    n = problem.n_features
    w = np.zeros(n) if w is None else np.where(penalty.excluded, 0.0, w)
    w = np.where(w > 0, np.where(np.isinf(penalty.above), 0, w), np.where(np.isinf(penalty.below), 0, w))
    u = problem.scores(w)
    state = _State(w, u, *problem.evaluate(u))
    alive = ~penalty.excluded
    free = penalty.free & alive
    best_dual = -np.inf
    history: list[dict[str, Any]] = []
    working = np.flatnonzero(w)
    block: Any = None
    initial_free = 0.0
    for n_iter in range(1, max_iter + 1):
        c = problem.gradient(state.g, alive)
        objective = state.value + penalty.value(state.w)
        a = penalty.dual_scale(c)
        best_dual = max(best_dual, problem.dual(state.u, a) - penalty.conjugate(a * c))
        gap = max(0.0, objective - best_dual)
        free_residual = float(np.abs(c[free]).max(initial=0.0))
        initial_free = max(initial_free, free_residual)
        entry = {
            "iteration": n_iter,
            "objective": objective,
            "gap": gap / objective if objective > 0 else 0.0,
            "support": int(np.count_nonzero(state.w)),
            "working_set": len(working),
            "alive": int(np.count_nonzero(alive)),
        }
        history.append(entry)
        if callback is not None:
            callback(entry)
        converged = gap <= tol * objective and free_residual <= tol * max(1.0, initial_free)
        if converged or n_iter == max_iter:
            break
        if radius is not None:
            _screen(alive, penalty, a * c, np.sqrt(gap / 2.0) * radius, state.w)
        chosen = _choose(penalty, c, state.w, alive, free, working)
        if block is None or not np.array_equal(chosen, working):
            working = chosen
            block = problem.design.take(working)
        floor = 0.5 * tol * objective
        if not _minimise_over(problem, penalty, block, working, state, max(INNER_SHARE * gap, floor)):
            break
    return Solution(
        state.w, objective, entry["gap"], free_residual, n_iter, converged, history
    )


def _screen(
    alive: BoolArray, penalty: Any, c: FloatArray, reach: FloatArray, w: FloatArray
) -> None:
    """Discard the features whose gradient cannot reach the threshold at the optimum."""
    gone = (c + reach < penalty.below) & (-c + reach < penalty.above) & (w == 0)
    alive &= ~gone


def _choose(
    penalty: Any,
    c: FloatArray,
    w: FloatArray,
    alive: BoolArray,
    free: BoolArray,
    working: IntArray,
) -> IntArray:
    """Choose the support, the free features and the strongest of those that want to enter."""
    support = (w != 0) | free
    excess = np.where(alive & ~support, penalty.excess(c), 0.0)
    wanting = np.flatnonzero(excess > 0)
    if len(wanting) == 0 and support.any():
        keep = np.zeros(len(w), dtype=bool)
        keep[working] = True
        return np.flatnonzero((keep & alive) | support)
    room = max(64, 2 * int(np.count_nonzero(support)))
    if len(wanting) > room:
        order = np.argpartition(-excess[wanting], room)[:room]
        wanting = wanting[order]
    chosen = support.copy()
    chosen[wanting] = True
    return np.flatnonzero(chosen)


def _minimise_over(
    problem: Problem,
    penalty: Any,
    block: Any,
    working: IntArray,
    state: _State,
    target: float,
    max_steps: int = 50,
) -> bool:
    """Take Newton steps in the working set until its gap is below target; tell if any was taken."""
    part = penalty.restrict(working)
    moved = False
    best_dual = -np.inf
    for _ in range(max_steps):
        w = state.w[working]
        c = block.rmatvec(state.g)
        objective = state.value + part.value(w)
        a = part.dual_scale(c)
        best_dual = max(best_dual, problem.dual(state.u, a) - part.conjugate(a * c))
        free = part.free
        if moved and objective - best_dual <= target and np.abs(c[free]).max(initial=0.0) <= target:
            break
        hessian = problem.hessian(block, state.u)
        step = minimise_quadratic(hessian, c, w, part.above, part.below, part.ridge)
        promised = float(c @ step) + part.value(w + step) - part.value(w)
        if not promised < 0.0:
            break
        d = block.matvec(step)
        if not _line_search(problem, part, working, state, w, step, d, objective, promised):
            break
        moved = True
    return moved


def _line_search(
    problem: Problem,
    part: Any,
    working: IntArray,
    state: _State,
    w: FloatArray,
    step: FloatArray,
    d: FloatArray,
    objective: float,
    promised: float,
) -> bool:
    """Shorten the step until the objective falls by a share of what the model promised."""
    t = 1.0
    slack = 1e-15 * abs(objective)
    for _ in range(60):
        u = state.u + t * d
        value, g = problem.evaluate(u)
        moved = w + t * step
        if value + part.value(moved) <= objective + 0.01 * t * promised + slack:
            state.w[working] = moved
            state.u, state.value, state.g = u, value, g
            return True
        t *= 0.5
    return False
