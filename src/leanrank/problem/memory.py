"""The problem that stands between a solver and a loss: X, a prepared loss, and an executor.

A solver asks the problem for values, gradients and curvature; the problem maps the loss over fixed
ranges of queries and the products over fixed blocks, and adds up in a fixed order. The result is
the same to the last bit for any number of threads.
"""

from __future__ import annotations

from functools import cached_property
from itertools import groupby, pairwise
from typing import Any, TypeAlias

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import FloatArray, Matrix
from leanrank.designs import products as _products
from leanrank.designs.base import Block, Curvature, Design, make_design
from leanrank.errors import InputError
from leanrank.execution import Executor, SerialExecutor, add_up, query_ranges, row_blocks
from leanrank.losses.base import Plan
from leanrank.problem.column_model import ColumnModel
from leanrank.problem.gram_model import GramModel
from leanrank.problem.laplacian import hessian_by_products

_Piece: TypeAlias = tuple[tuple[int, int], tuple[int, int]]

CELL_SUM_BYTES = 32 << 20
"""Largest temporary array of cell sums; longer ranges of queries are cut."""

GRAM_COPIES, FEWEST_GRAM = 3, 2_048
"""Matrices alive while a Hessian is added up, and features for which it is always formed."""

LANE_CELLS = 1 << 22
"""Cells of all the Gram matrices that are added up side by side."""

FEWEST_BY_COLUMNS, MOST_CELLS_BY_COLUMNS = 1_024, 64
"""Features from which, and levels of queries up to which, a quadratic model may go by columns."""

