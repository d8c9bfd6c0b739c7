"""From features and weights to scores and ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.grouping import group_rows
from leanrank.execution import row_blocks
from leanrank.model.curves import Bent, Line, on_pieces
from leanrank.model.terms import Term


def weighted_sums(X: Matrix, weights: FloatArray, columns: IntArray | None = None) -> FloatArray:
    """Return X[:, columns] @ weights in float64, each row by itself.

    With BLAS, the rounding of a row can depend on its position, so that equal documents get unequal
    scores; ``einsum`` and SciPy's CSR product do not have this problem.

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

    Lines are one product, and curves in pieces are evaluated together, since calls of NumPy take
    most of the time for few documents.

    Parameters
    ----------
    terms : list of pairs
        The columns of each term among those that are used, and the term.
    """

    def __init__(self, terms: Sequence[tuple[tuple[int, ...], Term]]) -> None:
        self.terms = terms
        lines = [(columns, term) for columns, term in terms if _is_straight(term)]
        others = [(columns, term) for columns, term in terms if not _is_straight(term)]
        self._columns = np.array([columns[0] for columns, _ in lines], dtype=np.int64)
        self._weights = np.array([term.size for _, term in lines], dtype=np.float64)
        self._needed = sorted({column for columns, _ in others for column in columns})
        inside = {column: at for at, column in enumerate(self._needed)}
        self._others = [([inside[c] for c in columns], term) for columns, term in others]
        bent = [(used[0], term) for used, term in self._others if isinstance(term, Bent)]
        self._bent = [column for column, _ in bent]
        self._cuts = [np.array(term.cuts) for _, term in bent]
        self._starts = np.cumsum([0, *(len(cuts) + 1 for cuts in self._cuts)])[:-1, None]
        self._pieces = [np.concatenate(p) for p in zip(*(t.pieces for _, t in bent), strict=True)]
        missing = [np.nan if term.missing is None else term.missing for _, term in bent]
        self._missing = np.array(missing, dtype=np.float64)[:, None]

    def scores(self, X: Matrix, columns: IntArray | None) -> FloatArray:
        """Return the scores of rows; ``columns`` are those in use, None means all."""
        if not self._others:
            return weighted_sums(X, self._weights, columns)
        lines = self._columns if columns is None else columns[self._columns]
        needed = self._needed if columns is None else columns[self._needed]
        scores = weighted_sums(X, self._weights, lines)
        for rows, features in _blocks(X, needed):
            bent = iter(self._in_pieces(features[self._bent]))
            for used, term in self._others:
                scores[rows] += next(bent) if isinstance(term, Bent) else term(*features[used])
        return scores

    def contributions(self, X: Matrix, columns: IntArray | None) -> FloatArray:
        """Return the contribution of each term to the score of each row."""
        parts = np.zeros((X.shape[0], len(self.terms)))
        for rows, features in _blocks(X, columns):
            for at, (used, term) in enumerate(self.terms):
                parts[rows, at] = term(*features[list(used)])
        return parts

    def _in_pieces(self, x: FloatArray) -> FloatArray:
        """Return the values of all curves in pieces, one row per curve."""
        if not len(x):
            return x
        above = np.array([c.searchsorted(row) for c, row in zip(self._cuts, x, strict=True)])
        above += self._starts
        with np.errstate(over="ignore", invalid="ignore"):
            out = on_pieces(x, above, self._pieces)
        np.copyto(out, self._missing, where=np.isnan(x))
        return out


def _is_straight(term: Term) -> bool:
    return isinstance(term, Line) and term.missing is None


def dense(X: Matrix, columns: Any = None) -> AnyArray:
    """Return some columns of a matrix as an array; all of them by default."""
    taken = X if columns is None else X[:, columns]
    return taken if isinstance(taken, np.ndarray) else taken.toarray()


def _blocks(X: Matrix, columns: Any) -> Iterator[tuple[slice, FloatArray]]:
    """Yield blocks of rows, and some features of each as rows of a dense array."""
    for r0, r1 in row_blocks(X.shape[0]):
        yield slice(r0, r1), dense(X[r0:r1], columns).T.astype(np.float64, order="C")


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
