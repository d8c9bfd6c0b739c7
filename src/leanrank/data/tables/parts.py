"""Tables of any size, read in chunks of whole queries."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from leanrank._files import file_identity
from leanrank.data.ranking_data import RankingData
from leanrank.data.streams import CHUNK_BYTES
from leanrank.data.tables import pa
from leanrank.data.tables.arrow import build, query_codes, run_starts
from leanrank.data.tables.files import TableFile, reading, table_files, whole_numbers
from leanrank.data.tables.frames import common_layout
from leanrank.data.tables.layout import Layout, column_roles
from leanrank.errors import InputError
from leanrank.execution import SerialExecutor


def table_parts(
    path: str,
    kind: str,
    *,
    chunk_bytes: int = CHUNK_BYTES,
    n_jobs: int | None = None,
    features: Any = None,
    optional: Any = (),
    header: bool = True,
    **columns: str | None,
) -> list[TablePart]:
    """Return a part for each file of a directory or a pattern, or for the one file."""
    roles = column_roles(columns)
    if roles["qid"] is None:
        raise InputError("`qid=None` makes one query of everything: a stream needs a query column")
    files = table_files(path, kind, header)
    layout = common_layout(files, roles, features, optional)
    return [TablePart(file, layout, chunk_bytes, header) for file in files]


class TablePart:
    """A Parquet, Arrow or CSV file."""

    rewinds = resumes = True

    def __init__(self, file: TableFile, layout: Layout, chunk_bytes: int, header: bool) -> None:
        self.file, self.name, self._layout, self._header = file, file.path, layout, header
        self._n_rows = max(1, int(chunk_bytes / max(1.0, file.row_bytes)))

    def identity(self) -> dict[str, Any]:
        """Return name, size and a digest, and how it is read."""
        how = {"columns": self._layout.columns, "features": len(self._layout.features)}
        return how | {"rows_per_chunk": self._n_rows} | file_identity(self.name)

    def chunks(self, offset: int, line: int) -> Iterator[tuple[RankingData, int, int]]:
        """Return the chunks from a row on, each with the row where it ends."""
        rest = None
        tables = self._tables(offset)
        ended = False
        while not ended:
            with reading(self.name, self.file.kind):
                table, rest, ended = self._next_table(tables, rest)
                data = self._as_data(table, offset) if table.num_rows else None
            if data is not None:
                offset += table.num_rows
                yield data, offset, 0

    def _tables(self, skip: int) -> Iterator[Any]:
        """Read the rows from one on, some at a time."""
        for table in self.file.batches(self._layout.needed, self._layout.texts, self._n_rows):
            dropped = min(skip, table.num_rows)
            skip -= dropped
            yield table.slice(dropped)

    def _next_table(self, tables: Iterator[Any], rest: Any) -> tuple[Any, Any, bool]:
        """Take a chunk's worth of rows and cut them before the query that may not be complete."""
        wanted = self._n_rows
        name = self._layout.columns.get("qid")
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
                starts = run_starts(query_codes(part.column(name), name, self.name)[0])
                if len(starts) > 1:
                    cut = int(starts[-1])
                    return part.slice(0, cut), joined.slice(cut), False
            rest = joined
            wanted *= 2  # a query larger than a chunk

    def _as_data(self, table: Any, row: int) -> RankingData:
        if self.file.kind == "csv":  # now: blocks of one column may hold numbers and text
            table = whole_numbers(table, self._layout.texts)
        pieces = [(table.num_rows, lambda: table)]
        data = build(self._layout, pieces, SerialExecutor(), self.name, row0=row, runs=True)
        return data if self._header else data.with_fields(feature_names=None)
