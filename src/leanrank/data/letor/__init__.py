"""LETOR/SVMlight text files: one document per line, as the public ranking sets are published.

A line is ``LABEL qid:QUERY INDEX:VALUE INDEX:VALUE ... #COMMENT``.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterator
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from leanrank._files import atomic_write
from leanrank._numbers import check_whole
from leanrank._typing import AnyArray
from leanrank.data.ranking_data import RankingData, column_values, concatenated
from leanrank.data.sources import compressed, open_bytes, shown_name
from leanrank.data.streams import CHUNK_BYTES, Chunks, Part
from leanrank.errors import InputError, ParseError, warn
from leanrank.execution import make_executor, row_blocks

if TYPE_CHECKING:
    from leanrank.data.letor.reader import LetorRequest


def load_letor(
    path: str | os.PathLike[str] | IO[bytes],
    *,
    n_features: int | None = None,
    zero_based: bool = False,
    dtype: Any = np.float64,
    storage: str = "auto",
    optional: Collection[str] = (),
    n_jobs: int | None = -1,
) -> RankingData:
    r"""Read a LETOR (SVMlight with queries) text file.

    Parameters
    ----------
    path : str, path or binary file object
        A file, ``"-"`` for standard input, or an open stream. Compression with gzip, xz or bzip2 is
        recognised; compressed and streamed text is unpacked in memory.
    n_features : int, optional
        The number of features; an index beyond is an error. By default the largest index decides.
    zero_based : bool
        Whether the first feature has index 0 or, as in the LETOR sets, 1.
    dtype : float64 or float32
        Type of X; values become float32 after float64. Labels are float64 always.
    storage : "auto", "dense" or "sparse"
        ``"auto"`` is dense when at least a quarter of the matrix is not zero.
    optional : collection of {"label", "qid"}
        What lines may lack. Without labels, ``y`` is NaN; without ``qid:``, all are one query.
    n_jobs : int
        Threads; -1 is every core. The result does not depend on it.

    Returns
    -------
    RankingData
        The documents of a query are gathered when they are not together in the file;
        ``data.restore`` returns to the order of the file.

    Raises
    ------
    ParseError
        With file, line and column of the first thing that is wrong.
    FileError
        When there is no such file, or it cannot be read.

    Notes
    -----
    - Labels and values are finite decimal numbers, read to the last bit. A value ``nan`` or
      ``NULL`` is missing and becomes NaN. Features that a line does not list are zero; indices
      ascend within a line. A sparse X does not store zeros.
    - A query is any word without blanks or ``#``. Queries become integers when all of them are
      written as integers are (``7``, not ``07``) and fit 64 bits; otherwise all are text.
    - A comment goes from the first ``#`` to the end of the line. It names the document when it is
      ``docid = NAME`` or ``docid:NAME``, whatever follows, or a single word. Documents without a
      name get an empty one, and ``doc_ids`` is None when no line names any.
    - Blank lines and lines with nothing but a comment are passed over; Windows line ends, a byte
      order mark and a missing last line break are accepted. Names are UTF-8.

    Examples
    --------
    >>> import io
    >>> text = b"2 qid:WT04-17 1:0.5 3:1 #docid = G21\n0 qid:WT04-17 2:.25\n"
    >>> data = load_letor(io.BytesIO(text))
    >>> data.X.tolist(), data.y.tolist()
    ([[0.5, 0.0, 1.0], [0.0, 0.25, 0.0]], [2.0, 0.0])
    >>> data.query_ids.tolist(), data.doc_ids.tolist()
    (['WT04-17'], ['G21', ''])
    """
    from leanrank.data.letor.reader import LetorRequest

    request = LetorRequest(n_features, zero_based, dtype, storage, optional)
    return read_letor(path, request, n_jobs)


def read_letor(path: Any, request: LetorRequest, n_jobs: int | None = -1) -> RankingData:
    """Read a text as the request says; see ``load_letor``."""
    from leanrank.data.letor.reader import open_text

    name = shown_name(path)
    data = _read(open_text(path), name, 0, request, make_executor(n_jobs))
    if data is None:
        problem = "no document: expected lines such as '2 qid:1 1:0.5 2:3 #docid = A7'"
        raise ParseError(problem, path=name)
    return concatenated([data])  # rows of a query come together


def _read(
    text: Any, name: str, line: int, request: LetorRequest, executor: Any
) -> RankingData | None:
    """Return adjacent documents of a query as one, or None for comments and blank lines only.

    ``line`` lines are before the text.
    """
    from leanrank.data.letor.reader import read_rows

    rows = read_rows(text, name, request, executor, line)
    if rows is None:
        return None
    X, y, run_rows, names, doc_ids = rows
    if b"" in names and any(names):
        problem = "some lines have 'qid:' and some do not: give it to all or none"
        raise ParseError(problem, path=name)
    heads = [at for at, name in enumerate(names) if at == 0 or names[at - 1] != name]
    return RankingData.of_fields(
        X=X,
        y=y,
        query_ids=query_ids([names[at] for at in heads]),
        query_ptr=np.append(run_rows[heads], len(y)).astype(np.int64),
        doc_ids=doc_ids,
    )


def query_ids(names: list[bytes]) -> AnyArray:
    """Return query names as whole numbers if all are, else as text; no names are one query, 0."""
    if names == [b""]:
        return np.zeros(1, dtype=np.int64)
    whole = re.compile(rb"0|-?[1-9][0-9]{0,18}")
    if all(whole.fullmatch(name) for name in names):
        ids = [int(name) for name in names]
        if min(ids) >= -(2**63) and max(ids) < 2**63:
            return np.array(ids, dtype=np.int64)
    from leanrank.data.letor.reader import text_array

    return text_array([name.decode("utf-8") for name in names])


def dump_letor(data: RankingData, path: str | os.PathLike[str]) -> None:
    """Write a LETOR text file; it appears under its name only when it is complete.

    Documents are written in the order in which they were loaded. Numbers are short decimals that
    read back to the same bits (in the type of X), zeros are left out, document ids become
    ``#docid = NAME``. Weights, offsets and feature names have no place in the format; a
    ``DataWarning`` says if there are weights or offsets.

    Parameters
    ----------
    data : RankingData
        What to write; labels and values must be finite.
    path : str or path
        Compressed when it ends in ``.gz``, ``.xz`` or ``.bz2``; ``"-"`` is standard output.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> data = RankingData([[0.1, 0.0], [0.0, 2.0]], [1, 0], ["a", "a"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "a.txt")
    ...     dump_letor(data, file)
    ...     print(file.read_text())
    1 qid:a 1:0.1
    0 qid:a 2:2
    """
    if not np.isfinite(data.y).all():
        raise InputError("a label is NaN or infinite: a LETOR file needs finite labels")
    if not np.isfinite(data.X.data if data.is_sparse else data.X).all():
        raise InputError("X holds NaN or infinity: a LETOR file needs finite values")
    queries = [_encode(str(name), "query", " \t\n#\0") for name in data.query_ids.tolist()]
    if len(set(queries)) < len(queries):
        raise InputError("two queries have the same name as text: give them distinct ones")
    documents = None
    if data.doc_ids is not None:
        documents = [
            b"" if name is None or name == "" else _encode(str(name), "document", " \t\n\r\v\f\0")
            for name in data.doc_ids.tolist()
        ]
    lost = [n for n in ("sample_weight", "query_weight", "offset") if getattr(data, n) is not None]
    if lost:
        warn(
            f"{os.fspath(path)}: LETOR text has no place for {' and '.join(lost)}, which the file "
            "lacks: write .parquet, .arrow or .csv to keep them"
        )
    with atomic_write(path, "wb") as stream, compressed(stream, os.fsdecode(path)) as out:
        out.writelines(lines_of(data, queries, documents))


def lines_of(
    data: RankingData, queries: list[bytes], documents: list[bytes] | None
) -> Iterator[bytes]:
    """Yield the lines of all documents in the order in which they were loaded, in blocks."""
    from scipy.sparse import csr_array

    rows = np.arange(len(data)) if data.order is None else np.argsort(data.order)
    query_of = np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))
    # A last column of zeros would be forgotten, and with it the number of features.
    last = data.n_features
    width = f" {last}:0".encode() if last and not column_values(data.X, last - 1).any() else b""
    for start, stop in row_blocks(len(rows), max(1, 100_000 // max(1, data.n_features))):
        block = csr_array(data.X[rows[start:stop]])
        block.eliminate_zeros()
        entries = zip((block.indices + 1).tolist(), _texts(block.data), strict=True)
        cells = [f" {index}:{value}" for index, value in entries]
        labels, lines = _texts(data.y[rows[start:stop]]), []
        for at, row in enumerate(rows[start:stop].tolist()):
            features = "".join(cells[block.indptr[at] : block.indptr[at + 1]]).encode()
            tail = b" #docid = " + documents[row] if documents and documents[row] else b""
            head = labels[at].encode() + b" qid:" + queries[query_of[row]]
            lines.append(head + features + width + tail + b"\n")
            width = b""
        yield b"".join(lines)


def _texts(values: AnyArray) -> list[str]:
    """Return numbers as text, whole ones without a decimal point."""
    return [text.removesuffix(".0") for text in values.astype(str).tolist()]


def _encode(name: str, kind: str, forbidden: str) -> bytes:
    try:
        if name and not name.endswith("\r") and not set(name) & set(forbidden):
            return name.encode("utf-8")
    except UnicodeEncodeError:
        pass
    raise InputError(
        f"the {kind} identifier {name!r} cannot stand in a LETOR file: it must be a word of UTF-8 "
        f"without blanks{' or #' if '#' in forbidden else ''}"
    )


_QUERY = re.compile(rb"[ \t]*[^ \t#\r\n]+[ \t]+qid:([^ \t#\r\n]+)")


def text_part(
    path: str, *, chunk_bytes: int = CHUNK_BYTES, n_jobs: int | None = -1, **options: Any
) -> Part:
    """Return a text file or standard input as chunks of whole queries, read front to back."""
    from leanrank.data.letor.reader import LetorRequest

    request = LetorRequest(**options)
    check_whole("chunk_bytes", chunk_bytes)
    executor = make_executor(n_jobs)

    def chunks(offset: int, line: int) -> Chunks:
        wanted, buffer, ended = chunk_bytes, b"", False
        with open_bytes(path) as stream:
            if offset:
                stream.seek(offset)
            while not ended:
                buffer += stream.read(max(0, wanted - len(buffer)))
                ended = len(buffer) < wanted
                # what lies beyond must not matter, and the last query may not be complete
                cut = len(buffer) if ended else last_query_start(buffer[:wanted])
                if not cut:
                    wanted *= 2  # a query larger than a chunk
                    continue
                data = _read(buffer[:cut], shown_name(path), line, request, executor)
                offset += cut
                line += buffer.count(b"\n", 0, cut)
                buffer, wanted = buffer[cut:], chunk_bytes
                if data is not None:
                    yield data, offset, line

    regular = path != "-" and stat.S_ISREG(os.stat(path).st_mode)  # pipes are read once
    how = {name: getattr(request, name) for name in ("storage", "zero_based", "n_features")}
    how |= {"dtype": request.dtype.name, "chunk_bytes": chunk_bytes}
    return Part(shown_name(path) if path == "-" else path, chunks, how, regular)


def last_query_start(buffer: bytes) -> int:
    r"""Return where the last query of a text begins, right after a document of another query.

    0 if there is only one query, or none.

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
