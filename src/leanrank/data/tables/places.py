"""Where something is in a table: what messages call its rows, and the first cell that is text."""

from __future__ import annotations

import csv
import io
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from leanrank.data.sources import open_bytes, quoted
from leanrank.data.tables.files import ROLES, is_numeral
from leanrank.data.tables.imports import pa
from leanrank.errors import InputError, LeanrankError, ParseError

_USUAL: Mapping[str, str] = {name: name for name in (*ROLES, "features")}


@dataclass(frozen=True)
class Place:
    """A table in messages.

    Parameters
    ----------
    name : str
        What it is called; ``str`` gives it.
    first_row : int
        The number of its first row in the file it comes from.
    csv_header : bool, optional
        Whether the CSV file of that name begins with the names of its columns. None if it is no CSV
        file: its rows have no lines.
    arguments : mapping of str to str
        What the function that was called names the column of each role, and ``features``; messages
        propose no other arguments. By default those of ``leanrank.data.from_frame``.
    """

    name: str
    first_row: int = 0
    csv_header: bool | None = None
    arguments: Mapping[str, str] = field(default_factory=lambda: _USUAL)

    def __str__(self) -> str:
        return self.name

    def remedy(self, role: str) -> str:
        """Return how to name the column of a role."""
        argument = self.arguments.get(role)
        if argument is None:
            return "name the columns with leanrank.data.from_frame, and give what it returns"
        absent = f", or `{argument}=None` if there is none" if role in _OPTIONAL else ""
        named = f"name the right one with `{argument}=…`"
        return named + absent if "features" in self.arguments else named

    def feature_remedy(self, column: str) -> str:
        """Return what to do with a column that is not a feature."""
        if "features" in self.arguments:
            return (
                f"say what the column is, as in `doc_id={column!r}`, or list the columns to use "
                "with `features=…`"
            )
        return "or leave the column out of the table"

    def row(self, row: int) -> str:
        """Return what a row is called: the line of a CSV file, which is read again for it."""
        at = self.first_row + row
        if self.csv_header is None:
            return f"row {at} (counted from 0)"
        found = csv_record(self.name, at + self.csv_header)
        return f"row {at} (counted from 0)" if found is None else f"line {found[0]}"


_OPTIONAL = ("label", "qid")
THE_TABLE = Place("the table")


def csv_error(path: Any, header: bool, error: Exception) -> Exception:
    """Return what Arrow says of a row of a CSV file as one sentence with its line, if it can be."""
    told, name = _ARROW_ROW.search(str(error)), os.fspath(path)
    found = told and csv_record(name, int(told["row"]) - 1)
    if not told or not found:
        return error
    line, cells = found
    if any("\0" in cell or "\ufffd" in cell for cell in cells):  # binary
        return error
    if told["expected"]:
        n_cells = f"{told['got']} cell{'s' * (told['got'] != '1')}"
        problem = f"{n_cells} where {told['expected']} are expected: correct the line"
        return ParseError(problem, path=name, line=line)
    at = int(told["column"] or 0)
    names = csv_record(name, 0) if header else (1, [str(number + 1) for number in range(at + 1)])
    if not names or at >= min(len(cells), len(names[1])):  # Python and Arrow disagree
        return error
    wanted = "a number" if told["type"] == "double" else f"{told['type']} as in lines before"
    return InputError(
        f"column {names[1][at]!r} of {name} holds {quoted(cells[at].encode())} in line {line}, not "
        f"{wanted}: correct it"
    )


_ARROW_ROW = re.compile(
    r"(In CSV column #(?P<column>\d+): )?Row #(?P<row>\d+): (Expected (?P<expected>\d+) columns, "
    r"got (?P<got>\d+)|CSV conversion error to (?P<type>\w+):)"
)


def csv_record(path: str, record: int) -> tuple[int, list[str]] | None:
    """Return the line where a record of a CSV file begins and its cells, None if it is not found.

    Records are counted from 0, with the header, without empty lines.
    """
    if path == "-":  # standard input has been read
        return None
    try:
        with open_bytes(path) as stream:
            text = io.TextIOWrapper(stream, encoding="utf-8-sig", errors="replace", newline="")
            reader = csv.reader(text)
            end = 0
            for cells in reader:
                if cells and record == 0:
                    return end + 1, cells
                record -= bool(cells)
                end = reader.line_num
    except (LeanrankError, csv.Error):
        pass
    return None


def first_text(column: pa.ChunkedArray) -> tuple[int, str] | None:
    """Return the row and the content of the first cell that is not a number.

    None if the column holds something else than text, or only numbers in the form of text.

    >>> first_text(pa.chunked_array([["1", " 2.5", ""], [None, "1_0", "high"]]))
    (4, '1_0')
    """
    from pyarrow.csv import ConvertOptions

    column.validate(full=True)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_binary(column.type):  # what is not UTF-8 in CSV
        texts = [text and text.decode("utf-8", "backslashreplace") for text in column.to_pylist()]
        column = pa.chunked_array([pa.array(texts, pa.string())])
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return None
    missing = set(ConvertOptions().null_values)
    row = 0
    for chunk in column.chunks:
        for at, text in enumerate(chunk.to_pylist()):
            if not (text is None or text in missing or is_numeral(text)):
                return row + at, text
        row += len(chunk)
    return None
