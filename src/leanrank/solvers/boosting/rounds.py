"""Rounds of boosting: RankBoost by the exponential loss, AdaRank by a measure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import BoolArray, FloatArray
from leanrank.execution import Executor, add_up, query_ranges
from leanrank.losses.base import Loss, Plan
from leanrank.solvers.boosting.threshold_columns import TIED, ThresholdColumns

LEAST_AGREEMENT = 1e-10
"""Smaller agreements are rounding: no weak ranker is better than chance."""

MOST_AGREEMENT = 1.0 - 1e-9
"""An agreement of 1 would ask for an infinite weight; this one gives about 10.7."""

LEAST_LOSS = 1e-200
"""Share of the loss at the start below which margins approach the limits of double precision."""


class Round(NamedTuple):
    """One weak ranker.

    Attributes
    ----------
    weak : Cut or int
        What it is: of ``boost_measure`` its row in the table.
    value : float
        Its weight α.
    result : float
        The loss of all weak rankers so far, this one included, or their mean measure.
    """

    weak: Any
    value: float
    result: float


def boost(
    columns: ThresholdColumns, loss: Loss[Any], plan: Plan, executor: Executor, n_rounds: int
) -> Iterator[Round]:
    """Add weak rankers one by one.

    With L the loss of the scores and g its gradient, the agreement of a weak ranker h ∈ {0, 1} is
    r = −Σ h_i g_i / L, and its weight α = ½ ln((1 + r)/(1 − r)). For a pairwise exponential loss r
    lies in [−1, 1], and the round multiplies L by √(1 − r²) at most.

    Ends after ``n_rounds``, or when no weak ranker agrees or one agrees with every pair, or when
    the loss has vanished.

    Parameters
    ----------
    columns : ThresholdColumns
    loss : Loss
    plan : Plan
    executor : Executor
    n_rounds : int
    """
    scores = np.zeros(plan.n_rows) if plan.offset is None else -plan.offset
    ranges, gradient = query_ranges(plan.query_ptr), np.zeros(plan.n_rows)

    def evaluate() -> float:
        parts = executor.map(lambda r: loss.evaluate(plan, r[0], r[1], scores, gradient), ranges)
        return float(add_up(parts))

    value = evaluate()
    enough = LEAST_LOSS * value
    for _ in range(n_rounds):
        if not value > enough:
            return
        cut = columns.best(gradient / -value)
        if cut is None or abs(cut.agreement) <= LEAST_AGREEMENT:
            return
        weight = boosting_weight(cut.agreement)
        columns.add(cut, weight, scores)
        value = evaluate()
        yield Round(cut, weight, value)
        if abs(cut.agreement) >= MOST_AGREEMENT:
            return


def boosting_weight(agreement: float) -> float:
    """Return α = ½ ln((1 + r)/(1 − r)), r held away from ±1.

    >>> round(boosting_weight(0.5), 4), round(boosting_weight(-1.0), 1)
    (0.5493, -10.7)
    """
    return float(np.arctanh(np.clip(agreement, -MOST_AGREEMENT, MOST_AGREEMENT)))


def boost_measure(
    table: FloatArray,
    combined: Callable[[int, float], FloatArray],
    query_weight: FloatArray,
    n_rounds: int,
    repeats: str = "progress",
) -> Iterator[Round]:
    """Add weak rankers one by one, each the best for the queries that are ranked worst so far.

    With P the distribution over queries, a round takes the weak ranker with the largest ΣP·E of its
    own measures E, weighs it by α = ½ ln(ΣP(1 + E)/ΣP(1 − E)), and sets P ∝ exp(−E) of the measures
    of the combined ranker.

    Ends after ``n_rounds``, when no weak ranker is left, or when every query is ranked perfectly.

    Parameters
    ----------
    table : array of shape (weak rankers, queries)
        The measure of each weak ranker on each query, within [−1, 1].
    combined : callable
        Called with a weak ranker and its weight; adds it to the combined ranker and returns the
        measure of the sum on each query.
    query_weight : array
    n_rounds : int
    repeats : {"progress", "always", "never"}
        When a weak ranker may be chosen again. P changes little, so that one which is best on
        average tends to be chosen repeatedly without effect. "progress": one that did not raise the
        best mean measure is set aside until another does. "always": as published. "never": each is
        chosen once at most.
    """
    share = query_weight / query_weight.sum()
    distribution = share
    best = -np.inf
    aside = np.zeros(len(table), dtype=bool)
    for _ in range(n_rounds):
        weak, quality = _best(table @ distribution, aside)
        if weak < 0:
            return
        value = boosting_weight(quality)  # ½ ln((1 + E)/(1 − E)): P sums to one
        measures = combined(weak, value)
        mean = float(share @ measures)
        yield Round(weak, value, mean)
        if np.all(measures >= 1.0):
            return
        progress = mean > best + TIED
        best = max(best, mean)
        if repeats == "never" or (repeats == "progress" and not progress):
            aside[weak] = True
        elif progress:
            aside[:] = False
        distribution = share * np.exp(-measures)
        distribution /= distribution.sum()


def _best(quality: FloatArray, aside: BoolArray) -> tuple[int, float]:
    """Return the best weak ranker not set aside, the first among equals; −1 if none is above 0."""
    usable = np.flatnonzero(~aside & (quality > 0.0))
    if len(usable) == 0:
        return -1, 0.0
    near = usable[quality[usable] >= quality[usable].max() - TIED]
    return int(near[0]), float(quality[near[0]])
