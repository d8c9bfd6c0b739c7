"""``RankingData``: documents with features and labels, grouped by query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from leanrank._mapped import is_mapped, take_rows
from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from leanrank.data.grouping import (
    Grouping,
    as_matrix,
    group_rows,
    group_sizes_to_qid,
    one_dimensional,
    one_of_each_query,
    one_per_query,
    one_per_row,
)
from leanrank.data.matrices import stacked
from leanrank.errors import InputError, first_repeated
from leanrank.execution import cached_property


class RankingData:
    """Documents with features and labels, grouped by query; immutable.

    The rows of a query are contiguous in every attribute, queries in order of first appearance;
    ``restore`` puts a result back into the order in which the rows were given.

    Parameters
    ----------
    X : array or SciPy sparse matrix, shape (documents, features)
        float32 and float64 are not converted, other numbers become float64; sparse becomes CSR.
    y : array-like, optional
        One label per document; NaN means unlabelled.
    qid : array-like, optional
        One query identifier per document, any hashable type, rows in any order. None: one query.
    group : array-like, optional
        Instead of qid: the sizes of consecutive queries.
    doc_ids : sequence of str, optional
    feature_names : sequence of str, optional
    sample_weight : array-like, optional
        One non-negative weight per document; 2 means the document twice.
    query_weight : array-like or mapping, optional
        One non-negative weight per query in order of first appearance, or a mapping from qid.
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
    RankingData: 1 query, 1 document, 1 feature (dense float64), levels {1}, 1 query with
    one label (ignored)
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
        extras = {name: value for name, value in locals().items() if name in _EXTRAS}
        X = as_matrix(X)
        if qid is not None and group is not None:
            raise InputError("both qid and group were given: give one of them")
        if group is not None:
            qid = group_sizes_to_qid(group, X.shape[0])
        self._check_and_set(X, y, group_rows(qid, X.shape[0]), **extras)

    def _check_and_set(self, X: Matrix, y: Any, grouping: Grouping, **extras: Any) -> None:
        n_rows = X.shape[0]
        names, ids, weight, query_weight, offset = (extras[name] for name in _EXTRAS)
        if names is not None:
            names = tuple(map(str, names))
            if len(names) != X.shape[1]:
                raise InputError(f"{len(names)} feature names were given for {X.shape[1]} features")
            if (twice := first_repeated(names)) is not None:
                raise InputError(f"the feature name {twice!r} occurs twice: names must be distinct")
        if y is None:
            y = np.full(n_rows, np.nan)
        self._set(
            X=grouping.take(X),
            y=one_per_row(y, "y", grouping, n_rows, missing=True),
            query_ids=grouping.query_ids,
            query_ptr=grouping.query_ptr,
            order=grouping.order,
            doc_ids=None if ids is None else grouping.take(one_dimensional(ids, "doc_ids", n_rows)),
            feature_names=names,
            sample_weight=one_per_row(weight, "sample_weight", grouping, n_rows, low=0.0),
            query_weight=one_per_query(query_weight, grouping),
            offset=one_per_row(offset, "offset", grouping, n_rows),
        )

    @classmethod
    def of_fields(cls, **fields: Any) -> RankingData:
        """Return a set of fields that are known to be grouped and valid; others are None."""
        self = cls.__new__(cls)
        self._set(**{**dict.fromkeys(_FIELDS), **fields})
        return self

    @classmethod
    def open(cls, path: Any) -> RankingData:
        """Return the data of a file that ``leanrank convert`` or ``write_store`` made, mapped.

        X is not read, so that it may be larger than memory. The file must not change while the
        data are in use.
        """
        from leanrank.data.store import load_store

        data = load_store(path)
        if data is None or not is_mapped(data.X):
            raise InputError(
                f"{path}: this file is not in a layout that can be mapped: convert it with "
                f"leanrank convert {path} NEW.arrow"
            )
        return data

    def _set(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, _frozen(value))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"RankingData is immutable: use data.replace({name}=...) for a copy")

    def __reduce__(self) -> tuple[Any, ...]:
        return partial(RankingData.of_fields, **{n: getattr(self, n) for n in _FIELDS}), ()

    def with_fields(self, **fields: Any) -> RankingData:
        """Return a copy with other values of some fields, which are known to be valid."""
        return RankingData.of_fields(**{name: getattr(self, name) for name in _FIELDS} | fields)

    def __len__(self) -> int:
        """Return the number of documents."""
        return int(self.X.shape[0])

    @property
    def n_queries(self) -> int:
        """Number of queries."""
        return len(self.query_ptr) - 1

    @property
    def n_features(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])

    @property
    def is_sparse(self) -> bool:
        """Whether X is a SciPy CSR array."""
        return not isinstance(self.X, np.ndarray)

    @cached_property
    def qid(self) -> AnyArray:
        """One query identifier per document, in grouped order."""
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
        values = self.X.data if self.is_sparse else self.X
        return float(np.count_nonzero(values)) / cells

    @property
    def queries(self) -> QueryIndexer:
        """Select whole queries by position: ``data.queries[10:20]``, a mask or a list."""
        return QueryIndexer(self)

    def restore(self, values: Any) -> AnyArray:
        """Return one value (or row) per document in the order in which the rows were given."""
        array = np.asarray(values)
        if len(array) != len(self):
            raise InputError(
                f"there are {len(array)} values for {len(self)} documents: give one per document"
            )
        return Grouping(self.query_ids, self.query_ptr, self.order).restore(array)

    def replace(self, **fields: Any) -> RankingData:
        """Return a copy with other values of some fields, given in grouped order.

        >>> RankingData([[1.0], [2.0]], [0, 1]).replace(y=[1, 0]).y.tolist()
        [1.0, 0.0]
        """
        unknown = set(fields) - _REPLACEABLE
        if unknown:
            raise InputError(f"cannot replace {sorted(unknown)}, only {sorted(_REPLACEABLE)}")
        given = {name: getattr(self, name) for name in _REPLACEABLE} | fields
        X = as_matrix(given.pop("X"))
        if X.shape[0] != len(self):
            raise InputError(f"X has {X.shape[0]} rows but there are {len(self)} documents")
        copy = RankingData.__new__(RankingData)
        grouping = Grouping(self.query_ids, self.query_ptr, None)
        copy._check_and_set(X, given.pop("y"), grouping, **given)
        copy._set(order=self.order)
        return copy

    def __repr__(self) -> str:
        import textwrap

        storage = f"{'sparse' if self.is_sparse else 'dense'} {self.X.dtype}"
        if self.is_sparse or len(self) * self.n_features <= 10_000_000:
            density = self.density
            if self.is_sparse or density < 1:
                storage += f", {100 * density:.3g}% non-zero"
        parts = [
            counted(self.n_queries, "query", "queries"),
            counted(len(self), "document"),
            f"{counted(self.n_features, 'feature')} ({storage})",
            _levels_text(self.levels),
        ]
        unlabelled = int(np.isnan(self.y).sum())
        if unlabelled:
            parts.append(f"{unlabelled:,} unlabelled")
        idle = self.n_queries - int(self.informative.sum())
        if idle:
            parts.append(f"{counted(idle, 'query', 'queries')} with one label (ignored)")
        extras = [name for name in _EXTRAS[1:] if getattr(self, name) is not None]
        if extras:
            parts.append("with " + ", ".join(extras))
        return textwrap.fill("RankingData: " + ", ".join(parts), 88, break_on_hyphens=False)


