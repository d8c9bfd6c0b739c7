"""LETOR/SVMlight text files: one document per line, as the public ranking sets are published.

A line is ``LABEL qid:QUERY INDEX:VALUE INDEX:VALUE ... #COMMENT``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from leanrank._files import atomic_write
from leanrank._numbers import check_whole
from leanrank._typing import AnyArray, IntArray
from leanrank.data.grouping import check_optional, group_rows
from leanrank.data.ranking_data import RankingData
from leanrank.data.sources import compressed
from leanrank.errors import InputError, ParseError, check_choice, warn

if TYPE_CHECKING:
    from leanrank.data.letor.arrays import LetorRequest

_DTYPES = (np.float32, np.float64, np.dtype(np.float32), np.dtype(np.float64), "float32", "float64")


def load_letor(
    path: str | os.PathLike[str] | IO[bytes],
    *,
    n_features: int | None = None,
    zero_based: bool | str = False,
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
        recognised; compressed and streamed text beyond 32 MiB passes through a temporary file.
    n_features : int, optional
        The number of features; an index beyond is an error. By default the largest index decides.
    zero_based : bool or "auto"
        Whether the first feature has index 0 or, as in the LETOR sets, 1. ``"auto"`` takes the
        indices as zero-based exactly when some line has an index 0.
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
    if not (isinstance(zero_based, bool) or zero_based == "auto"):
        raise InputError(f"zero_based={zero_based!r} is not one of True, False and 'auto'")
    request = make_request(n_features, zero_based, dtype, storage, optional)
    return read_letor(path, request, n_jobs)


def make_request(
    n_features: int | None, zero_based: bool | str, dtype: Any, storage: str, optional: Any
) -> LetorRequest:
    """Check what a caller wants of a text."""
    from leanrank.data.letor.arrays import LetorRequest

    width = None if n_features is None else check_whole("n_features", n_features)
    check_choice("storage", storage, ("auto", "dense", "sparse"))
    if dtype not in _DTYPES:
        raise InputError(f"dtype={dtype!r} is not one of float64 and float32")
    return LetorRequest(width, zero_based, np.dtype(dtype), storage, check_optional(optional))


def read_letor(path: Any, request: LetorRequest, n_jobs: int | None = -1) -> RankingData:
    """Read a text as the request says; see ``load_letor``."""
    from leanrank.data.letor.arrays import open_text
    from leanrank.data.letor.reader import read_rows
    from leanrank.execution import make_executor

    text = open_text(path, request.in_memory)
    rows = read_rows(text, request, make_executor(n_jobs))
    if b"" in rows.run_names and any(rows.run_names):
        raise ParseError(
            "some lines have 'qid:' and some do not: give it to all or none", path=text.name
        )
    numbers: dict[bytes, int] = {}
    runs = [numbers.setdefault(name, len(numbers)) for name in rows.run_names]
    lengths = np.diff(np.append(rows.run_rows, len(rows.y)))
    grouping = group_rows(np.repeat(np.array(runs, dtype=np.int64), lengths))
    return RankingData.of_fields(
        X=grouping.take(rows.X),
        y=grouping.take(rows.y),
        query_ids=query_ids(list(numbers)),
        query_ptr=grouping.query_ptr,
        order=grouping.order,
        doc_ids=None if rows.doc_ids is None else grouping.take(rows.doc_ids),
    )


def dump_letor(
    data: RankingData, path: str | os.PathLike[str], *, zero_based: bool = False
) -> None:
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
    zero_based : bool
        Whether the first feature gets index 0 instead of 1.

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
    wrong = np.flatnonzero(~np.isfinite(data.y))
    if len(wrong):
        raise InputError(
            f"the label of document {wrong[0]} is {data.y[wrong[0]]}: a LETOR file needs finite "
            "labels"
        )
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
        for block in lines_of(data, queries, documents, 0 if zero_based else 1):
            out.write(block)


def lines_of(
    data: RankingData,
    queries: list[bytes],
    documents: list[bytes] | None,
    first_index: int,
    entries_per_block: int = 100_000,
) -> Iterator[bytes]:
    """Yield the lines of all documents in the order in which they were loaded, in blocks.

    ``queries`` has one name per query, ``documents`` one per document (perhaps empty).
    """
    rows = np.arange(len(data)) if data.order is None else np.argsort(data.order)
    query_of = np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))
    per_row = data.n_features if not data.is_sparse else data.X.nnz // max(1, len(data)) + 1
    step = max(1, entries_per_block // max(1, per_row))
    # A last column of zeros would be forgotten, and with it the number of features.
    last = f" {data.n_features - 1 + first_index}:0"
    width = "" if data.n_features == 0 or _last_column_is_used(data) else last
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        ptr, indices, values = _entries(data.X, block)
        cells = [
            f" {index}:{value}"
            for index, value in zip((indices + first_index).tolist(), _texts(values), strict=True)
        ]
        lines = []
        for at, (row, label) in enumerate(zip(block.tolist(), _texts(data.y[block]), strict=True)):
            features = "".join(cells[ptr[at] : ptr[at + 1]]) + (width if start == at == 0 else "")
            name = b"" if documents is None else documents[row]
            tail = b" #docid = " + name if name else b""
            head = label.encode() + b" qid:" + queries[query_of[row]]
            lines.append(head + features.encode() + tail + b"\n")
        yield b"".join(lines)


def _texts(values: AnyArray) -> list[str]:
    """Return numbers as text, whole ones without a decimal point."""
    return [text.removesuffix(".0") for text in values.astype(str).tolist()]


def _last_column_is_used(data: RankingData) -> bool:
    values = data.X[:, -1]
    return bool(np.any(_is_kept(values if isinstance(values, np.ndarray) else values.data)))


def _is_kept(values: AnyArray) -> AnyArray:
    """Return which values are written: all but positive zeros."""
    return (values != 0) | np.signbit(values)


def _entries(X: Any, rows: IntArray) -> tuple[IntArray, IntArray, AnyArray]:
    block = X[rows]
    if isinstance(block, np.ndarray):
        at_row, indices = np.nonzero(_is_kept(block))
        values = block[at_row, indices]
    else:
        kept = _is_kept(block.data)
        at_row = np.repeat(np.arange(len(rows)), np.diff(block.indptr))[kept]
        indices, values = block.indices[kept].astype(np.int64), block.data[kept]
    return np.searchsorted(at_row, np.arange(len(rows) + 1)), indices, values


def query_ids(names: list[bytes]) -> AnyArray:
    """Return query names as whole numbers if all are, else as text; no names are one query, 0."""
    if names == [b""]:
        return np.zeros(1, dtype=np.int64)
    whole = re.compile(rb"0|-?[1-9][0-9]{0,18}")
    if all(whole.fullmatch(name) for name in names):
        ids = [int(name) for name in names]
        if min(ids) >= -(2**63) and max(ids) < 2**63:
            return np.array(ids, dtype=np.int64)
    from leanrank.data.letor.arrays import text_array

    return text_array([name.decode("utf-8") for name in names])


def _encode(name: str, kind: str, forbidden: str) -> bytes:
    if not name or name.endswith("\r") or any(character in name for character in forbidden):
        raise InputError(
            f"the {kind} identifier {name!r} cannot stand in a LETOR file: it must be a word "
            f"without blanks{' or #' if '#' in forbidden else ''}"
        )
    try:
        return name.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"the {kind} identifier {name!r} cannot be written as UTF-8") from None
