"""SparseRank: the pairwise squared hinge with an ℓ1 penalty."""

from __future__ import annotations

from typing import Any

from leanrank._typing import FloatArray
from leanrank.errors import check_choice
from leanrank.losses.squared_hinge import SquaredHingeLoss
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.memory import MemoryProblem as Problem
from leanrank.rankers.base import check_number
from leanrank.rankers.inputs import refuse_idle
from leanrank.rankers.newton.penalized import Callback, PenalizedRanker
from leanrank.solvers.base import Solution
from leanrank.solvers.first_order.proximal import solve_proximal

SOLVERS = ("newton", "proximal")


class SparseRank(PenalizedRanker):
    """Sparse RankSVM (the SparseRank baseline of Lai et al. 2013).

    Minimises the pairwise squared hinge plus alpha·‖w‖₁; ``RankSVM`` with ``l1_ratio=1`` has the
    same optimum.

    Parameters
    ----------
    alpha : float, default=0.01
        Strength of the penalty; ``alpha_max`` returns the smallest value with an empty model.
    solver : {"newton", "proximal"}, default="newton"
        "newton": working-set proximal Newton. "proximal": the published iteration, a gradient step
        and then a soft threshold at alpha/K. It is much slower: use it with a ``tol`` of 1e-3.
    lipschitz : float, optional
        K at the start of "proximal", deliberately smaller than the Lipschitz constant of the
        gradient. None: a tenth of the curvature in the direction of the first gradient.
    normalize : {"query", "term", "none"}, default="query"
        What each query's loss is divided by: its pairs, the pairs of all queries, or nothing.
    penalty_factors : array-like or dict by feature, optional
        One factor per feature: 0 = always in, inf = never.
    signs : array-like, dict by feature or int, optional
        One of −1, 0, 1 per feature, or one for all: 1 forbids negative weights, −1 positive ones.
    tol : float, default=1e-6
        Relative duality gap at which to stop.
    max_iter : int, default=10000
        Largest number of iterations.
    warm_start : bool, default=False
        Start from the weights of the last fit.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int, default=0
    callback : callable, optional
        Called with each entry of ``history_``.

    Examples
    --------
    >>> from leanrank import SparseRank, make_ranking
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = SparseRank(alpha=0.05).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True
    >>> int((ranker.coef_ != 0).sum()) < 15
    True
    """

    def __init__(
        self,
        alpha: float = 0.01,
        *,
        solver: str = "newton",
        lipschitz: float | None = None,
        normalize: str = "query",
        penalty_factors: Any = None,
        signs: Any = None,
        tol: float = 1e-6,
        max_iter: int = 10_000,
        warm_start: bool = False,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.alpha = alpha
        self.solver = solver
        self.lipschitz = lipschitz
        self.normalize = normalize
        self.penalty_factors = penalty_factors
        self.signs = signs
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _make_loss(self) -> SquaredHingeLoss:
        return SquaredHingeLoss()

    def _penalty(self, alpha: float, n_features: int) -> ElasticNet:
        return ElasticNet.build(alpha, 1.0, n_features, *self._per_feature(n_features))

    def _solve(
        self, problem: Problem, penalty: Any, w: FloatArray | None, callback: Callback | None
    ) -> Solution:
        check_choice("solver", self.solver, SOLVERS)
        k = self.lipschitz
        if self.solver == "newton":
            refuse_idle(self, ("lipschitz",), "solver='newton'")
            return super()._solve(problem, penalty, w, callback)
        return solve_proximal(
            problem,
            penalty,
            lipschitz=None if k is None else check_number("lipschitz", k, open_low=True),
            w=w,
            tol=self.tol,
            max_iter=self.max_iter,
            callback=callback,
        )
