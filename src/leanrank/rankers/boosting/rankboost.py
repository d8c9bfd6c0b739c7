"""RankBoost: a sum of weak rankers, each a feature above a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leanrank._typing import Callback, FloatArray
from leanrank.data.dask.collections import is_dask
from leanrank.data.ranking_data import RankingData
from leanrank.errors import warn
from leanrank.execution import make_executor
from leanrank.losses.base import Labels
from leanrank.losses.exponential import ExponentialLoss
from leanrank.rankers.boosting.boosted import BoostedRanker, HeldOut
from leanrank.rankers.cluster import lazy_predict
from leanrank.rankers.inputs import check_whole
from leanrank.rankers.validation import BestSoFar, record
from leanrank.solvers.boosting.rounds import boost
from leanrank.solvers.boosting.threshold_columns import ThresholdColumns, cut_values

if TYPE_CHECKING:
    from leanrank.model import Model


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
class RankBoost(BoostedRanker):
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
        values of the training data.
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
    >>> from leanrank import RankBoost, make_ranking
    >>> data = make_ranking(n_queries=40, n_features=10, n_informative=3, random_state=0)
    >>> ranker = RankBoost(n_rounds=50).fit(data.X, data.y, qid=data.qid)
    >>> int(ranker.feature_importances_.argmax()) == ranker.weak_rankers_[0].feature
    True
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.8)
    True
    """

    _takes_preferences: ClassVar[bool] = True

    n_rounds: int = 300
    _: KW_ONLY
    n_thresholds: int | None = None
    importance: Any = None
    normalize: str = "query"
    measure: str = "ndcg@10"
    convention: str = "standard"
    patience: int | None = None
    n_jobs: int | None = None
    verbose: int = 0
    callback: Callback | None = None

    def _boost(
        self, data: RankingData, labels: Labels, held_out: HeldOut | None, best: BestSoFar
    ) -> None:
        if self.n_thresholds is not None:
            check_whole("n_thresholds", self.n_thresholds)
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
                held_out.scores[cut_values(cut, held_out.column(cut.feature))] += value
                entry[self.measure] = held_out.measured()
            record(self, entry)
            if held_out is not None and best.update(len(found), entry[self.measure], found):
                break
        self.n_iter_ = len(found) if held_out is None else best.at
        self.weak_rankers_ = found[: self.n_iter_]
        self.objective_ = float(self.history_[self.n_iter_ - 1]["loss"]) if found else np.nan
        self._model = self._sum_of(self.weak_rankers_, {})
        features = np.array([one.feature for one in self.weak_rankers_], dtype=np.int64)
        sizes = np.abs([one.value for one in self.weak_rankers_])
        importances = np.bincount(features, sizes, self.n_features_in_)
        self.feature_importances_ = importances.astype(np.float64, copy=False)
        if not found:
            warn(
                "RankBoost learned a model without features: no feature differs within a query "
                "between documents of different levels, so every score is 0"
            )

    @property
    def takes_nan(self) -> bool:
        return True  # thresholds move with the values

    def predict(self, X: Any) -> FloatArray:
        """Score documents, in the order given; a higher score ranks first.

        Only the columns of features in use are read; NaN is a missing value.
        """
        check_is_fitted(self, "weak_rankers_")
        if is_dask(X):
            return lazy_predict(self, X)
        return self._model.predict(self.checked_features(X))

    @property
    def sparsity_(self) -> float:
        """Share of the features that the model uses."""
        check_is_fitted(self, "weak_rankers_")
        return self._model.sparsity

    def to_model(self, *, provenance: Mapping[str, Any] | None = None) -> Model:
        """Return the weak rankers as a plain model, which can be saved, sent and exported."""
        check_is_fitted(self, "weak_rankers_")
        return self._sum_of(self.weak_rankers_, {**self._provenance(), **(provenance or {})})

    def _sum_of(self, weak: list[WeakRanker], provenance: Mapping[str, Any]) -> Model:
        from leanrank.model import Model
        from leanrank.model.curves import sum_of_weak_rankers

        curves = sum_of_weak_rankers(
            (one.feature, one.threshold, one.missing, one.value) for one in weak
        )
        return Model(self.n_features_in_, curves, self._names(), provenance=provenance)


def _counted(data: RankingData, scale: FloatArray) -> FloatArray | None:
    """Return each document's weight, 0 in a query that does not take part; None if all are 1."""
    if data.sample_weight is None and (scale > 0).all():
        return None
    taking_part = np.repeat(scale > 0, np.diff(data.query_ptr))
    weight = np.ones(len(data)) if data.sample_weight is None else data.sample_weight
    return np.where(taking_part, weight, 0.0)
