"""The same quadratic by columns, for long lists and sparse features.

Where few queries hold many documents, the Hessian XᵀDX − LᵀR − RᵀL need not be formed: coordinate
descent moves the scores of the documents instead, and a weight costs its column's entries twice.
A sample of the rows is enough, and its scores fit a cache.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from leanrank._typing import FloatArray
from leanrank.designs.base import WeightedColumns
from leanrank.penalties.base import Columns, Penalty
from leanrank.problem.base import QuadraticModel


@dataclass(frozen=True)
class ColumnModel(QuadraticModel):
    """A quadratic model whose Hessian is given by columns.

    Attributes
    ----------
    columns : Columns
    sampled : bool
        Whether some of the documents represent all.
    accuracy : float
        The minimum is found when the largest move of a sweep is below that times the first's.
    max_sweeps : int
    """

    columns: Columns
    sampled: bool = False
    accuracy: float = 0.1
    max_sweeps: int = 60

    @classmethod
    def build(
        cls, weighed: WeightedColumns, left: FloatArray, right: FloatArray, *, sampled: bool
    ) -> ColumnModel:
        """Make the model of AᵀA − LᵀR − RᵀL + diag(extra), factors of shape (terms, features)."""
        values, rows, starts, ends, squares, extra, n_rows = weighed
        diagonal = squares + extra - 2.0 * np.sum(left * right, axis=0)
        by_feature = np.ascontiguousarray(left.T), np.ascontiguousarray(right.T)
        return cls(
            Columns(values, rows, starts, ends, n_rows, *by_feature, extra, diagonal), sampled
        )

    def minimise(self, penalty: Penalty, c: FloatArray, w: FloatArray) -> FloatArray:
        """Return the step s that minimises ½ sᵀHs + cᵀs + penalty(w + s)."""
        return penalty.sweep_columns(self.columns, c, w, self.accuracy, self.max_sweeps)

    def damped(self, ridge: FloatArray) -> ColumnModel:
        """Return the model with ½ Σ_j ridge_j s_j² added."""
        extra, diagonal = self.columns.extra + ridge, self.columns.diagonal + ridge
        return replace(self, columns=self.columns._replace(extra=extra, diagonal=diagonal))
