"""The course of a run: its history, the best model so far, when to stop."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from leanrank.errors import InputError


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
        self.patience = patience
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
