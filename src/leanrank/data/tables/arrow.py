"""Between Arrow columns and RankingData: the one place where a column's type matters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, IntArray
from leanrank.data.formats import ROLES
from leanrank.data.grouping import group_rows, one_of_each_query
from leanrank.data.ranking_data import RankingData, weights_per_row
from leanrank.data.tables import pa, pc
from leanrank.data.tables.files import Piece
from leanrank.data.tables.layout import Layout
from leanrank.errors import InputError
from leanrank.execution import Executor

_ROWS_PER_FILL = 2048  # a strip of X that stays in the cache while all columns are written to it


def build(
    layout: Layout,
    pieces: Sequence[Piece],
    executor: Executor,
    where: str = "the table",
    *,
    row0: int = 0,
    runs: bool = False,
) -> RankingData:
    """Build a set from pieces of a table, each read in any thread.

    With ``runs``, rows keep their order: a query that comes back is another query with that name.
    ``row0`` is the number of the first row in messages.
    """
    ptr = np.cumsum([0, *(n for n, _ in pieces)]).tolist()
    X = np.empty((ptr[-1], len(layout.features)), dtype=layout.dtype)
    side = list(dict.fromkeys(layout.columns.values()))

    def fill(at: int) -> pa.Table:
        table, rows = pieces[at][1](), X[ptr[at] : ptr[at + 1]]
        fill_rows(rows, [_numbers(table.column(name)) for name in layout.features])
        _refuse_infinity(rows, layout.features, row0 + ptr[at], where)
        return table.select(side)

    filled = executor.map(fill, range(len(pieces)))
    sides = pa.concat_tables(filled, promote_options="permissive")
    return assemble(X, sides, layout, where, runs=runs)


def assemble(
    X: Any, sides: pa.Table, layout: Layout, where: str, *, runs: bool = False
) -> RankingData:
    """Return features and the columns beside them as one set; ``runs`` as for ``build``."""
    values: dict[str, Any] = dict.fromkeys(ROLES)
    values |= {role: sides.column(name) for role, name in layout.columns.items()}
    ids = names = starts = None
    if values["qid"] is not None:
        ids, names = query_codes(values["qid"], layout.columns["qid"], where)
    if runs and ids is not None:
        codes, starts = ids, run_starts(ids)
        ids = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(codes))))
    for role in ("label", "weight", "query_weight", "offset"):
        if values[role] is not None:
            values[role] = side_numbers(values[role], role, where, nulls_are_nan=role == "label")
    if values["query_weight"] is not None:
        grouping = group_rows(ids, X.shape[0])
        own = grouping.take(values["query_weight"])
        values["query_weight"] = one_of_each_query(own, grouping.query_ptr, f"{where}: ")
    if values["doc_id"] is not None:
        values["doc_id"] = np.array(values["doc_id"].cast(pa.string()).to_pylist(), dtype=str)
    data = RankingData(
        X,
        values["label"],
        ids,
        doc_ids=values["doc_id"],
        feature_names=layout.feature_names,
        sample_weight=values["weight"],
        query_weight=values["query_weight"],
        offset=values["offset"],
    )
    found = data.query_ids if starts is None else codes[starts]
    return data.with_fields(query_ids=found if names is None else names[found])


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
    columns += list(np.ascontiguousarray(data.X[rows].T))
    arrays = [
        pa.array(column, field.type, from_pandas=False)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def fill_rows(out: AnyArray, columns: Sequence[AnyArray]) -> None:
    """Write columns into a row-major array."""
    for at in range(0, len(out), _ROWS_PER_FILL):
        strip = out[at : at + _ROWS_PER_FILL]
        for j, column in enumerate(columns):
            strip[:, j] = column[at : at + _ROWS_PER_FILL]


def _numbers(column: pa.ChunkedArray) -> AnyArray:
    """Return a column as a NumPy array, without copying where Arrow can."""
    if column.null_count or pa.types.is_decimal(column.type):
        column = column.cast(pa.float64()).fill_null(float("nan"))
    if column.num_chunks == 1:
        return column.chunk(0).to_numpy(zero_copy_only=False)
    return column.to_numpy()


def _refuse_infinity(rows: AnyArray, names: Sequence[str], row0: int, where: str) -> None:
    # A finite sum proves that all is finite, at a third of the cost of looking at each value.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(rows.sum()) or not np.isinf(rows).any():
            return
    row, column = (int(at) for at in np.argwhere(np.isinf(rows))[0])
    raise InputError(
        f"column {names[column]!r} of {where} is {rows[row, column]} in row {row0 + row} (counted "
        "from 0): a feature is a finite number, or empty where it is missing"
    )


def refuse_nulls(column: pa.ChunkedArray, name: str, where: str) -> None:
    """Raise for the first row of a column that has no value."""
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise InputError(
            f"column {name!r} of {where} has no value in row {row} (counted from 0): fill or drop "
            "missing values first"
        )


def side_numbers(
    column: pa.ChunkedArray, role: str, where: str, nulls_are_nan: bool = False
) -> AnyArray:
    """Return a column of numbers beside the features, one per row."""
    if not nulls_are_nan:
        refuse_nulls(column, role, where)
    return _numbers(column).astype(np.float64, copy=False)


def query_codes(column: pa.ChunkedArray, name: str, where: str) -> tuple[IntArray, AnyArray | None]:
    """Return one number per row, and the query of each number unless they are the queries."""
    refuse_nulls(column, name, where)
    if pa.types.is_integer(column.type):
        return _numbers(column), None
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    encoded = column.unify_dictionaries()
    if encoded.num_chunks == 0:
        return np.zeros(0, dtype=np.int64), None
    distinct = encoded.chunk(0).dictionary.to_pylist()
    if all(isinstance(value, (str, int, float)) for value in distinct):
        names = np.array(distinct)
    else:
        names = np.empty(len(distinct), dtype=object)
        names[:] = distinct
    return pa.chunked_array([chunk.indices for chunk in encoded.chunks]).to_numpy(), names
