"""The pairwise squared loss of RankRLS: differences of scores should equal those of labels."""

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
    """Labels and weights of the documents."""

    y: FloatArray
    weight: FloatArray


class SquaredLoss(Loss[SquaredPlan]):
    """ℓ_q(u) = ½ ‖L(u − y)‖², where L centres query q.

    It equals the sum over all pairs, also of equal labels, of ((u_i − u_j) − (y_i − y_j))² divided
    by twice the number of documents. So queries of one level count, too, as their scores should be
    equal; only queries of a single document do not.
    """

    name: ClassVar[str] = "squared"
    n_atoms: ClassVar[int] = 1
    n_aux: ClassVar[int] = 1
    pair_steepness: ClassVar[float] = 2.0

    def prepare(self, labels: Labels) -> SquaredPlan:
        """Return the plan; a query has as many terms as documents."""
        y, ptr = labels.y, labels.query_ptr
        weight = np.ones(len(y)) if labels.sample_weight is None else labels.sample_weight
        if labels.gain_weight is not None:
            raise InputError(
                "the squared loss has no winners, to which gain_weight applies: use sample_weight "
                "or query_weight"
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
        """Fill the diagonal and the one atom of each document with its scaled weight."""
        del u  # the Hessian is the same everywhere
        rows = slice(int(plan.query_ptr[r0]), int(plan.query_ptr[r1]))
        weight = plan.scale[plan.cell[rows]] * plan.weight[rows]
        out.diag[rows] = out.atoms[rows, 0] = weight
        out.aux[r0:r1, 0] = np.bincount(plan.cell[rows] - r0, weight, minlength=r1 - r0)

    def product(
        self, plan: SquaredPlan, r0: int, r1: int, u: FloatArray, d: FloatArray, out: FloatArray
    ) -> None:
        """Fill the rows of queries [r0, r1) of the score Hessian times d, by centring d."""
        del u
        _evaluate(plan.query_ptr, plan.scale, np.zeros(len(d)), plan.weight, r0, r1, d, out)

    def fold(
        self, plan: SquaredPlan, r0: int, r1: int, aux: FloatArray, sums: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the factors of the centring from the weighted sums of the queries."""
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
