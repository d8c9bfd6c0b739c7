"""Data frames, and tables in Parquet, Arrow and CSV files: loaded and written.

Frames pass through the Arrow PyCapsule interface, which pandas, polars, pyarrow, DuckDB and others
implement: nothing here depends on the library of a table.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from leanrank._files import atomic_write
from leanrank.data.formats import ROLES
from leanrank.data.grouping import check_optional
from leanrank.data.ranking_data import RankingData
from leanrank.data.sources import compressed
from leanrank.data.tables import pa, pq, read_csv
from leanrank.data.tables.arrow import build, table_rows
from leanrank.data.tables.layout import Layout, column_roles, find_layout, table_schema
from leanrank.errors import (
    FileError,
    InputError,
    LeanrankError,
    MissingDependencyError,
    check_choice,
)
from leanrank.execution import make_executor, row_blocks


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

    Notes
    -----
    A table may also hold sparse features, in two list columns ``indices`` (counted from 0) and
    ``values``, as ``to_frame`` writes them. The number of features is then noted in the table's
    metadata; in a table without notes it is the largest index plus one.

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
    roles = {"label": label, "qid": qid, "doc_id": doc_id, "weight": weight}
    roles |= {"query_weight": query_weight, "offset": offset}
    return from_table(as_table(frame), "the table", roles, features, optional, n_jobs)


def frame_data(frame: Any) -> RankingData:
    """Return a data frame with columns label and qid, for functions that take no other names."""
    return from_table(as_table(frame), "the data frame", column_roles({}), named=False)


def from_table(
    table: Any,
    where: str,
    roles: Mapping[str, str | None],
    features: Sequence[str] | None = None,
    optional: Collection[str] = (),
    n_jobs: int | None = None,
    among: Collection[str] | None = None,
    named: bool = True,
) -> RankingData:
    """Make a ranking data set from an Arrow table that messages call ``where``."""
    layout = find_layout(
        table.schema, roles, features, where, check_optional(optional), among, named
    )
    needed = table.select(layout.needed)
    blocks = row_blocks(needed.num_rows) or [(0, 0)]
    return build(
        layout,
        [stop - start for start, stop in blocks],
        lambda at: needed.slice(blocks[at][0], blocks[at][1] - blocks[at][0]),
        make_executor(n_jobs),
        where,
    )


def to_frame(
    data: RankingData, backend: Literal["pyarrow", "pandas", "polars"] | str = "pyarrow"
) -> Any:
    """Return a ranking data set as a data frame.

    Parameters
    ----------
    data : RankingData
        Its rows are given query by query.
    backend : {"pyarrow", "pandas", "polars"}, default="pyarrow"
        The library of the data frame, or any other that narwhals knows.

    Returns
    -------
    DataFrame or Table
        Columns ``label``, ``qid``, those of ``doc_id``, ``weight``, ``query_weight`` and ``offset``
        that the data have, then one per feature, named ``f1``, ``f2``, ... if the features have no
        names. Sparse features are two list columns, ``indices`` and ``values``.

    Examples
    --------
    >>> data = RankingData([[1.0, 2.0]], [3], qid=["a"])
    >>> to_frame(data).to_pylist()
    [{'label': 3.0, 'qid': 'a', 'f1': 1.0, 'f2': 2.0}]
    """
    table = table_rows(data, table_schema(data), 0, len(data))
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


def as_table(frame: Any) -> Any:
    """Return an Arrow table of any object with the Arrow PyCapsule interface."""
    if not hasattr(frame, "__arrow_c_stream__") and not hasattr(frame, "__arrow_c_array__"):
        remedy = " (collect it first)" if hasattr(frame, "collect") else ""
        raise InputError(
            f"{type(frame).__name__} is not a table that Arrow can read{remedy}: give a DataFrame "
            "of pandas 2.2 or polars 1.0 or later, or a pyarrow Table; for arrays use RankingData"
        )
    try:
        return without_views(pa.table(frame))
    except (pa.ArrowException, TypeError) as error:
        raise InputError(
            f"{type(frame).__name__} has a column that Arrow cannot hold ({error}): give each "
            "column one type"
        ) from error


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


@contextmanager
def reading(file: str | os.PathLike[str], kind: str = "parquet") -> Iterator[None]:
    """Turn whatever Arrow says of a bad file into one sentence."""
    shown = "CSV" if kind == "csv" else kind.title()
    try:
        yield
    except LeanrankError:
        raise
    except (pa.ArrowException, OSError, MemoryError, ValueError, OverflowError) as error:
        if getattr(error, "errno", None) is not None:
            raise FileError(f"{file}: cannot read this file ({error})") from error
        raise InputError(f"{file}: this is no {shown} file that can be read ({error})") from error


def read_table(
    path: str | os.PathLike[str],
    kind: str,
    columns: Sequence[str] | None = None,
    *,
    header: bool = True,
    identifiers: Collection[str] = (),
) -> Any:
    """Return a file as an Arrow table whose content is valid.

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
    with reading(path, kind):
        if kind == "csv":
            table = read_csv(path, header, identifiers)
        elif kind == "arrow":
            with pa.OSFile(os.fspath(path)) as source, pa.ipc.open_file(source) as reader:
                table = reader.read_all()
        else:
            with pq.ParquetFile(path) as parquet:
                known = parquet.schema_arrow.names
                table = parquet.read([name for name in columns or () if name in known] or None)
        table.validate(full=True)
        return without_views(table)


