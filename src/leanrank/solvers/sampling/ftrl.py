"""Follow the regularised leader over mini-batches of one query (Cheng et al. 2018).

With g_t the gradient of the t-th batch and σ_t = 1/η_t − 1/η_{t−1},

    v_t = v_{t−1} + g_t − σ_t w_t,    w_{t+1} = −η_t · S(v_t, λ_t),

S the soft threshold: a weight whose |v| is within the threshold is exactly zero, and returns to
zero when |v| falls back. Rates by feature are η = γ / √(ρ + Σ g²), uniform ones γ / √t. The
threshold is λ for the whole run (``per_step=False``, as published), so its pull fades with the
length of the run; or λ·t, which makes w converge to the optimum of mean loss + λ‖w‖₁.

A batch costs its own non-zeros, whatever the number of features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.designs.products import dense_rmatvec
from leanrank.errors import InputError
from leanrank.losses.base import Labels, Loss, Plan, refuse_edges
from leanrank.solvers.sampling import _ftrl_kernels as kernels
from leanrank.solvers.sampling.pair_sampling import document_keys, sort_within_queries

move_weight = kernels.move
"""The step of a single weight, for kernels."""


@dataclass(frozen=True)
class FTRLRule:
    """How a gradient becomes weights.

    Attributes
    ----------
    alpha : float
        λ, absolute.
    gamma, rho : float
        The rate is γ/√(ρ + Σ g²), or γ/√t if uniform.
    uniform : bool
        Whether all features share one rate ("Nonfea").
    per_step : bool
        Whether the threshold is λ times the number of steps.
    """

    alpha: float
    gamma: float = 1.0
    rho: float = 1.0
    uniform: bool = False
    per_step: bool = False

    def numbers(self) -> tuple[float, float, float, bool, bool]:
        """Return the rule as the kernels take it."""
        return self.alpha, self.gamma, self.rho, self.uniform, self.per_step


@dataclass
class FTRLState:
    """The complete state of a run: stored and loaded, it continues with the same bits.

    Attributes
    ----------
    rule : FTRLRule
    v, w : array of shape (n_features,)
        ``w`` may lag behind the steps in which a feature had no gradient: see ``weights``.
    s : array of shape (n_features,)
        Σ g² of each feature; with uniform rates, the step up to which ``v`` and ``w`` are.
    steps, documents : int
        Batches and documents seen.
    epoch : int
        Passes completed.
    seed : int
        Of the order of queries and of drawn pairs, which depend on it, ``epoch`` and ``steps``
        alone.
    """

    rule: FTRLRule
    v: FloatArray
    s: FloatArray
    w: FloatArray
    steps: int = 0
    documents: int = 0
    epoch: int = 0
    seed: int = 0

    @classmethod
    def start(cls, rule: FTRLRule, n_features: int, seed: int = 0) -> FTRLState:
        """Begin with all weights zero.

        >>> FTRLState.start(FTRLRule(0.1), 3).weights().tolist()
        [0.0, 0.0, 0.0]
        """
        v, s, w = (np.zeros(n_features) for _ in range(3))
        return cls(rule, v, s, w, seed=seed)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.w)

    def grow(self, n_features: int) -> None:
        """Add features, which have had no gradient."""
        if n_features < self.n_features:
            raise InputError(
                f"the run has {self.n_features} features already: it cannot continue with "
                f"{n_features}"
            )
        more = np.zeros(n_features - self.n_features)
        self.v, self.s, self.w = (np.concatenate([a, more]) for a in (self.v, self.s, self.w))

    def weights(self) -> FloatArray:
        """Return the weights after the steps taken so far."""
        w = self.w.copy()
        if not (self.rule.uniform or self.rule.per_step):
            return w  # a step does not change features without a gradient
        v, s = self.v.copy(), self.s.copy()
        kernels.catch_up_all(v, s, w, self.steps, *self.rule.numbers())
        return w

    def check(self) -> None:
        """Raise a ValueError unless the arrays fit together."""
        same = self.v.shape == self.s.shape == self.w.shape == (self.w.size,)
        if not same or self.s.min(initial=0.0) < 0.0:
            raise ValueError("v, s and w do not fit together")


@dataclass(frozen=True)
class QueryBatches:
    """Documents in batches of one query, with a prepared loss.

    Attributes
    ----------
    X : C-contiguous float array or SciPy CSR array
        Rows grouped by query.
    loss, plan
        A loss, and its plan for these rows or, with ``pairs``, for that many drawn pairs.
    query_ptr : array of int64
    factor : array
        Factor of each query's gradient, so that it does not depend on the other queries in the
        block.
    active : array of int64
        The queries that take part.
    offset : array, optional
    pairs : DrawnPairs, optional
        How to draw pairs; None for whole queries.
    """

    X: Matrix
    loss: Loss[Any]
    plan: Plan
    query_ptr: IntArray
    factor: FloatArray
    active: IntArray
    offset: FloatArray | None = None
    pairs: DrawnPairs | None = None

    def gradient_at_zero(self) -> FloatArray:
        """Sum the gradients of all active queries at zero weights, one pass over the documents."""
        n_rows = self.X.shape[0]
        u, g = np.zeros(n_rows), np.zeros(n_rows)
        if self.offset is not None:
            u -= self.offset
        if self.pairs is None:
            self.loss.evaluate(self.plan, 0, len(self.factor), u, g)
        else:
            draw = _gradient_of_pairs(self, 0)
            for q in self.active.tolist():
                # with the size of the query as the step: independent of the order of the queries
                draw(q, int(self.query_ptr[q + 1] - self.query_ptr[q]), u, g)
        g *= np.repeat(self.factor, np.diff(self.query_ptr))
        if isinstance(self.X, np.ndarray):
            return dense_rmatvec(kernel_view(self.X), g, 0, n_rows)
        return np.asarray(self.X.T @ g, dtype=np.float64)


@dataclass(frozen=True)
class DrawnPairs:
    """An index from which a pair of a query is drawn in O(log n), never listing pairs.

    Attributes
    ----------
    rows : array of int64
        The documents by query, ascending level within a query.
    first : array of int64
        The place of the first document of each document's query and level.
    chance : array
        Running sum over places of the chance to be the better document; 1 per query.
    mass : array
        Running sum over places of the weights as the worse document; empty if all weigh 1.
    gain : array
        Mean gain weight of each query's pairs; 0 without pairs.
    n_pairs : int
        Pairs per step.
    """

    rows: IntArray
    first: IntArray
    chance: FloatArray
    mass: FloatArray
    gain: FloatArray
    n_pairs: int


def make_batches(
    X: Matrix, labels: Labels, loss: Loss[Any], batch_pairs: int | None = None
) -> QueryBatches:
    """Prepare a block of whole queries for ``ftrl_pass``.

    With ``labels.normalize="query"`` the loss of a query is the mean over its terms (or drawn
    pairs), with "none" their sum; both times the query's weight.

    Parameters
    ----------
    X : C-contiguous float array or SciPy CSR array
        Rows grouped by query.
    labels : Labels
    loss : Loss
        Needs ``prepare`` and ``evaluate``.
    batch_pairs : int, optional
        Pairs to draw of each query, each a list of two; by default a batch is a whole query.
    """
    if labels.normalize not in ("query", "none"):
        raise InputError(
            f"normalize={labels.normalize!r} needs all queries at once, and a stream has no end: "
            "use 'query' or 'none'"
        )
    if not loss.takes_edges:
        refuse_edges(labels, loss.name)
    plan = loss.prepare(labels)
    n_queries = len(labels.query_ptr) - 1
    given = labels.query_weight
    weight = np.ones(n_queries) if given is None else np.asarray(given, dtype=np.float64)
    active = np.flatnonzero(plan.scale)
    factor = np.ones(n_queries)
    if labels.normalize == "query":
        factor *= weight[active].sum()
    pairs = None
    if batch_pairs is not None:
        if labels.edges is not None:
            raise InputError(
                "batch_pairs draws pairs by their labels, so it cannot be combined with "
                "preferences: leave one out"
            )
        pairs = _index_pairs(X, labels, batch_pairs)
        factor = weight * pairs.gain
        active = active[pairs.gain[active] > 0.0]
        plan = _plan_of_pairs(loss, batch_pairs, labels.normalize)
    plan = loss.workspace(plan)  # scratch made anew for each query would cost queries × documents
    return QueryBatches(X, loss, plan, labels.query_ptr, factor, active, labels.offset, pairs)


def ftrl_pass(state: FTRLState, batches: QueryBatches, order: IntArray) -> float:
    """Take a step on each query of ``order``; return the mean loss before each step.

    Raises
    ------
    InputError
        If the loss is no longer finite: the rates are too large for gradients of this size.
    """
    if batches.X.shape[1] != state.n_features:
        raise InputError(
            f"the documents have {batches.X.shape[1]} features, the run {state.n_features}: grow "
            "the state first"
        )
    batch = (
        _SparseBatch(state, batches)
        if hasattr(batches.X, "indptr")
        else _DenseBatch(state, batches)
    )
    u, g = np.zeros(batches.X.shape[0]), np.zeros(batches.X.shape[0])
    gradient = _gradient_of_pairs(batches, state.seed) if batches.pairs else _gradient(batches)
    ptr, factor, offset = batches.query_ptr.tolist(), batches.factor.tolist(), batches.offset
    total = 0.0
    for q in order.tolist():
        begin, end = ptr[q], ptr[q + 1]
        batch.scores(begin, end, u)
        if offset is not None:
            u[begin:end] -= offset[begin:end]
        value = gradient(q, state.steps, u, g)
        if not math.isfinite(value):
            raise InputError(
                f"the loss is {value} after {state.steps:,} steps: the rates are too large for "
                "gradients of this size; lower eta0, or use normalize='query'"
            )
        total += value * factor[q]
        state.steps += 1
        batch.step(begin, end, g, factor[q])
        state.documents += end - begin
    return total / max(1, len(order))


class _DenseBatch:
    """Every feature takes part in every step."""

    def __init__(self, state: FTRLState, batches: QueryBatches) -> None:
        self.X = kernel_view(batches.X)
        self.state = state
        self.c = np.zeros(state.n_features)
        self.numbers = state.rule.numbers()
        kernels.catch_up_all(state.v, state.s, state.w, state.steps, *self.numbers)

    def scores(self, begin: int, end: int, u: FloatArray) -> None:
        kernels.dense_scores(self.X, begin, end, self.state.w, u)

    def step(self, begin: int, end: int, g: FloatArray, factor: float) -> None:
        s = self.state
        kernels.dense_step(
            self.X, begin, end, g, factor, self.c, s.v, s.s, s.w, s.steps, *self.numbers
        )


class _SparseBatch:
    """Only the features of a query's documents take part, each brought up to date when used."""

    def __init__(self, state: FTRLState, batches: QueryBatches) -> None:
        X = batches.X
        self.arrays = tuple(kernel_view(a) for a in (X.data, X.indices, X.indptr))
        self.state = state
        self.c = np.zeros(state.n_features)
        self.seen = np.zeros(state.n_features, dtype=np.int64)
        self.touched = np.zeros(state.n_features, dtype=np.int64)
        self.n_touched = 0
        self.numbers = state.rule.numbers()

    def scores(self, begin: int, end: int, u: FloatArray) -> None:
        s = self.state
        self.n_touched = kernels.sparse_scores(
            *self.arrays, begin, end, u,
            self.seen, self.touched, s.v, s.s, s.w, s.steps, *self.numbers,
        )  # fmt: skip

    def step(self, begin: int, end: int, g: FloatArray, factor: float) -> None:
        s = self.state
        kernels.sparse_step(
            *self.arrays, begin, end, g, factor, self.c, self.touched, self.n_touched,
            s.v, s.s, s.w, s.steps, *self.numbers,
        )  # fmt: skip


