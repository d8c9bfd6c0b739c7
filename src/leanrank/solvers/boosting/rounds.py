"""Boosting of features above thresholds: each round takes the cut that lowers a loss fastest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import FloatArray
from leanrank.execution import Executor, add_up, query_ranges
from leanrank.losses.base import Loss, Plan
from leanrank.solvers.boosting.threshold_columns import Cut, ThresholdColumns

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
    cut : Cut
    value : float
        Its weight α.
    loss : float
        The loss of all weak rankers so far, this one included.
    """

    cut: Cut
    value: float
    loss: float


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
    evaluate = _evaluator(loss, plan, executor)
    value, gradient = evaluate(scores)
    enough = LEAST_LOSS * value
    for _ in range(n_rounds):
        if not value > enough:
            return
        cut = columns.best(gradient / -value)
        if cut is None or abs(cut.agreement) <= LEAST_AGREEMENT:
            return
        weight = boosting_weight(cut.agreement)
        columns.add(cut, weight, scores)
        value, gradient = evaluate(scores)
        yield Round(cut, weight, value)
        if abs(cut.agreement) >= MOST_AGREEMENT:
            return


def boosting_weight(agreement: float) -> float:
    """Return α = ½ ln((1 + r)/(1 − r)), r held away from ±1.

    >>> round(boosting_weight(0.5), 4), round(boosting_weight(-1.0), 1)
    (0.5493, -10.7)
    """
    return float(np.arctanh(np.clip(agreement, -MOST_AGREEMENT, MOST_AGREEMENT)))


def _evaluator(
    loss: Loss[Any], plan: Plan, executor: Executor
) -> Callable[[FloatArray], tuple[float, FloatArray]]:
    ranges = query_ranges(plan.query_ptr)
    gradient = np.zeros(plan.n_rows)

    def evaluate(scores: FloatArray) -> tuple[float, FloatArray]:
        parts = executor.map(lambda r: loss.evaluate(plan, r[0], r[1], scores, gradient), ranges)
        return float(add_up(parts)), gradient

    return evaluate
