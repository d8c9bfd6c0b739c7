"""Boosted rankers: one weak ranker per round, stopped early by held-out queries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leanrank._typing import FloatArray, Matrix
from leanrank.data.ranking_data import RankingData, column_values
from leanrank.errors import InputError
from leanrank.execution import make_executor
from leanrank.losses.base import Labels
from leanrank.losses.exponential import ExponentialLoss
from leanrank.model import Model
from leanrank.model.terms import sum_of_weak_rankers
from leanrank.rankers.base import BaseRanker
from leanrank.rankers.parameters import BestSoFar, Rounds, record
from leanrank.rankers.path import BaseLinearRanker
from leanrank.solvers.boosting.rounds import boost, boost_measure
from leanrank.solvers.boosting.single_features import SingleFeatures
from leanrank.solvers.boosting.threshold_columns import ThresholdColumns, cut_values


def _columns_and_scores(held_out: RankingData | None) -> tuple[Any, FloatArray]:
    """Return held-out features for reading by column, and scores that grow round by round."""
    if held_out is None:
        return None, np.zeros(0)
    return held_out.X.tocsc() if held_out.is_sparse else held_out.X, np.zeros(len(held_out))


@dataclass(eq=False, repr=False)
class AdaRank(Rounds, BaseLinearRanker):
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
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import AdaRank
    >>> data = make_ranking(n_queries=40, n_features=10, n_informative=3, random_state=0)
    >>> ranker = AdaRank(measure="ndcg@10", signs=0).fit(data.X, data.y, qid=data.qid)
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.7)
    True
    """

    _stops_by_training: ClassVar[bool] = True  # patience works without validation data

    n_rounds: int = 200
    _: KW_ONLY
    measure: str = "map"
    signs: Any = 1
    repeats: str = "progress"
    n_jobs: int | None = None

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        best, self.history_ = BestSoFar(self, held_out), []
        columns_held_out, scores = _columns_and_scores(held_out)
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
                scores += step * column_values(columns_held_out, feature).astype(np.float64)
                judged = entry["validation"] = best.measured(scores)
            record(self, entry)
            if best.update(count, judged, coef.copy()):
                break
        self.coef_ = np.zeros(data.n_features) if best.model is None else best.model
        self.n_iter_ = best.at


class WeakRanker(NamedTuple):
    """Adds ``value`` to the score of a document whose feature is above the threshold.

    To a document without the feature (NaN) it is added if ``missing`` is 1. A threshold of −inf
    is below every value.
    """

    feature: int
    threshold: float
    missing: int
    value: float


