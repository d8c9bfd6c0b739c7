"""Sparse forms of RankSVM: an ℓ1 penalty, an ℓ1 ball, and penalties that spare large weights."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from leanrank.losses.base import Loss
from leanrank.penalties.base import Penalty
from leanrank.penalties.concave import SHAPES, ConcavePenalty, make_shape
from leanrank.penalties.elastic_net import ElasticNet, L1Ball
from leanrank.rankers.linear_ranker import LinearRanker
from leanrank.rankers.parameters import Constraints, Uses, fixed, one_of
from leanrank.solvers.base import Solver
from leanrank.solvers.first_order.fenchel import Fenchel
from leanrank.solvers.first_order.majorise import Majorise
from leanrank.solvers.first_order.proximal import Proximal
from leanrank.solvers.newton.solver import Newton

ADAPTIVE_ROUNDS = 2
"""Problems of the adaptive ℓ1 penalty: the plain one, and one weighted by its solution."""


@dataclass(eq=False, repr=False)
class WeightsRanker(LinearRanker):
    """A linear ranker without curves and groups, as in the papers."""

    _: KW_ONLY
    groups: None = fixed(None)
    curves: None = fixed(None)
    monotone: None = fixed(None)
    pairs: None = fixed(None)
    group_ratio: None = fixed(None)


@dataclass(eq=False, repr=False)
class SparseRank(WeightsRanker):
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
        and then a soft threshold at alpha/K, which is much slower; use a ``tol`` of 1e-3.
    lipschitz : float, optional
        K at the start of "proximal", deliberately smaller than the Lipschitz constant of the
        gradient. None: a tenth of the curvature in the direction of the first gradient.
    max_iter : int, default=10000
        Largest number of iterations.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import SparseRank
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = SparseRank(alpha=0.05).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True
    >>> int((ranker.coef_ != 0).sum()) < 15
    True
    """

    alpha: float = 0.01
    _: KW_ONLY
    loss: str = fixed("squared-hinge")
    penalty: str = fixed("l1")
    l1_ratio: None = fixed(None)
    solver: str = "newton"
    lipschitz: float | None = None
    max_iter: int = 10_000

    _constraints: ClassVar[Constraints] = {"solver": [one_of("newton", "proximal")]}
    _used_with: ClassVar[Uses] = {"lipschitz": ("solver", ("proximal",))}

    def _make_solver(self) -> Solver:
        """Return Newton's method or the published iteration."""
        return Proximal(lipschitz=self.lipschitz) if self.solver == "proximal" else Newton()


@dataclass(eq=False, repr=False)
class FenchelRank(WeightsRanker):
    """Sparse RankSVM with a limit on Σ|w_j| instead of a penalty (Lai et al. 2013).

    Minimises the mean squared hinge over pairs subject to ‖w‖₁ ≤ radius. For every radius there is
    an alpha at which the ℓ1-penalised ``RankSVM`` and ``SparseRank`` have the same optimum.

    Parameters
    ----------
    radius : float, default=10.0
        Largest Σ|w_j|.
    solver : {"corrective", "greedy"}, default="corrective"
        "greedy": the published algorithm, a step towards one corner of the ball per round; its gap
        falls like one over the number of rounds, so use a ``tol`` of 1e-3. "corrective": minimises
        over all features in use before it adds more.
    normalize : {"query", "term", "none"}, default="query"
        What each query's loss is divided by: its number of terms, the terms of all queries, or
        nothing.
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
        Called with each entry of the history.

    Attributes
    ----------
    dual_gap_ : float
        Relative duality gap: no loss in the ball is below ``objective_ · (1 − dual_gap_)``.
    objective_ : float
        The loss at ``coef_``.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import FenchelRank
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = FenchelRank(radius=1.0).fit(data.X, data.y, qid=data.qid)
    >>> float(abs(ranker.coef_).sum().round(6)), ranker.dual_gap_ <= 1e-6
    (1.0, True)
    """

    radius: float = 10.0
    _: KW_ONLY
    loss: str = fixed("squared-hinge")
    penalty: str = fixed("l1")
    alpha: float = fixed(0.0)
    l1_ratio: None = fixed(None)
    penalty_factors: None = fixed(None)
    signs: None = fixed(None)
    solver: str = "corrective"
    max_iter: int = 10_000

    _has_strength: ClassVar[bool] = False
    _other_remedy: ClassVar[str] = "use solver='corrective'"
    _constraints: ClassVar[Constraints] = {"solver": [one_of("corrective", "greedy")]}

    def _make_penalty(self, alpha: float, n_features: int) -> Penalty:
        """Return the ball."""
        return L1Ball(n_features, float(self.radius))

    def _make_solver(self) -> Solver:
        """Return Frank-Wolfe, greedy or corrective."""
        return Fenchel(variant=self.solver)


