"""Sweeps of coordinate descent over all documents at once, by bounds on the curvature."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numba
import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.designs.base import Design
from leanrank.designs.dense import DenseDesign
from leanrank.designs.sparse import SparseDesign
from leanrank.errors import InputError
from leanrank.losses.base import Loss, Plan
from leanrank.penalties.base import Penalty
from leanrank.penalties.coordinate import coordinate_minimum


class CoordinateSweeps:
    """X by column, and the loss as a compiled function of the scores."""

    def __init__(self, design: Design, loss: Loss[Any], plan: Plan) -> None:
        self.columns = _by_column(design)
        self.query_ptr = plan.query_ptr
        self.n_queries = len(plan.query_ptr) - 1
        self.query_of = np.repeat(np.arange(self.n_queries), np.diff(plan.query_ptr))
        self.mass = loss.term_mass(plan)
        self.evaluate, self.arrays = loss.compiled(plan)

    def bounds(self, paper: bool) -> FloatArray:
        """Bound the curvature of the loss in each weight, whatever the scores."""
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
