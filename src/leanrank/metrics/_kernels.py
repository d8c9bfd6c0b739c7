"""Computing all measures of a range of queries off one sort of each.

Documents with equal scores form a *group*. Where a measure depends on their order and the
convention averages, its expected value over all orders is computed group by group: with ``a``
documents ranked above, ``size`` in the group and ``r`` of them relevant, a position of the group
holds a relevant document with probability r / size. Under every other convention each document is a
group of its own.
"""

from __future__ import annotations

import math

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray
from leanrank.metrics._one_query import (
    KIND,
    auc,
    count_pairs,
    dcg,
    domination_error,
    err,
    mean_gains,
    mean_ndcg,
    relevant_in,
)
from leanrank.metrics._order import find_ties, ideal_gains, sort_descending
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
)

# columns of the tables of measures
CUT, LOWEST, SHORT_IS_ZERO, CUT_RELEVANT = range(1, 5)
EMPTY_VALUE, STOP_SCALE = range(2)

FEW_LEVELS = 64

PAIRS = (ALL_PAIRS_ERROR, KENDALL, JOACHIMS)
RARE = (MEAN_NDCG, ERR, AUC, DOMINATION_ERROR, *PAIRS)
"""Measures that are compiled only once one of them is asked for."""


@kernel
def measure_queries(
    first: int,
    last: int,
    query_ptr: IntArray,
    scores: FloatArray,
    codes: IntArray,
    average: bool,
    pool_ptr: IntArray,
    pool_codes: IntArray,
    gains: FloatArray,
    stops: FloatArray,
    discounts: FloatArray,
    table: IntArray,
    numbers: FloatArray,
    depth: int,
    values: FloatArray,
    rare: int | None,
) -> None:
    """Fill ``values[:, first:last]``; unless ties are averaged, they keep the given order.

    ``codes`` number the label levels from low to high. The ideal list and the number of relevant
    documents are those of the pool, which is larger than the list when a run misses documents.
    ``depth`` is the length of the ideal list that is needed. ``rare`` is None if no measure is one
    of ``RARE``, which are not compiled then.
    """
    longest = FEW_LEVELS
    for q in range(first, last):
        longest = max(longest, query_ptr[q + 1] - query_ptr[q], pool_ptr[q + 1] - pool_ptr[q])
    keys, spare_keys = np.empty(longest), np.empty(longest)
    order, spare_order = np.empty(longest, np.int64), np.empty(longest, np.int64)
    ranked, earned, ideal = np.empty(longest, np.int64), np.empty(longest), np.empty(longest)
    tie_starts = np.empty(longest + 1, np.int64)
    singles = np.empty(longest + 1, np.int64)
    for i in range(longest + 1):
        singles[i] = i
    tree, wants_pairs = np.zeros(len(gains) + 1, np.int64), False
    for m in range(len(table)):
        wants_pairs |= table[m, KIND] in PAIRS

    for q in range(first, last):
        lo, hi = query_ptr[q], query_ptr[q + 1]
        n = hi - lo
        own = codes[lo:hi]
        pool = pool_codes[pool_ptr[q] : pool_ptr[q + 1]]
        for i in range(n):
            keys[i] = scores[lo + i]
            order[i] = i
        sort_descending(keys, order, n, spare_keys, spare_order)
        n_ties = find_ties(keys, n, tie_starts)
        for i in range(n):
            ranked[i] = own[order[i]]
        if average:
            groups, n_groups = tie_starts, n_ties
        else:
            groups, n_groups = singles, n
        highest = -1
        for i in range(len(pool)):
            highest = max(highest, pool[i])
        any_gain = highest >= 0 and gains[highest] > 0.0
        if depth > 0 and any_gain:
            mean_gains(ranked, groups, n_groups, depth, gains, earned)
            ideal_gains(pool, gains, depth, ideal, order, spare_keys, spare_order)
        relevant, counted = 0, -1  # relevant documents of the pool, by which threshold

        for m in range(len(table)):
            kind, cut, lowest = table[m, KIND], table[m, CUT], table[m, LOWEST]
            too_short = n < cut and table[m, SHORT_IS_ZERO]
            # of a query without a relevant document, or not defined
            value = numbers[m, EMPTY_VALUE] if kind < AUC else math.nan
            if kind in (NDCG, DCG):
                if any_gain:
                    value = 0.0
                    if n > 0 and not too_short:
                        value = dcg(earned, discounts, min(cut, n))
                        if kind == NDCG:
                            value /= dcg(ideal, discounts, min(cut, len(pool)))
            elif kind < AUC and kind not in (ERR, MEAN_NDCG):
                if counted != lowest:
                    relevant, counted = relevant_in(pool, 0, len(pool), lowest), lowest
                if relevant > 0:
                    most = min(relevant, cut) if table[m, CUT_RELEVANT] else relevant
                    value = 0.0
                    if kind != PRECISION or not too_short:
                        value = _by_relevance(
                            kind, cut, lowest, relevant, most, ranked, groups, n_groups
                        )
            if rare is not None:
                if kind == MEAN_NDCG and any_gain:
                    value = 0.0
                    if n > 0:
                        value = mean_ndcg(earned, n, ideal, len(pool), discounts)
                elif kind == ERR and highest >= 0 and stops[highest] > 0.0:
                    scale = numbers[m, STOP_SCALE]
                    value = err(ranked, groups, n_groups, cut, stops, scale, keys)
                elif kind == AUC:
                    value = auc(ranked, tie_starts, n_ties, lowest)
                elif kind == DOMINATION_ERROR:
                    value = domination_error(ranked, n, tie_starts, n_ties)
            values[m, q] = value

        if rare is not None:  # noqa: SIM102  (only a test of its own is seen when compiling)
            if wants_pairs:
                count_pairs(ranked, tie_starts, n_ties, tree, table, q, values)


