"""Proximal gradient: a gradient step of the loss, then the minimum of the penalty around it.

    w ← argmin_x  penalty(x) + K/2 · ‖x − (w − ∇/K)‖²

For ℓ1 that is w ← S(w − ∇/K), soft thresholding at λ/K. A K of at least the Lipschitz constant of
the gradient makes every step a descent, and a short one. The published SparseRank takes a smaller
one on purpose: steps are longer, some go up, and the best point met is the answer. Where steps
keep going up, K was too small: it is doubled, and the best point is where to go on.

The accelerated variant is Nesterov's: gradients are taken ahead of the point, in the direction of
the last step, K follows the curvature met, and the momentum is dropped whenever it points uphill.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.losses.base import require
from leanrank.problem.memory import Problem
from leanrank.solvers.certificate import Certificate
from leanrank.solvers.newton.solver import Solution

PATIENCE = 10
"""Steps without a better point after which K is taken to be too small."""

LOOK_EVERY = 10
"""Steps between two looks at the gap, which costs as much as an evaluation of the loss."""

DARING = 0.1
"""The K to begin with, as a share of the curvature that the first gradient meets."""

RELAX = 0.95
"""After every step the accelerated variant lowers K by this factor: curvature may fall."""

ROUNDING = 1e-14
"""Relative error of a sum, below which a rise of the objective means nothing."""


def solve_proximal(
    problem: Problem,
    penalty: Any,
    *,
    lipschitz: float | None = None,
    w: FloatArray | None = None,
    tol: float = 1e-3,
    max_iter: int = 10_000,
    accelerate: bool = False,
    callback: Callable[[dict[str, Any]], None] | None = None,
) -> Solution:
    """Minimise loss + penalty to a relative duality gap of ``tol``.

    Parameters
    ----------
    problem : Problem
    penalty : ElasticNet
    lipschitz : float, optional
        K. None: a tenth of the curvature at the start in the direction of the gradient, which is
        itself at most the Lipschitz constant.
    w : array, optional
        Where to start.
    tol : float
    max_iter : int
        Most steps: reads of the whole X.
    accelerate : bool
    callback : callable, optional
        Called with each entry of the history, one every ten steps.
    """
    require(problem.loss, "proximal", "evaluate", "along", "dual")
    require(penalty, "proximal", "kinked", "dual_scale", "conjugate")
    start = np.zeros(problem.n_features) if w is None else penalty.permitted(w)
    point = _Point(problem, penalty, start, problem.scores(start))
    k = DARING * _curvature(problem, point) if lipschitz is None else lipschitz
    steps: Any = (_Accelerated if accelerate else _Plain)(problem, penalty, point, k)
    certificate = Certificate(problem, penalty)
    free_scale = 1.0
    history: list[dict[str, Any]] = []
    n_iter = 0
    while True:
        best, latest = steps.best, steps.latest
        certificate.raise_bound(latest.u, latest.c)
        if latest is not best:
            certificate.raise_bound(best.u, best.c)
        free_residual = penalty.free_residual(best.w, best.c)
        free_scale = max(free_scale, free_residual)
        entry = {
            "iteration": n_iter,
            "objective": best.objective,
            "gap": certificate.gap(best.objective),
            "support": int(np.count_nonzero(best.w)),
            "lipschitz": steps.k,
        }
        history.append(entry)
        if callback is not None:
            callback(entry)
        converged = entry["gap"] <= tol and free_residual <= tol * free_scale
        if converged or steps.stuck or n_iter >= max_iter:
            break
        for _ in range(min(LOOK_EVERY, max_iter - n_iter)):
            steps.step()
            n_iter += 1
    return Solution(best.w, best.objective, entry["gap"], free_residual, n_iter, converged, history)


class _Point:
    """Weights with their scores, loss and objective, and the gradient once it is asked for."""

    def __init__(self, problem: Problem, penalty: Any, w: FloatArray, u: FloatArray) -> None:
        self.problem = problem
        self.w = w
        self.u = u
        self.value, self.g = problem.evaluate(u)
        self.objective = self.value + penalty.value(w)

    @cached_property
    def c(self) -> FloatArray:
        """The loss's gradient in the weights."""
        return self.problem.design.rmatvec(self.g)


class _Plain:
    """The published iteration."""

    def __init__(self, problem: Problem, penalty: Any, point: _Point, k: float) -> None:
        self.problem = problem
        self.penalty = penalty
        self.k = k
        self.best = self.latest = point
        self.waited = 0
        self.stuck = False

    def step(self) -> None:
        """Move; go back to the best point with a larger K if nothing better came for long."""
        w = _proximal(self.penalty, self.latest.w, self.latest.c, self.k)
        self.stuck = np.array_equal(w, self.best.w)
        self.latest = _Point(self.problem, self.penalty, w, self.problem.scores(w))
        if self.latest.objective < self.best.objective:
            self.best, self.waited = self.latest, 0
            return
        self.waited += 1
        if self.waited >= PATIENCE or not np.isfinite(self.latest.objective):
            self.k *= 2.0
            self.latest, self.waited = self.best, 0


class _Accelerated:
    """Nesterov's iteration with a search for K and restarts."""

    def __init__(self, problem: Problem, penalty: Any, point: _Point, k: float) -> None:
        self.problem = problem
        self.penalty = penalty
        self.k = k
        self.best = self.latest = point
        self.momentum = 1.0
        self.stuck = False

    def step(self) -> None:
        """Step from the point ahead with a K that its quadratic bound justifies; look ahead."""
        y, old = self.latest, self.best
        new = self._descend(y)
        if not new.objective < old.objective:
            self.stuck = y is old  # no momentum to blame: the last digits are reached
            self.latest, self.momentum = old, 1.0
            return
        uphill = float((y.w - new.w) @ (new.w - old.w)) > 0.0
        momentum = 1.0 if uphill else 0.5 + np.sqrt(0.25 + self.momentum**2)
        pace = (self.momentum - 1.0) / momentum
        self.best = self.latest = new
        self.momentum = momentum
        self.k *= RELAX
        if pace > 0.0 and not uphill:
            w, u = new.w + pace * (new.w - old.w), new.u + pace * (new.u - old.u)
            self.latest = _Point(self.problem, self.penalty, w, u)

    def _descend(self, y: _Point) -> _Point:
        while True:
            w = _proximal(self.penalty, y.w, y.c, self.k)
            new = _Point(self.problem, self.penalty, w, self.problem.scores(w))
            move = w - y.w
            bound = y.value + float(y.c @ move) + 0.5 * self.k * float(move @ move)
            if new.value <= bound + ROUNDING * abs(y.value):
                return new
            self.k *= 2.0


def _proximal(penalty: Any, w: FloatArray, c: FloatArray, k: float) -> FloatArray:
    """Minimise ⟨c, x⟩ + k/2·‖x − w‖² + penalty(x)."""
    above, below, ridge = penalty.kinked
    pull = k * w - c
    with np.errstate(invalid="ignore"):  # inf − inf where a weight is shut out
        reduced = np.where(pull > above, pull - above, np.where(pull < -below, pull + below, 0.0))
    return reduced / (k + ridge)


def _curvature(problem: Problem, point: _Point) -> float:
    """Give the curvature of the loss in the direction of its gradient."""
    squared = float(point.c @ point.c)
    if squared == 0.0:
        return 1.0
    bend = float(problem.along(point.u, problem.design.matvec(point.c), 0.0)[2]) / squared
    return bend if bend > 0.0 else 1.0
