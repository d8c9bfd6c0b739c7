"""What the parts of a ranking data set must be, and what is said when they are not."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, Matrix
from leanrank.data.grouping import Grouping, one_dimensional
from leanrank.errors import InputError, first_repeated


def as_matrix(X: Any) -> Matrix:
    """Make X a C-contiguous array or a canonical CSR array, float32 or float64."""
    from leanrank.data.dask.collections import refuse_dask

    refuse_dask(X, "RankingData")
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_array

        matrix = csr_array(X)
        _refuse_complex(matrix.dtype)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        if not matrix.has_canonical_format:
            if matrix is X or np.shares_memory(matrix.data, getattr(X, "data", matrix.data)):
                matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    try:
        dense = np.asarray(X)
        if dense.dtype not in (np.float32, np.float64) and dense.dtype.kind != "c":
            dense = dense.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"X holds something that is not a number ({error})") from error
    _refuse_complex(dense.dtype)
    if dense.ndim != 2:
        raise InputError(
            f"X has {dense.ndim} dimension{'s' * (dense.ndim != 1)}: give a table of documents × "
            "features"
        )
    return np.ascontiguousarray(dense)


def _refuse_complex(dtype: np.dtype[Any]) -> None:
    if dtype.kind == "c":
        raise InputError("X holds complex numbers: real ones are needed")


def as_labels(y: Any, n_rows: int) -> FloatArray:
    """Make y one number per document; None means that no document has a label."""
    if y is None:
        return np.full(n_rows, np.nan)
    labels = _numbers(y, "y", n_rows)
    infinite = np.flatnonzero(np.isinf(labels))
    if len(infinite):
        raise InputError(
            f"y is {labels[infinite[0]]} in row {infinite[0]}: a label is a finite number, or NaN "
            "for a document without one"
        )
    return labels


def _numbers(values: Any, name: str, n_rows: int) -> FloatArray:
    array = one_dimensional(values, name, n_rows)
    if array.dtype.kind == "c":
        raise InputError(f"{name} holds complex numbers: real ones are needed")
    try:
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds something that is not a number ({error})") from error


def one_per_row(
    values: Any, name: str, grouping: Grouping, n_rows: int, low: float = -np.inf
) -> FloatArray | None:
    """Make one finite number per document, in grouped order."""
    if values is None:
        return None
    array = _numbers(values, name, n_rows)
    wrong = ~(np.isfinite(array) & (array >= low))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        kind = "finite and not negative" if low == 0 else "finite"
        raise InputError(f"{name} is {array[row]} in row {row}: it must be {kind}")
    taken: FloatArray = grouping.take(array)
    return taken


def one_per_query(values: Any, grouping: Grouping) -> FloatArray | None:
    """Make one non-negative number per query, from an array or a mapping."""
    if values is None:
        return None
    if hasattr(values, "keys"):
        missing = [q for q in grouping.query_ids.tolist() if q not in values]
        if missing:
            raise InputError(f"query_weight has no weight for query {missing[0]!r}")
        values = [values[q] for q in grouping.query_ids.tolist()]
    array = _numbers_per_query(values, len(grouping.query_ids))
    if not (np.isfinite(array) & (array >= 0)).all():
        raise InputError("query_weight must be finite and not negative")
    return array


def _numbers_per_query(values: Any, n_queries: int) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (n_queries,):
        raise InputError(
            f"query_weight has shape {array.shape} but there are {n_queries} queries: give one "
            "weight per query in order of first appearance, or a mapping from qid"
        )
    return array


def check_names(names: tuple[str, ...], n_features: int) -> None:
    """Reject feature names that are too many, too few or not distinct."""
    if len(names) != n_features:
        raise InputError(f"{len(names)} feature names were given for {n_features} features")
    twice = first_repeated(names)
    if twice is not None:
        raise InputError(f"the feature name {twice!r} occurs twice: names must be distinct")


def check_optional(optional: Collection[str]) -> tuple[str, ...]:
    """Return the parts that a file may lack, or raise for one that is always needed."""
    for part in optional:
        if part not in ("label", "qid"):
            raise InputError(f"optional={part!r}: only 'label' and 'qid' may be missing")
    return tuple(optional)
