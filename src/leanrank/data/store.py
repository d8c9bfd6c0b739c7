"""A ranking data set in a file that is mapped into memory instead of read.

A *store* is an Arrow IPC file with one uncompressed record batch: rows grouped by query, and the
features as one list column of equal lengths (dense, row after row) or as ``indices`` and ``values``
(sparse). X has the same layout in the file as in memory, so that the same code works on both. The
operating system reads the pages that are used, and drops them when memory is short.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from leanrank._files import atomic_write
from leanrank._mapped import Spool
from leanrank._typing import AnyArray, IntArray, Matrix
from leanrank.data.formats import ROLES, format_name, load, sizes_beside
from leanrank.data.matrices import DENSE_FROM, csr
from leanrank.data.ranking_data import RankingData, concatenated, weights_per_row
from leanrank.data.streams import Chunks, Part, RankingStream, file_parts
from leanrank.data.tables import pa
from leanrank.data.tables.arrow import (
    as_array,
    assemble,
    column_roles,
    find_layout,
    notes_of,
    record_batch,
    schema_notes,
)
from leanrank.data.tables.files import reading
from leanrank.errors import InputError, named_errors, warn
from leanrank.execution import row_blocks

INDICES, VALUES, FEATURES = "indices", "values", "features"
"""The list columns that hold the features of a row: sparse ones in two, dense ones in one."""


def load_store(
    path: str | os.PathLike[str], *, optional: Collection[str] = (), **columns: str | None
) -> RankingData | None:
    """Map a store, or return None for an Arrow file in another layout.

    Labels, queries, weights, document ids and the indices of sparse values are checked; features
    are not read. A store that is compressed or cut into batches is read into memory.
    """
    where = os.fspath(path)
    with reading(path, "arrow"):
        if os.path.getsize(path) == 0:
            raise pa.ArrowInvalid("the file is empty")
        content = np.memmap(path, dtype=np.uint8, mode="r")
        reader = pa.ipc.open_file(pa.py_buffer(content))
        notes, names = notes_of(reader.schema, where), {*reader.schema.names}
        stored = "n_features" in notes and (FEATURES in names or {INDICES, VALUES} <= names)
        if not stored or not reader.num_record_batches:
            return None
        if reader.num_record_batches == 1:
            batch = reader.get_batch(0)
        else:
            (batch,) = reader.read_all().combine_chunks().to_batches(max_chunksize=2**62)
        batch.validate(full=True)
        roles, own = column_roles(columns), notes.get("names")
        layout = find_layout(reader.schema, roles, (), where, optional)
        layout = replace(layout, feature_names=None if own is None else tuple(own))
        documents = layout.columns.pop("doc_id", None)
        X = _matrix(batch, notes["n_features"], content)
        data = assemble(X, pa.Table.from_batches([batch]), layout, where)
        if documents is None:
            return data
        ids = batch[documents].cast(pa.large_string())
        if data.order is not None:
            ids = ids.take(pa.array(data.order))
        return data.with_fields(doc_ids=Texts(ids))


def store_part(data: RankingData, path: str, chunk_bytes: int) -> Part:
    """Return a store as chunks of whole queries."""
    values = data.X if isinstance(data.X, np.ndarray) else data.X.data
    n_rows = max(1, int(chunk_bytes * len(data) / max(1, values.nbytes)))

    def chunks(offset: int, line: int) -> Chunks:
        first = int(np.searchsorted(data.query_ptr, offset))
        while first < data.n_queries:
            limit = data.query_ptr[first] + n_rows
            last = max(first + 1, int(np.searchsorted(data.query_ptr, limit, "right")) - 1)
            yield data.queries[first:last], int(data.query_ptr[last]), 0
            first = last

    return Part(path, chunks, {"rows_per_chunk": n_rows})


class Texts:
    """Document ids in a mapped file: an array whose items become texts on access."""

    dtype = np.dtype(object)

    def __init__(self, array: Any) -> None:
        self.array = array

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key.step in (None, 1):
            return Texts(self.array[key])
        chosen = np.arange(len(self))[key]
        if np.ndim(chosen) == 0:
            return self.array[int(chosen)].as_py()
        return np.asarray(Texts(self.array.take(pa.array(chosen))))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.tolist(), dtype=dtype or str)

    def __reduce__(self) -> tuple[Any, ...]:
        return np.array, (self.tolist(),)

    def tolist(self) -> list[str]:
        """Return all ids."""
        texts: list[str] = self.array.to_pylist()
        return texts


def _view(array: Any, content: AnyArray) -> AnyArray:
    """Return the numbers of an array, as a view of the mapped file if possible."""
    values: AnyArray = array.to_numpy()
    begin = values.ctypes.data - content.ctypes.data
    if not 0 <= begin <= len(content) - values.nbytes or begin % values.itemsize:
        return values  # decompressed, or not aligned
    return content[begin : begin + values.nbytes].view(values.dtype)


def _matrix(batch: Any, n_features: int, content: AnyArray) -> Matrix:
    if FEATURES in batch.schema.names:
        return _view(batch[FEATURES].flatten(), content).reshape(batch.num_rows, n_features)
    lists = batch[INDICES], batch[VALUES]
    indices, values = (_view(each.values, content) for each in lists)
    ptr, other = (_view(each.offsets, content) for each in lists)
    matrix = csr(values, indices, ptr, n_features, sound=False)
    matrix.check_format(full_check=True)  # kernels do not look at bounds
    if not np.array_equal(ptr, other) or not matrix.has_canonical_format:
        raise ValueError(f"{INDICES} and {VALUES} differ in length, or do not ascend")
    return matrix


_CHUNK_BYTES = 16 << 20  # as fast as 4 MiB to write 116 MB of text; 1 and 64 MiB are slower by half


def write_store(
    source: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    **options: Any,
) -> dict[str, int]:
    """Write a store from data of any size, in bounded memory.

    The rows of a query must be together, as in any RankingData. Data without query identifiers
    (beside a file of query sizes, or without a query column) are loaded into memory first.

    Parameters
    ----------
    source : str, path, RankingData or iterable of RankingData
        A file that ``leanrank.data.load`` reads, a directory or a pattern (``part-*.parquet``)
        of Parquet files, ``"-"`` for text on standard input; or chunks, such as those of
        ``leanrank.data.open_stream``.
    path : str or path
        The file, with suffix ``.arrow``. It appears under its name only when it is complete. Its
        directory needs space for temporary files of the same size.
    format : str, optional
        The format of the source; by default that of its suffix.
    **options
        As for ``leanrank.data.load``.

    Returns
    -------
    dict
        The numbers of ``queries``, ``documents`` and ``features``.

    Examples
    --------
    >>> import tempfile
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import DominationRanker
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     chunks = (make_ranking(20, random_state=seed) for seed in range(3))
    ...     named = (c.with_fields(query_ids=c.query_ids + 20 * k) for k, c in enumerate(chunks))
    ...     write_store(named, f"{folder}/big.arrow")["queries"]
    ...     data = RankingData.open(f"{folder}/big.arrow")
    ...     DominationRanker(alpha=0.05).fit(data).dual_gap_ <= 1e-6
    60
    True
    """
    folder = None if os.fspath(path) == "-" else os.path.dirname(os.path.abspath(path))
    storage, data = "as given", source
    if isinstance(source, (str, os.PathLike)):
        name, kind = os.fspath(source), format_name(source, format)
        unnamed = options.get("qid", "qid") is None or "qid" in options.get("optional", ())
        if unnamed or sizes_beside(name) is not None:
            options.pop("chunk_bytes", None)
            data = load(source, format=format, **options)
        else:
            if kind == "letor":  # width and density are known after the last chunk
                storage, options["storage"] = options.get("storage", "auto"), "sparse"
            parts = file_parts([name], kind, {"chunk_bytes": _CHUNK_BYTES, **options})
            data = RankingStream(parts, warns=False)  # gather rejects queries that occur again
    if not isinstance(data, RankingData):
        with named_errors(path if folder else tempfile.gettempdir()):
            data = gather(data, folder, storage, options.get("n_features") or 0)
    elif data.order is not None:
        warn(
            f"{os.fspath(path)}: rows are written query by query, in another order than in the "
            "source: match scores by document id, not by row"
        )
    _write(_record_batch(data), path)
    return {"queries": data.n_queries, "documents": len(data), "features": data.n_features}


def _write(batch: Any, path: str | os.PathLike[str]) -> None:
    options = pa.ipc.IpcWriteOptions(allow_64bit=True)  # documents × features beyond 2³¹
    with (
        atomic_write(path, "wb") as stream,
        pa.ipc.new_file(pa.PythonFile(stream, mode="w"), batch.schema, options=options) as writer,
    ):
        writer.write_batch(batch)


def gather(
    chunks: Iterable[RankingData], folder: str | None, storage: str, n_features: int = 0
) -> RankingData:
    """Return chunks of rows as one set whose features are in temporary files, mapped.

    Parameters
    ----------
    chunks : iterable of RankingData
        The last query of a chunk may continue in the next one.
    folder : str, optional
        Directory of the temporary files.
    storage : {"as given", "auto", "dense", "sparse"}
        "auto" makes sparse chunks dense if enough of the matrix is not zero.
    n_features : int
        Least number of features, for sparse chunks.
    """
    sides: list[RankingData] = []
    row_sizes: list[IntArray] = []
    seen: set[str] = set()
    documents: list[Any] = []
    last, alike, named = None, None, False
    for chunk in chunks:
        X = chunk.X
        width = None if chunk.is_sparse else chunk.n_features
        form = (X.dtype, width, chunk.feature_names, weights_per_row(chunk).keys())
        if alike is None:
            alike, values = form, Spool(X.dtype, folder)
            indices = Spool(np.int32, folder) if chunk.is_sparse else None
        if form != alike:
            raise InputError(
                "chunks of the data differ in features, storage or extra columns: one file needs "
                "the same in all of them"
            )
        for query in map(str, chunk.query_ids.tolist()):
            if query in seen and query != last:
                row = sum(map(len, sides))
                raise InputError(
                    f"query {query} occurs again after others, from row {row:,} on: the rows of a "
                    "query must be together, so sort the data first, with ORDER BY qid in DuckDB "
                    "or sort('qid') in polars; for data that fit in memory, use "
                    "leanrank.data.dump(leanrank.data.load(...), 'x.arrow')"
                )
            seen.add(last := query)
        if indices is None:
            values.append(X)
        else:
            entries = slice(int(X.indptr[0]), int(X.indptr[-1]))
            values.append(X.data[entries])
            indices.append(X.indices[entries])
            row_sizes.append(np.diff(X.indptr))
        n_features = max(n_features, chunk.n_features)
        y = chunk.y.copy()  # it may be a column of X
        sides.append(chunk.with_fields(X=np.empty((len(chunk), 0)), y=y, doc_ids=None))
        ids = [""] * len(chunk) if chunk.doc_ids is None else chunk.doc_ids.tolist()
        documents.append(pa.array(map(str, ids), pa.large_string()))
        named |= chunk.doc_ids is not None
    if alike is None:
        raise InputError("there is no data to write")
    data = concatenated(sides)
    n_rows = len(data)
    if indices is None:
        X = values.mapped().reshape(n_rows, n_features)
    else:
        ptr = np.concatenate(([0], np.cumsum(np.concatenate(row_sizes), dtype=np.int64)))
        X = csr(values.mapped(), indices.mapped(), ptr, n_features)
        full = values.size >= DENSE_FROM * n_rows * n_features
        if storage == "dense" or (storage == "auto" and full):
            filled = Spool(X.dtype, folder)
            for low, high in row_blocks(n_rows):
                filled.append(X[low:high].toarray())
            X = filled.mapped().reshape(n_rows, n_features)
    return data.with_fields(X=X, doc_ids=Texts(pa.concat_arrays(documents)) if named else None)


def _record_batch(data: RankingData) -> Any:
    """Return all rows as one record batch that shares their memory."""
    X = data.X
    n_rows, n_features = X.shape
    arrays: dict[str, Any] = {}
    if isinstance(X, np.ndarray):
        values = as_array(X.reshape(-1))
        kind = pa.list_(pa.field("item", values.type, False), n_features)
        arrays[FEATURES] = pa.Array.from_buffers(kind, n_rows, [None], children=[values])
    else:
        begin, end = int(X.indptr[0]), int(X.indptr[-1])
        ptr = X.indptr - X.indptr[0] if begin else X.indptr
        listed = pa.list_ if ptr.dtype == np.int32 else pa.large_list
        for name, entries in ((INDICES, X.indices), (VALUES, X.data)):
            child = as_array(entries[begin:end])
            kind = listed(pa.field("item", child.type, False))
            buffers = [None, pa.py_buffer(ptr)]
            arrays[name] = pa.Array.from_buffers(kind, n_rows, buffers, children=[child])
    arrays["label"] = as_array(data.y)
    ids, sizes = as_array(data.query_ids), np.diff(data.query_ptr)
    queries = as_array(np.repeat(np.arange(len(ids), dtype=np.int32), sizes))
    # whole numbers are stored as such, all else as a dictionary in the order of the queries
    whole = pa.types.is_integer(ids.type)
    arrays["qid"] = ids.take(queries) if whole else pa.DictionaryArray.from_arrays(queries, ids)
    if isinstance(data.doc_ids, Texts):
        arrays["doc_id"] = data.doc_ids.array
    elif data.doc_ids is not None:
        arrays["doc_id"] = pa.array([str(name) for name in data.doc_ids], pa.large_string())
    arrays |= {role: as_array(numbers) for role, numbers in weights_per_row(data).items()}
    columns = [name for name in arrays if name in ROLES]
    notes = schema_notes(columns=columns, n_features=n_features, names=data.feature_names)
    return record_batch(arrays, notes)
