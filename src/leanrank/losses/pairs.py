"""The base classes of pairwise losses, and the weights of pairs of a winner and a loser.

A pairwise loss is a sum over pairs of a winner i and a loser j of one query,

    ℓ(u) = Σ c_ij φ(u_i − u_j),   c_ij = win_i · lose_j · (weight of their levels),

where the pairs are either all pairs of levels, i of a higher level than j, which are never listed,
or given as *edges*. A loss defines φ in ``pair``, which suffices for edges. For levels it defines
fast sums: ``_evaluate`` and, if it is smooth, ``_products``. If −φ*(a φ′(z)) is a linear function
of φ(z) and φ′(z)·z, ``_dual`` returns it; the dual value then follows from value and score
gradient, since Σ c φ′(z)·z over all pairs is Σ g_i u_i.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.errors import InputError
from leanrank.losses.base import (
    Edges,
    Evaluated,
    Labels,
    Loss,
    Plan,
    mass_below,
    query_scale,
    sort_into_cells,
)
from leanrank.losses.importance import importance_tables, summed_importance


@dataclass(frozen=True)
class PairPlan(Plan):
    """The pairs of each query.

    Attributes
    ----------
    rows : array of int64
        Row numbers sorted by cell; a cell is one level of one query, ascending.
    row_ptr : array of int64
        Cell c holds ``rows[row_ptr[c]:row_ptr[c + 1]]``.
    win : array
        Weight of a document as a winner: scale × sample weight × gain weight.
    lose : array
        Weight of a document as a loser: its sample weight.
    table, table_ptr : array
        Weights of the pairs of levels of query q: ``table[table_ptr[q]:table_ptr[q + 1]]``, one row
        per level of the winner; empty if all pairs weigh the same.
    edges : Edges or None
        Explicit pairs sorted by query, with their full weight c_ij; then levels are ignored.
    edge_ptr : array of int64
        Query q owns the edges ``edge_ptr[q]:edge_ptr[q + 1]``.
    order : array of int64 or None
        Working memory of one problem: each query's rows as last sorted by score, so that another
        evaluation at the same scores does not sort again.
    """

    rows: IntArray
    row_ptr: IntArray
    win: FloatArray
    lose: FloatArray
    table: FloatArray
    table_ptr: IntArray
    edges: Edges | None
    edge_ptr: IntArray
    order: IntArray | None = None


class PairwiseLoss(Loss[PairPlan]):
    """A sum of φ(u_i − u_j) over pairs.

    Parameters
    ----------
    importance : None, "ndcg" or array of shape (levels, levels), optional
        Weight of a pair by its levels; see ``importance_tables``.
    """

    takes_edges: ClassVar[bool] = True

    def __init__(self, importance: Any = None) -> None:
        self.importance = importance

    def prepare(self, labels: Labels) -> PairPlan:
        """Return the plan of the pairs of labelled documents, or of explicit edges.

        A query has as many terms as pairs, with documents counted by ``sample_weight`` and edges by
        their weight; neither ``gain_weight`` nor a table of ``importance`` changes that number.
        With "ndcg", where pairs of long lists weigh less, it is the sum of the weights of pairs.
        """
        ptr = labels.query_ptr
        n_rows, n_queries = int(ptr[-1]), len(ptr) - 1
        query_of = np.repeat(np.arange(n_queries), np.diff(ptr))
        mass = np.ones(n_rows) if labels.sample_weight is None else labels.sample_weight
        mass = np.ascontiguousarray(mass, dtype=np.float64)
        if labels.edges is None:
            levels, level_of = labels.find_levels()
            cells = sort_into_cells(level_of, len(levels), ptr)
            table, table_ptr = importance_tables(self.importance, levels, cells, mass)
            sizes, below = mass_below(cells, mass)
            if isinstance(self.importance, str):
                terms = summed_importance(table, table_ptr, cells, sizes)
            else:
                terms = np.bincount(cells.query, sizes * below, minlength=n_queries).astype(
                    np.float64
                )
        else:
            if self.importance is not None:
                raise InputError(
                    "importance weighs pairs of levels, which preferences do not have: give "
                    "the preferences their weights instead"
                )
            cells = sort_into_cells(np.zeros(n_rows, np.int64), 1, ptr)
            table, table_ptr = importance_tables(None, np.zeros(1), cells, mass)
            edges = labels.edges.take(np.argsort(query_of[labels.edges.winner], kind="stable"))
            times = edges.weight * mass[edges.winner] * mass[edges.loser]
            terms = np.bincount(query_of[edges.winner], times, minlength=n_queries).astype(
                np.float64
            )
        scale = query_scale(terms, labels.query_weight, labels.normalize)
        win = scale[query_of]
        win *= mass
        if labels.gain_weight is not None:
            win = win * labels.gain_weight
        explicit = None
        edge_ptr = np.zeros(n_queries + 1, np.int64)
        if labels.edges is not None:
            weight = edges.weight * win[edges.winner] * mass[edges.loser]
            explicit = edges._replace(weight=weight)
            edge_ptr = np.searchsorted(query_of[edges.winner], np.arange(n_queries + 1))
        return PairPlan(
            query_ptr=ptr,
            scale=scale,
            offset=labels.offset,
            cell=cells.cell,
            cell_ptr=cells.cell_ptr,
            rows=cells.rows,
            row_ptr=cells.row_ptr,
            win=win,
            lose=mass,
            table=table,
            table_ptr=table_ptr,
            edges=explicit,
            edge_ptr=edge_ptr.astype(np.int64, copy=False),
        )

    def pair(self, z: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return φ, φ′ and φ″ at differences of scores z."""
        raise AssertionError(f"{type(self).__name__} must define pair")

    def pair_dual(self, z: FloatArray, a: float) -> FloatArray:
        """Return −φ*(a φ′(z)), φ* the convex conjugate."""
        value, slope, _ = self.pair(z)
        return np.asarray(self._dual(value, slope * z, a))

    def evaluate(self, plan: PairPlan, r0: int, r1: int, u: FloatArray, g: FloatArray) -> float:
        """Return the value over queries [r0, r1) and fill their rows of the score gradient."""
        if plan.edges is None:
            return self._evaluate(plan, r0, r1, u, g)
        edges = edges_of(plan, r0, r1)
        value, slope, _ = self.pair(u[edges.winner] - u[edges.loser])
        g[plan.span(r0, r1)] = _differences(plan, r0, r1, edges, edges.weight * slope)
        return float(edges.weight @ value)

    def dual(self, plan: PairPlan, r0: int, r1: int, u: FloatArray, a: float) -> float:
        """Return the dual value at the point a·c·φ′ of each pair."""
        g = np.zeros_like(u)
        return self.dual_at(plan, r0, r1, Evaluated(u, self.evaluate(plan, r0, r1, u, g), g), a)

    def dual_at(self, plan: PairPlan, r0: int, r1: int, point: Evaluated, a: float) -> float:
        """Return the dual value where value and score gradient are known."""
        span, ptr = plan.span(r0, r1), plan.query_ptr[r0 : r1 + 1]
        # g adds up to zero in a query: less its first score, the scores keep their digits
        first = np.repeat(point.u[np.minimum(ptr[:-1], plan.n_rows - 1)], np.diff(ptr))
        leads = float(point.g[span] @ (point.u[span] - first))
        return float(self._dual(point.value, leads, a)) - offset_share(plan, span, point.g, a)

    def _evaluate(self, plan: PairPlan, r0: int, r1: int, u: FloatArray, g: FloatArray) -> float:
        raise AssertionError(f"{type(self).__name__} must define _evaluate")

    def _dual(self, value: Any, leads: Any, a: float) -> Any:
        """Return −φ*(a φ′(z)) from φ(z) and φ′(z)·z, or from their sums."""
        raise AssertionError(f"{type(self).__name__} must define _dual")


