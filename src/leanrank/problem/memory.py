"""The problem with all documents in memory: X, a prepared loss, and an executor.

It maps the loss over fixed ranges of queries and the products over fixed blocks, and adds up in a
fixed order. The result is the same to the last bit for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numba
import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.designs.base import Block, Design, make_design
from leanrank.designs.dense import DenseDesign
from leanrank.designs.sparse import SparseDesign
from leanrank.errors import InputError
from leanrank.execution import Executor, add_up, cached_property
from leanrank.losses.base import Evaluated, Loss, Plan
from leanrank.penalties.base import Penalty
from leanrank.penalties.coordinate import coordinate_minimum
from leanrank.problem.base import Problem, QuadraticModel
from leanrank.problem.hessians import Hessians, Limits


@dataclass(frozen=True)
class _Point:
    """Scores, the loss of each range of queries there, and its gradient in the scores."""

    u: FloatArray
    parts: list[float]
    g: FloatArray
    duals: dict[float, float] = field(default_factory=dict)

    @cached_property
    def value(self) -> float:
        """The loss."""
        return float(add_up(self.parts))


class MemoryProblem(Problem):
    """Minimise over w the prepared loss at u = Xw − offset.

    Parameters
    ----------
    X : C-contiguous float array or SciPy CSR array, or a design
        Rows grouped by query.
    loss : Loss
    plan : Plan
        What ``loss.prepare`` returned for these rows.
    executor : Executor, optional
    limits : Limits, optional
    """

    def __init__(
        self,
        X: Matrix | Design,
        loss: Loss[Any],
        plan: Plan,
        executor: Executor | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.limits = Limits() if limits is None else limits
        self.executor: Executor = Executor() if executor is None else executor
        self.design = make_design(X, self.executor, plan.query_ptr)
        self.loss = loss
        self.plan = loss.workspace(plan)
        self.hessians = Hessians(self.design, loss, self.plan, self.executor, self.limits)
        self.ranges = self.hessians.ranges
        self.n_rows, self.n_features = self.design.n_rows, self.design.n_features
        self._point: _Point | None = None
        self._tried: _Point | None = None
        self._block: Block | None = None
        self._features: IntArray | None = None  # of the block
        self._step: tuple[FloatArray, FloatArray] | None = None
        self._last_product: tuple[FloatArray, FloatArray] | None = None  # a score gradient g, Xᵀg
        self._by_products = True  # while conjugate gradients are faster than a Hessian
        self._offset = None if plan.offset is None else kernel_view(plan.offset)

    # the point of the current iterate

    def at(self, w: FloatArray) -> float:
        """Move to weights w; return the loss there."""
        self._block = None  # its memory may be needed
        return self._arrive(w, self.design.matvec(w))

    def move_to(self, w: FloatArray) -> float:
        """Move to weights w and keep the working set; return the loss there.

        If all weights outside the set are zero, its columns give the scores.
        """
        inside = self._block is not None and np.count_nonzero(w) == np.count_nonzero(
            w[self._features]
        )
        block = self._block if inside else None
        return self._arrive(
            w, self.design.matvec(w) if block is None else block.matvec(w[self._features])
        )

    def _arrive(self, w: FloatArray, u: FloatArray) -> float:
        """Evaluate the loss at weights w, of which u are the scores before the offset."""
        if self._offset is not None:
            u -= self._offset
        self._point = self._point_at(u)
        self._tried = self._step = None
        if not w.any():
            self.value_at_zero = self._point.value
        return self._point.value

    @property
    def point(self) -> _Point:
        """Where the problem is."""
        assert self._point is not None, "a solver must begin with at()"
        return self._point

    def gradient(self) -> FloatArray:
        """Return the loss's gradient in all weights."""
        return self._whole_gradient.copy()

    @property
    def _whole_gradient(self) -> FloatArray:
        """Xᵀg of all features, computed once for each score gradient."""
        g = self.point.g
        if self._last_product is None or self._last_product[0] is not g:
            self._last_product = g, self.design.rmatvec(g)
        return self._last_product[1]

    def dual(self, a: float) -> float:
        """Return the dual value at the feasible point that a·g defines."""
        duals = self.point.duals  # often asked for a working set and then for all features
        if a not in duals:
            duals[a] = self._dual(self.point, a)
        return duals[a]

    @property
    def norms(self) -> tuple[FloatArray, FloatArray]:
        """Length of each column, and of the numbers that its products add up."""
        return self.design.column_norms, self.design.summed_norms

    @property
    def score_slope(self) -> float:
        """Length of the score gradient."""
        return float(np.linalg.norm(self.point.g))

    def focus(self, features: IntArray) -> None:
        """Choose the features of the working set and bring their columns together."""
        self._block = None  # its memory may be needed
        self._block, self._features = self.design.take(features), features
        self._step = None

    @property
    def block(self) -> Block:
        """The columns of the working set; all of them before ``focus``."""
        if self._block is None:
            self.focus(np.arange(self.n_features))
        assert self._block is not None
        return self._block

    def focused_gradient(self) -> FloatArray:
        """Return the gradient in the weights of the working set."""
        if self._block is None or self._features is None:
            return self.gradient()
        if self._block.reads_all:
            return self._whole_gradient[self._features]
        return self._block.rmatvec(self.point.g)

    def focused_hessian(self) -> FloatArray:
        """Return the exact Hessian in the weights of the working set."""
        return self.hessian(self.block, self.point.u, exact=True)

    def try_step(self, step: FloatArray, t: float) -> float:
        """Return the loss after t times a step of the working set; the rows keep X times it."""
        if self._step is None or self._step[0] is not step:
            columns = self.design if self._block is None else self._block
            self._step = step, columns.matvec(step)
        self._tried = None  # its memory may be needed
        u = t * self._step[1]
        u += self.point.u
        self._tried = self._point_at(u)
        return self._tried.value

    def directional_derivative(self) -> float:
        """Return the derivative of the loss along the step where ``try_step`` looked last."""
        assert self._tried is not None, "try_step() comes first"
        assert self._step is not None
        return float(self._tried.g @ self._step[1])

    def curvature_along_step(self) -> float:
        """Return the second derivative there; 0 where the loss has none."""
        assert self._tried is not None, "try_step() comes first"
        assert self._step is not None
        d = self._step[1]
        return float(self.hessians.times(self._tried.u, d) @ d) if self.loss.smooth else 0.0

    def accept(self) -> None:
        """Move to where ``try_step`` looked last."""
        assert self._tried is not None, "try_step() comes first"
        self._point, self._tried, self._step = self._tried, None, None

    @cached_property
    def _sweeps(self) -> _CoordinateSweeps:
        return _CoordinateSweeps(self.design, self.loss, self.plan)

    def curvature_bounds(self, *, paper: bool = False) -> FloatArray:
        """Bound the loss's curvature in each weight, for any scores."""
        return self._sweeps.bounds(paper)

    def sweep(self, penalty: Penalty, bounds: FloatArray, w: FloatArray, times: int) -> float:
        """Lower one weight of w after the other by its bound, in place; return the loss there."""
        u, g = self.point.u.copy(), self.point.g.copy()
        for _ in range(times):
            self._sweeps.sweep(penalty, bounds, w, u, g)
        self._point = self._point_at(u)
        return self._point.value

    # at any scores, for methods with several points

    def summed(self, function: Callable[..., Any], *more: Any) -> Any:
        """Return a function of the problem; of one in parts, the sum over these."""
        return function(self, *more)

    def scores(self, w: FloatArray) -> FloatArray:
        """Compute u = Xw − offset."""
        u = self.design.matvec(w)
        if self._offset is not None:
            u -= self._offset
        return u

    def _point_at(self, u: FloatArray) -> _Point:
        g = np.zeros(self.plan.n_rows)
        parts = self.executor.map(
            lambda r: self.loss.evaluate(self.plan, r[0], r[1], u, g), self.ranges
        )
        return _Point(u, parts, g)

    def evaluate(self, u: FloatArray) -> tuple[float, FloatArray]:
        """Compute the loss and its gradient with respect to the scores."""
        point = self._point_at(u)
        return point.value, point.g

    def product(self, v: FloatArray) -> FloatArray:
        """Compute the Hessian in the weights of the working set times v, without forming it."""
        return self.hessians.product(self.block, self.point.u, v)

    @cached_property
    def value_at_zero(self) -> float:
        """The loss of a model without weights, the reference for a loss that vanishes."""
        return self.evaluate(self.scores(np.zeros(self.n_features)))[0]

    def dual_at(self, u: FloatArray, a: float) -> float:
        """Compute the dual value at scores u and the feasible point that a·g defines."""
        return self._dual(self._point_at(u), a)

    def _dual(self, point: _Point, a: float) -> float:
        def dual(part: tuple[tuple[int, int], float]) -> float:
            r, value = part
            return self.loss.dual_at(self.plan, *r, Evaluated(point.u, value, point.g), a)

        return float(
            add_up(self.executor.map(dual, list(zip(self.ranges, point.parts, strict=True))))
        )

    def quadratic(self, penalty: Penalty, *, thin: int | None = None) -> QuadraticModel:
        """Model the loss as a quadratic in the weights of the working set."""
        if not self._by_products:
            return self._quadratic(penalty, thin)

        def form() -> QuadraticModel:
            self._by_products = False
            return self._quadratic(penalty, thin)

        model = self.hessians.iterated(
            self.block, self._features, self.point.u, penalty, thin, form
        )
        return self._quadratic(penalty, thin) if model is None else model

    def _quadratic(self, penalty: Penalty, thin: int | None) -> QuadraticModel:
        return self.hessians.quadratic(self.block, self._features, self.point.u, penalty, thin)

    def sampled(self, thin: int | None) -> tuple[bool, bool]:
        """Return whether such a Hessian is of a sample, and has the diagonal of all documents."""
        sample = self.hessians.sample(self.block, self._features, thin)
        return sample.n_picked is not None or sample.lacking is not None, sample.lacking is None

    def hessian(
        self, block: Block, u: FloatArray, *, exact: bool = False, thin: int | None = None
    ) -> FloatArray:
        """Compute the Hessian with respect to the weights of a block's features."""
        return self.hessians.hessian(block, self._features, u, exact=exact, thin=thin)