def load_table(
    path: str | os.PathLike[str],
    kind: str,
    *,
    header: bool = True,
    features: Sequence[str] | None = None,
    optional: Collection[str] = (),
    n_jobs: int | None = None,
    among: Collection[str] | None = None,
    **columns: str | None,
) -> RankingData:
    """Load an Arrow or a CSV file; see ``leanrank.data.load``."""
    roles = column_roles(columns, ("features", "header", "n_jobs", "optional"))
    with reading(path, kind):
        table = read_table(path, kind, header=header, identifiers=identifier_columns(roles))
        data = from_table(table, os.fspath(path), roles, features, optional, n_jobs, among)
    return data if header else data.with_fields(feature_names=None)


def identifier_columns(roles: dict[str, Any]) -> list[str]:
    """Return the columns that hold the names of queries and documents, if the table has them."""
    return [str(roles.get(role) or role) for role in ("qid", "doc_id")]


def load_parquet(
    path: str | os.PathLike[str],
    *,
    features: Sequence[str] | None = None,
    optional: Collection[str] = (),
    n_jobs: int | None = -1,
    among: Collection[str] | None = None,
    **columns: str | None,
) -> RankingData:
    """Load a Parquet file, or all Parquet files of a directory in the order of their names.

    Parameters
    ----------
    path : str or path
        A file, or a directory of part files; names that begin with a dot or an underscore are
        passed over.
    features, optional
        As in ``leanrank.data.from_frame``.
    among : collection of str, optional
        Read only features of these names, if any of them is there.
    n_jobs : int, default=-1
        Number of threads.
    **columns
        ``label``, ``qid``, ``doc_id``, ``weight``, ``query_weight`` and ``offset``, as in
        ``leanrank.data.from_frame``. A file that leanrank wrote remembers which of its columns
        are which.

    Returns
    -------
    RankingData

    Examples
    --------
    >>> import tempfile
    >>> data = RankingData([[1.0], [2.0]], [0, 1], qid=["a", "a"], feature_names=["bm25"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_parquet(data, f"{folder}/small.parquet")
    ...     load_parquet(f"{folder}/small.parquet").feature_names
    ('bm25',)
    """
    roles = column_roles(columns, ("features", "n_jobs", "optional"))
    files = part_files(Path(path))
    layouts: list[Layout] = []
    groups: list[tuple[Path, Any, int]] = []
    with reading(path):
        for file in files:
            metadata = pq.read_metadata(file)
            schema = metadata.schema.to_arrow_schema()
            layouts.append(find_layout(schema, roles, features, str(file), optional, among))
            groups += [(file, metadata, group) for group in range(metadata.num_row_groups)]
        layout = agree(layouts, files)
        needed = layout.needed

        def read(at: int) -> Any:
            file, metadata, group = groups[at]
            with reading(file), pq.ParquetFile(file, metadata=metadata) as parquet:
                # Row groups are the unit of parallel work: threads inside one would compete.
                return parquet.read_row_group(group, columns=needed, use_threads=False)

        sizes = [metadata.row_group(group).num_rows for _, metadata, group in groups]
        if not groups:
            sizes, read = [0], lambda at: pq.read_table(files[0], columns=needed)
        return build(layout, sizes, read, make_executor(n_jobs), str(path))


