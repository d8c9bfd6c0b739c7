"""Rows of any number gathered by query in bounded memory: temporary files hold what is large.

Rows are taken as they come. If the rows of some query turn out not to be together, features are
sorted by distribution: one pass deals them to buckets of the sorted order, a second one puts each
bucket, which fits in memory, in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from leanrank._mapped import Spool, scratch
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.grouping import group_rows, one_of_each_query
from leanrank.data.matrices import DENSE_FROM, csr
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.execution import row_blocks

_PER_ROW = ("sample_weight", "offset")


@dataclass(frozen=True)
class Gathered:
    """All rows, grouped by query; what has an entry per value is mapped from temporary files."""

    X: Matrix
    y: FloatArray
    query_ids: AnyArray
    query_ptr: IntArray
    doc_ids: tuple[AnyArray, AnyArray] | None  # UTF-8 and where each begins
    feature_names: tuple[str, ...] | None
    sample_weight: FloatArray | None
    query_weight: FloatArray | None
    offset: FloatArray | None
    was_sorted: bool


class Gatherer:
    """Takes chunks of rows, and gathers them by query.

    Parameters
    ----------
    folder : str, optional
        Where temporary files go.
    storage : {"as given", "auto", "dense", "sparse"}
        "auto" is for sparse chunks that become dense if enough of the matrix is not zero.
    n_features : int, optional
        By default the widest chunk decides, if chunks are sparse.
    bucket_bytes : int
        Features that are sorted in memory at a time.
    """

    def __init__(
        self,
        folder: str | None = None,
        storage: str = "as given",
        n_features: int | None = None,
        bucket_bytes: int = 64 << 20,
    ) -> None:
        self.folder, self.storage, self.bucket_bytes = folder, storage, bucket_bytes
        self.n_rows = 0
        self.n_features = n_features or 0
        self._heads: list[AnyArray] = []
        self._lengths: list[IntArray] = []
        self._query_weights: list[FloatArray] = []
        self._features: _Features | None = None
        self._labels = Spool(np.float64, folder)
        self._per_row: dict[str, Spool] = {}
        self._texts: tuple[Spool, Spool] | None = None
        self._first: RankingData | None = None

    def add(self, chunk: RankingData) -> None:
        """Add the next rows; their queries may continue in later chunks."""
        if self._first is None:
            self._first = chunk
            self._features = _Features(chunk.is_sparse, chunk.X.dtype, self.folder)
            self.n_features = max(self.n_features, chunk.n_features)
            names = [n for n in _PER_ROW if getattr(chunk, n) is not None]
            self._per_row = {name: Spool(np.float64, self.folder) for name in names}
        assert self._features is not None
        self._check(self._first, chunk)
        self.n_features = max(self.n_features, chunk.n_features)
        self._features.append(chunk.X)
        self._labels.append(chunk.y)
        self._heads.append(chunk.query_ids)
        self._lengths.append(np.diff(chunk.query_ptr))
        if chunk.query_weight is not None:
            self._query_weights.append(chunk.query_weight)
        for name, spool in self._per_row.items():
            spool.append(getattr(chunk, name))
        self._add_texts(chunk)
        self.n_rows += len(chunk)

    def _check(self, first: RankingData, chunk: RankingData) -> None:
        fields = (*_PER_ROW, "query_weight")
        odd = [n for n in fields if (getattr(first, n) is None) != (getattr(chunk, n) is None)]
        alike = first.is_sparse == chunk.is_sparse and first.X.dtype == chunk.X.dtype
        wide = first.is_sparse or first.n_features == chunk.n_features
        if odd or not alike or not wide or first.feature_names != chunk.feature_names:
            raise InputError(
                "the parts of the data differ in features, storage or extra columns: they must be "
                "alike to be written to one file"
            )

    def _add_texts(self, chunk: RankingData) -> None:
        if chunk.doc_ids is None and self._texts is None:
            return
        if self._texts is None:  # text names documents from here on: those before have none
            self._texts = Spool(np.uint8, self.folder), Spool(np.int64, self.folder)
            for low, high in row_blocks(self.n_rows):
                self._texts[1].append(np.zeros(high - low))
        names = [""] * len(chunk) if chunk.doc_ids is None else chunk.doc_ids.tolist()
        encoded = [b"" if name is None else str(name).encode() for name in names]
        self._texts[0].append(np.frombuffer(b"".join(encoded), dtype=np.uint8))
        self._texts[1].append(np.fromiter(map(len, encoded), np.int64, len(encoded)))

    def gather(self) -> Gathered:
        """Return all rows by query: queries in order of first appearance, rows in theirs."""
        first, features = self._first, self._features
        if first is None or features is None:
            raise InputError("there is no data to write")
        heads, lengths = _joined(self._heads), np.concatenate(self._lengths)
        runs = group_rows(heads, len(heads))
        order = None if runs.order is None else _expanded(lengths, runs.order)
        lengths = runs.take(lengths)
        weights = None
        if self._query_weights:
            weights = runs.take(np.concatenate(self._query_weights))
            weights = one_of_each_query(weights, runs.query_ptr)
        if order is not None:
            features = features.sorted_by(order, self.n_features, self.bucket_bytes)

        def column(spool: Spool | None) -> Any:
            values = None if spool is None else spool.mapped()
            return values if order is None or values is None else values[order]

        texts = None
        if self._texts is not None:
            texts = _texts_in_order(*self._texts, order, self.folder)
        return Gathered(
            X=self._stored(features),
            y=column(self._labels),
            query_ids=runs.query_ids,
            query_ptr=np.concatenate(([0], np.cumsum(lengths)))[runs.query_ptr],
            doc_ids=texts,
            feature_names=first.feature_names,
            sample_weight=column(self._per_row.get("sample_weight")),
            query_weight=weights,
            offset=column(self._per_row.get("offset")),
            was_sorted=order is None,
        )

    def _stored(self, features: _Features) -> Matrix:
        X = features.matrix(self.n_features)
        dense = self.storage == "dense"
        if self.storage == "auto":
            dense = features.n_values >= DENSE_FROM * self.n_rows * self.n_features
        if not features.sparse or not dense:
            return X
        filled = _Features(False, X.dtype, self.folder)
        for low, high in row_blocks(self.n_rows):
            filled.append(X[low:high].toarray())
        return filled.matrix(self.n_features)


class _Features:
    """Rows of a matrix in temporary files."""

    def __init__(self, sparse: bool, dtype: Any, folder: str | None) -> None:
        self.sparse, self.folder = sparse, folder
        self.values = Spool(dtype, folder)
        self.indices = Spool(np.int32, folder)
        self.lengths = Spool(np.int64, folder)

    @property
    def n_values(self) -> int:
        return self.values.size

    def append(self, X: Matrix) -> None:
        if not self.sparse:
            self.values.append(X)
            return
        begin, end = int(X.indptr[0]), int(X.indptr[-1])
        self.values.append(X.data[begin:end])
        self.indices.append(X.indices[begin:end])
        self.lengths.append(np.diff(X.indptr))

    def matrix(self, n_features: int) -> Matrix:
        """Return the rows, mapped."""
        if not self.sparse:
            values = self.values.mapped()
            return values.reshape(-1, n_features) if n_features else values.reshape(-1, 0)
        ptr = np.concatenate(([0], np.cumsum(self.lengths.mapped())))
        return csr(self.values.mapped(), self.indices.mapped(), ptr, n_features)

    def sorted_by(self, order: IntArray, n_features: int, bucket_bytes: int) -> _Features:
        """Return the rows in another order: row i is what was row ``order[i]``."""
        X, n_rows = self.matrix(n_features), len(order)
        out = _Features(self.sparse, self.values.dtype, self.folder)
        entry = self.values.dtype.itemsize + (4 if self.sparse else 0)
        n_bytes = self.n_values * entry + 8 * n_rows
        rows_per_bucket = max(1, bucket_bytes * n_rows // max(1, n_bytes))
        edges = np.append(np.arange(0, n_rows, rows_per_bucket), n_rows)
        place = np.empty(n_rows, dtype=np.int64)
        place[order] = np.arange(n_rows)
        room = _Room(X, order, edges, self.folder)
        for low, high in row_blocks(n_rows):
            bucket = np.searchsorted(edges, place[low:high], side="right") - 1
            by_bucket = np.argsort(bucket, kind="stable")
            room.deal(X[low:high][by_bucket], bucket[by_bucket])
        for number, (low, high) in enumerate(pairwise(edges)):
            # a bucket has its rows as they came, that is by their old number
            rank = np.argsort(np.argsort(order[low:high], kind="stable"), kind="stable")
            out.append(room.bucket(number)[rank])
        return out


class _Room:
    """One temporary file in which each bucket has its place."""

    def __init__(self, X: Matrix, order: IntArray, edges: IntArray, folder: str | None) -> None:
        self.sparse, self.edges, self.n_features = not isinstance(X, np.ndarray), edges, X.shape[1]
        self.next_row = edges[:-1].copy()
        if not self.sparse:
            self.rows = scratch(X.shape, X.dtype, folder)
            return
        self.lengths = np.zeros(len(order), dtype=np.int64)
        sizes = np.diff(X.indptr).astype(np.int64)
        ends = np.concatenate(([0], np.cumsum(sizes[order])))
        self.first_entry = ends[edges]
        self.next_entry = self.first_entry[:-1].copy()
        self.values = scratch((len(X.data),), X.dtype, folder)
        self.indices = scratch((len(X.data),), X.indices.dtype, folder)

    def deal(self, rows: Matrix, bucket: IntArray) -> None:
        """Append rows, sorted by bucket, to their buckets."""
        for number, (low, high) in _runs(bucket):
            at = int(self.next_row[number])
            self.next_row[number] += high - low
            part = rows[low:high]
            if not self.sparse:
                self.rows[at : at + high - low] = part
                continue
            self.lengths[at : at + high - low] = np.diff(part.indptr)
            entry, n = int(self.next_entry[number]), len(part.data)
            self.next_entry[number] += n
            self.values[entry : entry + n], self.indices[entry : entry + n] = (
                part.data,
                part.indices,
            )

    def bucket(self, number: int) -> Matrix:
        """Return the rows of a bucket, in memory."""
        low, high = self.edges[number : number + 2]
        if not self.sparse:
            return np.array(self.rows[low:high])
        begin, end = self.first_entry[number : number + 2]
        ptr = np.concatenate(([0], np.cumsum(self.lengths[low:high])))
        values, indices = (np.array(a[begin:end]) for a in (self.values, self.indices))
        return csr(values, indices, ptr, self.n_features)


def _runs(sorted_numbers: IntArray) -> list[tuple[int, tuple[int, int]]]:
    """Return where each number of a sorted array begins and ends."""
    cuts = np.flatnonzero(np.diff(sorted_numbers)) + 1
    starts = np.concatenate(([0], cuts))
    ends = np.append(cuts, len(sorted_numbers))
    return [
        (int(sorted_numbers[low]), (int(low), int(high)))
        for low, high in zip(starts, ends, strict=True)
    ]


def _joined(ids: list[AnyArray]) -> AnyArray:
    """Join the identifiers of chunks; if some are text, whole numbers become text as well."""
    kinds = {array.dtype.kind for array in ids if len(array)}
    if "U" in kinds and kinds & {"i", "u"}:
        ids = [array.astype(str) for array in ids]
    if "O" in kinds:
        ids = [array.astype(object) for array in ids]
    return np.concatenate(ids)


def _expanded(lengths: IntArray, order: IntArray) -> IntArray:
    """Return the order of rows, given that of runs of rows."""
    starts = np.cumsum(lengths) - lengths
    new = lengths[order]
    rows: IntArray = np.arange(int(lengths.sum())) + np.repeat(
        starts[order] - (np.cumsum(new) - new), new
    )
    return rows


def _texts_in_order(
    text: Spool, lengths: Spool, order: IntArray | None, folder: str | None
) -> tuple[AnyArray, AnyArray]:
    letters, sizes = text.mapped(), lengths.mapped()
    starts = np.concatenate(([0], np.cumsum(sizes)))
    if order is None:
        return letters, starts
    out = Spool(np.uint8, folder)
    for low, high in row_blocks(len(order)):
        rows = order[low:high]
        ends = np.cumsum(sizes[rows])
        begin = np.repeat(starts[rows] - (ends - sizes[rows]), sizes[rows])
        out.append(letters[begin + np.arange(len(begin))])
    return out.mapped(), np.concatenate(([0], np.cumsum(sizes[order])))
