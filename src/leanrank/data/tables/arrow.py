"""Between Arrow columns and RankingData: the one place where a column's type matters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, IntArray
from leanrank.data.grouping import group_rows, one_of_each_query
from leanrank.data.matrices import MOST_FEATURES
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.data.tables.imports import pa, pc
from leanrank.data.tables.layout import (
    FEATURES,
    INDICES,
    THE_TABLE,
    VALUES,
    Layout,
    Place,
    weights_per_row,
)
from leanrank.errors import InputError
from leanrank.execution import Executor, make_executor

_ROWS_PER_FILL = 2048  # a strip of X that stays in the cache while all columns are written to it


def build(
    layout: Layout,
    sizes: Sequence[int],
    read: Callable[[int], pa.Table],
    executor: Executor,
    where: Place = THE_TABLE,
) -> RankingData:
    """Build a set from pieces, each read in any thread."""
    ptr = np.concatenate(([0], np.cumsum(np.asarray(sizes, dtype=np.int64))))
    n_rows = int(ptr[-1])
    width = 0 if layout.sparse else len(layout.features)
    if layout.packed:
        width = layout.n_features or 0
    X = np.empty((n_rows, width), dtype=layout.dtype)
    side = list(dict.fromkeys(layout.columns.values()))

    def piece(at: int) -> tuple[pa.Table, Any]:
        table = read(at)
        row0 = int(ptr[at])
        if table.num_rows != sizes[at]:
            raise InputError(
                f"{where} declares {sizes[at]} rows but holds {table.num_rows}: it is damaged"
            )
        table.validate(full=True)
        if layout.sparse:
            return table.select(side), _entries(table, layout, row0, where)
        rows = X[row0 : int(ptr[at + 1])]
        if layout.packed:
            column = table.column(FEATURES)
            _refuse_nulls(column, FEATURES, row0, where)
            rows.reshape(-1)[:] = _flattened(column)
            shown = layout.feature_names or tuple(map(feature_name, range(width)))
            _refuse_infinity(rows, shown, row0, where)
            return table.select(side), None
        columns = [_numbers(column) for column in table.select(list(layout.features)).columns]
        fill_rows(rows, columns)
        _refuse_infinity(rows, layout.features, row0, where)
        return table.select(side), None

    pieces = executor.map(piece, range(len(sizes)))
    matrix = _stack([part for _, part in pieces], n_rows, layout, where) if layout.sparse else X
    tables = [table for table, _ in pieces]
    sides = pa.concat_tables(tables, promote_options="permissive")
    values = {role: sides.column(name) for role, name in layout.columns.items()}
    qid = identifiers(values["qid"], layout.columns["qid"], where) if "qid" in values else None
    weights = _side_numbers(values.get("query_weight"), "query_weight", where)
    if weights is not None:
        grouping = group_rows(qid, n_rows)
        weights = one_of_each_query(grouping.take(weights), grouping.query_ptr)
    return RankingData(
        matrix,
        _side_numbers(values.get("label"), "label", where, nulls_are_nan=True),
        qid,
        doc_ids=_texts(values.get("doc_id")),
        feature_names=layout.feature_names,
        sample_weight=_side_numbers(values.get("weight"), "weight", where),
        query_weight=weights,
        offset=_side_numbers(values.get("offset"), "offset", where),
    )


def build_runs(layout: Layout, table: pa.Table, where: Place) -> RankingData:
    """Make a set of rows in their order: a query that comes back is another one of that name."""
    name = layout.columns.get("qid")
    if name is None:
        return build(layout, [table.num_rows], lambda at: table, make_executor(None), where)
    ids = identifiers(table.column(name), name, where)
    starts = run_starts(ids)
    lengths = np.diff(np.append(starts, table.num_rows))
    runs = pa.array(np.repeat(np.arange(len(starts)), lengths))
    table = table.set_column(table.schema.get_field_index(name), name, runs)
    data = build(layout, [table.num_rows], lambda at: table, make_executor(None), where)
    return data.with_fields(query_ids=ids[starts])


def run_starts(ids: AnyArray) -> IntArray:
    """Return the rows where a query begins."""
    if len(ids) == 0:
        return np.zeros(0, dtype=np.int64)
    return np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1)).astype(np.int64)


def table_rows(
    data: RankingData, schema: pa.Schema, start: int, stop: int, order: IntArray | None = None
) -> pa.Table:
    """Return rows of a set as a table of that schema; those of ``order[start:stop]`` if given."""
    rows: Any = slice(start, stop) if order is None else order[start:stop]
    columns: list[Any] = [data.y[rows], data.qid[rows]]
    if data.doc_ids is not None:
        columns.append([str(name) for name in data.doc_ids[rows].tolist()])
    columns += [values[rows] for values in weights_per_row(data).values()]
    if data.is_sparse:
        part = data.X[rows]
        ptr = part.indptr.astype(np.int32)
        for values in (part.indices.astype(np.int32), part.data):
            field = schema.field(len(columns)).type
            columns.append(pa.ListArray.from_arrays(ptr, pa.array(values), type=field))
    else:
        block = data.X[rows]
        turned = np.empty((data.n_features, len(block)), dtype=data.X.dtype)
        for at in range(0, len(block), _ROWS_PER_FILL):
            strip = block[at : at + _ROWS_PER_FILL]
            turned[:, at : at + len(strip)] = strip.T
        columns += list(turned)
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, field.type, from_pandas=False)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def fill_rows(out: AnyArray, columns: Sequence[Sequence[AnyArray]]) -> None:
    """Write columns, each in consecutive chunks, into a row-major array."""
    whole = [_joined(chunks) for chunks in columns]
    for at in range(0, len(out), _ROWS_PER_FILL):
        strip = out[at : at + _ROWS_PER_FILL]
        for j, column in enumerate(whole):
            strip[:, j] = column[at : at + _ROWS_PER_FILL]


def _numbers(column: pa.ChunkedArray) -> list[AnyArray]:
    """Return the chunks of a column as NumPy arrays, without copying where Arrow can."""
    if column.null_count or pa.types.is_decimal(column.type):
        column = column.cast(pa.float64()).fill_null(float("nan"))
    return [chunk.to_numpy(zero_copy_only=False) for chunk in column.chunks]


def _flattened(column: pa.ChunkedArray) -> AnyArray:
    """Return the numbers in the lists of a column, one list after the other."""
    lists = [chunk.flatten() for chunk in column.chunks]
    return _joined(_numbers(pa.chunked_array(lists, column.type.value_type)))


def _joined(chunks: Sequence[AnyArray]) -> AnyArray:
    if len(chunks) == 1:
        return chunks[0]
    return np.concatenate(chunks) if chunks else np.empty(0)


def _refuse_infinity(rows: AnyArray, names: Sequence[str], row0: int, where: Place) -> None:
    # A finite sum proves that all is finite, at a third of the cost of looking at each value.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum()) or not np.isinf(rows).any():
            return
    row, column = (int(at) for at in np.argwhere(np.isinf(rows))[0])
    raise InputError(
        f"column {names[column]!r} of {where} is {rows[row, column]} in {where.row(row0 + row)}: "
        "a feature is a finite number, or empty where it is missing"
    )


def _refuse_nulls(column: pa.ChunkedArray, name: str, row0: int, where: Place) -> None:
    if column.null_count:
        row = row0 + int(pc.index(column.is_null(), True).as_py())
        raise InputError(
            f"column {name!r} of {where} has no value in {where.row(row)}: fill or drop missing "
            "values first"
        )


def _side_numbers(
    column: pa.ChunkedArray | None, role: str, where: Place, nulls_are_nan: bool = False
) -> AnyArray | None:
    if column is None:
        return None
    if not nulls_are_nan:
        _refuse_nulls(column, role, 0, where)
    return _joined(_numbers(column)).astype(np.float64)


def identifiers(column: pa.ChunkedArray, name: str, where: Place) -> AnyArray:
    """Return query identifiers: whole numbers stay numbers, anything else is looked up once."""
    _refuse_nulls(column, name, 0, where)
    if pa.types.is_integer(column.type) and column.num_chunks:
        return np.concatenate([chunk.to_numpy() for chunk in column.chunks])
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    encoded = column.unify_dictionaries()
    if encoded.num_chunks == 0:
        return np.empty(0, dtype=object)
    distinct = encoded.chunk(0).dictionary.to_pylist()
    values = np.array(distinct) if all(isinstance(v, (str, int, float)) for v in distinct) else None
    if values is None:
        values = np.empty(len(distinct), dtype=object)
        values[:] = distinct
    codes = [chunk.indices.to_numpy(zero_copy_only=False) for chunk in encoded.chunks]
    return np.asarray(values[np.concatenate(codes)])


def _texts(column: pa.ChunkedArray | None) -> AnyArray | None:
    return None if column is None else np.array(column.cast(pa.string()).to_pylist(), dtype=str)


def _entries(table: pa.Table, layout: Layout, row0: int, where: Place) -> tuple[AnyArray, ...]:
    parts: dict[str, tuple[AnyArray, AnyArray]] = {}
    for name in layout.features:
        column = table.column(name)
        _refuse_nulls(column, name, row0, where)
        lengths = [c.value_lengths().to_numpy(zero_copy_only=False) for c in column.chunks]
        parts[name] = _flattened(column), _joined(lengths).astype(np.int64)
    (indices, lengths_i), (values, lengths_v) = parts[INDICES], parts[VALUES]
    if not np.array_equal(lengths_i, lengths_v):
        row = where.row(row0 + int(np.flatnonzero(lengths_i != lengths_v)[0]))
        raise InputError(f"{INDICES} and {VALUES} of {where} differ in length in {row}")
    top = MOST_FEATURES if layout.n_features is None else layout.n_features
    if len(indices) and not (indices.min() >= 0 and indices.max() < top and _are_whole(indices)):
        raise InputError(f"{INDICES} of {where} holds a feature outside 0..{top - 1}")
    _refuse_infinity(values[:, None], [VALUES], row0, where)
    return indices.astype(np.int32), values.astype(layout.dtype, copy=False), lengths_i


def _are_whole(values: AnyArray) -> bool:
    return values.dtype.kind in "iu" or bool(np.all(values == np.floor(values)))


def _stack(parts: list[Any], n_rows: int, layout: Layout, where: Place) -> Any:
    from scipy.sparse import csr_array

    if not parts:
        parts = [(np.empty(0, np.int32), np.empty(0, layout.dtype), np.empty(0, np.int64))]
    indices, values, lengths = (np.concatenate(column) for column in zip(*parts, strict=True))
    n_features = layout.n_features
    if n_features is None:
        n_features = int(indices.max()) + 1 if len(indices) else 0
    indptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    index = np.int32 if len(values) < 2**31 else np.int64
    matrix = csr_array(
        (values, indices.astype(index, copy=False), indptr.astype(index)),
        shape=(n_rows, n_features),
    )
    matrix.sort_indices()
    if not matrix.has_canonical_format:
        raise InputError(f"{INDICES} of {where} holds a feature twice in one row: give it once")
    return matrix
