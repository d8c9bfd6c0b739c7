"""The problem with all documents in memory: X, a prepared loss, and an executor.

It maps the loss over fixed ranges of queries and the products over fixed blocks, and adds up in a
fixed order. The result is the same to the last bit for any number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import groupby, pairwise
from typing import Any, TypeAlias

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import BoolArray, FloatArray, IntArray, Matrix
from leanrank.designs import products as _products
from leanrank.designs.base import Block, Curvature, Design, make_design
from leanrank.execution import (
    ROWS_PER_RANGE,
    Executor,
    SerialExecutor,
    add_up,
    query_ranges,
    row_blocks,
)
from leanrank.losses.base import Loss, Plan
from leanrank.penalties.base import Penalty
from leanrank.problem.base import Problem, QuadraticModel, checked_scale
from leanrank.problem.column_model import ColumnModel
from leanrank.problem.coordinate_sweeps import CoordinateSweeps
from leanrank.problem.gram_model import GramModel
from leanrank.problem.laplacian import hessian_by_products
from leanrank.problem.product_model import ProductModel

_Piece: TypeAlias = tuple[tuple[int, int], tuple[int, int]]

ROUNDING = 4.0 * float(np.finfo(np.float64).eps)
"""Relative error of a sum of many terms."""


@dataclass(frozen=True)
class Limits:
    """Where one way of computing gives way to another; set by ``benchmarks domination``.

    Attributes
    ----------
    cell_sum_bytes : int
        Largest temporary array of cell sums; longer ranges of queries are cut.
    cells_per_range : int
        Cells in one unit of work on the low-rank part of a Hessian.
    lane_cells : int
        Cells of all the Gram matrices that are added up side by side.
    gram_copies, fewest_gram : int
        Matrices alive while a Hessian is added up, and features for which it is always formed.
    fewest_by_columns, most_cells_by_columns : int
        Features from which, and cells up to which, a quadratic model may go by columns.
    long_list : int
        Documents per query, on average, from which the least of them may be dropped from a Hessian.
    worth_skipping : float
        Share of the stored entries above which a gradient is computed anew.
    piece_bytes, piece_share, fewest_columns : int
        Size of the columns that are multiplied by a Hessian at once, in bytes and as a part of X,
        and their least number; set, as the next, by ``benchmarks pairwise``.
    shared_rows, wide : int
        Rows of a query from which threads share its columns, and the fewest for each.
    """

    cell_sum_bytes: int = 32 << 20
    cells_per_range: int = 2_048
    lane_cells: int = 1 << 22
    gram_copies: int = 3
    fewest_gram: int = 2_048
    fewest_by_columns: int = 1_024
    most_cells_by_columns: int = 64
    long_list: int = 4_096
    worth_skipping: float = 0.6
    piece_bytes: int = 32 << 20
    piece_share: int = 8
    fewest_columns: int = 8
    shared_rows: int = 2 * ROWS_PER_RANGE
    wide: int = 64


@dataclass(frozen=True)
class _Point:
    """Scores, the loss there and its gradient in the scores."""

    u: FloatArray
    value: float
    g: FloatArray
    duals: dict[float, float] = field(default_factory=dict)


@dataclass(frozen=True)
class _Sample:
    """The queries of a Hessian.

    Attributes
    ----------
    ranges : list of pairs
    share : float
        Their share of the loss.
    seen : array of bool, optional
        The columns whose spread their documents show; None for all.
    """

    ranges: list[tuple[int, int]]
    share: float = 1.0
    seen: BoolArray | None = None


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
        self.executor: Executor = SerialExecutor() if executor is None else executor
        self.design = make_design(X, self.executor, plan.query_ptr)
        self.loss = loss
        self.plan = loss.workspace(plan)
        self.ranges = query_ranges(plan.query_ptr)
        self.n_rows, self.n_features = self.design.n_rows, self.design.n_features
        self._point: _Point | None = None
        self._tried: _Point | None = None
        self._block: Block | None = None
        self._features: IntArray | None = None  # of the block
        self._step: tuple[FloatArray, FloatArray] | None = None
        self._known: tuple[FloatArray, FloatArray] | None = None  # a score gradient, and Xᵀ of it
        self._partly: tuple[FloatArray, FloatArray, BoolArray] | None = None  # the same of some
        self._all = _Sample(self.ranges)
        self._samples: dict[int, _Sample] = {}
        self._offset = None if plan.offset is None else kernel_view(plan.offset)

    # the point of the current iterate

    def at(self, w: FloatArray) -> float:
        """Move to weights w; return the loss there."""
        u = self.scores(w)
        self._point = _Point(u, *self.evaluate(u))
        self._tried = self._block = self._step = None
        if not w.any():
            self.value_at_zero = self._point.value
        return self._point.value

    @property
    def point(self) -> _Point:
        """Where the problem is."""
        assert self._point is not None, "a solver must begin with at()"
        return self._point

    def gradient(
        self, skip: Callable[[FloatArray, FloatArray], BoolArray] | None = None
    ) -> FloatArray:
        """Return the gradient; entries that may be skipped are as they were, if that saves time.

        Between two score gradients g and g₀ a feature's gradient moves by at most ‖x_j‖·‖g − g₀‖.
        """
        g, design = self.point.g, self.design
        if skip is not None and self._known is not None and design.skips_columns:
            before, c = self._known
            reach = design.column_norms * float(np.linalg.norm(g - before))
            needed, sizes = ~skip(c, reach), design.column_sizes
            if sizes[needed].sum() <= self.limits.worth_skipping * sizes.sum():
                c = c.copy()
                c[needed] = design.rmatvec(g, np.flatnonzero(needed))
                self._partly = g, c.copy(), needed
                return c
        return self._whole_gradient(g).copy()

    def _whole_gradient(self, g: FloatArray) -> FloatArray:
        """Compute Xᵀg of all features, once for each score gradient."""
        if self._known is None or self._known[0] is not g:
            self._known = g, self.design.rmatvec(g)
        return self._known[1]

    def _focused_gradient(self, g: FloatArray) -> FloatArray:
        """Compute Xᵀg of the working set."""
        if self._block is None:
            return self._whole_gradient(g).copy()
        if self._block.reads_all:
            return self._whole_gradient(g)[self._features]
        if self.design.skips_columns:  # where each column is added up on its own
            for known in (self._partly, self._known):
                if known is not None and known[0] is g:
                    return self._completed(g, *known[1:])
        return self._block.rmatvec(g)

    def _completed(
        self, g: FloatArray, c: FloatArray, exact: BoolArray | None = None
    ) -> FloatArray:
        """Pick the working set's entries from Xᵀg, of which those not ``exact`` are computed."""
        assert self._features is not None
        out = c[self._features]
        if exact is not None:
            missing = ~exact[self._features]
            out[missing] = self.design.rmatvec(g, self._features[missing])
        return out

    def dual(self, a: float) -> float:
        """Return the dual value at the feasible point that a·g defines."""
        known = self.point.duals  # often asked for a working set and then for all features
        if a not in known:
            known[a] = self.dual_at(self.point.u, a)
        return known[a]

    def rounding(self, w: FloatArray, value: float) -> float:
        """Estimate the rounding in a value and the gradient: what their sums add up, times ε."""
        terms = float(np.abs(w) @ self.design.summed_norms) * float(np.linalg.norm(self.point.g))
        return ROUNDING * (abs(value) + terms)

    def gradient_scale(self) -> FloatArray:
        """Return the most that each feature's gradient can be at this size of score gradient."""
        return checked_scale(self.design.column_norms, float(np.linalg.norm(self.point.g)))

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
        return self._focused_gradient(self.point.g)

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
        self._tried = _Point(u, *self.evaluate(u))
        return self._tried.value

    def tried_gradient(self) -> FloatArray:
        """Return the gradient in the working set where ``try_step`` looked last."""
        assert self._tried is not None, "try_step() comes first"
        return self._focused_gradient(self._tried.g)

    def slope(self) -> float:
        """Return the loss's slope along the step where ``try_step`` looked last."""
        assert self._tried is not None, "try_step() comes first"
        assert self._step is not None
        return float(self._tried.g @ self._step[1])

    def bend(self) -> float:
        """Return its curvature there; 0 where the loss has none."""
        assert self._tried is not None, "try_step() comes first"
        assert self._step is not None
        d = self._step[1]
        return float(self._times(self._tried.u, d) @ d) if self.loss.smooth else 0.0

    def accept(self) -> None:
        """Move to where ``try_step`` looked last."""
        assert self._tried is not None, "try_step() comes first"
        self._point, self._tried, self._step = self._tried, None, None

    @cached_property
    def _sweeps(self) -> CoordinateSweeps:
        return CoordinateSweeps(self.design, self.loss, self.plan)

    def curvature_bounds(self, *, paper: bool = False) -> FloatArray:
        """Bound the loss's curvature in each weight, whatever the scores."""
        return self._sweeps.bounds(paper)

    def sweep(self, penalty: Penalty, bounds: FloatArray, w: FloatArray, times: int) -> float:
        """Lower one weight of w after the other by its bound, in place; return the loss there."""
        u, g = self.point.u.copy(), self.point.g.copy()
        for _ in range(times):
            self._sweeps.sweep(penalty, bounds, w, u, g)
        self._point = _Point(u, *self.evaluate(u))
        return self._point.value

    @property
    def largest_gram(self) -> int:
        """Features up to which a Hessian is formed; its copies then take no more memory than X."""
        return max(
            self.limits.fewest_gram,
            int(np.sqrt(self.design.n_bytes / (8 * self.limits.gram_copies))),
        )

    # the same of any scores, for methods that keep several points

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

    def _times(self, u: FloatArray, d: FloatArray) -> FloatArray:
        """Compute the score Hessian at u times d."""
        out = np.zeros(self.plan.n_rows)
        self.executor.map(
            lambda r: self.loss.product(self.plan, r[0], r[1], u, d, out), self.ranges
        )
        return out

    def product(self, block: Block, u: FloatArray, v: FloatArray) -> FloatArray:
        """Compute the Hessian of a block's features times v, without forming it."""
        return block.rmatvec(self._times(u, block.matvec(v)))

    @cached_property
    def value_at_zero(self) -> float:
        """The loss of a model without weights: what a loss that vanishes is compared with."""
        return self.evaluate(self.scores(np.zeros(self.n_features)))[0]

    def dual_at(self, u: FloatArray, a: float) -> float:
        """Compute the dual value at scores u and the feasible point that a·g defines."""
        parts = self.executor.map(
            lambda r: self.loss.dual(self.plan, r[0], r[1], u, a), self.ranges
        )
        return float(add_up(parts))

    def by_columns(self, block: Block) -> bool:
        """Return whether sparse features and few long lists make columns cheaper than products."""
        if not self.loss.offers("curvature"):
            return False
        few_cells = int(self.plan.cell_ptr[-1]) <= self.limits.most_cells_by_columns
        long_lists = self.plan.n_rows >= self.limits.long_list * (len(self.plan.query_ptr) - 1)
        large = block.n_features > self.limits.fewest_by_columns
        return (
            large and block.weighs_columns and few_cells and long_lists and self.loss.n_atoms <= 2
        )

    def quadratic(
        self, penalty: Penalty, *, dropped: float = 0.0, thin: int | None = None
    ) -> QuadraticModel:
        """Model the loss as a quadratic in the weights of the working set.

        By columns where that is cheaper, by the Hessian if it fits memory, else by products.
        """
        block, u = self.block, self.point.u
        if self.by_columns(block) and penalty.offers("sweep_columns"):
            return self._column_model(block, u, dropped)
        formed = self.loss.offers("curvature") or self.loss.offers("products")
        if formed and block.n_features <= self.largest_gram:
            hessian = self.hessian(block, u, dropped=dropped, thin=thin)
            return GramModel(hessian, sampled=self._sample(thin) is not self._all)
        return ProductModel(partial(self.product, block, u))

    def _column_model(self, block: Block, u: FloatArray, dropped: float) -> ColumnModel:
        plan = self.plan
        curvature, aux = self._curvature(self.ranges, u, False, dropped)
        left_out = curvature.diag < max(curvature.cut, np.finfo(np.float64).tiny)
        columns, sums, extra = block.weighed(curvature, left_out, len(aux))
        left, right = self.loss.fold(plan, 0, len(plan.query_ptr) - 1, aux, sums)
        total = float(curvature.diag[left_out].sum())
        variance = extra[0] - (extra[1] ** 2 / total if total > 0.0 else 0.0)
        # what is left of the model's fall goes with the square of the last moves
        accuracy = float(np.sqrt(dropped))
        return ColumnModel.build(columns, left, right, np.maximum(variance, 0.0), accuracy)

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
            Share of the curvature, in the rows that have least, that a sparse block may add to the
            diagonal only. The outer products of most documents of a long list take most of the
            time and hardly change a step.
        thin : int, optional
            Use a sample: queries with about this many documents.
        """
        sample = self._sample(thin)
        if not self.loss.offers("curvature"):
            hessian = hessian_by_products(
                self.loss, self.plan, sample.ranges, block, u, self.executor, exact, self.limits
            )
            return hessian / sample.share
        plan = self.plan
        if not block.sparse or plan.n_rows < self.limits.long_list * (len(plan.query_ptr) - 1):
            dropped = 0.0
        curvature, aux = self._curvature(sample.ranges, u, exact, dropped)
        queries = [(0, len(plan.query_ptr) - 1)] if sample.seen is None else sample.ranges
        pieces = [piece for r in queries for piece in self._pieces(plan, block, r)]
        parts = self.executor.map(
            lambda lane: self._add_pieces(plan, block, curvature, aux, lane),
            _lanes(pieces, block.n_features, self.limits.lane_cells),
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
        return hessian / sample.share

    def _curvature(
        self, ranges: list[tuple[int, int]], u: FloatArray, exact: bool, dropped: float
    ) -> tuple[Curvature, FloatArray]:
        loss, plan = self.loss, self.plan
        diag = np.zeros(plan.n_rows)
        atoms = np.zeros((plan.n_rows, loss.n_atoms))
        aux = np.zeros((int(plan.cell_ptr[-1]), loss.n_aux))
        self.executor.map(lambda r: loss.curvature(plan, r[0], r[1], u, diag, atoms, aux), ranges)
        cut = _products.small_weights(diag, dropped) if dropped > 0 else 0.0
        return Curvature(diag, atoms, plan.cell, cut, exact), aux

    def _pieces(self, plan: Plan, block: Block, queries: tuple[int, int]) -> list[_Piece]:
        """Cut queries into ranges with not too many cells, and their rows into blocks."""
        affordable = self.limits.cell_sum_bytes // (
            8 * self.loss.n_atoms * max(1, block.n_features)
        )
        pieces = []
        most = min(self.limits.cells_per_range, max(1, affordable))
        for low, high in query_ranges(plan.cell_ptr[queries[0] : queries[1] + 1], most):
            r = queries[0] + low, queries[0] + high
            begin, end = int(plan.query_ptr[r[0]]), int(plan.query_ptr[r[1]])
            pieces += [(r, (begin + a, begin + b)) for a, b in row_blocks(end - begin)]
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

    def _sample(self, thin: int | None) -> _Sample:
        """Choose the queries of a Hessian; all of them unless a sample shows every column.

        A column of which some queries have less than half of their share of its squares would be
        taken for one with next to no curvature.
        """
        if thin is None:
            return self._all
        if thin not in self._samples:
            self._samples[thin] = self._draw(thin)
        sample = self._samples[thin]
        if sample.seen is None:
            return sample
        seen = sample.seen if self._features is None else sample.seen[self._features]
        return sample if seen.all() else self._all

    def _draw(self, thin: int) -> _Sample:
        """Take the first queries of every range.

        A sample of more than half of the documents saves nothing.
        """
        plan, design, ptr = self.plan, self.design, self.plan.query_ptr
        part = min(thin / max(1, plan.n_rows), 1.0)
        ranges = [(a, a + max(1, round(part * (b - a)))) for a, b in self.ranges]
        n_rows = sum(int(ptr[b] - ptr[a]) for a, b in ranges)
        weight = plan.scale * np.diff(ptr)
        share = sum(float(weight[a:b].sum()) for a, b in ranges) / float(weight.sum())
        if 2 * n_rows >= plan.n_rows or share == 0.0:
            return self._all
        squares = self.executor.map(design.squares, [(int(ptr[a]), int(ptr[b])) for a, b in ranges])
        if squares[0] is None:
            return self._all
        seen = 2 * plan.n_rows * add_up(squares) >= n_rows * design.column_norms**2
        return _Sample(ranges, share, seen)


def _lanes(pieces: list[_Piece], n_features: int, cells: int) -> list[list[_Piece]]:
    """Share consecutive pieces among a few lanes, fewer when each costs a large matrix."""
    n_lanes = min(len(pieces), max(2, min(8, cells // max(1, n_features * n_features))))
    cuts = [len(pieces) * lane // n_lanes for lane in range(n_lanes + 1)]
    return [pieces[low:high] for low, high in pairwise(cuts)]
