"""Working-set proximal Newton, stopped by a duality gap.

Outer iterations read all of X once: they compute the gap and choose a working set. Inner iterations
minimise over the working set alone, on a compact copy of its columns: a quadratic model with the
exact Hessian, minimised together with the penalty, then a line search on the scores. Nearly all
work is on the few columns that matter.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.errors import InputError
from leanrank.penalties.base import NEWTON, Penalty
from leanrank.problem.base import Problem, QuadraticModel
from leanrank.solvers.base import Certificate, Solution, Solver

ROUNDING = 1e-13
"""Relative change of the objective that is within the rounding of its sums."""


@dataclass(frozen=True)
class Newton(Solver):
    """Working-set proximal Newton. Defaults were set by ``benchmarks domination``.

    Attributes
    ----------
    descent : float
        A cold start first solves stronger penalties approximately, each this fraction of the one
        before: their supports are small, and their gradients show which features to add.
    few_features : int
        Number of features up to which a cold start may add all that violate their threshold.
    weak, approach : float
        A penalty weaker by the factor ``weak`` than one that adds no feature is approached in
        stages, each ``approach`` times the one before, if there are at least half as many features
        as documents: there the loss can vanish. RankSVM on 300 documents × 600 features at
        1e-6·alpha_max takes less time in stages than a path of 20, and minutes without; on
        600 × 250 both are fast.
    steps : int
        Quadratic models in one working set before the other features are checked again.
    nearly : float
        Features whose gradient is above this share of their threshold may join the working set, up
        to a tenth of it, so that it does not change soon.
    inner_share : float
        The working set is solved until its own gap is this share of the whole gap, and to the end
        if it is the one before.
    good_step, poor_step : float
        A model is used again if the step it gave left at most the share ``good_step`` of the gap.
        Samples are drawn until a step leaves more than ``poor_step`` of a gap below ``far``.
    far : float
        Relative gap below which a sample without the diagonal of all documents is a larger one.
        It becomes larger too once the objective falls short of a promise by more than
        ``good_step``; the next time, all documents are used. A sample with that diagonal is used
        until two steps in a row achieve less than half of their promise, and again once a model
        of all documents does no better.
    sample_per_feature, larger, fewest_sampled : int
        Sample size per feature for approximate Hessians, its factor below ``far``, and the number
        of features up to which it is the same. Larger sets are chosen anew before that factor
        applies; ``benchmarks service`` times it. With a factor of 1 the sample stays as it is, and
        is used anew at every step: enough for a rough gap on many documents.
    patience, least_progress : int, float
        The solver stops without convergence once the objective has not fallen by this share of the
        gap for ``patience`` iterations: with few correct digits in a Hessian, steps stay tiny. Hard
        problems (1e-6·alpha_max) fall by a tenth of it or more.
    """

    descent: float = 0.4
    few_features: int = 512
    weak: float = 10.0
    approach: float = 0.5
    steps: int = 2
    nearly: float = 0.8
    inner_share: float = 0.1
    good_step: float = 0.1
    poor_step: float = 0.5
    far: float = 1e-2
    sample_per_feature: int = 100
    larger: int = 8
    fewest_sampled: int = 256
    patience: int = 30
    least_progress: float = 1e-3

    name: ClassVar[str] = "newton"
    loss_needs: ClassVar[tuple[str, ...]] = ("smooth", "dual")
    penalty_needs: ClassVar[tuple[str, ...]] = NEWTON

    def solve(self, problem: Problem, penalty: Penalty, w: FloatArray | None = None) -> Solution:
        """Minimise loss + penalty to a relative duality gap of ``tol``."""
        self.check(problem.loss, penalty)
        working = _WorkingSet(self, problem, penalty, w)
        certificate = Certificate(problem, penalty)
        free_scale, strength = problem.gradient_scale(), np.inf
        improved, best = 1, np.inf  # the last real progress, the objective there
        history: list[dict[str, Any]] = []
        for n_iter in range(1, self.max_iter + 1):
            c = problem.gradient()
            objective = working.value + penalty.value(working.w)
            certificate.raise_bound(working.w, c)
            rounding = problem.rounding(working.w, objective)
            absolute = certificate.absolute_gap(objective, rounding)
            free_residual = penalty.free_residual(working.w, c, free_scale)
            # where loss and penalty vanish, a relative gap is not defined
            vanished = objective == working.value <= ROUNDING * min(1.0, problem.value_at_zero)
            gap = 0.0 if vanished else certificate.gap(objective, rounding)
            entry = {"objective": objective, "gap": gap, "working_set": len(working.features)}
            self.note(history, working.w, iteration=n_iter, **entry)
            converged = vanished or (gap <= self.tol and free_residual <= self.tol)
            least = max(self.least_progress * absolute, ROUNDING * objective)
            if strength > 1.0 or objective <= best - least:
                improved, best = n_iter, objective
            if converged or n_iter == self.max_iter or n_iter - improved >= self.patience:
                break
            strength = self._strength(strength, penalty, c, working.w, problem.n_rows)
            stage = penalty if strength == 1.0 else penalty.times(strength)
            # a larger sample is expensive: first drop features that are no longer needed
            kept = working.features[:0] if working.sample_grows(gap) else working.features
            settled = not working.choose(self._choose(stage, c, working.w, kept))
            target = max(
                0.0 if settled else self.inner_share * absolute, 0.5 * self.tol * objective
            )
            moved = working.minimise(stage, target, free_scale, rough=strength > 1.0)
            if not moved and strength == 1.0:
                break
        return Solution(working.w, objective, gap, free_residual, n_iter, converged, history)

    def _strength(
        self, strength: float, penalty: Penalty, c: FloatArray, w: FloatArray, n_rows: int
    ) -> float:
        """Return how many times stronger the penalty should be for now.

        Not too many features enter at once, and a weak penalty is approached by stronger ones, as a
        path does: with next to none, the steps of a loss that can vanish lead nowhere for long.
        """
        outside = ~penalty.together(w != 0) & ~penalty.always & ~penalty.excluded
        ratio = penalty.ratio(np.where(outside, c, 0.0))
        top = min(strength, float(ratio.max(initial=0.0)))
        most = self.weak if 2 * len(w) >= n_rows else np.inf
        if top > most:
            return max(1.0, self.approach * top)
        if np.count_nonzero(ratio > 1.0) <= self._most_entering(w):
            return 1.0
        return max(1.0, self.descent * top)

    def _most_entering(self, w: FloatArray) -> int:
        """Return how many features may enter at once: any number if there are few."""
        if len(w) <= self.few_features:
            return len(w)
        return max(64, 2 * int(np.count_nonzero(w)))

    def _choose(
        self, penalty: Penalty, c: FloatArray, w: FloatArray, working: IntArray
    ) -> IntArray:
        """Choose the support, features that are always in, and the largest violations.

        Without a violation outside the set it stays as it is. Otherwise features close to a
        violation join as well, so that the set does not change soon.
        """
        allowed = ~penalty.excluded
        support = (w != 0) | (penalty.always & allowed)
        ratio = np.where(support, 0.0, penalty.pull(w, np.where(allowed, c, 0.0)))
        present = np.zeros(len(w), dtype=bool)
        present[working] = True
        if not np.any(ratio[~present] > 1.0):
            return np.flatnonzero((present & allowed) | support)
        nearly = np.flatnonzero(ratio > self.nearly)
        n_violating = int(np.count_nonzero(ratio[nearly] > 1.0))
        reserve = (n_violating + int(np.count_nonzero(support))) // 10
        n_entering = min(n_violating + reserve, self._most_entering(w))
        chosen = support.copy()
        chosen[nearly[np.argsort(-ratio[nearly], kind="stable")[:n_entering]]] = True
        whole = penalty.together(chosen)  # a part of a group might not enter by itself
        return np.flatnonzero(chosen | (whole & (ratio > self.nearly)))


class _WorkingSet:
    """The weights, the working set, and the latest quadratic model of the loss in it."""

    def __init__(
        self, solver: Newton, problem: Problem, penalty: Penalty, w: FloatArray | None
    ) -> None:
        self.solver = solver
        self.problem = problem
        self.w = penalty.permitted(np.zeros(problem.n_features) if w is None else w)
        self.value = problem.at(self.w)  # the loss there
        if not np.isfinite(self.value):
            raise InputError(
                f"the {problem.loss.name!r} loss is {self.value} where the solver starts: bring "
                "offsets, margins and features to a smaller scale"
            )
        self.features = np.flatnonzero(self.w)
        self.focused = False
        self.model: QuadraticModel | None = None
        self.gap = np.inf
        self.samples = True  # while their steps are as good as those of all documents
        self.larger = 1  # factor of the sample size
        self.exact_diagonal = True  # of the last model
        self.fell_short = False  # whether the last step achieved less than half of its promise
        self.damping = 0.0  # ridge of the models, relative to scale²

    def choose(self, features: IntArray) -> bool:
        """Change the features; return whether they differ. The same features keep their model."""
        changed = not np.array_equal(features, self.features)
        if changed or not self.focused:
            self.features = features
            self.problem.focus(features)
            self.model, self.focused = None, True
        return changed

    @property
    def sampled(self) -> bool:
        """Whether the model is of a sample of the documents."""
        return self.model is not None and self.model.sampled

    def minimise(
        self, penalty: Penalty, target: float, free_scale: FloatArray, *, rough: bool
    ) -> bool:
        """Take Newton steps until the set's own gap is below target.

        Returns False if no progress is possible in the set.
        """
        part = penalty.restrict(self.features)
        certificate = Certificate(self.problem, part)
        moved = stuck = False
        promised = -np.inf
        n_models = 1 if rough else self.solver.steps
        while True:
            w = self.w[self.features]
            c = self.problem.focused_gradient()
            objective = self.value + part.value(w)
            certificate.raise_bound(w, c)
            absolute = certificate.absolute_gap(objective)
            negligible = promised > -ROUNDING * objective
            if moved and negligible and absolute > 0.5 * self.gap * objective:
                break
            free_residual = part.free_residual(w, c, free_scale[self.features])
            if moved and absolute <= target and free_residual <= target / max(objective, target):
                break
            gap = certificate.gap(objective)
            fresh = self._needs_new_model(gap, rough=rough)
            if fresh and n_models == 0:
                break
            n_models -= fresh
            self.gap, scale = gap, free_scale[self.features]
            step = self._model(part, scale, fresh=fresh, rough=rough).minimise(part, c, w)
            promised = float(c @ step) + part.change(w, step)
            t = self._line_search(part, w, step, objective, promised)
            if t > 0.0:
                moved = True
                self.damping *= 0.1 if t == 1.0 else 1.0 / np.sqrt(t)
                fall = objective - self.value - part.value(self.w[self.features])
                achieved = -2.0 * fall / promised  # 1 or more where the model holds
                if achieved < 1.0 - self.solver.good_step and not self.exact_diagonal:
                    self._sample_more()
                fell_short, self.fell_short = self.fell_short, achieved < 0.5 and not rough
                if fell_short and self.fell_short:  # perhaps because of the sample
                    self.samples = not self.sampled
            elif fresh and not self.sampled and self.damping == 0.0:
                # A saturated loss has no curvature. Take steps that would lower a linear loss by
                # the whole objective, and longer ones until there is curvature.
                self.damping = float(np.sum((c / scale) ** 2)) / objective
            elif fresh and not self.sampled:
                stuck = True
                break
            else:
                self.model, self.samples = None, False
        return moved or not stuck

    def _needs_new_model(self, gap: float, *, rough: bool) -> bool:
        """Return whether a new model is needed: unless the last step went very well.

        ``gap`` is the relative one now.
        """
        solver, model = self.solver, self.model
        near = self.sampled and gap <= solver.far and not rough
        if near and gap > solver.poor_step * self.gap:
            self.samples = False
        elif near and not self.exact_diagonal and self.larger == 1:
            self._sample_more()
            return True
        lasts = model is not None and model.lasting and (rough or self.samples or not model.sampled)
        return not (lasts and gap < solver.good_step * self.gap)

    def _sample_more(self) -> None:
        """Draw a larger sample from now on, and none after that."""
        self.samples = self.larger == 1
        self.larger = self.solver.larger
        self.samples = self.samples and 2 * self._sample_size < self.problem.n_rows

    def sample_grows(self, gap: float) -> bool:
        """Return whether the next model of a large set is of more documents than the last."""
        large = len(self.features) > self.solver.fewest_sampled
        return large and gap <= self.solver.far and not self.exact_diagonal

    @property
    def _sample_size(self) -> int:
        n_features = max(self.solver.fewest_sampled, len(self.features))
        return self.larger * self.solver.sample_per_feature * n_features

    def _model(
        self, part: Penalty, scale: FloatArray, *, fresh: bool, rough: bool
    ) -> QuadraticModel:
        """Return the quadratic model to minimise, a new one if the last no longer serves."""
        if fresh or self.model is None:
            thin = self._sample_size if rough or self.samples else None
            self.model = self.problem.quadratic(part, thin=thin)
            self.exact_diagonal = self.model.exact_diagonal
        return self.model.damped(self.damping * scale**2) if self.damping else self.model

    def _line_search(
        self, part: Penalty, w: FloatArray, step: FloatArray, objective: float, promised: float
    ) -> float:
        """Shorten the step until the objective falls by a share of what the model promised.

        Returns the share of the step that was taken; 0 if none.
        """
        if not promised < 0.0:
            return 0.0
        t = 1.0
        slack = ROUNDING * abs(objective)
        for _ in range(60):
            value = self.problem.try_step(step, t)
            moved = w + t * step
            if value + part.value(moved) <= objective + 0.01 * t * promised + slack:
                self.problem.accept()
                self.w[self.features], self.value = moved, value
                return t
            t *= 0.5
        return 0.0
