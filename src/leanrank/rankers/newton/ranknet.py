"""RankNet, linear: the probability that a pair is in the right order."""

from __future__ import annotations

from typing import Any

from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.losses.logistic import LogisticLoss
from leanrank.rankers.base import check_number
from leanrank.rankers.inputs import seed_of
from leanrank.rankers.newton.penalized import Callback, PenalizedRanker, refuse_unused


class RankNet(PenalizedRanker):
    """Linear ranking with RankNet's logistic loss of pairs (Burges et al. 2005).

    The lead of a document over one of a lower level is the log odds that it is the better of the
    two; a pair costs log(1 + e^{−lead}). There is no shortcut past the pairs: a query of n
    documents costs up to n²/2 of them an evaluation, unless ``max_pairs`` draws some.

    Parameters
    ----------
    alpha : float, default=0.001
        Strength of the penalty; ``alpha_max`` gives the smallest value with an empty model.
    l1_ratio : float, default=0.0
        0 is ℓ2², 1 is ℓ1, between is an elastic net.
    margin : {None, "scaled"}, default=None
        By how much more a document should lead: not at all, or ``margin_scale`` times the
        difference of labels.
    margin_scale : float, default=1.0
    importance : None, "ndcg" or array of shape (levels, levels), default=None
        What a pair weighs by its levels. "ndcg": what NDCG loses when documents of the two levels
        trade places in the ideal ranking. An array: lowest level first, row the winner.
    max_pairs : int, optional
        Most pairs of a query; of one with more, so many are drawn once, and weighted so that the
        expected loss is the same. The certificate is that of the drawn problem.
    random_state : int, RandomState or None, default=0
        For drawing pairs.
    normalize : {"query", "term", "none"}, default="query"
        What each query's loss is divided by: its number of pairs, the pairs of all queries, or
        nothing.
    penalty_factors : array-like or dict by feature, optional
        One factor per feature: 0 = always in, inf = never.
    signs : array-like, dict by feature or int, optional
        One of −1, 0, 1 per feature, or one for all: 1 forbids negative weights, −1 positive ones.
    tol : float, default=1e-6
        Relative duality gap at which to stop.
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
    >>> from leanrank import RankNet, make_ranking
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = RankNet(alpha=0.01).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True
    """

    def __init__(
        self,
        alpha: float = 0.001,
        l1_ratio: float = 0.0,
        *,
        margin: str | None = None,
        margin_scale: float = 1.0,
        importance: Any = None,
        max_pairs: int | None = None,
        random_state: Any = 0,
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
        self.margin = margin
        self.margin_scale = margin_scale
        self.importance = importance
        self.max_pairs = max_pairs
        self.random_state = random_state
        self.normalize = normalize
        self.penalty_factors = penalty_factors
        self.signs = signs
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _make_loss(self) -> LogisticLoss:
        seed = 0
        if self.max_pairs is not None:
            seed = seed_of(self.random_state)
        return LogisticLoss(self.importance, self.max_pairs, seed)

    def _prepare(self, labels: Labels) -> tuple[Any, Any]:
        if self.margin not in (None, "scaled"):
            raise InputError(f"margin={self.margin!r} is not known: use None or 'scaled'")
        if self.margin is None:
            refuse_unused(self, "margin_scale", 1.0, "margin=None: use margin='scaled'")
        if self.margin == "scaled":
            scale = check_number("margin_scale", self.margin_scale)
            labels = labels.with_margin(scale)
        return super()._prepare(labels)
