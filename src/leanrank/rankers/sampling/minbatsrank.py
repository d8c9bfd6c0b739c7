"""MinBatSRank: a sparse ranker that learns from one query at a time."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from leanrank._typing import IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.rankers.parameters import CONSTRAINTS, POSITIVE, Constraints, Uses
from leanrank.rankers.sampling.stochastic import StochasticRanker
from leanrank.solvers.sampling.ftrl import (
    FTRLRule,
    FTRLState,
    QueryBatches,
    ftrl_pass,
    make_batches,
)


@dataclass(eq=False, repr=False)
class MinBatSRank(StochasticRanker):
    """Mini-batch stochastic sparse ranking (Cheng et al. 2018): FTRL over batches of one query.

    Each query in turn moves the weights by the gradient of its loss; a soft threshold on the
    accumulated gradients keeps most of them exactly zero. A step costs the batch's non-zeros.

    Parameters
    ----------
    alpha : float, default=0.1
        Strength of the ℓ1 penalty, as a share of ``alpha_max`` unless ``relative`` is False.
    eta0 : float, default=1.0
        γ of the paper, the size of the rates: γ/√(ρ + Σ g²) by feature.
    rho : float, default=1.0
        Keeps the first rates small.
    loss : str, default="squared-hinge"
        "squared-hinge" as published, "hinge", "logistic", "domination", "listnet", ...: the last
        two make it a sparse stochastic listwise ranker.
    rates : {"feature", "uniform"}, default="feature"
        One rate per feature, or γ/√t for all (the paper's Nonfea).
    l1 : {"total", "per_step"}, default="total"
        Whether alpha applies to the whole run, as published, or to each step. Only "per_step"
        converges to the optimum of mean loss + alpha·‖w‖₁; the effect of "total" fades with the
        length of the run.
    relative : bool, default=True
        Whether alpha is a share of ``alpha_max``. In a stream that is the first block's, so give an
        absolute alpha there.
    epochs : int, default=10
        Passes over the queries.
    batch_pairs : int, optional
        Pairs to draw per query and step; by default all count, without being listed.
    normalize : {"query", "none"}, default="query"
        Whether a query's loss is the mean over its pairs or, as published, their sum.
    shuffle : bool, default=True
        Whether each pass has a new order of the queries.
    random_state : int, RandomState or None, default=0
    measure, convention : str, default="ndcg@10", "standard"
        Measure that selects the best pass on validation data.
    patience : int, optional
        Passes without improvement after which to stop; needs validation data.
    warm_start : bool, default=False
        Continue from the state of the last fit, with the same parameters of the steps.
    verbose : int, default=0
        1 prints a line of progress per step.
    callback : callable, optional
        Called with each entry of the history.

    Attributes
    ----------
    alpha_ : float
        The absolute strength.

    Examples
    --------
    >>> from leanrank import MinBatSRank, make_ranking
    >>> data = make_ranking(n_queries=60, n_features=30, n_informative=4, random_state=0)
    >>> ranker = MinBatSRank(alpha=0.2).fit(data.X, data.y, qid=data.qid)
    >>> bool(0 < (ranker.coef_ != 0).sum() < 15)
    True
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.7)
    True
    """

    state_type: ClassVar[type] = FTRLState
    _takes_preferences: ClassVar[bool] = True  # a loss that is not pairwise refuses them itself

    alpha: float = 0.1
    _: KW_ONLY
    eta0: float = 1.0
    rho: float = 1.0
    loss: str = "squared-hinge"
    rates: str = "feature"
    l1: str = "total"
    relative: bool = True
    epochs: int = 10
    batch_pairs: int | None = None
    normalize: str = "query"
    shuffle: bool = True

    parameter_constraints: ClassVar[Constraints] = {**CONSTRAINTS, "eta0": [POSITIVE]}
    used_with: ClassVar[Uses] = {"rho": ("rates", ("feature",))}

    def alpha_max(self, X: Any, y: Any = None, qid: Any = None, **options: Any) -> float:
        """Return the alpha at which hardly any feature enters; takes what ``fit`` takes.

        It is the largest sum of a feature's gradients at zero weights: over all steps of the run,
        or with ``l1="per_step"`` their mean, which is the alpha_max of the batch problem.
        """
        data, labels = clone(self)._data_and_labels(X, y, qid, **options)
        block = self._block(data, labels)
        return self._scale(block, self.epochs)

    def _block(self, data: RankingData, labels: Labels) -> QueryBatches:
        return make_batches(data.X, labels, get_loss(self.loss), self.batch_pairs)

    def _begin(self, block: QueryBatches, n_features: int, seed: int, n_passes: int) -> FTRLState:
        alpha, uniform, per_step = float(self.alpha), self.rates == "uniform", self.l1 == "per_step"
        self.alpha_ = alpha * self._scale(block, n_passes) if self.relative else alpha
        rule = FTRLRule(self.alpha_, float(self.eta0), float(self.rho), uniform, per_step)
        return FTRLState.start(rule, n_features, seed)

    def _pass(self, state: FTRLState, block: QueryBatches, order: IntArray) -> float:
        return ftrl_pass(state, block, order)

    def _scale(self, block: QueryBatches, n_passes: int) -> float:
        gradient = block.gradient_at_zero()
        steps = 1.0 / max(1, len(block.active)) if self.l1 == "per_step" else n_passes
        return float(np.abs(gradient).max(initial=0.0)) * steps
