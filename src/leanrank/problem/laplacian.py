"""The Hessian of a loss that can only be multiplied: Xᵀ(HX), some queries and columns at a time.

A pair of documents that must not trade places is an edge of a graph, and the score Hessian of a
pairwise loss is that graph's Laplacian: too dense to be written down, but quickly multiplied. Rows
enter less their anchor, as everywhere: a Laplacian does not see a constant added to a query.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from leanrank._typing import FloatArray
from leanrank.designs.base import Block
from leanrank.execution import Executor, add_up
from leanrank.losses.base import Loss, Plan

if TYPE_CHECKING:
    from leanrank.problem.hessians import Limits

_Piece: TypeAlias = tuple[tuple[int, int], tuple[int, int]]

LANES = 8


def hessian_by_products(
    loss: Loss[Any],
    plan: Plan,
    ranges: list[tuple[int, int]],
    block: Block,
    u: FloatArray,
    executor: Executor,
    exact: bool,
    limits: Limits,
) -> FloatArray:
    """Add up Xᵀ(HX) over ranges of queries and columns, in an order of its own."""
    n = block.n_features
    at_once = block.dense((0, 0)) is not None and loss.suits_gram(plan)

    def add_lane(lane: list[_Piece]) -> FloatArray:
        half = np.zeros((n, n))
        for r, columns in lane:
            rows = int(plan.query_ptr[r[0]]), int(plan.query_ptr[r[1]])
            X = block.dense(rows)
            if at_once and X is not None:
                part = loss.gram(plan, *r, u, X, columns, exact=exact)
                half[:, slice(*columns)] += part
            else:
                D = block.columns(rows, *columns)
                out = np.empty_like(D)
                loss.products(plan, *r, u, D, out)
                half[:, slice(*columns)] += 0.5 * block.cross(rows, out)
        return half

    pieces = []
    for r in ranges:
        n_rows = int(plan.query_ptr[r[1]] - plan.query_ptr[r[0]])
        width = (_shared_width if at_once else _affordable_width)(n_rows, block, limits)
        pieces += [(r, (begin, min(begin + width, n))) for begin in range(0, n, width or 1)]
    cuts = [len(pieces) * lane // LANES for lane in range(LANES + 1)]
    parts = executor.map(add_lane, [pieces[low:high] for low, high in pairwise(cuts) if high > low])
    half: FloatArray = add_up(parts) if parts else np.zeros((n, n))
    return half + half.T


def _shared_width(n_rows: int, block: Block, limits: Limits) -> int:
    """Columns of a piece such that threads can share the work on a long query."""
    n = block.n_features
    return n if n_rows <= limits.shared_rows else max(limits.wide, -(-n // LANES))


def _affordable_width(n_rows: int, block: Block, limits: Limits) -> int:
    """Columns of a piece such that their products fit into memory."""
    n_bytes = max(limits.piece_bytes, block.n_bytes // limits.piece_share)
    return max(limits.fewest_columns, n_bytes // (8 * max(1, n_rows)))
