"""Quadratic models of a loss in the weights of a working set, of all documents or of a sample.

A Hessian XᵀDX − LᵀR − RᵀL is added up over pieces of rows: the outer products of rows, and the sums
over cells from which the loss makes L and R. A sample saves most of that, and its steps are nearly
as good. Where lists are short, it is one of whole queries. Of a long list, rows are picked in
proportion to their curvature, and each column keeps the sum of squares that it has over all rows: a
rare column may have few entries in a sample, but all of its curvature.

A pair of documents that must not trade places is an edge of a graph, and the score Hessian of a
pairwise loss is that graph's Laplacian: too dense to be written down, but quickly multiplied. Its
Xᵀ(HX) is added up over some queries and columns at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import groupby, pairwise
from typing import Any, TypeAlias

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.designs.base import Block, Design, WrittenBlock
from leanrank.execution import Executor, add_up, query_ranges, row_blocks
from leanrank.losses.base import Curvature, Loss, Plan
from leanrank.penalties.base import Blocks, Penalty
from leanrank.problem.base import QuadraticModel
from leanrank.problem.metric import estimated_blocks
from leanrank.problem.quadratic_models import ColumnModel, GramModel, ProductModel

_Ranges: TypeAlias = list[tuple[int, int]]
_Piece: TypeAlias = tuple[tuple[int, int], tuple[int, int]]

LANES = 8
"""Sums of products that run side by side."""


@dataclass(frozen=True)
class Limits:
    """Thresholds between ways of computing; set by ``benchmarks domination``.

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
    fewest_by_columns : int
        Features from which a quadratic model may go by columns.
    fewest_iterated, columns_per_product : int
        Features from which a smooth model of dense columns is first tried by conjugate gradients,
        and columns of a Hessian that cost about as much as one of their products; set by
        ``benchmarks pairwise``.
    fewest_products, metric_rows, kinked_accuracy : int, int, float
        Products that a Hessian of curves must cost before its model is first tried by them,
        documents from which their metric is computed, and the share of the first move at which to
        stop; set by ``benchmarks waits``.
    few_cells, long_list : int
        Cells up to which, and documents per query from which, a sample is one of documents.
    piece_bytes, piece_share, fewest_columns : int
        Size of the columns that are multiplied by a Hessian at once, in bytes and as a part of X,
        and their least number; set by ``benchmarks pairwise``.
    """

    cell_sum_bytes: int = 32 << 20
    cells_per_range: int = 2_048
    lane_cells: int = 1 << 22
    gram_copies: int = 3
    fewest_gram: int = 2_048
    fewest_by_columns: int = 1_024
    fewest_iterated: int = 256
    columns_per_product: int = 16
    fewest_products: int = 48
    metric_rows: int = 1_024
    kinked_accuracy: float = 0.03
    few_cells: int = 64
    long_list: int = 4_096
    piece_bytes: int = 32 << 20
    piece_share: int = 8
    fewest_columns: int = 8


@dataclass(frozen=True)
class _Sample:
    """The documents of a Hessian.

    Attributes
    ----------
    ranges : list of pairs
        Of queries.
    share : float
        Their share of the loss.
    lacking : array, optional
        The squares of each column that their documents do not show, as a column of which they have
        less than half of their share would be taken for one with next to no curvature.
    n_picked : int, optional
        How many of their documents to pick; None for all.
    """

    ranges: list[tuple[int, int]]
    share: float = 1.0
    lacking: FloatArray | None = None
    n_picked: int | None = None


class Hessians:
    """Hessians of a design and a prepared loss, for any block and scores.

    Parameters
    ----------
    design : Design
    loss : Loss
    plan : Plan
        With the loss's workspace.
    executor : Executor
    limits : Limits
    """

    def __init__(
        self, design: Design, loss: Loss[Any], plan: Plan, executor: Executor, limits: Limits
    ) -> None:
        self.design, self.loss, self.plan = design, loss, plan
        self.executor, self.limits = executor, limits
        self.ranges = query_ranges(plan.query_ptr)
        self._all = _Sample(self.ranges)
        self._samples: dict[int, _Sample] = {}

    def quadratic(
        self,
        block: Block,
        features: IntArray | None,
        u: FloatArray,
        penalty: Penalty,
        thin: int | None,
    ) -> QuadraticModel:
        """Model the loss as a quadratic in the weights of a block.

        By columns where that is cheaper, by the Hessian if it fits memory, else by products.
        """
        sample = self.sample(block, features, thin)
        if self._by_columns(block) and penalty.offers("sweep_columns"):
            n_picked = sample.n_picked
            if n_picked is None and thin is not None:
                # a rough minimum needs only few of the rows with small weights
                n_picked = round(self.plan.n_rows / ColumnModel.accuracy**2)
            curvature = self._curvature(sample.ranges, u, False)
            columns, sums = block.weighed(curvature, n_picked)
            low_rank = self._fold(curvature, sums)
            return ColumnModel.build(columns, *low_rank, sampled=n_picked is not None)
        formed = self.loss.offers("curvature") or self.loss.offers("products")
        if formed and block.n_features <= self.largest_gram:
            hessian = self.hessian(block, features, u, thin=thin)
            exact = sample.lacking is None
            return GramModel(hessian, sample is not self._all, exact_diagonal=exact)
        return ProductModel(partial(self.product, block, u))

    def iterated(
        self,
        block: Block,
        features: IntArray | None,
        u: FloatArray,
        penalty: Penalty,
        thin: int | None,
        form: Callable[[], QuadraticModel],
    ) -> QuadraticModel | None:
        """Return a model of as many products as a Hessian costs.

        ``form`` makes that of the Hessian. None where this one is cheap, or no metric is known in
        which the products of a penalty with kinks would be few.
        """
        if not isinstance(block, WrittenBlock):
            return None
        plan = self.plan
        sample, n, limits = self.sample(block, features, thin), block.n_features, self.limits
        affordable = n * n // (limits.columns_per_product * max(1, block.values_per_product))
        norms = self.design.column_norms if features is None else self.design.column_norms[features]
        if penalty.quadratic_part is None:
            if block.feature is None or affordable < limits.fewest_products:
                return None
            lacking = np.zeros(n)
            if sample.lacking is not None:  # then the loss offers its curvature
                mean = self._mean_curvature(sample, self._curvature(sample.ranges, u, False))
                lacking = mean * (sample.lacking if features is None else sample.lacking[features])
            rows = [(int(plan.query_ptr[a]), int(plan.query_ptr[b])) for a, b in sample.ranges]
            part = block if sample is self._all else block.of_rows(rows)
            return ProductModel(
                lambda v: self.product(part, u, v, sample.ranges) / sample.share + lacking * v,
                sampled=sample is not self._all,
                exact_diagonal=sample.lacking is None,
                accuracy=limits.kinked_accuracy,
                max_products=affordable,
                blocks=self._blocks(block, block.feature, norms, u),
                instead=form,
            )
        if n < limits.fewest_iterated or sample is not self._all:
            return None
        return ProductModel(
            partial(self.product, block, u),
            max_products=affordable,
            squares=np.where(norms > 0.0, norms**2, 1.0),
            instead=form,
        )

    def _blocks(self, block: Block, feature: IntArray, norms: FloatArray, u: FloatArray) -> Blocks:
        """Estimate the Hessian's blocks of each feature from the first queries of every range."""
        ptr, n_rows = self.plan.query_ptr, self.plan.n_rows
        share = self.limits.metric_rows // len(self.ranges)
        last = np.searchsorted(ptr, [ptr[a] + share for a, _ in self.ranges], side="right") - 1
        ranges = [
            (a, min(b, max(a + 1, c))) for (a, b), c in zip(self.ranges, last.tolist(), strict=True)
        ]
        weight = np.ones(n_rows)
        if self.loss.offers("curvature"):
            weight = np.maximum(self._curvature(ranges, u, False).diag, 0.0)
        return estimated_blocks(block, feature, ptr, ranges, weight, norms**2 / n_rows)

    def hessian(
        self,
        block: Block,
        features: IntArray | None,
        u: FloatArray,
        *,
        exact: bool = False,
        thin: int | None = None,
    ) -> FloatArray:
        """Compute the Hessian with respect to the weights of a block.

        Parameters
        ----------
        block : Block
        features : array of int64, optional
            The block's columns; None for all.
        u : array
            The scores.
        exact : bool
            Whether to use float64 even if X is float32.
        thin : int, optional
            Use a sample of about this many documents.
        """
        sample, plan = self.sample(block, features, thin), self.plan
        if not self.loss.offers("curvature"):
            return self._by_products(sample.ranges, block, u) / sample.share
        curvature = self._curvature(sample.ranges, u, exact)
        if sample.n_picked is not None:
            lanes, fold = self._n_lanes(block), partial(self._fold, curvature)
            return block.sampled(curvature, sample.n_picked, lanes, fold)
        queries = [(0, len(plan.query_ptr) - 1)] if sample.lacking is None else sample.ranges
        pieces = [piece for r in queries for piece in self._pieces(block, r)]
        parts = self.executor.map(
            lambda lane: self._add_pieces(block, curvature, lane),
            _lanes(pieces, self._n_lanes(block)),
        )
        gram, half = add_up([p[0] for p in parts]), add_up([p[1] for p in parts])
        shared: dict[tuple[int, int], FloatArray] = {}
        for _, _, open_sums in parts:  # of long queries that lanes share
            for r, sums in open_sums.items():
                shared[r] = shared[r] + sums if r in shared else sums
        for r, sums in shared.items():
            half += self._low_rank(r, curvature, sums)
        found = block.finish(gram, half + half.T) / sample.share
        if sample.lacking is not None:  # their curvature is that of the mean document
            lacking = sample.lacking if features is None else sample.lacking[features]
            mean = self._mean_curvature(sample, curvature)
            found[np.diag_indices(len(found))] += mean * lacking
        return found

    def _mean_curvature(self, sample: _Sample, curvature: Curvature) -> float:
        return float(curvature.diag.sum()) / (sample.share * self.plan.n_rows)

    def _by_products(
        self, ranges: list[tuple[int, int]], block: Block, u: FloatArray
    ) -> FloatArray:
        """Add up Xᵀ(HX) over ranges of queries and columns."""
        loss, plan, limits, n = self.loss, self.plan, self.limits, block.n_features
        n_bytes = max(limits.piece_bytes, block.n_bytes // limits.piece_share)

        def add_lane(lane: list[_Piece]) -> FloatArray:
            half = np.zeros((n, n))
            for r, columns in lane:
                rows = int(plan.query_ptr[r[0]]), int(plan.query_ptr[r[1]])
                D = block.columns(rows, *columns)
                out = np.empty_like(D)
                loss.products(plan, *r, u, D, out)
                half[:, slice(*columns)] += 0.5 * block.cross(rows, out)
            return half

        def width(r: tuple[int, int]) -> int:  # number of columns whose copies fit in memory
            n_rows = int(plan.query_ptr[r[1]] - plan.query_ptr[r[0]])
            return max(limits.fewest_columns, n_bytes // (8 * max(1, n_rows)))

        pieces = [(r, columns) for r in ranges for columns in row_blocks(n, width(r))]
        parts = self.executor.map(add_lane, _lanes(pieces, LANES))
        half: FloatArray = add_up(parts) if parts else np.zeros((n, n))
        return half + half.T

    def product(
        self, block: Block, u: FloatArray, v: FloatArray, ranges: _Ranges | None = None
    ) -> FloatArray:
        """Compute the Hessian of a block's features times v, without forming it."""
        return block.rmatvec(self.times(u, block.matvec(v), ranges))

    def times(self, u: FloatArray, d: FloatArray, ranges: _Ranges | None = None) -> FloatArray:
        """Compute the score Hessian at u times d, of all queries or of some ranges."""
        out = np.zeros(self.plan.n_rows)
        self.executor.map(
            lambda r: self.loss.product(self.plan, *r, u, d, out), ranges or self.ranges
        )
        return out

    @property
    def largest_gram(self) -> int:
        """Features up to which a Hessian is formed; its copies then take no more memory than X."""
        return max(
            self.limits.fewest_gram,
            int(np.sqrt(self.design.n_bytes / (8 * self.limits.gram_copies))),
        )

    def sample(self, block: Block, features: IntArray | None, thin: int | None) -> _Sample:
        """Choose the documents of a Hessian: a sample must show every column, or make up for it."""
        if thin is None:
            return self._all
        if thin not in self._samples:
            picks = block.picks_rows and self._few_long_lists
            self._samples[thin] = self._picked(thin) if picks else self._drawn(thin)
        sample = self._samples[thin]
        if sample.lacking is None or self.loss.offers("curvature"):
            return sample
        lacking = sample.lacking if features is None else sample.lacking[features]
        return self._all if lacking.any() else sample

    def _by_columns(self, block: Block) -> bool:
        """Return whether sparse features and few long lists make columns cheaper than products."""
        large = block.n_features > self.limits.fewest_by_columns
        return large and block.picks_rows and self._few_long_lists and self.loss.n_atoms <= 2

    @property
    def _few_long_lists(self) -> bool:
        """Whether cells are few and lists so long that some of their documents represent all."""
        limits, n_queries = self.limits, len(self.plan.query_ptr) - 1
        few_cells = int(self.plan.cell_ptr[-1]) <= limits.few_cells
        long_lists = self.plan.n_rows >= limits.long_list * n_queries
        return few_cells and long_lists and self.loss.offers("curvature")

    def _picked(self, thin: int) -> _Sample:
        """Pick half as many documents, all if there are no more: exact squares make up for that."""
        n_picked = thin // 2
        return self._all if n_picked > self.plan.n_rows else _Sample(self.ranges, n_picked=n_picked)

    def _curvature(self, ranges: list[tuple[int, int]], u: FloatArray, exact: bool) -> Curvature:
        loss, plan = self.loss, self.plan
        found = Curvature.empty(loss, plan, exact=exact)
        self.executor.map(lambda r: loss.curvature(plan, *r, u, found), ranges)
        return found

    def _fold(self, curvature: Curvature, sums: FloatArray) -> tuple[FloatArray, FloatArray]:
        return self.loss.fold(self.plan, 0, len(self.plan.query_ptr) - 1, curvature.aux, sums)

    def _pieces(self, block: Block, queries: tuple[int, int]) -> list[_Piece]:
        """Cut queries into ranges with not too many cells, and their rows into blocks."""
        plan = self.plan
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
        self, block: Block, curvature: Curvature, pieces: list[_Piece]
    ) -> tuple[FloatArray, FloatArray, dict[tuple[int, int], FloatArray]]:
        """Add up consecutive pieces; sums of queries that other lanes share are returned apart."""
        n, plan = block.n_features, self.plan
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
                half += self._low_rank(r, curvature, sums)
            else:
                handed_on[r] = sums
        return gram, half, handed_on

    def _n_lanes(self, block: Block) -> int:
        """Return how many sums run side by side: fewer when each costs a large matrix."""
        return max(2, min(8, self.limits.lane_cells // max(1, block.n_features**2)))

    def _low_rank(self, r: tuple[int, int], curvature: Curvature, sums: FloatArray) -> FloatArray:
        left, right = self.loss.fold(self.plan, *r, curvature.aux, sums)
        product: FloatArray = left.T @ right
        return product

    def _drawn(self, thin: int) -> _Sample:
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
        all_rows, some = design.column_norms**2, add_up(squares) * (plan.n_rows / n_rows)
        return _Sample(ranges, share, np.where(2 * some < all_rows, all_rows - some, 0.0))


def _lanes(pieces: list[_Piece], n_lanes: int) -> list[list[_Piece]]:
    """Share consecutive pieces among a few lanes."""
    n_lanes = max(1, min(len(pieces), n_lanes))
    cuts = [len(pieces) * lane // n_lanes for lane in range(n_lanes + 1)]
    return [pieces[low:high] for low, high in pairwise(cuts)]
