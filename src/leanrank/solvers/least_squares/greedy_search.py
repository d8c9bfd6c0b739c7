"""Forward selection with feature costs."""

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
    """What may be chosen, and how gains are compared.

    Attributes
    ----------
    n_features : int
    n_candidates : int or None
        Candidates to draw at random per step; None: all.
    costs : array or None
        Compare gains per unit of cost.
    budget : float
        Largest total cost of the chosen features.
    random : Generator
        For the candidates.
    """

    n_features: int
    n_candidates: int | None = None
    costs: FloatArray | None = None
    budget: float = np.inf
    random: np.random.Generator = field(default_factory=lambda: np.random.default_rng(0))

    def candidates(self, chosen: list[int]) -> IntArray:
        """List the features that may come next."""
        open_ = np.ones(self.n_features, dtype=bool)
        open_[chosen] = False
        if self.costs is not None:
            left = self.budget - float(self.costs[chosen].sum())
            # costs that were added up in another order may differ in the last digits
            open_ &= self.costs <= left * (1 + 1e-12) + 1e-300
        found = np.flatnonzero(open_)
        if self.n_candidates is not None and self.n_candidates < len(found):
            found = np.sort(self.random.choice(found, self.n_candidates, replace=False))
        return found

    def best(self, candidates: IntArray, gains: FloatArray) -> int:
        """Return the feature with the largest gain (per cost), the first among equals."""
        values = gains
        if self.costs is not None:
            cost = self.costs[candidates]
            # a higher cost must not improve a negative gain
            values = np.where(gains > 0, gains / np.where(cost > 0, cost, 1e-300), gains * cost)
        known = np.where(np.isnan(values), -np.inf, values)  # an overflow is no gain
        return int(candidates[int(np.argmax(known))])


Record = Callable[[FloatArray], FloatArray]


def forward(state: GreedyState, n_steps: int, choice: Choice, record: Record) -> list[Subset]:
    """Add the best feature until there are enough, or none may be added."""
    subsets: list[Subset] = []
    while len(state.chosen) < n_steps:
        candidates = choice.candidates(state.chosen)
        if len(candidates) == 0:
            break
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
