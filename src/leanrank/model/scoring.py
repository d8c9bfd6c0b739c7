"""From features and weights to scores and ranks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.data.grouping import group_rows
from leanrank.execution import row_blocks
from leanrank.model.curves import Curve, Line


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


class CurveSum:
    """A sum of curves, applied to blocks of rows.

    Parameters
    ----------
    curves : list of Curve
    values : array of float64
        The weight of each of them that is a line.
    """

    def __init__(self, curves: list[Curve], values: FloatArray) -> None:
        self.curves, self.values = curves, values
        straight = [isinstance(curve, Line) and curve.missing is None for curve in curves]
        self._lines = np.flatnonzero(straight)
        self._bent = np.flatnonzero(~np.array(straight, dtype=bool))

    def scores(self, X: Matrix, columns: IntArray | None) -> FloatArray:
        """Return the scores of rows; ``columns`` are those of the curves, None: all in order."""
        if len(self._bent) == 0:
            return weighted_sums(X, self.values, columns)
        places = np.arange(len(self.curves)) if columns is None else columns
        scores = weighted_sums(X, self.values[self._lines], places[self._lines])
        for rows, _, added in self._parts(X, places, self._bent):
            scores[rows] += added
        return scores

    def contributions(self, X: Matrix, columns: IntArray | None) -> FloatArray:
        """Return what each curve adds to the score of each row."""
        used = np.arange(len(self.curves))
        parts = np.zeros((X.shape[0], len(used)))
        for rows, at, added in self._parts(X, used if columns is None else columns, used):
            parts[rows, at] = added
        return parts

    def _parts(
        self, X: Matrix, places: IntArray, chosen: IntArray
    ) -> Iterator[tuple[slice, int, FloatArray]]:
        for r0, r1 in row_blocks(X.shape[0]):
            block = X[r0:r1][:, places[chosen]]
            if not isinstance(block, np.ndarray):
                block = block.toarray()  # a block at a time: never large
            for inside, at in enumerate(chosen.tolist()):
                yield slice(r0, r1), at, self.curves[at](block[:, inside])


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
