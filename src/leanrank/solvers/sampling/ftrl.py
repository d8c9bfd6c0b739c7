"""Follow the regularised leader over mini-batches of one query (Cheng et al. 2018).

With g_t the gradient of the t-th batch and σ_t = 1/η_t − 1/η_{t−1},

    v_t = v_{t−1} + g_t − σ_t w_t,    w_{t+1} = −η_t · S(v_t, λ_t),

where S is the soft threshold: a weight is exactly zero while |v| is within the threshold. Rates by
feature are η = γ / √(ρ + Σ g²), uniform rates γ / √t. The threshold is λ for the whole run
(``per_step=False``, as published), so it matters less in longer runs; or λ·t, with which w
converges to the optimum of mean loss + λ‖w‖₁.

A step takes time linear in the non-zeros of its batch, whatever the number of features.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.designs.dense import dense_rmatvec
from leanrank.errors import InputError
from leanrank.losses.base import Labels, Loss, Plan, reject_edges
from leanrank.solvers.sampling import _ftrl_kernels as kernels

move_weight = kernels.move
"""The kernel that takes a step in one weight."""


class FTRLRule(NamedTuple):
    """The parameters of a step, in the order of the arguments of kernels.

    Attributes
    ----------
    alpha : float
        λ.
    gamma, rho : float
        The rate is γ/√(ρ + Σ g²), or γ/√t if uniform.
    uniform : bool
        Whether all features have the same rate ("Nonfea").
    per_step : bool
        Whether the threshold is λ times the number of steps.
    """

    alpha: float
    gamma: float = 1.0
    rho: float = 1.0
    uniform: bool = False
    per_step: bool = False


@dataclass
class FTRLState:
    """The complete state of a run; a run that continues from it gives the same bits.

    Attributes
    ----------
    rule : FTRLRule
    v, w : array of shape (n_features,)
        ``w`` does not include the latest steps in which a feature had no gradient: see ``weights``.
    s : array of shape (n_features,)
        Σ g² of each feature; with uniform rates, the last step that ``v`` and ``w`` include.
    steps, documents : int
        Batches and documents so far.
    epoch : int
        Passes completed.
    seed : int
        Seed of the order of queries, which depends on ``seed`` and ``epoch`` only.
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
        """Return the state before the first step, with zero weights.

        >>> FTRLState.start(FTRLRule(0.1), 3).weights().tolist()
        [0.0, 0.0, 0.0]
        """
        v, s, w = (np.zeros(n_features) for _ in range(3))
        return cls(rule, v, s, w, seed=seed)

    def grow(self, n_features: int) -> None:
        """Add features with zero weights."""
        more = np.zeros(n_features - len(self.w))
        self.v, self.s, self.w = (np.concatenate([a, more]) for a in (self.v, self.s, self.w))

    def weights(self) -> FloatArray:
        """Return the weights after all steps so far."""
        w = self.w.copy()
        if not (self.rule.uniform or self.rule.per_step):
            return w  # a step does not change features without a gradient
        v, s = self.v.copy(), self.s.copy()
        kernels.catch_up_all(v, s, w, self.steps, *self.rule)
        return w


@dataclass(frozen=True)
class QueryBatches:
    """Documents in batches of one query, with a prepared loss.

    Attributes
    ----------
    X : C-contiguous float array or SciPy CSR array
        Rows grouped by query.
    loss : Loss
    plan : Plan
        The plan of the loss for these rows.
    query_ptr : array of int64
    factor : array
        Factor of each query's gradient that makes it independent of other queries in the block.
    active : array of int64
        The queries with information.
    offset : array, optional
    """

    X: Matrix
    loss: Loss[Any]
    plan: Plan
    query_ptr: IntArray
    factor: FloatArray
    active: IntArray
    offset: FloatArray | None = None

    def gradient_at_zero(self) -> FloatArray:
        """Return the sum of the gradients of all active queries at zero weights."""
        n_rows = self.X.shape[0]
        u, g = np.zeros(n_rows), np.zeros(n_rows)
        if self.offset is not None:
            u -= self.offset
        self.loss.evaluate(self.plan, 0, len(self.factor), u, g)
        g *= np.repeat(self.factor, np.diff(self.query_ptr))
        if isinstance(self.X, np.ndarray):
            return dense_rmatvec(kernel_view(self.X), g, 0, n_rows)
        return np.asarray(self.X.T @ g, dtype=np.float64)


