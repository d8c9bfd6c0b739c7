"""CSV files as Arrow reads them, and the lines of cells that it cannot read."""

from __future__ import annotations

import contextlib
import csv as python_csv
import io
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from pyarrow import csv

from leanrank.data.sources import is_regular, open_bytes, quoted
from leanrank.data.tables import pa, pc
from leanrank.errors import InputError, LeanrankError, ParseError


def read_csv(path: str | os.PathLike[str], header: bool, identifiers: Collection[str] = ()) -> Any:
    """Return a CSV file as a table; without a header, columns are named by their number from 1.

    ``identifiers`` are columns of names: text, unless all are whole numbers.
    """
    # without a header, Arrow names columns from f0 on
    texts = identifiers if header else [f"f{int(n) - 1}" for n in identifiers if n.isdecimal()]
    convert = csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()))
    with _source(path) as source:
        try:
            options = csv.ReadOptions(autogenerate_column_names=not header)
            table = csv.read_csv(source, options, convert_options=convert)
        except pa.ArrowInvalid as error:
            raise _located(path, header, error) from error
    table = table.rename_columns(_names(table.schema, header, path))
    return with_identifiers(table, identifiers)


def csv_schema(path: str | os.PathLike[str], header: bool) -> Any:
    """Return names and types of columns, found from the first block of a file."""
    with _open(path, header) as reader:
        schema = reader.schema
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
    with _open(path, header, types, [own[name] for name in columns]) as reader:
        for batch in reader:
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
        column = pc.if_else(pc.equal(column, ""), None, column)
        if pc.all(pc.match_substring_regex(column, r"^(0|-?[1-9][0-9]{0,18})$")).as_py():
            with contextlib.suppress(pa.ArrowInvalid):  # beyond 64 bits
                column = column.cast(pa.int64())
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def csv_line(path: str, record: int) -> int | None:
    """Return the line where a record begins, counted from 0 with the header; None if not found."""
    found = (line for at, (line, _) in enumerate(_records(path)) if at == record)
    return next(found, None)


def first_text(path: str, column: int, header: bool) -> tuple[int, str] | None:
    """Return the line and the content of the first cell of a column that is not a number."""
    missing = set(csv.ConvertOptions().null_values)
    for at, (line, cells) in enumerate(_records(path)):
        if at >= header and column < len(cells):
            text = cells[column]
            if text not in missing and not _is_numeral(text):
                return line, text
    return None


def _source(path: str | os.PathLike[str]) -> Any:
    """Open a file for Arrow, whose threads must not hold Python's own; unpacked text in memory."""
    with open_bytes(path) as stream:
        if is_regular(stream) and os.fspath(path) != "-":
            return pa.OSFile(os.fspath(path))
        return pa.BufferReader(stream.read())


@contextlib.contextmanager
def _open(
    path: str | os.PathLike[str],
    header: bool,
    types: Mapping[str, Any] | None = None,
    columns: Sequence[str] = (),
) -> Iterator[Any]:
    options = csv.ReadOptions(autogenerate_column_names=not header, use_threads=False)
    convert = csv.ConvertOptions(column_types=types or {}, include_columns=list(columns))
    with _source(path) as source:
        try:
            yield csv.open_csv(source, options, convert_options=convert)
        except pa.ArrowInvalid as error:
            raise _located(path, header, error) from error


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
    if names and all(map(_is_numeral, names)):
        raise InputError(
            f"{os.fspath(path)}: the first line holds numbers, not names of columns: read the file "
            "with `header=False`, and name columns by their number"
        )
    return names


def _is_numeral(text: str) -> bool:
    """Return whether a text is a number as Arrow reads it.

    >>> [_is_numeral(text) for text in ("1e3", "-inf", " 7 ", "1_000", "x")]
    [True, True, True, False, False]
    """
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()


def _located(path: str | os.PathLike[str], header: bool, error: Exception) -> Exception:
    """Return an error of Arrow as one sentence with the line, if the line can be found."""
    name, column = os.fspath(path), re.search(r"In CSV column #(\d+)", str(error))
    if column is not None:
        at = int(column[1])
        cell = first_text(name, at, header)
        first = next(_records(name), (1, []))[1]
        if cell is None or at >= len(first):
            return error
        shown = first[at] if header else str(at + 1)
        return InputError(
            f"column {shown!r} of {name} holds {quoted(cell[1].encode())} in line {cell[0]}, not a "
            "number: correct it"
        )
    width = 0
    for line, cells in _records(name):
        width = width or len(cells)
        if any("\0" in cell or "\\x" in cell for cell in cells):  # binary
            return error
        if len(cells) != width:
            problem = f"{len(cells)} cell{'s' * (len(cells) != 1)} where {width} are expected"
            return ParseError(f"{problem}: correct the line", path=name, line=line)
    return error


def _records(path: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line where each record begins, and its cells; empty lines are no records."""
    if path == "-":  # standard input has been read
        return
    with contextlib.suppress(LeanrankError, python_csv.Error), open_bytes(path) as stream:
        text = io.TextIOWrapper(stream, "utf-8-sig", errors="backslashreplace", newline="")
        reader, end = python_csv.reader(text), 0
        for cells in reader:
            if cells:
                yield end + 1, cells
            end = reader.line_num
