"""What a ranking data set is: documents with features and labels, grouped by query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from leanrank.errors import InputError


@dataclass(frozen=True)
class Grouping:
    """Where each query's rows are.

    Attributes
    ----------
    query_ids : array
        One identifier a query, in order of first appearance.
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
        """Put one value (or row) a document from the caller's order into the grouped order."""
        return values if self.order is None else values[self.order]

    def restore(self, values: AnyArray) -> AnyArray:
        """Put one value (or row) a document from the grouped order back into the caller's."""
        if self.order is None:
            return values
        out = np.empty_like(values)
        out[self.order] = values
        return out


def group_rows(qid: Any, n_rows: int | None = None) -> Grouping:
    """Find the queries of rows that may come in any order.

    Parameters
    ----------
    qid : array-like or None
        One identifier a row, any hashable type; None means that all rows are one query.
    n_rows : int, optional
        What the length must be.

    Examples
    --------
    >>> grouping = group_rows(["b", "a", "b"])
    >>> grouping.query_ids.tolist(), grouping.query_ptr.tolist(), grouping.order.tolist()
    (['b', 'a'], [0, 2, 3], [0, 2, 1])
    """
    if qid is None:
        if n_rows is None:
            raise InputError("either qid or the number of rows must be given")
        return Grouping(np.zeros(1, dtype=np.int64), np.array([0, n_rows], dtype=np.int64), None)
    ids = _one_dimensional(qid, "qid")
    if n_rows is not None and len(ids) != n_rows:
        raise InputError(
            f"qid has {len(ids)} values but there are {n_rows} documents: give one qid a document"
        )
    if _missing(ids).any():
        row = int(np.flatnonzero(_missing(ids))[0])
        raise InputError(f"qid is missing in row {row}: every document needs a query")
    if len(ids) == 0:
        return Grouping(ids, np.zeros(1, dtype=np.int64), None)
    starts = np.flatnonzero(np.concatenate(([True], np.asarray(ids[1:] != ids[:-1], dtype=bool))))
    heads = ids[starts]
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


def group_sizes_to_qid(group: Any, n_rows: int) -> IntArray:
    """Turn LightGBM's group sizes into one query number a row.

    >>> group_sizes_to_qid([2, 1], 3).tolist()
    [0, 0, 1]
    """
    sizes = _one_dimensional(group, "group")
    if sizes.dtype.kind not in "iu" or (len(sizes) and int(sizes.min()) < 0):
        raise InputError("group must hold whole, non-negative query sizes; for one id a row use qid=")
    if int(sizes.sum()) != n_rows:
        raise InputError(
            f"group sizes add up to {int(sizes.sum())} but there are {n_rows} documents; group holds "
            "one size a query, qid holds one id a document"
        )
    return np.repeat(np.arange(len(sizes), dtype=np.int64), sizes)