@kernel
def _by_relevance(
    kind: int,
    cut: int,
    lowest: int,
    relevant: int,
    reachable: int,
    ranked: IntArray,
    groups: IntArray,
    n_groups: int,
) -> float:
    """Measure a list by which of its documents are relevant."""
    if kind == AP:
        return precision_sum(ranked, groups, n_groups, cut, lowest) / reachable
    if kind == MRR:
        return reciprocal_rank(ranked, groups, n_groups, cut, lowest)
    if kind == PRECISION:
        return n_hits(ranked, groups, n_groups, cut, lowest) / cut
    return n_hits(ranked, groups, n_groups, cut, lowest) / relevant


@kernel
def carried_by_ties(query_ptr: IntArray, scores: FloatArray, codes: IntArray) -> tuple[int, int]:
    """Count the queries that ties of the best score decide, and all queries with several levels.

    Ties decide where at least half of the documents, of several levels, share the best score.
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


@kernel
def precision_sum(
    ranked: IntArray, starts: IntArray, n_groups: int, cut: int, lowest: int
) -> float:
    """Sum the precision at the ranks of the relevant documents to rank ``cut``."""
    total = 0.0
    above = 0
    for g in range(n_groups):
        a, end = starts[g], starts[g + 1]
        if a >= cut:
            break
        size = end - a
        if size == 1:
            if ranked[a] >= lowest:
                above += 1
                total += above / end
            continue
        r = relevant_in(ranked, a, end, lowest)
        if r > 0:
            # given a relevant one at position i, r − 1 others are spread over the size − 1 places
            density = (r - 1) / (size - 1)
            part = 0.0
            for i in range(a, min(end, cut)):
                part += (above + 1 + (i - a) * density) / (i + 1)
            total += part * r / size
        above += r
    return total


@kernel
def reciprocal_rank(
    ranked: IntArray, starts: IntArray, n_groups: int, cut: int, lowest: int
) -> float:
    """Expected reciprocal rank of the first relevant document to rank ``cut``, or 0."""
    for g in range(n_groups):
        a, end = starts[g], starts[g + 1]
        if a >= cut:
            break
        r = relevant_in(ranked, a, end, lowest)
        if r > 0:
            total = 0.0
            none_yet = 1.0  # probability that no relevant one came before position i of the group
            for i in range(a, min(end, cut)):
                left = end - i
                total += none_yet * r / left / (i + 1)
                if left <= r:
                    break
                none_yet *= (left - r) / left
            return total
    return 0.0


@kernel
def n_hits(ranked: IntArray, starts: IntArray, n_groups: int, cut: int, lowest: int) -> float:
    """Count the relevant documents to rank ``cut``."""
    total = 0.0
    for g in range(n_groups):
        a, end = starts[g], starts[g + 1]
        if a >= cut:
            break
        r = relevant_in(ranked, a, end, lowest)
        total += r if end <= cut else r * (cut - a) / (end - a)
    return total
