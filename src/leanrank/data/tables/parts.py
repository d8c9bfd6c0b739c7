"""Tables of any size, read in chunks of whole queries."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leanrank._files import file_identity
from leanrank.data.grouping import check_optional
from leanrank.data.ranking_data import RankingData
from leanrank.data.streams import CHUNK_BYTES
from leanrank.data.tables import csv_schema, csv_tables, pa, pq, with_identifiers
from leanrank.data.tables.arrow import build, identifiers, run_starts
from leanrank.data.tables.files import agree, identifier_columns, part_files, reading, without_views
from leanrank.data.tables.layout import column_roles, find_layout
from leanrank.errors import InputError
from leanrank.execution import SerialExecutor


def table_parts(path: str, kind: str, **options: Any) -> Iterator[TablePart]:
    """Return a part for each file of a directory or a pattern, or for the one file."""
    files = part_files(Path(path)) if kind == "parquet" else [Path(path)]
    parts = [TablePart(file, kind, **options) for file in files]
    layout = agree([part.layout for part in parts], files)
    for part in parts:
        part.layout = layout
        yield part


class TablePart:
    """A Parquet, Arrow or CSV file."""

    rewinds = resumes = True

    def __init__(
        self,
        file: Path,
        kind: str,
        *,
        chunk_bytes: int = CHUNK_BYTES,
        n_jobs: int | None = None,
        features: Any = None,
        optional: Any = (),
        header: bool = True,
        **columns: str | None,
    ) -> None:
        roles = column_roles(columns, ("features", "chunk_bytes", "n_jobs", "header", "optional"))
        if roles["qid"] is None:
            raise InputError(
                "`qid=None` makes one query of everything: a stream needs a query column"
            )
        self.file, self.name, self.kind, self._header = file, str(file), kind, header
        with reading(file, kind):
            schema, row_bytes = self._schema()
            self.layout = find_layout(schema, roles, features, str(file), check_optional(optional))
        self._n_rows = max(1, int(chunk_bytes / max(1.0, row_bytes)))

    def identity(self) -> dict[str, Any]:
        """Return name, size and a digest, and how it is read."""
        how = {"columns": self.layout.columns, "features": len(self.layout.features)}
        return how | {"rows_per_chunk": self._n_rows} | file_identity(str(self.file))

    def chunks(self, offset: int, line: int) -> Iterator[tuple[RankingData, int, int]]:
        """Return the chunks from a row on, each with the row where it ends."""
        rest = None
        tables = self._tables(offset)
        ended = False
        while not ended:
            with reading(self.file, self.kind):
                table, rest, ended = self._next_table(tables, rest)
                data = self._as_data(table, offset) if table.num_rows else None
            if data is not None:
                offset += table.num_rows
                yield data, offset, 0

    def _schema(self) -> tuple[Any, float]:
        """Return the columns of the file, and about how many bytes a row has in memory."""
        if self.kind == "csv":
            schema = csv_schema(self.file, self._header)
            return schema, 8.0 * len(schema)
        if self.kind == "arrow":
            with _open_arrow(self.file) as reader:
                some = reader.get_batch(0) if reader.num_record_batches else None
                size = 0 if some is None else some.nbytes / max(1, some.num_rows)
                return reader.schema, size
        metadata = pq.read_metadata(self.file)
        groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
        size = sum(group.total_byte_size for group in groups) / max(1, metadata.num_rows)
        return metadata.schema.to_arrow_schema(), size

    def _tables(self, skip: int) -> Iterator[Any]:
        """Read the rows from one on, some at a time."""
        for table in self._all_tables():
            dropped = min(skip, table.num_rows)
            skip -= dropped
            yield without_views(table.slice(dropped))

    def _all_tables(self) -> Iterator[Any]:
        needed = self.layout.needed
        if self.kind == "csv":
            texts = identifier_columns(self.layout.columns)
            yield from csv_tables(self.file, self._header, needed, texts)
        elif self.kind == "arrow":
            with _open_arrow(self.file) as reader:
                for at in range(reader.num_record_batches):
                    yield pa.Table.from_batches([reader.get_batch(at)]).select(needed)
        else:
            with pq.ParquetFile(self.file, buffer_size=2**20) as parquet:
                if parquet.num_row_groups:  # older releases of Arrow fail on none
                    for batch in parquet.iter_batches(
                        self._n_rows, columns=needed, use_threads=False
                    ):
                        yield pa.Table.from_batches([batch])

    def _next_table(self, tables: Iterator[Any], rest: Any) -> tuple[Any, Any, bool]:
        """Take a chunk's worth of rows and cut them before the query that may not be complete."""
        wanted = self._n_rows
        name = self.layout.columns.get("qid")
        while True:
            taken = [] if rest is None else [rest]
            have = sum(table.num_rows for table in taken)
            while have < wanted and (table := next(tables, None)) is not None:
                taken.append(table)
                have += table.num_rows
            if not taken:
                return pa.table({}), None, True
            joined = pa.concat_tables(taken, promote_options="permissive")
            part = joined.slice(0, wanted)
            if have < wanted:
                return part, None, True
            if name is not None:
                starts = run_starts(identifiers(part.column(name), name, str(self.file)))
                if len(starts) > 1:
                    cut = int(starts[-1])
                    return part.slice(0, cut), joined.slice(cut), False
            rest = joined
            wanted *= 2  # a query larger than a chunk

    def _as_data(self, table: Any, row: int) -> RankingData:
        if self.kind == "csv":  # now: blocks of one column may hold numbers and text
            table = with_identifiers(table, identifier_columns(self.layout.columns))
        sizes, where = [table.num_rows], str(self.file)
        read = lambda at: table  # noqa: E731
        data = build(self.layout, sizes, read, SerialExecutor(), where, row0=row, runs=True)
        return data if self._header else data.with_fields(feature_names=None)


def _open_arrow(file: Path) -> Any:
    return pa.ipc.open_file(pa.memory_map(os.fspath(file)))
