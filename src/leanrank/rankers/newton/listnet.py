"""ListNet: documents should be drawn first as often as their labels say."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from leanrank.losses.listnet import ListNetLoss
from leanrank.penalties.base import Penalty
from leanrank.rankers.newton.linear_ranker import LinearRanker


@dataclass(eq=False, repr=False)
class ListNet(LinearRanker):
    """Linear ranking with ListNet's cross entropy (Cao, Qin, Liu, Tsai & Li 2007).

    Labels and scores each give a document the probability of being drawn first from its query, by a
    softmax; a query costs the cross entropy of the two. Unlike pairwise losses it uses the values
    of the labels, not only their order.

    Further parameters and the fitted attributes are those of ``LinearRanker``.

    Parameters
    ----------
    alpha : float, default=0.001
        Strength of the penalty; ``alpha_max`` gives the smallest value with an empty model.
    l1_ratio : float, default=1.0
        1 is ℓ1, 0 is ℓ2², between is an elastic net.
    target : {"label", "gain", "gains"}, default="label"
        Draw by the softmax of the labels, by the softmax of 2^label − 1, or in proportion to
        2^label − 1, the softmax loss.
    normalize : {"query", "term", "none"}, default="query"
        "none" is the plain sum over queries; the others are its mean.
    tol : float, default=1e-6
        Relative duality gap at which to stop. The entropy of the target is part of the objective.
    max_iter : int, default=100

    Examples
    --------
    >>> from leanrank import ListNet, make_ranking
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = ListNet(alpha=0.01).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True
    """

    alpha: float = 0.001
    l1_ratio: float = 1.0
    _: KW_ONLY
    loss: str = field(default="listnet", init=False)
    solver: str = field(default="newton", init=False)
    penalty: str | Penalty = "elastic-net"
    target: str = "label"
    max_iter: int = 100

    def make_loss(self) -> ListNetLoss:
        """Return the loss with its target."""
        return ListNetLoss(self.target)
