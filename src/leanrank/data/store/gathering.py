"""Chunks of rows put together in bounded memory: temporary files hold what is large."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leanrank._mapped import Spool
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.grouping import group_rows, one_of_each_query
from leanrank.data.matrices import DENSE_FROM, csr
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.execution import row_blocks

_PER_ROW = ("y", "sample_weight", "offset")


@dataclass(frozen=True)
class Gathered:
    """All rows; what has an entry per value is mapped from temporary files."""

    X: Matrix
    y: FloatArray
    query_ids: AnyArray
    query_ptr: IntArray
    doc_ids: tuple[AnyArray, AnyArray] | None  # UTF-8 and where each begins
    feature_names: tuple[str, ...] | None
    sample_weight: FloatArray | None
    query_weight: FloatArray | None
    offset: FloatArray | None


class Gatherer:
    """Takes chunks of rows in which the rows of a query are together.

    Parameters
    ----------
    folder : str, optional
        Where temporary files go.
    storage : {"as given", "auto", "dense", "sparse"}
        "auto" is for sparse chunks that become dense if enough of the matrix is not zero.
    n_features : int, optional
        By default the widest chunk decides, if chunks are sparse.
    """

    def __init__(
        self, folder: str | None = None, storage: str = "as given", n_features: int | None = None
    ) -> None:
        self.folder, self.storage = folder, storage
        self.n_rows = 0
        self.n_features = n_features or 0
        self._heads: list[AnyArray] = []
        self._lengths: list[IntArray] = []
        self._query_weights: list[FloatArray] = []
        self._seen: set[str] = set()
        self._last: str | None = None
        self._per_row: dict[str, Spool] = {}
        self._texts: tuple[Spool, Spool] | None = None
        self._first: RankingData | None = None

    def add(self, chunk: RankingData) -> None:
        """Add the next rows; the last query may continue in the next chunk."""
        if self._first is None:
            self._first = chunk
            self._values = Spool(chunk.X.dtype, self.folder)
            self._indices = Spool(np.int32, self.folder)
            self._row_sizes = Spool(np.int64, self.folder)
            names = [name for name in _PER_ROW if getattr(chunk, name) is not None]
            self._per_row = {name: Spool(np.float64, self.folder) for name in names}
        self._check(self._first, chunk)
        self.n_features = max(self.n_features, chunk.n_features)
        if chunk.is_sparse:
            entries = slice(int(chunk.X.indptr[0]), int(chunk.X.indptr[-1]))
            self._values.append(chunk.X.data[entries])
            self._indices.append(chunk.X.indices[entries])
            self._row_sizes.append(np.diff(chunk.X.indptr))
        else:
            self._values.append(chunk.X)
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
        for query in map(str, chunk.query_ids.tolist()):
            if query in self._seen and query != self._last:
                raise InputError(
                    f"query {query} comes back after others, from row {self.n_rows:,} on: the rows "
                    "of a query must be together, so sort the data first, with ORDER BY qid in "
                    "DuckDB or sort('qid') in polars; data that fit in memory are sorted by "
                    "leanrank.data.dump(leanrank.data.load(...), 'x.arrow')"
                )
            self._seen.add(query)
            self._last = query

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
        """Return all rows."""
        if self._first is None:
            raise InputError("there is no data to write")
        runs = group_rows(_joined(self._heads))
        weights = None
        if self._query_weights:
            weights = one_of_each_query(np.concatenate(self._query_weights), runs.query_ptr)
        per_row = {name: spool.mapped() for name, spool in self._per_row.items()}
        ends = np.cumsum(np.concatenate(self._lengths))
        texts = self._texts
        return Gathered(
            X=self._matrix(self._first.is_sparse),
            y=per_row["y"],
            query_ids=runs.query_ids,
            query_ptr=np.concatenate(([0], ends))[runs.query_ptr],
            doc_ids=None if texts is None else (texts[0].mapped(), _starts(texts[1])),
            feature_names=self._first.feature_names,
            sample_weight=per_row.get("sample_weight"),
            query_weight=weights,
            offset=per_row.get("offset"),
        )

    def _matrix(self, sparse: bool) -> Matrix:
        values = self._values.mapped()
        if not sparse:
            return values.reshape(self.n_rows, self.n_features)
        X = csr(values, self._indices.mapped(), _starts(self._row_sizes), self.n_features)
        full = len(values) >= DENSE_FROM * self.n_rows * self.n_features
        if self.storage != "dense" and not (self.storage == "auto" and full):
            return X
        filled = Spool(X.dtype, self.folder)
        for low, high in row_blocks(self.n_rows):
            filled.append(X[low:high].toarray())
        return filled.mapped().reshape(self.n_rows, self.n_features)


def _starts(sizes: Spool) -> IntArray:
    return np.concatenate(([0], np.cumsum(sizes.mapped(), dtype=np.int64)))


def _joined(ids: list[AnyArray]) -> AnyArray:
    """Join the identifiers of chunks; if some are text, whole numbers become text as well."""
    kinds = {array.dtype.kind for array in ids if len(array)}
    if "U" in kinds and kinds & {"i", "u"}:
        ids = [array.astype(str) for array in ids]
    if "O" in kinds:
        ids = [array.astype(object) for array in ids]
    return np.concatenate(ids)
