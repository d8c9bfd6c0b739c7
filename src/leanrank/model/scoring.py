"""From features and weights to scores and ranks."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.data.ranking_data import group_rows
from leanrank.execution import row_blocks


def weighted_sums(X: Matrix, weights: FloatArray, columns: IntArray | None = None) -> FloatArray:
    """Return X[:, columns] @ weights in float64, each row by itself.

    BLAS may add the same row differently depending on where it stands, so that equal documents get
    unequal scores; ``einsum`` and SciPy's CSR product do not.

    >>> weighted_sums(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0, 1.0])).tolist()
    [12.0, 34.0]
    >>> weighted_sums(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([10.0]), np.array([1])).tolist()
    [20.0, 40.0]
    """
    scores = np.zeros(X.shape[0])
    if len(weights) == 0:
        return scores
    for r0, r1 in row_blocks(X.shape[0]):
        block = X[r0:r1] if columns is None else X[r0:r1][:, columns]
        if isinstance(block, np.ndarray):
            block = np.ascontiguousarray(block, dtype=np.float64)
            np.einsum("ij,j->i", block, weights, out=scores[r0:r1])
        else:
            scores[r0:r1] = block.astype(np.float64) @ weights
    return scores


def rank_within_queries(scores: FloatArray, qid: Any) -> IntArray:
    """Return the rank of each document in its query, from 1; ties keep the order of the rows.

    >>> rank_within_queries(np.array([0.1, 0.9, 0.5]), ["a", "b", "a"]).tolist()
    [2, 1, 1]
    """
    grouping = group_rows(qid, len(scores))
    sizes = np.diff(grouping.query_ptr)
    query = np.repeat(np.arange(len(sizes)), sizes)
    best_first = np.lexsort((-grouping.take(scores), query))
    ranks = np.empty(len(scores), dtype=np.int64)
    ranks[best_first] = np.arange(len(scores)) - np.repeat(grouping.query_ptr[:-1], sizes) + 1
    return np.asarray(grouping.restore(ranks))