class RankingData:
    """Documents with features and labels, grouped by query; immutable.

    The rows of a query are contiguous in every attribute, in order of the queries' first appearance;
    :meth:`restore` puts a result back into the order in which the rows were given.

    Parameters
    ----------
    X : array or SciPy sparse matrix, shape (documents, features)
        float32 and float64 are kept as they are, other numbers become float64; sparse becomes CSR.
    y : array-like, optional
        One label a document; NaN means unlabelled.
    qid : array-like, optional
        One query identifier a document, any hashable type, rows in any order. None: one query.
    group : array-like, optional
        Instead of qid: the sizes of consecutive queries.
    doc_ids : sequence of str, optional
    feature_names : sequence of str, optional
    sample_weight : array-like, optional
        One non-negative weight a document; 2 means the document twice.
    query_weight : array-like or mapping, optional
        One non-negative weight a query in order of first appearance, or a mapping from qid.
    offset : array-like, optional
        Margin offset s of each document: the loss sees Xw − s.

    Examples
    --------
    >>> data = RankingData([[1.0], [2.0], [3.0]], [0, 1, 1], qid=["b", "a", "b"])
    >>> data.X.ravel().tolist(), data.qid.tolist()
    ([1.0, 3.0, 2.0], ['b', 'b', 'a'])
    >>> data.restore(data.y).tolist()
    [0.0, 1.0, 1.0]
    >>> data.queries[1:]
    RankingData: 1 query, 1 document, 1 feature (dense float64), levels {1}, 1 query without
    information
    """

    X: Matrix
    y: FloatArray
    query_ids: AnyArray
    query_ptr: IntArray
    order: IntArray | None
    doc_ids: AnyArray | None
    feature_names: tuple[str, ...] | None
    sample_weight: FloatArray | None
    query_weight: FloatArray | None
    offset: FloatArray | None

    def __init__(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        group: Any = None,
        doc_ids: Sequence[str] | AnyArray | None = None,
        feature_names: Iterable[str] | None = None,
        sample_weight: Any = None,
        query_weight: Any = None,
        offset: Any = None,
    ) -> None:
        X = _matrix(X)
        n_rows = X.shape[0]
        if qid is not None and group is not None:
            raise InputError("both qid and group were given: they say the same thing, give one")
        if group is not None:
            qid = group_sizes_to_qid(group, n_rows)
        grouping = group_rows(qid, n_rows)
        names = None if feature_names is None else tuple(map(str, feature_names))
        if names is not None:
            _check_names(names, X.shape[1])
        ids = None if doc_ids is None else _one_dimensional(doc_ids, "doc_ids", n_rows)
        labels = np.full(n_rows, np.nan) if y is None else _numbers(y, "y", n_rows)
        self._set(
            X=grouping.take(X),
            y=grouping.take(labels),
            query_ids=grouping.query_ids,
            query_ptr=grouping.query_ptr,
            order=grouping.order,
            doc_ids=None if ids is None else grouping.take(ids),
            feature_names=names,
            sample_weight=_per_row(sample_weight, "sample_weight", grouping, n_rows, low=0.0),
            query_weight=_per_query(query_weight, grouping),
            offset=_per_row(offset, "offset", grouping, n_rows),
        )

    @classmethod
    def _of(cls, **fields: Any) -> RankingData:
        """Build from fields that are known to be grouped and valid."""
        self = cls.__new__(cls)
        self._set(**fields)
        return self

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, _frozen(value))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"RankingData is immutable: use data.replace({name}=...) for a copy")

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (self._fields(),))

    def _fields(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _FIELDS}

    def __len__(self) -> int:
        """Count the documents."""
        return int(self.X.shape[0])

    @property
    def n_queries(self) -> int:
        """How many queries there are."""
        return len(self.query_ptr) - 1

    @property
    def n_features(self) -> int:
        """How many features a document has."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether X is a SciPy CSR array."""
        return not isinstance(self.X, np.ndarray)

    @cached_property
    def qid(self) -> AnyArray:
        """One query identifier a document, in grouped order."""
        return _frozen(np.repeat(self.query_ids, np.diff(self.query_ptr)))

    @cached_property
    def levels(self) -> FloatArray:
        """The distinct labels, ascending, NaN left out."""
        return _frozen(np.unique(self.y[~np.isnan(self.y)]))

    @cached_property
    def informative(self) -> BoolArray:
        """For each query, whether it has documents at two levels or more."""
        return _frozen(informative_queries(self.y, self.query_ptr))

    @property
    def density(self) -> float:
        """Share of the matrix that is not zero."""
        cells = self.X.shape[0] * self.X.shape[1]
        if cells == 0:
            return 0.0
        stored = self.X.nnz if self.is_sparse else np.count_nonzero(self.X)
        return float(stored) / cells

    @property
    def queries(self) -> QueryIndexer:
        """Select whole queries by position: ``data.queries[10:20]``, a mask or a list."""
        return QueryIndexer(self)

    def restore(self, values: Any) -> AnyArray:
        """Put one value (or row) a document back into the order in which the rows were given."""
        array = np.asarray(values)
        if len(array) != len(self):
            raise InputError(f"{len(array)} values cannot be restored for {len(self)} documents")
        return Grouping(self.query_ids, self.query_ptr, self.order).restore(array)

    def replace(self, **fields: Any) -> RankingData:
        """Give a copy in which some fields differ; rows are given in grouped order.

        >>> RankingData([[1.0], [2.0]], [0, 1]).replace(y=[1, 0]).y.tolist()
        [1.0, 0.0]
        """
        unknown = set(fields) - _REPLACEABLE
        if unknown:
            raise InputError(f"cannot replace {sorted(unknown)}: choose from {sorted(_REPLACEABLE)}")
        checked = RankingData(
            fields.get("X", self.X),
            fields.get("y", self.y),
            group=np.diff(self.query_ptr),
            **{
                name: fields.get(name, getattr(self, name))
                for name in _REPLACEABLE - {"X", "y"}
            },
        )
        merged = checked._fields() | {"query_ids": self.query_ids, "order": self.order}
        return RankingData._of(**merged)

    def __repr__(self) -> str:
        import textwrap

        storage = f"{'sparse' if self.is_sparse else 'dense'} {self.X.dtype}"
        if self.is_sparse or len(self) * self.n_features <= 10_000_000:
            density = self.density
            if self.is_sparse or density < 1:
                storage += f", {100 * density:.3g}% non-zero"
        parts = [
            _count(self.n_queries, "query", "queries"),
            _count(len(self), "document"),
            f"{_count(self.n_features, 'feature')} ({storage})",
            _levels_text(self.levels),
        ]
        unlabelled = int(np.isnan(self.y).sum())
        if unlabelled:
            parts.append(f"{unlabelled:,} unlabelled")
        idle = self.n_queries - int(self.informative.sum())
        if idle:
            parts.append(f"{_count(idle, 'query', 'queries')} without information")
        extras = [n for n in ("doc_ids", "sample_weight", "query_weight", "offset") if getattr(self, n) is not None]
        if extras:
            parts.append("with " + ", ".join(extras))
        return textwrap.fill("RankingData: " + ", ".join(parts), 88, break_on_hyphens=False)


