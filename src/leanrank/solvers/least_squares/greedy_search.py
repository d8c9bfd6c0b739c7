"""Forward selection."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.errors import InputError, overflow
from leanrank.solvers.least_squares.centred import Centred
from leanrank.solvers.least_squares.greedy import GreedyState


@dataclass(frozen=True)
class Subset:
    """Some features in order of choice, and what is known of their model.

    Attributes
    ----------
    features : array of int64
    criterion : float
        The leave-query-out squared error, Eq. 7 of the paper.
    by_query : array
        What ``record`` returned for the leave-query-out residual.
    """

    features: IntArray
    criterion: float
    by_query: FloatArray


@dataclass
class Choice:
    """Which features are tried.

    Attributes
    ----------
    n_features : int
    n_candidates : int or None
        Candidates to draw at random per step; None: all.
    random : Generator
        For the candidates.
    """

    n_features: int
    n_candidates: int | None = None
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def candidates(self, chosen: list[int]) -> IntArray:
        """List the features that may come next."""
        open_ = np.ones(self.n_features, dtype=bool)
        open_[chosen] = False
        found = np.flatnonzero(open_)
        if self.n_candidates is not None and self.n_candidates < len(found):
            found = np.sort(self.random.choice(found, self.n_candidates, replace=False))
        return found

    def best(self, candidates: IntArray, gains: FloatArray) -> int:
        """Return the feature with the largest gain, the first among equals."""
        known = np.where(np.isnan(gains), -np.inf, gains)  # an overflow is no gain
        return int(candidates[int(np.argmax(known))])


Record = Callable[[FloatArray], FloatArray]


def forward(state: GreedyState, n_steps: int, choice: Choice, record: Record) -> list[Subset]:
    """Add the best feature until there are enough."""
    subsets: list[Subset] = []
    while len(state.chosen) < n_steps:
        candidates = choice.candidates(state.chosen)
        state.add(choice.best(candidates, state.decreases(candidates)))
        residual, chosen = state.residual, np.array(state.chosen, dtype=np.int64)
        criterion = float(residual @ residual)
        if not np.isfinite(criterion):
            raise InputError(overflow("the leave-query-out error"))
        subsets.append(Subset(chosen, criterion, record(residual)))
    return subsets


def nested_weights(centred: Centred, chosen: IntArray, alpha: float) -> list[FloatArray]:
    """Solve the ridge regressions on the first 1, 2, … of the chosen features.

    One QR of the regression with the penalty as further rows serves all: its leading triangles are
    those of the smaller subsets. No normal equations are formed, so a tiny alpha costs no digits.
    """
    from scipy.linalg.lapack import dgeqrf, dtrtrs

    k = len(chosen)
    triangle = np.hstack([np.sqrt(alpha) * np.eye(k), np.zeros((k, 1))])
    rows = np.vstack([centred.features(chosen), centred.target])
    block = max(4 * (k + 1), 65_536 // (k + 1))
    for at in range(0, centred.n_rows, block):
        stacked = np.vstack([triangle, rows[:, at : at + block].T])
        triangle = np.triu(dgeqrf(stacked)[0][: k + 1])
    return [
        np.asarray(dtrtrs(triangle[:size, :size], triangle[:size, k])[0])
        for size in range(1, k + 1)
    ]