class _CoordinateSweeps:
    """X by column, and the loss as a compiled function, for descent by bounds on the curvature."""

    def __init__(self, design: Design, loss: Loss[Any], plan: Plan) -> None:
        self.columns = _by_column(design)
        self.query_ptr = plan.query_ptr
        self.n_queries = len(plan.query_ptr) - 1
        self.query_of = np.repeat(np.arange(self.n_queries), np.diff(plan.query_ptr))
        self.mass = loss.term_mass(plan)
        self.evaluate, self.arrays = loss.compiled(plan)

    def bounds(self, paper: bool) -> FloatArray:
        """Bound the curvature of the loss in each weight, for any scores."""
        values, rows, pointers = self.columns
        beta, sizes = np.zeros(len(pointers) - 1), np.diff(self.query_ptr)
        for j, (begin, end) in enumerate(pairwise(pointers.tolist())):
            x = values[begin:end].astype(np.float64)
            query = self.query_of[rows[begin:end]] if len(rows) else self.query_of
            starts = np.flatnonzero(np.diff(query, prepend=-1))
            if not len(starts):
                continue
            own = query[starts]
            low, high = np.minimum.reduceat(x, starts), np.maximum.reduceat(x, starts)
            some = np.diff(np.append(starts, len(x))) < sizes[own]  # other documents have a zero
            low[some], high[some] = np.minimum(low[some], 0.0), np.maximum(high[some], 0.0)
            spread = np.maximum(low**2, high**2) if paper else (high - low) ** 2 / 4.0
            beta[j] = self.mass[own] @ spread
        return beta

    def sweep(
        self, penalty: Penalty, bounds: FloatArray, w: FloatArray, u: FloatArray, g: FloatArray
    ) -> None:
        """Lower one weight after the other; scores and score gradient follow."""
        _sweep(
            self.evaluate, self.arrays, *self.columns, self.query_of, self.n_queries, bounds,
            penalty.coordinate_table(), w, u, g,
        )  # fmt: skip


