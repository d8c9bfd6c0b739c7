"""The base of boosted rankers: rounds, and early stopping on held-out queries."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from leanrank._typing import AnyArray, Callback, FloatArray
from leanrank.data.ranking_data import RankingData, column_values
from leanrank.losses.base import Labels
from leanrank.rankers.base import BaseRanker
from leanrank.rankers.inputs import check_whole
from leanrank.rankers.validation import BestSoFar, start_watching


class BoostedRanker(BaseRanker):
    """A ranker that adds one weak ranker per round.

    A subclass defines ``_boost(data, labels, held_out, best)``, which runs the rounds, records each
    in the history and sets the fitted attributes.

    Attributes
    ----------
    n_iter_ : int
        Rounds whose weak rankers are in the model.
    history_ : list of dict
        One entry per round that was run.
    """

    takes_validation: ClassVar[bool] = True
    stops_by_training: ClassVar[bool] = False  # whether patience works without validation data

    # the parameters that every subclass has
    n_rounds: int
    measure: str
    convention: str
    patience: int | None
    verbose: int
    callback: Callback | None

    n_iter_: int
    history_: list[dict[str, Any]]

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        check_whole("n_rounds", self.n_rounds)
        best = start_watching(self, validated=held_out is not None)
        self.history_ = []
        measured = None if held_out is None else HeldOut(held_out, self.measure, self.convention)
        self._boost(data, labels, measured, best)

    def _boost(
        self, data: RankingData, labels: Labels, held_out: HeldOut | None, best: BestSoFar
    ) -> None:
        raise AssertionError(f"{type(self).__name__} must define _boost")


class HeldOut:
    """Held-out queries whose scores grow round by round.

    Parameters
    ----------
    data : RankingData
    measure, convention : str
    """

    def __init__(self, data: RankingData, measure: str, convention: str) -> None:
        self.data = data
        self.measure = measure
        self.convention = convention
        self.X = data.X.tocsc() if data.is_sparse else data.X
        self.scores: FloatArray = np.zeros(len(data))

    def column(self, feature: int) -> AnyArray:
        """Return a feature of all documents."""
        return column_values(self.X, feature)

    def measured(self) -> float:
        """Measure the scores."""
        from leanrank.metrics.judge import Judge, mean_of

        judge = Judge(self.measure, self.convention)
        return mean_of(judge.per_query(self.data, self.scores)[self.measure])
