"""Stochastic descent on pairs that are drawn one by one, never listed (Sculley 2009).

It minimises

    F(w) = E c·ℓ(z) + α [ l1_ratio ‖w‖₁ + (1 − l1_ratio)/2 ‖w‖² ],   z = wᵀ(a − b) − (s_a − s_b),

over pairs of a higher document a and a lower one b of the same query, drawn from an index;
c is the weight of the pair's levels, s an offset. A step takes time linear in the features of its
pair.

The ℓ1 part is a truncated gradient (Langford, Li & Zhang 2009): every θ steps, weights of at most a
ceiling are soft-thresholded by the accumulated strength. The threshold is applied when a weight is
used next, which gives the same weights.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.errors import InputError
from leanrank.losses import pair_loss
from leanrank.losses.base import Cells, Labels, sort_into_cells
from leanrank.losses.importance import importance_tables, summed_importance
from leanrank.solvers.sampling import _scaled_weights as scaled
from leanrank.solvers.sampling._pair_rows import (
    PairRows,
    add,
    as_rows,
    dot,
    fill_differences,
    make_buffers,
    pair_width,
    squared_norm,
)
from leanrank.solvers.sampling._scaled_weights import ScaledWeights, new_weights, read_weights
from leanrank.solvers.sampling.pair_sampling import (
    PairIndex,
    document_keys,
    fill_pairs,
    index_pairs,
    new_state,
)

SCHEDULES = ("optimal", "pegasos", "constant")
"""η₀/(1 + α η₀ t), 1/(α t) and η₀ at step t = 1, 2, …"""

_SAMPLED_FOR_SIZE = 1000


class PairRule(NamedTuple):
    """The parameters of a step.

    Attributes
    ----------
    loss : str
        Name of a loss; for kernels, its compiled ``pair_slope``.
    schedule : int
        Position in ``SCHEDULES``.
    eta0 : float
        The rate η₀.
    l2, l1 : float
        Strengths of the two penalties; α is their sum.
    passive_aggressive : bool
        Whether to take, instead of a gradient step, the smallest step after which the pair has no
        hinge loss, without a penalty.
    largest : float
        The largest passive-aggressive step.
    every : int
        θ: steps between truncations.
    ceiling : float
        Weights above it are not truncated.
    """

    loss: str
    schedule: int = 0
    eta0: float = 1.0
    l2: float = 0.0
    l1: float = 0.0
    passive_aggressive: bool = False
    largest: float = 1.0
    every: int = 1
    ceiling: float = math.inf

    def compiled(self) -> PairRule:
        """Return the rule for kernels."""
        return self._replace(loss=pair_loss(self.loss).pair_slope())


class PairWeights(NamedTuple):
    """Weights of pairs, by level and by the higher document, and offsets; empty if unused."""

    table: FloatArray
    line: IntArray  # the start of each document's row of the table
    level: IntArray  # the position of each document's level in its query
    gain: FloatArray
    offset: FloatArray


@dataclass(frozen=True)
class PairBlock:
    """The documents of whole queries, and the index of their pairs."""

    rows: PairRows
    y: FloatArray
    index: PairIndex
    weights: PairWeights
    width: int
    active: IntArray


@dataclass
class PairState:
    """The complete state of a run; a run that continues from it gives the same bits."""

    weights_: ScaledWeights
    generator: npt.NDArray[np.uint64]
    rule: PairRule
    seed: int
    steps: int = 0
    epoch: int = 0
    documents: int = 0

    def weights(self) -> FloatArray:
        """Return the current weights, or their average if the state has one."""
        return np.asarray(read_weights(self.weights_, self.rule.ceiling).mean(axis=0))

    def grow(self, n_features: int) -> None:
        """Add features with zero weights."""
        self.weights_ = scaled.grow_weights(self.weights_, n_features)


def make_pair_block(
    X: Matrix, labels: Labels, *, over: str = "pairs", importance: Any = None
) -> PairBlock:
    """Return documents with an index of their pairs; draws do not depend on the row order."""
    if labels.edges is not None:
        raise InputError("pairs are drawn by labels, not from explicit preferences: give labels y")
    index = index_pairs(
        labels.y,
        labels.query_ptr,
        over=over,
        sample_weight=labels.sample_weight,
        query_weight=labels.query_weight,
        keys=document_keys(X),
    )
    return PairBlock(
        rows=as_rows(X),
        y=labels.y,
        index=index,
        weights=_pair_weights(labels, importance, over),
        width=pair_width(X),
        active=np.arange(1, dtype=np.int64),
    )


def start_pairs(rule: PairRule, n_features: int, seed: int, *, average: bool = False) -> PairState:
    """Return the state of a run before its first step, with zero weights."""
    weights = new_weights(n_features, average=average, truncate=rule.l1 > 0.0)
    return PairState(weights, new_state(seed), rule, seed)


def descend(state: PairState, block: PairBlock, n_steps: int) -> float:
    """Take ``n_steps`` steps; return the mean loss of the pairs before their steps."""
    buffers, rule, total = make_buffers(block.width), state.rule.compiled(), 0.0
    for some in step_counts(n_steps, len(buffers.pairs), block.width):
        total += _descend(
            block.rows, block.y, block.index, block.weights, rule, state.weights_,
            state.generator, state.steps, some, buffers,
        )  # fmt: skip
        check_finite_loss(total, state.steps, state.rule.eta0)
        state.steps += some
        state.documents += 2 * some
    return float(total) / n_steps


def step_counts(n_steps: int, at_once: int, cost: int, most: int = 1 << 24) -> Iterator[int]:
    """Split steps into kernel calls of a fraction of a second, so that Ctrl-C works.

    A call takes a multiple of ``at_once`` steps and at most about ``most`` products, ``cost`` per
    step.

    >>> list(step_counts(100, at_once=4, cost=1000, most=40_000))
    [40, 40, 20]
    """
    most = max(1, most // (max(1, cost) * at_once)) * at_once
    return (min(most, n_steps - at) for at in range(0, n_steps, most))


def check_finite_loss(total: float, steps: int, eta0: float) -> None:
    """Raise an error if a run has diverged."""
    if not np.isfinite(total):
        raise InputError(
            f"the loss is {total} within the steps after {steps:,}: the steps are too large for "
            f"these features, lower eta0 (now {eta0:.3g}) or choose learning_rate='optimal'"
        )


def largest_pair(block: PairBlock, index: PairIndex, member: FloatArray | None = None) -> float:
    """Return the largest squared norm of a thousand drawn pairs, for the learning rate.

    ``member`` is 1 for the features to count, else 0; by default all count.
    """
    buffers, generator, largest = make_buffers(block.width), new_state(0, stream=7), 0.0
    pairs, features, values, counts = buffers
    for _ in range(-(-_SAMPLED_FOR_SIZE // len(pairs))):
        fill_pairs(index, generator, pairs, len(pairs))
        fill_differences(block.rows, pairs, len(pairs), features, values, counts)
        used = np.arange(values.shape[1]) < counts[:, None]
        if member is not None:
            used = np.where(used, member[features], 0.0)
        largest = max(largest, float(np.sum(used * values**2, axis=1).max()))
    return largest


def _pair_weights(labels: Labels, importance: Any, over: str) -> PairWeights:
    none, nowhere = np.empty(0), np.empty(0, dtype=np.int64)
    table, line, level = none, nowhere, nowhere
    if importance is not None:
        levels, level_of = np.unique(labels.y, return_inverse=True)
        cells = sort_into_cells(level_of, len(levels), labels.query_ptr)
        mass = np.ones(len(labels.y)) if labels.sample_weight is None else labels.sample_weight
        table, table_ptr = importance_tables(importance, levels, cells, mass)
        query = cells.query[cells.cell]
        level = cells.cell - cells.cell_ptr[query]
        line = table_ptr[query] + level * np.diff(cells.cell_ptr)[query]
        table = table / _mean_weight(labels, cells, mass, table, table_ptr, over)
    return PairWeights(
        table=table,
        line=line,
        level=level,
        gain=none if labels.gain_weight is None else labels.gain_weight,
        offset=none if labels.offset is None else labels.offset,
    )


def _mean_weight(
    labels: Labels,
    cells: Cells,
    mass: FloatArray,
    table: FloatArray,
    table_ptr: IntArray,
    over: str,
) -> float:
    """Return the expected weight of a drawn pair."""
    sizes = np.bincount(cells.cell, mass, minlength=len(cells.query)).astype(np.float64)
    weighted, counted = (
        summed_importance(costs, table_ptr, cells, sizes) for costs in (table, np.ones(len(table)))
    )
    chance = np.ones(len(counted)) if labels.query_weight is None else labels.query_weight
    if over == "queries":
        chance = np.divide(chance, counted, out=np.zeros(len(counted)), where=counted > 0)
    if not chance @ weighted > 0.0:
        raise InputError("every pair of documents weighs 0: give an importance that is positive")
    return float(chance @ weighted / (chance @ counted))


@kernel
def learning_rate(schedule, eta0, alpha, t):  # type: ignore[no-untyped-def]
    """Return the rate of step t."""
    if schedule == 0:
        return eta0 / (1.0 + alpha * eta0 * t)
    if schedule == 1:
        return 1.0 / (alpha * t)
    return eta0


@kernel
def pair_weight(weights, a, b):  # type: ignore[no-untyped-def]
    """Return the weight of a pair."""
    c = 1.0
    if len(weights.table) > 0:
        c = weights.table[weights.line[a] + weights.level[b]]
    if len(weights.gain) > 0:
        c *= weights.gain[a]
    return c


@kernel
def _descend(rows, y, index, weights, rule, state, generator, done, n_steps, buffers):  # type: ignore[no-untyped-def]
    pairs, counts = buffers.pairs, buffers.counts
    total, t, end = 0.0, done, done + n_steps
    apart = np.empty(len(pairs))
    while t < end:
        n_pairs = min(len(pairs), end - t)
        fill_pairs(index, generator, pairs, n_pairs)
        for at in range(n_pairs):  # in a loop of its own, so that reads of distant rows overlap
            apart[at] = y[pairs[at, 0]] - y[pairs[at, 1]]
        fill_differences(rows, pairs, n_pairs, buffers.features, buffers.values, counts)
        total += _steps(apart, weights, rule, state, t, n_pairs, buffers, rows.dense.shape[0] > 0)
        t += n_pairs
    return total


@kernel
def _steps(apart, weights, rule, state, t, n_pairs, buffers, is_dense):  # type: ignore[no-untyped-def]
    average, truncate = state.now.shape[1] > 0, state.taken.shape[1] > 0
    v, numbers, late, taken = state.v[0], state.numbers[0], state.late[0], state.taken[0]
    pairs, counts = buffers.pairs, buffers.counts
    features, values = buffers.features, buffers.values
    has_offset, offset = len(weights.offset) > 0, weights.offset
    is_weighted = len(weights.table) > 0 or len(weights.gain) > 0
    total, alpha = 0.0, rule.l1 + rule.l2
    for at in range(n_pairs):
        t += 1
        a, b, n = pairs[at, 0], pairs[at, 1], counts[at]
        if truncate:
            scaled.take_threshold(v, taken, features[at], n, numbers, rule.ceiling)
        z = numbers[scaled.SCALE] * dot(is_dense, v, features, values, at, n)
        if has_offset:
            z -= offset[a] - offset[b]
        loss, slope = rule.loss(z, apart[at])
        c = pair_weight(weights, a, b) if is_weighted else 1.0
        total += c * loss
        if rule.passive_aggressive:
            step = 0.0
            if z < 1.0:
                norm = squared_norm(values, at, n)
                step = c * min(rule.largest, (1.0 - z) / norm) if norm > 0.0 else 0.0
        else:
            rate = learning_rate(rule.schedule, rule.eta0, alpha, t)
            if rule.l2 > 0.0:
                factor = max(0.0, 1.0 - rate * rule.l2)
                if factor * numbers[scaled.SCALE] > scaled.SMALLEST:
                    numbers[scaled.SCALE] *= factor
                else:
                    scaled.shrink(state, 0, factor, rule.ceiling)
            step = -rate * c * slope
            numbers[scaled.PENDING] += rate * rule.l1
        if step != 0.0:
            factor = step / numbers[scaled.SCALE]
            add(is_dense, v, features, values, at, n, factor)
            if average:
                add(is_dense, late, features, values, at, n, factor * numbers[scaled.COUNTED])
        if truncate and t % rule.every == 0:
            numbers[scaled.DUE] += numbers[scaled.PENDING] / numbers[scaled.SCALE]
            numbers[scaled.PENDING] = 0.0
        if average:
            if (t & (t - 1)) == 0:
                scaled.restart_average(state, 0)
            numbers[scaled.COUNTED] += numbers[scaled.SCALE]
            numbers[scaled.N_NOW] += 1.0
    return total
