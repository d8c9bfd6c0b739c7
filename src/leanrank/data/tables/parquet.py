"""Parquet files and directories of them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leanrank._files import atomic_write
from leanrank.data.ranking_data import RankingData
from leanrank.data.tables.files import reading
from leanrank.errors import FileError, InputError, check_choice
from leanrank.execution import make_executor, row_blocks

if TYPE_CHECKING:
    from leanrank.data.tables.layout import Layout


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
    from leanrank.data.tables.arrow import build
    from leanrank.data.tables.imports import pq
    from leanrank.data.tables.layout import column_roles, find_layout
    from leanrank.data.tables.places import Place

    roles = column_roles(columns, ("features", "n_jobs", "optional"))
    files = part_files(Path(path))
    layout: Layout | None = None
    groups: list[tuple[Path, Any, int]] = []
    sizes: list[int] = []
    with reading(path):
        for file in files:
            metadata = pq.read_metadata(file)
            schema = metadata.schema.to_arrow_schema()
            column = partial(parquet_column, file)
            place = Place(str(file))
            found = find_layout(schema, roles, features, place, optional, column, among)
            layout = found if layout is None else agree(layout, found, files[0], file)
            for group in range(metadata.num_row_groups):
                groups.append((file, metadata, group))
                sizes.append(metadata.row_group(group).num_rows)
        assert layout is not None
        needed = layout.needed

        def read(at: int) -> Any:
            file, metadata, group = groups[at]
            with reading(file), pq.ParquetFile(file, metadata=metadata) as parquet:
                # Row groups are the unit of parallel work: threads inside one would compete.
                return parquet.read_row_group(group, columns=needed, use_threads=False)

        if not groups:
            sizes, read = [0], lambda at: pq.read_table(files[0], columns=needed)
        return build(layout, sizes, read, make_executor(n_jobs), Place(str(path)))


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
        The set, or its parts one after the other, as ``leanrank.data.stream_ranking`` gives
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
    from leanrank.data.tables.arrow import table_rows
    from leanrank.data.tables.imports import pa, pq
    from leanrank.data.tables.layout import table_schema

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
            rows = _rows_per_group(part, cells_per_group)
            order = None if part.order is None else np.argsort(part.order)
            for start, stop in row_blocks(len(part), rows):
                table = table_rows(part, schema, start, stop, order)
                writer.write_table(table, row_group_size=rows)


def _rows_per_group(data: RankingData, cells_per_group: int) -> int:
    cells = data.X.nnz / max(1, len(data)) if data.is_sparse else data.n_features
    return int(min(max(cells_per_group // max(cells, 1), 1 << 10), 1 << 17))


def rows_per_chunk(metadata: Any, chunk_bytes: int) -> int:
    """Return how many rows of a Parquet file are about so many bytes once unpacked."""
    groups = range(metadata.num_row_groups)
    size = sum(metadata.row_group(at).total_byte_size for at in groups)
    return max(1, int(chunk_bytes / max(1.0, size / max(1, metadata.num_rows))))


def parquet_tables(
    file: Path, columns: Sequence[str], n_rows: int, first_group: int = 0
) -> Iterator[Any]:
    """Yield columns of a Parquet file, some rows at a time, from one row group on."""
    from leanrank.data.tables.imports import pa, pq

    with pq.ParquetFile(file, buffer_size=2**20) as parquet:
        groups = list(range(first_group, parquet.num_row_groups))
        if groups:  # older releases of Arrow fail on none
            for batch in parquet.iter_batches(n_rows, groups, columns, use_threads=False):
                yield pa.Table.from_batches([batch])


def parquet_column(file: Path, name: str) -> Any:
    """Return one column of a Parquet file."""
    from leanrank.data.tables.imports import pq

    with pq.ParquetFile(file) as parquet:
        return parquet.read([name]).column(0)


def part_files(path: Path) -> list[Path]:
    """Return the Parquet files of a directory or a pattern by name, or the one file."""
    if "*" in path.name and not path.exists():
        files = sorted(path.parent.glob(path.name))
        if not files:
            raise FileError(f"{path}: no file has such a name")
        return files
    if not path.is_dir():
        return [path]
    files = sorted(
        file
        for file in path.iterdir()
        if file.suffix == ".parquet" and not file.name.startswith((".", "_"))
    )
    if not files:
        raise FileError(f"{path}: this directory holds no .parquet files")
    return files


def agree(first: Layout, other: Layout, first_file: Path, file: Path) -> Layout:
    """Check that two parts have the same columns, and take the wider number type."""
    if first.needed != other.needed or first.n_features != other.n_features:
        odd = sorted(set(first.needed) ^ set(other.needed))
        which = f": {odd[0]!r} is in one of them only" if odd else ""
        raise InputError(f"{file}: its columns are not those of {first_file}{which}")
    return first if first.dtype.itemsize >= other.dtype.itemsize else other