def dump_parquet(
    data: RankingData | Iterable[RankingData],
    path: str | os.PathLike[str],
    *,
    compression: str = "none",
    cells_per_group: int = 1 << 21,
) -> None:
    """Write a ranking data set to a Parquet file.

    The file holds the columns of ``leanrank.data.to_frame``, without nulls, in row groups that
    load in parallel. Rows are written in the order in which they were loaded. The file appears
    under its name only when it is complete.

    Parameters
    ----------
    data : RankingData or iterable of RankingData
        The set, or its parts one after the other, as ``leanrank.data.stream_ranking`` yields
        them; only one part is in memory at a time.
    path : str or path
        Where to write.
    compression : {"none", "lz4", "snappy", "zstd"}, default="none"
        Feature values hardly compress, and what is not compressed loads fastest; "zstd" makes the
        smallest files.
    cells_per_group : int, default=2**21
        Values in a row group, of at least 1,024 rows. By default about 16 MB: enough groups to
        share out, and few enough to read fast.
    """
    check_choice("compression", compression, ("lz4", "zstd", "snappy", "none"))
    parts = iter([data] if isinstance(data, RankingData) else data)
    first = next(parts, None)
    if first is None:
        raise InputError("there is no data to write: the iterable of parts is empty")
    schema = table_schema(first)
    with (
        atomic_write(path, "wb") as stream,
        pq.ParquetWriter(
            pa.PythonFile(stream, mode="w"),
            schema,
            compression=compression,
            write_statistics=False,
            # Features seldom repeat: a dictionary makes most files larger and slower to load.
            use_dictionary=["label", "qid"],
        ) as writer,
    ):
        for part in chain([first], parts):
            if table_schema(part) != schema:
                raise InputError(
                    "the parts of the data differ in features, storage or extra columns: they must "
                    "be alike to be written to one file"
                )
            cells = part.X.nnz / max(1, len(part)) if part.is_sparse else part.n_features
            rows = int(min(max(cells_per_group // max(cells, 1), 1 << 10), 1 << 17))
            order = None if part.order is None else np.argsort(part.order)
            for start, stop in row_blocks(len(part), rows):
                table = table_rows(part, schema, start, stop, order)
                writer.write_table(table, row_group_size=rows)


def dump_csv(data: RankingData, path: str | os.PathLike[str]) -> None:
    """Write a dense ranking data set to a CSV file, also compressed."""
    from pyarrow import csv

    if data.is_sparse:
        raise InputError(
            f"{os.fspath(path)}: CSV has one column per feature and cannot hold sparse data: write "
            "LETOR text or Parquet instead"
        )
    clash = set(data.feature_names or ()) & set(ROLES)
    if clash:
        raise InputError(
            f"a feature is named {min(clash)!r}, which CSV could not tell from the column of that "
            "name: rename it with data.replace(feature_names=...), or write Parquet"
        )
    order = None if data.order is None else np.argsort(data.order)
    table = table_rows(data, table_schema(data), 0, len(data), order)
    with atomic_write(path, "wb") as stream, compressed(stream, os.fsdecode(path)) as out:
        csv.write_csv(table, out)


def part_files(path: Path) -> list[Path]:
    """Return the Parquet files of a directory or a pattern by name, or the one file."""
    if "*" in path.name and not path.exists():
        files = sorted(path.parent.glob(path.name))
    elif path.is_dir():
        files = sorted(f for f in path.glob("*.parquet") if not f.name.startswith((".", "_")))
    else:
        return [path]
    if not files:
        raise FileError(f"{path}: there are no .parquet files here")
    return files


def agree(layouts: Sequence[Layout], files: Sequence[Path]) -> Layout:
    """Check that parts have the same columns, and return the layout with the widest numbers."""
    first = layouts[0]
    for other, file in zip(layouts, files, strict=True):
        if first.needed != other.needed or first.n_features != other.n_features:
            odd = sorted(set(first.needed) ^ set(other.needed))
            which = f": {odd[0]!r} is in one of them only" if odd else ""
            raise InputError(f"{file}: its columns are not those of {files[0]}{which}")
    return max(layouts, key=lambda layout: layout.dtype.itemsize)
