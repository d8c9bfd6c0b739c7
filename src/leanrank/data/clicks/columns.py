"""Named columns and features of tables."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from typing import Any

from leanrank.data.formats import FORMATS, ROLES, load
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError


def read_columns(
    table: Any, names: Mapping[str, str], where: str, *, only: Collection[str] | None = None
) -> Any:
    """Return an Arrow table that has the named columns.

    Parameters
    ----------
    table : mapping of columns, data frame, Arrow table, or path of a .csv, .parquet or .arrow file
    names : mapping of str to str
        The caller's parameter for each column, and the name of the column.
    where : str
        The name of the table in messages.
    only : collection of str, optional
        The columns to read of a file; by default all.

    Examples
    --------
    >>> read_columns({"a": [1, 2], "b": [3, 4]}, {"query": "b"}, "the log")["b"].to_pylist()
    [3, 4]
    """
    from leanrank.data.tables.files import read_table
    from leanrank.data.tables.frames import as_table

    if isinstance(table, (str, os.PathLike)):
        texts = [names[role] for role in ("session", "query", "document") if role in names]
        table = read_table(table, only, texts)
    else:
        table = as_table(table, where)
    for role, name in names.items():
        if name not in table.column_names:
            raise InputError(
                f"{where} has no column {name!r}: rename the right one, or in Python give its name "
                f"as {role}= (columns: {', '.join(map(repr, table.column_names[:20]))})"
            )
    return table


def identifiers(column: Any, name: str, where: str) -> Any:
    """Return a column of identifiers as one Arrow array of text, so that 7 matches "7".

    >>> import pyarrow
    >>> identifiers(pyarrow.chunked_array([[7, 8]]), "session", "the log").to_pylist()
    ['7', '8']
    """
    from leanrank.data.tables import pa
    from leanrank.data.tables.arrow import refuse_nulls

    refuse_nulls(column, name, where)
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    # large_string: the array may exceed 2 GB
    return column.cast(pa.large_string()).combine_chunks()


def feature_data(features: Any, query: str, document: str) -> RankingData:
    """Return the data set of a feature table, with its document ids."""
    is_path = isinstance(features, (str, os.PathLike))
    if is_path and os.fspath(features).lower().endswith(FORMATS["letor"]):
        features = load(features)
    if not isinstance(features, RankingData):
        from leanrank.data.tables.frames import frame_data

        where = os.fspath(features) if is_path else "the feature table"
        table = read_columns(features, {"query": query, "document": document}, where)
        kept = [n for n in table.column_names if n in (query, document) or n not in ROLES]
        if len(kept) < 3:
            raise InputError("the feature table has no features beside the query and the document")
        return frame_data(table.select(kept), where, label=None, qid=query, doc_id=document)
    if features.doc_ids is None:
        raise InputError(
            "the features have no document ids: give RankingData its doc_ids, or a table with the "
            f"columns {query!r} and {document!r}"
        )
    return features