@dataclass(frozen=True)
class QueryIndexer:
    """Selection of whole queries of a :class:`RankingData`."""

    data: RankingData

    def __len__(self) -> int:
        return self.data.n_queries

    def __getitem__(self, key: Any) -> RankingData:
        data = self.data
        if isinstance(key, (int, np.integer)) and not isinstance(key, bool):
            key = [key]
        try:
            chosen = np.arange(data.n_queries)[key]
        except IndexError as error:
            raise IndexError(f"{error} (the data has {data.n_queries} queries)") from None
        contiguous = len(chosen) > 0 and bool(np.all(np.diff(chosen) == 1))
        sizes = np.diff(data.query_ptr)[chosen]
        rows: Any
        if contiguous:
            rows = slice(int(data.query_ptr[chosen[0]]), int(data.query_ptr[chosen[-1] + 1]))
        else:
            starts = data.query_ptr[:-1][chosen]
            ends = np.cumsum(sizes)
            rows = np.arange(int(sizes.sum())) + np.repeat(starts - (ends - sizes), sizes)

        def of(values: Any) -> Any:
            return None if values is None else values[rows]

        return RankingData._of(
            X=data.X[rows],
            y=data.y[rows],
            query_ids=data.query_ids[chosen],
            query_ptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
            order=None,
            doc_ids=of(data.doc_ids),
            feature_names=data.feature_names,
            sample_weight=of(data.sample_weight),
            query_weight=None if data.query_weight is None else data.query_weight[chosen],
            offset=of(data.offset),
        )


def informative_queries(y: FloatArray, query_ptr: IntArray) -> BoolArray:
    """Tell for each query whether its labelled documents are at two levels or more.

    >>> informative_queries(np.array([1.0, 1, 0, 1, 2]), np.array([0, 2, 2, 4, 5])).tolist()
    [False, False, True, False]
    """
    out = np.zeros(len(query_ptr) - 1, dtype=bool)
    filled = np.flatnonzero(np.diff(query_ptr) > 0)
    if len(filled):
        starts = query_ptr[:-1][filled]
        labelled = ~np.isnan(y)
        low = np.minimum.reduceat(np.where(labelled, y, np.inf), starts)
        high = np.maximum.reduceat(np.where(labelled, y, -np.inf), starts)
        out[filled] = high > low
    return out


