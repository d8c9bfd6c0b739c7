"""Queries of rows in any order, and checks of labels, weights and other columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from leanrank.errors import InputError

LONGEST_LIST = 1_251
"""List length above which a missing ``qid`` warns: the longest public list, in MSLR-WEB30K."""


@dataclass(frozen=True)
class Grouping:
    """The rows of each query.

    Attributes
    ----------
    query_ids : array
        One identifier per query, in order of first appearance.
    query_ptr : array of int64
        Query q owns the grouped rows ``query_ptr[q]:query_ptr[q + 1]``.
    order : array of int64 or None
        Grouped row i is the caller's row ``order[i]``; None when the caller's rows were grouped
        already.
    """

    query_ids: AnyArray
    query_ptr: IntArray
    order: IntArray | None

    def take(self, values: Any) -> Any:
        """Return one value (or row) per document in grouped order, given in the caller's order."""
        return values if self.order is None else values[self.order]

    def restore(self, values: AnyArray) -> AnyArray:
        """Return one value (or row) per document in the caller's order, given in grouped order."""
        if self.order is None:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out


def group_rows(qid: Any, n_rows: int | None = None) -> Grouping:
    """Return the queries of rows that may come in any order.

    Parameters
    ----------
    qid : array-like or None
        One identifier per row, any hashable type; None means that all rows are one query.
    n_rows : int, optional
        The number of rows, to check the length of ``qid``.

    Examples
    --------
    >>> grouping = group_rows(["b", "a", "b"])
    >>> grouping.query_ids.tolist(), grouping.query_ptr.tolist(), grouping.order.tolist()
    (['b', 'a'], [0, 2, 3], [0, 2, 1])
    """
    if qid is None:
        assert n_rows is not None
        n_queries = min(n_rows, 1)  # no documents, no query
        ptr = np.array([0, n_rows][: n_queries + 1], dtype=np.int64)
        return Grouping(np.zeros(n_queries, dtype=np.int64), ptr, None)
    ids = _identifiers(qid)
    if n_rows is not None and len(ids) != n_rows:
        raise InputError(f"qid has {len(ids)} values but there are {n_rows} documents")
    whole = ids.dtype.kind in "iu"
    if not whole and (missing := _missing(ids)).any():
        row = int(np.flatnonzero(missing)[0])
        raise InputError(f"qid is missing in row {row}: every document needs a query")
    if len(ids) == 0:
        return Grouping(ids, np.zeros(1, dtype=np.int64), None)
    starts = run_starts(ids)
    heads = ids[starts]
    if whole and np.all(heads[1:] > heads[:-1]):  # as in most files
        return Grouping(heads, np.append(starts, len(ids)).astype(np.int64), None)
    codes: dict[Any, int] = {}
    try:
        run_codes = np.fromiter(
            (codes.setdefault(head, len(codes)) for head in heads.tolist()), np.int64, len(heads)
        )
    except TypeError as error:
        raise InputError(f"qid holds a value that cannot be hashed ({error})") from error
    if len(codes) == len(heads):
        return Grouping(heads, np.append(starts, len(ids)).astype(np.int64), None)
    row_codes = np.repeat(run_codes, np.diff(np.append(starts, len(ids))))
    order = np.argsort(row_codes, kind="stable").astype(np.int64)
    sizes = np.bincount(row_codes, minlength=len(codes))
    first = np.zeros(len(codes), dtype=np.int64)
    first[run_codes[::-1]] = starts[::-1]
    return Grouping(ids[first], np.concatenate(([0], np.cumsum(sizes))).astype(np.int64), order)


def run_starts(ids: AnyArray) -> IntArray:
    """Return the rows where a value differs from that of the row before.

    >>> run_starts(np.array([7, 7, 8, 7])).tolist()
    [0, 2, 3]
    """
    changes = np.asarray(ids[1:] != ids[:-1], dtype=bool)
    return np.flatnonzero(np.concatenate((np.ones(min(len(ids), 1), dtype=bool), changes)))


def group_sizes_to_qid(group: Any, n_rows: int) -> IntArray:
    """Return one query number per row, from LightGBM's group sizes.

    >>> group_sizes_to_qid([2, 1], 3).tolist()
    [0, 0, 1]
    """
    sizes = one_dimensional(group, "group")
    if sizes.dtype.kind not in "iu" or (len(sizes) and int(sizes.min()) < 0):
        raise InputError(
            "group must hold whole, non-negative query sizes; for one id per row use qid="
        )
    if int(sizes.sum()) != n_rows:
        raise InputError(
            f"group sizes add up to {int(sizes.sum())} but there are {n_rows} documents: group "
            "holds one size per query, qid holds one id per document"
        )
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)


