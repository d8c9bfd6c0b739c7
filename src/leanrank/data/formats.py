"""Loading and writing a ranking data set in whatever format its name says."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from leanrank._files import atomic_write
from leanrank.data.ranking_data import RankingData
from leanrank.errors import FileError, InputError


def load(path: str | os.PathLike[str], *, format: str | None = None, **options: Any) -> RankingData:
    """Load a ranking data set.

    Parameters
    ----------
    path : str or path
        A file, a directory of Parquet files, or ``"-"`` for LETOR text on standard input.
    format : {"letor", "parquet", "csv", "arrow"}, optional
        By default the suffix decides: ``.txt``, ``.letor``, ``.svm``, ``.svmlight`` or ``.dat``,
        also followed by ``.gz``, ``.xz`` or ``.bz2``; ``.parquet``; ``.csv`` or ``.csv.gz``;
        ``.arrow`` or ``.feather``.
    **options
        For text those of :func:`leanrank.data.load_letor`, for tables the names of the columns, as
        in :func:`leanrank.data.from_frame`.

    Returns
    -------
    RankingData

    Examples
    --------
    >>> import tempfile
    >>> data = RankingData([[1.0], [2.0]], [0, 1], qid=["a", "a"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump(data, f"{folder}/set.csv")
    ...     load(f"{folder}/set.csv").X.tolist()
    [[1.0], [2.0]]
    """
    kind = FORMATS[_format_name(path, format)]
    if os.fspath(path) != "-" and not Path(path).exists():
        raise FileError(f"{os.fspath(path)}: there is no such file")
    return kind.load(path, **options)


def dump(data: RankingData, path: str | os.PathLike[str], *, format: str | None = None) -> None:
    """Write a ranking data set.

    The file appears under its name only when it is complete. Parquet and Arrow hold everything and
    know what is what when they are loaded; CSV holds everything, but the columns of weights and
    offsets must be named when it is loaded; text holds labels, queries, document ids and features.

    Parameters
    ----------
    data : RankingData
        What to write, query by query.
    path : str or path
        A file, or ``"-"`` for LETOR text on standard output.
    format : {"letor", "parquet", "csv", "arrow"}, optional
        By default the suffix decides, as in :func:`load`.
    """
    FORMATS[_format_name(path, format)].dump(data, path)


@dataclass(frozen=True)
class Format:
    """How files of one kind are named, loaded and written."""

    suffixes: tuple[str, ...]
    load: Callable[..., RankingData]
    dump: Callable[[RankingData, Any], None]


def _format_name(path: str | os.PathLike[str], given: str | None) -> str:
    if given is not None:
        if given not in FORMATS:
            raise InputError(f"format={given!r} is not known: choose from {', '.join(FORMATS)}")
        return given
    name = os.fspath(path)
    if name == "-":
        return "letor"
    if Path(name).is_dir():
        return "parquet"
    for kind, known in FORMATS.items():
        if name.lower().endswith(known.suffixes):
            return kind
    raise InputError(
        f"{name}: the suffix names no known format: use .txt, .letor, .svm, .svmlight or .dat "
        "(also with .gz, .xz or .bz2), .parquet, .csv, .csv.gz, .arrow or .feather, or give the "
        f"format ({', '.join(FORMATS)})"
    )


def _load_letor(path: Any, **options: Any) -> RankingData:
    from leanrank.data.letor import load_letor

    return load_letor(path, **options)


def _dump_letor(data: RankingData, path: Any) -> None:
    from leanrank.data.letor import dump_letor

    dump_letor(data, path)


def _load_parquet(path: Any, **options: Any) -> RankingData:
    from leanrank.data.parquet import load_parquet

    return load_parquet(path, **options)


def _dump_parquet(data: RankingData, path: Any) -> None:
    from leanrank.data.parquet import dump_parquet

    dump_parquet(data, path)


def _load_csv(path: Any, **options: Any) -> RankingData:
    from leanrank.data.frames import from_frame
    from leanrank.data.parquet import reading

    with reading(Path(path), "CSV"):
        from pyarrow import csv

        table = csv.read_csv(os.fspath(path))
    return from_frame(table, **options)


def _dump_csv(data: RankingData, path: Any) -> None:
    from leanrank.data.frames import to_frame

    if data.is_sparse:
        raise InputError(
            f"{os.fspath(path)}: CSV has one column a feature and cannot hold sparse data: write "
            "LETOR text or Parquet instead"
        )
    table = to_frame(data)
    from pyarrow import csv

    with atomic_write(path, "wb") as stream:
        if os.fspath(path).lower().endswith(".gz"):
            import gzip

            with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as packed:
                csv.write_csv(table, packed)
        else:
            csv.write_csv(table, stream)


def _load_arrow(path: Any, **options: Any) -> RankingData:
    from leanrank.data.frames import from_frame
    from leanrank.data.parquet import reading

    with reading(Path(path), "Arrow"):
        from pyarrow import feather

        table = feather.read_table(os.fspath(path), memory_map=True)
    return from_frame(table, **options)


def _dump_arrow(data: RankingData, path: Any) -> None:
    from leanrank.data.frames import to_frame

    table = to_frame(data)
    from pyarrow import feather

    with atomic_write(path, "wb") as stream:
        feather.write_feather(table, stream, compression="lz4")


_TEXT = (".txt", ".letor", ".svm", ".svmlight", ".dat")
FORMATS = {
    "letor": Format(
        tuple(f"{s}{packed}" for s in _TEXT for packed in ("", ".gz", ".xz", ".bz2")),
        _load_letor,
        _dump_letor,
    ),
    "parquet": Format((".parquet",), _load_parquet, _dump_parquet),
    "csv": Format((".csv", ".csv.gz"), _load_csv, _dump_csv),
    "arrow": Format((".arrow", ".feather"), _load_arrow, _dump_arrow),
}
"""The formats by name, in the order in which suffixes are tried."""
