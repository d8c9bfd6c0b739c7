"""CSV, Parquet and Arrow files as Arrow tables: whole, in pieces for threads, or batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from leanrank.data.sources import is_regular, open_bytes
from leanrank.data.tables import csv, pa, pc, pq
from leanrank.errors import FileError, InputError, LeanrankError
from leanrank.execution import row_blocks

Piece = tuple[int, Callable[[], Any]]
"""A number of rows, and what reads them."""


@contextmanager
def reading(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Turn whatever Arrow says of a bad file into one sentence."""
    shown = "CSV" if kind == "csv" else kind.title()
    try:
        yield
    except LeanrankError:
        raise
    except (pa.ArrowException, OSError, MemoryError, ValueError, OverflowError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
        raise InputError(f"{path}: this is no {shown} file that can be read ({error})") from error


def table_files(path: str | os.PathLike[str], kind: str, header: bool = True) -> list[TableFile]:
    """Return the Parquet files of a directory or a pattern by name, or the one file."""
    place, files = Path(path), [Path(path)]
    if kind == "parquet" and "*" in place.name and not place.exists():
        files = sorted(place.parent.glob(place.name))
    elif kind == "parquet" and place.is_dir():
        files = sorted(f for f in place.glob("*.parquet") if not f.name.startswith((".", "_")))
    if not files:
        raise FileError(f"{path}: there are no .parquet files here")
    return [TableFile(str(file), kind, header) for file in files]


class TableFile:
    """One file of a table.

    Parameters
    ----------
    path : str
    kind : {"csv", "parquet", "arrow"}
    header : bool
        Whether the first line of a CSV file holds the names of the columns. Without, the columns
        are named by their number from 1.

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and types of the columns; those of CSV are found from the first block.
    row_bytes : float
        About how many bytes a row has in memory.
    """

    def __init__(self, path: str, kind: str, header: bool = True) -> None:
        self.path, self.kind, self._header = path, kind, header
        with reading(path, kind):
            if kind == "parquet":
                self._metadata = pq.read_metadata(path)
                self.schema = self._metadata.schema.to_arrow_schema()
                groups = map(self._metadata.row_group, range(self._metadata.num_row_groups))
                size = sum(group.total_byte_size for group in groups)
                self.row_bytes = size / max(1, self._metadata.num_rows)
            elif kind == "arrow":
                with self._open_arrow() as reader:
                    self.schema = reader.schema
                    some = reader.get_batch(0) if reader.num_record_batches else None
                    size = 0 if some is None else some.get_total_buffer_size()
                    self.row_bytes = 0 if some is None else size / max(1, some.num_rows)
            else:
                with open_bytes(path) as stream:
                    # unpacked text is read once; Arrow's threads must not hold Python's own file
                    packed = path == "-" or not is_regular(stream)
                    self._content = pa.py_buffer(stream.read()) if packed else None
                found = self._csv(csv.open_csv, csv.ConvertOptions()).schema
                names = _csv_names(found.names, header, path)
                self.schema = pa.schema(
                    [field.with_name(name) for name, field in zip(names, found, strict=True)]
                )
                self.row_bytes = 8.0 * len(names)

    def read(self, columns: Sequence[str] | None = None, texts: Collection[str] = ()) -> Any:
        """Return the whole file as a table.

        Parameters
        ----------
        columns : sequence of str, optional
            Which to read; by default all. Those of CSV are then numbers, but for ``texts``.
        texts : collection of str
            The columns of CSV that hold names: text, unless all are whole numbers.
        """
        if self.kind == "csv":
            table = self._csv(csv.read_csv, self._convert(columns, texts))
            names = self.schema.names if columns is None else list(columns)
            return whole_numbers(table.rename_columns(names), texts)
        if self.kind == "parquet" and self._metadata.num_row_groups:
            with pq.ParquetFile(self.path) as parquet:
                return _sound(parquet.read(columns))
        if self.kind == "parquet":  # older releases of Arrow fail on none
            table = self.schema.empty_table()
        else:
            with self._open_arrow() as reader:
                table = reader.read_all()
        return _sound(table if columns is None else table.select(columns))

    def pieces(self, columns: Sequence[str], texts: Collection[str]) -> list[Piece]:
        """Return the pieces of the file that can be read in threads, in their order."""
        if self.kind != "parquet":
            return table_pieces(self.read(columns, texts))

        def read(group: int) -> Any:
            with (
                reading(self.path, "parquet"),
                pq.ParquetFile(self.path, metadata=self._metadata) as file,
            ):
                # Row groups are the unit of parallel work: threads inside one would compete.
                return _sound(file.read_row_group(group, columns=columns, use_threads=False))

        rows = [
            self._metadata.row_group(at).num_rows for at in range(self._metadata.num_row_groups)
        ]
        found: list[Piece] = [(n, partial(read, at)) for at, n in enumerate(rows)]
        return found or table_pieces(self.read(columns))

    def batches(self, columns: Sequence[str], texts: Collection[str], n_rows: int) -> Iterator[Any]:
        """Yield the file as tables of about ``n_rows`` rows; names in CSV stay text."""
        if self.kind == "csv":
            for batch in self._csv(csv.open_csv, self._convert(columns, texts)):
                yield pa.Table.from_batches([batch]).rename_columns(list(columns))
        elif self.kind == "arrow":
            with self._open_arrow() as reader:
                for at in range(reader.num_record_batches):
                    yield _sound(pa.Table.from_batches([reader.get_batch(at)]).select(columns))
        elif self._metadata.num_row_groups:  # older releases of Arrow fail on none
            with pq.ParquetFile(self.path, buffer_size=2**20) as parquet:
                for batch in parquet.iter_batches(n_rows, columns=columns, use_threads=False):
                    yield _sound(pa.Table.from_batches([batch]))

    def _open_arrow(self) -> Any:
        return pa.ipc.open_file(pa.OSFile(self.path))

    def _csv(self, read: Callable[..., Any], convert: Any) -> Any:
        options = csv.ReadOptions(
            autogenerate_column_names=not self._header, use_threads=read is csv.read_csv
        )
        content = self._content
        source = pa.OSFile(self.path) if content is None else pa.BufferReader(content)
        return read(source, options, convert_options=convert)

    def _convert(self, columns: Sequence[str] | None, texts: Collection[str]) -> Any:
        """Return the types of columns: of a later block, numbers that begin whole may be others."""
        # without a header, Arrow names columns from f0 on
        names = self.schema.names
        own = {name: name if self._header else f"f{at}" for at, name in enumerate(names)}
        types = {own[name]: pa.string() for name in texts if name in own}
        for name in columns or ():
            if not pa.types.is_boolean(self.schema.field(name).type):
                types.setdefault(own[name], pa.float64())
        included = None if columns is None else [own[name] for name in columns]
        return csv.ConvertOptions(column_types=types, include_columns=included)


def table_pieces(table: Any) -> list[Piece]:
    """Cut a table into pieces."""
    blocks = row_blocks(table.num_rows) or [(0, 0)]
    return [(high - low, partial(table.slice, low, high - low)) for low, high in blocks]


def whole_numbers(table: Any, names: Collection[str]) -> Any:
    """Return a table in which columns of text are whole numbers where nothing is lost by it.

    That is, where all are written as numbers are (``7``, not ``07`` or ``7.0``) and fit 64 bits. An
    empty text is missing.

    >>> table = pa.table({"a": ["7", "10"], "b": ["7", "07"]})
    >>> whole_numbers(table, ["a", "b"]).to_pydict()
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
        with suppress(pa.ArrowInvalid):  # not numbers, or beyond 64 bits
            numbers = column.cast(pa.int64())
            if numbers.cast(pa.string()).equals(column):
                column = numbers
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def without_views(table: Any) -> Any:
    """Return a table whose texts Arrow's functions take, which know little of views of texts."""
    is_view = getattr(pa.types, "is_string_view", lambda kind: False)
    for at, field in enumerate(table.schema):
        column = table.column(at)
        if pa.types.is_dictionary(field.type) and is_view(field.type.value_type):
            chunks = [
                pa.DictionaryArray.from_arrays(chunk.indices, chunk.dictionary.cast(pa.string()))
                for chunk in column.chunks
            ]
            kind = pa.dictionary(field.type.index_type, pa.string())
            table = table.set_column(at, field.name, pa.chunked_array(chunks, kind))
        elif is_view(field.type):
            table = table.set_column(at, field.name, column.cast(pa.large_string()))
    return table


def _sound(table: Any) -> Any:
    table.validate(full=True)
    return without_views(table)


def _csv_names(names: list[str], header: bool, path: str) -> list[str]:
    """Return the names of columns; reject a header that is a line of data, or one long name."""
    if not header:
        return [str(at + 1) for at in range(len(names))]
    if len(names) == 1 and (other := next((c for c in ";\t|" if c in names[0]), None)):
        raise InputError(
            f"{path}: the first line is separated by {other!r}: write the file with commas between "
            "cells"
        )
    if names and all(name.strip().lstrip("+-").replace(".", "", 1).isdigit() for name in names):
        raise InputError(
            f"{path}: the first line holds numbers, not names of columns: read the file with "
            "`header=False`, and name columns by their number"
        )
    return names
