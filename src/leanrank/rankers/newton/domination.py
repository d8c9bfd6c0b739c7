"""Domination Rank: rank a few good documents above all the others with few features."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np

from leanrank.errors import check_choice
from leanrank.losses.base import Labels
from leanrank.losses.domination import DominationLoss
from leanrank.penalties.base import Penalty
from leanrank.rankers.inputs import refuse_idle
from leanrank.rankers.newton.linear_ranker import LinearRanker
from leanrank.rankers.problem_ranker import scaled_margins
from leanrank.solvers.base import Solver
from leanrank.solvers.first_order.bound_cd import BoundDescent


@dataclass(eq=False, repr=False)
class DominationRanker(LinearRanker):
    """Sparse linear ranking with the domination loss (Stevens, Bengio & Singer 2013).

    Each document should score above all documents of lower levels of its query together; the loss
    of one that does not is the logarithm of how much it is outweighed.

    Further parameters and the fitted attributes are those of ``LinearRanker``.

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
        For ``margin="scaled"``: the margin per level of difference.
    bound : {"range", "paper"}, default="range"
        For "bound-cd": (max − min)²/4 of a feature over a query, or the printed max x².
    normalize : {"query", "term", "none"}, default="query"
        "none" is the paper's plain sum.
    max_iter : int, default=100

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

    alpha: float = 0.01
    l1_ratio: float = 1.0
    _: KW_ONLY
    loss: str = field(default="domination", init=False)
    penalty: str | Penalty = "elastic-net"
    solver: str = "newton"
    margin: Any = None
    margin_scale: float = 1.0
    bound: str = "range"
    max_iter: int = 100

    def make_loss(self) -> DominationLoss:
        """Return the loss, with a table of margins where one is given."""
        if self.margin is None or isinstance(self.margin, str):
            return DominationLoss()
        return DominationLoss(np.asarray(self.margin, dtype=np.float64))

    def with_margins(self, labels: Labels) -> Labels:
        if self.margin is None or isinstance(self.margin, str):
            return scaled_margins(self, labels)
        refuse_idle(self, ("margin_scale",), "a table of margins: use margin='scaled'")
        return labels

    def make_solver(self) -> Solver:
        """Return Newton's method or the paper's."""
        check_choice("solver", self.solver, ("newton", "bound-cd"))
        if self.solver == "bound-cd":
            return BoundDescent(bound=self.bound)
        refuse_idle(self, ("bound",), "solver='newton': use solver='bound-cd'")
        return super().make_solver()
