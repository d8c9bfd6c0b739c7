"""RankRLS: regularised least squares on the differences within each query."""

from __future__ import annotations

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.execution import make_executor, single_threaded_blas
from leanrank.losses.base import Labels
from leanrank.losses.squared import SquaredLoss
from leanrank.rankers.base import BaseRanker, check_number
from leanrank.solvers.problem import Problem
from leanrank.solvers.ridge import solve_ridge


class RankRLS(BaseRanker):
    """Closed-form ranking: a ridge regression on query-centred data (Pahikkala et al. 2007).

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the ℓ2² penalty. With ``normalize="none"`` it is the paper's λ.
    normalize : {"query", "term", "none"}, default="query"
        Whether every query, every document or nothing is normalised; see the objective in the
        documentation.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Examples
    --------
    >>> from leanrank import RankRLS, make_ranking
    >>> data = make_ranking(n_queries=30, random_state=0)
    >>> ranker = RankRLS(alpha=0.01).fit(data.X, data.y, qid=data.qid)
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.5)
    True
    """

    def __init__(
        self, alpha: float = 1e-3, *, normalize: str = "query", n_jobs: int | None = None
    ) -> None:
        self.alpha = alpha
        self.normalize = normalize
        self.n_jobs = n_jobs

    def _fit(self, data: RankingData, labels: Labels) -> FloatArray:
        alpha = check_number("alpha", self.alpha)
        loss = SquaredLoss()
        with single_threaded_blas():
            problem = Problem(data.X, loss, loss.prepare(labels), make_executor(self.n_jobs))
            return solve_ridge(problem, alpha)