@dataclass(eq=False, repr=False)
class NonconvexRankSVM(WeightsRanker):
    """Sparse RankSVM with a non-convex penalty (Laporte, Flamary, Canu, Déjean & Mothe 2014).

    An ℓ1 penalty shrinks all weights. A concave penalty shrinks large weights less, so that as few
    or fewer features give the same accuracy. It is minimised by a few weighted ℓ1 problems, each
    solved to a certified gap; the objective never rises from one to the next.

    Further parameters and the fitted attributes are those of ``LinearRanker``.

    Parameters
    ----------
    alpha : float, default=0.01
        Strength of the penalty. The model is empty from ``alpha_max`` on; with a penalty that is
        steep at zero it may be empty below, too.
    l1_ratio : float, default=1.0
        Share of the concave penalty, above 0; the rest is ℓ2².
    penalty : {"lp", "mcp", "log", "adaptive"}, default="lp"
        "lp": Σ(|w_j| + ε)^p. "mcp": ℓ1 near zero, constant from gamma·alpha on. "log":
        Σ log(|w_j| + ε). "adaptive": ℓ1 with weights (|w_j| + ε)^{−gamma}, w from a plain ℓ1
        problem.
    p : float, default=0.5
        For "lp": the exponent, between 0 and 1.
    gamma : float, optional
        For "mcp": weights above gamma·alpha are not shrunk; 100 by default. For "adaptive": the
        exponent, 1 by default.
    epsilon : float, default=0.01
        ε, which makes the slope of "lp", "log" and "adaptive" finite at zero.
    n_rounds : int, default=10
        Largest number of weighted problems; the fit ends sooner once the objective is stable.
    loss : str, default="squared-hinge"
        Any loss that Newton's method can minimise: also "logistic", "exponential", "domination",
        "listnet".
    tol : float, default=1e-6
        Relative duality gap of each weighted problem, and relative decrease of the objective below
        which to stop.
    max_iter : int, default=100
        Largest number of iterations of each weighted problem.
    warm_start : bool, default=False
        Start the first, plain problem from the weights of the last fit.
    callback : callable, optional
        Called with each entry of the history.

    Attributes
    ----------
    dual_gap_ : float
        Relative duality gap of the last weighted problem.
    objective_ : float
        Loss plus penalty at ``coef_``.
    n_iter_ : int
        Iterations of all rounds.
    history_ : list of dict
        One entry per round: its objective, gap, number of features and iterations. The last one
        also has "stationarity": the largest remaining slope of loss plus penalty in any weight.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import NonconvexRankSVM
    >>> data = make_ranking(n_queries=40, n_features=30, n_informative=4, random_state=0)
    >>> ranker = NonconvexRankSVM(alpha=0.05).fit(data.X, data.y, qid=data.qid)
    >>> ranker.dual_gap_ <= 1e-6
    True
    >>> fell = [entry["objective"] for entry in ranker.history_]
    >>> fell == sorted(fell, reverse=True)
    True
    """

    alpha: float = 0.01
    l1_ratio: float = 1.0
    _: KW_ONLY
    loss: str | Loss[Any] = "squared-hinge"
    penalty: str = "lp"
    solver: str = fixed("majorise")
    p: float = 0.5
    gamma: float | None = None
    epsilon: float = 0.01
    n_rounds: int = 10
    max_iter: int = 100

    _constraints: ClassVar[Constraints] = {
        "penalty": [one_of(*SHAPES)],
        "l1_ratio": [Interval(Real, 0, 1, closed="right")],
    }
    _used_with: ClassVar[Uses] = {
        "p": ("penalty", ("lp",)),
        "gamma": ("penalty", ("mcp", "adaptive")),
        "epsilon": ("penalty", ("lp", "log", "adaptive")),
        **dict.fromkeys(("l1_ratio", "penalty_factors", "signs"), ("penalty", SHAPES)),
    }

    def _make_penalty(self, alpha: float, n_features: int) -> Penalty:
        """Return the concave penalty at a strength."""
        shape = make_shape(self.penalty, p=self.p, gamma=self.gamma, epsilon=self.epsilon)
        factors = self._per_feature(n_features)
        return ConcavePenalty(ElasticNet.build(alpha, self.l1_ratio, n_features, *factors), shape)

    def _make_solver(self) -> Solver:
        """Return the solver that majorises the penalty by weighted ℓ1 penalties."""
        adaptive = self.penalty == "adaptive"
        return Majorise(rounds=min(self.n_rounds, ADAPTIVE_ROUNDS) if adaptive else self.n_rounds)
