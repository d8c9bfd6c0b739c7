"""SPD: stochastic descent on pairs that are drawn, never listed."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.losses import pair_loss
from leanrank.losses.base import Labels
from leanrank.rankers.base import check_number
from leanrank.rankers.inputs import check_whole, refuse_idle
from leanrank.rankers.sampling.sampled_pairs import (
    SampledPairRanker,
    check_pegasos,
    chosen_rate,
    refuse_idle_rates,
)
from leanrank.solvers.sampling.pair_descent import (
    PairBlock,
    PairRule,
    make_pair_block,
    schedule_code,
)

PASSIVE_AGGRESSIVE = "passive-aggressive"


@dataclass(eq=False, repr=False)
class SPD(SampledPairRanker):
    """Stochastic pairwise descent (Sculley 2009): a step for each pair drawn by index.

    The cost of a step does not depend on how many documents there are, only on the features of the
    two that were drawn. The optimum that the steps approach is that of the mean loss over pairs
    plus the penalty; see the objective in the documentation.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the penalty.
    l1_ratio : float, default=0.0
        0 is the ℓ2² penalty, 1 the ℓ1 penalty, which makes weights exactly zero.
    loss : str, default="hinge"
        "hinge", "squared-hinge", "squared", "logistic", or "passive-aggressive": the smallest step
        that settles the pair, without a penalty.
    sampling : {"pairs", "queries"}, default="pairs"
        Every pair is equally likely; or every query is, and then its pairs are.
    n_steps : int, default=100_000
        Pairs per pass.
    epochs : int, default=1
        Passes; the model is measured on validation data after each.
    learning_rate : {"optimal", "pegasos", "invscaling", "constant"}, default="optimal"
        The rate of step t: η₀/(1 + α η₀ t), 1/(α t), η₀/tᵖ, or η₀.
    eta0 : float, optional
        η₀; by default set from the norm of the pairs.
    power_t : float, default=0.5
        p of "invscaling".
    C : float, default=1.0
        Largest passive-aggressive step.
    project : bool, default=False
        Whether weights stay in the ball of radius 1/√α, as in the first Pegasos.
    truncate_every : int, default=1000
        Steps between truncations by the ℓ1 penalty; longer intervals leave fewer features.
    average : bool, optional
        Whether the model is the average over about the later half of the steps, which converges
        faster. By default it is, unless there is an ℓ1 penalty: an average has no zeros.
    random_state : int, RandomState or None, default=0
        The same seed gives the same model on any machine, whatever the order of the rows.
    measure, convention : str, default="ndcg@10", "standard"
        Measure that selects the best pass on validation data.
    patience : int, optional
        Passes without improvement after which to stop; needs validation data.
    warm_start : bool, default=False
        Continue from the state of the last fit.
    verbose : int, default=0
        1 prints a line of progress per step.
    callback : callable, optional
        Called with each entry of the history.

    Examples
    --------
    >>> from leanrank import SPD, make_ranking
    >>> data = make_ranking(n_queries=60, n_features=10, random_state=0)
    >>> ranker = SPD(alpha=0.001, n_steps=20_000).fit(data.X, data.y, qid=data.qid)
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.7)
    True
    """

    alpha: float = 1e-3
    _: KW_ONLY
    l1_ratio: float = 0.0
    loss: str = "hinge"
    sampling: str = "pairs"
    learning_rate: str = "optimal"
    eta0: float | None = None
    power_t: float = 0.5
    C: float = 1.0
    project: bool = False
    truncate_every: int = 1000
    average: bool | None = None

    def _block(self, data: RankingData, labels: Labels) -> PairBlock:
        return make_pair_block(data.X, labels, over=self.sampling)

    def _rule(self, block: PairBlock) -> PairRule:
        passive = self.loss == PASSIVE_AGGRESSIVE
        if not passive:
            pair_loss(self.loss, PASSIVE_AGGRESSIVE)
        self._refuse_idle(passive)
        alpha = 0.0 if passive else check_number("alpha", self.alpha)
        l1 = alpha * check_number("l1_ratio", self.l1_ratio, high=1.0)
        l2 = alpha - l1
        if l1 > 0.0 and self.average:
            raise InputError(
                "average=True leaves no weight at zero, which l1_ratio asks for: give one of them"
            )
        check_pegasos(self.learning_rate, l2)
        loss = "hinge" if passive else self.loss
        return PairRule(
            loss=loss,
            schedule=schedule_code(self.learning_rate),
            eta0=chosen_rate(self.eta0, block, loss),
            power=check_number("power_t", self.power_t),
            l2=l2,
            l1=l1,
            passive_aggressive=passive,
            largest=check_number("C", self.C, open_low=True),
            project=bool(self.project) and l2 > 0.0,
            every=check_whole("truncate_every", self.truncate_every),
        )

    def _refuse_idle(self, passive: bool) -> None:
        if passive:
            idle = ("alpha", "l1_ratio", "learning_rate", "eta0", "power_t", "project")
            refuse_idle(self, (*idle, "truncate_every"), f"loss={self.loss!r}")
            return
        refuse_idle(self, ("C",), f"loss={self.loss!r}")
        refuse_idle_rates(self)
        alpha = check_number("alpha", self.alpha)
        l1, l2 = alpha * self.l1_ratio, alpha * (1.0 - self.l1_ratio)
        if not l1 > 0.0:
            refuse_idle(self, ("truncate_every",), "no ℓ1 penalty")
        if not l2 > 0.0:
            refuse_idle(self, ("project",), "no ℓ2² penalty")

    def _averages(self) -> bool:
        if self.average is None:
            return self.loss == PASSIVE_AGGRESSIVE or not self.alpha * self.l1_ratio > 0.0
        return bool(self.average)