@dataclass(frozen=True)
class QueryIndexer:
    """Selection of whole queries of a ``RankingData``."""

    data: RankingData

    def __len__(self) -> int:
        return self.data.n_queries

    def __getitem__(self, key: Any) -> RankingData:
        data = self.data
        try:
            chosen = np.atleast_1d(np.arange(data.n_queries)[key])
        except IndexError as error:
            raise IndexError(f"{error} (the data has {data.n_queries} queries)") from None
        if chosen.ndim != 1:
            raise IndexError("queries are selected by a number, a slice, a list or a mask")
        sizes = np.diff(data.query_ptr)[chosen]
        ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        rows: Any = np.arange(int(ptr[-1])) + np.repeat(data.query_ptr[chosen] - ptr[:-1], sizes)
        if len(chosen) > 0 and bool(np.all(np.diff(chosen) == 1)):  # a view is enough
            rows = slice(int(data.query_ptr[chosen[0]]), int(data.query_ptr[chosen[-1] + 1]))
        each: dict[str, Any] = {name: getattr(data, name) for name in _PER_ROW}
        return RankingData.of_fields(
            X=take_rows(data.X, rows),
            query_ids=data.query_ids[chosen],
            query_ptr=ptr,
            feature_names=data.feature_names,
            query_weight=None if data.query_weight is None else data.query_weight[chosen],
            **{name: None if values is None else values[rows] for name, values in each.items()},
        )


