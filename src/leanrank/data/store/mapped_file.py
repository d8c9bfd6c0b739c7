"""A ranking data set in a file that is mapped into memory instead of read.

A *store* is an Arrow IPC file with one uncompressed record batch: rows grouped by query, and the
features as one list column of equal lengths (dense, row after row) or as ``indices`` and ``values``
(sparse). So X is an array in the file as it is in memory, and whatever works on one works on the
other. The operating system reads the pages that are touched, and drops them when memory is short.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._files import atomic_write, not_written
from leanrank._typing import AnyArray, IntArray, Matrix
from leanrank.data.grouping import (
    Grouping,
    as_labels,
    group_rows,
    one_of_each_query,
    one_per_query,
    one_per_row,
)
from leanrank.data.matrices import csr
from leanrank.data.ranking_data import RankingData
from leanrank.data.store.gathering import Gathered, Gatherer, open_rows
from leanrank.data.tables.arrow import identifiers, run_starts
from leanrank.data.tables.files import ROLES, SUFFIXES, reading
from leanrank.data.tables.imports import pa
from leanrank.data.tables.layout import (
    FEATURES,
    INDICES,
    VALUES,
    VERSION,
    Place,
    column_roles,
    find_layout,
    weights_per_row,
)
from leanrank.errors import FileError, InputError, warn
from leanrank.execution import row_blocks


def write_store(
    source: Any,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    made_from: Any = None,
    **options: Any,
) -> dict[str, int]:
    """Write a store from data of any size, in bounded memory.

    The rows of a query must be together; those of a RankingData are.

    Parameters
    ----------
    source : str, path, RankingData or iterable of RankingData
        A file that ``leanrank.data.load`` reads, a directory or a pattern (``part-*.parquet``)
        of Parquet files, ``"-"`` for text on standard input; or chunks, such as those of
        ``leanrank.data.open_stream``.
    path : str or path
        The file, with suffix ``.arrow``. It appears under its name only when it is complete;
        meanwhile its directory has room for temporary files of its size.
    format : str, optional
        That of the source, if its suffix does not tell.
    made_from : optional
        What to note in the file of where it comes from; JSON.
    **options
        As for ``leanrank.data.load``.

    Returns
    -------
    dict
        The numbers of ``queries``, ``documents`` and ``features``.

    Examples
    --------
    >>> import tempfile
    >>> from leanrank import DominationRanker, make_ranking
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     chunks = (make_ranking(20, random_state=seed) for seed in range(3))
    ...     named = (c.with_fields(query_ids=c.query_ids + 20 * k) for k, c in enumerate(chunks))
    ...     write_store(named, f"{folder}/big.arrow")["queries"]
    ...     data = RankingData.open(f"{folder}/big.arrow")
    ...     DominationRanker(alpha=0.05).fit(data).dual_gap_ <= 1e-6
    60
    True
    """
    if isinstance(source, RankingData):
        _write(_record_batch(source, made_from), path)
        if source.order is not None:
            warn(
                f"{os.fspath(path)}: rows are written query by query, so they are in another order "
                "than in the source: scores of the one are not those of the other row by row"
            )
        return _summary(source)
    folder = os.path.dirname(os.path.abspath(path)) if os.fspath(path) != "-" else None
    gatherer = Gatherer(folder)
    if isinstance(source, (str, os.PathLike)):
        rows = open_rows(source, format, options)
        gatherer = Gatherer(folder, rows.storage, rows.n_features)
        source = rows.chunks()
    try:
        for chunk in source:
            gatherer.add(chunk)
        gathered = gatherer.gather()
        _write(_record_batch(gathered, made_from), path)
    except OSError as error:
        if isinstance(error, FileError) or error.errno is None:
            raise
        raise FileError(f"{path}: {not_written(error)}") from error
    return _summary(gathered)


def open_store(path: str | os.PathLike[str]) -> RankingData:
    """Map a store; see ``RankingData.open``."""
    if not Path(path).exists():
        raise FileError(f"{os.fspath(path)}: there is no such file")
    data = map_store(path)
    if data is None:
        raise InputError(
            f"{os.fspath(path)}: this file is not in the layout that can be mapped: make one that "
            f"is with leanrank convert {os.path.basename(path)} NEW.arrow"
        )
    return data


def map_store(path: str | os.PathLike[str]) -> RankingData | None:
    """Map a store, or return None if an Arrow file is not in its layout.

    Labels, queries, weights, document ids and the places of sparse values are checked; features
    of more than 64 MB are not read.
    """
    with reading(path, "arrow"):
        try:
            window = _Window(path)
            reader = pa.ipc.open_file(pa.py_buffer(window.content))
        except pa.ArrowInvalid:
            if Path(path).suffix in SUFFIXES["arrow"]:
                raise
            return None
        if reader.num_record_batches != 1:
            return None
        batch = reader.get_batch(0)
        batch.validate()
        try:
            return _mapped(batch, window, os.fspath(path))
        except _OtherLayoutError:
            return None


def store_notes(path: str | os.PathLike[str]) -> Any:
    """Return what ``made_from`` noted in a store; None for other files."""
    try:
        with pa.memory_map(os.fspath(path)) as source, pa.ipc.open_file(source) as reader:
            return json.loads((reader.schema.metadata or {})[b"leanrank"]).get("made_from")
    except (OSError, pa.ArrowException, KeyError, ValueError, AttributeError):
        return None


class Texts:
    """Document ids in a mapped file: an array of text whose items are made when asked for."""

    dtype = np.dtype(object)
    ndim = 1

    def __init__(self, array: Any) -> None:
        self._array = array
        self.shape = (len(array),)

    def __len__(self) -> int:
        return len(self._array)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key.step in (None, 1):
            begin, end, _ = key.indices(len(self))
            return Texts(self._array.slice(begin, max(0, end - begin)))
        chosen = np.arange(len(self))[key]
        if np.ndim(chosen) == 0:
            return self._array[int(chosen)].as_py()
        return np.asarray(Texts(self._array.take(pa.array(chosen))))

    def __iter__(self) -> Iterator[str]:
        for low, high in row_blocks(len(self)):
            yield from self._array.slice(low, high - low).to_pylist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.tolist(), dtype=dtype or str)

    def __reduce__(self) -> tuple[Any, ...]:
        return np.array, (self.tolist(),)

    def tolist(self) -> list[str]:
        """Return all ids."""
        return list(self)


class _OtherLayoutError(Exception):
    """An Arrow file is no store; it can be loaded."""


class _Window:
    """A mapped file, and Arrow's buffers as views of it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if os.path.getsize(path) == 0:
            raise pa.ArrowInvalid("the file is empty")
        self.content = np.memmap(path, dtype=np.uint8, mode="r")

    def flat(self, array: Any, dtype: Any = None, count: int | None = None) -> AnyArray:
        """Return the numbers of an array without nulls."""
        dtype = np.dtype(array.type.to_pandas_dtype() if dtype is None else dtype)
        count = len(array) if count is None else count
        validity, values = array.buffers()[0], array.buffers()[-1]
        if validity is not None or array.offset or count > len(array):
            raise _OtherLayoutError
        return self.view(values, dtype, count)

    def view(self, buffer: Any, dtype: Any, count: int) -> AnyArray:
        """Return a buffer as an array."""
        if count == 0:
            return np.zeros(0, dtype=dtype)
        n_bytes = count * np.dtype(dtype).itemsize
        begin = 0 if buffer is None else buffer.address - self.content.ctypes.data
        inside = buffer is not None and n_bytes <= buffer.size and 0 <= begin
        if not inside or begin + n_bytes > len(self.content) or begin % np.dtype(dtype).itemsize:
            raise _OtherLayoutError  # unpacked, or not where numbers of this size can be
        return self.content[begin : begin + n_bytes].view(dtype)


