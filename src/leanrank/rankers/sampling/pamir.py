"""PAMIR for documents that come with features of their query: an online linear ranker."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import ClassVar

from leanrank.data.ranking_data import RankingData
from leanrank.losses.base import Labels
from leanrank.rankers.base import check_number
from leanrank.rankers.sampling.sampled_pairs import SampledPairRanker
from leanrank.solvers.sampling.pair_descent import PairBlock, PairRule, make_pair_block


@dataclass(eq=False, repr=False)
class PAMIR(SampledPairRanker):
    """Passive-aggressive ranking (Grangier & Bengio 2008) in its linear, single-query form.

    Each step draws a query, a document of it and one of a lower level. If the first does not lead
    by 1, the weights make the smallest move that achieves it, limited by C: the minimiser of
    ½‖w − w₀‖² + C·max(0, 1 − w·(x⁺ − x⁻)). A step costs the features of the two.
    The form with text queries and pictures is ``PAMIRRetriever``.

    Parameters
    ----------
    C : float, default=0.01
        Aggressiveness: the largest step for one pair. Use less for noisy labels.
    sampling : {"queries", "pairs"}, default="queries"
        Every query is equally likely, and then its pairs are, as published; or every pair is.
    n_steps : int, default=100_000
        Pairs per pass.
    epochs : int, default=1
        Passes; the model is measured on validation data after each, and the best is kept.
    average : bool, default=False
        Whether the model is the average of the weights over about the later half of the steps,
        which depends less on the last pairs. Not in the paper.
    random_state : int, RandomState or None, default=0
        The same seed gives the same model, whatever the order of the rows.
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

    Examples
    --------
    >>> from leanrank import PAMIR, make_ranking
    >>> data = make_ranking(n_queries=60, n_features=10, random_state=0)
    >>> ranker = PAMIR(n_steps=20_000).fit(data.X, data.y, qid=data.qid)
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.7)
    True
    """

    _takes_preferences: ClassVar[bool] = True  # rejected when pairs are indexed

    C: float = 0.01
    _: KW_ONLY
    sampling: str = "queries"
    average: bool = False

    def _block(self, data: RankingData, labels: Labels) -> PairBlock:
        return make_pair_block(data.X, labels, over=self.sampling)

    def _rule(self, block: PairBlock) -> PairRule:
        del block
        return PairRule(
            loss="hinge", passive_aggressive=True, largest=check_number("C", self.C, open_low=True)
        )

    def _averages(self) -> bool:
        return bool(self.average)
