"""Between Arrow columns and RankingData: which column is what, and how its values are read."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, IntArray
from leanrank.data.formats import ROLES
from leanrank.data.grouping import group_rows, one_of_each_query, run_starts
from leanrank.data.ranking_data import RankingData, feature_name, weights_per_row
from leanrank.data.tables import pa, pc
from leanrank.data.tables.files import Piece
from leanrank.errors import InputError, first_repeated, suggest
from leanrank.execution import Executor, row_blocks

VERSION = 1
_KEY = b"leanrank"
_ROWS_PER_FILL = 2048  # a strip of X that stays in the cache while all columns are written to it
_CELLS_PER_READ = 1 << 22  # of a long row group, some columns at once: X and little more is held


def column_roles(given: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the column of each role, by default those named label and qid."""
    for name in given:
        if name not in ROLES:
            known = [*ROLES, "features", "optional", "n_jobs"]
            raise InputError(f"a table is not read with {name!r}: {suggest(name, known)}")
    return {"label": "label", "qid": "qid", **given}


@dataclass(frozen=True)
class Layout:
    """Which column of a table is what."""

    columns: dict[str, str]  # role → column
    features: tuple[str, ...]
    feature_names: tuple[str, ...] | None
    dtype: np.dtype[Any]

    @property
    def needed(self) -> list[str]:
        """All columns that must be read."""
        return [*dict.fromkeys([*self.columns.values(), *self.features])]

    @property
    def texts(self) -> list[str]:
        """The columns that hold the names of queries and documents."""
        return [self.columns[role] for role in ("qid", "doc_id") if role in self.columns]


