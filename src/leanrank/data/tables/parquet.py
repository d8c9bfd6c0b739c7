"""Parquet files and directories of them: loaded, written, and read in chunks of whole queries."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leanrank._files import atomic_write, file_identity
from leanrank._typing import IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.data.streams import CHUNK_BYTES
from leanrank.data.tables.arrow import build, build_runs, identifiers, run_starts, table_rows
from leanrank.data.tables.files import reading
from leanrank.data.tables.imports import pa, pq
from leanrank.data.tables.layout import Layout, Place, column_roles, find_layout, table_schema
from leanrank.errors import FileError, InputError, check_choice
from leanrank.execution import make_executor, row_blocks

if TYPE_CHECKING:
    from leanrank.data.streams import SplitQueryDetector


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
    with pq.ParquetFile(file, buffer_size=2**20) as parquet:
        groups = list(range(first_group, parquet.num_row_groups))
        if groups:  # older releases of Arrow fail on none
            for batch in parquet.iter_batches(n_rows, groups, columns, use_threads=False):
                yield pa.Table.from_batches([batch])


def parquet_column(file: Path, name: str) -> Any:
    """Return one column of a Parquet file."""
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


def parquet_parts(
    path: str,
    returns: SplitQueryDetector,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    n_jobs: int | None = None,
    features: Any = None,
    **columns: str | None,
) -> Iterator[ParquetPart]:
    """Return a part for each file of a directory, or for the one file."""
    roles = column_roles(columns, ("features", "chunk_bytes", "n_jobs"))
    if roles["qid"] is None:
        raise InputError("`qid=None` makes one query of everything: a stream needs a query column")
    first: ParquetPart | None = None
    for file in part_files(Path(path)):
        part = ParquetPart(file, roles, features, returns, chunk_bytes)
        if first is None:
            first = part
        agree(first.layout, part.layout, first.file, file)
        yield part


class ParquetPart:
    """A Parquet file."""

    rewinds = resumes = True

    def __init__(
        self,
        file: Path,
        roles: dict[str, str | None],
        features: Any,
        returns: SplitQueryDetector,
        chunk_bytes: int,
    ) -> None:
        self.file = file
        with reading(file):
            metadata = pq.read_metadata(file)
            schema = metadata.schema.to_arrow_schema()
            self.layout: Layout = find_layout(
                schema, roles, features, Place(str(file)), column=partial(parquet_column, file)
            )
        sizes = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
        self._first_rows = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        self._n_rows = rows_per_chunk(metadata, chunk_bytes)
        self._returns = returns

    def identity(self) -> dict[str, Any]:
        """Return name, size and a digest, and how it is read."""
        how = {"columns": self.layout.columns, "features": len(self.layout.features)}
        return how | {"rows_per_chunk": self._n_rows} | file_identity(str(self.file))

    def chunks(self, offset: int, line: int) -> Iterator[tuple[RankingData, int, int]]:
        """Return the chunks from a row on, each with the row where it ends."""
        self._returns.restart()
        rest = None
        batches = self._tables(offset)
        ended = False
        while not ended:
            with reading(self.file):
                table, rest, ended = self._next_table(batches, rest, offset)
                data = self._as_data(table, offset) if table.num_rows else None
            if data is not None:
                offset += table.num_rows
                yield data, offset, 0

    def _tables(self, row: int) -> Iterator[Any]:
        """Read the rows from one on, a few at a time, beginning with the row group it is in."""
        group = int(np.searchsorted(self._first_rows, row, side="right")) - 1
        skip = row - int(self._first_rows[group])
        for table in parquet_tables(self.file, self.layout.needed, self._n_rows, group):
            dropped = min(skip, table.num_rows)
            skip -= dropped
            yield table.slice(dropped)

    def _next_table(self, batches: Iterator[Any], rest: Any, row: int) -> tuple[Any, Any, bool]:
        """Take a chunk's worth of rows and cut them before the query that may not be complete."""
        wanted = self._n_rows
        while True:
            tables = [] if rest is None else [rest]
            have = sum(table.num_rows for table in tables)
            while have < wanted and (table := next(batches, None)) is not None:
                tables.append(table)
                have += table.num_rows
            if not tables:
                return pa.table({}), None, True
            joined = pa.concat_tables(tables, promote_options="permissive")
            part = joined.slice(0, wanted)
            if have < wanted:
                return part, None, True
            starts = self._run_starts(part, row)
            if len(starts) > 1:
                cut = int(starts[-1])
                return part.slice(0, cut), joined.slice(cut), False
            rest = joined
            wanted *= 2  # a query larger than a chunk

    def _run_starts(self, table: Any, row: int) -> IntArray:
        """Find the rows where a query begins."""
        name = self.layout.columns["qid"]
        return run_starts(identifiers(table.column(name), name, Place(str(self.file), row)))

    def _as_data(self, table: Any, row: int) -> RankingData:
        data = build_runs(self.layout, table, Place(str(self.file), row))
        self._returns.check(data.query_ids.tolist(), f"{self.file}, after row {row:,}")
        return data
