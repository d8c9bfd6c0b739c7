"""The same quadratic problem by columns, for long lists and sparse features.

Where few queries hold many documents, the Hessian XᵀDX − LᵀR − RᵀL need not be formed: coordinate
descent moves the scores of the documents instead, and a weight costs its column's entries twice.
Rows of little curvature are left out, and the rest of the scores fits a cache.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.designs.products import column_dot

MOST_SWEEPS = 60


@dataclass(frozen=True)
class ColumnModel:
    """H = AᵀA − LᵀR − RᵀL + diag(extra), A the weighted rows that count, by column.

    Attributes
    ----------
    values, rows, starts, ends : array
        Column j of A is ``values[starts[j]:ends[j]]`` at ``rows[starts[j]:ends[j]]``.
    n_rows : int
    left, right : array of shape (terms, features)
    extra : array
        What rows that were left out add to the diagonal.
    """

    values: AnyArray
    rows: AnyArray
    starts: IntArray
    ends: IntArray
    n_rows: int
    left: FloatArray
    right: FloatArray
    extra: FloatArray

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of H."""
        squares: FloatArray = _squares(self.values, self.starts, self.ends)
        return squares - 2.0 * np.sum(self.left * self.right, axis=0) + self.extra

    def minimise(
        self,
        c: FloatArray,
        w: FloatArray,
        above: FloatArray,
        below: FloatArray,
        ridge: FloatArray,
        *,
        accuracy: float = 1e-2,
    ) -> FloatArray:
        """Minimise ½ sᵀHs + cᵀs + penalty(w + s) over the step s.

        Stops when the largest move of a sweep over all weights is below ``accuracy`` times that of
        the first.
        """
        step: FloatArray = _descend(
            self.values,
            self.rows,
            self.starts,
            self.ends,
            np.zeros(self.n_rows),
            np.ascontiguousarray(self.left.T),
            np.ascontiguousarray(self.right.T),
            self.extra,
            self.diagonal,
            c,
            w,
            above,
            below,
            ridge,
            accuracy,
            MOST_SWEEPS,
        )
        return step


@kernel
def _descend(
    values, rows, starts, ends, z, left, right, extra, curve, c, w, above, below, ridge, accuracy,
    n_sweeps,
):  # fmt: skip
    n, n_terms = left.shape
    x = w.copy()
    on_left, on_right = np.zeros(n_terms), np.zeros(n_terms)
    active = np.ones(n, dtype=np.bool_)
    everything = True
    target = -1.0
    for sweep in range(n_sweeps):
        largest = 0.0
        for j in range(n):
            h = curve[j] + ridge[j]
            if h <= 0.0 or not (everything or active[j]):
                continue
            slope = c[j] + extra[j] * (x[j] - w[j])
            slope += column_dot(values, rows, starts[j], ends[j], z)
            for t in range(n_terms):
                slope -= left[j, t] * on_right[t] + right[j, t] * on_left[t]
            pull = curve[j] * x[j] - slope
            new = 0.0
            if pull > above[j]:
                new = (pull - above[j]) / h
            elif pull < -below[j]:
                new = (pull + below[j]) / h
            change = new - x[j]
            active[j] = new != 0.0
            if change != 0.0:
                x[j] = new
                for at in range(starts[j], ends[j]):
                    z[rows[at]] += change * values[at]
                for t in range(n_terms):
                    on_left[t] += change * left[j, t]
                    on_right[t] += change * right[j, t]
                largest = max(largest, abs(change) * np.sqrt(h))
        if target < 0.0:
            target = accuracy * largest
        if largest <= target and everything:
            break
        everything = largest <= target or sweep % 10 == 9
    return x - w


@kernel
def _squares(values, starts, ends):
    out = np.zeros(len(starts))
    for j in range(len(starts)):
        for at in range(starts[j], ends[j]):
            out[j] += np.float64(values[at]) * values[at]
    return out
