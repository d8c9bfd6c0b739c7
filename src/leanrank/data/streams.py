"""Ranking data larger than memory: chunks of whole queries, read one at a time.

A chunk depends only on the position where it begins, so a stream that is read again from a position
gives the same chunks as without the interruption.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from leanrank._files import file_identity
from leanrank.data.formats import check_exists, format_name
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, warn

CHUNK_BYTES = 4 * 2**20
"""Bytes of text, or of Parquet data after decompression, in one chunk; a larger query is one chunk.

For 116 MB of text with 136 features, chunks of 1 MiB take 1.6 times as long, of 16 MiB 1.2 times.
"""


@dataclass(frozen=True)
class Position:
    """A position between two queries of a stream, from which reading can continue.

    Parameters
    ----------
    part : int
        The file, counted from 0.
    offset : int
        Bytes of (decompressed) text, rows of a Parquet file, or items of an iterable before it.
    line : int
        Lines of this file before it; text only.
    queries, documents : int
        Queries and documents of the whole stream before it.
    """

    part: int = 0
    offset: int = 0
    line: int = 0
    queries: int = 0
    documents: int = 0


Chunks: TypeAlias = Iterator[tuple[RankingData, int, int]]
"""Each chunk with the offset and the line where it ends."""


@dataclass(frozen=True)
class Part:
    """One source of a stream: a file, or an iterable, which has no name.

    Parameters
    ----------
    name : str or None
    chunks : callable
        ``chunks(offset, line)`` returns the chunks from there on.
    how : mapping
        Options of reading, which are part of the identity.
    rewinds : bool
        Whether the source can be read a second time.
    """

    name: str | None
    chunks: Callable[[int, int], Chunks]
    how: Mapping[str, Any]
    rewinds: bool = True

    def identity(self) -> dict[str, Any]:
        """Return facts that identify the source: name, size, digest and options."""
        if self.name is None:
            return dict(self.how)
        return {**self.how, **(file_identity(self.name) if self.rewinds else {"file": self.name})}


class RankingStream:
    """Chunks of whole queries from several sources, one after the other.

    Made by ``open_stream``. Iteration gives ``RankingData``; ``read`` gives the position after each
    as well.

    Parameters
    ----------
    parts : iterable of Part
    warns : bool
        Whether to warn, once, of a query that occurs again after others in a file.
    """

    def __init__(self, parts: Iterable[Part], *, warns: bool = True) -> None:
        self.parts, self._warns = list(parts), warns
        self._changes: tuple[tuple[Callable[[RankingData], RankingData], str], ...] = ()

    def map(self, change: Callable[[RankingData], RankingData], note: str) -> RankingStream:
        """Return a stream in which each chunk is changed, such as scaled within its queries.

        ``note`` describes the change, as a part of the identity.
        """
        changed = RankingStream(self.parts, warns=self._warns)
        changed._changes = (*self._changes, (change, note))
        return changed

    def __iter__(self) -> Iterator[RankingData]:
        for data, _ in self.read():
            yield data

    @property
    def rewinds(self) -> bool:
        """Whether the stream can be read again, as a second epoch must."""
        return all(part.rewinds for part in self.parts)

    @property
    def resumes(self) -> bool:
        """Whether a later run can continue from a position: True unless a source is a pipe."""
        return all(part.rewinds or part.name is None for part in self.parts)

    def identity(self) -> list[dict[str, Any]]:
        """Return facts that identify the sources and changes."""
        notes = {"changed": [note for _, note in self._changes]} if self._changes else {}
        return [part.identity() | notes for part in self.parts]

    def read(self, start: Position | None = None) -> Iterator[tuple[RankingData, Position]]:
        """Return each chunk with the position after it, from ``start`` on.

        Examples
        --------
        >>> from leanrank.data import stream_ranking
        >>> stream = open_stream(list(stream_ranking(30, queries_per_chunk=10)))
        >>> positions = [position for _, position in stream.read()]
        >>> [data.query_ids[0].item() for data, _ in stream.read(positions[0])]
        [10, 20]
        """
        position = start or Position()
        for number in range(position.part, len(self.parts)):
            part, seen = self.parts[number], dict[int, Any]()
            for data, offset, line in part.chunks(position.offset, position.line):
                if self._warns and part.name:
                    self._warn_if_repeated(data, seen, part.name)
                done = position.queries + data.n_queries, position.documents + len(data)
                position = Position(number, offset, line, *done)
                for change, _ in self._changes:
                    data = change(data)
                yield data, position
            position = replace(position, part=number + 1, offset=0, line=0)

    def _warn_if_repeated(self, data: RankingData, seen: dict[int, Any], name: str) -> None:
        """Warn of a query that occurred before; ``seen`` has about the last ``_MOST_SEEN``."""
        for query in data.query_ids.tolist():
            if seen.get(hash(query) % _MOST_SEEN) == query and self._warns:
                self._warns = False
                warn(
                    f"{name}: query {query} occurs again after others, and its later documents "
                    "count as another query: keep the documents of a query together"
                )
            seen[hash(query) % _MOST_SEEN] = query


_MOST_SEEN = 2**16


def open_stream(source: Any, *, format: str | None = None, **options: Any) -> RankingStream:
    r"""Return a stream of ranking data that is read in constant memory.

    Parameters
    ----------
    source : path, sequence of paths, or iterable of chunks
        Files of LETOR text (also compressed, ``"-"`` for standard input), Parquet, Arrow or CSV,
        and directories or patterns of Parquet files; or an iterable, such as a generator, of
        RankingData or tuples ``(X, y, qid)``, each of whole queries.
    format : {"letor", "parquet", "csv", "arrow"}, optional
        By default the suffix decides, file by file.
    **options
        For text ``dtype``, ``storage``, ``zero_based`` (True or False) and ``n_features`` as in
        ``leanrank.data.load_letor``, for tables the names of the columns as in
        ``leanrank.data.load``; for both ``chunk_bytes``, the text or data in a chunk, and
        ``n_jobs``.

    Returns
    -------
    RankingStream

    Notes
    -----
    A query is a run of adjacent documents of one file. If a query occurs again after others, the
    later documents are a query of their own; a ``leanrank.errors.DataWarning`` says so once, if the
    query is among the last 65,536 or so.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.txt")
    ...     text = "".join(f"{doc} qid:{query} 1:.5\n" for query in range(6) for doc in (1, 0))
    ...     _ = file.write_text(text)
    ...     [chunk.query_ids.tolist() for chunk in open_stream(file, chunk_bytes=75)]
    [[0, 1], [2, 3], [4, 5]]
    """
    if isinstance(source, RankingStream):
        return source
    if isinstance(source, RankingData):
        raise InputError("a RankingData is already in memory: fit it, or give a list of chunks")
    files = [source] if isinstance(source, (str, os.PathLike)) else source
    if isinstance(files, (list, tuple)) and any(isinstance(s, (str, os.PathLike)) for s in files):
        return RankingStream(file_parts(files, format, options))
    if options or format is not None:
        given = next(iter(options), "format")
        raise InputError(f"{given} is about files, but the stream is an iterable: leave it out")

    def chunks(offset: int, line: int) -> Chunks:
        for number, item in enumerate(source):
            if number >= offset:  # earlier items are skipped
                yield as_chunk(item, number), number + 1, 0

    how = {"iterable": type(source).__name__}
    return RankingStream([Part(None, chunks, how, rewinds=not isinstance(source, Iterator))])


def file_parts(
    paths: Sequence[Any], format: str | None, options: Mapping[str, Any]
) -> Iterator[Part]:
    """Yield a part for each file."""
    for path in paths:
        name = os.fspath(path)
        kind = format_name(name, format)
        check_exists(name)
        if kind == "letor":
            from leanrank.data.letor import text_part

            yield text_part(name, **options)
        else:
            from leanrank.data.tables.frames import table_parts

            yield from table_parts(name, kind, **options)


def resized(data: RankingData, n_features: int) -> RankingData:
    """Return the documents with another number of features: zeros added or columns dropped.

    >>> resized(RankingData([[1.0, 2.0]], [0]), 3).X.tolist()
    [[1.0, 2.0, 0.0]]
    """
    missing = n_features - data.n_features
    if missing == 0:
        return data
    X: Any
    if missing < 0:
        X = data.X[:, :n_features]
    elif data.is_sparse:
        X = type(data.X)((data.X.data, data.X.indices, data.X.indptr), (len(data), n_features))
    else:
        X = np.pad(data.X, ((0, 0), (0, missing)))
    return data.with_fields(X=X, feature_names=None)


def as_chunk(item: Any, number: int) -> RankingData:
    """Return an item of an iterable as a chunk."""
    if isinstance(item, RankingData):
        return item
    if isinstance(item, tuple) and 2 <= len(item) <= 3:
        try:
            return RankingData(*item, feature_names=column_names(item[0]))
        except InputError as error:
            raise InputError(f"chunk {number} of the stream: {error}") from error
    raise InputError(
        f"chunk {number} of the stream is {type(item).__name__}: give RankingData or tuples "
        "(X, y, qid)"
    )


def column_names(X: Any) -> tuple[str, ...] | None:
    """Return the names of a data frame's columns, if they are all text."""
    names = tuple(getattr(X, "columns", ()))
    return names if names and all(isinstance(name, str) for name in names) else None
