"""SparseRank: the pairwise squared hinge with an ℓ1 penalty."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field

from leanrank.errors import check_choice
from leanrank.rankers.inputs import check_number, refuse_idle
from leanrank.rankers.newton.linear_ranker import LinearRanker
from leanrank.solvers.base import Solver
from leanrank.solvers.first_order.proximal import Proximal
from leanrank.solvers.newton.solver import Newton


@dataclass(eq=False, repr=False)
class SparseRank(LinearRanker):
    """Sparse RankSVM (the SparseRank baseline of Lai et al. 2013).

    Minimises the pairwise squared hinge plus alpha·‖w‖₁; ``RankSVM`` with ``l1_ratio=1`` has the
    same optimum.

    Further parameters and the fitted attributes are those of ``LinearRanker``.

    Parameters
    ----------
    alpha : float, default=0.01
        Strength of the penalty; ``alpha_max`` returns the smallest value with an empty model.
    solver : {"newton", "proximal"}, default="newton"
        "newton": working-set proximal Newton. "proximal": the published iteration, a gradient step
        and then a soft threshold at alpha/K. It is much slower: use it with a ``tol`` of 1e-3.
    lipschitz : float, optional
        K at the start of "proximal", deliberately smaller than the Lipschitz constant of the
        gradient. None: a tenth of the curvature in the direction of the first gradient.
    max_iter : int, default=10000
        Largest number of iterations.

    Examples
    --------
    >>> from leanrank import SparseRank, make_ranking
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = SparseRank(alpha=0.05).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True
    >>> int((ranker.coef_ != 0).sum()) < 15
    True
    """

    alpha: float = 0.01
    _: KW_ONLY
    loss: str = field(default="squared-hinge", init=False)
    penalty: str = field(default="l1", init=False)
    l1_ratio: None = field(default=None, init=False)
    groups: None = field(default=None, init=False)
    curves: None = field(default=None, init=False)
    monotone: None = field(default=None, init=False)
    group_ratio: None = field(default=None, init=False)
    solver: str = "newton"
    lipschitz: float | None = None
    max_iter: int = 10_000

    def make_solver(self) -> Solver:
        """Return Newton's method or the published iteration."""
        check_choice("solver", self.solver, ("newton", "proximal"))
        if self.solver == "newton":
            refuse_idle(self, ("lipschitz",), "solver='newton'")
            return Newton()
        if self.lipschitz is not None:
            check_number("lipschitz", self.lipschitz, open_low=True)
        return Proximal(lipschitz=self.lipschitz)
