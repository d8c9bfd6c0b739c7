"""Measuring a few queries without compiled code, so that a first look does not wait for it.

The sums are those of the kernels' own functions, interpreted: values have the same bits either way.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from leanrank._jit import is_compiled
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.metrics._kernels import (
    measure_queries,
    n_hits,
    precision_sum,
    reciprocal_rank,
    tie_state,
)
from leanrank.metrics._one_query import dcg
from leanrank.metrics._order import TIES_AVERAGE, TIES_INPUT
from leanrank.metrics.measures import AP, DCG, MRR, NDCG, PRECISION, RECALL

KINDS = (NDCG, DCG, AP, PRECISION, RECALL, MRR)
LIMIT = 300_000
"""Documents that one process measures without compiled code, in a fraction of a second."""

_counted = [0]


def is_plain(kinds: Collection[int], ties: str, n_documents: int) -> bool:
    """Return whether compiled code is not worth waiting for; if so, count the documents."""
    known = ties in ("input", "average") and all(kind in KINDS for kind in kinds)
    if not known or _counted[0] + n_documents > LIMIT or is_compiled(measure_queries):
        return False
    _counted[0] += n_documents
    return True


def measure_plainly(
    query_ptr: IntArray,
    scores: FloatArray,
    codes: IntArray,
    ties: int,
    pool_ptr: IntArray,
    pool_codes: IntArray,
    gains: FloatArray,
    discounts: FloatArray,
    table: IntArray,
    numbers: FloatArray,
    values: FloatArray,
    state: AnyArray,
) -> None:
    """Fill ``values``, and ``state`` when ties keep the input order: see ``measure_queries``."""
    order = _descending(query_ptr, scores)
    all_ranked, all_starts = codes[order].tolist(), _tie_starts(query_ptr, scores[order])
    all_ideal = pool_codes[_descending(pool_ptr, pool_codes)].tolist()
    ptr, ideal_ptr = query_ptr.tolist(), pool_ptr.tolist()
    start_ptr = np.searchsorted(all_starts, query_ptr).tolist()
    earned = gains.tolist(), discounts.tolist()
    measures = table.tolist()
    for q in range(len(ptr) - 1):
        ranked = all_ranked[ptr[q] : ptr[q + 1]]
        ideal = all_ideal[ideal_ptr[q] : ideal_ptr[q + 1]]
        starts: Sequence[int] = range(len(ranked) + 1)
        groups = starts
        if start_ptr[q + 1] - start_ptr[q] < len(ranked):
            starts = [at - ptr[q] for at in all_starts[start_ptr[q] : start_ptr[q + 1] + 1]]
        if ties == TIES_INPUT:
            state[q] = tie_state.py_func(ranked, len(ranked), starts)
        if ties == TIES_AVERAGE:
            groups = starts
        for m, measure in enumerate(measures):
            value = _value(measure, ranked, ideal, groups, *earned)
            values[m, q] = numbers[m, 0] if value is None else value


def _value(
    measure: list[int],
    ranked: list[int],
    ideal: list[int],
    groups: Sequence[int],
    gains: list[float],
    discounts: list[float],
) -> float | None:
    """Measure one query; None if nothing in it is relevant. ``measure`` is a row of the table."""
    kind, cut, lowest, short_is_zero, cut_relevant = measure
    too_short = len(ranked) < cut and short_is_zero
    n_groups = len(groups) - 1
    if kind in (NDCG, DCG):
        if not ideal or not gains[ideal[0]] > 0.0:
            return None
        if not ranked or too_short:
            return 0.0
        value: float = dcg.py_func(ranked, groups, n_groups, cut, gains, discounts)
        if kind == DCG:
            return value
        best = 0.0
        for code, discount in zip(ideal[:cut], discounts, strict=False):
            best += gains[code] * discount
        return value / best
    relevant = sum(code >= lowest for code in ideal)
    if not relevant:
        return None
    if kind == AP:
        most = min(relevant, cut) if cut_relevant else relevant
        return float(precision_sum.py_func(ranked, groups, n_groups, cut, lowest) / most)
    if kind == MRR:
        return float(reciprocal_rank.py_func(ranked, groups, n_groups, cut, lowest))
    if kind == PRECISION and too_short:
        return 0.0
    found: float = n_hits.py_func(ranked, groups, n_groups, cut, lowest)
    return found / (cut if kind == PRECISION else relevant)


def _descending(ptr: IntArray, values: AnyArray) -> IntArray:
    """Order each query's documents from high to low, equal ones as they are."""
    query = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    order: IntArray = np.lexsort((-values, query))
    return order


def _tie_starts(ptr: IntArray, ranked: FloatArray) -> list[int]:
    """Return where groups of equal scores of one query start, and the number of documents last."""
    starts = np.ones(len(ranked) + 1, dtype=bool)
    starts[1:-1] = ranked[1:] != ranked[:-1]
    starts[ptr] = True
    found: list[int] = np.flatnonzero(starts).tolist()
    return found
