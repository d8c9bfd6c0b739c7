"""Data frames, Parquet, Arrow and CSV, which all need pyarrow; and CSV as Arrow reads it."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from leanrank.data.sources import is_regular, open_bytes
from leanrank.errors import InputError, MissingDependencyError

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from pyarrow import csv
except ImportError as error:
    raise MissingDependencyError("pyarrow", "frames", "reading and writing tables") from error

__all__ = ["csv", "csv_schema", "csv_tables", "pa", "pc", "pq", "read_csv", "with_identifiers"]


def read_csv(path: str | os.PathLike[str], header: bool, identifiers: Collection[str] = ()) -> Any:
    """Return a CSV file as a table; without a header, columns are named by their number from 1.

    ``identifiers`` are columns of names: text, unless all are whole numbers.
    """
    # without a header, Arrow names columns from f0 on
    texts = identifiers if header else [f"f{int(n) - 1}" for n in identifiers if n.isdecimal()]
    convert = csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()))
    with _source(path) as source:
        options = csv.ReadOptions(autogenerate_column_names=not header)
        table = csv.read_csv(source, options, convert_options=convert)
    table = table.rename_columns(_names(table.schema, header, path))
    return with_identifiers(table, identifiers)


def csv_schema(path: str | os.PathLike[str], header: bool) -> Any:
    """Return names and types of columns, found from the first block of a file."""
    with _source(path) as source:
        options = csv.ReadOptions(autogenerate_column_names=not header, use_threads=False)
        schema = csv.open_csv(source, options).schema
    fields = zip(_names(schema, header, path), schema, strict=True)
    return pa.schema([field.with_name(name) for name, field in fields])


def csv_tables(
    path: str | os.PathLike[str], header: bool, columns: Sequence[str], identifiers: Sequence[str]
) -> Iterator[Any]:
    """Yield columns of a file, a block at a time: names as text, all others as numbers."""
    schema = csv_schema(path, header)
    own = {name: name if header else f"f{at}" for at, name in enumerate(schema.names)}
    types = {
        own[name]: pa.string() if name in identifiers else pa.float64()
        for name in columns
        if name in identifiers or not pa.types.is_boolean(schema.field(name).type)
    }
    options = csv.ReadOptions(autogenerate_column_names=not header, use_threads=False)
    included = [own[name] for name in columns]
    convert = csv.ConvertOptions(column_types=types, include_columns=included)
    with _source(path) as source:
        for batch in csv.open_csv(source, options, convert_options=convert):
            yield pa.Table.from_batches([batch]).rename_columns(list(columns))


def with_identifiers(table: Any, names: Collection[str]) -> Any:
    """Return a table in which columns of text are whole numbers where nothing is lost by it.

    That is, where all are written as numbers are (``7``, not ``07`` or ``7.0``) and fit 64 bits. An
    empty text is missing.

    >>> table = pa.table({"a": ["7", "10"], "b": ["7", "07"]})
    >>> with_identifiers(table, ["a", "b"]).to_pydict()
    {'a': [7, 10], 'b': ['7', '07']}
    """
    for name in set(names) & set(table.column_names):
        column = table.column(name)
        if not pa.types.is_string(column.type):
            continue
        empty = pc.equal(column, "")
        if pc.any(empty).as_py():
            # a copy: Arrow 18 makes invalid texts of a part of a column
            whole = pa.concat_arrays([*column.chunks, pa.array([], column.type)])
            column = pc.if_else(empty, None, pa.chunked_array([whole]))
        if pc.all(pc.match_substring_regex(column, r"^(0|-?[1-9][0-9]{0,18})$")).as_py():
            with contextlib.suppress(pa.ArrowInvalid):  # beyond 64 bits
                column = column.cast(pa.int64())
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def _source(path: str | os.PathLike[str]) -> Any:
    """Open a file for Arrow, whose threads must not hold Python's own; unpacked text in memory."""
    with open_bytes(path) as stream:
        if is_regular(stream) and os.fspath(path) != "-":
            return pa.OSFile(os.fspath(path))
        return pa.BufferReader(stream.read())


def _names(schema: Any, header: bool, path: str | os.PathLike[str]) -> list[str]:
    """Return the names of columns; reject a header that is a line of data, or one long name."""
    names: list[str] = schema.names
    if not header:
        return [str(at + 1) for at in range(len(names))]
    if len(names) == 1 and (other := next((c for c in ";\t|" if c in names[0]), None)):
        raise InputError(
            f"{os.fspath(path)}: the first line is separated by {other!r}: write the file with "
            "commas between cells"
        )
    if names and all(name.strip().lstrip("+-").replace(".", "", 1).isdigit() for name in names):
        raise InputError(
            f"{os.fspath(path)}: the first line holds numbers, not names of columns: read the file "
            "with `header=False`, and name columns by their number"
        )
    return names
