"""Greedy RankRLS: what adding each feature would do to the exact leave-query-out error.

Three ways to the same question, by what they hold in memory (k features chosen of n, m documents):

============  ==================  ============  ====================================================
state         time of k choices   memory        how
============  ==================  ============  ====================================================
HeldColumns   O(kmn)              O(mn)         two residuals of every feature, updated each step
Replayed      O(k²mn)             O(km + nnz)   residuals computed anew from the k chosen features
Frozen        O(k²·m̄·n)           O(km + nnz)   *back-fitting*: m̄ the average non-zeros of a feature
============  ==================  ============  ====================================================

Measuring only κ candidates a step puts κ for n in the last two rows.
"""

# mypy: disable-error-code="no-untyped-call"

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.errors import InputError
from leanrank.execution import Executor
from leanrank.solvers import _greedy_kernels as kernels
from leanrank.solvers.centred import Centred

COLUMNS_AT_ONCE = 8
"""Features in one unit of work: neighbours in a dense row share a cache line."""


class GreedyState(Protocol):
    """The features chosen so far, and what each other one would bring."""

    chosen: list[int]
    residual: FloatArray
    start_energy: FloatArray

    def decreases(self, candidates: IntArray) -> FloatArray:
        """Compute by how much the leave-query-out error falls with each candidate."""

    def add(self, feature: int) -> None:
        """Choose a feature."""


def make_state(
    kind: str, centred: Centred, alpha: float, executor: Executor, storage: str = "float64"
) -> GreedyState:
    """Start with no feature chosen; ``kind`` is "standard", "low" or "frozen"."""
    if kind == "standard":
        return HeldColumns(centred, alpha, executor, storage)
    if kind == "low":
        return Replayed(centred, alpha, executor)
    if kind == "frozen":
        return Frozen(centred, alpha, executor)
    raise InputError(f"there is no greedy state {kind!r}")


class _Steps:
    """What every state keeps: the residuals of the labels, and of each chosen feature.

    Attributes
    ----------
    chosen : list of int
    residual : array
        p: what the model without each query leaves of that query's labels.
    trained : array
        a: what the model of all queries leaves of the labels.
    start_energy : array
        ‖x‖² of each feature; 0 if it is constant within every query.
    only : array of int64
        The only query in which each feature is not constant, or −1.
    """

    def __init__(self, centred: Centred, alpha: float, executor: Executor) -> None:
        self.centred = centred
        self.alpha = alpha
        self.executor = executor
        self.chosen: list[int] = []
        self.residual = centred.target.copy()
        self.trained = centred.target.copy()
        n, m = centred.n_features, centred.n_rows
        self.start_energy = np.zeros(n)
        self.only = np.full(n, -1, dtype=np.int64)
        # one row a step, grown by doubling
        self.steps_c, self.steps_u = np.empty((0, m)), np.empty((0, m))
        self.totals = np.empty(0)
        self.rests = np.empty((0, len(centred.query_ptr) - 1))

    def add(self, feature: int) -> None:
        """Choose a feature: update the residuals of the labels and remember the step."""
        c, u, energy = self._residuals(feature)
        ptr, p = self.centred.query_ptr, self.residual
        total = self.alpha + energy
        rest = self.alpha + np.maximum(0.0, energy - kernels.query_sums(c, u, ptr))
        if self.only[feature] >= 0:
            rest[self.only[feature]] = np.inf
        z = float(c @ self.centred.target)
        theta = (z - kernels.query_sums(c, p, ptr)) / rest
        if self.only[feature] >= 0:
            theta[self.only[feature]] = 0.0
        self._remember(c, u, total, rest)
        self.residual = p - theta[self.centred.query_of] * u
        self.trained = self.trained - (z / total) * c
        self.chosen.append(feature)

    def _residuals(self, feature: int) -> tuple[FloatArray, FloatArray, float]:
        """Give c, u and x·c of one feature in double precision."""
        c = self.centred.features(np.array([feature]))[0]
        u = np.empty_like(c)
        k = len(self.chosen)
        energy, only = float(self.start_energy[feature]), int(self.only[feature])
        left = kernels.replay(
            c, u, self.centred.query_ptr, only, energy, self.steps_c, self.steps_u, self.totals,
            self.rests, k,
        )  # fmt: skip
        return c, u, float(left)

    def _remember(self, c: FloatArray, u: FloatArray, total: float, rest: FloatArray) -> None:
        k = len(self.chosen)
        if k == len(self.totals):
            size = max(8, 2 * k)
            self.steps_c, self.steps_u = _grown(self.steps_c, size), _grown(self.steps_u, size)
            self.totals, self.rests = _grown(self.totals, size), _grown(self.rests, size)
        self.steps_c[k], self.steps_u[k] = c, u
        self.totals[k], self.rests[k] = total, rest

    def _find_energy(self) -> None:
        """Compute ‖x‖² of every feature, and the only query that it lives in."""
        centred = self.centred

        def part(features: IntArray) -> None:
            energy, only = np.empty(len(features)), np.empty(len(features), np.int64)
            if centred.is_sparse:
                kernels.sparse_energy(
                    *centred.columns, centred.query_ptr, centred.root, features, energy, only
                )
            else:
                columns = centred.features(features)
                kernels.dense_energy(columns, centred.query_ptr, energy, only)
            self.start_energy[features], self.only[features] = energy, only

        self.executor.map(part, _groups(np.arange(centred.n_features)))