def one_of_each_query(values: AnyArray, query_ptr: IntArray, where: str = "") -> AnyArray:
    """Return one weight per query from one per document, which must agree within a query."""
    first: AnyArray = values[query_ptr[:-1]]
    if not np.array_equal(np.repeat(first, np.diff(query_ptr)), values):
        raise InputError(f"{where}query_weight differs within a query: give one per query")
    return first


def one_dimensional(values: Any, name: str, n_rows: int | None = None) -> AnyArray:
    """Return an array of one value per document, or raise an InputError."""
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    if array.ndim != 1:
        raise InputError(f"{name} has {array.ndim} dimensions: give one value per document")
    if n_rows is not None and len(array) != n_rows:
        raise InputError(f"{name} has {len(array)} values but there are {n_rows} documents")
    return array


def _identifiers(qid: Any) -> AnyArray:
    """Return identifiers as an array; NumPy alone would merge 1 and "1", and split tuples."""
    if isinstance(qid, (list, tuple)):
        kinds = set(map(type, qid))
        if tuple in kinds or (len(kinds) > 1 and any(issubclass(k, (str, bytes)) for k in kinds)):
            ids = np.empty(len(qid), dtype=object)
            ids[:] = qid
            return ids
    return one_dimensional(qid, "qid")


def _missing(ids: AnyArray) -> BoolArray:
    if ids.dtype.kind == "O":
        return np.fromiter(map(_is_missing, ids.tolist()), bool, len(ids))
    return np.asarray(ids != ids, dtype=bool)  # NaN and NaT


def _is_missing(value: Any) -> bool:
    try:
        return value is None or bool(value != value)
    except (TypeError, ValueError):  # pandas' NA is neither equal nor unequal to itself
        return True


def as_matrix(X: Any) -> Matrix:
    """Return X as a C-contiguous array or a canonical CSR array, float32 or float64."""
    from leanrank.data.dask import refuse_dask

    refuse_dask(X, "RankingData")
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_array

        matrix = csr_array(X)
        matrix = matrix.astype(as_floats(matrix.data, "X").dtype, copy=False)
        if not matrix.has_canonical_format:
            if matrix is X or np.shares_memory(matrix.data, getattr(X, "data", matrix.data)):
                matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    dense = as_floats(X, "X")
    if dense.ndim != 2:
        dimensions = "1 dimension" if dense.ndim == 1 else f"{dense.ndim} dimensions"
        raise InputError(f"X has {dimensions}: give a table of documents × features")
    return np.ascontiguousarray(dense)


def as_floats(values: Any, name: str) -> AnyArray:
    """Return an array of float32 or float64."""
    try:
        array = np.asarray(values)
        if array.dtype.kind == "c":
            raise TypeError("complex numbers")
        return array if array.dtype == np.float32 else array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds something that is not a number ({error})") from error


def one_per_row(
    values: Any,
    name: str,
    grouping: Grouping,
    n_rows: int,
    low: float = -np.inf,
    missing: bool = False,
) -> FloatArray | None:
    """Return one finite number per document, in grouped order; NaN is allowed if ``missing``."""
    if values is None:
        return None
    array = one_dimensional(as_floats(values, name), name, n_rows).astype(np.float64, copy=False)
    wrong = ~(np.isfinite(array) & (array >= low)) & ~(np.isnan(array) & missing)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        kind = " and not negative" if low == 0 else ", or NaN where it is missing" * missing
        raise InputError(f"{name} is {array[row]} in row {row}: it must be finite{kind}")
    taken: FloatArray = grouping.take(array)
    return taken


def one_per_query(values: Any, grouping: Grouping) -> FloatArray | None:
    """Return one non-negative number per query, from an array or a mapping."""
    if values is None:
        return None
    if hasattr(values, "keys"):
        missing = [q for q in grouping.query_ids.tolist() if q not in values]
        if missing:
            raise InputError(f"query_weight has no weight for query {missing[0]!r}")
        values = [values[q] for q in grouping.query_ids.tolist()]
    array = np.asarray(values, dtype=np.float64)
    if array.shape != grouping.query_ids.shape:
        raise InputError(
            f"query_weight has shape {array.shape} but there are {len(grouping.query_ids)} "
            "queries: give one weight per query in order of first appearance, or a mapping from qid"
        )
    if not (np.isfinite(array) & (array >= 0)).all():
        raise InputError("query_weight must be finite and not negative")
    return array
