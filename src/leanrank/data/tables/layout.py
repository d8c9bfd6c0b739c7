"""Which column of a table is what, what leanrank notes beside its own, and where a cell is."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leanrank._typing import AnyArray
from leanrank.data.matrices import MOST_FEATURES
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.data.sources import open_bytes, quoted
from leanrank.data.tables.files import ROLES, is_numeral
from leanrank.data.tables.imports import pa
from leanrank.errors import InputError, LeanrankError, ParseError, first_repeated, suggest

INDICES, VALUES = "indices", "values"
"""The two list columns that hold a document's features when the data are sparse."""

FEATURES = "features"
"""The list column that holds them when the data are dense and on disk: see ``store``."""

VERSION = 1
_KEY = b"leanrank"


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


def column_roles(given: Mapping[str, str | None], more: Sequence[str]) -> dict[str, str | None]:
    """Return the column of each role, by default those named label and qid.

    ``more`` are options that a message about an unknown one names as well.
    """
    for name in given:
        if name not in ROLES:
            raise InputError(f"a table is not read with {name!r}: {suggest(name, [*ROLES, *more])}")
    return {"label": "label", "qid": "qid", **given}


def identifier_columns(roles: Mapping[str, str | None]) -> list[str]:
    """Return the columns that hold the names of queries and documents, if the table has them."""
    return [str(roles.get(role) or role) for role in ("qid", "doc_id")]


@dataclass(frozen=True)
class Layout:
    """Which column of a table is what."""

    columns: dict[str, str]  # role → column
    features: tuple[str, ...]
    feature_names: tuple[str, ...] | None
    n_features: int | None  # when in lists, and known
    sparse: bool
    dtype: np.dtype[Any]
    packed: bool = False  # whether one column of lists of equal length holds all features

    @property
    def needed(self) -> list[str]:
        """All columns that must be read."""
        return [*dict.fromkeys([*self.columns.values(), *self.features])]


def find_layout(
    schema: pa.Schema,
    roles: dict[str, str | None],
    features: Sequence[str] | None,
    where: Place = THE_TABLE,
    optional: Collection[str] = (),
    column: Callable[[str], pa.ChunkedArray] | None = None,
    among: Collection[str] | None = None,
) -> Layout:
    """Decide which column is what, from the caller's names and what leanrank wrote beside them.

    ``column`` returns the column of a name, for a message about one that should hold numbers. If
    any column is named as one of ``among``, no others are features.
    """
    notes = _notes(schema, where)
    present = set(schema.names)
    twice = first_repeated(schema.names)
    if twice is not None:
        raise InputError(f"{where} has two columns named {twice!r}: names must be distinct")
    given = {
        role: str(name)
        for role, name in roles.items()
        if name is not None and (str(name) in present or role not in optional)
    }
    reserved = notes.get("columns", ROLES)
    if isinstance(features, str):
        raise InputError(f"features={features!r} is one name: give a list of column names")
    taken = {*given.values(), *(features or ())}
    for role in reserved:
        if role not in ("label", "qid") and role in present - taken:
            given.setdefault(role, role)
    for role, name in given.items():
        if name not in present:
            raise InputError(
                f"{where} has no column {name!r} for {role}: {where.remedy(role)} (columns: "
                f"{_listed(schema.names)})"
            )
        if role not in ("qid", "doc_id") and not is_number(schema.field(name).type):
            found = _not_numbers(schema.field(name), where, column)
            raise InputError(f"{found}: correct it, or {where.remedy(role)}")
    apart = {*given.values(), *reserved, *_row_names(schema)}
    unused = [name for name in schema.names if name not in apart]
    unused = [name for name in unused if name in (among or ())] or unused
    names = None if notes.get("names") is None else tuple(notes["names"])
    if features is None and _holds_lists(schema):
        dtype = _common_dtype([schema.field(VALUES).type.value_type])
        return Layout(given, (INDICES, VALUES), names, notes.get("n_features"), True, dtype)
    if features is None and _holds_vectors(schema):
        kind = schema.field(FEATURES).type
        if names is not None and len(names) != kind.list_size:
            raise InputError(f"{where} has notes under 'leanrank' that are damaged: write it again")
        dtype = _common_dtype([kind.value_type])
        return Layout(given, (FEATURES,), names, kind.list_size, False, dtype, packed=True)
    chosen = tuple(unused if features is None else features)
    twice = first_repeated(chosen)
    if twice is not None:
        raise InputError(f"`features=…` names the column {twice!r} twice: name it once")
    if given.get("label") in chosen:
        raise InputError(f"column {given['label']!r} is the label: leave it out of `features=…`")
    for name in chosen:
        if name not in present:
            raise InputError(
                f"{where} has no feature column {name!r} (columns: {_listed(schema.names)})"
            )
        if not is_number(schema.field(name).type):
            found = _not_numbers(schema.field(name), where, column)
            raise InputError(f"{found}: correct it, {where.feature_remedy(name)}")
    named = features is not None or notes.get("named", True)
    types = [schema.field(name).type for name in chosen]
    return Layout(given, chosen, chosen if named else None, None, False, _common_dtype(types))