class HeldColumns(_Steps):
    """Algorithm 1: both residuals of every feature, in float64 or float32."""

    def __init__(
        self, centred: Centred, alpha: float, executor: Executor, storage: str = "float64"
    ) -> None:
        super().__init__(centred, alpha, executor)
        shape = (centred.n_features, centred.n_rows)
        self.exact = storage == "float64"
        self.C = np.empty(shape, dtype=storage)
        self.U = np.empty(shape, dtype=storage)
        self.up_to_date = 0

        def fill(features: IntArray) -> None:
            columns = centred.features(features)
            energy, only = np.empty(len(features)), np.empty(len(features), np.int64)
            kernels.dense_energy(columns, centred.query_ptr, energy, only)
            self.start_energy[features], self.only[features] = energy, only
            self.C[features] = columns
            self.U[features] = columns

        executor.map(fill, _groups(np.arange(centred.n_features)))
        self.energy = self.start_energy.copy()

    def decreases(self, candidates: IntArray) -> FloatArray:
        """Update all features not yet chosen with the last choice, and measure the candidates."""
        centred, k = self.centred, len(self.chosen)
        open_ = np.ones(centred.n_features, dtype=bool)
        open_[self.chosen] = False
        wanted = np.zeros(centred.n_features, dtype=bool)
        wanted[candidates] = True
        gains = np.full(centred.n_features, -np.inf)
        total, rest = 0.0, np.empty(0)
        x = c = u = np.empty(0)
        if k > self.up_to_date:
            x = centred.features(np.array(self.chosen[-1:]))[0]
            c, u, total, rest = self.last
        self.up_to_date = k

        def part(features: IntArray) -> None:
            gain = np.full(len(features), -np.inf)
            kernels.step_and_measure(
                self.C, self.U, features, wanted[features], centred.query_ptr, self.residual,
                centred.target, self.alpha, self.energy, self.only, x, c, u, total, rest, gain,
            )  # fmt: skip
            gains[features] = gain

        self.executor.map(part, _groups(np.flatnonzero(open_)))
        return gains[candidates]

    def add(self, feature: int) -> None:
        """Choose a feature that the last call of ``decreases`` brought up to date."""
        if self.up_to_date < len(self.chosen):
            self.decreases(np.empty(0, dtype=np.int64))
        super().add(feature)

    def _residuals(self, feature: int) -> tuple[FloatArray, FloatArray, float]:
        if not self.exact:  # rounded columns are good enough to choose by, not to compute with
            return super()._residuals(feature)
        return self.C[feature].copy(), self.U[feature].copy(), float(self.energy[feature])

    def _remember(self, c: FloatArray, u: FloatArray, total: float, rest: FloatArray) -> None:
        self.last = c, u, total, rest
        if not self.exact:
            super()._remember(c, u, total, rest)


class Replayed(_Steps):
    """The variation of low memory: nothing is kept of the features that were not chosen."""

    def __init__(self, centred: Centred, alpha: float, executor: Executor) -> None:
        super().__init__(centred, alpha, executor)
        self._find_energy()

    def decreases(self, candidates: IntArray) -> FloatArray:
        """Repeat every step for each candidate."""
        centred, k = self.centred, len(self.chosen)

        def part(features: IntArray) -> FloatArray:
            gain = np.empty(len(features))
            kernels.replay_and_measure(
                centred.features(features), centred.query_ptr, self.residual, centred.target,
                self.alpha, self.start_energy[features], self.only[features], self.steps_c, self.steps_u,
                self.totals, self.rests, k, gain,
            )  # fmt: skip
            return gain

        return _joined(self.executor.map(part, _groups(candidates)))


class Frozen(Replayed):
    """Back-fitting: a candidate is measured with the other weights frozen, then all are refitted.

    The criterion is exact for what it asks. Leave a query out, train the chosen features on the
    others, freeze their weights, give the candidate the weight that is best on the others, and take
    the error on the query. The error after refitting is not known before the choice, and is what
    ``residual`` holds after it.
    """

    def decreases(self, candidates: IntArray) -> FloatArray:
        """Measure each candidate from its own non-zeros."""
        centred, k = self.centred, len(self.chosen)
        ptr = centred.query_ptr
        held = np.array([kernels.query_sums(c, self.residual, ptr) for c in self.steps_c[:k]])
        held = held.reshape(k, len(ptr) - 1)

        def part(features: IntArray) -> FloatArray:
            gain = np.empty(len(features))
            kernels.frozen_and_measure(
                *centred.columns, features, ptr, centred.root, self.residual, self.trained,
                self.alpha, self.start_energy, self.only, self.steps_c, self.totals, held, k, gain,
            )  # fmt: skip
            return gain

        return _joined(self.executor.map(part, _groups(candidates, 256)))


def _groups(features: IntArray, size: int = COLUMNS_AT_ONCE) -> list[IntArray]:
    return [features[at : at + size] for at in range(0, len(features), size)]


def _joined(parts: list[FloatArray]) -> FloatArray:
    return np.concatenate(parts) if parts else np.empty(0)


def _grown(array: Any, size: int) -> Any:
    out = np.empty((size, *array.shape[1:]))
    out[: len(array)] = array
    return out
