"""Any point of the grid: a loss, a penalty and a solver of your choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from leanrank._numbers import check_number
from leanrank._typing import Callback, FloatArray, Matrix
from leanrank.data.ranking_data import RankingData
from leanrank.designs.base import Design
from leanrank.errors import InputError, warn
from leanrank.execution import Executor, make_executor, single_threaded_blas
from leanrank.losses import get_loss
from leanrank.losses.base import Labels, Loss, reject_edges
from leanrank.penalties.base import Penalty
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.penalties.groups import GroupPenalty
from leanrank.problem.base import Problem
from leanrank.problem.memory import MemoryProblem
from leanrank.problem.sharded import ShardedProblem, Shards
from leanrank.rankers.knots import curve_design, curve_parts
from leanrank.rankers.parameters import FRACTION, Constraints, Uses, one_of, reject_unused, report
from leanrank.rankers.path import BaseLinearRanker, alpha_grid, alpha_max, descending
from leanrank.rankers.surfaces import with_surfaces
from leanrank.solvers import get_solver
from leanrank.solvers.base import Solution, Solver

NAMED = ("l1", "l2", "elastic-net", "groups")
"""Penalties by name; a penalty object replaces all parameters of the penalty but ``alpha``."""


@dataclass(eq=False, repr=False)
class LinearRanker(BaseLinearRanker):
    """Linear ranking with any loss, penalty and solver that fit together.

    The named systems are subclasses: they set a paper's defaults and override ``_make_loss``,
    ``_make_penalty``, ``_make_solver`` or ``_with_margins``.

    Parameters
    ----------
    loss : str or Loss, default="domination"
        "domination", "squared-hinge", "hinge", "logistic", "exponential", "listnet", or a
        ``leanrank.losses.base.Loss`` of your own.
    penalty : {"l1", "l2", "elastic-net", "groups"} or Penalty, default="l1"
        A ``leanrank.penalties.base.Penalty`` of your own is multiplied by ``alpha``.
    solver : {"newton", "proximal", "cutting-plane", "bound-cd"} or Solver, default="newton"
        Raises an error before the first iteration if the loss or the penalty lacks an operation
        that the solver needs.
    alpha : float, default=0.01
        Strength of the penalty; ``alpha_max`` returns the smallest value with an empty model.
    l1_ratio : float, optional
        For "elastic-net" (0.5 by default) and "groups" (1 by default): the share of the penalty
        that is not ℓ2². With 1 there is no ℓ2² part, with 0 nothing else.
    groups : array-like, optional
        For "groups": a name or number per feature.
    group_ratio : float, optional
        For "groups" and curves: share of the norms of the groups, 0.5 by default; the rest is ℓ1.
    normalize : {"query", "term", "none"}, default="query"
        What each query's loss is divided by, so that alpha carries over between data sizes: its
        number of terms (pairs, or documents that should win), the terms of all queries, or nothing.
    penalty_factors : array-like or dict by feature, optional
        One factor per feature: 0 leaves the feature unpenalised, inf leaves it out.
    signs : array-like, dict by feature or int, optional
        One of −1, 0, 1 per feature, or one for all: 1 forbids negative weights, −1 positive ones.
    curves : int, "auto" or dict, optional
        Learn a piecewise linear curve per feature instead of a weight: the number of segments,
        cut at quantiles of the training documents. "auto" is 8, or fewer for few documents; a
        dict has the number or the knots of some features, ``{"age": [0, 7, 365]}``. Each curve is
        a group of the penalty, so that whole features enter or stay out. NaN is a missing value,
        and no feature needs scaling.
    monotone : array-like, dict by feature or int, optional
        For curves, one of −1, 0, 1 per feature, or one for all: with 1 a curve never falls, with
        −1 it never rises.
    pairs : list of pairs of features or int, optional
        Surfaces of two features in addition to the curves: a list such as ``[("bm25", "age")]``, or
        their number; then the curves are fitted at ``alpha`` first, and the pairs with the largest
        gain by one Newton step are taken. Each surface has four weights, which form a group. A
        monotone feature has no surface.
    tol : float, default=1e-6
        Relative duality gap at which to stop.
    max_iter : int, default=1000
        Largest number of iterations of the solver.
    warm_start : bool, default=False
        Start from the weights of the last fit.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int, default=0
        1 prints a line of progress per step.
    callback : callable, optional
        Called with each entry of the history.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        With curves, the rises of all segments and the values of missing features, followed by four
        weights per surface.
    ramps_ : RampColumns, SurfaceColumns or None
        The knots of curves, and which feature each entry of ``coef_`` belongs to.
    dual_gap_ : float
        Relative duality gap: the optimum is at least ``objective_ · (1 − dual_gap_)``. With
        unpenalised features this bound holds for models with the same weights in these features.
        For other models, subtract r_j·|difference of the weights| for each of them; the remaining
        gradient r_j is at most ``tol`` times ‖x_j‖·‖g‖ at the start.
    objective_ : float
        Loss plus penalty at ``coef_``. For curves of float32 features the gap is that of values
        among the knots rounded to float32.
    n_iter_ : int
        Iterations of the solver; for Newton, reads of the whole X.
    history_ : list of dict
        One entry per iteration.

    Examples
    --------
    >>> from leanrank import LinearRanker, make_ranking
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> groups = [f"block {j // 5}" for j in range(30)]
    >>> ranker = LinearRanker("logistic", "groups", groups=groups, alpha=0.05).fit(data)
    >>> ranker.dual_gap_ <= 1e-6
    True
    >>> used = {groups[j] for j in ranker.coef_.nonzero()[0]}
    >>> 0 < len(used) < 6
    True
    """

    loss: str | Loss[Any] = "domination"
    penalty: str | Penalty = "l1"
    solver: str | Solver | None = "newton"
    _: KW_ONLY
    alpha: float = 0.01
    l1_ratio: float | None = None
    groups: Any = None
    group_ratio: float | None = None
    normalize: str = "query"
    penalty_factors: Any = None
    signs: Any = None
    curves: int | str | Mapping[Any, Any] | None = None
    monotone: Any = None
    pairs: Any = None
    tol: float = 1e-6
    max_iter: int = 1_000
    warm_start: bool = False
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callback | None = None

    _has_strength: ClassVar[bool] = True  # whether ``alpha`` gives a path of models
    _loss_options: ClassVar[tuple[str, ...]] = ()  # parameters that are those of the loss
    _other_remedy: ClassVar[str] = "bring features to one scale"  # if the solver stops too early
    _takes_preferences = True  # the loss decides
    _fits_on_cluster = True
    _constraints: ClassVar[Constraints] = {
        "penalty": [one_of(*NAMED), Penalty],
        "l1_ratio": [FRACTION, None],
    }
    _used_with: ClassVar[Uses] = {
        **dict.fromkeys(("monotone", "pairs"), ("curves", None)),
        "l1_ratio": ("penalty", ("elastic-net", "groups")),
        "groups": ("penalty", ("groups",)),
        **dict.fromkeys(("group_ratio", "penalty_factors", "signs"), ("penalty", NAMED)),
    }

    def _make_loss(self) -> Loss[Any]:
        """Return the loss."""
        return get_loss(self.loss, **{name: getattr(self, name) for name in self._loss_options})

    def _with_margins(self, labels: Labels) -> Labels:
        """Return the labels with the margins between levels; here there are none."""
        return labels

    def _make_problem(
        self, X: Matrix | Design | Shards, labels: Labels, executor: Executor | None = None
    ) -> Problem:
        """Return the problem of features and labels, rows grouped by query, with the loss.

        With curves, the knots are chosen first. On Dask, the workers hold the labels.
        """
        loss, executor = self._make_loss(), executor or make_executor(self.n_jobs)
        self.ramps_ = None
        if self.curves is not None:
            X = curve_design(self, X, self._names(), executor)
            self.ramps_ = X.ramps
        make: Any
        if isinstance(X, Shards):
            relabel = clone(self).set_params(callback=None)._with_margins  # on the workers
            make = partial(ShardedProblem, loss=loss, normalize=labels.normalize, relabel=relabel)
        else:
            reject_edges(labels, loss)
            plan = loss.prepare(self._with_margins(labels))
            make = partial(MemoryProblem, loss=loss, plan=plan, executor=executor)
        problem: Problem = make(X)
        if self.pairs is not None:
            X, self.ramps_ = with_surfaces(self, problem, self._names())
            problem = make(X)
        return problem

    @property
    def _slow_unscaled(self) -> bool:
        """Whether the convergence of the solver depends on the scale of features."""
        return self._make_solver().depends_on_scale

    @property
    def _takes_nan(self) -> bool:
        return self.curves is not None

    def _make_penalty(self, alpha: float, n_features: int) -> Penalty:
        """Return the penalty at a strength."""
        penalty = self.penalty
        if isinstance(penalty, Penalty):
            if len(penalty.excluded) != n_features:
                made = len(penalty.excluded)
                raise InputError(f"the penalty is made for {made} features, X has {n_features}")
            return penalty.times(alpha)
        given = {"l1": 1.0, "l2": 0.0}.get(penalty, self.l1_ratio)
        if given is None:
            given = 1.0 if penalty == "groups" else 0.5
        share = check_number("l1_ratio", given, open_low=penalty == "groups", high=1.0)
        norms = 0.5 if self.group_ratio is None else float(self.group_ratio)
        if self.ramps_ is None:
            groups = self.groups
            factors, signs = self._per_feature(n_features)
        else:
            groups, factors, signs = curve_parts(self, self.ramps_, self._names())
        if share == 0.0 or (self.ramps_ is None and penalty != "groups"):
            reject_unused(self, ("group_ratio",), "a penalty without norms of groups")
            return ElasticNet.build(alpha, share, n_features, factors, signs)
        return GroupPenalty.build(
            alpha, share, n_features, groups, group_ratio=norms, factors=factors, signs=signs
        )

    def _make_solver(self) -> Solver:
        """Return the solver; ``_solve`` sets ``tol``, ``max_iter`` and ``callback``."""
        return self.solver if isinstance(self.solver, Solver) else get_solver(self.solver)()

    def _per_feature(self, n_features: int) -> tuple[Any, Any]:
        """Return ``penalty_factors`` and ``signs`` as arrays; None for one that is not given."""
        return (
            self._by_feature("penalty_factors", n_features, 1.0),
            self._by_feature("signs", n_features, 0.0),
        )

    def _solve(self, problem: Problem, alpha: float, w: FloatArray | None = None) -> Solution:
        """Solve a problem at one strength, starting from weights w or from zero."""
        solver = replace(
            self._make_solver(),
            tol=self.tol,
            max_iter=self.max_iter,
            callback=partial(report, self),
        )
        return solver.solve(problem, self._make_penalty(alpha, problem.n_features), w)

    def _solve_path(
        self, problem: Problem, grid: FloatArray, w: FloatArray | None = None
    ) -> list[Solution]:
        """Solve a problem at several strengths, each started from the previous solution."""
        solutions = []
        for alpha in grid.tolist():
            solutions.append(self._solve(problem, alpha, None if w is None else w.copy()))
            w = solutions[-1].w
        return solutions

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        problem = self._make_problem(data.X, labels)
        start = getattr(self, "coef_", None) if self.warm_start else None
        if start is not None:
            start = start.copy() if len(start) == problem.n_features else None
        solution = self._solve(problem, self.alpha, start)
        self.dual_gap_, self.objective_ = solution.gap, solution.objective
        self.n_iter_, self.history_ = solution.n_iter, solution.history
        if not solution.converged:
            self._warn_of_gap(solution)
        self.coef_ = solution.w

    def _warn_of_gap(self, solution: Solution) -> None:
        where = f"a relative duality gap of {solution.gap:.2g}"
        if solution.gap <= self.tol:
            where = f"a relative gradient of {solution.free_residual:.2g} in an unpenalised feature"
        remedy = "raise max_iter or tol"
        if solution.n_iter < self.max_iter:
            remedy = "further steps hardly lower the objective, raise tol"
        other = self._other_remedy
        if self.ramps_ is not None:
            other = "take fewer segments or a larger alpha"
        warn(
            f"{type(self).__name__} stopped after {solution.n_iter} iterations at {where}, "
            f"above tol={self.tol:g}: {remedy}, or {other}",
            ConvergenceWarning,
        )

    @available_if(lambda self: self._has_strength)
    def alpha_max(self, X: Any, y: Any = None, qid: Any = None, **options: Any) -> float:
        """Return the smallest alpha at which no penalised feature enters.

        Takes what ``fit`` takes. With unpenalised features it is computed at their own optimum;
        with ``l1_ratio=0`` it is infinite.
        """
        twin = clone(self)
        data, labels = twin._data_and_labels(X, y, qid, **options)
        with single_threaded_blas():
            return twin._first_entry(twin._make_problem(data.X, labels))[0]

    def _first_entry(self, problem: Problem) -> tuple[float, FloatArray]:
        """Return the alpha_max of a problem and the weights of the unpenalised features there."""
        unit = self._make_penalty(1.0, problem.n_features)
        return alpha_max(problem, unit, min(self.tol, 1e-8))

    def _remedy_if_empty(self, data: RankingData, labels: Labels) -> str:
        if not self._has_strength:
            return super()._remedy_if_empty(data, labels)
        top = self._first_entry(self._make_problem(data.X, labels))[0]
        if not 0.0 < top < np.inf:
            return "give features that differ between documents of different labels"
        if self.alpha < top:
            remedy = "raise max_iter" if self.n_iter_ >= self.max_iter else "choose another solver"
            return f"alpha={self.alpha:g} is below alpha_max={top:.3g}, so {remedy}"
        return f"lower alpha={self.alpha:g} below alpha_max={top:.3g}"

    def _path(
        self, data: RankingData, labels: Labels, alphas: Iterable[float] | None, **grid: Any
    ) -> tuple[FloatArray, list[Solution]]:
        problem = self._make_problem(data.X, labels)
        if alphas is not None:
            strengths, w = descending(alphas), np.zeros(problem.n_features)
        else:
            top, w = self._first_entry(problem)
            strengths = alpha_grid(top, **grid)
        return strengths, self._solve_path(problem, strengths, w)