@dataclass(eq=False, repr=False)
class RankBoost(Rounds, BaseRanker):
    """RankBoost (Freund, Iyer, Schapire & Singer 2003) with weak rankers "feature above threshold".

    Each round takes, of all features and thresholds, the weak ranker that agrees best with the
    pairs still in the wrong order, and lowers the pairwise exponential loss. Features may be
    missing (NaN): every weak ranker decides on which side such documents are.

    Parameters
    ----------
    n_rounds : int, default=300
        Most rounds; each adds one step of one feature.
    n_thresholds : int, optional
        Most thresholds per feature, near equally spaced quantiles; by default one between any two
        values of the training data, or 254 among more than 65,536 documents with many values.
    importance : None, "ndcg" or array of shape (levels, levels), default=None
        Weight of a pair by its levels, lowest first, the winner's in rows; "ndcg": by how much
        swapping the levels changes NDCG.
    normalize : {"query", "term", "none"}, default="query"
        "query": every query weighs the same; "term" and "none": every pair does, as published.
    measure, convention : str, default="ndcg@10", "standard"
        Measure that selects the best round on validation data.
    patience : int, optional
        Rounds without improvement after which to stop; needs validation data.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int, default=0
        1 prints a line of progress per step.
    callback : callable, optional
        Called with each entry of the history.

    Attributes
    ----------
    weak_rankers_ : list of WeakRanker
        In the order of the rounds; a feature and threshold may occur again.
    feature_importances_ : array of shape (n_features,)
        The magnitudes of the values of each feature's weak rankers, added up.
    objective_ : float
        The loss of the model on the training data; it was 1 before the first round unless
        ``normalize`` is "none".
    n_iter_ : int
        Rounds whose weak rankers are in the model.
    history_ : list of dict
        Round, feature, threshold, missing, value, agreement and loss of every round that was run;
        with validation data, their measure.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import RankBoost
    >>> data = make_ranking(n_queries=40, n_features=10, n_informative=3, random_state=0)
    >>> ranker = RankBoost(n_rounds=50).fit(data.X, data.y, qid=data.qid)
    >>> int(ranker.feature_importances_.argmax()) == ranker.weak_rankers_[0].feature
    True
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.8)
    True
    """

    _takes_preferences: ClassVar[bool] = True
    _learned: ClassVar[str] = "weak_rankers_"

    n_rounds: int = 300
    _: KW_ONLY
    n_thresholds: int | None = None
    importance: Any = None
    normalize: str = "query"
    n_jobs: int | None = None

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        best = BestSoFar(self, held_out)
        self.history_: list[dict[str, Any]] = []
        columns_held_out, scores = _columns_and_scores(held_out)
        executor = make_executor(self.n_jobs)
        loss = ExponentialLoss(self.importance)
        plan = loss.prepare(labels)
        counted = _counted(data, plan.scale)
        columns = ThresholdColumns(data.X, self.n_thresholds, executor, counted)
        found: list[WeakRanker] = []
        for cut, value, objective in boost(columns, loss, plan, executor, self.n_rounds):
            found.append(WeakRanker(cut.feature, cut.threshold, cut.missing, value))
            entry: dict[str, Any] = {
                "round": len(found),
                **found[-1]._asdict(),
                "agreement": abs(cut.agreement),
                "loss": objective,
            }
            if held_out is not None:
                scores[cut_values(cut, column_values(columns_held_out, cut.feature))] += value
                entry[self.measure] = best.measured(scores)
            record(self, entry)
            if held_out is not None and best.update(len(found), entry[self.measure], found):
                break
        self.n_iter_ = len(found) if held_out is None else best.at
        self.weak_rankers_ = found[: self.n_iter_]
        self.objective_ = float(self.history_[self.n_iter_ - 1]["loss"]) if found else np.nan
        curves = sum_of_weak_rankers(self.weak_rankers_)
        self._model = Model(self.n_features_in_, curves, self._names())
        features = np.array([one.feature for one in self.weak_rankers_], dtype=np.int64)
        sizes = np.abs([one.value for one in self.weak_rankers_])
        importances = np.bincount(features, sizes, self.n_features_in_)
        self.feature_importances_ = importances.astype(np.float64, copy=False)

    @property
    def _takes_nan(self) -> bool:
        return True  # thresholds move with the values

    def _scores(self, X: Matrix) -> FloatArray:
        return self._model.predict(X)

    @property
    def n_features_(self) -> int:
        """How many features the model uses."""
        check_is_fitted(self, "weak_rankers_")
        return int(self._model.n_nonzero)

    def to_model(self, *, provenance: Mapping[str, Any] | None = None) -> Model:
        """Return the weak rankers as a plain model, which can be saved, sent and exported."""
        check_is_fitted(self, "weak_rankers_")
        return self._model.replace(provenance={**self._provenance(), **(provenance or {})})


def _counted(data: RankingData, scale: FloatArray) -> FloatArray | None:
    """Return each document's weight, 0 in a query that does not take part; None if all are 1."""
    if data.sample_weight is None and (scale > 0).all():
        return None
    taking_part = np.repeat(scale > 0, np.diff(data.query_ptr))
    weight = 1.0 if data.sample_weight is None else data.sample_weight
    return np.where(taking_part, weight, 0.0)
