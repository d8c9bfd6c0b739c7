"""Coordinate descent on a quadratic bound (Fig. 1.1 of Stevens et al. 2013), for many queries.

For each feature in turn: the gradient of the loss, a bound β on its curvature that holds
everywhere, the minimum of the bound plus the penalty, and an update of the scores. Linear in the
documents per feature, monotone and slow: it is kept as the published algorithm and as a reference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numba
import numpy as np

from leanrank._jit import kernel
from leanrank._part import require
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.errors import check_choice
from leanrank.penalties.coordinate import coordinate_minimum
from leanrank.problem.memory import MemoryProblem as Problem
from leanrank.solvers.base import Solution
from leanrank.solvers.certificate import Certificate

RISE = 1e-10
"""Relative rise of the objective that is more than the rounding of its sums."""


def solve_bound_cd(
    problem: Problem,
    penalty: Any,
    *,
    w: FloatArray | None = None,
    bound: str = "range",
    tol: float = 1e-6,
    max_iter: int = 1_000,
    check_every: int = 10,
    callback: Callable[[dict[str, Any]], None] | None = None,
) -> Solution:
    """Minimise loss + penalty by coordinate descent; one thread.

    Sweeps descend but for rounding. Where they rise, no digits are left in a feature's slope: the
    weights before are the answer, without having converged.

    Parameters
    ----------
    problem : Problem
    penalty : ElasticNet or PowerPenalty
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
    columns = _columns(problem)
    n_queries = len(problem.plan.query_ptr) - 1
    query_of = np.repeat(np.arange(n_queries), np.diff(problem.plan.query_ptr))
    mass = problem.loss.term_mass(problem.plan)
    beta = _bounds(*columns, query_of, problem.plan.query_ptr, mass, bound == "paper")
    evaluate, arrays = problem.loss.compiled(problem.plan)
    table = penalty.coordinate_table()
    w[(beta <= 0.0) & ~penalty.free] = 0.0  # the loss does not depend on them
    u = problem.scores(w)
    certificate = Certificate(problem, penalty)
    problem.at(w)
    free_scale = problem.gradient_scale()
    n_iter, history = 0, []
    before: Solution | None = None
    while True:
        value, g = problem.evaluate(u)
        c = problem.design.rmatvec(g)
        objective = value + penalty.value(w)
        certificate.raise_bound(w, c, partial(problem.dual_at, u))
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
        for _ in range(sweeps):
            _sweep(evaluate, arrays, *columns, query_of, n_queries, beta, table, w, u, g)
        n_iter += sweeps


def _columns(problem: Problem) -> tuple[Any, Any, Any]:
    """Return X by column: values, rows and where columns begin; no rows when X is dense."""
    design: Any = problem.design
    if hasattr(design, "indptr"):
        return design.data, design.indices, design.indptr
    values = np.ascontiguousarray(design.X.T).ravel()
    pointers = np.arange(design.n_features + 1, dtype=np.int64) * design.n_rows
    return values, np.zeros(0, dtype=np.int32), pointers


@kernel
def _bounds(
    values: AnyArray, rows: AnyArray, pointers: AnyArray, query_of: IntArray, query_ptr: IntArray,
    mass: FloatArray, paper: bool,
) -> FloatArray:  # fmt: skip
    """Bound the curvature of the loss in each weight, whatever the scores."""
    n_features = len(pointers) - 1
    beta = np.zeros(n_features)
    n_queries = len(mass)
    low = np.zeros(n_queries)
    high = np.zeros(n_queries)
    seen = np.zeros(n_queries, dtype=np.int64)
    for r in range(n_features):
        low[:] = 0.0
        high[:] = 0.0
        seen[:] = 0
        for at in range(pointers[r], pointers[r + 1]):
            q = query_of[rows[at] if len(rows) > 0 else at - pointers[r]]
            x = values[at]
            low[q] = x if seen[q] == 0 else min(low[q], x)
            high[q] = x if seen[q] == 0 else max(high[q], x)
            seen[q] += 1
        for q in range(n_queries):
            if seen[q] < query_ptr[q + 1] - query_ptr[q]:  # some documents have a zero
                low[q] = min(low[q], 0.0)
                high[q] = max(high[q], 0.0)
            if paper:
                beta[r] += mass[q] * max(low[q] * low[q], high[q] * high[q])
            else:
                beta[r] += mass[q] * (high[q] - low[q]) ** 2 / 4.0
    return beta


@numba.njit(nogil=True, error_model="numpy")
def _sweep(
    evaluate: Any, arrays: Any, values: AnyArray, rows: AnyArray, pointers: AnyArray,
    query_of: IntArray, n_queries: int, beta: FloatArray, table: Any, w: FloatArray, u: FloatArray,
    g: FloatArray,
) -> None:  # fmt: skip
    above, below, ridge, rate, power = table
    for r in range(len(w)):
        if beta[r] <= 0.0:
            continue
        begin, end = pointers[r], pointers[r + 1]
        slope = 0.0
        for at in range(begin, end):
            slope += values[at] * g[rows[at] if len(rows) > 0 else at - begin]
        z = w[r] - slope / beta[r]
        new = coordinate_minimum(z, beta[r], above[r], below[r], ridge[r], rate[r], power)
        step = new - w[r]
        if step == 0.0:
            continue
        w[r] = new
        if len(rows) == 0:
            for at in range(begin, end):
                u[at - begin] += step * values[at]
            evaluate(*arrays, 0, n_queries, u, g)
        else:  # a sparse column touches only its own queries
            last = -1
            for at in range(begin, end):
                u[rows[at]] += step * values[at]
            for at in range(begin, end):
                q = query_of[rows[at]]
                if q != last:
                    evaluate(*arrays, q, q + 1, u, g)
                    last = q