LONG_LIST = 4_096
"""Documents a query, on average, from which the least of them may be dropped from a Hessian."""

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Relative error of a sum of many terms."""

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
        self.design = make_design(X, self.executor, plan.query_ptr)
        self.loss = loss
        self.plan = plan
        self.ranges = query_ranges(plan.query_ptr)
        self.lazy_gradient: Any = None
        self._thin_plans: dict[int, Any] = {}
        self._offset = None if plan.offset is None else kernel_view(plan.offset)

    @property
    def n_features(self) -> int:
        """How many features there are."""
        return self.design.n_features

    @property
    def largest_gram(self) -> int:
        """Features up to which a Hessian is formed; its copies then take no more memory than X."""
        return max(FEWEST_GRAM, int(np.sqrt(self.design.n_bytes / (8 * GRAM_COPIES))))

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

    def product(self, block: Block, u: FloatArray, v: FloatArray) -> FloatArray:
        """Compute the Hessian of a block's features times v, without forming it."""
        d, out = block.matvec(v), np.zeros(self.plan.n_rows)
        self.executor.map(
            lambda r: self.loss.product(self.plan, r[0], r[1], u, d, out), self.ranges
        )
        return block.rmatvec(out)

    @cached_property
    def value_at_zero(self) -> float:
        """The loss of a model without weights: what a loss that vanishes is compared with."""
        return self.evaluate(self.scores(np.zeros(self.n_features)))[0]

    def gradient_scale(self, g: FloatArray) -> FloatArray:
        """Return the most that each feature's gradient can be at a score gradient of this size."""
        with np.errstate(over="ignore"):
            scale = self.design.column_norms * float(np.linalg.norm(g))
        if not np.isfinite(scale).all():
            raise InputError(
                f"feature {int(np.argmin(np.isfinite(scale)))} has values too large for products "
                "with them: bring features to a smaller scale"
            )
        return np.where(scale > 0, scale, 1.0)

    def rounding(self, w: FloatArray, value: float, g: FloatArray) -> float:
        """Estimate the rounding in value and gradient: what their sums add up, times ε."""
        terms = float(np.abs(w) @ self.design.summed_norms) * float(np.linalg.norm(g))
        return ROUNDING * (abs(value) + terms)

    def dual(self, u: FloatArray, a: float) -> float:
        """Compute the dual value at the feasible point that a·g defines."""
        parts = self.executor.map(
            lambda r: self.loss.dual(self.plan, r[0], r[1], u, a), self.ranges
        )
        return float(add_up(parts))

    def by_columns(self, block: Block) -> bool:
        """Whether sparse features and few long lists make columns cheaper than outer products."""
        if not hasattr(self.loss, "curvature"):
            return False
        few_cells = int(self.plan.cell_ptr[-1]) <= MOST_CELLS_BY_COLUMNS
        long_lists = self.plan.n_rows >= LONG_LIST * (len(self.plan.query_ptr) - 1)
        large = block.n_features > FEWEST_BY_COLUMNS
        return (
            large and block.weighs_columns and few_cells and long_lists and self.loss.n_atoms <= 2
        )

    def quadratic(
        self, block: Block, u: FloatArray, *, dropped: float = 0.0, thin: int | None = None
    ) -> GramModel | ColumnModel:
        """Model the loss around scores u as a quadratic in the weights of a block's features.

        ``dropped`` and ``thin`` as for ``hessian``. A model holds until the next one of the same
        block is made, which may take over its memory.
        """
        if not self.by_columns(block):
            return GramModel(self.hessian(block, u, dropped=dropped, thin=thin))
        plan = self.plan if thin is None else self._thinned(thin)
        curvature, aux = self._curvature(plan, u, False, dropped)
        left_out = curvature.diag < max(curvature.cut, np.finfo(np.float64).tiny)
        columns, sums, extra = block.weighed(curvature, left_out, len(aux))
        left, right = self.loss.fold(plan, 0, len(plan.query_ptr) - 1, aux, sums)
        total = float(curvature.diag[left_out].sum())
        variance = extra[0] - (extra[1] ** 2 / total if total > 0.0 else 0.0)
        return ColumnModel(*columns, left, right, np.maximum(variance, 0.0))

    def hessian(
        self,
        block: Block,
        u: FloatArray,
        *,
        exact: bool = False,
        dropped: float = 0.0,
        thin: int | None = None,
    ) -> FloatArray:
        """Compute the Hessian with respect to the weights of a block's features.

        Parameters
        ----------
        block : Block
        u : array
            The scores.
        exact : bool
            Whether to use float64 even if X is float32, and all pairs of very many levels.
        dropped : float
            Share of the curvature, in the rows that have least, that a sparse block may see on the
            diagonal only. Most documents of a long list are far below the ones that matter; an
            outer product for each would cost most of the time and change a step by little.
        thin : int, optional
            Let a sample of about so many documents stand for each larger cell, if the loss can: a
            rough Hessian for a rough step.
        """
        if not hasattr(self.loss, "curvature"):
            return hessian_by_products(
                self.loss, self.plan, self.ranges, block, u, self.executor, exact
            )
        plan = self.plan if thin is None else self._thinned(thin)
        if not block.sparse or plan.n_rows < LONG_LIST * (len(plan.query_ptr) - 1):
            dropped = 0.0
        curvature, aux = self._curvature(plan, u, exact, dropped)
        parts = self.executor.map(
            lambda lane: self._add_pieces(plan, block, curvature, aux, lane),
            _lanes(self._pieces(plan, block), block.n_features),
        )
        gram, half = add_up([p[0] for p in parts]), add_up([p[1] for p in parts])
        shared: dict[tuple[int, int], FloatArray] = {}
        for _, _, open_sums in parts:  # queries so long that lanes share them
            for r, sums in open_sums.items():
                shared[r] = shared[r] + sums if r in shared else sums
        for r, sums in shared.items():
            half += self._low_rank(plan, r, aux, sums)
        hessian = block.finish(gram, half + half.T)
        if curvature.cut > 0.0:  # what is on the diagonal only is a variance, not a square
            small = np.where(curvature.diag < curvature.cut, curvature.diag, 0.0)
            total = float(small.sum())
            if total > 0.0:
                hessian[np.diag_indices(len(hessian))] -= block.square_sums(small) / total
        return hessian

    def _curvature(
        self, plan: Any, u: FloatArray, exact: bool, dropped: float
    ) -> tuple[Curvature, FloatArray]:
        loss = self.loss
        diag = np.zeros(plan.n_rows)
        atoms = np.zeros((plan.n_rows, loss.n_atoms))
        aux = np.zeros((int(plan.cell_ptr[-1]), loss.n_aux))
        self.executor.map(
            lambda r: loss.curvature(plan, r[0], r[1], u, diag, atoms, aux), self.ranges
        )
        cut = _products.small_weights(diag, dropped) if dropped > 0 else 0.0
        thinned = plan is not self.plan
        return Curvature(diag, atoms, plan.cell, cut, exact, thinned), aux

    def _pieces(self, plan: Plan, block: Block) -> list[_Piece]:
        """Cut the rows into ranges of whole queries with not too many cells,
        and those into blocks.
        """
        affordable = CELL_SUM_BYTES // (8 * self.loss.n_atoms * max(1, block.n_features))
        pieces = []
        for r in query_ranges(plan.cell_ptr, min(CELLS_PER_RANGE, max(1, affordable))):
            begin, end = int(plan.query_ptr[r[0]]), int(plan.query_ptr[r[1]])
            pieces += [(r, (begin + low, begin + high)) for low, high in row_blocks(end - begin)]
        return pieces

    def _add_pieces(
        self,
        plan: Plan,
        block: Block,
        curvature: Curvature,
        aux: FloatArray,
        pieces: list[_Piece],
    ) -> tuple[FloatArray, FloatArray, dict[tuple[int, int], FloatArray]]:
        """Add up consecutive pieces; sums of queries that are not all here are handed on."""
        n = block.n_features
        gram, half = np.zeros((n, n)), np.zeros((n, n))
        handed_on: dict[tuple[int, int], FloatArray] = {}
        for r, group in groupby(pieces, key=lambda piece: piece[0]):
            first, last = int(plan.cell_ptr[r[0]]), int(plan.cell_ptr[r[1]])
            sums = np.zeros((last - first, self.loss.n_atoms, n))
            begin = end = -1
            for _, rows in group:
                block.add_rows(curvature, rows, first, gram, sums)
                begin, end = rows[0] if begin < 0 else begin, rows[1]
            if (begin, end) == (int(plan.query_ptr[r[0]]), int(plan.query_ptr[r[1]])):
                half += self._low_rank(plan, r, aux, sums)
            else:
                handed_on[r] = sums
        return gram, half, handed_on

    def _low_rank(
        self, plan: Any, r: tuple[int, int], aux: FloatArray, sums: FloatArray
    ) -> FloatArray:
        left, right = self.loss.fold(plan, r[0], r[1], aux, sums)
        product: FloatArray = left.T @ right
        return product

    def _thinned(self, most: int) -> Any:
        """Give a plan in which each cell has about so many documents at most;
        keep it for next time.
        """
        if not hasattr(self.loss, "thin"):
            return self.plan
        if most not in self._thin_plans:
            kept = np.minimum(np.bincount(self.plan.cell), most).sum()
            few = 2 * kept < self.plan.n_rows  # or else a sample saves nothing
            self._thin_plans[most] = self.loss.thin(self.plan, most) if few else self.plan
        return self._thin_plans[most]


def _lanes(pieces: list[_Piece], n_features: int) -> list[list[_Piece]]:
    """Share consecutive pieces among a few lanes, fewer when each costs a large matrix."""
    n_lanes = min(len(pieces), max(2, min(8, LANE_CELLS // max(1, n_features * n_features))))
    cuts = [len(pieces) * lane // n_lanes for lane in range(n_lanes + 1)]
    return [pieces[low:high] for low, high in pairwise(cuts)]
