"""Validation data beside the training data, and the history of a run that they may stop."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from leanrank.data.dask.collections import is_dask
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.rankers.cluster import ClusterData, held_out_on_cluster
from leanrank.rankers.inputs import check_whole, validated_matrix


def as_data(given: Any, name: str = "validation") -> RankingData | None:
    """Return data given as a RankingData, a data frame or a tuple (X, y, qid); None stays None.

    >>> as_data(([[1.0], [2.0]], [0, 1], None)).n_queries
    1
    """
    if given is None or isinstance(given, RankingData):
        return given
    if hasattr(given, "__arrow_c_stream__"):
        from leanrank.data.tables.frames import frame_data

        return frame_data(given)
    return RankingData(*_parts(given, name))


def held_out_data(ranker: Any, validation: Any) -> RankingData | None:
    """Take validation data for a ranker that knows its features, and check that they are the same.

    Examples
    --------
    >>> from leanrank import MinBatSRank
    >>> ranker = MinBatSRank().fit([[1.0, 0.0], [0.0, 1.0]], [1, 0])
    >>> held_out_data(ranker, ([[1.0]], [1], None))
    Traceback (most recent call last):
    leanrank.errors.InputError: validation: X has 1 features, but MinBatSRank is expecting 2 ...
    """
    if validation is None:
        return None
    on_dask = isinstance(validation, tuple) and len(validation) == 3 and is_dask(validation[0])
    if on_dask or isinstance(validation, ClusterData):
        return held_out_on_cluster(ranker, validation)  # type: ignore[return-value]
    try:
        if isinstance(validation, RankingData):
            ranker.checked_features(validation)
            return validation
        X, y, qid = _parts(validation, "validation")
        return RankingData(validated_matrix(ranker, X, reset=False), y, qid)
    except ValueError as error:
        text = " ".join(str(error).split())
        prefix = "" if text.startswith("validation ") else "validation: "
        raise InputError(f"{prefix}{text}") from error


class BestSoFar:
    """The best model of a run by a measure, and when to stop waiting for a better one.

    Parameters
    ----------
    measure : str
    patience : int, optional
        Passes or rounds without a better one after which to stop.

    Attributes
    ----------
    at : int
        The pass or round of the best model; 0 while there is none.
    model : object
        The best model; None while there is none.

    Examples
    --------
    >>> best = BestSoFar("ndcg@10", patience=2)
    >>> [best.update(at, value, at) for at, value in enumerate([0.1, 0.5, 0.4, 0.3], 1)]
    [False, False, False, True]
    >>> best.at, best.model
    (2, 2)
    """

    def __init__(self, measure: str, patience: int | None) -> None:
        from leanrank.metrics.judge import better_sign

        self.measure = measure
        self.patience = None if patience is None else check_whole("patience", patience)
        self.sign = better_sign(measure)
        self.quality = -np.inf
        self.at = 0
        self.model: Any = None

    def update(self, at: int, value: float, model: Any) -> bool:
        """Take in the measure of pass ``at``, with None for an empty model; return when to stop."""
        if np.isnan(value):
            raise InputError(
                f"{self.measure} is not defined on any query of the validation data: choose "
                "another measure, or other data"
            )
        if model is not None and self.sign * value > self.quality:
            self.quality, self.at, self.model = self.sign * value, at, model
        # a threshold that suits the whole run may let no feature in for a while
        return self.patience is not None and self.at > 0 and at - self.at >= self.patience


def start_watching(ranker: Any, *, validated: bool) -> BestSoFar:
    """Check the measure and the patience of a run before it begins.

    >>> from leanrank import SPD
    >>> start_watching(SPD(patience=3), validated=False)
    Traceback (most recent call last):
    leanrank.errors.InputError: SPD: patience has no effect without validation data: ...
    """
    check_measure(ranker)
    best = BestSoFar(ranker.measure, ranker.patience)
    if best.patience is not None and not (validated or getattr(ranker, "stops_by_training", False)):
        raise InputError(
            f"{type(ranker).__name__}: patience has no effect without validation data: give "
            "validation to fit, or leave it out"
        )
    return best


def record(ranker: Any, entry: dict[str, Any]) -> None:
    """Append an entry to ``history_`` and report it."""
    ranker.history_.append(entry)
    report(ranker, entry)


def report(ranker: Any, entry: dict[str, Any]) -> None:
    """Print an entry if ``verbose``, and call ``callback`` with it."""
    if ranker.verbose:
        texts = (f"{k} {v:.6g}" if isinstance(v, float) else f"{k} {v}" for k, v in entry.items())
        print(f"[{type(ranker).__name__}] {'  '.join(texts)}", file=sys.stderr)
    if ranker.callback is not None:
        ranker.callback(entry)


def check_measure(ranker: Any) -> None:
    """Find a misspelt measure or convention before the work, not after it."""
    from leanrank.metrics import evaluate

    evaluate(
        [1, 0], [1, 0], doc_ids=["a", "b"], measures=[ranker.measure], convention=ranker.convention
    )


def _parts(given: Any, name: str) -> tuple[Any, Any, Any]:
    if isinstance(given, (tuple, list)) and len(given) == 3:
        return given[0], given[1], given[2]
    raise InputError(
        f"{name} must be a RankingData, a data frame or a tuple (X, y, qid), not "
        f"{type(given).__name__}"
    )
