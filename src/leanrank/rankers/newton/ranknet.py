"""RankNet, linear: the probability that a pair is in the right order."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from leanrank.losses.base import Labels
from leanrank.losses.logistic import LogisticLoss
from leanrank.penalties.base import Penalty
from leanrank.rankers.inputs import seed_of
from leanrank.rankers.newton.linear_ranker import LinearRanker
from leanrank.rankers.problem_ranker import scaled_margins


@dataclass(eq=False, repr=False)
class RankNet(LinearRanker):
    """Linear ranking with RankNet's logistic loss of pairs (Burges et al. 2005).

    The lead of a document over one of a lower level is the log odds that it is the better of the
    two; a pair costs log(1 + e^{−lead}). Long lists cost about as much per document as short ones,
    unless ``importance`` weighs pairs by level: then an evaluation costs every pair, up to n²/2 of
    n documents, or those that ``max_pairs`` draws.

    Further parameters and the fitted attributes are those of ``LinearRanker``.

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
        For ``margin="scaled"``: the margin per level of difference.
    importance : None, "ndcg" or array of shape (levels, levels), default=None
        What a pair weighs by its levels. "ndcg": what NDCG loses when documents of the two levels
        trade places in the ideal ranking. An array: lowest level first, row the winner.
    max_pairs : int, optional
        Largest number of pairs per query; of more, so many are drawn once, weighted so that the
        expected loss is the same. The certificate is that of the drawn problem.
    random_state : int, RandomState or None, default=0
        For drawing pairs.
    max_iter : int, default=100

    Examples
    --------
    >>> from leanrank import RankNet, make_ranking
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = RankNet(alpha=0.01).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True
    """

    alpha: float = 0.001
    l1_ratio: float = 0.0
    _: KW_ONLY
    loss: str = field(default="logistic", init=False)
    solver: str = field(default="newton", init=False)
    penalty: str | Penalty = "elastic-net"
    margin: str | None = None
    margin_scale: float = 1.0
    importance: Any = None
    max_pairs: int | None = None
    random_state: Any = 0
    max_iter: int = 100

    def make_loss(self) -> LogisticLoss:
        """Return the loss of all pairs, or of those that are drawn."""
        seed = 0 if self.max_pairs is None else seed_of(self.random_state)
        return LogisticLoss(self.importance, self.max_pairs, seed)

    def with_margins(self, labels: Labels) -> Labels:
        return scaled_margins(self, labels)
