"""Working-set proximal Newton, stopped by a duality gap.

Outer iterations read all of X once: they compute the gap, discard features that provably stay at
zero, and choose a working set. Inner iterations minimise over the working set alone, on a compact
copy of its columns: the exact Hessian, a quadratic problem solved by coordinate descent on its Gram
form, a line search on the scores. Nearly all work is on the few columns that matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.errors import InputError
from leanrank.losses.base import require
from leanrank.problem.memory import Problem
from leanrank.solvers.certificate import Certificate
from leanrank.solvers.newton.lazy_gradient import LazyGradient
from leanrank.solvers.newton.matrix_free import minimise_by_products

DESCENT = 0.4
"""A cold start first solves stronger penalties roughly, each this many times the one before: their
supports are small, and where they end the gradient says which features to add."""

FAR, DROPPED_FAR, DROPPED_NEAR = 1e-2, 1e-2, 1e-3
"""What a sparse Hessian may drop while the relative gap is above ``FAR``, and after."""

SAMPLE_PER_FEATURE = 100
"""Documents of a long list that stand for all of it in a rough step, for each feature."""

ROUNDING = 1e-13
"""Relative change of the objective that its sums cannot tell from none."""

FEW_FEATURES = 512
"""Up to so many features, a cold start may take in all that want to enter."""

MOST_STEPS = 2
"""Newton steps in one working set before the rest is looked at again: a look costs less than a
step's Hessian."""

WEAK = 100.0
"""A penalty that many times weaker than one that lets no more features in is approached in stages
however few features there are: 300 documents × 600 features at 1e-6·alpha_max took 3 minutes in
one go and takes 3 s in stages."""

NEARLY = 0.8
"""Features whose gradient is above this share of their threshold may join the working set, up to a
tenth of it, so that it need not change soon."""

GOOD_STEP = 0.1
"""A Hessian is used again if the step it gave left at most this share of the gap."""

