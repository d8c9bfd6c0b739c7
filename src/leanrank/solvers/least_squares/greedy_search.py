"""Which feature next: forward selection, feature costs, and floating search.

Every search yields, for each size, the best subset it has seen, the leave-query-out residual of
that subset, and so the criterion.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.solvers.least_squares.centred import Centred
from leanrank.solvers.least_squares.greedy import GreedyState

WORTH_A_DROP = 1e-10
"""Share of the criterion by which dropping a feature must win, so that rounding drops nothing."""


@dataclass(frozen=True)
class Subset:
    """Some features in order of choice, and what is known of their model.

    Attributes
    ----------
    features : array of int64
    criterion : float
        The leave-query-out squared error, Eq. 7 of the paper.
    by_query : array
        What ``record`` made of the leave-query-out residual.
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
        Draw as many candidates at random each step; None: all.
    costs : array or None
        Compare gains per unit of cost.
    budget : float
        What the chosen features may cost together.
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
        """Give the feature with the largest gain (per cost), the first among equals."""
        values = gains
        if self.costs is not None:
            cost = self.costs[candidates]
            # a loss is not made smaller by a high price
            values = np.where(gains > 0, gains / np.where(cost > 0, cost, 1e-300), gains * cost)
        return int(candidates[int(np.argmax(values))])


Record = Callable[[FloatArray], FloatArray]


def forward(state: GreedyState, n_steps: int, choice: Choice, record: Record) -> list[Subset]:
    """Add the best feature until there are enough, or none may be added."""
    subsets: list[Subset] = []
    while len(state.chosen) < n_steps:
        candidates = choice.candidates(state.chosen)
        if len(candidates) == 0:
            break
        state.add(choice.best(candidates, state.decreases(candidates)))
        subsets.append(_subset(state, record))
    return subsets


def floating(
    start: Callable[[], GreedyState],
    centred: Centred,
    alpha: float,
    n_steps: int,
    choice: Choice,
    record: Record,
) -> list[Subset]:
    """Forward selection that also drops features, as long as that beats every subset of that size.

    Plain forward selection is run as well, and the better subset of each size is kept: the result
    is nowhere worse. A drop costs O(kmn), as the state of the smaller subset is built anew; looking
    for one costs O(mk² + |Q|k³) a step.
    """
    best = forward(start(), n_steps, choice, record)
    seen: dict[
        int, float
    ] = {}  # by the floating run alone: it must be free to leave forward's path
    state = start()
    while len(state.chosen) < min(n_steps, len(best)):
        candidates = choice.candidates(state.chosen)
        state.add(choice.best(candidates, state.decreases(candidates)))
        _keep(state, best, seen, record)
        while len(state.chosen) > 2:
            errors = errors_without(centred, np.array(state.chosen), alpha)
            worst = int(np.argmin(errors))
            size = len(state.chosen) - 1
            if errors[worst] >= seen[size] * (1 - WORTH_A_DROP):
                break
            before = state.chosen
            state = _built(start, [f for at, f in enumerate(before) if at != worst])
            if not _keep(state, best, seen, record):  # it only looked better, by rounding
                state = _built(start, before)
                break
    return best


def errors_without(centred: Centred, chosen: IntArray, alpha: float) -> FloatArray:
    """Compute the leave-query-out squared error of a subset less each of its features.

    For each left-out query the inverse of the others' system gives the weights without any one
    feature: w − P_j w_j / P_jj.
    """
    A = np.ascontiguousarray(centred.features(chosen).T)
    b, ptr = centred.target, centred.query_ptr
    gram = A.T @ A + alpha * np.eye(len(chosen))
    right = A.T @ b
    errors = np.zeros(len(chosen))
    for begin, end in zip(ptr[:-1].tolist(), ptr[1:].tolist(), strict=True):
        mine = A[begin:end]
        inverse = np.linalg.pinv(gram - mine.T @ mine, hermitian=True)
        w = inverse @ (right - mine.T @ b[begin:end])
        ratio = np.divide(w, np.diag(inverse), out=np.zeros(len(w)), where=np.diag(inverse) > 0)
        left = (b[begin:end] - mine @ w)[:, None] + (mine @ inverse) * ratio
        errors += np.sum(left**2, axis=0)
    return errors


def nested_weights(centred: Centred, chosen: IntArray, alpha: float) -> list[FloatArray]:
    """Solve the ridge regressions on the first 1, 2, … of the chosen features.

    One QR of the regression with the penalty as further rows serves all: its leading triangles are
    those of the smaller subsets. The system is never squared, so a tiny alpha costs no digits.
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


def _built(start: Callable[[], GreedyState], features: list[int]) -> GreedyState:
    state = start()
    for feature in features:
        state.add(feature)
    return state


def _subset(state: GreedyState, record: Record) -> Subset:
    residual = state.residual
    return Subset(
        np.array(state.chosen, dtype=np.int64), float(residual @ residual), record(residual)
    )


def _keep(state: GreedyState, best: list[Subset], seen: dict[int, float], record: Record) -> bool:
    """Remember a subset of the floating run; tell whether the run had none as good of its size."""
    size = len(state.chosen)
    found = _subset(state, record)
    if found.criterion < best[size - 1].criterion:
        best[size - 1] = found
    better = found.criterion < seen.get(size, np.inf)
    if better:
        seen[size] = found.criterion
    return better
