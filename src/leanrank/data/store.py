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

from leanrank._typing import AnyArray, IntArray, Matrix
from leanrank.data.formats import FORMATS
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
from leanrank.data.tables import pa
from leanrank.data.tables.arrow import identifiers, run_starts
from leanrank.data.tables.files import reading
from leanrank.data.tables.layout import INDICES, column_roles, find_layout, list_columns
from leanrank.errors import FileError, InputError
from leanrank.execution import row_blocks


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
            if os.path.getsize(path) == 0:
                raise pa.ArrowInvalid("the file is empty")
            content = np.memmap(path, dtype=np.uint8, mode="r")
            reader = pa.ipc.open_file(pa.py_buffer(content))
        except pa.ArrowInvalid:
            if Path(path).suffix in FORMATS["arrow"]:
                raise
            return None
        if reader.num_record_batches != 1:
            return None
        batch = reader.get_batch(0)
        batch.validate()
        try:
            return _mapped(batch, content, os.fspath(path))
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
        self.array = array
        self.shape = (len(array),)

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key.step in (None, 1):
            begin, end, _ = key.indices(len(self))
            return Texts(self.array.slice(begin, max(0, end - begin)))
        chosen = np.arange(len(self))[key]
        if np.ndim(chosen) == 0:
            return self.array[int(chosen)].as_py()
        return np.asarray(Texts(self.array.take(pa.array(chosen))))

    def __iter__(self) -> Iterator[str]:
        for low, high in row_blocks(len(self)):
            yield from self.array.slice(low, high - low).to_pylist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.tolist(), dtype=dtype or str)

    def __reduce__(self) -> tuple[Any, ...]:
        return np.array, (self.tolist(),)

    def tolist(self) -> list[str]:
        """Return all ids."""
        return list(self)


class _OtherLayoutError(Exception):
    """An Arrow file is no store; it can be loaded."""


def _view(array: Any, content: AnyArray) -> AnyArray:
    """Return the numbers of an array without nulls as a view of the mapped file."""
    try:
        values = array.to_numpy()
    except (pa.ArrowInvalid, TypeError):
        raise _OtherLayoutError from None
    begin = values.ctypes.data - content.ctypes.data
    if values.nbytes == 0:
        return values
    if not 0 <= begin <= len(content) - values.nbytes or begin % values.itemsize:
        raise _OtherLayoutError  # unpacked, or not where numbers of this size can be
    return content[begin : begin + values.nbytes].view(values.dtype)


def _mapped(batch: Any, content: AnyArray, where: str) -> RankingData:
    if list_columns(batch.schema) is None:
        raise _OtherLayoutError
    layout = find_layout(batch.schema, column_roles({}), None, where, ("label", "qid"))
    n_rows, columns = batch.num_rows, layout.columns
    known = {"label", "qid"} <= set(columns) and (layout.packed or layout.sparse)
    if n_rows == 0 or not known:
        raise _OtherLayoutError
    query_ids, starts = _queries(batch.column(columns["qid"]), content)
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
        return _view(column, content)

    weights = numbers("query_weight")
    if weights is not None:
        first = one_of_each_query(weights, grouping.query_ptr, f"{where}: ")
        weights = one_per_query(first, grouping)
    documents = None
    if "doc_id" in columns:
        column = batch.column(columns["doc_id"])
        column.validate(full=True)
        documents = Texts(column.cast(pa.large_string()))
    return RankingData.of_fields(
        X=_mapped_matrix(batch, layout, content, where),
        y=as_labels(numbers("label"), n_rows),
        query_ids=grouping.query_ids,
        query_ptr=grouping.query_ptr,
        doc_ids=documents,
        feature_names=layout.feature_names,
        sample_weight=one_per_row(numbers("weight"), "weight", grouping, n_rows, low=0.0),
        query_weight=weights,
        offset=one_per_row(numbers("offset"), "offset", grouping, n_rows),
    )


def _mapped_matrix(batch: Any, layout: Any, content: AnyArray, where: str) -> Matrix:
    lists = [batch.column(name) for name in layout.features]
    if any(column.null_count or column.offset for column in lists):
        raise _OtherLayoutError
    values = _view(lists[-1].values, content)
    if values.dtype not in (np.float32, np.float64):
        raise _OtherLayoutError
    if values.nbytes <= 64 << 20 and np.isinf(values).any():  # a large file is checked when used
        raise InputError(
            f"{where}: a feature is infinite: a feature is a finite number, or NaN where missing"
        )
    if layout.packed:
        return values[: batch.num_rows * layout.n_features].reshape(batch.num_rows, -1)
    indices = _view(lists[0].values, content)
    ptr, other = (_view(column.offsets, content) for column in lists)
    if layout.n_features is None or indices.dtype.kind != "i":
        raise _OtherLayoutError
    try:  # kernels do not look at bounds
        matrix = csr(values, indices, ptr, layout.n_features, sound=False)
        matrix.check_format(full_check=True)
        sound = np.array_equal(ptr, other) and matrix.has_canonical_format
    except ValueError:
        sound = False
    if not sound:
        raise InputError(
            f"{where}: {INDICES} holds features outside 0..{layout.n_features - 1}, or not in "
            "ascending order: the file is damaged, write it again"
        )
    return matrix


def _queries(column: Any, content: AnyArray) -> tuple[AnyArray, IntArray]:
    """Return the identifier of each run of rows, and where it begins."""
    named = pa.types.is_dictionary(column.type)
    codes = column.indices if named else column
    if not pa.types.is_integer(codes.type):
        raise _OtherLayoutError
    values = _view(codes, content)
    starts = run_starts(values)
    heads = np.array(values[starts])
    if not named:
        return heads, starts
    column.validate(full=True)
    names = pa.chunked_array([column.dictionary.take(pa.array(heads))])
    return identifiers(names, "qid", "the file"), starts