def _mapped(batch: Any, window: _Window, where: str) -> RankingData:
    if not {FEATURES, INDICES} & set(batch.schema.names):
        raise _OtherLayoutError
    roles = column_roles({}, ())
    table = pa.Table.from_batches([batch])
    layout = find_layout(batch.schema, roles, None, Place(where), ("label", "qid"), table.column)
    n_rows, columns = batch.num_rows, layout.columns
    known = {"label", "qid"} <= set(columns) and (layout.packed or layout.sparse)
    if n_rows == 0 or not known:
        raise _OtherLayoutError
    query_ids, starts = _queries(batch.column(columns["qid"]), window)
    grouping = group_rows(query_ids)
    if grouping.order is not None or len(grouping.query_ids) != len(starts):
        raise _OtherLayoutError
    grouping = Grouping(grouping.query_ids, np.append(starts, n_rows), None)

    def numbers(role: str) -> AnyArray | None:
        if role not in columns:
            return None
        column = batch.column(columns[role])
        if not pa.types.is_float64(column.type):
            raise _OtherLayoutError
        return window.flat(column)

    weights = numbers("query_weight")
    if weights is not None:
        first = one_of_each_query(weights, grouping.query_ptr, f"{where}: ")
        weights = one_per_query(first, grouping)
    return RankingData.of_fields(
        X=_matrix(batch, layout, window, where),
        y=as_labels(numbers("label"), n_rows),
        query_ids=grouping.query_ids,
        query_ptr=grouping.query_ptr,
        doc_ids=_texts(batch, columns),
        feature_names=layout.feature_names,
        sample_weight=one_per_row(numbers("weight"), "weight", grouping, n_rows, low=0.0),
        query_weight=weights,
        offset=one_per_row(numbers("offset"), "offset", grouping, n_rows),
    )