INNER_SHARE = 0.1
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
        Largest gradient that is left in an unpenalised feature, relative to ‖x_j‖·‖g‖ at the start,
        the most that it could be there. The gap compares models with the same weights in such
        features only.
    n_iter : int
        Outer iterations: reads of the whole X.
    converged : bool
    history : list of dict
        One entry per outer iteration.
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
    callback : callable, optional
        Called with each entry of the history.
    """
    require(problem.loss, "newton", "evaluate", "curvature or products", "dual")
    require(penalty, "newton", "excess", "ratio", "threshold", "times")
    state = _start(problem, penalty, w)
    gradient = LazyGradient.of(problem)
    certificate = Certificate(problem, penalty)
    free_scale = problem.gradient_scale(state.g)
    history: list[dict[str, Any]] = []
    strength = np.inf
    working = _WorkingSet(problem, np.flatnonzero(state.w))
    for n_iter in range(1, max_iter + 1):
        c = gradient(state.g, penalty)
        objective = state.value + penalty.value(state.w)
        certificate.raise_bound(state.u, state.w, c)
        rounding = problem.rounding(state.w, objective, state.g)
        gap = certificate.room(objective, rounding)
        free_residual = penalty.free_residual(state.w, c, free_scale)
        entry = {
            "iteration": n_iter,
            "objective": objective,
            "gap": certificate.gap(objective, rounding),
            "support": int(np.count_nonzero(state.w)),
            "working_set": len(working.features),
        }
        history.append(entry)
        if callback is not None:
            callback(entry)
        converged = gap <= tol * objective and free_residual <= tol
        # where the least objective is zero there is nothing that a gap could be relative to
        converged = converged or objective <= tol**2 * problem.value_at_zero
        if converged or n_iter == max_iter:
            break
        strength = _strength(strength, penalty, c, state.w)
        stage = penalty if strength == 1.0 else penalty.times(strength)
        working.choose(_choose(stage, c, state.w, working.features))
        target = max(INNER_SHARE * gap, 0.5 * tol * objective)
        moved = _minimise_over(problem, stage, working, state, target, free_scale, strength > 1.0)
        if not moved and strength == 1.0:
            break
    return Solution(state.w, objective, entry["gap"], free_residual, n_iter, converged, history)


class _WorkingSet:
    """The features under work, their columns, and the latest quadratic model."""

    def __init__(self, problem: Problem, features: IntArray) -> None:
        self.problem = problem
        self.features = features
        self.block: Any = None
        self.model: Any = None
        self.gap = np.inf

    def choose(self, features: IntArray) -> None:
        """Change the features; nothing is lost if they are the same."""
        if self.block is None or not np.array_equal(features, self.features):
            self.features = features
            self.block = self.problem.design.take(features)
            self.model = None

    def step(
        self,
        part: Any,
        u: FloatArray,
        c: FloatArray,
        w: FloatArray,
        gap: float,
        *,
        rough: bool,
    ) -> tuple[FloatArray, bool]:
        """Minimise the quadratic model at scores u; tell whether its Hessian is of this very point.

        A Hessian serves again after a step that went very well: ``gap`` is the relative one now.
        """
        good, self.gap = gap <= GOOD_STEP * self.gap, gap
        too_large = self.block.n_features > self.problem.largest_gram
        if too_large and not self.problem.by_columns(self.block):
            product = partial(self.problem.product, self.block, u)
            return minimise_by_products(product, c, w, *part.kinked), True
        fresh = self.model is None or not good
        if fresh:
            sample = SAMPLE_PER_FEATURE * max(256, self.block.n_features) if rough else None
            dropped = DROPPED_FAR if gap > FAR else DROPPED_NEAR
            self.model = self.problem.quadratic(self.block, u, dropped=dropped, thin=sample)
        return self.model.minimise(c, w, *part.kinked), fresh


def _strength(strength: float, penalty: Any, c: FloatArray, w: FloatArray) -> float:
    """Return how many times stronger the penalty should be for now.

    Not too many features enter at once, and a weak penalty is approached by stronger ones, as a
    path does: with next to none, the steps of a loss that can vanish lead nowhere for long.
    """
    ratio = penalty.ratio(np.where((w == 0) & ~penalty.always & ~penalty.excluded, c, 0.0))
    top = min(strength, float(ratio.max(initial=0.0)))
    if top <= WEAK and np.count_nonzero(ratio > 1.0) <= _room(w):
        return 1.0
    return max(1.0, DESCENT * top)


def _room(w: FloatArray) -> int:
    """How many features may enter at once: any number if there are few."""
    if len(w) <= FEW_FEATURES:
        return len(w)
    return max(64, 2 * int(np.count_nonzero(w)))


def _start(problem: Problem, penalty: Any, w: FloatArray | None) -> _State:
    """Evaluate the starting point, less the weights that the penalty forbids."""
    if w is None:
        w = np.zeros(problem.n_features)
    w = penalty.permitted(w)
    u = problem.scores(w)
    value, g = problem.evaluate(u)
    if not np.isfinite(value):
        raise InputError(
            f"the {problem.loss.name!r} loss is {value} where the solver starts: bring offsets, "
            "margins and features to a smaller scale"
        )
    return _State(w, u, value, g)


def _choose(
    penalty: Any,
    c: FloatArray,
    w: FloatArray,
    working: IntArray,
) -> IntArray:
    """Choose the support, what is always in, and the strongest of those that want to enter.

    Once nothing outside wants to enter, the set stays as it is. Until then it takes in those that
    are close to wanting, so that it need not change soon.
    """
    allowed = ~penalty.excluded
    support = (w != 0) | (penalty.always & allowed)
    outside = np.where(allowed & ~support, c, 0.0)
    kept = np.zeros(len(w), dtype=bool)
    kept[working] = True
    if not np.any(penalty.excess(np.where(kept, 0.0, outside))):
        return np.flatnonzero((kept & allowed) | support)
    ratio = penalty.ratio(outside)
    wanting, nearly = (int(np.count_nonzero(ratio > share)) for share in (1.0, NEARLY))
    reserve = (wanting + int(np.count_nonzero(support))) // 10
    room = min(wanting + reserve, nearly, _room(w))
    chosen = support.copy()
    chosen[np.argsort(-ratio, kind="stable")[:room]] = True
    return np.flatnonzero(chosen)


def _minimise_over(
    problem: Problem,
    penalty: Any,
    working: _WorkingSet,
    state: _State,
    target: float,
    free_scale: FloatArray,
    rough: bool,
) -> bool:
    """Take Newton steps in the working set until its gap is below target; tell if any was taken."""
    features, block = working.features, working.block
    part = penalty.restrict(features)
    certificate = Certificate(problem, part)
    moved = False
    promised = -np.inf
    for _ in range(1 if rough else MOST_STEPS):
        w = state.w[features]
        c = block.rmatvec(state.g)
        objective = state.value + part.value(w)
        certificate.raise_bound(state.u, w, c)
        gap = certificate.room(objective)
        stalled = moved and promised > -ROUNDING * objective and gap > 0.5 * working.gap * objective
        if stalled:
            break
        free_residual = part.free_residual(w, c, free_scale[features])
        if moved and gap <= target and free_residual <= target / max(objective, target):
            break
        relative_gap = certificate.gap(objective)
        step, fresh = working.step(part, state.u, c, w, relative_gap, rough=rough)
        promised = float(np.sum(c * step + part.change(w, step)))
        if promised < 0.0 and _line_search(
            problem, part, features, state, w, step, block.matvec(step), objective, promised
        ):
            moved = True
        elif fresh:
            break
        else:
            working.model = None
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
    slack = ROUNDING * abs(objective)
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
