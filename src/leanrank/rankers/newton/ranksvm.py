"""RankSVM: every pair of documents in the right order, by a margin."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from leanrank.errors import check_choice
from leanrank.losses import get_loss
from leanrank.losses.base import Labels, Loss
from leanrank.penalties.base import Penalty
from leanrank.rankers.newton.linear_ranker import LinearRanker
from leanrank.rankers.problem_ranker import scaled_margins
from leanrank.solvers.base import Solver
from leanrank.solvers.first_order.cutting_plane import CuttingPlane
from leanrank.solvers.newton.solver import Newton


@dataclass(eq=False, repr=False)
class RankSVM(LinearRanker):
    """The ranking support vector machine (Joachims 2002, 2006), on pairs that are never listed.

    A document should score above every document of a lower level of its query by a margin; a pair
    that does not pays what is missing, or its square. An evaluation costs a sort of the scores,
    not a visit to each pair.

    Further parameters and the fitted attributes are those of ``LinearRanker``.

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
        For ``margin="scaled"``: the margin per level of difference.
    importance : None, "ndcg" or array of shape (levels, levels), default=None
        What a pair weighs by its levels. "ndcg": what NDCG loses when documents of the two levels
        trade places in the ideal ranking. An array: lowest level first, row the winner.

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

    alpha: float = 0.01
    l1_ratio: float = 0.0
    _: KW_ONLY
    loss: str = "squared-hinge"
    penalty: str | Penalty = "elastic-net"
    solver: str | None = None
    margin: str | None = None
    margin_scale: float = 1.0
    importance: Any = None

    def make_loss(self) -> Loss[Any]:
        """Return either hinge; margins that are scaled replace the lead of 1."""
        name = str(self.loss).replace("_", "-")
        check_choice("loss", name, ("squared-hinge", "hinge"))
        lead = 1.0 if self.margin is None else 0.0
        return get_loss(name, importance=self.importance, margin=lead)

    def with_margins(self, labels: Labels) -> Labels:
        return scaled_margins(self, labels, positive=True)

    def make_solver(self) -> Solver:
        """Return Newton's method or cutting planes."""
        if self.solver is not None:
            check_choice("solver", self.solver, ("newton", "cutting-plane", "struct"))
        if self.solver == "newton" or (self.solver is None and self.make_loss().smooth):
            return Newton()
        return CuttingPlane(variant="plain" if self.solver == "struct" else "fast")
