"""RankSVM: every pair of documents in the right order, by a margin."""

from __future__ import annotations

from typing import Any

from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.problem.memory import MemoryProblem as Problem
from leanrank.rankers.base import check_number
from leanrank.rankers.newton.penalized import Callback, PenalizedRanker, refuse_unused
from leanrank.solvers.base import Solution

LOSSES = ("squared-hinge", "hinge")
SOLVERS = ("newton", "cutting-plane", "struct")


class RankSVM(PenalizedRanker):
    """The ranking support vector machine (Joachims 2002, 2006), on pairs that are never listed.

    A document should score above every document of a lower level of its query by a margin; a pair
    that does not pays what is missing, or its square. An evaluation costs a sort of the scores,
    not a visit to each pair.

    Parameters
    ----------
    alpha : float, default=0.01
        Strength of the penalty. With ``normalize="none"``, 1/alpha is the C of the papers.
    l1_ratio : float, default=0.0
        0 is ℓ2², 1 is ℓ1, between is an elastic net.
    loss : {"squared-hinge", "hinge"}, default="squared-hinge"
        scikit-learn's spelling "squared_hinge" is understood too.
    solver : {None, "newton", "cutting-plane", "struct"}, default=None
        "newton": working-set proximal Newton, for the squared hinge. "cutting-plane": planes below
        the loss, for either loss and ℓ2²; "struct" is the same as published (SVM-rank), which is
        slower: meant for a ``tol`` of 1e-3. None: "newton" where it can.
    margin : {None, "scaled"}, default=None
        By how much a document should win: by 1, or by ``margin_scale`` times the difference of
        labels.
    margin_scale : float, default=1.0
    importance : None, "ndcg" or array of shape (levels, levels), default=None
        What a pair weighs by its levels. "ndcg": what NDCG loses when documents of the two levels
        trade places in the ideal ranking. An array: lowest level first, row the winner.
    normalize : {"query", "term", "none"}, default="query"
        What each query's loss is divided by: its number of pairs, the pairs of all queries, or
        nothing.
    penalty_factors : array-like or dict by feature, optional
        One factor per feature: 0 = always in, inf = never.
    signs : array-like, dict by feature or int, optional
        One of −1, 0, 1 per feature, or one for all: 1 forbids negative weights, −1 positive ones.
    tol : float, default=1e-6
        Relative duality gap at which to stop.
    max_iter : int, default=1000
        Most outer iterations of Newton, or planes.
    warm_start : bool, default=False
        Start from the weights of the last fit.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int, default=0
    callback : callable, optional
        Called with a dict after every iteration.

    Examples
    --------
    >>> from leanrank import RankSVM, make_ranking
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = RankSVM(alpha=0.1).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True

    Preferences can stand in for labels:

    >>> X = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]
    >>> RankSVM(alpha=0.1).fit(X, preferences=([2, 1], [0, 0])).rank(X).tolist()
    [3, 2, 1]
    """

    def __init__(
        self,
        alpha: float = 0.01,
        l1_ratio: float = 0.0,
        *,
        loss: str = "squared-hinge",
        solver: str | None = None,
        margin: str | None = None,
        margin_scale: float = 1.0,
        importance: Any = None,
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
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.loss = loss
        self.solver = solver
        self.margin = margin
        self.margin_scale = margin_scale
        self.importance = importance
        self.normalize = normalize
        self.penalty_factors = penalty_factors
        self.signs = signs
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _make_loss(self) -> Any:
        name = str(self.loss).replace("_", "-")
        if name not in LOSSES:
            raise InputError(f"loss={self.loss!r} is not known: choose one of {LOSSES}")
        if self.margin not in (None, "scaled"):
            raise InputError(f"margin={self.margin!r} is not known: use None or 'scaled'")
        lead = 1.0 if self.margin is None else 0.0
        return get_loss(name, importance=self.importance, margin=lead)

    def _prepare(self, labels: Labels) -> tuple[Any, Any]:
        if self.margin is None:
            refuse_unused(self, "margin_scale", 1.0, "margin=None: use margin='scaled'")
        if self.margin == "scaled":
            scale = check_number("margin_scale", self.margin_scale, open_low=True)
            labels = labels.with_margin(scale)
        return super()._prepare(labels)

    def _solve(
        self, problem: Problem, penalty: Any, w: FloatArray | None, callback: Callback | None
    ) -> Solution:
        if self.solver is not None and self.solver not in SOLVERS:
            raise InputError(f"solver={self.solver!r} is not known: choose one of {SOLVERS}")
        if self.solver == "newton" or (self.solver is None and problem.loss.smooth):
            return super()._solve(problem, penalty, w, callback)
        from leanrank.solvers.first_order.cutting_plane import solve_cutting_plane

        return solve_cutting_plane(
            problem,
            penalty,
            w=w,
            tol=self.tol,
            max_iter=self.max_iter,
            variant="plain" if self.solver == "struct" else "fast",
            callback=callback,
        )
