"""The 1-slack cutting plane for a ridge penalty: the loss as the upper envelope of few planes.

At weights w with loss value R and gradient c, the plane R + ⟨c, · − w⟩ is below the loss
everywhere. Minimising the penalty plus the maximum of all planes so far, their envelope, is a small
quadratic problem, whose dual variables are a mixture of planes. Its minimum is a lower bound of the
objective, and the next plane is taken at its minimiser. A plane is the sum over all pairs of all
queries (the joint constraint of Joachims' "1-slack" formulation), so that a few dozen are active at
a time.

The plain variant is the algorithm of SVM-rank; its objective is not monotone. The fast variant
(after Franc and Sonnenburg's OCAS) searches the line from the best point so far to the minimiser,
and adds planes at the minimum on that line and slightly beyond.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import InputError, check_choice
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem
from leanrank.solvers.base import Solution, Solver, relative
from leanrank.solvers.first_order._subproblems import minimise_on_segment, minimise_over_simplex

VARIANTS = ("plain", "fast")

IDLE_ROUNDS = 30
"""Rounds without use after which a plane is dropped; measured by ``benchmarks pairwise``."""

BEYOND = 0.1
"""A plane is added this share of the way from the line's minimum to the minimiser, as in OCAS."""

EPSILON = float(np.finfo(np.float64).eps)

INNER_SHARE = 0.01
"""Accuracy of the mixture, as a share of the remaining gap."""


@dataclass(frozen=True)
class CuttingPlane(Solver):
    """Cutting planes for a convex loss + ½ Σ ridge_j w_j².

    The solver stops before ``tol``, with the best point and its gap, after ``max_iter`` rounds, at
    a plane whose slope overflows, or when ``IDLE_ROUNDS`` rounds gave neither a lower objective nor
    a higher bound, because of rounding. The loss needs a value and a (sub)gradient only. The
    penalty must be an elastic net without ℓ1 part and signs, with a ridge on every feature that may
    enter.

    Attributes
    ----------
    variant : {"plain", "fast"}
    """

    tol: float = 1e-3
    max_iter: int = 5_000
    variant: str = "plain"

    name: ClassVar[str] = "cutting-plane"
    depends_on_scale: ClassVar[bool] = True
    penalty_needs: ClassVar[tuple[str, ...]] = ("coordinate_table",)

    def solve(self, problem: Problem, penalty: Penalty, w: FloatArray | None = None) -> Solution:
        """Minimise loss + penalty to a relative duality gap of ``tol``, from weights w or zero."""
        check_choice("variant", self.variant, VARIANTS)
        self.check(problem.loss, penalty)
        spread = _spread(penalty)
        start = np.zeros(problem.n_features) if w is None else w * (spread > 0)
        best = _tangent(problem, penalty, start)
        planes = _Planes(spread)
        planes.add(best)
        best_bound = -np.inf
        history: list[dict[str, Any]] = []
        absolute_gap, idle = best.objective, 0
        for n_iter in range(1, self.max_iter + 1):
            target, bound = planes.minimise(
                INNER_SHARE * max(absolute_gap, 0.1 * self.tol * best.objective)
            )
            best_bound = max(best_bound, bound)
            if self.variant == "plain":
                new = _tangent(problem, penalty, target)
                planes.add(new)
                best = new if new.objective < best.objective else best
            else:
                w = _lowest_towards(problem, penalty, best.w, target)
                beyond = _tangent(problem, penalty, w + BEYOND * (target - w))
                new = _tangent(problem, penalty, w)  # last: the next search starts here
                if new.objective < best.objective:
                    best = new
                else:  # or it overflows
                    problem.at(best.w)
                planes.add(best)
                planes.add(beyond)
            idle = 0 if best.objective - best_bound < absolute_gap else idle + 1
            absolute_gap = best.objective - best_bound
            gap = relative(absolute_gap, best.objective)
            entry = {"objective": best.objective, "gap": gap, "planes": len(planes.level)}
            self.note(history, best.w, iteration=n_iter, **entry)
            converged = gap <= self.tol
            if converged or idle > IDLE_ROUNDS or not planes.finite:
                break
        return Solution(best.w, best.objective, gap, 0.0, n_iter, converged, history)


class _Tangent(NamedTuple):
    """Weights, the loss and its gradient there, and the objective."""

    w: FloatArray
    value: float
    c: FloatArray
    objective: float


