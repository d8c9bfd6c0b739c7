"""Boosting of single features by a measure of each query's ranking."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from leanrank._typing import BoolArray, FloatArray
from leanrank.errors import check_choice
from leanrank.solvers.boosting._coded_column import TIED
from leanrank.solvers.boosting.rounds import boosting_weight

REPEATS = ("progress", "always", "never")


class MeasureRound(NamedTuple):
    """One weak ranker.

    Attributes
    ----------
    weak : int
        Its row in the table.
    value : float
        Its weight α.
    quality : float
        The mean over queries of the measure of all weak rankers so far, this one included.
    """

    weak: int
    value: float
    quality: float


def boost_measure(
    table: FloatArray,
    combined: Callable[[int, float], FloatArray],
    query_weight: FloatArray,
    n_rounds: int,
    repeats: str = "progress",
) -> Iterator[MeasureRound]:
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
    check_choice("repeats", repeats, REPEATS)
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
        yield MeasureRound(weak, value, mean)
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
