"""Checking the inputs of measures and converting them for the kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.grouping import (
    Grouping,
    as_floats,
    group_rows,
    group_sizes_to_qid,
    one_dimensional,
)
from leanrank.errors import InputError
from leanrank.metrics.conventions import Convention
from leanrank.metrics.measures import (
    AP,
    AUC,
    ERR,
    MEAN_NDCG,
    NDCG,
    PRECISION,
    RECALL,
    Measure,
    Terms,
)

FEW_LEVELS = 64


def numbers(values: Any, name: str, length: int | None = None) -> FloatArray:
    """Return a column of finite numbers as float64."""
    array = one_dimensional(as_floats(values, name), name, length)
    array = np.ascontiguousarray(array, dtype=np.float64)
    check_finite(array, name)
    return array


def check_finite(array: FloatArray, name: str) -> None:
    """Raise an error for the first row that is not a finite number."""
    # a finite sum proves that all is finite, at a third of the cost of looking at each
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(float(array.sum())):
            return
    wrong = np.flatnonzero(~np.isfinite(array))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"{name} is {array[row]} in row {row} (from 0): every document needs a finite number"
        )


def find_queries(qid: Any, group: Any, n_rows: int) -> Grouping:
    """Return the identifiers and boundaries of the queries, and the order that groups the rows."""
    if qid is not None and group is not None:
        raise InputError("both qid and group were given: give one of them")
    if group is None:
        return group_rows(qid, n_rows)
    group_sizes_to_qid(group, n_rows)  # checks it
    ends = np.cumsum(np.asarray(group), dtype=np.int64)  # with queries without documents
    return Grouping(np.arange(len(ends)), np.concatenate((np.zeros(1, np.int64), ends)), None)


def label_codes(labels: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return ascending codes of the labels, and the levels; small whole labels are the codes."""
    if len(labels) and labels.min() >= 0 and labels.max() < FEW_LEVELS:
        codes = labels.astype(np.int64)
        if np.array_equal(codes, labels):
            return codes, np.arange(int(codes.max()) + 1, dtype=np.float64)
    levels, codes = np.unique(labels, return_inverse=True)
    return codes.astype(np.int64, copy=False), levels


def tie_order(query_ptr: IntArray, scores: FloatArray, breaker: AnyArray) -> IntArray:
    """Return an order of each query's documents in which ties are sorted by a descending breaker.

    Only tied documents are sorted by it, since sorting texts is slow.
    """
    query = np.repeat(np.arange(len(query_ptr) - 1), np.diff(query_ptr))
    order = np.lexsort((scores, query))
    equal = (np.diff(scores[order]) == 0) & (np.diff(query[order]) == 0)
    tied = np.union1d(order[:-1][equal], order[1:][equal])
    ranks = np.zeros(len(scores), dtype=np.int64)
    ranks[tied] = np.unique(breaker[tied], return_inverse=True)[1]
    return np.lexsort((-ranks, query))


def measure_terms(
    measures: tuple[Measure, ...], convention: Convention, levels: FloatArray
) -> list[Terms]:
    """Return each measure as arguments of the kernels."""
    found = []
    short = {"as_is": (), "ndcg_zero": (NDCG,), "zero": (NDCG, PRECISION)}[convention.short_lists]
    top = float(levels[-1]) if len(levels) else 0.0
    for measure in measures:
        rel, scale = convention.rel if measure.rel is None else measure.rel, 1.0
        if measure.kind == ERR and measure.max_label is not None:
            if measure.max_label < top:
                raise InputError(
                    f"the measure {measure.name!r} allows labels up to {measure.max_label:g}, but "
                    f"y has {top:g}: give a larger max"
                )
            scale = float(np.exp2(max(top, 0.0) - measure.max_label))
        found.append(
            Terms(
                kind=measure.kind,
                cut=2**62 if measure.k is None else measure.k,
                lowest=int(np.searchsorted(levels, rel)),
                short_is_zero=measure.k is not None and measure.kind in short,
                cut_relevant=convention.ap_cut == "reachable",
                empty=_value_without_relevant(measure, convention),
                stop_scale=scale,
            )
        )
    return found


def _value_without_relevant(measure: Measure, convention: Convention) -> float:
    if convention.no_relevant == "skip" or measure.kind >= AUC:  # pairs may be undefined
        return math.nan
    divides_by_zero = measure.kind in (NDCG, MEAN_NDCG, AP, RECALL)
    return float(convention.no_relevant) if divides_by_zero else 0.0
