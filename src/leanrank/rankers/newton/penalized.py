"""What rankers with a penalty share: strengths, solvers, certificates and paths."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.execution import make_executor, single_threaded_blas
from leanrank.losses.base import Labels, refuse_edges
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.memory import MemoryProblem as Problem
from leanrank.rankers.base import check_number
from leanrank.rankers.inputs import check_whole
from leanrank.rankers.linear import BaseLinearRanker
from leanrank.rankers.validation import held_out_data
from leanrank.solvers.base import Solution
from leanrank.solvers.newton.solver import solve_newton

if TYPE_CHECKING:
    from leanrank.rankers.path import Path

Callback = Callable[[dict[str, Any]], None]


def refuse_unused(ranker: Any, name: str, default: Any, where: str) -> None:
    """Refuse a parameter that differs from its default and has no effect."""
    value = getattr(ranker, name)
    if value is not default and not (isinstance(value, type(default)) and value == default):
        raise InputError(f"{name} has no effect with {where}, or leave {name} out")


class ProblemRanker(BaseLinearRanker):
    """A ranker that solves one optimisation problem.

    A subclass names its loss in ``_make_loss`` and solves in ``_fit_problem``.
    """

    _takes_preferences = True  # the loss has the last word

    tol: float
    max_iter: int
    warm_start: bool
    n_jobs: int | None
    verbose: int
    callback: Callback | None

    def _make_loss(self) -> Any:
        raise AssertionError(f"{type(self).__name__} must define _make_loss")

    def _prepare(self, labels: Labels) -> tuple[Any, Any]:
        """Return the loss and its plan."""
        loss = self._make_loss()
        if not loss.takes_edges:
            refuse_edges(labels, loss.name)
        return loss, loss.prepare(labels)

    def _fit(self, data: RankingData, labels: Labels) -> FloatArray:
        return self._fit_problem(self._problem(data, labels), self._starting_point(data))

    def _problem(self, data: RankingData, labels: Labels) -> Problem:
        loss, plan = self._prepare(labels)
        return Problem(data.X, loss, plan, make_executor(self.n_jobs))

    def _fit_problem(self, problem: Problem, w: FloatArray | None = None) -> FloatArray:
        """Solve the problem from a starting point, and keep what is known of the solution."""
        raise AssertionError(f"{type(self).__name__} must define _fit_problem")

    def _check_stopping(self) -> None:
        check_number("tol", self.tol, open_low=True)
        check_whole("max_iter", self.max_iter)

    def _starting_point(self, data: RankingData) -> FloatArray | None:
        old = getattr(self, "coef_", None)
        if not self.warm_start or old is None or len(old) != data.n_features:
            return None
        start: FloatArray = old.copy()
        return start

    def _progress(self) -> Callback | None:
        if not self.verbose:
            return self.callback

        def report(entry: dict[str, Any]) -> None:
            text = "  ".join(
                f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in entry.items()
            )
            print(f"[{type(self).__name__}] {text}", file=sys.stderr)
            if self.callback is not None:
                self.callback(entry)

        return report


class PenalizedRanker(ProblemRanker):
    """A ranker that minimises a loss plus alpha times an elastic net.

    A subclass names its loss in ``_make_loss`` and may add solvers by overriding ``_solve``.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    dual_gap_ : float
        Relative duality gap: the optimum is at least ``objective_ · (1 − dual_gap_)``. With
        unpenalised features that holds for models with the same weights in those; for a model with
        others, r_j·|difference| per such feature is to be subtracted, where the gradient r_j left
        in it is at most ``tol`` times ‖x_j‖·‖g‖ at the start.
    objective_ : float
        Loss plus penalty at ``coef_``.
    n_iter_ : int
        Iterations of the solver; for Newton, reads of the whole X.
    history_ : list of dict
        One entry per iteration.
    """

    # the parameters that every subclass has
    alpha: float
    l1_ratio: Any
    penalty_factors: Any
    signs: Any
    normalize: str

    dual_gap_: float
    objective_: float
    n_iter_: int

    def _penalty(self, alpha: float, n_features: int) -> Any:
        l1_ratio = check_number("l1_ratio", self.l1_ratio, high=1.0)
        return ElasticNet.build(alpha, l1_ratio, n_features, *self._per_feature(n_features))

    def _per_feature(self, n_features: int) -> tuple[Any, Any]:
        """Return ``penalty_factors`` and ``signs`` as arrays, where they are given."""
        return (
            self._by_feature("penalty_factors", n_features, 1.0),
            self._by_feature("signs", n_features, 0.0),
        )

    def _solve(
        self, problem: Problem, penalty: Any, w: FloatArray | None, callback: Callback | None
    ) -> Solution:
        return solve_newton(
            problem, penalty, w=w, tol=self.tol, max_iter=self.max_iter, callback=callback
        )

    def _fit_problem(self, problem: Problem, w: FloatArray | None = None) -> FloatArray:
        """Solve one problem at the ranker's own alpha and keep the certificate."""
        alpha = check_number("alpha", self.alpha)
        self._check_stopping()
        penalty = self._penalty(alpha, problem.n_features)
        solution = self._solve(problem, penalty, w, self._progress())
        self.dual_gap_ = solution.gap
        self.objective_ = solution.objective
        self.n_iter_ = solution.n_iter
        self.history_ = solution.history
        if not solution.converged:
            where = f"a relative duality gap of {solution.gap:.2g}"
            if solution.gap <= self.tol:
                where = (
                    f"a relative gradient of {solution.free_residual:.2g} in an unpenalised feature"
                )
            remedy = "raise max_iter or tol"
            if solution.n_iter < self.max_iter:
                remedy = "further steps hardly lower the objective in double precision, raise tol"
            warnings.warn(
                f"{type(self).__name__} stopped after {solution.n_iter} iterations at {where}, "
                f"above tol={self.tol:g}: {remedy}, or bring features to one scale",
                ConvergenceWarning,
                stacklevel=5,
            )
        if not np.isfinite(solution.w).all():
            raise InputError(
                f"{type(self).__name__} met numbers beyond the range of a double: bring features, "
                "offsets and weights to a smaller scale"
            )
        return solution.w

    def alpha_max(self, X: Any, y: Any = None, qid: Any = None, **options: Any) -> float:
        """Return the smallest alpha at which no penalised feature enters.

        Takes what ``fit`` takes. With unpenalised features it is computed at their own optimum;
        with ``l1_ratio=0`` it is infinite.
        """
        twin = clone(self)
        data, labels = twin._data_and_labels(X, y, qid, **options)
        with single_threaded_blas():
            return twin._alpha_max(self._problem(data, labels))[0]

    def _remedy_if_empty(self, data: RankingData, labels: Labels) -> str:
        top = self._alpha_max(self._problem(data, labels))[0]
        if not 0.0 < top < np.inf:
            return "give features that differ between documents of different labels"
        if self.alpha < top:
            return f"alpha={self.alpha:g} is below alpha_max={top:.3g}, so raise max_iter"
        return f"lower alpha={self.alpha:g} below alpha_max={top:.3g}"

    def _alpha_max(self, problem: Problem) -> tuple[float, FloatArray]:
        """Return alpha_max and the weights of the unpenalised features there."""
        unit = self._penalty(1.0, problem.n_features)
        free = unit.free & ~unit.excluded
        w = np.zeros(problem.n_features)
        if free.any():
            w = solve_newton(problem, unit.only_free(), tol=min(self.tol, 1e-8)).w
        problem.at(w)
        gradient = problem.gradient()
        gradient[free] = 0.0
        return unit.alpha_max_ratio(gradient), w

    def path(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        alphas: Iterable[float] | None = None,
        n_alphas: int = 50,
        alpha_min_ratio: float = 1e-3,
        validation: Any = None,
        measures: Sequence[str] = ("ndcg@10",),
        convention: str = "standard",
        **options: Any,
    ) -> Path:
        """Solve for a descending sequence of alphas, each started where the last one ended.

        Parameters
        ----------
        X, y, qid : as for fit
        alphas : iterable of float, optional
            Instead of ``n_alphas`` values from alpha_max down to ``alpha_min_ratio`` times it.
        n_alphas : int
        alpha_min_ratio : float
        validation : RankingData or (X, y, qid), optional
            Where to measure each model.
        measures : sequence of str
        convention : str
        **options
            What else ``fit`` takes.

        Returns
        -------
        Path
        """
        from leanrank.rankers.path import Path, alpha_grid, measure_models

        self._check_stopping()
        twin = clone(self)
        data, labels = twin._data_and_labels(X, y, qid, **options)
        held_out = held_out_data(twin, validation)
        with single_threaded_blas():
            problem = self._problem(data, labels)
            if alphas is None:
                top, w = twin._alpha_max(problem)
                if not np.isfinite(top):
                    raise InputError(
                        "no alpha empties a model without an ℓ1 penalty: give the path its alphas"
                    )
                if top == 0.0:
                    raise InputError(
                        "no penalised feature enters at any alpha: give the path its alphas"
                    )
                grid = alpha_grid(top, n_alphas, alpha_min_ratio)
            else:
                grid = np.sort([check_number("alphas", a) for a in alphas])[::-1]
                if len(grid) == 0:
                    raise InputError("alphas is empty: give at least one")
                w = np.zeros(problem.n_features)
            solutions = []
            for alpha in grid:
                penalty = twin._penalty(float(alpha), problem.n_features)
                solutions.append(self._solve(problem, penalty, w.copy(), self._progress()))
                w = solutions[-1].w
        short = [float(a) for a, s in zip(grid, solutions, strict=True) if not s.converged]
        if short:
            warnings.warn(
                f"{len(short)} of {len(grid)} models, the first at alpha={short[0]:.3g}, stopped "
                f"above a relative duality gap of tol={self.tol:g}: raise max_iter or tol",
                ConvergenceWarning,
                stacklevel=2,
            )
        coefs = np.array([s.w for s in solutions])
        return Path(
            alphas=grid,
            coefs=coefs,
            dual_gaps=np.array([s.gap for s in solutions]),
            objectives=np.array([s.objective for s in solutions]),
            n_iters=np.array([s.n_iter for s in solutions]),
            measures=measure_models(coefs, held_out, measures, convention),
        )
