"""ListNet: documents should be drawn first as often as their labels say."""

from __future__ import annotations

from typing import Any

from leanrank.errors import InputError
from leanrank.losses.listnet import ListNetLoss
from leanrank.losses.listnet_top_two import ListNetTopTwoLoss
from leanrank.rankers.newton.penalized import Callback, PenalizedRanker


class ListNet(PenalizedRanker):
    """Linear ranking with ListNet's cross entropy (Cao, Qin, Liu, Tsai & Li 2007).

    Labels and scores each give a document the probability of being drawn first from its query, by a
    softmax; a query costs the cross entropy of the two. Unlike pairwise losses it uses the values
    of the labels, not only their order.

    Parameters
    ----------
    alpha : float, default=0.001
        Strength of the penalty; ``alpha_max`` gives the smallest value with an empty model.
    l1_ratio : float, default=1.0
        1 is ℓ1, 0 is ℓ2², between is an elastic net.
    target : {"label", "gain"}, default="label"
        Draw by the softmax of the labels, or of 2^label − 1.
    top : {1, 2}, default=1
        How many draws to compare. With 2 a certificate takes time quadratic in the documents of a
        query; everything else is linear.
    normalize : {"query", "term", "none"}, default="query"
        "none" is the plain sum over queries; the others are its mean.
    penalty_factors : array-like or dict by feature, optional
        One factor per feature: 0 = always in, inf = never.
    signs : array-like, dict by feature or int, optional
        One of −1, 0, 1 per feature, or one for all: 1 forbids negative weights, −1 positive ones.
    tol : float, default=1e-6
        Relative duality gap at which to stop. The entropy of the target is part of the objective.
    max_iter : int, default=100
        Most outer iterations.
    warm_start : bool, default=False
        Start from the weights of the last fit.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int, default=0
    callback : callable, optional
        Called with a dict after every outer iteration.

    Examples
    --------
    >>> from leanrank import ListNet, make_ranking
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = ListNet(alpha=0.01).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True
    """

    def __init__(
        self,
        alpha: float = 0.001,
        l1_ratio: float = 1.0,
        *,
        target: str = "label",
        top: int = 1,
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
        self.target = target
        self.top = top
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
        if self.top == 1:
            return ListNetLoss(self.target)
        if self.top == 2:
            return ListNetTopTwoLoss(self.target)
        raise InputError(
            f"top={self.top!r} is not offered: compare the first draw (1) or the first two (2); "
            "more take time beyond the square of a query's documents"
        )
