"""Domination Rank: rank a few good documents above all the others with few features."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.losses.domination import DominationLoss
from leanrank.penalties.power import PowerPenalty
from leanrank.problem.memory import MemoryProblem as Problem
from leanrank.rankers.base import check_number
from leanrank.rankers.newton.penalized import Callback, PenalizedRanker, refuse_unused
from leanrank.solvers.base import Solution
from leanrank.solvers.first_order.bound_cd import solve_bound_cd


class DominationRanker(PenalizedRanker):
    """Sparse linear ranking with the domination loss (Stevens, Bengio & Singer 2013).

    Each document should score above all documents of lower levels of its query together; the loss
    of one that does not is the logarithm of how much it is outweighed.

    Parameters
    ----------
    alpha : float, default=0.01
        Strength of the penalty; ``alpha_max`` gives the smallest value with an empty model.
    l1_ratio : float, default=1.0
        1 is ℓ1, 0 is ℓ2², between is an elastic net.
    solver : {"newton", "bound-cd"}, default="newton"
        "newton": working-set proximal Newton, certified. "bound-cd": the paper's coordinate descent
        on a quadratic bound, faithful and slow.
    margin : None, "scaled" or array of shape (levels, levels), default=None
        By how much a document should win. "scaled": ``margin_scale`` times the difference of
        labels. An array: by pair of levels, lowest first, row the winner.
    margin_scale : float, default=1.0
    bound : {"range", "paper"}, default="range"
        For "bound-cd": (max − min)²/4 of a feature over a query, or the printed max x².
    power : {None, 4/3, 3/2, 3, 4}, default=None
        For "bound-cd": penalise Σ|w_j|^power instead of the elastic net.
    normalize : {"query", "term", "none"}, default="query"
        What each query's loss is divided by, so that alpha carries over between data sizes; "none"
        is the paper's plain sum.
    penalty_factors : array-like or dict by feature, optional
        One factor per feature: 0 = always in, inf = never.
    signs : array-like, dict by feature or int, optional
        One of −1, 0, 1 per feature, or one for all: 1 forbids negative weights, −1 positive ones.
    tol : float, default=1e-6
        Relative duality gap at which to stop.
    max_iter : int, default=100
        Most outer iterations of Newton; most sweeps of "bound-cd".
    warm_start : bool, default=False
        Start from the weights of the last fit.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int, default=0
    callback : callable, optional
        Called with a dict after every outer iteration.

    Examples
    --------
    >>> from leanrank import DominationRanker, make_ranking
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = DominationRanker(alpha=0.05).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True
    >>> int((ranker.coef_ != 0).sum()) < 15
    True
    """

    def __init__(
        self,
        alpha: float = 0.01,
        l1_ratio: float = 1.0,
        *,
        solver: str = "newton",
        margin: Any = None,
        margin_scale: float = 1.0,
        bound: str = "range",
        power: float | None = None,
        normalize: str = "query",
        penalty_factors: Any = None,
        signs: Any = None,
        tol: float = 1e-6,
        max_iter: int = 100,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.solver = solver
        self.margin = margin
        self.margin_scale = margin_scale
        self.bound = bound
        self.power = power
        self.normalize = normalize
        self.penalty_factors = penalty_factors
        self.signs = signs
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _make_loss(self) -> DominationLoss:
        if isinstance(self.margin, str) or self.margin is None:
            if self.margin not in (None, "scaled"):
                raise InputError(
                    f"margin={self.margin!r} is not known: use None, 'scaled' or a table by levels"
                )
            return DominationLoss()
        return DominationLoss(np.asarray(self.margin, dtype=np.float64))

    def _prepare(self, labels: Labels) -> tuple[Any, Any]:
        if self.margin is None or not isinstance(self.margin, str):
            refuse_unused(self, "margin_scale", 1.0, "this margin: use margin='scaled'")
        if self.solver == "newton":
            refuse_unused(self, "bound", "range", "solver='newton': use solver='bound-cd'")
        if self.power is not None:
            refuse_unused(self, "l1_ratio", 1.0, "power, which stands alone: drop power")
        if isinstance(self.margin, str):
            labels = labels.with_margin(check_number("margin_scale", self.margin_scale))
        return super()._prepare(labels)

    def _penalty(self, alpha: float, n_features: int) -> Any:
        if self.power is None:
            return super()._penalty(alpha, n_features)
        if self.solver != "bound-cd":
            raise InputError(f"power={self.power!r} needs solver='bound-cd', not {self.solver!r}")
        if self.signs is not None:
            raise InputError("signs cannot be combined with power: leave one out")
        factors, _ = self._per_feature(n_features)
        return PowerPenalty.build(alpha, self.power, n_features, factors)

    def _solve(
        self, problem: Problem, penalty: Any, w: FloatArray | None, callback: Callback | None
    ) -> Solution:
        if self.solver == "newton":
            return super()._solve(problem, penalty, w, callback)
        if self.solver != "bound-cd":
            raise InputError(f"solver={self.solver!r} is not known: use 'newton' or 'bound-cd'")
        return solve_bound_cd(
            problem,
            penalty,
            w=w,
            bound=self.bound,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback,
        )