def table_schema(data: RankingData) -> pa.Schema:
    """Return the columns of a set as a table, with notes from which it can be rebuilt."""
    fields = [pa.field("label", pa.float64(), False)]
    fields.append(pa.field("qid", _id_type(data.query_ids), False))
    if data.doc_ids is not None:
        fields.append(pa.field("doc_id", pa.string(), False))
    fields += [pa.field(role, pa.float64(), False) for role in weights_per_row(data)]
    notes: dict[str, Any] = {"version": VERSION, "columns": [field.name for field in fields]}
    number = pa.from_numpy_dtype(data.X.dtype)
    if data.is_sparse:
        fields.append(pa.field(INDICES, pa.list_(pa.field("item", pa.int32(), False)), False))
        fields.append(pa.field(VALUES, pa.list_(pa.field("item", number, False)), False))
        notes |= {"n_features": data.n_features, "names": data.feature_names}
    else:
        names = data.feature_names or tuple(map(feature_name, range(data.n_features)))
        clash = next((name for name in names if name in notes["columns"]), None)
        if clash is not None:
            raise InputError(
                f"a feature is named {clash!r}, which is the name of another column of the table: "
                "rename it in the source, or with data.replace(feature_names=...)"
            )
        fields += [pa.field(name, number, False) for name in names]
        notes["named"] = data.feature_names is not None
    return pa.schema(fields, metadata={_KEY: json.dumps(notes).encode()})


def weights_per_row(data: Any) -> dict[str, AnyArray]:
    """Return the weights and offsets that a set has, by the role of their column."""
    weights = data.query_weight
    if weights is not None:
        weights = np.repeat(weights, np.diff(data.query_ptr))
    each = {"weight": data.sample_weight, "query_weight": weights, "offset": data.offset}
    return {role: values for role, values in each.items() if values is not None}


def _not_numbers(
    field: pa.Field, where: Place, column: Callable[[str], pa.ChunkedArray] | None
) -> str:
    """Describe a column that does not hold numbers, by its first cell that is none if there is."""
    cell = None if column is None else first_text(column(field.name))
    if cell is None:
        return f"column {field.name!r} of {where} holds {field.type}, not numbers"
    row, text = cell
    shown = quoted(text.encode())
    return f"column {field.name!r} of {where} holds {shown} in {where.row(row)}, not a number"


def _notes(schema: pa.Schema, where: Place) -> dict[str, Any]:
    raw = (schema.metadata or {}).get(_KEY)
    if raw is None:
        return {}
    try:
        notes = dict(json.loads(raw))
        n_features, names = notes.get("n_features"), notes.get("names")
        columns = list(notes.get("columns", []))
        sound = notes["version"] == VERSION
        sound &= n_features is None or (
            type(n_features) is int and 0 <= n_features <= MOST_FEATURES
        )
        sound &= names is None or len(names) == n_features
    except (KeyError, ValueError, TypeError):
        sound = False
    if not sound:
        raise InputError(
            f"{where} has notes under 'leanrank' that are damaged or of another version: write it "
            "again"
        )
    # Columns may have been dropped or renamed since: a note is only as good as what it names.
    kept = [role for role in columns if role in ROLES and role in schema.names]
    return {**notes, "columns": kept}


def _row_names(schema: pa.Schema) -> set[str]:
    """Return the columns that are a data frame's row labels and not data."""
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    return {name for name in index if isinstance(name, str)}


def _holds_lists(schema: pa.Schema) -> bool:
    return all(
        name in schema.names
        and (
            pa.types.is_list(schema.field(name).type)
            or pa.types.is_large_list(schema.field(name).type)
        )
        and is_number(schema.field(name).type.value_type)
        for name in (INDICES, VALUES)
    )


def _holds_vectors(schema: pa.Schema) -> bool:
    kind = schema.field(FEATURES).type if FEATURES in schema.names else pa.null()
    return pa.types.is_fixed_size_list(kind) and is_number(kind.value_type)


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column of a type holds numbers."""
    return bool(
        pa.types.is_floating(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)  # an empty column: reported where its first row is
    )


def _common_dtype(types: Sequence[pa.DataType]) -> np.dtype[Any]:
    single = bool(types) and all(kind == pa.float32() for kind in types)
    return np.dtype(np.float32 if single else np.float64)


def _id_type(query_ids: AnyArray) -> pa.DataType:
    if query_ids.dtype.kind in "iu":
        return pa.from_numpy_dtype(query_ids.dtype)
    return pa.infer_type(query_ids.tolist()) if len(query_ids) else pa.string()


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown


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