def _tangent(problem: Problem, penalty: Penalty, w: FloatArray) -> _Tangent:
    value = problem.at(w)
    return _Tangent(w, value, problem.gradient(), value + penalty.value(w))


class _Planes:
    """Planes level + ⟨slope, w⟩ below the loss, and the mixture that bounds the objective."""

    def __init__(self, spread: FloatArray) -> None:
        self.spread = spread
        self.level, self.size = np.zeros(0), np.zeros(0)  # size: of the terms that add up to level
        self.slope = np.zeros((0, len(spread)))
        self.inner = np.zeros((0, 0))
        self.share = np.zeros(0)
        self.idle = np.zeros(0, dtype=np.int64)

    def add(self, point: _Tangent) -> None:
        """Add the tangent plane of the loss at a point."""
        across = self.slope @ (self.spread * point.c)
        own = float(point.c @ (self.spread * point.c))
        self.inner = np.block([[self.inner, across[:, None]], [across[None, :], own]])
        self.slope = np.vstack([self.slope, point.c])
        self.level = np.append(self.level, point.value - float(point.c @ point.w))
        size = abs(point.value) + float(np.abs(point.c) @ np.abs(point.w))
        self.size = np.append(self.size, size)
        self.share = np.append(self.share, 0.0 if len(self.share) else 1.0)
        self.idle = np.append(self.idle, 0)

    @property
    def finite(self) -> bool:
        """Whether the mixture can be computed: products of slopes may overflow."""
        return bool(np.isfinite(self.inner).all() and np.isfinite(self.level).all())

    def minimise(self, tol: float) -> tuple[FloatArray, float]:
        """Return the minimiser of penalty + envelope, and a lower bound of the minimum."""
        self.share, _ = minimise_over_simplex(self.inner, -self.level, self.share, tol)
        w = -self.spread * (self.share @ self.slope)
        bound = self._bound()
        self.idle = np.where(self.share > 0.0, 0, self.idle + 1)
        self._keep(self.idle <= IDLE_ROUNDS)
        return w, bound

    def _bound(self) -> float:
        """Return a lower bound of the minimum from the mixture, minus a bound on its rounding.

        Slopes of different orders of magnitude cancel in the mixture only up to the rounding of the
        largest one.
        """
        share, used = self.share, self.share > 0.0
        rounding = EPSILON * (len(share) + len(self.spread))
        sizes = share[used] @ np.abs(self.slope[used])
        steepness = np.abs(share @ self.slope) + rounding * sizes
        level = share @ self.level - rounding * float(share @ self.size)
        return float(level - 0.5 * (steepness @ (self.spread * steepness)))

    def _keep(self, kept: Any) -> None:
        if kept.all():
            return
        self.level, self.size, self.slope, self.share, self.idle = (
            some[kept] for some in (self.level, self.size, self.slope, self.share, self.idle)
        )
        self.inner = self.inner[np.ix_(kept, kept)]


def _spread(penalty: Penalty) -> FloatArray:
    """Return 1/ridge for each feature, 0 for those that are left out."""
    above, below, ridge = penalty.coordinate_table()
    entering = ~penalty.excluded
    if np.any(above[entering] > 0) or np.any(below[entering] > 0):
        raise InputError(
            "the cutting plane minimises a loss with an ℓ2 penalty only: set l1_ratio=0 or "
            "penalty='l2', without signs, or choose another solver"
        )
    if np.any(ridge[entering] <= 0):
        raise InputError(
            "the cutting plane needs a ridge penalty on every feature: alpha and penalty_factors "
            "must be above 0"
        )
    spread: FloatArray = np.divide(1.0, ridge, out=np.zeros(len(ridge)), where=entering)
    return spread


def _lowest_towards(
    problem: Problem, penalty: Penalty, w: FloatArray, target: FloatArray
) -> FloatArray:
    """Return the minimum on the line from w, the problem's current point, to a target."""
    step = target - w
    _, _, ridge = penalty.coordinate_table()
    pull, curvature = float(ridge @ (w * step)), float(ridge @ (step * step))

    def probe(t: float) -> tuple[float, float]:
        problem.try_step(step, t)
        return problem.directional_derivative() + pull + t * curvature, curvature

    return w + minimise_on_segment(probe) * step