def find_layout(
    schema: pa.Schema,
    roles: Mapping[str, str | None],
    features: Sequence[str] | None = None,
    where: str = "the table",
    optional: Collection[str] = (),
    among: Collection[str] | None = None,
) -> Layout:
    """Decide which column is what, from the caller's names and what leanrank wrote beside them.

    If any column is named as one of ``among``, no others are features.
    """
    notes, present = notes_of(schema, where), schema.names
    if (twice := first_repeated(present)) is not None:
        raise InputError(f"{where} has two columns named {twice!r}: names must be distinct")
    if isinstance(features, str):
        raise InputError(f"features={features!r} is one name: give a list of column names")
    given = {
        role: str(name)
        for role, name in roles.items()
        if name is not None and (str(name) in present or role not in optional)
    }
    reserved = notes.get("columns", ROLES)
    for role in set(reserved) - {"label", "qid", *given.values(), *(features or ())}:
        if role in present:
            given.setdefault(role, role)
    if features is None:
        index = (schema.pandas_metadata or {}).get("index_columns", ())  # row labels, not data
        apart = {*given.values(), *reserved, *(name for name in index if isinstance(name, str))}
        unused = [name for name in present if name not in apart]
        chosen = tuple(name for name in unused if name in (among or ())) or tuple(unused)
        own_names = notes.get("named", True)
    else:
        chosen, own_names = tuple(features), True
        if given.get("label") in chosen:
            label = given["label"]
            raise InputError(f"column {label!r} is the label: leave it out of `features=…`")
    for role, name in [*given.items(), *(("a feature", name) for name in chosen)]:
        remedy = f"name the right one with `{role}=…`"
        if role in ("label", "qid"):
            remedy += f", or `{role}=None` if there is none"
        elif role == "a feature":
            remedy = f"say what it is, as in `doc_id={name!r}`, or list those to use with "
            remedy += "`features=…`"
        if name not in present:
            shown = ", ".join(map(repr, present[:20])) + ", ..." * (len(present) > 20)
            raise InputError(
                f"{where} has no column {name!r} for {role}: {remedy} (columns: {shown})"
            )
        kind = schema.field(name).type
        if role not in ("qid", "doc_id") and not is_number(kind):
            raise InputError(
                f"column {name!r} of {where} holds {kind}, not numbers: correct it, or {remedy}"
            )
    kinds = {schema.field(name).type for name in chosen}
    dtype = np.dtype(np.float32 if kinds == {pa.float32()} else np.float64)
    return Layout(given, chosen, chosen if own_names else None, dtype)


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column of a type holds numbers."""
    is_, empty = pa.types, pa.types.is_null(kind)  # that is reported where its first row is
    numeric = is_.is_floating(kind) or is_.is_integer(kind) or is_.is_decimal(kind)
    return bool(numeric or is_.is_boolean(kind) or empty)


def schema_notes(**notes: Any) -> dict[bytes, bytes]:
    """Return what leanrank notes beside the columns of a table."""
    return {_KEY: json.dumps({"version": VERSION, **notes}).encode()}


def notes_of(schema: pa.Schema, where: str) -> dict[str, Any]:
    """Return what leanrank noted beside the columns of a table."""
    if (raw := (schema.metadata or {}).get(_KEY)) is None:
        return {}
    with suppress(KeyError, ValueError, TypeError):
        notes = dict(json.loads(raw))
        if notes["version"] == VERSION:
            return notes
    raise InputError(
        f"{where} has notes under 'leanrank' that are damaged or of another version: write it again"
    )


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
    blocks = [
        (at, low, high)
        for at, (n, _) in enumerate(pieces)
        for low, high in row_blocks(len(layout.features), max(16, _CELLS_PER_READ // max(1, n)))
    ]

    def fill(block: tuple[int, int, int]) -> None:
        at, low, high = block
        names, rows = layout.features[low:high], X[ptr[at] : ptr[at + 1], low:high]
        table = pieces[at][1](sorted({*names}))
        fill_rows(rows, [_numbers(table.column(name)) for name in names])

    executor.map(fill, blocks)
    _refuse_infinity(X, layout.features, row0, where)
    sides = pa.concat_tables([read(side) for _, read in pieces], promote_options="permissive")
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


def table_of(data: RankingData, start: int = 0, stop: int | None = None, order: Any = None) -> Any:
    """Return rows of a set as a table, with notes from which it can be rebuilt.

    The rows are ``start:stop``, or those of ``order[start:stop]`` if it is given.
    """
    if data.is_sparse:
        raise InputError(
            "a table has one column per feature and cannot hold sparse data: write LETOR text or "
            ".arrow instead, or make X dense"
        )
    rows: Any = slice(start, stop) if order is None else order[start:stop]
    queries = np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))[rows]
    arrays = {"label": as_array(data.y[rows]), "qid": as_array(data.query_ids).take(queries)}
    if data.doc_ids is not None:
        arrays["doc_id"] = pa.array(map(str, data.doc_ids[rows].tolist()), pa.string())
    arrays |= {role: as_array(values[rows]) for role, values in weights_per_row(data).items()}
    names = data.feature_names or tuple(map(feature_name, range(data.n_features)))
    clash = next((name for name in names if name in arrays), None)
    if clash is not None:
        raise InputError(
            f"a feature is named {clash!r}, which is the name of another column of the table: "
            "rename it in the source, or with data.replace(feature_names=...)"
        )
    noted = schema_notes(columns=[*arrays], named=data.feature_names is not None)
    columns = zip(names, np.ascontiguousarray(data.X[rows].T), strict=True)
    arrays |= {name: as_array(column) for name, column in columns}
    return pa.Table.from_batches([record_batch(arrays, noted)])


def as_array(values: AnyArray) -> Any:
    """Return values as an Arrow array, numbers over the same memory; NaN is a number."""
    return pa.array(np.ascontiguousarray(values), from_pandas=False)


def record_batch(arrays: Mapping[str, Any], notes: Mapping[bytes, bytes]) -> Any:
    """Return columns without nulls as a record batch, with notes beside them."""
    fields = [pa.field(name, array.type, False) for name, array in arrays.items()]
    schema = pa.schema(fields, metadata=notes)
    return pa.RecordBatch.from_arrays(list(arrays.values()), schema=schema)


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