class SmoothPairwiseLoss(PairwiseLoss):
    """A pairwise loss with a Hessian: the Laplacian of the graph whose edges are the pairs."""

    def product(
        self, plan: PairPlan, r0: int, r1: int, u: FloatArray, d: FloatArray, out: FloatArray
    ) -> None:
        """Fill the rows of queries [r0, r1) of the score Hessian times d."""
        span = plan.span(r0, r1)
        self.products(plan, r0, r1, u, d[span, None], out[span, None])

    def products(
        self, plan: PairPlan, r0: int, r1: int, u: FloatArray, D: FloatArray, out: FloatArray
    ) -> None:
        """Fill the score Hessian of queries [r0, r1) times the columns of D.

        D and ``out`` have the rows of these queries only.
        """
        if plan.edges is None:
            self._products(plan, r0, r1, u, D, out)
            return
        edges = edges_of(plan, r0, r1)
        curvature = edges.weight * self.pair(u[edges.winner] - u[edges.loser])[2]
        first = int(plan.query_ptr[r0])
        for f in range(D.shape[1]):
            away = D[edges.winner - first, f] - D[edges.loser - first, f]
            out[:, f] = _differences(plan, r0, r1, edges, curvature * away)

    def _products(
        self, plan: PairPlan, r0: int, r1: int, u: FloatArray, D: FloatArray, out: FloatArray
    ) -> None:
        raise AssertionError(f"{type(self).__name__} must define _products")


def level_arrays(plan: PairPlan) -> tuple[AnyArray, ...]:
    """Return the leading arguments of kernels that sort scores."""
    return (
        plan.query_ptr,
        plan.cell_ptr,
        plan.cell,
        plan.win,
        plan.lose,
        plan.table,
        plan.table_ptr,
    )


def order_of(plan: PairPlan) -> IntArray:
    """Return the order of a plan's rows when they were last sorted, or a new one."""
    return np.arange(plan.n_rows, dtype=np.int64) if plan.order is None else plan.order


def offset_share(plan: Plan, rows: slice, g: FloatArray, a: float) -> float:
    """Return the part of a dual value that is due to the offset of the scores, to subtract."""
    return 0.0 if plan.offset is None else a * float(g[rows] @ plan.offset[rows])


def edges_of(plan: PairPlan, r0: int, r1: int) -> Edges:
    assert plan.edges is not None
    part = slice(int(plan.edge_ptr[r0]), int(plan.edge_ptr[r1]))
    return plan.edges.take(part)


def _differences(plan: PairPlan, r0: int, r1: int, edges: Edges, values: FloatArray) -> FloatArray:
    """Return for each row of queries [r0, r1) the sum of values it wins minus those it loses."""
    span = plan.span(r0, r1)
    count = span.stop - span.start
    won = np.bincount(edges.winner - span.start, values, minlength=count)
    lost = np.bincount(edges.loser - span.start, values, minlength=count)
    return np.asarray(won - lost, dtype=np.float64)
