"""CSV, Parquet and Arrow files as Arrow tables: whole, in pieces for threads, or batch by batch."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from leanrank.data.formats import check_exists, format_name
from leanrank.data.sources import is_regular, open_bytes
from leanrank.data.tables import csv, pa, pc, pq
from leanrank.errors import FileError, InputError, LeanrankError
from leanrank.execution import row_blocks

Piece = tuple[int, Callable[[Sequence[str]], Any]]
"""A number of rows, and what reads some columns of them."""


_OF_A_BAD_FILE = (OSError, MemoryError, ValueError, OverflowError, TypeError, AttributeError)
"""Errors that damaged content causes; the last two come from a value of the wrong type."""


@contextmanager
def reading(path: str | os.PathLike[str], kind: str) -> Iterator[None]:
    """Raise one sentence that names the file for any error that Arrow raises."""
    shown = "CSV" if kind == "csv" else kind.title()
    try:
        yield
    except LeanrankError:
        raise
    except (pa.ArrowException, *_OF_A_BAD_FILE) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
        raise InputError(f"{path}: this is no {shown} file that can be read ({error})") from error


def table_files(path: str | os.PathLike[str], kind: str) -> list[TableFile]:
    """Return the Parquet files of a directory or a pattern by name, or the one file."""
    place, files = Path(path), [Path(path)]
    if kind == "parquet" and "*" in place.name and not place.exists():
        files = sorted(place.parent.glob(place.name))
    elif kind == "parquet" and place.is_dir():
        files = sorted(f for f in place.glob("*.parquet") if not f.name.startswith((".", "_")))
    if not files:
        raise FileError(f"{path}: there are no .parquet files here")
    return [TableFile(str(file), kind) for file in files]


class TableFile:
    """One file of a table.

    Parameters
    ----------
    path : str
    kind : {"csv", "parquet", "arrow"}

    Attributes
    ----------
    schema : pyarrow.Schema
        Names and types of the columns; those of CSV are found from the first block.
    """

    def __init__(self, path: str, kind: str) -> None:
        self.path, self.kind = path, kind
        with reading(path, kind):
            if kind == "parquet":
                self._metadata = pq.read_metadata(path)
                self.schema = self._metadata.schema.to_arrow_schema()
            elif kind == "arrow":
                self.schema = self._open_arrow().schema
            else:
                with open_bytes(path) as stream:
                    # unpacked text is read once; Arrow's threads must not hold Python's own file
                    packed = path == "-" or not is_regular(stream)
                    self._content = pa.py_buffer(stream.read()) if packed else None
                self.schema = self._csv(csv.open_csv, None, ()).schema
                _check_header(self.schema.names, path)

    def read(
        self,
        columns: Collection[str] | None = None,
        texts: Collection[str] = (),
        *,
        categories: bool = False,
    ) -> Any:
        """Return the whole file as a table.

        Parameters
        ----------
        columns : collection of str, optional
            Which to read; by default all. Those of CSV are then numbers, but for ``texts``.
        texts : collection of str
            The columns of CSV that hold names: text, unless all are whole numbers.
        categories : bool
            Whether ``texts`` are categories instead: text, in which an empty cell or NA is missing.
        """
        if self.kind == "csv":
            table = self._csv(csv.read_csv, columns, texts, categories)
            return table if categories else whole_numbers(table, texts)
        if self.kind == "arrow":
            table = self._open_arrow().read_all()
        elif self._metadata.num_row_groups:
            table = self._open_parquet().read(columns)
        else:  # older releases of Arrow fail on none
            table = self.schema.empty_table()
        return _sound(table if columns is None else table.select(columns))

    def pieces(self, columns: Sequence[str], texts: Collection[str]) -> list[Piece]:
        """Return the pieces of the file that can be read in threads, in their order."""
        if self.kind != "parquet" or not self._metadata.num_row_groups:
            return table_pieces(self.read(columns, texts))

        def read(group: int, names: Sequence[str]) -> Any:
            with reading(self.path, "parquet"):
                # Row groups are the unit of parallel work: threads inside one would compete.
                file = self._open_parquet()
                return _sound(file.read_row_group(group, columns=names, use_threads=False))

        groups = range(self._metadata.num_row_groups)
        return [(self._metadata.row_group(at).num_rows, partial(read, at)) for at in groups]

    def batches(self, columns: Sequence[str], texts: Collection[str], n_rows: int) -> Iterator[Any]:
        """Yield the file as tables of about ``n_rows`` rows; names in CSV stay text."""
        batches: Iterator[Any] = iter(())
        if self.kind == "csv":
            batches = iter(self._csv(csv.open_csv, columns, texts))
        elif self.kind == "arrow":
            reader = self._open_arrow()
            batches = map(reader.get_batch, range(reader.num_record_batches))
        elif self._metadata.num_row_groups:  # older releases of Arrow fail on none
            file = self._open_parquet(buffer_size=2**20)
            batches = file.iter_batches(n_rows, columns=columns, use_threads=False)
        for batch in batches:
            yield _sound(pa.Table.from_batches([batch]).select(columns))

    def _open_arrow(self) -> Any:
        return pa.ipc.open_file(pa.OSFile(self.path))

    def _open_parquet(self, **how: Any) -> Any:
        return pq.ParquetFile(self.path, metadata=self._metadata, **how)

    def _csv(
        self,
        read: Callable[..., Any],
        columns: Collection[str] | None,
        texts: Collection[str],
        nulls: bool = False,
    ) -> Any:
        """Read as numbers what is not text: numbers that begin whole may be others later."""
        types = dict.fromkeys(texts, pa.string())
        for name in columns or ():
            if not pa.types.is_boolean(self.schema.field(name).type):
                types.setdefault(name, pa.float64())
        source = pa.OSFile(self.path) if self._content is None else pa.BufferReader(self._content)
        how = csv.ConvertOptions(
            column_types=types, include_columns=columns, strings_can_be_null=nulls
        )
        threads = csv.ReadOptions(use_threads=read is csv.read_csv)
        return read(source, threads, convert_options=how)


def read_table(
    path: str | os.PathLike[str],
    columns: Collection[str] | None = None,
    texts: Collection[str] = (),
    **how: Any,
) -> Any:
    """Return a .csv, .parquet or .arrow file as a table; see ``TableFile.read``.

    Of ``columns``, those that the file has are read.
    """
    name = os.fspath(path)
    check_exists(name)
    if (kind := format_name(name, None)) == "letor":
        raise InputError(f"{name}: this is no table: use .csv, .parquet, .arrow or .feather")
    with reading(name, kind):
        file = TableFile(name, kind)
        if columns is not None:
            columns = [each for each in file.schema.names if each in columns]
        return file.read(columns, texts, **how)


def table_pieces(table: Any) -> list[Piece]:
    """Cut a table into pieces."""
    blocks = row_blocks(table.num_rows) or [(0, 0)]
    return [(high - low, table.slice(low, high - low).select) for low, high in blocks]


def whole_numbers(table: Any, names: Collection[str]) -> Any:
    """Return a table in which names in text are whole numbers where nothing is lost by it.

    That is, where all are written as numbers are (``7``, not ``07`` or ``7.0``) and fit 64 bits. An
    empty text is missing.

    >>> table = pa.table({"a": ["7", "10"], "b": ["7", "07"]})
    >>> whole_numbers(table, ["a", "b"]).to_pydict()
    {'a': [7, 10], 'b': ['7', '07']}
    """
    for name in set(names) & set(table.column_names):
        if not pa.types.is_string(table.column(name).type):
            continue
        # a copy in one piece: Arrow 18 makes invalid texts of a part of a column
        column = pa.concat_arrays([*table.column(name).chunks, pa.array([], pa.string())])
        column = pc.if_else(pc.equal(column, ""), None, column)
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


def _check_header(names: list[str], path: str) -> None:
    """Reject a first line that holds data, or one long name."""
    if len(names) == 1 and (other := next((c for c in ";\t|" if c in names[0]), None)):
        raise InputError(
            f"{path}: the first line is separated by {other!r}: write the file with commas between "
            "cells"
        )
    if names and all(name.strip().lstrip("+-").replace(".", "", 1).isdigit() for name in names):
        raise InputError(
            f"{path}: the first line holds numbers: put a line with the names of the columns above "
            "it"
        )