def _by_column(design: Design) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Return X by column: values, rows and where columns begin; no rows when X is dense."""
    if isinstance(design, SparseDesign):
        return design.by_column
    if not isinstance(design, DenseDesign):
        raise InputError("coordinate descent needs an X that is stored: use solver='newton'")
    values = np.ascontiguousarray(design.X.T).ravel()
    pointers = np.arange(design.n_features + 1, dtype=np.int64) * design.n_rows
    return values, np.zeros(0, dtype=np.int32), pointers


@numba.njit(nogil=True, error_model="numpy")
def _sweep(
    evaluate: Any, arrays: Any, values: AnyArray, rows: AnyArray, pointers: AnyArray,
    query_of: IntArray, n_queries: int, beta: FloatArray, table: Any, w: FloatArray, u: FloatArray,
    g: FloatArray,
) -> None:  # fmt: skip
    above, below, ridge = table
    for r in range(len(w)):
        if beta[r] <= 0.0:
            continue
        begin, end = pointers[r], pointers[r + 1]
        slope = 0.0
        for at in range(begin, end):
            slope += values[at] * g[rows[at] if len(rows) > 0 else at - begin]
        z = w[r] - slope / beta[r]
        new = coordinate_minimum(z, beta[r], above[r], below[r], ridge[r])
        step = new - w[r]
        if step == 0.0:
            continue
        w[r] = new
        if len(rows) == 0:
            for at in range(begin, end):
                u[at - begin] += step * values[at]
            evaluate(*arrays, 0, n_queries, u, g)
        else:  # a sparse column touches only its own queries
            last = -1
            for at in range(begin, end):
                u[rows[at]] += step * values[at]
            for at in range(begin, end):
                q = query_of[rows[at]]
                if q != last:
                    evaluate(*arrays, q, q + 1, u, g)
                    last = q
