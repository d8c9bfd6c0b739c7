"""Data frames and Arrow tables, in and out, whatever library they come from.

Everything passes through the Arrow PyCapsule interface, which pandas, polars, pyarrow, DuckDB and
others implement: nothing here depends on the library of a table.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal

from leanrank.data.grouping import check_optional
from leanrank.data.ranking_data import RankingData
from leanrank.data.tables import pa
from leanrank.data.tables.arrow import build, table_rows
from leanrank.data.tables.layout import column_roles, find_layout, table_schema
from leanrank.errors import InputError, MissingDependencyError
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
    except ImportError as error:
        raise InputError(
            f"a data frame of {backend} was asked for but that package is not installed: install "
            "it, or use backend='pyarrow'"
        ) from error
    except (TypeError, ValueError) as error:
        raise InputError(
            f"backend={backend!r} is not known: choose 'pyarrow', 'pandas' or 'polars'"
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
