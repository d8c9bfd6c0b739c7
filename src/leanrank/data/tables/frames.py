"""Ranking data from tables and to tables: data frames, Parquet, Arrow and CSV files.

Frames pass through the Arrow PyCapsule interface, which pandas, polars, pyarrow, DuckDB and others
implement: nothing here depends on the library of a table.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np

from leanrank._files import atomic_write
from leanrank.data.formats import ROLES
from leanrank.data.grouping import run_starts
from leanrank.data.ranking_data import RankingData
from leanrank.data.sources import compressed
from leanrank.data.streams import CHUNK_BYTES, Chunks, Part
from leanrank.data.tables import csv, pa, pq
from leanrank.data.tables.arrow import (
    Layout,
    build,
    column_roles,
    find_layout,
    query_codes,
    table_of,
)
from leanrank.data.tables.files import (
    TableFile,
    reading,
    table_files,
    table_pieces,
    whole_numbers,
    without_views,
)
from leanrank.errors import InputError, MissingDependencyError
from leanrank.execution import Executor, make_executor, row_blocks

_CELLS_PER_GROUP = 1 << 21  # about 16 MB: enough row groups to share out, few enough to read fast


def from_frame(
    frame: Any,
    *,
    label: str | None = "label",
    qid: str | None = "qid",
    doc_id: str | None = None,
    weight: str | None = None,
    query_weight: str | None = None,
    offset: str | None = None,
    features: Sequence[str] | None = None,
    optional: Collection[str] = (),
    n_jobs: int | None = None,
) -> RankingData:
    """Make a ranking data set from a data frame or an Arrow table.

    Parameters
    ----------
    frame : pandas or polars DataFrame, pyarrow Table or RecordBatchReader, ...
        Anything with the Arrow PyCapsule interface.
    label, qid : str or None
        The columns of the labels and of the queries; None if there is none. A label without a value
        means that the document is not labelled.
    doc_id, weight, query_weight, offset : str, optional
        The columns of these parts of ``RankingData``; by default those of these names, if there
        are any. For another use, list them in ``features``.
    features : list of str, optional
        The feature columns; by default all others, in their order. X is float32 if all of them
        are, and float64 otherwise. An empty value is missing, NaN in X.
    optional : collection of {"label", "qid"}
        Columns that the table may lack.
    n_jobs : int, optional
        Number of threads.

    Returns
    -------
    RankingData

    Examples
    --------
    >>> import pyarrow
    >>> table = pyarrow.table(
    ...     {"qid": ["a", "a"], "bm25": [1.5, 0.5], "clicks": [3, 4], "grade": [1, 0]}
    ... )
    >>> data = from_frame(table, label="grade")
    >>> data.feature_names, data.X.tolist()
    (('bm25', 'clicks'), [[1.5, 3.0], [0.5, 4.0]])
    """
    roles = {role: name for role, name in locals().items() if role in ROLES}
    return from_table(as_table(frame), "the table", roles, features, optional, n_jobs)


def from_table(
    table: Any,
    where: str,
    roles: Mapping[str, str | None],
    features: Sequence[str] | None = None,
    optional: Collection[str] = (),
    n_jobs: int | None = None,
) -> RankingData:
    """Return the ranking data set of an Arrow table; messages call it ``where``."""
    layout = find_layout(table.schema, roles, features, where, optional)
    return build(layout, table_pieces(table.select(layout.needed)), make_executor(n_jobs), where)


def frame_data(table: Any, where: str = "the data frame", **roles: str | None) -> RankingData:
    """Return the ranking data set of a frame, for functions without arguments for column names."""
    try:
        return from_table(as_table(table), where, column_roles(roles))
    except InputError as error:
        remedy = "give what leanrank.data.from_frame returns"
        raise InputError(f"{error}; {remedy}, where these are arguments") from error


def as_table(frame: Any, where: str = "the table") -> Any:
    """Return an Arrow table of any object with the Arrow PyCapsule interface, or of columns."""
    columns = isinstance(frame, Mapping)
    if not columns and not any(
        hasattr(frame, f"__arrow_c_{each}__") for each in ("stream", "array")
    ):
        remedy = " (collect it first)" if hasattr(frame, "collect") else ""
        raise InputError(
            f"{type(frame).__name__} is not a table that Arrow can read{remedy}: give a DataFrame "
            "of pandas 2.2 or polars 1.0 or later, or a pyarrow Table; for arrays use RankingData"
        )
    try:
        return without_views(pa.table(dict(frame) if columns else frame))
    except (pa.ArrowException, TypeError) as error:
        raise InputError(
            f"{where} has a column that Arrow cannot hold ({error}): give columns of one length, "
            "each of one type"
        ) from error


def to_frame(
    data: RankingData, backend: Literal["pyarrow", "pandas", "polars"] | str = "pyarrow"
) -> Any:
    """Return a ranking data set as a data frame.

    Parameters
    ----------
    data : RankingData
        With dense X. Its rows are given query by query.
    backend : {"pyarrow", "pandas", "polars"}, default="pyarrow"
        The library of the data frame, or any other that narwhals knows.

    Returns
    -------
    DataFrame or Table
        Columns ``label``, ``qid``, those of ``doc_id``, ``weight``, ``query_weight`` and ``offset``
        that the data have, then one per feature, named ``f1``, ``f2``, ... if the features have no
        names.

    Examples
    --------
    >>> data = RankingData([[1.0, 2.0]], [3], qid=["a"])
    >>> to_frame(data).to_pylist()
    [{'label': 3.0, 'qid': 'a', 'f1': 1.0, 'f2': 2.0}]
    """
    table = table_of(data)
    if backend == "pyarrow":
        return table
    try:
        import narwhals
    except ImportError as error:
        raise MissingDependencyError("narwhals", "frames", f"a data frame of {backend}") from error
    try:
        return narwhals.from_arrow(table, backend=backend).to_native()
    except (ImportError, TypeError, ValueError) as error:
        raise InputError(
            f"backend={backend!r} is not known or not installed: choose 'pyarrow', 'pandas' or "
            "'polars'"
        ) from error


def load_table(
    path: str | os.PathLike[str], kind: str, *, n_jobs: int | None = -1, **options: Any
) -> RankingData:
    """Load a Parquet, Arrow or CSV file, or several Parquet files; see ``leanrank.data.load``."""
    if (data := mapped(path, kind, options)) is not None:
        return data
    with reading(path, kind):
        files, layout = open_tables(path, kind, **options)
        pieces = [each for file in files for each in file.pieces(layout.needed, layout.texts)]
        return build(layout, pieces, make_executor(n_jobs), os.fspath(path))


def mapped(path: str | os.PathLike[str], kind: str, options: Any) -> RankingData | None:
    """Return a store, which is mapped, or None for any other table."""
    if kind != "arrow" or options.get("features") is not None:
        return None
    from leanrank.data.store import load_store

    return load_store(path, **{k: v for k, v in options.items() if k not in ("features", "among")})


def open_tables(
    path: str | os.PathLike[str],
    kind: str,
    *,
    features: Sequence[str] | None = None,
    optional: Collection[str] = (),
    among: Collection[str] | None = None,
    **columns: str | None,
) -> tuple[list[TableFile], Layout]:
    """Return files that have the same columns, and their layout with the widest numbers."""
    roles, files = column_roles(columns), table_files(path, kind)
    layouts = [
        find_layout(file.schema, roles, features, file.path, optional, among) for file in files
    ]
    first = layouts[0]
    for other, file in zip(layouts, files, strict=True):
        if first.needed != other.needed:
            odd = sorted(set(first.needed) ^ set(other.needed))
            which = f": {odd[0]!r} is in one of them only" if odd else ""
            raise InputError(f"{file.path}: its columns are not those of {files[0].path}{which}")
    return files, max(layouts, key=lambda layout: layout.dtype.itemsize)


def dump_parquet(data: RankingData, path: str | os.PathLike[str]) -> None:
    """Write a ranking data set to a Parquet file.

    The file holds the columns of ``leanrank.data.to_frame``, without nulls, in row groups that
    load in parallel. Rows are written in the order in which they were loaded. The file appears
    under its name only when it is complete.

    Parameters
    ----------
    data : RankingData
        What to write, with dense X. The parts of a larger set are files of one directory, which is
        loaded and streamed as one.
    path : str or path
        Where to write.
    """
    rows = min(max(_CELLS_PER_GROUP // max(data.n_features, 1), 1 << 10), 1 << 17)
    order = None if data.order is None else np.argsort(data.order)
    with (
        atomic_write(path, "wb") as stream,
        pq.ParquetWriter(
            pa.PythonFile(stream, mode="w"),
            table_of(data, stop=0).schema,
            compression="none",  # feature values hardly compress, and load faster so
            write_statistics=False,
            # Features seldom repeat: a dictionary makes most files larger and slower to load.
            use_dictionary=["label", "qid"],
        ) as writer,
    ):
        for start, stop in row_blocks(len(data), rows):
            writer.write_table(table_of(data, start, stop, order), row_group_size=rows)


def dump_csv(data: RankingData, path: str | os.PathLike[str]) -> None:
    """Write a dense ranking data set to a CSV file, also compressed."""
    clash = set(data.feature_names or ()) & set(ROLES)
    if clash:
        raise InputError(
            f"a feature is named {min(clash)!r}, which CSV could not tell from the column of that "
            "name: rename it with data.replace(feature_names=...), or write Parquet"
        )
    order = None if data.order is None else np.argsort(data.order)
    table = table_of(data, order=order)
    with atomic_write(path, "wb") as stream, compressed(stream, os.fsdecode(path)) as out:
        csv.write_csv(table, out)


def table_parts(
    path: str, kind: str, *, chunk_bytes: int = CHUNK_BYTES, n_jobs: Any = None, **options: Any
) -> list[Part]:
    """Return a part for each file of a directory or a pattern, or for the one file."""
    if options.get("qid", "qid") is None:
        raise InputError("`qid=None` makes one query of everything: a stream needs a query column")
    if (data := mapped(path, kind, options)) is not None:
        from leanrank.data.store import store_part

        return [store_part(data, path, chunk_bytes)]
    files, layout = open_tables(path, kind, **options)
    n_rows = max(1, chunk_bytes // (8 * max(1, len(layout.needed))))
    how = {"columns": layout.columns, "features": len(layout.features), "rows_per_chunk": n_rows}
    return [Part(file.path, partial(_chunks, file, layout, n_rows), how) for file in files]


def _chunks(file: TableFile, layout: Layout, n_rows: int, offset: int, line: int) -> Chunks:
    """Return the chunks from a row on, each with the row where it ends."""

    def as_data(table: Any, row: int) -> RankingData:
        if file.kind == "csv":  # not by block: those of one column may hold numbers and text
            table = whole_numbers(table, layout.texts)
        pieces = table_pieces(table)
        return build(layout, pieces, Executor(), file.path, row0=row, runs=True)

    skip, wanted, rest = offset, n_rows, None
    with reading(file.path, file.kind):
        for table in file.batches(layout.needed, layout.texts, n_rows):
            dropped = min(skip, table.num_rows)
            skip -= dropped
            both = [table.slice(dropped)] if rest is None else [rest, table.slice(dropped)]
            rest = pa.concat_tables(both, promote_options="permissive")
            while rest.num_rows >= wanted:
                if cut := _last_query_start(rest.slice(0, wanted), layout, file.path):
                    offset += cut
                    yield as_data(rest.slice(0, cut), offset - cut), offset, 0
                    rest, wanted = rest.slice(cut), n_rows
                else:
                    wanted *= 2  # a query larger than a chunk
        if rest is not None and rest.num_rows:
            yield as_data(rest, offset), offset + rest.num_rows, 0


def _last_query_start(table: Any, layout: Layout, where: str) -> int:
    """Return the row where the last query begins, which may not be complete."""
    if (name := layout.columns.get("qid")) is None:
        return 0  # all rows are one query
    return int(run_starts(query_codes(table.column(name), name, where)[0])[-1])