def _matrix(batch: Any, layout: Any, window: _Window, where: str) -> Matrix:
    n_rows = batch.num_rows
    if layout.packed:
        column, width = batch.column(FEATURES), layout.n_features
        if column.buffers()[0] is not None or column.offset:
            raise _OtherLayoutError
        if column.type.value_type not in (pa.float32(), pa.float64()):
            raise _OtherLayoutError
        X = window.flat(column.values, layout.dtype, n_rows * width).reshape(n_rows, width)
        _check_values(X.reshape(-1), where)
        return X
    parts = [_list_parts(batch.column(name), window) for name in (INDICES, VALUES)]
    (indices, ptr), (values, other) = parts
    if not np.array_equal(ptr, other):
        raise InputError(f"{where}: indices and values differ in length: the file is damaged")
    if layout.n_features is None or values.dtype not in (np.float32, np.float64):
        raise _OtherLayoutError
    _check_places(indices, ptr, layout.n_features, where)
    _check_values(values, where)
    return csr(values, indices, ptr, layout.n_features)


def _list_parts(column: Any, window: _Window) -> tuple[AnyArray, IntArray]:
    large = pa.types.is_large_list(column.type)
    if not (large or pa.types.is_list(column.type)) or column.offset or column.buffers()[0]:
        raise _OtherLayoutError
    ptr = window.view(column.buffers()[1], np.int64 if large else np.int32, len(column) + 1)
    if int(ptr[0]) != 0 or np.any(ptr[1:] < ptr[:-1]) or int(ptr[-1]) > len(column.values):
        raise InputError("a list ends before it begins")
    if column.type.value_type not in (pa.int32(), pa.int64(), pa.float32(), pa.float64()):
        raise _OtherLayoutError
    return window.flat(column.values, count=int(ptr[-1])), ptr


def _check_values(values: AnyArray, where: str, most_bytes: int = 64 << 20) -> None:
    """Reject infinite features of a small file; those of a large one are when they are used."""
    if values.nbytes <= most_bytes and np.isinf(values).any():
        raise InputError(
            f"{where}: a feature is infinite: a feature is a finite number, or NaN where missing"
        )


def _check_places(indices: AnyArray, ptr: IntArray, n_features: int, where: str) -> None:
    """Reject features that are out of range or not ascending: kernels do not look at bounds."""
    for low, high in row_blocks(len(indices), 1 << 20):
        part = indices[low : high + 1]  # with the next one, to compare
        if part.min() < 0 or part.max() >= n_features:
            raise InputError(f"{where}: indices holds a feature outside 0..{n_features - 1}")
        wrong = low + 1 + np.flatnonzero(part[1:] <= part[:-1])
        starts = ptr[np.searchsorted(ptr, wrong)] == wrong
        if not starts.all():
            raise InputError(f"{where}: the indices of a row do not ascend: the file is damaged")


def _queries(column: Any, window: _Window) -> tuple[AnyArray, IntArray]:
    """Return the identifier of each run of rows, and where it begins."""
    kind = column.type
    codes = column.indices if pa.types.is_dictionary(kind) else column
    if not pa.types.is_integer(codes.type):
        raise _OtherLayoutError
    values = window.flat(codes)
    starts = run_starts(values)
    heads = np.array(values[starts])
    if pa.types.is_dictionary(kind):
        column.dictionary.validate(full=True)
        if column.dictionary.null_count:
            raise _OtherLayoutError
        if heads.min() < 0 or heads.max() >= len(column.dictionary):
            raise InputError("a query has no name: the file is damaged")
        named = pa.chunked_array([column.dictionary.take(pa.array(heads))])
        return identifiers(named, "qid", Place("the file")), starts
    return heads, starts


