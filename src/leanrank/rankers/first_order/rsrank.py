"""RSRank: pairs weighted by the cost of a swap, and truncated gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank.data.ranking_data import RankingData
from leanrank.errors import check_choice
from leanrank.losses.base import Labels
from leanrank.losses.pair_slopes import pair_loss_code
from leanrank.rankers.base import check_number
from leanrank.rankers.inputs import check_whole
from leanrank.rankers.sampling.sampled_pairs import (
    SampledPairRanker,
    chosen_rate,
    refuse_idle_rates,
)
from leanrank.rankers.validation import Callback
from leanrank.solvers.sampling.pair_descent import (
    PairBlock,
    PairRule,
    make_pair_block,
    schedule_code,
)


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

    def __init__(
        self,
        alpha: float = 1e-3,
        *,
        importance: Any = "ndcg",
        loss: str = "hinge",
        sampling: str = "queries",
        truncate_every: int = 1000,
        ceiling: float = np.inf,
        n_steps: int = 100_000,
        epochs: int = 1,
        learning_rate: str = "optimal",
        eta0: float | None = None,
        power_t: float = 0.5,
        random_state: Any = 0,
        measure: str = "ndcg@10",
        convention: str = "standard",
        patience: int | None = None,
        warm_start: bool = False,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.alpha = alpha
        self.importance = importance
        self.loss = loss
        self.sampling = sampling
        self.truncate_every = truncate_every
        self.ceiling = ceiling
        self.n_steps = n_steps
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.eta0 = eta0
        self.power_t = power_t
        self.random_state = random_state
        self.measure = measure
        self.convention = convention
        self.patience = patience
        self.warm_start = warm_start
        self.verbose = verbose
        self.callback = callback

    def _block(self, data: RankingData, labels: Labels) -> PairBlock:
        return make_pair_block(data.X, labels, over=self.sampling, importance=self.importance)

    def _rule(self, block: PairBlock) -> PairRule:
        check_choice("learning_rate", self.learning_rate, ("optimal", "invscaling", "constant"))
        refuse_idle_rates(self)
        ceiling = self.ceiling
        return PairRule(
            loss=pair_loss_code(self.loss),
            schedule=schedule_code(self.learning_rate),
            eta0=chosen_rate(self.eta0, block, self.loss),
            power=check_number("power_t", self.power_t),
            l1=check_number("alpha", self.alpha),
            every=check_whole("truncate_every", self.truncate_every),
            ceiling=np.inf if ceiling == np.inf else check_number("ceiling", ceiling),
        )
