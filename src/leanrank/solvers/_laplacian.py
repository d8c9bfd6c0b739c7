"""The Hessian of a loss that can only be multiplied: Xᵀ(HX), some queries and columns at a time.

A pair of documents that must not trade places is an edge of a graph, and the score Hessian of a
pairwise loss is that graph's Laplacian: too dense to be written down, but quickly multiplied. Rows
enter less their anchor, as everywhere: a Laplacian does not see a constant added to a query.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.execution import Executor, add_up
from leanrank.losses.base import Plan
from leanrank.solvers.design import Block

_Piece: TypeAlias = tuple[tuple[int, int], tuple[int, int]]

PIECE_BYTES, PIECE_SHARE = 32 << 20, 8
"""Size of the columns multiplied at once: so many bytes, or this part of X if that is more."""

FEWEST_COLUMNS = 8
LANES = 8


def hessian_by_products(
    loss: Any,
    plan: Plan,
    ranges: list[tuple[int, int]],
    block: Block,
    u: FloatArray,
    anchor: IntArray,
    executor: Executor,
) -> FloatArray:
    """Add up Xᵀ(HX) over ranges of queries and columns, in an order of its own."""
    n = block.n_features
    pieces = _pieces(plan, ranges, n, max(PIECE_BYTES, block.n_bytes // PIECE_SHARE))
    cuts = [len(pieces) * lane // LANES for lane in range(LANES + 1)]

    def add_lane(lane: list[_Piece]) -> FloatArray:
        gram = np.zeros((n, n))
        for (r0, r1), (begin, end) in lane:
            rows = int(plan.query_ptr[r0]), int(plan.query_ptr[r1])
            D = block.columns(rows, begin, end, anchor)
            out = np.empty_like(D)
            loss.products(plan, r0, r1, u, D, out)
            if end - begin == n and not block.sparse:
                gram += D.T @ out
            else:
                gram[:, begin:end] += block.cross(rows, out, anchor)
        return gram

    parts = executor.map(add_lane, [pieces[low:high] for low, high in pairwise(cuts) if high > low])
    gram: FloatArray = add_up(parts) if parts else np.zeros((n, n))
    return 0.5 * (gram + gram.T)


def _pieces(
    plan: Plan, ranges: list[tuple[int, int]], n_features: int, n_bytes: int
) -> list[_Piece]:
    pieces = []
    for r in ranges:
        n_rows = int(plan.query_ptr[r[1]] - plan.query_ptr[r[0]])
        width = max(FEWEST_COLUMNS, n_bytes // (8 * max(1, n_rows)))
        pieces += [
            (r, (begin, min(begin + width, n_features))) for begin in range(0, n_features, width)
        ]
    return pieces
