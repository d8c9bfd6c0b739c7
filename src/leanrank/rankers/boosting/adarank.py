"""AdaRank: a sum of single features, boosted by a ranking measure."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import Callback
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.rankers.boosting.boosted import BoostedRanker, HeldOut
from leanrank.rankers.linear import BaseLinearRanker
from leanrank.rankers.validation import BestSoFar, record
from leanrank.solvers.boosting.rounds import boost_measure
from leanrank.solvers.boosting.single_features import SingleFeatures


@dataclass(eq=False, repr=False)
class AdaRank(BoostedRanker, BaseLinearRanker):
    """AdaRank (Xu & Li 2007): boosting by a measure of each query's ranking.

    A weak ranker is one feature used as the score. Each round takes the one with the best measure
    over the queries, weighted towards those that the rounds before rank badly. The sum is a linear
    function of the features, so their scale matters: bring them to one first, as the public sets
    are (``QueryMinMax``, say).

    Parameters
    ----------
    n_rounds : int, default=200
        Most rounds; each adds one feature.
    measure : str, default="map"
        Measure to maximise: "map", "ndcg@5", "mrr" or any other measure within [−1, 1].
    convention : str, default="standard"
        How it is computed. A single feature gives many documents equal scores: "standard" averages
        over their orders; the LETOR conventions take the order of the file.
    signs : array-like, dict by feature or int, default=1
        One of −1, 0, 1 per feature, or one for all: 1 uses features as they are, as published; −1
        negated; 0 both.
    repeats : {"progress", "always", "never"}, default="progress"
        When a feature may be chosen again. The weights of the queries change little, so that the
        feature which is best on average tends to be chosen repeatedly without effect. "progress":
        a feature that did not raise the best measure so far is set aside until another one does;
        when all are, the run ends. "always": as published. "never": each feature is chosen once.
    patience : int, optional
        Rounds without improvement after which to stop; by default all rounds are run.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int, default=0
        1 prints a line of progress per step.
    callback : callable, optional
        Called with each entry of the history.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        The weights of each feature's weak rankers, added up.
    n_iter_ : int
        Rounds in the model: those up to the best one, by the measure on validation data or, without
        them, on the training data.
    history_ : list of dict
        Round, feature, value and the measure on the training data; with validation data,
        theirs as "validation".

    Examples
    --------
    >>> from leanrank import AdaRank, make_ranking
    >>> data = make_ranking(n_queries=40, n_features=10, n_informative=3, random_state=0)
    >>> ranker = AdaRank(measure="ndcg@10", signs=0).fit(data.X, data.y, qid=data.qid)
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.7)
    True
    """

    stops_by_training: ClassVar[bool] = True

    n_rounds: int = 200
    _: KW_ONLY
    measure: str = "map"
    convention: str = "standard"
    signs: Any = 1
    repeats: str = "progress"
    patience: int | None = None
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callback | None = None

    def _boost(
        self, data: RankingData, labels: Labels, held_out: HeldOut | None, best: BestSoFar
    ) -> None:
        for name in ("gain_weight", "offset"):
            if getattr(labels, name) is not None:
                raise InputError(
                    f"AdaRank measures whole rankings, so {name} has no effect: leave it out"
                )
        signs = self._by_feature("signs", data.n_features, 1.0)
        weak = SingleFeatures(data, self.measure, self.convention, signs, self.n_jobs)
        coef = np.zeros(data.n_features)
        rounds = boost_measure(weak.table, weak.add, weak.query_weight, self.n_rounds, self.repeats)
        for count, (chosen, value, quality) in enumerate(rounds, start=1):
            feature, step = int(weak.features[chosen]), float(value * weak.signs[chosen])
            coef[feature] += step
            entry: dict[str, Any] = {"round": count, "feature": feature, "value": step}
            entry[self.measure] = quality
            judged = best.sign * quality
            if held_out is not None:
                held_out.scores += step * held_out.column(feature).astype(np.float64)
                judged = entry["validation"] = held_out.measured()
            record(self, entry)
            if best.update(count, judged, coef.copy()):
                break
        self.coef_ = np.zeros(data.n_features) if best.model is None else best.model
        self.n_iter_ = best.at

    def _remedy_if_empty(self, data: RankingData, labels: Labels) -> str:
        del data, labels
        return f"no feature ranks with {self.measure} above 0"
