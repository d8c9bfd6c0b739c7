"""Tables in CSV, Arrow and Parquet files, read without trust in what they declare."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any
from weakref import WeakSet

from leanrank.data.sources import PACKED, open_bytes
from leanrank.errors import FileError, InputError, LeanrankError

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
    """
    from leanrank.data.tables.imports import pa, pq

    with reading(path, kind):
        if kind == "csv":
            table = _read_csv(path, header)
        elif kind == "arrow":
            with pa.OSFile(os.fspath(path)) as source, pa.ipc.open_file(source) as reader:
                table = reader.read_all()
        else:
            with pq.ParquetFile(path) as parquet:
                known = parquet.schema_arrow.names
                table = parquet.read([name for name in columns or () if name in known] or None)
        table.validate(full=True)
        return table


def _read_csv(path: str | os.PathLike[str], header: bool) -> Any:
    from pyarrow import ArrowInvalid, csv

    def read(use_threads: bool) -> Any:
        options = csv.ReadOptions(autogenerate_column_names=not header, use_threads=use_threads)
        with lent_to_arrow(path) as stream:
            return csv.read_csv(stream, options)

    try:
        table = read(True)
    except ArrowInvalid:
        try:
            table = read(False)  # one thread knows the number of the row that is wrong
        except ArrowInvalid as error:
            from leanrank.data.tables.places import csv_error

            raise csv_error(path, header, error) from error
    if not header:
        return table.rename_columns([str(at + 1) for at in range(table.num_columns)])
    check_header(table.column_names, path)
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
