"""The rows of any file, chunk by chunk, put together in bounded memory for a store."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._mapped import Spool
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.formats import check_exists, format_name, group_sizes, sizes_beside
from leanrank.data.grouping import check_optional, group_rows, one_of_each_query
from leanrank.data.matrices import DENSE_FROM, csr
from leanrank.data.ranking_data import RankingData
from leanrank.data.streams import SplitQueryDetector
from leanrank.data.tables.arrow import build_runs
from leanrank.data.tables.files import check_header, lent_to_arrow, reading, with_identifiers
from leanrank.data.tables.imports import pa, pq
from leanrank.data.tables.layout import (
    Place,
    column_roles,
    csv_error,
    find_layout,
    identifier_columns,
)
from leanrank.data.tables.parquet import (
    agree,
    parquet_column,
    parquet_tables,
    part_files,
    rows_per_chunk,
)
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


_CHUNK_BYTES = 16 << 20  # as fast as 4 MiB to write 116 MB of text; 1 and 64 MiB are slower by half


@dataclass(frozen=True)
class RowSource:
    """Chunks of rows, and what becomes of their features.

    A query need not be whole in a chunk.
    """

    chunks: Callable[[], Iterator[RankingData]]
    storage: str = "as given"
    n_features: int | None = None


def open_rows(
    source: str | os.PathLike[str], format: str | None, options: dict[str, Any]
) -> RowSource:
    """Find out how to read a file, a directory or a pattern of Parquet files."""
    name, options = os.fspath(source), dict(options)
    kind = format_name(name, format)
    check_exists(name)
    sizes_file = sizes_beside(name)
    if sizes_file is not None:
        options["optional"] = {*options.get("optional", ()), "qid"}
    found = _text(name, **options) if kind == "letor" else _tables(name, kind, **options)
    if sizes_file is None:
        return found
    return RowSource(
        partial(_cut, found.chunks, group_sizes(sizes_file), sizes_file),
        found.storage,
        found.n_features,
    )


def _text(
    name: str, *, storage: str = "auto", optional: Any = (), chunk_bytes: int = _CHUNK_BYTES,
    n_features: int | None = None, **options: Any,
) -> RowSource:  # fmt: skip
    from leanrank.data.letor.stream import TextPart

    part = TextPart(
        name,
        SplitQueryDetector(1, quiet=True),
        storage=storage if storage == "auto" else "sparse",
        optional=optional,
        whole_queries=False,
        n_features=n_features,
        chunk_bytes=chunk_bytes,
        **options,
    )

    def chunks() -> Iterator[RankingData]:
        for data, _, _ in part.chunks(0, 0):
            yield data

    kept = "as given" if storage == "sparse" else storage
    return RowSource(partial(_as_sparse, chunks), kept, n_features)


def _as_sparse(chunks: Callable[[], Iterator[RankingData]]) -> Iterator[RankingData]:
    """Return chunks of text as sparse ones: how wide and how full all are is known at the end."""
    from scipy.sparse import csr_array

    for data in chunks():
        yield data if data.is_sparse else data.with_fields(X=csr_array(data.X))


def _tables(
    name: str,
    kind: str,
    *,
    header: bool = True,
    features: Any = None,
    optional: Any = (),
    n_jobs: int | None = None,
    chunk_bytes: int = _CHUNK_BYTES,
    **columns: str | None,
) -> RowSource:
    del n_jobs
    roles = column_roles(columns, ("features", "header", "n_jobs", "optional"))
    missing = check_optional(optional)
    files = part_files(Path(name)) if kind == "parquet" else [Path(name)]
    layout = None
    for file in files:
        with reading(file, kind):
            schema = _schema(file, kind, header)
            place = Place(str(file), csv_header=header if kind == "csv" else None)
            column = partial(_column, file, kind, header)
            found = find_layout(schema, roles, features, place, missing, column)
            layout = found if layout is None else agree(layout, found, files[0], file)
    assert layout is not None
    wanted = layout

    def chunks() -> Iterator[RankingData]:
        for file in files:
            row = 0
            batches = _batches(file, kind, wanted, header, chunk_bytes)
            while True:
                with reading(file, kind):
                    table = next(batches, None)
                    if table is None:
                        break
                    place = Place(str(file), row, header if kind == "csv" else None)
                    data = build_runs(wanted, table, place)
                row += table.num_rows
                yield data if header else data.replace(feature_names=None)

    # without notes, the widest row of a sparse table decides
    return RowSource(chunks, "as given", wanted.n_features)


def _schema(file: Path, kind: str, header: bool) -> Any:
    if kind == "parquet":
        return pq.read_schema(file)
    if kind == "arrow":
        with pa.memory_map(os.fspath(file)) as source, pa.ipc.open_file(source) as reader:
            return reader.schema
    with _open_csv(file, header) as reader:
        return reader.schema


def _column(file: Path, kind: str, header: bool, name: str) -> Any:
    """Return one column of a file, as bytes if that is CSV."""
    if kind == "parquet":
        return parquet_column(file, name)
    if kind == "arrow":
        with pa.memory_map(os.fspath(file)) as source, pa.ipc.open_file(source) as reader:
            return reader.read_all().column(name)
    with _open_csv(file, header, {name: pa.binary()}) as reader:
        return pa.chunked_array([batch.column(name) for batch in reader], pa.binary())


def _batches(file: Path, kind: str, layout: Any, header: bool, chunk_bytes: int) -> Iterator[Any]:
    """Return the needed columns of a file, some rows at a time."""
    needed = layout.needed
    if kind == "parquet":
        yield from parquet_tables(file, needed, rows_per_chunk(pq.read_metadata(file), chunk_bytes))
    elif kind == "arrow":
        with pa.memory_map(os.fspath(file)) as source, pa.ipc.open_file(source) as reader:
            for at in range(reader.num_record_batches):
                table = pa.Table.from_batches([reader.get_batch(at)]).select(needed)
                rows = max(1, int(chunk_bytes / max(1.0, table.nbytes / max(1, table.num_rows))))
                for low in range(0, table.num_rows, rows):
                    yield table.slice(low, rows)
    else:
        schema = _schema(file, kind, header)
        texts = identifier_columns(layout.columns)
        types = {
            name: pa.string() if name in texts else pa.float64()
            for name in needed
            if name in texts or not pa.types.is_boolean(schema.field(name).type)
        }
        with _open_csv(file, header, types, chunk_bytes) as reader:
            for batch in reader:
                table = pa.Table.from_batches([batch]).select(needed)
                yield with_identifiers(table, texts)


@contextmanager
def _open_csv(
    file: Path, header: bool, types: dict[str, Any] | None = None, block_bytes: int = 1 << 20
) -> Iterator[Any]:
    """Open a CSV file; types of columns are those of the first block unless given."""
    from pyarrow import csv

    names = None
    try:
        if not header:
            with lent_to_arrow(file) as stream:
                first = csv.open_csv(stream, csv.ReadOptions(autogenerate_column_names=True))
                names = [str(at + 1) for at in range(len(first.schema))]
        with lent_to_arrow(file) as stream:
            read = csv.ReadOptions(column_names=names, block_size=block_bytes, use_threads=False)
            convert = csv.ConvertOptions(column_types=types or {})
            reader = csv.open_csv(stream, read, convert_options=convert)
            if header:
                check_header(reader.schema.names, file)
            yield reader
    except pa.ArrowInvalid as error:
        raise csv_error(file, header, error) from error


def _cut(
    chunks: Callable[[], Iterator[RankingData]], sizes: list[int], file: str
) -> Iterator[RankingData]:
    """Number the queries of rows without any by a file of sizes."""
    ends = np.cumsum([size for size in sizes if size], dtype=np.int64)
    at = 0
    for data in chunks():
        if data.n_queries > 1:
            raise InputError(
                f"{file}: its queries are not those of the data's own qid: remove one of the two"
            )
        rows = np.arange(at, at + len(data))
        at += len(data)
        numbers = np.searchsorted(ends, rows, side="right")
        heads, starts = np.unique(numbers, return_index=True)
        yield data.with_fields(query_ids=heads, query_ptr=np.append(starts, len(data)))
    if at != (int(ends[-1]) if len(ends) else 0):
        raise InputError(
            f"{file}: the sizes add up to {int(ends[-1]) if len(ends) else 0:,} but there are "
            f"{at:,} documents: give one size per query, or remove the file"
        )