def _gradient(batches: QueryBatches) -> Any:
    evaluate, plan = batches.loss.evaluate, batches.plan

    def of_query(q: int, t: int, u: FloatArray, g: FloatArray) -> float:
        del t
        return float(evaluate(plan, q, q + 1, u, g))

    return of_query


def _gradient_of_pairs(batches: QueryBatches, seed: int) -> Any:
    pairs, ptr = batches.pairs, batches.query_ptr.tolist()
    assert pairs is not None  # checked by the caller
    evaluate, plan, n_pairs = batches.loss.evaluate, batches.plan, pairs.n_pairs
    drawn = np.zeros((n_pairs, 2), dtype=np.int64)
    pair_u, pair_g = np.zeros(2 * n_pairs), np.zeros(2 * n_pairs)

    def of_pairs(q: int, t: int, u: FloatArray, g: FloatArray) -> float:
        begin, end = ptr[q], ptr[q + 1]
        kernels.draw_pairs(
            pairs.rows, pairs.first, pairs.chance, pairs.mass, begin, end, seed, t, u, drawn, pair_u
        )
        value = float(evaluate(plan, 0, n_pairs, pair_u, pair_g))
        kernels.scatter_pairs(drawn, pair_g, begin, end, g)
        return value

    return of_pairs


def _plan_of_pairs(loss: Loss[Any], n_pairs: int, normalize: str) -> Plan:
    """Prepare a loss for lists of two documents, the first one better."""
    return loss.prepare(
        Labels(
            y=np.tile([1.0, 0.0], n_pairs),
            query_ptr=np.arange(0, 2 * n_pairs + 1, 2, dtype=np.int64),
            normalize=normalize,
        )
    )