def concatenated(parts: Sequence[RankingData]) -> RankingData:
    """Return sets one below the other, grouped by query.

    >>> one, other = RankingData([[1.0], [2.0]], qid=[7, 8]), RankingData([[3.0]], qid=[8])
    >>> concatenated([one, other]).query_ptr.tolist()
    [0, 1, 3]
    """
    names = [part.query_ids for part in parts]
    kinds = {array.dtype.kind for array in names if len(array)}
    if "U" in kinds and kinds & {"i", "u"}:  # whole numbers become text if some identifiers are
        names = [array.astype(str) for array in names]
    ids = np.concatenate([a.astype(object) for a in names] if "O" in kinds else names)
    numbers: dict[Any, int] = {}
    runs = np.array([numbers.setdefault(each, len(numbers)) for each in ids.tolist()], np.int64)
    sizes = np.concatenate([np.diff(part.query_ptr) for part in parts])
    grouping = group_rows(np.repeat(runs, sizes))
    first = np.unique(runs, return_index=True)[1]

    def joined(values: Sequence[Any]) -> Any:
        if values[0] is not None:
            return grouping.take(np.concatenate([np.asarray(each) for each in values]))
        return None

    weight = joined([weights_per_row(part).get("query_weight") for part in parts])
    if weight is not None:
        weight = one_of_each_query(weight, grouping.query_ptr)
    return RankingData.of_fields(
        X=grouping.take(stacked([part.X for part in parts])),
        query_ids=ids[first[grouping.query_ids]],
        query_ptr=grouping.query_ptr,
        order=grouping.order,
        feature_names=parts[0].feature_names,
        query_weight=weight,
        **{name: joined([getattr(part, name) for part in parts]) for name in _PER_ROW},
    )


def weights_per_row(data: RankingData) -> dict[str, AnyArray]:
    """Return the weights and offsets that a set has, by the name of their column in a table."""
    weights = data.query_weight
    if weights is not None:
        weights = np.repeat(weights, np.diff(data.query_ptr))
    each = {"weight": data.sample_weight, "query_weight": weights, "offset": data.offset}
    return {role: values for role, values in each.items() if values is not None}


def feature_name(feature: int, names: Sequence[str] | None = None) -> str:
    """Return the name of a column of X; without names, columns are ``f1``, ``f2`` and so on.

    >>> feature_name(0), feature_name(0, ["bm25"])
    ('f1', 'bm25')
    """
    return f"f{feature + 1}" if names is None else str(names[feature])


def column_values(X: Matrix, feature: int) -> AnyArray:
    """Return a column of a dense or sparse matrix as a dense array.

    >>> column_values(np.array([[1.0, 2.0], [3.0, 4.0]]), 1).tolist()
    [2.0, 4.0]
    """
    if isinstance(X, np.ndarray):
        return X[:, feature]
    if X.format != "csc":
        return np.asarray(X[:, [feature]].toarray()[:, 0])
    begin, end = int(X.indptr[feature]), int(X.indptr[feature + 1])
    column = np.zeros(X.shape[0], dtype=X.dtype)
    column[X.indices[begin:end]] = X.data[begin:end]
    return column


def informative_queries(y: FloatArray, query_ptr: IntArray) -> BoolArray:
    """Return for each query whether its labelled documents are at two levels or more.

    >>> informative_queries(np.array([1.0, 1, 0, 1, 2]), np.array([0, 2, 2, 4, 5])).tolist()
    [False, False, True, False]
    """
    out = np.zeros(len(query_ptr) - 1, dtype=bool)
    filled = np.flatnonzero(np.diff(query_ptr) > 0)
    if len(filled):
        starts = query_ptr[:-1][filled]
        out[filled] = np.fmax.reduceat(y, starts) > np.fmin.reduceat(y, starts)  # ignores NaN
    return out


_FIELDS = tuple(RankingData.__annotations__)
_PER_ROW = ("y", "doc_ids", "sample_weight", "offset")
_EXTRAS = ("feature_names", "doc_ids", "sample_weight", "query_weight", "offset")
_REPLACEABLE = frozenset(_FIELDS) - {"query_ids", "query_ptr", "order"}


def _frozen(value: Any) -> Any:
    """Return a read-only view; the caller's own array keeps its flag."""
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


def counted(n: int, singular: str, plural: str | None = None) -> str:
    """Return a number and its noun.

    >>> counted(1, "query", "queries"), counted(1200, "document")
    ('1 query', '1,200 documents')
    """
    return f"{n:,} {singular if n == 1 else plural or singular + 's'}"


def _levels_text(levels: FloatArray) -> str:
    if len(levels) == 0:
        return "no labels"
    if len(levels) > 8:
        return f"{len(levels):,} levels from {levels[0]:g} to {levels[-1]:g}"
    return "levels {" + ", ".join(f"{v:g}" for v in levels) + "}"
