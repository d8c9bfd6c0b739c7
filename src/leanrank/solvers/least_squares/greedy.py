"""Greedy RankRLS: what adding each feature would do to the exact leave-query-out error.

Three algorithms, by what they hold in memory (k features chosen of n, m documents):

============  ==================  ============  ====================================================
state         time of k choices   memory        how
============  ==================  ============  ====================================================
HeldColumns   O(kmn)              O(mn)         two residuals of every feature, updated each step
Replayed      O(k²mn)             O(km + nnz)   residuals computed anew from the k chosen features
Frozen        O(k²·m̄·n)           O(km + nnz)   *back-fitting*: m̄ the average non-zeros of a feature
============  ==================  ============  ====================================================

Measuring only κ candidates per step replaces n by κ in the last two rows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.designs.dense import dense_rmatvec
from leanrank.errors import InputError, overflow
from leanrank.execution import Executor, add_up, cached_property, query_ranges, row_blocks
from leanrank.solvers.least_squares import _greedy_kernels as kernels
from leanrank.solvers.least_squares.centred import Centred, reduced

COLUMNS_AT_ONCE = 32
"""Features per task where they are independent; measured by ``benchmarks greedy``."""

NUMBERS_PER_RANGE = 1 << 17
"""Size of the rows per task over queries; measured by ``benchmarks greedy``."""


def forward(
    state: GreedyState, n_steps: int, *, n_candidates: int | None = None, random: Any = None
) -> Iterator[FloatArray]:
    """Add the best feature until there are ``n_steps``, the first among equals.

    Yields the leave-query-out residual after each step; its square is Eq. 7 of the paper.

    Parameters
    ----------
    state : GreedyState
    n_steps : int
    n_candidates : int, optional
        Number of features to try per step, drawn by ``random``; all by default.
    random : numpy.random.Generator, optional
    """
    while len(state.chosen) < n_steps:
        tried = np.setdiff1d(np.arange(state.centred.n_features), state.chosen)
        if n_candidates is not None and n_candidates < len(tried):
            tried = np.sort(random.choice(tried, n_candidates, replace=False))
        gains = state.decreases(tried)
        gains = np.where(np.isnan(gains), -np.inf, gains)  # an overflow counts as no gain
        state.add(int(tried[np.argmax(gains)]))
        if not np.isfinite(state.residual @ state.residual):
            raise InputError(overflow("the leave-query-out error"))
        yield state.residual


def nested_weights(centred: Centred, chosen: IntArray, alpha: float) -> list[FloatArray]:
    """Solve the ridge regressions on the first 1, 2, … of the chosen features.

    One QR of the regression with the penalty as further rows serves all: its leading triangles are
    those of the smaller subsets. No normal equations are formed, so a tiny alpha costs no digits.
    """
    from scipy.linalg.lapack import dtrtrs

    k = len(chosen)
    penalty = np.hstack([np.sqrt(alpha) * np.eye(k), np.zeros((k, 1))])
    ranges = query_ranges(centred.query_ptr, max(4 * (k + 1), 65_536 // (k + 1)))
    triangle = reduced(penalty, centred, ranges, chosen)
    return [
        np.asarray(dtrtrs(triangle[:size, :size], triangle[:size, k])[0])
        for size in range(1, k + 1)
    ]


def make_state(
    kind: str, centred: Centred, alpha: float, executor: Executor, *, by_training: bool = False
) -> GreedyState:
    """Start with no feature chosen; ``kind`` is "standard", "low" or "frozen"."""
    states = {"standard": HeldColumns, "low": Replayed, "frozen": Frozen}
    return states[kind](centred, alpha, executor, by_training)


class GreedyState:
    """The features chosen so far, and the residuals of the labels and of each chosen feature.

    Attributes
    ----------
    by_training : bool
        Whether features are compared by the training error with its penalty.
    chosen : list of int
    residual : array
        p: the residual of each query's labels under the model without that query.
    trained : array
        a: the residual of the labels under the model of all queries.
    start_energy : array
        ‖x‖² of each feature; 0 if it is constant within every query.
    only : array of int64
        The only query in which each feature is not constant, or −1.
    """

    def __init__(
        self, centred: Centred, alpha: float, executor: Executor, by_training: bool
    ) -> None:
        self.centred = centred
        self.alpha = alpha
        self.executor = executor
        self.by_training = by_training
        self.chosen: list[int] = []
        self.residual = centred.target.copy()
        self.trained = centred.target.copy()
        n, m = centred.n_features, centred.n_rows
        self.start_energy = np.zeros(n)
        self.only = np.full(n, -1, dtype=np.int64)
        # one row per step, grown by doubling
        self.steps_c, self.steps_u = np.empty((0, m)), np.empty((0, m))
        self.totals = np.empty(0)
        self.inverse_rests = np.empty((0, len(centred.query_ptr) - 1))
        self._begin()

    def _begin(self) -> None:
        """Compute the energy of every feature and the other arrays of the algorithm."""
        raise AssertionError(f"{type(self).__name__} must define _begin")

    def decreases(self, candidates: IntArray) -> FloatArray:
        """Compute by how much each candidate lowers the leave-query-out (or training) error."""
        raise AssertionError(f"{type(self).__name__} must define decreases")

    def add(self, feature: int) -> None:
        """Choose a feature: update the residuals of the labels and remember the step."""
        c, u, energy = self._residuals(feature)
        ptr, p = self.centred.query_ptr, self.residual
        total = self.alpha + energy
        inverse = 1.0 / (self.alpha + np.maximum(0.0, energy - kernels.query_sums(c, u, ptr)))
        if self.only[feature] >= 0:  # without its only query, the feature has no weight
            inverse[self.only[feature]] = 0.0
        z = float(c @ self.centred.target)
        theta = (z - kernels.query_sums(c, p, ptr)) * inverse
        self._remember(feature, c, u, total, inverse)
        self.residual = p - theta[self.centred.query_of] * u
        self.trained = self.trained - (z / total) * c
        self.chosen.append(feature)

    def _residuals(self, feature: int) -> tuple[FloatArray, FloatArray, float]:
        """Return c, u and x·c of one feature: its columns after every step so far."""
        k, centred = len(self.chosen), self.centred
        steps, ptr = self.steps_c[:k], centred.query_ptr
        x = centred.features(np.array([feature]))[0]
        t = steps @ x
        kappa, u = t / self.totals[:k], x.copy()
        for j in range(k):
            tau = (t[j] - kernels.query_sums(steps[j], u, ptr)) * self.inverse_rests[j]
            if self.only[feature] >= 0:
                tau[self.only[feature]] = 0.0
            u -= tau[centred.query_of] * self.steps_u[j]
        return x - kappa @ steps, u, max(0.0, float(self.start_energy[feature] - t @ kappa))

    def _remember(
        self, feature: int, c: FloatArray, u: FloatArray, total: float, inverse: FloatArray
    ) -> None:
        """Keep the step of a feature, with which the others are brought up to date."""
        k = len(self.chosen)
        if k == len(self.totals):
            size = max(8, 2 * k)
            self.steps_c, self.steps_u = _grown(self.steps_c, size), _grown(self.steps_u, size)
            self.totals = _grown(self.totals, size)
            self.inverse_rests = _grown(self.inverse_rests, size)
        self.steps_c[k], self.steps_u[k] = c, u
        self.totals[k], self.inverse_rests[k] = total, inverse

    def _find_energy(self, rows_of: Callable[[int, int], FloatArray]) -> None:
        """Compute ‖x‖² of every feature, and the only query in which it varies."""
        filled = np.flatnonzero(np.diff(self.centred.query_ptr))
        starts = self.centred.query_ptr[filled]

        def part(r: tuple[int, int]) -> tuple[FloatArray, IntArray, IntArray]:
            squares, here = rows_of(*r) ** 2, slice(*np.searchsorted(filled, r))
            if not len(squares):
                return np.zeros(n), *np.zeros((2, n), dtype=np.int64)
            squares = np.add.reduceat(squares, starts[here] - starts[here][0])
            varies = squares > 0
            return squares.sum(axis=0), varies.sum(axis=0), filled[here][varies.argmax(axis=0)]

        n, times = self.centred.n_features, np.zeros(self.centred.n_features, dtype=np.int64)
        for energy, found, query in self.executor.map(part, self._ranges):
            self.start_energy += energy
            times += found
            self.only = np.where(found > 0, query, self.only)
        self.only[times != 1] = -1

    def _training_gain(self, z: FloatArray, energy: FloatArray) -> FloatArray:
        return z**2 / (self.alpha + energy)

    @cached_property
    def _ranges(self) -> list[tuple[int, int]]:
        """Ranges of queries whose rows are one unit of work."""
        per_range = max(1, NUMBERS_PER_RANGE // max(1, self.centred.n_features))
        return query_ranges(self.centred.query_ptr, per_range)


class HeldColumns(GreedyState):
    """Algorithm 1: both residuals of every feature, one row per document."""

    def _begin(self) -> None:
        centred = self.centred
        shape = (centred.n_rows, centred.n_features)
        _check_memory(16 * shape[0] * shape[1])
        self.C, self.U = np.empty(shape), np.empty(shape)
        ptr = centred.query_ptr

        def fill(r0: int, r1: int) -> FloatArray:
            rows = slice(int(ptr[r0]), int(ptr[r1]))
            values = centred.rows(r0, r1)
            self.C[rows] = values
            self.U[rows] = values
            return values

        self._find_energy(fill)
        self.energy = self.start_energy.copy()
        self.z = np.zeros(centred.n_features)
        self.pending: tuple[Any, ...] | None = None
        self.gains: FloatArray | None = None

    def decreases(self, candidates: IntArray) -> FloatArray:
        """Update the residuals of all features with the last choice, and measure them."""
        if self.gains is None:
            self.gains = self._step()
        return self.gains[candidates]

    def _step(self) -> FloatArray:
        centred, n = self.centred, self.centred.n_features
        ptr, ranges = centred.query_ptr, self._ranges
        t = kappa = np.zeros(n)  # before the first choice: a step of zero
        c, u, inverse = np.zeros(centred.n_rows), np.zeros(centred.n_rows), np.zeros(len(ptr) - 1)
        if self.pending is not None:
            x, c, u, total, inverse = self.pending
            t = self._products(x)
            kappa = t / total
            self.energy = np.maximum(0.0, self.energy - t * kappa)
            z = self.z - kappa * float(c @ centred.target)
            self.pending = None
        else:
            z = self._products(centred.target)

        def part(r: tuple[int, int]) -> FloatArray:
            out = np.zeros((2, n))
            kernels.step_and_measure(
                self.C, self.U, ptr, r[0], r[1], self.residual, centred.target, self.alpha, c, u,
                inverse, t, kappa, z, self.energy, self.only, out,
            )  # fmt: skip
            return out

        gains, self.z = add_up(self.executor.map(part, ranges))
        return self._training_gain(self.z, self.energy) if self.by_training else gains

    def _products(self, vector: FloatArray) -> FloatArray:
        """Compute the products of a vector with every column of C."""
        ptr = self.centred.query_ptr
        total: FloatArray = add_up(
            self.executor.map(
                lambda r: dense_rmatvec(self.C, vector, int(ptr[r[0]]), int(ptr[r[1]])),
                self._ranges,
            )
        )
        return total

    def _residuals(self, feature: int) -> tuple[FloatArray, FloatArray, float]:
        if self.gains is None:
            self._step()
        return self.C[:, feature].copy(), self.U[:, feature].copy(), float(self.energy[feature])

    def _remember(
        self, feature: int, c: FloatArray, u: FloatArray, total: float, inverse: FloatArray
    ) -> None:
        x = self.centred.features(np.array([feature]))[0]
        self.pending, self.gains = (x, c, u, total, inverse), None


class Replayed(GreedyState):
    """The low-memory variant: nothing is kept of the features that were not chosen."""

    def _begin(self) -> None:
        centred = self.centred
        if centred.is_sparse:
            kernels.sparse_energy(
                *centred.columns, centred.query_ptr, centred.mass, centred.root,
                np.arange(centred.n_features), self.start_energy, self.only,
            )  # fmt: skip
        else:
            self._find_energy(centred.rows)

    def decreases(self, candidates: IntArray) -> FloatArray:
        """Repeat every step for each candidate."""
        centred, k = self.centred, len(self.chosen)
        steps_c, totals = self.steps_c[:k], self.totals[:k, None]

        def part(features: IntArray) -> FloatArray:
            columns = centred.block(features)
            t = steps_c @ columns
            kappa = t / totals
            energy = np.maximum(0.0, self.start_energy[features] - np.sum(t * kappa, axis=0))
            z = self.trained @ columns
            if self.by_training:
                return self._training_gain(z, energy)
            gain = np.empty(len(features))
            residuals = np.empty_like(columns)
            for begin, end in row_blocks(len(columns), 2_048):  # what fits the cache
                here = residuals[begin:end]
                np.matmul(steps_c[:, begin:end].T, kappa, out=here)
                np.subtract(columns[begin:end], here, out=here)
            kernels.replay_and_measure(
                residuals, columns, centred.query_ptr, self.residual,
                centred.target, self.alpha, self.steps_c, self.steps_u, self.inverse_rests, t, z,
                energy, self.only[features], k, gain,
            )  # fmt: skip
            return gain

        return self._joined(part, candidates, COLUMNS_AT_ONCE)

    def _joined(
        self, part: Callable[[IntArray], FloatArray], candidates: IntArray, at_once: int
    ) -> FloatArray:
        blocks = row_blocks(len(candidates), at_once)
        gains = self.executor.map(part, [candidates[slice(*at)] for at in blocks])
        return np.concatenate([np.zeros(0), *gains])


class Frozen(Replayed):
    """Back-fitting: a candidate is measured with the other weights frozen, then all are refitted.

    The criterion is exact: leave a query out, train the chosen features on the
    others, freeze their weights, give the candidate the weight that is best on the others, and take
    the error on the query. The error after refitting is known only after the choice, as
    ``residual``.
    """

    def decreases(self, candidates: IntArray) -> FloatArray:
        """Measure each candidate from its own non-zeros."""
        centred, k = self.centred, len(self.chosen)
        ptr = centred.query_ptr
        if self.by_training:
            z = np.asarray(centred.X.T @ (centred.root * self.trained))[candidates]
            return self._training_gain(z, self.start_energy[candidates])
        held = np.array([kernels.query_sums(c, self.residual, ptr) for c in self.steps_c[:k]])
        held = held.reshape(k, len(ptr) - 1)

        def part(features: IntArray) -> FloatArray:
            gain = np.empty(len(features))
            kernels.frozen_and_measure(
                *centred.columns, features, ptr, centred.mass, centred.root, self.residual,
                self.trained, self.alpha, self.start_energy, self.only, self.steps_c, self.totals,
                held, k, gain,
            )  # fmt: skip
            return gain

        return self._joined(part, candidates, 256)


def _check_memory(wanted: int) -> None:
    """Reject a problem that does not fit the memory of the machine."""
    available = machine_memory()
    if wanted > available:
        raise InputError(
            f"memory='standard' would hold {wanted / 2**30:.0f} GiB for these documents and "
            f"features, and this machine has {available / 2**30:.0f} GiB: use memory='low', or "
            "fitting='back' for sparse data"
        )


def machine_memory() -> float:
    """Return the bytes of memory of this machine, or infinity if unknown."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return np.inf


def _grown(array: Any, size: int) -> Any:
    out = np.empty((size, *array.shape[1:]))
    out[: len(array)] = array
    return out
