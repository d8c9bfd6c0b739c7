"""Tables in CSV, Arrow and Parquet files, read without trust in what they declare."""

from __future__ import annotations

import atexit
import contextlib
import os
import time
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any
from weakref import WeakSet

from leanrank.data.sources import PACKED, open_bytes
from leanrank.errors import FileError, InputError, LeanrankError

ROLES = ("label", "qid", "doc_id", "weight", "query_weight", "offset")
"""What a column can be beside a feature; a column of such a name is that, unless told otherwise."""

SUFFIXES = {
    "parquet": (".parquet",),
    "csv": tuple(f".csv{packed}" for packed in PACKED),
    "arrow": (".arrow", ".feather"),
}


@contextmanager
def reading(file: str | os.PathLike[str], kind: str = "parquet") -> Iterator[None]:
    """Turn whatever Arrow says of a bad file of a kind in ``SUFFIXES`` into one sentence."""
    from leanrank.data.tables.imports import pa

    shown = "CSV" if kind == "csv" else kind.title()
    try:
        yield
    except LeanrankError:
        raise
    except MemoryError as error:
        raise InputError(
            f"{file}: the {shown} file declares more than fits in memory ({error}): it is damaged, "
            "or too large for this machine"
        ) from error
    except OSError as error:
        if error.errno is not None:
            raise FileError(f"{file}: cannot read this file ({error.strerror})") from error
        raise _damaged(file, shown, error) from error
    except (pa.ArrowException, ValueError, OverflowError, SystemError) as error:
        raise _damaged(file, shown, error) from error


def read_table(
    path: str | os.PathLike[str],
    kind: str,
    columns: Sequence[str] | None = None,
    *,
    header: bool = True,
    identifiers: Collection[str] = (),
) -> Any:
    """Return a file of a kind in ``SUFFIXES`` as an Arrow table whose content is valid.

    Parameters
    ----------
    path : str or path
    kind : {"parquet", "csv", "arrow"}
    columns : sequence of str, optional
        Which to read, as far as they are there; by default all.
    header : bool
        Whether the first line of a CSV file holds the names of the columns. Without, the columns
        are named by their number from 1.
    identifiers : collection of str
        The columns of a CSV file that hold names: text, unless all are whole numbers.
    """
    from leanrank.data.tables.imports import pa, pq

    with reading(path, kind):
        if kind == "csv":
            table = _read_csv(path, header, identifiers)
        elif kind == "arrow":
            with pa.OSFile(os.fspath(path)) as source, pa.ipc.open_file(source) as reader:
                table = reader.read_all()
        else:
            with pq.ParquetFile(path) as parquet:
                known = parquet.schema_arrow.names
                table = parquet.read([name for name in columns or () if name in known] or None)
        table.validate(full=True)
        return without_views(table)


def _read_csv(path: str | os.PathLike[str], header: bool, identifiers: Collection[str]) -> Any:
    from pyarrow import ArrowInvalid, csv, string

    # without a header, Arrow names columns from f0 on
    texts = identifiers if header else [f"f{int(n) - 1}" for n in identifiers if n.isdecimal()]
    convert = csv.ConvertOptions(column_types=dict.fromkeys(texts, string()))

    def read(use_threads: bool) -> Any:
        options = csv.ReadOptions(autogenerate_column_names=not header, use_threads=use_threads)
        with lent_to_arrow(path) as stream:
            return csv.read_csv(stream, options, convert_options=convert)

    try:
        table = read(True)
    except ArrowInvalid:
        try:
            table = read(False)  # one thread knows the number of the row that is wrong
        except ArrowInvalid as error:
            from leanrank.data.tables.layout import csv_error

            raise csv_error(path, header, error) from error
    if header:
        check_header(table.column_names, path)
    else:
        table = table.rename_columns([str(at + 1) for at in range(table.num_columns)])
    return with_identifiers(table, identifiers)


def with_identifiers(table: Any, names: Collection[str]) -> Any:
    """Return a table in which columns of text are whole numbers where nothing is lost by it.

    That is, where all are written as numbers are (``7``, not ``07`` or ``7.0``) and fit 64 bits. An
    empty text is missing.

    >>> import pyarrow as pa
    >>> table = pa.table({"a": ["7", "10"], "b": ["7", "07"]})
    >>> with_identifiers(table, ["a", "b"]).to_pydict()
    {'a': [7, 10], 'b': ['7', '07']}
    """
    from leanrank.data.tables.imports import pa, pc

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


def without_views(table: Any) -> Any:
    """Return a table whose texts Arrow's functions take, which know little of views of texts."""
    from leanrank.data.tables.imports import pa

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


_lent: WeakSet[IO[bytes]] = WeakSet()


@contextmanager
def lent_to_arrow(path: Any) -> Iterator[IO[bytes]]:
    """Open a file for Arrow's CSV readers, whose threads may hold it for longer than they read.

    A thread that lets go of a Python object while the interpreter ends aborts the process.
    """
    with open_bytes(path) as stream:
        _lent.add(stream)
        yield stream


@atexit.register
def _wait_for_arrow(seconds: float = 1.0) -> None:
    """Wait until no thread holds a file that was lent, for at most so long."""
    until = time.monotonic() + seconds
    while len(_lent) and time.monotonic() < until:
        time.sleep(0.001)


def check_header(names: Sequence[str], path: str | os.PathLike[str]) -> None:
    """Reject names of columns that are all numbers, or one name that is a whole line of them."""
    if len(names) == 1 and (other := next((c for c in ";\t|" if c in names[0]), None)):
        raise InputError(
            f"{os.fspath(path)}: the first line is separated by {other!r}: write the file with "
            "commas between cells"
        )
    if names and all(is_numeral(name) for name in names):
        raise InputError(
            f"{os.fspath(path)}: the first line holds numbers, not names of columns: read the file "
            "with `header=False`, and name columns by their number"
        )


def is_numeral(text: str) -> bool:
    """Return whether a text is a number as Arrow reads it.

    >>> [is_numeral(text) for text in ("1e3", "-inf", " 7 ", "1_000", "x")]
    [True, True, True, False, False]
    """
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text and text.isascii()


def _damaged(file: str | os.PathLike[str], kind: str, error: Exception) -> InputError:
    return InputError(f"{os.fspath(file)}: this is no {kind} file that can be read ({error})")
