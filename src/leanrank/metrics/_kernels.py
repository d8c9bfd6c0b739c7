"""Computing all measures of a range of queries from one sort of each query."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.metrics import _list_measures, _pair_measures
from leanrank.metrics._inputs import FEW_LEVELS
from leanrank.metrics.measures import (
    ALL_PAIRS_ERROR,
    AP,
    AUC,
    DCG,
    DOMINATION_ERROR,
    ERR,
    JOACHIMS,
    KENDALL,
    MEAN_NDCG,
    MRR,
    NDCG,
    PRECISION,
    RECALL,
    Terms,
)

Ranked = tuple[IntArray, IntArray, IntArray, IntArray]
"""The first arguments of kernels: query boundaries, labels, groups and numbers of groups."""

PAIRS = (ALL_PAIRS_ERROR, KENDALL, JOACHIMS)
"""Measures that are computed together, in the order of the rows of ``count_pairs``."""


class Gains(NamedTuple):
    """Gains of levels and discounts of ranks; ``depth`` is the longest ideal list needed."""

    gains: FloatArray
    stops: FloatArray
    discounts: FloatArray
    depth: int


def measure_range(
    measures: Sequence[Terms],
    average: bool,
    ptr: IntArray,
    scores: FloatArray,
    codes: IntArray,
    pool_ptr: IntArray,
    pool: IntArray,
    worth: Gains,
    values: FloatArray,
) -> None:
    """Fill ``values``, one row per measure; unless ties are averaged, they stay in the given order.

    ``codes`` number the label levels from low to high. A kernel is compiled when a measure needs
    it.
    """
    n_queries, (gains, stops, discounts, depth) = len(ptr) - 1, worth
    lists, tied = _rank(ptr, scores, codes, average)

    @cache
    def relevant(lowest: int) -> IntArray:
        return np.diff(np.append(0, np.cumsum(pool >= lowest))[pool_ptr])

    @cache
    def gained() -> tuple[IntArray, FloatArray, IntArray, FloatArray, FloatArray]:
        earned, ideal = np.empty(len(codes)), np.empty(len(pool))
        _list_measures.fill_earned(*lists, gains, depth, earned)
        if len(gains) > max(FEW_LEVELS, len(pool) // n_queries):  # too many levels for counting
            ideal = gains[_rank(pool_ptr, pool.astype(np.float64), pool)[0][1]]
        else:
            _list_measures.fill_ideal(pool_ptr, pool, gains, depth, ideal)
        return ptr, earned, pool_ptr, ideal, discounts

    @cache
    def counted() -> FloatArray:
        found = np.full((len(PAIRS), n_queries), np.nan)
        _pair_measures.count_pairs(*tied, np.zeros(len(gains) + 1, np.int64), found)
        return found

    for (kind, cut, lowest, short_is_zero, cut_relevant, empty, scale), out in zip(
        measures, values, strict=True
    ):
        out[:] = empty
        if kind in (NDCG, DCG):
            _list_measures.dcg(*gained(), cut, short_is_zero, kind == NDCG, out)
        elif kind == MEAN_NDCG:
            _list_measures.mean_ndcg(*gained(), out)
        elif kind == AP:
            found = relevant(lowest)
            _list_measures.average_precision(*lists, found, lowest, cut, cut_relevant, out)
        elif kind == MRR:
            _list_measures.reciprocal_rank(*lists, relevant(lowest), lowest, cut, out)
        elif kind in (PRECISION, RECALL):
            found, recall = relevant(lowest), kind == RECALL
            _list_measures.share_of_hits(*lists, found, lowest, cut, recall, short_is_zero, out)
        elif kind == ERR:
            _list_measures.err(*lists, pool_ptr, pool, stops, scale, cut, out)
        elif kind == AUC:
            _pair_measures.auc(*tied, lowest, out)
        elif kind == DOMINATION_ERROR:
            _pair_measures.domination_error(*tied, out)
        elif kind in PAIRS:
            out[:] = counted()[PAIRS.index(kind)]


def _rank(
    ptr: IntArray, scores: FloatArray, codes: IntArray, average: bool = True
) -> tuple[Ranked, Ranked]:
    """Rank queries, in groups that are averaged over and in ties.

    NumPy sorts: a kernel that sorts takes a second to compile.
    """
    n, n_queries = len(scores), len(ptr) - 1
    # NumPy sorts the numbers of up to 65,536 queries by digits
    query = np.repeat(np.arange(n_queries, dtype=np.min_scalar_type(n_queries)), np.diff(ptr))
    order = np.argsort(-scores)
    order = order[np.argsort(query[order], kind="stable")]
    ranked, first = scores[order], np.ones(n, dtype=bool)
    first[1:] = (ranked[1:] != ranked[:-1]) | (query[1:] != query[:-1])
    if not first.all():  # equal scores keep the order of the rows
        keys = np.cumsum(first) * n + order
        keys.sort()
        order = keys % n
    labels, ties = codes[order], _starts(ptr, first)
    groups = ties if average else _starts(ptr, np.ones(n, dtype=bool))
    return (ptr, labels, *groups), (ptr, labels, *ties)


def _starts(ptr: IntArray, first: BoolArray) -> tuple[IntArray, IntArray]:
    """Return where the groups of each query begin, and their number, from what is first in one."""
    begins, sizes = np.flatnonzero(first), np.diff(ptr)
    groups = np.searchsorted(begins, ptr)
    n_groups, at = np.diff(groups), ptr[:-1] + np.arange(len(sizes))
    starts = np.empty(len(first) + len(sizes), np.int64)
    starts[np.arange(len(begins)) + np.repeat(at - groups[:-1], n_groups)] = begins - np.repeat(
        ptr[:-1], n_groups
    )
    starts[at + n_groups] = sizes
    return starts, n_groups


@kernel
def carried_by_ties(query_ptr: IntArray, scores: FloatArray, codes: IntArray) -> tuple[int, int]:
    """Return the numbers of queries decided by ties, and of queries with several levels.

    A query is decided by ties if at least half of the documents, of several levels, have the best
    score.
    """
    carried = informative = 0
    for q in range(len(query_ptr) - 1):
        lo, hi = query_ptr[q], query_ptr[q + 1]
        best, n_best, several, mixed = lo, 0, False, False
        for i in range(lo, hi):
            several |= codes[i] != codes[lo]
            if scores[i] > scores[best]:
                best, n_best, mixed = i, 0, False
            n_best += scores[i] == scores[best]
            mixed |= scores[i] == scores[best] and codes[i] != codes[best]
        informative += several
        carried += mixed and 2 * n_best >= hi - lo
    return carried, informative
