"""Published systems that are a loss, a penalty, a solver and defaults of ``LinearRanker``."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from leanrank.losses import get_loss
from leanrank.losses.base import Labels, Loss
from leanrank.penalties.base import Penalty
from leanrank.rankers.linear_ranker import LinearRanker
from leanrank.rankers.parameters import POSITIVE, Constraints, Uses, fixed, one_of
from leanrank.solvers.base import Solver
from leanrank.solvers.first_order.bound_cd import BoundDescent
from leanrank.solvers.first_order.cutting_plane import CuttingPlane
from leanrank.solvers.newton.solver import Newton


@dataclass(eq=False, repr=False)
class MarginRanker(LinearRanker):
    """A linear ranker with an elastic net and optional margins between labels."""

    alpha: float = 0.01
    l1_ratio: float = 1.0
    _: KW_ONLY
    penalty: str | Penalty = "elastic-net"
    margin: str | None = None
    margin_scale: float = 1.0

    _used_with: ClassVar[Uses] = {"margin_scale": ("margin", ("scaled",))}

    def _with_margins(self, labels: Labels) -> Labels:
        """Return the labels with the offsets of the margins."""
        return labels if self.margin is None else labels.with_margin(float(self.margin_scale))


@dataclass(eq=False, repr=False)
class DominationRanker(MarginRanker):
    """Sparse linear ranking with the domination loss (Stevens, Bengio & Singer 2013).

    Each document competes with all documents of lower levels of its query at once: its loss is
    log(1 + Σ e^{score of a lower document − its own score}).

    Further parameters and the fitted attributes are those of ``LinearRanker``.

    Parameters
    ----------
    alpha : float, default=0.01
        Strength of the penalty; ``alpha_max`` returns the smallest value with an empty model.
    l1_ratio : float, default=1.0
        Share of the ℓ1 penalty: 1 is ℓ1, 0 is ℓ2², between is an elastic net.
    solver : {"newton", "bound-cd"}, default="newton"
        "newton": working-set proximal Newton, certified. "bound-cd": the paper's coordinate descent
        on a quadratic bound, which is slow.
    margin : {None, "scaled"}, default=None
        Required lead of a document over a lower one: none, or ``margin_scale`` times the difference
        of their labels.
    margin_scale : float, default=1.0
        For ``margin="scaled"``: the lead per unit of label.
    bound : {"range", "paper"}, default="range"
        For "bound-cd", the bound on the curvature: (max − min)²/4 of a feature over a query, or
        max x² as printed in the paper.
    normalize : {"query", "term", "none"}, default="query"
        What each query's loss is divided by: its number of terms, the terms of all queries, or
        nothing. "none" is the sum of the paper.
    max_iter : int, default=100
        Largest number of iterations.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import DominationRanker
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = DominationRanker(alpha=0.05).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True
    >>> int((ranker.coef_ != 0).sum()) < 15
    True
    """

    _: KW_ONLY
    loss: str = fixed("domination")
    solver: str = "newton"
    bound: str = "range"
    max_iter: int = 100

    _constraints: ClassVar[Constraints] = {"solver": [one_of("newton", "bound-cd")]}
    _used_with: ClassVar[Uses] = {"bound": ("solver", ("bound-cd",))}

    def _make_solver(self) -> Solver:
        """Return Newton's method or the paper's coordinate descent."""
        return BoundDescent(bound=self.bound) if self.solver == "bound-cd" else Newton()


@dataclass(eq=False, repr=False)
class ListNet(LinearRanker):
    """Linear ranking with ListNet's cross entropy (Cao, Qin, Liu, Tsai & Li 2007).

    The softmax of the labels and the softmax of the scores each give every document of a query a
    probability of ranking first; the loss is the cross entropy of the two. Unlike pairwise losses
    it uses the values of the labels, not only their order.

    Further parameters and the fitted attributes are those of ``LinearRanker``.

    Parameters
    ----------
    alpha : float, default=0.001
        Strength of the penalty; ``alpha_max`` returns the smallest value with an empty model.
    l1_ratio : float, default=1.0
        Share of the ℓ1 penalty: 1 is ℓ1, 0 is ℓ2², between is an elastic net.
    target : {"label", "gain", "gains"}, default="label"
        Probabilities of the documents: the softmax of the labels, the softmax of 2^label − 1, or
        in proportion to 2^label − 1 (the softmax loss).
    normalize : {"query", "term", "none"}, default="query"
        "query" and "term": the mean over queries. "none": their sum.
    tol : float, default=1e-6
        Relative duality gap at which to stop. The entropy of the target is part of the objective.
    max_iter : int, default=100
        Largest number of iterations.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import ListNet
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = ListNet(alpha=0.01).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True
    """

    alpha: float = 0.001
    l1_ratio: float = 1.0
    _: KW_ONLY
    loss: str = fixed("listnet")
    solver: str = fixed("newton")
    penalty: str | Penalty = "elastic-net"
    target: str = "label"
    max_iter: int = 100

    _loss_options: ClassVar[tuple[str, ...]] = ("target",)


@dataclass(eq=False, repr=False)
class RankNet(MarginRanker):
    """Linear ranking with RankNet's logistic loss of pairs (Burges et al. 2005).

    The lead of a document over one of a lower level is the log odds that it is the better of the
    two; the loss of a pair is log(1 + e^{−lead}). The time per document hardly depends on the
    length of the list.

    Further parameters and the fitted attributes are those of ``LinearRanker``.

    Parameters
    ----------
    alpha : float, default=0.001
        Strength of the penalty; ``alpha_max`` returns the smallest value with an empty model.
    l1_ratio : float, default=0.0
        Share of the ℓ1 penalty: 1 is ℓ1, 0 is ℓ2², between is an elastic net.
    margin : {None, "scaled"}, default=None
        Subtracted from the lead of a document over a lower one: nothing, or ``margin_scale`` times
        the difference of their labels.
    margin_scale : float, default=1.0
        For ``margin="scaled"``: the lead per unit of label.
    importance : None, "ndcg" or array of shape (levels, levels), default=None
        Weight of a pair by its two levels. "ndcg": the change of NDCG when two documents of these
        levels are swapped in the ideal ranking. An array: one row per level of the winner, lowest
        level first.
    max_iter : int, default=100
        Largest number of iterations.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import RankNet
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = RankNet(alpha=0.01).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True
    """

    alpha: float = 0.001
    l1_ratio: float = 0.0
    _: KW_ONLY
    loss: str = fixed("logistic")
    solver: str = fixed("newton")
    importance: Any = None
    max_iter: int = 100

    _loss_options: ClassVar[tuple[str, ...]] = ("importance",)


@dataclass(eq=False, repr=False)
class RankSVM(MarginRanker):
    """The ranking support vector machine (Joachims 2002, 2006), on pairs that are never listed.

    A document should score above every document of a lower level of its query by a margin; the
    loss of a pair is the shortfall, or its square. An evaluation sorts the scores instead of
    visiting each pair.

    Further parameters and the fitted attributes are those of ``LinearRanker``.

    Parameters
    ----------
    alpha : float, default=0.01
        Strength of the penalty. With ``normalize="none"``, 1/alpha is the C of the papers.
    l1_ratio : float, default=0.0
        Share of the ℓ1 penalty: 1 is ℓ1, 0 is ℓ2², between is an elastic net.
    loss : {"squared-hinge", "hinge"}, default="squared-hinge"
        Loss of a pair; scikit-learn's spelling "squared_hinge" is accepted too.
    solver : {None, "newton", "cutting-plane", "struct"}, default=None
        "newton": working-set proximal Newton, for the squared hinge. "cutting-plane": for either
        loss with ``l1_ratio=0``. "struct": cutting planes as published (SVM-rank), which are
        slower; use a ``tol`` of 1e-3. None: "newton" for the squared hinge, else "cutting-plane".
    margin : {None, "scaled"}, default=None
        Required lead of a document over a lower one: 1, or ``margin_scale`` times the difference of
        their labels.
    margin_scale : float, default=1.0
        For ``margin="scaled"``: the lead per unit of label.
    importance : None, "ndcg" or array of shape (levels, levels), default=None
        Weight of a pair by its two levels. "ndcg": the change of NDCG when two documents of these
        levels are swapped in the ideal ranking. An array: one row per level of the winner, lowest
        level first.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import RankSVM
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = RankSVM(alpha=0.1).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True

    Preferences instead of labels:

    >>> X = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0]]
    >>> RankSVM(alpha=0.1).fit(X, preferences=([2, 1], [0, 0])).rank(X).tolist()
    [3, 2, 1]
    """

    l1_ratio: float = 0.0
    _: KW_ONLY
    loss: str = "squared-hinge"
    solver: str | None = None
    importance: Any = None

    _constraints: ClassVar[Constraints] = {
        "margin_scale": [POSITIVE],
        "loss": [one_of("squared-hinge", "hinge", "squared_hinge")],
        "solver": [one_of("newton", "cutting-plane", "struct"), None],
    }

    def _make_loss(self) -> Loss[Any]:
        """Return the loss; scaled margins replace the lead of 1."""
        lead = 1.0 if self.margin is None else 0.0
        return get_loss(self.loss.replace("_", "-"), importance=self.importance, margin=lead)

    def _make_solver(self) -> Solver:
        """Return Newton's method or cutting planes."""
        if self.solver == "newton" or (self.solver is None and self._make_loss().smooth):
            return Newton()
        return CuttingPlane(variant="plain" if self.solver == "struct" else "fast")
