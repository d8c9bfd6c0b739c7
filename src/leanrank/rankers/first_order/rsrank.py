"""RSRank: pairs weighted by the cost of a swap, and truncated gradients."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from leanrank.data.ranking_data import RankingData
from leanrank.errors import check_choice
from leanrank.losses.base import Labels
from leanrank.rankers.base import check_number
from leanrank.rankers.inputs import check_whole
from leanrank.rankers.sampling.sampled_pairs import (
    SampledPairRanker,
    chosen_rate,
    refuse_idle_rates,
)
from leanrank.solvers.sampling.pair_descent import (
    PairBlock,
    PairRule,
    make_pair_block,
    schedule_code,
)


@dataclass(eq=False, repr=False)
class RSRank(SampledPairRanker):
    """Robust sparse ranking (Sun et al. 2009): importance-weighted pairs, truncated gradients.

    The weight of a pair is what the measure loses when documents of its levels are swapped in the
    ideal ranking. Every ``truncate_every`` steps, weights of at most ``ceiling`` are
    soft-thresholded by the gravity accumulated since.

    Parameters
    ----------
    alpha : float, default=1e-3
        Gravity: the strength of the ℓ1 penalty beside the mean weighted loss of a pair.
    importance : "ndcg", None or array of shape (levels, levels), default="ndcg"
        Weight of a pair by its levels; an array has the lowest level first, the winner's in rows.
        The weights are divided by their mean over pairs, so alpha does not depend on their scale.
    loss : {"hinge", "squared-hinge", "squared", "logistic"}, default="hinge"
    sampling : {"pairs", "queries"}, default="queries"
        Which pairs are equally likely; see ``SPD``.
    truncate_every : int, default=1000
        θ, the steps between truncations.
    ceiling : float, default=inf
        τ: larger weights are not truncated.
    n_steps : int, default=100_000
        Pairs per pass.
    epochs : int, default=1
        Passes; the model is measured on validation data after each.
    learning_rate : {"optimal", "invscaling", "constant"}, default="optimal"
        The rate of step t: η₀/(1 + α η₀ t), η₀/tᵖ, or η₀.
    eta0 : float, optional
        η₀; by default set from the norm of the pairs.
    power_t : float, default=0.5
        p of "invscaling".
    random_state, measure, convention, patience, warm_start, verbose, callback
        As for ``SPD``.

    Examples
    --------
    >>> from leanrank import RSRank, make_ranking
    >>> data = make_ranking(n_queries=60, n_features=30, n_informative=4, random_state=0)
    >>> ranker = RSRank(alpha=0.1).fit(data.X, data.y, qid=data.qid)
    >>> bool(0 < (ranker.coef_ != 0).sum() < 15)
    True
    """

    alpha: float = 1e-3
    _: KW_ONLY
    importance: Any = "ndcg"
    loss: str = "hinge"
    sampling: str = "queries"
    truncate_every: int = 1000
    ceiling: float = np.inf
    learning_rate: str = "optimal"
    eta0: float | None = None
    power_t: float = 0.5

    def _block(self, data: RankingData, labels: Labels) -> PairBlock:
        return make_pair_block(data.X, labels, over=self.sampling, importance=self.importance)

    def _rule(self, block: PairBlock) -> PairRule:
        check_choice("learning_rate", self.learning_rate, ("optimal", "invscaling", "constant"))
        refuse_idle_rates(self)
        ceiling = self.ceiling
        return PairRule(
            loss=self.loss,
            schedule=schedule_code(self.learning_rate),
            eta0=chosen_rate(self.eta0, block, self.loss),
            power=check_number("power_t", self.power_t),
            l1=check_number("alpha", self.alpha),
            every=check_whole("truncate_every", self.truncate_every),
            ceiling=np.inf if ceiling == np.inf else check_number("ceiling", ceiling),
        )
