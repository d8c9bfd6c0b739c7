"""RankRLS as an ordinary ridge regression: ½‖Aw − b‖² + alpha/2 · ‖w‖².

A row of A is a document less the weighted mean of its query, times the root of the document's
weight in the objective; b is the same of the labels. In the paper's notation A = X̂ᵀ, b = ŷ. The
centring is a projection within each query, so leaving out a query is leaving out its rows.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._jit import kernel, kernel_view
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.execution import cached_property
from leanrank.losses.squared import SquaredPlan


@dataclass(frozen=True)
class Centred:
    """The rows A and the target b, computed from X on demand.

    Attributes
    ----------
    X : C-contiguous float array or SciPy CSR array
        Rows grouped by query.
    query_ptr : array of int64
    root : array
        The root of each document's weight in the objective; 0 if it does not take part.
    target : array
        b.
    """

    X: Matrix
    query_ptr: IntArray
    root: FloatArray
    target: FloatArray

    @classmethod
    def from_plan(cls, X: Matrix, plan: SquaredPlan) -> Centred:
        """Centre the data of a prepared squared loss."""
        root = np.sqrt(plan.scale[plan.cell] * plan.weight)
        wanted = plan.y if plan.offset is None else plan.y + plan.offset
        column = np.ascontiguousarray(wanted, dtype=np.float64)[:, None]
        target = _centred_rows(column, kernel_view(plan.query_ptr), root)
        return cls(X, kernel_view(plan.query_ptr), root, target[:, 0])

    @property
    def n_rows(self) -> int:
        """Number of documents."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether X is a SciPy CSR array."""
        return not isinstance(self.X, np.ndarray)

    @cached_property
    def query_of(self) -> IntArray:
        """The query of each document."""
        return np.repeat(np.arange(len(self.query_ptr) - 1), np.diff(self.query_ptr))

    @cached_property
    def only_query(self) -> int:
        """The only query whose target is not zero; −1 if there are several.

        Without it there is nothing to fit, so every left-out weight of that query is 0.
        """
        queries = self.query_of[self.target != 0]
        return int(queries[0]) if len(queries) and queries.min() == queries.max() else -1

    @cached_property
    def mass(self) -> FloatArray:
        """Total weight of each query's documents."""
        n_queries = len(self.query_ptr) - 1
        return np.asarray(np.bincount(self.query_of, self.root**2, n_queries), dtype=np.float64)

    @cached_property
    def unit(self) -> FloatArray:
        """The direction within each query that centring removes, of length 1; 0 if none."""
        length = np.sqrt(self.mass)
        return np.divide(
            self.root, length[self.query_of], out=np.zeros(self.n_rows), where=self.root > 0
        )

    def rows(self, r0: int, r1: int, chosen: IntArray | None = None) -> FloatArray:
        """Compute the rows of A of the queries [r0, r1): of the chosen columns, or of all."""
        begin, end = int(self.query_ptr[r0]), int(self.query_ptr[r1])
        part = self.X[begin:end]
        if chosen is not None:
            part = part.take(chosen, axis=1) if isinstance(part, np.ndarray) else part[:, chosen]
        dense = kernel_view(part) if isinstance(part, np.ndarray) else part.toarray()
        ptr = self.query_ptr[r0 : r1 + 1] - begin
        rows: FloatArray = _centred_rows(dense, ptr, self.root[begin:end])
        return rows

    def features(self, chosen: IntArray) -> FloatArray:
        """Compute some columns of A, one per row of the result."""
        return np.ascontiguousarray(self.block(chosen).T)

    def block(self, chosen: IntArray) -> FloatArray:
        """Compute some columns of A, in the order of ``chosen``."""
        if self.is_sparse:
            some = self._by_column[:, chosen].toarray(order="C")
        else:
            some = np.take(self.X, chosen, axis=1)
        block: FloatArray = _centred_rows(some, self.query_ptr, self.root)
        return block

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Compute Aᵀ times a vector that is centred within each query."""
        if self.is_sparse:
            return np.asarray(self.X.T @ (self.root * values))
        return self.rows(0, len(self.query_ptr) - 1).T @ values

    @cached_property
    def _by_column(self) -> Any:
        from scipy.sparse import csc_array

        return self.X.tocsc() if self.is_sparse else csc_array(self.X)

    @property
    def columns(self) -> tuple[Any, Any, Any]:
        """X by column without its zeros: values, rows, starts."""
        by_column = self._by_column
        return by_column.data, by_column.indices, by_column.indptr

    def products(self) -> FloatArray:
        """Compute X Aᵀ: the inner products of each document with each centred one."""
        if self.is_sparse:
            scaled = self.X.multiply(self.root[:, None]).tocsr()
            return self.project((scaled @ self.X.T).toarray()).T
        rows = self.rows(0, len(self.query_ptr) - 1)
        products: FloatArray = self.X.astype(np.float64) @ rows.T
        return products

    def project(self, values: FloatArray) -> FloatArray:
        """Subtract each query's mean from a scaled vector, or from the columns of a matrix."""
        unit = self.unit if values.ndim == 1 else self.unit[:, None]
        filled = np.flatnonzero(np.diff(self.query_ptr))
        sums = np.zeros((len(self.query_ptr) - 1, *values.shape[1:]))
        if len(filled):
            sums[filled] = np.add.reduceat(unit * values, self.query_ptr[filled], axis=0)
        centred: FloatArray = values - unit * sums[self.query_of]
        return centred


def reduced(
    triangle: FloatArray,
    centred: Centred,
    ranges: Iterable[tuple[int, int]],
    chosen: IntArray | None = None,
) -> FloatArray:
    """Return the triangle that has the same products as another one and the rows [A, b] below it.

    They are computed by ranges of queries; of A, the chosen columns or all.
    """
    from scipy.linalg.lapack import dgeqrf

    for r0, r1 in ranges:
        target = centred.target[centred.query_ptr[r0] : centred.query_ptr[r1]]
        stacked = np.vstack([triangle, np.column_stack([centred.rows(r0, r1, chosen), target])])
        triangle = np.triu(dgeqrf(stacked)[0][: stacked.shape[1]])
    return triangle


@kernel
def _centred_rows(X: AnyArray, query_ptr: IntArray, root: FloatArray) -> FloatArray:
    """Centre the rows of each query and scale them.

    The first row of a query is subtracted before the mean: a constant column gives exact zeros, and
    a large constant costs no digits.
    """
    n = X.shape[1]
    mean, out = np.empty(n), np.empty(X.shape)
    for q in range(len(query_ptr) - 1):
        begin, end = query_ptr[q], query_ptr[q + 1]
        mean[:] = 0.0
        mass = 0.0
        for i in range(begin, end):
            weight = root[i] * root[i]
            mass += weight
            for j in range(n):
                out[i, j] = np.float64(X[i, j]) - X[begin, j]
                mean[j] += weight * out[i, j]
        if mass > 0.0:
            mean /= mass
        for i in range(begin, end):
            for j in range(n):
                out[i, j] = root[i] * (out[i, j] - mean[j])
    return out
