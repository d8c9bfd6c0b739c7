"""The pairwise squared loss of RankRLS: within each query, scores should differ as labels do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leanrank._jit import kernel, pair_function
from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import informative_queries
from leanrank.errors import InputError
from leanrank.losses.base import Curvature, Labels, Loss, Plan, query_scale


@dataclass(frozen=True)
class SquaredPlan(Plan):
    """Labels and document weights beside the queries."""

    y: FloatArray
    weight: FloatArray


class SquaredLoss(Loss[SquaredPlan]):
    """ℓ_q(u) = ½ ‖L(u − y)‖², L the centring of query q.

    It equals the sum over all pairs of ((u_i − u_j) − (y_i − y_j))² divided by twice the number of
    documents, pairs of equal labels included: so a query of one level counts (its scores should be
    equal), and only queries of a single document do not.
    """

    name: ClassVar[str] = "squared"
    n_atoms: ClassVar[int] = 1
    n_aux: ClassVar[int] = 1
    pair_steepness: ClassVar[float] = 2.0

    def prepare(self, labels: Labels) -> SquaredPlan:
        """Count the documents of each query; a document of weight 2 counts twice."""
        y, ptr = labels.y, labels.query_ptr
        weight = np.ones(len(y)) if labels.sample_weight is None else labels.sample_weight
        if labels.gain_weight is not None:
            raise InputError(
                "gain_weight is the weight of documents that dominate others, which the squared "
                "loss does not distinguish: use sample_weight or query_weight"
            )
        n_queries = len(ptr) - 1
        query_of = np.repeat(np.arange(n_queries), np.diff(ptr))
        mass = np.bincount(query_of, weight, minlength=n_queries)
        present = np.bincount(query_of, weight > 0, minlength=n_queries)
        terms = np.where((present > 1) | (mass > 1), mass, 0.0)
        if not informative_queries(np.where(weight > 0, y, np.nan), ptr).any():
            terms = np.zeros(n_queries)  # one level per query: nothing to learn
        return SquaredPlan(
            query_ptr=ptr,
            scale=query_scale(terms, labels.query_weight, labels.normalize),
            offset=labels.offset,
            cell=query_of,
            cell_ptr=np.arange(n_queries + 1),
            y=y,
            weight=np.asarray(weight, dtype=np.float64),
        )

    def evaluate(self, plan: SquaredPlan, r0: int, r1: int, u: FloatArray, g: FloatArray) -> float:
        """Return the value over queries [r0, r1) and fill their rows of the score gradient."""
        return float(_evaluate(plan.query_ptr, plan.scale, plan.y, plan.weight, r0, r1, u, g))

    def curvature(self, plan: SquaredPlan, r0: int, r1: int, u: FloatArray, out: Curvature) -> None:
        """Fill the diagonal and the one atom of each document: both are its scaled weight."""
        del u  # the Hessian is the same everywhere
        rows = slice(int(plan.query_ptr[r0]), int(plan.query_ptr[r1]))
        weight = plan.scale[plan.cell[rows]] * plan.weight[rows]
        out.diag[rows] = out.atoms[rows, 0] = weight
        out.aux[r0:r1, 0] = np.bincount(plan.cell[rows] - r0, weight, minlength=r1 - r0)

    def product(
        self, plan: SquaredPlan, r0: int, r1: int, u: FloatArray, d: FloatArray, out: FloatArray
    ) -> None:
        """Fill the rows of queries [r0, r1) of the score Hessian times d: d, centred."""
        del u
        _evaluate(plan.query_ptr, plan.scale, np.zeros(len(d)), plan.weight, r0, r1, d, out)

    def fold(
        self, plan: SquaredPlan, r0: int, r1: int, aux: FloatArray, sums: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Turn the queries' weighted sums into the factors of the centring."""
        mass = aux[r0:r1, 0]
        half = np.divide(0.5, mass, out=np.zeros_like(mass), where=mass > 0)
        return sums[:, 0], sums[:, 0] * half[:, None]

    def pair_slope(self) -> Any:
        """Return the compiled (gap − z)² of one pair, whose labels differ, and its slope."""
        return pair_function(_slope)


def _slope(z: float, gap: float) -> tuple[float, float]:
    return (gap - z) ** 2, -2.0 * (gap - z)


@kernel
def _evaluate(
    query_ptr: IntArray, scale: FloatArray, y: FloatArray, weight: FloatArray, r0: int, r1: int,
    u: FloatArray, g: FloatArray,
) -> float:  # fmt: skip
    value = 0.0
    for q in range(r0, r1):
        begin, end = query_ptr[q], query_ptr[q + 1]
        mass = 0.0
        total = 0.0
        for i in range(begin, end):
            mass += weight[i]
            total += weight[i] * (u[i] - y[i])
        mean = total / mass if mass > 0.0 else 0.0
        squares = 0.0
        for i in range(begin, end):
            residual = u[i] - y[i] - mean
            g[i] = scale[q] * weight[i] * residual
            squares += weight[i] * residual * residual
        value += 0.5 * scale[q] * squares
    return value
