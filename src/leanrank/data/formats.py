"""Loading and writing a ranking data set in the format of its name."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from leanrank.data.grouping import group_rows, group_sizes_to_qid
from leanrank.data.ranking_data import RankingData
from leanrank.data.sources import PACKED
from leanrank.errors import FileError, InputError, check_choice

_TEXT = (".txt", ".letor", ".svm", ".svmlight", ".dat")
FORMATS: dict[str, tuple[str, ...]] = {
    "letor": tuple(f"{suffix}{packed}" for suffix in _TEXT for packed in PACKED),
    "parquet": (".parquet",),
    "csv": tuple(f".csv{packed}" for packed in PACKED),
    "arrow": (".arrow", ".feather"),
}
"""The suffixes of each format, in the order in which they are tried."""

ROLES = ("label", "qid", "doc_id", "weight", "query_weight", "offset")
"""Roles of columns that are not features; by default a column has the name of its role."""


def load(path: str | os.PathLike[str], *, format: str | None = None, **options: Any) -> RankingData:
    """Load a ranking data set.

    Parameters
    ----------
    path : str or path
        A file, a directory or a pattern (``part-*.parquet``) of Parquet files, or ``"-"`` for LETOR
        text on standard input. In a directory, files are read in the order of their names; names
        that begin with a dot or an underscore are skipped. A file that
        ``leanrank.data.write_store`` made is mapped.
    format : {"letor", "parquet", "csv", "arrow"}, optional
        By default the suffix decides: ``.txt``, ``.letor``, ``.svm``, ``.svmlight``, ``.dat``
        or ``.csv``, also followed by ``.gz``, ``.xz`` or ``.bz2``; ``.parquet``; ``.arrow`` or
        ``.feather``.
    **options
        For text those of ``leanrank.data.load_letor``, for tables the names of the columns, as
        in ``leanrank.data.from_frame``. ``among=names`` reads only features of these names, if the
        table has any of them, for a model that needs no others.

    Returns
    -------
    RankingData

    Notes
    -----
    If data without query identifiers are beside a file of query sizes, that file defines the
    queries: ``NAME.query`` as of LightGBM or ``NAME.group`` as of XGBoost, one size per line.

    Examples
    --------
    >>> import tempfile
    >>> data = RankingData([[1.0], [2.0]], [0, 1], qid=["a", "a"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump(data, f"{folder}/set.csv")
    ...     load(f"{folder}/set.csv").X.tolist()
    [[1.0], [2.0]]
    """
    kind, name = format_name(path, format), os.fspath(path)
    check_exists(name)
    sizes_file = sizes_beside(name)
    if sizes_file is not None:
        options["optional"] = {*options.get("optional", ()), "qid"}
    if kind == "letor":
        from leanrank.data.letor import load_letor

        data = load_letor(path, **options)
    else:
        from leanrank.data.tables.frames import load_table

        data = load_table(path, kind, **options)
    return data if sizes_file is None else _regrouped(data, sizes_file)


def dump(data: RankingData, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a ranking data set.

    The file appears under its name only when it is complete. Parquet, Arrow and CSV hold all
    fields; LETOR text holds labels, queries, document ids and features, and a ``DataWarning`` names
    weights or offsets that it leaves out. Rows are written in the order in which they were loaded,
    but those of an Arrow file, which ``load`` maps, query by query.

    Parameters
    ----------
    data : RankingData
        What to write.
    path : str or path
        A file, or ``"-"`` for LETOR text on standard output.
    format : {"letor", "parquet", "csv", "arrow"}, optional
        By default the suffix decides, as in ``load``.
    """
    module, function = _WRITERS[format_name(path, format)]
    getattr(import_module(f"leanrank.data.{module}"), function)(data, path)


_WRITERS = {
    "letor": ("letor", "dump_letor"),
    "parquet": ("tables.frames", "dump_parquet"),
    "csv": ("tables.frames", "dump_csv"),
    "arrow": ("store", "write_store"),
}


def format_name(path: str | os.PathLike[str], given: str | None) -> str:
    """Return the given format, or that of the suffix of the path."""
    if given is not None:
        check_choice("format", given, FORMATS)
        return given
    name = os.fspath(path)
    if name == "-":
        return "letor"
    if Path(name).is_dir():
        return "parquet"
    for kind, suffixes in FORMATS.items():
        if name.lower().endswith(suffixes):
            return kind
    raise InputError(
        f"{name}: the suffix names no known format: use {', '.join(_TEXT)} (also with .gz, .xz or "
        f".bz2), .parquet, .csv, .arrow or .feather, or give the format ({', '.join(FORMATS)})"
    )


def check_exists(name: str) -> None:
    """Reject a file that does not exist; patterns are not checked."""
    if name != "-" and not Path(name).exists() and "*" not in Path(name).name:
        raise FileError(f"{name}: there is no such file")


def sizes_beside(name: str) -> str | None:
    """Return the file of query sizes beside a data file: LightGBM's .query or XGBoost's .group."""
    return next((f for f in (f"{name}.query", f"{name}.group") if Path(f).is_file()), None)


def _regrouped(data: RankingData, file: str) -> RankingData:
    """Return data with the queries whose sizes are in a file."""
    try:
        sizes = np.loadtxt(file, dtype=np.int64, ndmin=1)
        queries = group_rows(group_sizes_to_qid(sizes, len(data)))
    except (ValueError, OverflowError) as error:
        raise InputError(f"{file}: query sizes are read from this file, but {error}") from error
    if data.n_queries == 1:
        return data.with_fields(query_ids=queries.query_ids, query_ptr=queries.query_ptr)
    if data.order is None and np.array_equal(queries.query_ptr, data.query_ptr):
        return data
    raise InputError(f"{file}: its queries are not those of the data's own qid: remove either")
