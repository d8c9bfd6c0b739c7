"""FenchelRank: the pairwise squared hinge over an ℓ1 ball, one feature per round."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import partial

from sklearn.exceptions import ConvergenceWarning

from leanrank._typing import Callback, FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import warn
from leanrank.losses.base import Labels
from leanrank.losses.hinge import SquaredHingeLoss
from leanrank.penalties.elastic_net import L1Ball
from leanrank.problem.base import Problem
from leanrank.rankers.inputs import check_number
from leanrank.rankers.problem_ranker import ProblemRanker
from leanrank.rankers.validation import report
from leanrank.solvers.first_order.fenchel import Fenchel


@dataclass(eq=False, repr=False)
class FenchelRank(ProblemRanker):
    """Sparse RankSVM with a limit on Σ|w_j| instead of a penalty (Lai et al. 2013).

    Minimises the mean squared hinge over pairs subject to ‖w‖₁ ≤ radius. For every radius there is
    an alpha at which the ℓ1-penalised ``RankSVM`` and ``SparseRank`` have the same optimum.

    Parameters
    ----------
    radius : float, default=10.0
        Largest Σ|w_j|.
    solver : {"corrective", "greedy"}, default="corrective"
        "greedy": the published algorithm, a step towards one corner of the ball per round; its gap
        falls like one over the rounds, so use a ``tol`` of 1e-3. "corrective": minimises over
        all features in use before it adds more.
    normalize : {"query", "term", "none"}, default="query"
        What each query's loss is divided by: its pairs, the pairs of all queries, or nothing.
    tol : float, default=1e-6
        Relative duality gap at which to stop.
    max_iter : int, default=10000
        Largest number of rounds.
    warm_start : bool, default=False
        Start from the weights of the last fit.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int, default=0
        1 prints a line of progress per step.
    callback : callable, optional
        Called with a dict after every round.

    Attributes
    ----------
    dual_gap_ : float
        Relative duality gap: no loss in the ball is below ``objective_ · (1 − dual_gap_)``.
    objective_ : float
        The loss at ``coef_``.

    Examples
    --------
    >>> from leanrank import FenchelRank, make_ranking
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = FenchelRank(radius=1.0).fit(data.X, data.y, qid=data.qid)
    >>> float(abs(ranker.coef_).sum().round(6)), ranker.dual_gap_ <= 1e-6
    (1.0, True)
    """

    radius: float = 10.0
    _: KW_ONLY
    solver: str = "corrective"
    normalize: str = "query"
    tol: float = 1e-6
    max_iter: int = 10_000
    warm_start: bool = False
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callback | None = None

    def make_loss(self) -> SquaredHingeLoss:
        """Return the loss."""
        return SquaredHingeLoss()

    def _remedy_if_empty(self, data: RankingData, labels: Labels) -> str:
        del data, labels
        return f"raise radius={self.radius:g}, or give features that differ within queries"

    def _fit_problem(self, problem: Problem, w: FloatArray | None) -> FloatArray:
        radius = check_number("radius", self.radius, high=1e150)
        self._check_stopping()
        solver = Fenchel(self.tol, self.max_iter, partial(report, self), self.solver)
        solution = solver.solve(problem, L1Ball(problem.n_features, radius), w)
        self.objective_, self.dual_gap_ = solution.objective, solution.gap
        self.n_iter_, self.history_ = solution.n_iter, solution.history
        if not solution.converged:
            warn(
                f"FenchelRank ended after {solution.n_iter} rounds at a relative duality gap of "
                f"{solution.gap:.2g}, above tol={self.tol:g}: raise max_iter or tol, or use "
                "solver='corrective'",
                ConvergenceWarning,
            )
        return solution.w
