"""The problem that stands between a solver and a loss: X, a prepared loss, and an executor.

A solver asks the problem for values, gradients and curvature; the problem maps the loss over fixed
ranges of queries and the products over fixed blocks, and adds up in a fixed order. The result is
the same to the last bit for any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import FloatArray, Matrix
from leanrank.execution import Executor, SerialExecutor, add_up, query_ranges
from leanrank.losses.base import Plan
from leanrank.solvers import _products
from leanrank.solvers.design import Block, Design, add_in_lanes, make_design

CELL_SUM_BYTES = 32 << 20
"""Largest temporary array of cell sums; longer ranges of queries are cut."""

DROPPED_CURVATURE = 1e-3
"""Share of the curvature, in the rows that have least, that sparse Hessians see on their diagonal only.

Most documents of a long list are far below the ones that matter; an outer product for each of them
would cost most of the time and change the step by little.
"""

CELLS_PER_RANGE = 2_048
"""Cells in one unit of work on the low-rank part of a Hessian."""


class Problem:
    """Minimise over w the prepared loss at u = Xw − offset.

    Parameters
    ----------
    X : C-contiguous float array or SciPy CSR array, or a design
        Rows grouped by query.
    loss : Loss
    plan : Plan
        What ``loss.prepare`` returned for these rows.
    executor : Executor, optional
    """

    def __init__(
        self, X: Matrix | Design, loss: Any, plan: Plan, executor: Executor | None = None
    ) -> None:
        self.executor: Executor = SerialExecutor() if executor is None else executor
        self.design: Design = X if hasattr(X, "rmatvec") else make_design(X, self.executor)
        self.loss = loss
        self.plan = plan
        self.ranges = query_ranges(plan.query_ptr)
        self._offset = None if plan.offset is None else kernel_view(plan.offset)

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self.design.n_features

    def scores(self, w: FloatArray) -> FloatArray:
        """Compute u = Xw − offset."""
        u = self.design.matvec(w)
        if self._offset is not None:
            u -= self._offset
        return u

    def evaluate(self, u: FloatArray) -> tuple[float, FloatArray]:
        """Compute the loss and its gradient with respect to the scores."""
        g = np.zeros(self.plan.n_rows)
        parts = self.executor.map(
            lambda r: self.loss.evaluate(self.plan, r[0], r[1], u, g), self.ranges
        )
        return float(add_up(parts)), g

    def along(self, u: FloatArray, d: FloatArray, t: float) -> FloatArray:
        """Compute value, slope and curvature of the loss at u + t·d."""
        parts = self.executor.map(
            lambda r: np.array(self.loss.along(self.plan, r[0], r[1], u, d, t)), self.ranges
        )
        total: FloatArray = add_up(parts)
        return total

    def dual(self, u: FloatArray, a: float) -> float:
        """Compute the dual value at the feasible point that a·g defines."""
        parts = self.executor.map(
            lambda r: self.loss.dual(self.plan, r[0], r[1], u, a), self.ranges
        )
        return float(add_up(parts))

    def hessian(self, block: Block, u: FloatArray, *, exact: bool = False) -> FloatArray:
        """Compute the Hessian with respect to the weights of a block's features.

        In the precision of X, which is enough to steer; with ``exact`` in float64.
        """
        plan, loss = self.plan, self.loss
        anchor = np.repeat(plan.query_ptr[:-1], np.diff(plan.query_ptr))
        diag = np.zeros(plan.n_rows)
        atoms = np.zeros((plan.n_rows, loss.n_atoms))
        aux = np.zeros((int(plan.cell_ptr[-1]), loss.n_aux))
        self.executor.map(
            lambda r: loss.curvature(plan, r[0], r[1], u, diag, atoms, aux), self.ranges
        )
        cut = 0.0
        if block.drops_rows and not exact:
            cut = _products.small_weights(diag, DROPPED_CURVATURE)
            atoms[diag < cut] = 0.0
        shape = (block.n_features, block.n_features)

        def low_rank(r: tuple[int, int]) -> FloatArray:
            rows = int(plan.query_ptr[r[0]]), int(plan.query_ptr[r[1]])
            first, last = int(plan.cell_ptr[r[0]]), int(plan.cell_ptr[r[1]])
            sums = block.cell_sums(*rows, atoms, plan.cell, first, last - first, anchor)
            left, right = loss.fold(plan, r[0], r[1], aux, sums)
            product: FloatArray = left.T @ right
            return product

        affordable = CELL_SUM_BYTES // (8 * loss.n_atoms * max(1, block.n_features))
        pieces = query_ranges(plan.cell_ptr, min(CELLS_PER_RANGE, max(1, affordable)))
        half = add_in_lanes(self.executor, low_rank, pieces, shape)
        return block.gram(diag, anchor, exact=exact, cut=cut) - (half + half.T)
