"""The domination loss (Stevens, Bengio & Singer 2013) of documents against all lower levels.

For a document i at level k of its query, with Z_k the mass Σ_j m_j e^{u_j} of the documents j of
lower levels,

    ℓ_i(u) = log(1 + Z_k e^{−u_i}),

so a query takes one pass: the mass of each level, then one logarithm per document. With the softmax
weights r over the lower levels and π_i the probability that i is dominated, the Hessian of level k
is A Cov_r + Σ_i b_i (e_i − r)(e_i − r)ᵀ, A = Σ c_i π_i and b_i = c_i π_i (1 − π_i): a diagonal
minus two vectors per level. Level masses are stored as logarithms, which neither overflow nor
cancel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.losses import _domination_kernels as kernels
from leanrank.losses.base import (
    Curvature,
    Labels,
    Loss,
    Plan,
    mass_below,
    query_scale,
    sort_into_cells,
)

NONE = np.empty((0, 3))
EMPTY = np.empty(0)


@dataclass(frozen=True)
class DominationPlan(Plan):
    """The documents of each query by ascending level.

    Attributes
    ----------
    rows : array of int64
        Row numbers sorted by cell; a cell is one level of one query.
    row_ptr : array of int64
        Cell c holds ``rows[row_ptr[c]:row_ptr[c + 1]]``.
    mass : array
        Document weights m_j inside Z.
    gain : array
        Factor c_i of the term in which a document dominates: scale × weight × gain weight.
    """

    rows: IntArray
    row_ptr: IntArray
    mass: FloatArray
    gain: FloatArray


class DominationLoss(Loss[DominationPlan]):
    """Sum over dominating documents i of log(1 + Σ_{j ∈ D(i)} e^{u_j − u_i}).

    A margin Δ(i, j) = s(i) − s(j) is an offset s.
    """

    name: ClassVar[str] = "domination"
    n_atoms: ClassVar[int] = 2
    n_aux: ClassVar[int] = 3

    def prepare(self, labels: Labels) -> DominationPlan:
        """Return the plan: documents sorted by level, with their weights."""
        y, ptr = labels.y, labels.query_ptr
        n_queries = len(ptr) - 1
        query_of = np.repeat(np.arange(n_queries), np.diff(ptr))
        mass = np.ones(len(y)) if labels.sample_weight is None else labels.sample_weight
        levels, level_of = labels.find_levels()
        cells = sort_into_cells(level_of, len(levels), ptr)
        cell, cell_ptr = cells.cell, cells.cell_ptr
        dominating = (mass_below(cells, mass)[1] > 0)[cell]
        terms = np.bincount(query_of, mass * dominating, n_queries).astype(np.float64, copy=False)
        scale = query_scale(terms, labels.query_weight, labels.normalize)
        gain = scale[query_of]
        gain *= mass
        gain *= dominating
        if labels.gain_weight is not None:
            gain *= labels.gain_weight
        return DominationPlan(
            query_ptr=ptr,
            scale=scale,
            offset=labels.offset,
            cell=cell,
            cell_ptr=cell_ptr,
            rows=cells.rows,
            row_ptr=cells.row_ptr,
            mass=np.ascontiguousarray(mass, dtype=np.float64),
            gain=gain,
        )

    def evaluate(
        self, plan: DominationPlan, r0: int, r1: int, u: FloatArray, g: FloatArray
    ) -> float:
        """Return the value over queries [r0, r1) and fill their rows of the score gradient."""
        return self._sums(plan, r0, r1, u, kernels.VALUE, g)

    def curvature(
        self, plan: DominationPlan, r0: int, r1: int, u: FloatArray, out: Curvature
    ) -> None:
        """Fill the diagonal, the atoms (share of the level's mass, b_i) and the input of fold."""
        self._sums(plan, r0, r1, u, kernels.CURVATURE, out.diag, out.atoms, out.aux)

    def product(
        self, plan: DominationPlan, r0: int, r1: int, u: FloatArray, d: FloatArray, out: FloatArray
    ) -> None:
        """Fill the rows of queries [r0, r1) of the score Hessian times d."""
        kernels.product(*_arrays(plan), r0, r1, u, d, out)

    def fold(
        self, plan: DominationPlan, r0: int, r1: int, aux: FloatArray, sums: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the two vectors of each level from sums over levels."""
        left, right = (np.zeros((len(sums), sums.shape[2])) for _ in range(2))
        kernels.fold(plan.cell_ptr, r0, r1, aux, sums, left, right)
        return left, right

    def dual(self, plan: DominationPlan, r0: int, r1: int, u: FloatArray, a: float) -> float:
        """Return the dual value at q = a·p + (1 − a)·e_i, which is feasible when |Xᵀ a g| ≤ λ."""
        return self._sums(plan, r0, r1, u, kernels.DUAL, a=a) if a > 0.0 else 0.0

    @staticmethod
    def _sums(
        plan: DominationPlan,
        r0: int,
        r1: int,
        u: FloatArray,
        want: int,
        out: FloatArray = EMPTY,
        atoms: FloatArray = NONE,
        aux: FloatArray = NONE,
        a: float = 1.0,
    ) -> float:
        offset = EMPTY if plan.offset is None else plan.offset
        given = *_arrays(plan), r0, r1, u, want, out, atoms, aux, a, offset
        return float(kernels.sums(*given))

    def term_mass(self, plan: DominationPlan) -> FloatArray:
        """Return the sum of the factors of each query's terms, for bounds on the curvature."""
        n_queries = len(plan.query_ptr) - 1
        query_of = np.repeat(np.arange(n_queries), np.diff(plan.query_ptr))
        return np.bincount(query_of, plan.gain, n_queries).astype(np.float64, copy=False)

    def compiled(self, plan: DominationPlan) -> tuple[Any, tuple[AnyArray | None, ...]]:
        """Return the compiled ``evaluate`` and its leading arguments."""
        return kernels.evaluate, _arrays(plan)


def _arrays(plan: DominationPlan) -> tuple[AnyArray | None, ...]:
    return (plan.cell_ptr, plan.row_ptr, plan.rows, plan.mass, plan.gain)