_FIELDS = (
    "X",
    "y",
    "query_ids",
    "query_ptr",
    "order",
    "doc_ids",
    "feature_names",
    "sample_weight",
    "query_weight",
    "offset",
)
_REPLACEABLE = frozenset(_FIELDS) - {"query_ids", "query_ptr", "order"}


def _rebuild(fields: dict[str, Any]) -> RankingData:
    return RankingData._of(**fields)


def _matrix(X: Any) -> Matrix:
    if hasattr(X, "tocsr"):
        from scipy.sparse import csr_array

        matrix = csr_array(X)
        if matrix.dtype not in (np.float32, np.float64):
            matrix = matrix.astype(np.float64)
        if not matrix.has_canonical_format:
            if matrix is X or np.shares_memory(matrix.data, getattr(X, "data", matrix.data)):
                matrix = matrix.copy()
            matrix.sum_duplicates()
        return matrix
    try:
        dense = np.asarray(X)
        if dense.dtype not in (np.float32, np.float64):
            dense = dense.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"X holds something that is not a number ({error})") from error
    if dense.ndim != 2:
        raise InputError(
            f"X has {dense.ndim} dimension{'s' * (dense.ndim != 1)}: give a table of documents × features"
        )
    return np.ascontiguousarray(dense)


def _one_dimensional(values: Any, name: str, n_rows: int | None = None) -> AnyArray:
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array.ravel()
    if array.ndim != 1:
        raise InputError(f"{name} has {array.ndim} dimensions: give one value a document")
    if n_rows is not None and len(array) != n_rows:
        raise InputError(f"{name} has {len(array)} values but there are {n_rows} documents")
    return array


def _numbers(values: Any, name: str, n_rows: int) -> FloatArray:
    array = _one_dimensional(values, name, n_rows)
    try:
        return array.astype(np.float64, copy=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} holds something that is not a number ({error})") from error


def _per_row(
    values: Any, name: str, grouping: Grouping, n_rows: int, low: float = -np.inf
) -> FloatArray | None:
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


def _per_query(values: Any, grouping: Grouping) -> FloatArray | None:
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
            f"query_weight has shape {array.shape} but there are {n_queries} queries: give one weight "
            "a query in order of first appearance, or a mapping from qid"
        )
    return array


def _check_names(names: tuple[str, ...], n_features: int) -> None:
    if len(names) != n_features:
        raise InputError(f"{len(names)} feature names were given for {n_features} features")
    if len(set(names)) != len(names):
        seen: set[str] = set()
        twice = next(n for n in names if n in seen or seen.add(n))  # type: ignore[func-returns-value]
        raise InputError(f"the feature name {twice!r} occurs twice: names must be distinct")


def _missing(ids: AnyArray) -> BoolArray:
    if ids.dtype.kind == "f":
        return np.asarray(np.isnan(ids))
    if ids.dtype.kind == "O":
        return np.fromiter((v is None or v != v for v in ids.tolist()), bool, len(ids))
    return np.zeros(len(ids), dtype=bool)


def _frozen(value: Any) -> Any:
    """Give a read-only view; the caller's own array keeps its flag."""
    if isinstance(value, np.ndarray):
        view = value.view()
        view.flags.writeable = False
        return view
    if hasattr(value, "indptr"):
        view = type(value)(
            (_frozen(value.data), _frozen(value.indices), _frozen(value.indptr)),
            shape=value.shape,
            copy=False,
        )
        view.has_canonical_format = value.has_canonical_format
        return view
    return value


def _count(n: int, singular: str, plural: str | None = None) -> str:
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def _levels_text(levels: FloatArray) -> str:
    if len(levels) == 0:
        return "no labels"
    if len(levels) > 8:
        return f"{len(levels):,} levels from {levels[0]:g} to {levels[-1]:g}"
    return "levels {" + ", ".join(f"{v:g}" for v in levels) + "}"
