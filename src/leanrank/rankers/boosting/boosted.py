"""What boosted rankers share: rounds, and stopping by what is measured on held-out queries."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from leanrank._typing import AnyArray, FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import DataWarning, InputError
from leanrank.execution import single_threaded_blas
from leanrank.losses.base import Labels
from leanrank.rankers.base import BaseRanker
from leanrank.rankers.preferences import count_informative
from leanrank.rankers.sampling.stochastic import check_whole
from leanrank.rankers.validation import check_measure, held_out_data
from leanrank.solvers.boosting.threshold_columns import column_values

if TYPE_CHECKING:
    from typing import Self

Callback = Callable[[dict[str, Any]], None]


class BoostedRanker(BaseRanker):
    """A ranker that adds one weak ranker a round.

    A subclass defines ``_boost(data, labels, held_out)``, which runs the rounds, reports each by
    ``_report`` and sets the fitted attributes.

    Attributes
    ----------
    n_iter_ : int
        Rounds whose weak rankers are in the model.
    history_ : list of dict
        One entry a round that was run.
    """

    _stops_by_training: ClassVar[bool] = False  # whether patience works without validation data

    # the parameters that every subclass has
    n_rounds: int
    measure: str
    convention: str
    patience: int | None
    verbose: int
    callback: Callback | None

    n_iter_: int
    history_: list[dict[str, Any]]

    def fit(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        validation: Any = None,
        group: Any = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        gain_weight: Any = None,
        offset: Any = None,
        preferences: Any = None,
    ) -> Self:
        """Learn in at most ``n_rounds`` rounds.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight, gain_weight, offset, preferences
            As for every ranker.
        validation : RankingData or (X, y, qid), optional
            Where to measure the model after each round: the rounds up to the best one are kept, and
            after ``patience`` rounds without a better one the run stops.

        Returns
        -------
        self
        """
        check_whole("n_rounds", self.n_rounds)
        if self.patience is not None:
            check_whole("patience", self.patience)
        check_measure(self)
        data, labels = self._data_and_labels(
            X,
            y,
            qid,
            group=group,
            sample_weight=sample_weight,
            query_weight=query_weight,
            gain_weight=gain_weight,
            offset=offset,
            preferences=preferences,
        )
        given = held_out_data(self, validation)
        held_out = None if given is None else HeldOut(given, self.measure, self.convention)
        self.n_queries_ = data.n_queries
        self.n_informative_queries_ = count_informative(data, labels)
        self.history_ = []
        with single_threaded_blas():
            self._boost(data, labels, held_out)
        return self

    def _boost(self, data: RankingData, labels: Labels, held_out: HeldOut | None) -> None:
        raise AssertionError(f"{type(self).__name__} must define _boost")

    def _report(self, entry: dict[str, Any]) -> None:
        """Enter a round into the history, and show it if asked."""
        self.history_.append(entry)
        if self.verbose:
            texts = (
                f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in entry.items()
            )
            print(f"[{type(self).__name__}] {'  '.join(texts)}", file=sys.stderr)
        if self.callback is not None:
            self.callback(entry)


class HeldOut:
    """Held-out queries whose scores grow round by round, and the best round so far.

    Parameters
    ----------
    data : RankingData
    measure, convention : str
    """

    def __init__(self, data: RankingData, measure: str, convention: str) -> None:
        from leanrank.metrics import Measure

        self.data = data
        self.measure = measure
        self.convention = convention
        self.sign = 1.0 if Measure.parse(measure).higher_is_better else -1.0
        self.X = data.X.tocsc() if data.is_sparse else data.X
        self.scores: FloatArray = np.zeros(len(data))
        self.best_round = 0
        self.best_value = -np.inf
        self.round = 0

    def column(self, feature: int) -> AnyArray:
        """Give a feature of all documents."""
        return column_values(self.X, feature)

    def measured(self) -> float:
        """Measure the scores, and remember whether the round is the best so far."""
        from leanrank.metrics import evaluate

        self.round += 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # few weak rankers tie many documents
            found = evaluate(
                self.data, self.scores, measures=self.measure, convention=self.convention
            )
        value = float(found.means[self.measure])
        if np.isnan(value):
            raise InputError(
                f"{self.measure} is not defined on any query of the validation data: choose "
                "another measure, or other data"
            )
        if self.sign * value > self.best_value:
            self.best_value, self.best_round = self.sign * value, self.round
        return value

    def is_over(self, patience: int | None) -> bool:
        """Tell whether there was no better round for ``patience`` rounds."""
        return patience is not None and self.round - self.best_round >= patience