def make_batches(X: Matrix, labels: Labels, loss: Loss[Any]) -> QueryBatches:
    """Return a block of whole queries for ``ftrl_pass``.

    The loss of a query is the mean of its terms with ``labels.normalize="query"``, their sum with
    "none", times the query's weight.

    Parameters
    ----------
    X : C-contiguous float array or SciPy CSR array
        Rows grouped by query.
    labels : Labels
    loss : Loss
        Offers ``prepare`` and ``evaluate``.
    """
    reject_edges(labels, loss)
    plan = loss.prepare(labels)
    n_queries = len(labels.query_ptr) - 1
    given = labels.query_weight
    weight = np.ones(n_queries) if given is None else np.asarray(given, dtype=np.float64)
    active = np.flatnonzero(plan.scale)
    factor = np.ones(n_queries)
    if labels.normalize == "query":
        factor *= weight[active].sum()
    plan = loss.workspace(plan)  # memory for all queries at once, not anew for each
    return QueryBatches(X, loss, plan, labels.query_ptr, factor, active, labels.offset)


def ftrl_pass(state: FTRLState, batches: QueryBatches, order: IntArray) -> float:
    """Take a step on each query of ``order``; return the mean loss before each step.

    Raises
    ------
    InputError
        If the loss is no longer finite: the rates are too large for gradients of this size.
    """
    u, g = np.zeros(batches.X.shape[0]), np.zeros(batches.X.shape[0])
    prepare = _dense_steps if isinstance(batches.X, np.ndarray) else _sparse_steps
    score, step = prepare(state, batches.X, u, g)
    evaluate, plan = batches.loss.evaluate, batches.plan
    ptr, factor, offset = batches.query_ptr.tolist(), batches.factor.tolist(), batches.offset
    total = 0.0
    for q in order.tolist():
        begin, end = ptr[q], ptr[q + 1]
        n_touched = score(begin, end)
        if offset is not None:
            u[begin:end] -= offset[begin:end]
        value = float(evaluate(plan, q, q + 1, u, g))
        if not math.isfinite(value):
            raise InputError(
                f"the loss is {value} after {state.steps:,} steps: the rates are too large for "
                "gradients of this size; lower eta0, or use normalize='query'"
            )
        total += value * factor[q]
        state.steps += 1
        step(begin, end, factor[q], n_touched)
        state.documents += end - begin
    return total / max(1, len(order))


def _dense_steps(state: FTRLState, X: Matrix, u: FloatArray, g: FloatArray) -> tuple[Any, Any]:
    """Return two functions, for dense rows: one scores a range of rows, one takes a step on it."""
    X, c = kernel_view(X), np.zeros(len(state.w))
    v, s, w, rule = state.v, state.s, state.w, state.rule
    kernels.catch_up_all(v, s, w, state.steps, *rule)

    def score(begin: int, end: int) -> int:
        kernels.dense_scores(X, begin, end, w, u)
        return len(w)

    def step(begin: int, end: int, factor: float, n_touched: int) -> None:
        kernels.dense_step(X, begin, end, g, factor, c, v, s, w, state.steps, *rule)

    return score, step


def _sparse_steps(state: FTRLState, X: Matrix, u: FloatArray, g: FloatArray) -> tuple[Any, Any]:
    """Return the two functions for sparse rows; features are brought up to date when used."""
    rows, c = [kernel_view(a) for a in (X.data, X.indices, X.indptr)], np.zeros(len(state.w))
    seen, touched = np.zeros((2, len(state.w)), dtype=np.int64)
    v, s, w, rule = state.v, state.s, state.w, state.rule

    def score(begin: int, end: int) -> int:
        n_touched: int = kernels.sparse_scores(
            *rows, begin, end, u, seen, touched, v, s, w, state.steps, *rule
        )
        return n_touched

    def step(begin: int, end: int, factor: float, n_touched: int) -> None:
        kernels.sparse_step(
            *rows, begin, end, g, factor, c, touched, n_touched, v, s, w, state.steps, *rule
        )

    return score, step
