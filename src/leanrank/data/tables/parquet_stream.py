"""Parquet files in chunks of whole queries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leanrank._files import file_identity
from leanrank._typing import IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.data.streams import CHUNK_BYTES
from leanrank.data.tables.arrow import build_runs, identifiers, run_starts
from leanrank.data.tables.files import reading
from leanrank.data.tables.imports import pa, pq
from leanrank.data.tables.layout import Layout, column_roles, find_layout
from leanrank.data.tables.parquet import (
    agree,
    parquet_column,
    parquet_tables,
    part_files,
    rows_per_chunk,
)
from leanrank.data.tables.places import Place
from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.data.streams import Returns


def parquet_parts(
    path: str,
    returns: Returns,
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
        returns: Returns,
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
