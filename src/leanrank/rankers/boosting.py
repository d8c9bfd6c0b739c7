"""Boosted rankers: one weak ranker per round, with early stopping on held-out queries."""

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
    """Return held-out features in column form, and their scores before the first round."""
    if held_out is None:
        return None, np.zeros(0)
    return held_out.X.tocsc() if held_out.is_sparse else held_out.X, np.zeros(len(held_out))


@dataclass(eq=False, repr=False)
class AdaRank(Rounds, BaseLinearRanker):
    """AdaRank (Xu & Li 2007): boosting by a measure of each query's ranking.

    A weak ranker is one feature used as the score. Each round adds the one with the best weighted
    mean of the measure over the queries; queries that are ranked badly so far weigh more. The sum
    is a linear function of the features, so bring them to one scale first, with ``QueryMinMax`` for
    example.

    Parameters
    ----------
    n_rounds : int, default=200
        Largest number of rounds; each adds one feature.
    measure : str, default="map"
        Measure to maximise: "map", "ndcg@5", "mrr" or any other measure within [−1, 1].
    convention : str, default="standard"
        Convention of the measure. A single feature gives many documents equal scores: "standard"
        averages over their orders; the LETOR conventions take the order of the file.
    signs : array-like, dict by feature or int, default=1
        One of −1, 0, 1 per feature, or one for all: 1 uses the feature itself, as published; −1 its
        negative; 0 either.
    repeats : {"progress", "always", "never"}, default="progress"
        When a feature may be chosen again. The weights of the queries change slowly, so the best
        feature on average may be chosen repeatedly without effect. "progress": a feature that did
        not raise the best measure so far is excluded until another one does; the fit ends when all
        are excluded. "always": as published. "never": each feature is chosen once.
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
        The sum of the weights of each feature's weak rankers.
    n_iter_ : int
        Rounds in the model: those up to the best one, by the measure on validation data or, without
        them, on the training data.
    history_ : list of dict
        One entry per round: round, feature, value and the measure on the training data; with
        validation data, their measure as "validation".

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
    """A weak ranker: adds ``value`` to the score of documents with a feature above the threshold.

    A missing value (NaN) counts as above if ``missing`` is 1. A threshold of −inf is below every
    value.
    """

    feature: int
    threshold: float
    missing: int
    value: float


@dataclass(eq=False, repr=False)
class RankBoost(Rounds, BaseRanker):
    """RankBoost (Freund, Iyer, Schapire & Singer 2003) with weak rankers "feature above threshold".

    Each round adds, of all features and thresholds, the weak ranker that agrees best with the pairs
    that are still in the wrong order, and so lowers the pairwise exponential loss. Features may be
    missing (NaN): every weak ranker has a side for such documents.

    Parameters
    ----------
    n_rounds : int, default=300
        Largest number of rounds; each adds one step of one feature.
    n_thresholds : int, optional
        Largest number of thresholds per feature, near equally spaced quantiles; by default one
        between any two values of the training data, or 254 with more than 65,536 documents.
    importance : None, "ndcg" or array of shape (levels, levels), default=None
        Weight of a pair by its two levels. "ndcg": the change of NDCG when two documents of these
        levels are swapped in the ideal ranking. An array: one row per level of the winner, lowest
        level first.
    normalize : {"query", "term", "none"}, default="query"
        "query": every query has the same weight. "term" and "none": every pair has, as published.
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
        The sum of |value| over each feature's weak rankers.
    objective_ : float
        The loss of the model on the training data; it is 1 before the first round unless
        ``normalize`` is "none".
    n_iter_ : int
        Rounds in the model.
    history_ : list of dict
        One entry per round, including those after the best: round, feature, threshold, missing,
        value, agreement and loss; with validation data, their measure.

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
        return True

    def _scores(self, X: Matrix) -> FloatArray:
        return self._model.predict(X)

    @property
    def n_features_(self) -> int:
        """Number of features in the model."""
        check_is_fitted(self, "weak_rankers_")
        return int(self._model.n_nonzero)

    def to_model(self, *, provenance: Mapping[str, Any] | None = None) -> Model:
        """Return the weak rankers as a plain model, which can be saved, sent and exported."""
        check_is_fitted(self, "weak_rankers_")
        return self._model.replace(provenance={**self._provenance(), **(provenance or {})})


def _counted(data: RankingData, scale: FloatArray) -> FloatArray | None:
    """Return each document's weight, 0 in queries that do not count; None if all weights are 1."""
    if data.sample_weight is None and (scale > 0).all():
        return None
    taking_part = np.repeat(scale > 0, np.diff(data.query_ptr))
    weight = 1.0 if data.sample_weight is None else data.sample_weight
    return np.where(taking_part, weight, 0.0)
