"""Checking the caller's input: an error names the row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.grouping import group_rows, group_sizes_to_qid, one_dimensional
from leanrank.errors import InputError


def numbers(values: Any, name: str, length: int | None = None) -> FloatArray:
    """Check a column of finite numbers and return it as float64."""
    array = one_dimensional(values, name, length)
    try:
        array = np.ascontiguousarray(array, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds something that is not a number ({error})") from error
    check_finite(array, name)
    return array


def whole_or_real(values: Any, name: str) -> AnyArray:
    """Check a column of finite numbers; whole ones stay int64, which saves looking at each."""
    array = one_dimensional(values, name)
    if array.dtype.kind in "bi":
        return np.ascontiguousarray(array, dtype=np.int64)
    return numbers(array, name)


def check_finite(array: FloatArray, name: str) -> None:
    """Raise with the first row that is not a finite number."""
    # a finite sum proves that all is finite, at a third of the cost of looking at each
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(float(array.sum())):
            return
    wrong = np.flatnonzero(~np.isfinite(array))
    if len(wrong):
        row = int(wrong[0])
        raise InputError(
            f"{name} is {array[row]} in row {row}: every document needs a finite number"
        )


def find_queries(qid: Any, group: Any, n_rows: int) -> tuple[AnyArray, IntArray, IntArray | None]:
    """Return the identifiers and boundaries of the queries, and the order that groups the rows."""
    if qid is not None and group is not None:
        raise InputError("both qid and group were given: they say the same thing, give one")
    if group is None:
        grouping = group_rows(qid, n_rows)
        return grouping.query_ids, grouping.query_ptr, grouping.order
    group_sizes_to_qid(group, n_rows)  # checks it
    ends = np.cumsum(np.asarray(group), dtype=np.int64)  # queries without documents are kept
    return np.arange(len(ends)), np.concatenate((np.zeros(1, np.int64), ends)), None
