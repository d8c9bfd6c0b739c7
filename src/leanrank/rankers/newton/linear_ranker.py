"""Any point of the grid: a loss, a penalty and a solver of your choice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.losses import get_loss
from leanrank.losses.base import Loss
from leanrank.penalties.base import Penalty
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.penalties.groups import GroupPenalty
from leanrank.problem.memory import MemoryProblem
from leanrank.rankers.base import check_number
from leanrank.rankers.constraints import NOTHING, NUMBER, PARAMETERS, TEXT, Kind
from leanrank.rankers.newton.penalized import Callback, PenalizedRanker, refuse_unused
from leanrank.solvers import get_solver
from leanrank.solvers.base import Solution, Solver

PENALTIES = ("l1", "l2", "elastic-net", "groups")


class LinearRanker(PenalizedRanker):
    """Linear ranking with any loss, penalty and solver that fit together.

    Parameters
    ----------
    loss : str or Loss, default="domination"
        "domination", "squared-hinge", "hinge", "logistic", "exponential", "listnet", or a
        ``leanrank.losses.base.Loss`` of your own.
    penalty : {"l1", "l2", "elastic-net", "groups"} or Penalty, default="l1"
        A ``leanrank.penalties.base.Penalty`` of your own is taken ``alpha`` times.
    solver : {"newton", "proximal", "cutting-plane", "bound-cd"} or Solver, default="newton"
        What a solver needs of loss and penalty is checked before any work.
    alpha : float, default=0.01
        Strength of the penalty; ``alpha_max`` gives the smallest value with an empty model.
    l1_ratio : float, optional
        For "elastic-net" and "groups": 1, the default, has no ℓ2² part.
    groups : array-like, optional
        For "groups": a name or number per feature.
    group_ratio : float, optional
        For "groups": share of the groups' norms, 0.5 by default; the rest is ℓ1.
    normalize : {"query", "term", "none"}, default="query"
        What each query's loss is divided by.
    penalty_factors : array-like or dict by feature, optional
        One factor per feature: 0 = always in, inf = never.
    signs : array-like, dict by feature or int, optional
        One of −1, 0, 1 per feature, or one for all: 1 forbids negative weights, −1 positive ones.
    tol : float, default=1e-6
        Relative duality gap at which to stop.
    max_iter : int, default=1000
    warm_start : bool, default=False
        Start from the weights of the last fit.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int, default=0
    callback : callable, optional
        Called with a dict after every iteration.

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

    _parameters: ClassVar[Mapping[str, Kind]] = {
        **PARAMETERS,
        "l1_ratio": NUMBER | NOTHING,
        "penalty": TEXT | Kind("a Penalty", lambda value: isinstance(value, Penalty)),
    }

    def __init__(
        self,
        loss: str | Loss[Any] = "domination",
        penalty: str | Penalty = "l1",
        solver: str | Solver = "newton",
        *,
        alpha: float = 0.01,
        l1_ratio: float | None = None,
        groups: Any = None,
        group_ratio: float | None = None,
        normalize: str = "query",
        penalty_factors: Any = None,
        signs: Any = None,
        tol: float = 1e-6,
        max_iter: int = 1_000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.loss = loss
        self.penalty = penalty
        self.solver = solver
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.groups = groups
        self.group_ratio = group_ratio
        self.normalize = normalize
        self.penalty_factors = penalty_factors
        self.signs = signs
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _make_loss(self) -> Loss[Any]:
        return get_loss(self.loss)

    def _penalty(self, alpha: float, n_features: int) -> Penalty:
        penalty = self.penalty
        if isinstance(penalty, Penalty):
            given = "a penalty object, which says all of it"
            for name in ("l1_ratio", "groups", "group_ratio", "penalty_factors", "signs"):
                refuse_unused(self, name, None, given)
            if len(penalty.excluded) != n_features:
                raise InputError(
                    f"the penalty is made for {len(penalty.excluded)} features but X has "
                    f"{n_features}: make it for as many"
                )
            return penalty.times(alpha)
        if penalty not in PENALTIES:
            raise InputError(f"penalty={penalty!r} is not known: choose one of {PENALTIES}")
        if penalty in ("l1", "l2"):
            refuse_unused(self, "l1_ratio", None, f"penalty={penalty!r}: use 'elastic-net'")
        if penalty != "groups":
            for name in ("groups", "group_ratio"):
                refuse_unused(self, name, None, f"penalty={penalty!r}: use 'groups'")
        share = 0.0 if penalty == "l2" else 1.0
        if self.l1_ratio is not None:
            share = check_number("l1_ratio", self.l1_ratio, high=1.0)
        factors, signs = self._per_feature(n_features)
        if penalty != "groups":
            return ElasticNet.build(alpha, share, n_features, factors, signs)
        norms = 0.5 if self.group_ratio is None else self.group_ratio
        return GroupPenalty.build(
            alpha,
            share,
            n_features,
            self.groups,
            group_ratio=check_number("group_ratio", norms, high=1.0),
            factors=factors,
            signs=signs,
        )

    def _solve(
        self,
        problem: MemoryProblem,
        penalty: Penalty,
        w: FloatArray | None,
        callback: Callback | None,
    ) -> Solution:
        stopping: dict[str, Any] = {
            "tol": self.tol,
            "max_iter": self.max_iter,
            "callback": callback,
        }
        if isinstance(self.solver, Solver):
            return replace(self.solver, **stopping).solve(problem, penalty, w)
        solution: Solution = get_solver(self.solver)(problem, penalty, w=w, **stopping)
        return solution
