"""Minimisation over an ℓ1 ball (Frank–Wolfe), stopped by its duality gap.

Over ‖w‖₁ ≤ radius the linear function ⟨c, ·⟩, c being the gradient of the loss at w, is least at
the corner −sign(c_j)·radius·e_j with the largest |c_j|. Its difference between w and this corner,

    ⟨c, w⟩ + radius · max|c_j|,

is a duality gap: no loss in the ball is smaller than the loss at w minus the gap.

The greedy variant, as published, moves towards this corner in each round, which changes one
feature; its gap falls like one over the number of rounds. The corrective variant adds several
corners per round and then minimises over the part of the ball that they and the features in use
span, by quadratic models: few rounds give a small gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import FloatArray, IntArray, require
from leanrank.errors import InputError, check_choice
from leanrank.penalties.base import Penalty
from leanrank.penalties.elastic_net import L1Ball
from leanrank.problem.base import Problem
from leanrank.solvers.base import Solution, Solver, relative
from leanrank.solvers.first_order._subproblems import minimise_on_segment, minimise_over_simplex

VARIANTS = ("greedy", "corrective")

NEW_FEATURES = 16
"""Features added per round, or as many as are in use if that is more; this and the next were set
by ``benchmarks pairwise``."""

INNER_SHARE = 0.1
"""Accuracy on the features in use, as a share of the whole gap."""

INNER_STEPS = 20

ROUNDING = 1e-14
"""Relative rise of the loss that counts as rounding. Near the optimum, the gap still falls when the
loss no longer does."""


@dataclass(frozen=True)
class Fenchel(Solver):
    """Frank–Wolfe over an ``L1Ball``; each of at most ``max_iter`` rounds reads all of X.

    A loss that is zero up to rounding has a gap of 0.

    Attributes
    ----------
    variant : {"greedy", "corrective"}
        One corner per round, or a minimisation over all features in use before the next.
    """

    tol: float = 1e-3
    max_iter: int = 10_000
    variant: str = "greedy"

    name: ClassVar[str] = "fenchel"

    def solve(self, problem: Problem, penalty: Penalty, w: FloatArray | None = None) -> Solution:
        """Minimise the loss over ‖w‖₁ ≤ radius, from weights w scaled into the ball."""
        check_choice("solver", self.variant, VARIANTS)
        self.check(problem.loss, penalty)
        if self.variant == "corrective":
            require(problem.loss, "fenchel (corrective)", "curvature or products")
        if not isinstance(penalty, L1Ball):
            raise InputError(
                f"the solver 'fenchel' minimises over an ℓ1 ball, but the penalty is "
                f"{penalty.name!r}: use L1Ball"
            )
        radius = penalty.radius
        w = np.zeros(problem.n_features) if w is None else penalty.permitted(w)
        value = problem.at(w)
        best_bound = 0.0  # no loss is negative
        vanished = ROUNDING * min(1.0, value)
        last_value = last_gap = np.inf
        history: list[dict[str, Any]] = []
        for n_iter in range(1, self.max_iter + 1):
            c = problem.gradient()
            absolute_gap = _gap(c, w, radius)
            best_bound = max(best_bound, value - absolute_gap)
            gap = 0.0 if value <= vanished else relative(value - best_bound, value)
            self.note(history, w, iteration=n_iter, objective=value, gap=gap)
            converged = gap <= self.tol
            # rounding hides any further decrease
            stalled = value >= last_value and absolute_gap >= 0.5 * last_gap
            if converged or stalled or n_iter == self.max_iter:
                break
            last_value, last_gap = value, absolute_gap
            if self.variant == "greedy":
                w, value, moved = _move(problem, w, value, _corner(c, radius))
            else:
                features = _join(np.flatnonzero(w), c)
                target = max(INNER_SHARE * absolute_gap, 0.1 * self.tol * value)
                problem.focus(features)
                w[features], value, moved = _correct(problem, w[features], value, radius, target)
            if not moved:
                break
        return Solution(w, value, gap, 0.0, n_iter, converged, history)


def _move(
    problem: Problem, w: FloatArray, value: float, target: FloatArray
) -> tuple[FloatArray, float, bool]:
    """Minimise the loss on the line from w to a target; return weights, loss and if they moved."""
    step = target - w

    def probe(t: float) -> tuple[float, float]:
        problem.try_step(step, t)
        return problem.directional_derivative(), problem.curvature_along_step()

    t = minimise_on_segment(probe)
    reached = problem.try_step(step, t) if t > 0.0 else np.inf
    if not reached <= value * (1.0 + ROUNDING):
        return w, value, False
    problem.accept()
    return (target if t == 1.0 else w + t * step), reached, True


def _gap(c: FloatArray, w: FloatArray, radius: float) -> float:
    return float(c @ w) + radius * float(np.abs(c).max(initial=0.0))


def _corner(c: FloatArray, radius: float) -> FloatArray:
    """Return the corner of the ball with the least ⟨c, w⟩."""
    corner = np.zeros(len(c))
    j = int(np.argmax(np.abs(c)))
    corner[j] = -np.sign(c[j]) * radius
    return corner


def _join(features: IntArray, c: FloatArray) -> IntArray:
    """Return the features and those with the largest gradients, about as many again."""
    strength = np.abs(c)
    strength[features] = 0.0
    n_new = min(max(NEW_FEATURES, len(features)), np.count_nonzero(strength))
    new = np.argsort(-strength, kind="stable")[:n_new]
    return np.sort(np.concatenate([features, new]))


def _correct(
    problem: Problem, w: FloatArray, value: float, radius: float, target: float
) -> tuple[FloatArray, float, bool]:
    """Minimise over the part of the ball that the focused features span; w are their weights."""
    n = len(w)
    moved_at_all = False
    for _ in range(INNER_STEPS):
        c = problem.focused_gradient()
        if _gap(c, w, radius) <= target:
            break
        hessian = problem.focused_hessian()
        # w is a mixture of the corners +radius·e_j and −radius·e_j and the centre
        share = np.concatenate([np.maximum(w, 0.0), np.maximum(-w, 0.0)]) / radius
        share = np.append(share, max(0.0, 1.0 - share.sum()))
        Q = np.zeros((2 * n + 1, 2 * n + 1))
        Q[:-1, :-1] = radius**2 * np.block([[hessian, -hessian], [-hessian, hessian]])
        b = radius * (c - hessian @ w)
        share, _ = minimise_over_simplex(Q, np.concatenate([b, -b, [0.0]]), share, 0.01 * target)
        w, value, moved = _move(problem, w, value, radius * (share[:n] - share[n:-1]))
        if not moved:
            break
        moved_at_all = True
    return w, value, moved_at_all