def _texts(batch: Any, columns: dict[str, str]) -> Any:
    if "doc_id" not in columns:
        return None
    column = batch.column(columns["doc_id"])
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        raise _OtherLayoutError
    column.validate(full=True)
    return Texts(column)


def _record_batch(data: RankingData | Gathered, made_from: Any) -> Any:
    """Return all rows as one record batch over the memory that they are in."""
    X, names = data.X, data.feature_names
    n_rows, n_features = X.shape
    number = pa.from_numpy_dtype(X.dtype)
    arrays: dict[str, Any] = {}
    if isinstance(X, np.ndarray):
        kind = pa.list_(pa.field("item", number, False), n_features)
        values = pa.Array.from_buffers(number, X.size, [None, _buffer(X)])
        arrays[FEATURES] = pa.Array.from_buffers(kind, n_rows, [None], children=[values])
    else:
        ptr = X.indptr if X.indptr[0] == 0 else X.indptr - X.indptr[0]
        listed = pa.list_ if ptr.dtype == np.int32 else pa.large_list
        begin, end = int(X.indptr[0]), int(X.indptr[-1])
        for name, entries in ((INDICES, X.indices), (VALUES, X.data)):
            item = pa.from_numpy_dtype(entries.dtype)
            child = pa.Array.from_buffers(item, end - begin, [None, _buffer(entries[begin:end])])
            kind = listed(pa.field("item", item, False))
            arrays[name] = pa.Array.from_buffers(
                kind, n_rows, [None, _buffer(ptr)], children=[child]
            )
    arrays["label"] = _floats(data.y)
    arrays["qid"] = _id_column(data.query_ids, np.diff(data.query_ptr))
    if data.doc_ids is not None:
        arrays["doc_id"] = _text_column(data.doc_ids)
    arrays |= {role: _floats(numbers) for role, numbers in weights_per_row(data).items()}
    roles = [name for name in arrays if name in ROLES]
    notes = {"version": VERSION, "columns": roles, "n_features": n_features, "names": names}
    if made_from is not None:
        notes["made_from"] = made_from
    fields = [pa.field(name, array.type, False) for name, array in arrays.items()]
    schema = pa.schema(fields, metadata={b"leanrank": json.dumps(notes).encode()})
    return pa.RecordBatch.from_arrays(list(arrays.values()), schema=schema)


def _write(batch: Any, path: str | os.PathLike[str]) -> None:
    options = pa.ipc.IpcWriteOptions(allow_64bit=True)  # documents × features beyond 2³¹
    with (
        atomic_write(path, "wb") as stream,
        pa.ipc.new_file(pa.PythonFile(stream, mode="w"), batch.schema, options=options) as writer,
    ):
        writer.write_batch(batch)


def _summary(data: RankingData | Gathered) -> dict[str, int]:
    return {
        "queries": len(data.query_ptr) - 1,
        "documents": int(data.X.shape[0]),
        "features": int(data.X.shape[1]),
    }


def _buffer(array: AnyArray) -> Any:
    return pa.py_buffer(np.ascontiguousarray(array))


def _floats(values: AnyArray) -> Any:
    array = np.ascontiguousarray(values, dtype=np.float64)
    return pa.Array.from_buffers(pa.float64(), len(array), [None, pa.py_buffer(array)])


def _id_column(ids: AnyArray, sizes: IntArray) -> Any:
    """Whole numbers stay numbers; anything else is a dictionary in the order of the queries."""
    if ids.dtype.kind in "iu":
        return pa.array(np.repeat(ids, sizes))
    codes = pa.array(np.repeat(np.arange(len(ids), dtype=np.int32), sizes))
    names = pa.array(ids.tolist()) if len(ids) else pa.array([], pa.string())
    return pa.DictionaryArray.from_arrays(codes, names)


def _text_column(ids: Any) -> Any:
    if isinstance(ids, tuple):
        letters, starts = ids
        parts = [None, _buffer(starts), _buffer(letters)]
        return pa.Array.from_buffers(pa.large_string(), len(starts) - 1, parts)
    return pa.array([str(name) for name in ids.tolist()], pa.large_string())
