"""From features and weights to scores and ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.data.grouping import group_rows
from leanrank.execution import row_blocks
from leanrank.model.curves import Line
from leanrank.model.terms import Term


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


class TermSum:
    """A sum of terms, applied to blocks of rows.

    Parameters
    ----------
    terms : list of pairs
        The columns of each term among those that are used, and the term.
    """

    def __init__(self, terms: Sequence[tuple[tuple[int, ...], Term]]) -> None:
        self.terms = terms
        self._lines: list[int] = []
        self._others: list[int] = []
        for at, (_, term) in enumerate(terms):
            straight = isinstance(term, Line) and term.missing is None
            (self._lines if straight else self._others).append(at)
        self._weights = np.array([terms[at][1].size for at in self._lines], dtype=np.float64)

    def scores(self, X: Matrix, columns: IntArray | None) -> FloatArray:
        """Return the scores of rows; ``columns`` are those that are used, None: all in order."""
        if not self._others:
            return weighted_sums(X, self._weights, columns)
        places = np.arange(X.shape[1]) if columns is None else columns
        lines = np.array([self.terms[at][0][0] for at in self._lines], dtype=np.int64)
        scores = weighted_sums(X, self._weights, places[lines])
        for rows, _, added in self._parts(X, places, self._others):
            scores[rows] += added
        return scores

    def contributions(self, X: Matrix, columns: IntArray | None) -> FloatArray:
        """Return what each term adds to the score of each row."""
        parts = np.zeros((X.shape[0], len(self.terms)))
        places = np.arange(X.shape[1]) if columns is None else columns
        for rows, at, added in self._parts(X, places, list(range(len(self.terms)))):
            parts[rows, at] = added
        return parts

    def _parts(
        self, X: Matrix, places: IntArray, chosen: list[int]
    ) -> Iterator[tuple[slice, int, FloatArray]]:
        needed = sorted({column for at in chosen for column in self.terms[at][0]})
        inside = {column: at for at, column in enumerate(needed)}
        for r0, r1 in row_blocks(X.shape[0]):
            block = X[r0:r1][:, places[needed]]
            if not isinstance(block, np.ndarray):
                block = block.toarray()  # a block at a time: never large
            for at in chosen:
                columns, term = self.terms[at]
                yield slice(r0, r1), at, term(*(block[:, inside[one]] for one in columns))


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
