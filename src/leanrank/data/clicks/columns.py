"""Named columns and features of whatever table there is, and identifiers as numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, IntArray
from leanrank.data.formats import FORMATS, ROLES, load
from leanrank.data.grouping import one_dimensional
from leanrank.data.ranking_data import RankingData
from leanrank.errors import FileError, InputError


def read_columns(table: Any, names: Mapping[str, str], where: str) -> dict[str, Any]:
    """Return columns of a mapping, a data frame, an Arrow table or a file.

    Parameters
    ----------
    table : mapping of columns, data frame, Arrow table, or path of a .csv, .parquet or .arrow file
    names : mapping of str to str
        What each column is, as the caller's parameters call it, and its name in the table.
    where : str
        What the table is called in messages.

    Returns
    -------
    dict
        By what they are, NumPy arrays for a mapping and Arrow columns for everything else.

    Examples
    --------
    >>> read_columns({"a": [1, 2], "b": [3, 4]}, {"query": "b"}, "the log")["query"].tolist()
    [3, 4]
    """
    if isinstance(table, (str, os.PathLike)):
        table, where = read_file(Path(table), names), os.fspath(table)
    present = list(table) if isinstance(table, Mapping) else None
    if present is None:
        from leanrank.data.tables.files import as_table

        table = as_table(table)
        present = table.schema.names
    for role, name in names.items():
        if name not in present:
            raise InputError(
                f"{where} has no column {name!r}: name the right one with {role}= (columns: "
                f"{', '.join(map(repr, present[:20]))})"
            )
    if not isinstance(table, Mapping):
        return {role: table.column(name) for role, name in names.items()}
    columns = {
        role: one_dimensional(table[name], f"column {name!r} of {where}")
        for role, name in names.items()
    }
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns of {where} differ in length: {lengths}")
    return columns


def take_rows(table: Any, rows: IntArray, wanted: Callable[[str], bool]) -> Any:
    """Return some rows of the wanted columns, as a mapping of a mapping and else as Arrow.

    >>> take_rows({"a": [1, 2, 3], "b": [4, 5, 6]}, np.array([0, 2]), "b".__eq__)
    {'b': array([4, 6])}
    """
    if isinstance(table, Mapping):
        return {name: np.asarray(table[name])[rows] for name in table if wanted(name)}
    from leanrank.data.tables.files import as_table

    table = as_table(table)
    return table.select([name for name in table.schema.names if wanted(name)]).take(rows)


@dataclass(frozen=True)
class Ids:
    """A column of identifiers: a number per row, and the identifier of each number."""

    codes: IntArray
    values: list[Any]

    def codes_in(self, other: Sequence[Any]) -> IntArray:
        """Return each distinct value's position in another list, −1 where it is not in there.

        They are compared as text, so that 7 in one table is "7" in another.
        """
        at = {str(value): number for number, value in enumerate(other)}
        return np.fromiter((at.get(str(v), -1) for v in self.values), np.int64, len(self.values))


def number_ids(column: Any, name: str) -> Ids:
    """Number the distinct values of a column.

    >>> ids = number_ids(np.array(["b", "a", "b"]), "session")
    >>> [ids.values[code] for code in ids.codes]
    ['b', 'a', 'b']
    """
    if not isinstance(column, np.ndarray):
        return _number_arrow(column, name)
    if column.dtype.kind in "iu":
        return _number_whole(column)
    if column.dtype.kind == "U":
        return _number_texts(column)
    numbers: dict[Any, int] = {}
    listed = column.tolist()
    for row, value in enumerate(listed):
        if value is None or value != value:
            raise InputError(f"column {name!r} has no value in row {row}: every row needs one")
        numbers.setdefault(value, len(numbers))
    return Ids(np.fromiter((numbers[v] for v in listed), np.int64, len(listed)), list(numbers))


def as_numbers(column: Any, name: str) -> AnyArray:
    """Return a column of numbers or truth values as an array; a missing one is NaN."""
    if not isinstance(column, np.ndarray):
        _refuse_nulls(column, name)
        column = np.asarray(column.to_numpy())
    if column.dtype.kind not in "biuf":
        try:
            column = column.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"column {name!r} holds something that is not a number") from error
    return np.asarray(column)


def _number_whole(values: IntArray) -> Ids:
    if len(values) == 0:
        return Ids(values.astype(np.int64), [])
    low = int(values.min())
    spread = int(values.max()) - low + 1
    if spread <= 4 * len(values) + 1024:  # a table of all numbers between is quicker than a sort
        present = np.zeros(spread, dtype=bool)
        place = (values - values.dtype.type(low)).astype(np.int64)
        present[place] = True
        number = np.cumsum(present) - 1
        return Ids(number[place], [low + at for at in np.flatnonzero(present).tolist()])
    distinct, codes = np.unique(values, return_inverse=True)
    return Ids(codes.astype(np.int64, copy=False), distinct.tolist())


def _number_texts(values: AnyArray) -> Ids:
    distinct, first, codes = np.unique(values, return_index=True, return_inverse=True)
    order = np.argsort(first)  # of first appearance
    return Ids(np.argsort(order)[codes], distinct[order].tolist())


def _number_arrow(column: Any, name: str) -> Ids:
    from leanrank.data.tables import pa

    _refuse_nulls(column, name)
    if pa.types.is_integer(column.type):
        return _number_whole(column.to_numpy())
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_string(column.type):
        column = column.cast(pa.large_string())  # all of it in one array may pass 2 GB
    # in one piece: chunks that each bring a dictionary take ten times as long
    encoded = column.combine_chunks().dictionary_encode()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return Ids(codes, encoded.dictionary.to_pylist())


def _refuse_nulls(column: Any, name: str) -> None:
    if column.null_count:
        row = int(np.flatnonzero(column.is_null().to_numpy())[0])
        raise InputError(f"column {name!r} has no value in row {row}: every row needs one")


def read_file(path: Path, names: Mapping[str, str], *, whole: bool = False) -> Any:
    """Read a table, of Parquet only the columns that are asked for unless ``whole``."""
    if not path.exists():
        raise FileError(f"{path}: there is no such file")
    for kind in ("csv", "parquet", "arrow"):
        if path.name.lower().endswith(FORMATS[kind]):
            from leanrank.data.tables.files import read_table

            texts = [names[role] for role in ("session", "query", "document") if role in names]
            wanted = None if whole else list(names.values())
            return read_table(path, kind, wanted, identifiers=texts)
    raise InputError(f"{path}: the suffix names no table: use .csv, .parquet, .arrow or .feather")


def feature_data(features: Any, query: str, document: str) -> RankingData:
    """Make a data set of the feature table, with its document ids."""
    if isinstance(features, RankingData):
        data = features
    elif isinstance(features, Mapping):
        data = _from_mapping(features, query, document)
    elif isinstance(features, (str, os.PathLike)):
        if os.fspath(features).lower().endswith(FORMATS["letor"]):
            data = load(features)
        else:
            names = {"query": query, "document": document}
            table = read_file(Path(features), names, whole=True)
            data = _from_table(table, query, document, os.fspath(features))
    else:
        from leanrank.data.tables.files import as_table

        data = _from_table(as_table(features), query, document)
    if data.doc_ids is None:
        raise InputError(
            "the features have no document ids: give RankingData its doc_ids, or a table with the "
            f"columns {query!r} and {document!r}"
        )
    return data


def _from_table(
    table: Any, query: str, document: str, where: str = "the feature table"
) -> RankingData:
    from leanrank.data.tables.files import from_table

    read_columns(table, {"query": query, "document": document}, where)
    kept = [n for n in table.column_names if n in (query, document) or n not in ROLES]
    roles = {"label": None, "qid": query, "doc_id": document}
    return from_table(table.select(kept), where, roles, named=False)


def _from_mapping(features: Mapping[str, Any], query: str, document: str) -> RankingData:
    keys = read_columns(features, {"query": query, "document": document}, "the feature table")
    names = [name for name in features if name not in (query, document, *ROLES)]
    columns = read_columns(features, {n: n for n in names}, "the feature table") if names else {}
    if not columns:
        raise InputError("the feature table has no features beside the query and the document")
    X = np.column_stack([as_numbers(columns[name], name).astype(np.float64) for name in names])
    return RankingData(
        X, qid=keys["query"], doc_ids=keys["document"].astype(str), feature_names=map(str, names)
    )
