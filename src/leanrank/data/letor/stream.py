"""LETOR text in chunks of whole queries, read front to back."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from leanrank._files import file_identity
from leanrank.data.letor.arrays import LetorRows, Text
from leanrank.data.letor.files import make_request, query_ids
from leanrank.data.letor.reader import read_rows
from leanrank.data.ranking_data import RankingData
from leanrank.data.sources import open_bytes, read_fully, shown_name
from leanrank.data.streams import CHUNK_BYTES
from leanrank.errors import InputError, ParseError
from leanrank.execution import make_executor

if TYPE_CHECKING:
    from leanrank.data.streams import SplitQueryDetector

_QUERY = re.compile(rb"[ \t]*[^ \t#\r\n]+[ \t]+qid:([^ \t#\r\n]+)")


class TextPart:
    """A text file, or standard input."""

    def __init__(
        self,
        path: str,
        returns: SplitQueryDetector,
        *,
        dtype: Any = "float64",
        storage: str = "auto",
        zero_based: bool = False,
        n_features: int | None = None,
        optional: tuple[str, ...] = (),
        whole_queries: bool = True,
        chunk_bytes: int = CHUNK_BYTES,
        n_jobs: int | None = -1,
    ) -> None:
        if not isinstance(zero_based, bool):
            raise InputError(
                f"zero_based={zero_based!r}: a stream is not read to its end before it is used, "
                "say True or False"
            )
        if chunk_bytes < 1:
            raise InputError(f"chunk_bytes={chunk_bytes!r} must be at least 1")
        self.path = path
        self.name = shown_name(path)
        self._returns = returns
        self._request = make_request(n_features, zero_based, dtype, storage, optional)
        self._whole_queries = whole_queries
        self._chunk_bytes = chunk_bytes
        self._executor = make_executor(n_jobs)

    @property
    def rewinds(self) -> bool:
        """Regular files can be read again, pipes cannot."""
        return self.path != "-" and stat.S_ISREG(os.stat(self.path).st_mode)

    @property
    def resumes(self) -> bool:
        """Whatever can be read again can be entered anywhere."""
        return self.rewinds

    def identity(self) -> dict[str, Any]:
        """Return name, size and a digest, and how it is read."""
        request = self._request
        how = {
            "dtype": request.dtype.name,
            "storage": request.storage,
            "zero_based": request.zero_based,
            "n_features": request.n_features,
            "chunk_bytes": self._chunk_bytes,
        }
        return how | (file_identity(self.path) if self.rewinds else {"file": self.name})

    def chunks(self, offset: int, line: int) -> Iterator[tuple[RankingData, int, int]]:
        """Return the chunks from a byte of the unpacked text on, each with where it ends."""
        with open_bytes(self.path) as stream:
            _skip(stream, offset)
            self._returns.restart()
            rest = b""
            ended = False
            while not ended:
                block, rest, ended = self._next_block(stream, rest)
                rows = self._parse(block, line)
                offset += len(block)
                line += block.count(b"\n")
                if rows is not None:
                    yield self._as_data(rows, line), offset, line

    def _next_block(self, stream: IO[bytes], rest: bytes) -> tuple[bytes, bytes, bool]:
        """Read a chunk's worth of text and cut it before the query that may not be complete."""
        wanted = self._chunk_bytes
        buffer = rest
        while True:
            more = read_fully(stream, wanted - len(buffer))
            ended = len(buffer) + len(more) < wanted
            buffer += more
            if ended:
                return buffer, b"", True
            if self._whole_queries:
                cut = last_query_start(buffer[:wanted])  # what lies beyond must not matter
            else:
                cut = buffer.rfind(b"\n") + 1
            if cut:
                return buffer[:cut], buffer[cut:], False
            wanted *= 2  # a query larger than a chunk

    def _parse(self, block: bytes, line: int) -> LetorRows | None:
        try:
            return read_rows(Text(block, self.name), self._request, self._executor)
        except ParseError as error:
            if error.line is None:  # comments and blank lines only
                return None
            raise ParseError(
                error.problem, path=error.path, line=line + error.line, column=error.column
            ) from None

    def _as_data(self, rows: LetorRows, line: int) -> RankingData:
        names = rows.run_names
        heads = [at for at, name in enumerate(names) if at == 0 or names[at - 1] != name]
        names = [names[at] for at in heads]
        self._returns.check(names, f"{self.name}, before line {line + 1}")
        return RankingData.of_fields(
            X=rows.X,
            y=rows.y,
            query_ids=query_ids(names),
            query_ptr=np.append(rows.run_rows[heads], len(rows.y)).astype(np.int64),
            doc_ids=rows.doc_ids,
        )


def last_query_start(buffer: bytes) -> int:
    r"""Find where the last query of a text begins, right after a document of another query.

    0 when there is only one, or none.

    >>> text = b"1 qid:a 1:2\n0 qid:a\n# note\n1 qid:b 1:3\n0 qi"
    >>> text[: last_query_start(text)]
    b'1 qid:a 1:2\n0 qid:a\n'
    """
    stop = buffer.rfind(b"\n") + 1
    last = None
    while stop > 0:
        start = buffer.rfind(b"\n", 0, stop - 1) + 1
        found = _QUERY.match(buffer, start)
        if found:
            if last is None:
                last = found[1]
            elif found[1] != last:
                return stop
        stop = start
    return 0


def _skip(stream: IO[bytes], offset: int) -> None:
    if offset and stream.seekable():
        stream.seek(offset)
        return
    while offset > 0 and (block := stream.read(min(offset, 2**20))):
        offset -= len(block)