def _index_pairs(X: Matrix, labels: Labels, n_pairs: int) -> DrawnPairs:
    ptr, y = labels.query_ptr, labels.y
    sizes = np.diff(ptr)
    query_of = np.repeat(np.arange(len(sizes)), sizes)
    rows = sort_within_queries(ptr, y, document_keys(X))  # whatever the order of the rows
    level, n_rows, n_queries = y[rows], len(y), len(sizes)
    starts = np.concatenate(([True], (level[1:] != level[:-1]) | (query_of[1:] != query_of[:-1])))
    first = np.maximum.accumulate(np.where(starts, np.arange(n_rows), 0))
    ones, given = np.ones(n_rows), labels.sample_weight
    lose = ones if given is None else np.asarray(given, dtype=np.float64)[rows]
    mass = np.concatenate(([0.0], np.cumsum(lose)))
    wins = lose * (mass[first] - mass[np.repeat(ptr[:-1], sizes)])
    gains = ones if labels.gain_weight is None else labels.gain_weight[rows]
    total = np.bincount(query_of, wins, minlength=n_queries)
    gained = np.bincount(query_of, wins * gains, minlength=n_queries)
    share = np.divide(wins * gains, gained[query_of], out=np.zeros(n_rows), where=wins * gains > 0)
    return DrawnPairs(
        rows=rows,
        first=first,
        chance=np.concatenate(([0.0], np.cumsum(share))),
        mass=np.empty(0) if given is None else mass,
        gain=np.divide(gained, total, out=np.zeros(n_queries), where=total > 0),
        n_pairs=int(n_pairs),
    )
