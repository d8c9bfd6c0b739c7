"""The metric in which few products with a Hessian of curves find a step.

Columns of one feature are similar, those of different features much less so. In the metric of the
blocks of a Hessian along its diagonal, one per feature, gradients therefore converge in a few
steps. A metric need not be exact, so that a few documents are enough.
"""

from __future__ import annotations

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.designs.base import ROWS_AT_ONCE, Block
from leanrank.penalties.base import Blocks


def estimated_blocks(
    block: Block,
    feature: IntArray,
    query_ptr: IntArray,
    ranges: list[tuple[int, int]],
    weight: FloatArray,
    mean_squares: FloatArray,
) -> Blocks:
    """Return the blocks of Σ weight · (x − x̄)(x − x̄)ᵀ, x̄ the weighted mean of the query.

    That is the Hessian of a softmax, and close to that of other losses.

    Parameters
    ----------
    block : Block
    feature : array
        The feature of each column; columns of one are neighbours.
    query_ptr : array
    ranges : list of pairs
        Of the queries to use; of a long query, its first documents.
    weight : array
        Of each document.
    mean_squares : array
        About the mean square of each column over all documents.
    """
    n = block.n_features
    starts = np.flatnonzero(np.diff(feature, prepend=-1))
    ends = np.append(starts[1:], n)
    found = Blocks(np.zeros((n, int((ends - starts).max()))), np.repeat(starts, ends - starts))
    squares, mass, n_rows = np.zeros(n), 0.0, 0
    for a, b in ranges:
        begin = int(query_ptr[a])
        end = min(int(query_ptr[b]), begin + ROWS_AT_ONCE)
        x, w, first = block.columns((begin, end), 0, n), weight[begin:end], query_ptr[a:b] - begin
        squares += np.einsum("ij,ij->j", x, x)
        mass, n_rows = mass + float(w.sum()), n_rows + end - begin
        total = np.maximum(np.add.reduceat(w, first), np.finfo(np.float64).tiny)
        mean = np.add.reduceat(w[:, None] * x, first) / total[:, None]
        x -= np.repeat(mean, np.diff(first, append=end - begin), axis=0)
        x *= np.sqrt(w)[:, None]
        for low, high in zip(starts.tolist(), ends.tolist(), strict=True):
            part = x[:, low:high]
            found.rows[low:high, : high - low] += part.T @ part
    # a column that is empty, or nearly constant, in these documents alone
    expected = mean_squares * n_rows
    lacking = np.where(4.0 * squares < expected, expected, 0.01 * squares)
    found.rows[np.arange(n), np.arange(n) - found.first] += lacking * mass / n_rows
    return found
