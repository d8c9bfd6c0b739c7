"""From the text of a LETOR file to arrays: ranges of lines, parsed in parallel into one place.

Counting line breaks (and colons) first gives room for the rows (and entries) of every range, so
that each range is parsed straight into the final arrays: the text is read twice, the values are
written once. Whether X is dense and how wide it is, is guessed from samples;
the parse itself finds the exact answer, and in the rare case of a wrong guess runs once more.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from leanrank._numbers import check_whole
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.letor import parser
from leanrank.data.matrices import DENSE_FROM, csr
from leanrank.data.sources import is_regular, open_bytes, quoted
from leanrank.errors import InputError, ParseError, check_choice
from leanrank.execution import Executor

_BOM = b"\xef\xbb\xbf"


@dataclass
class LetorRequest:
    """What the caller wants of a text, as ``load_letor`` takes it."""

    n_features: int | None = None
    zero_based: bool = False
    dtype: Any = np.float64
    storage: str = "auto"
    optional: Collection[str] = ()
    range_bytes: int = 2**20  # text in one unit of work
    n_samples: int = 16  # of which the storage is guessed
    sample_bytes: int = 2**16

    def __post_init__(self) -> None:
        if self.n_features is not None:
            check_whole("n_features", self.n_features)
        if not isinstance(self.zero_based, bool):
            raise InputError(f"zero_based={self.zero_based!r} is not one of True and False")
        check_choice("storage", self.storage, ("auto", "dense", "sparse"))
        if self.dtype not in (np.float32, np.float64, "float32", "float64"):
            raise InputError(f"dtype={self.dtype!r} is not one of float64 and float32")
        self.dtype = np.dtype(self.dtype)

    def rules(self, layout: LetorLayout) -> parser.Rules:
        """Return how the parser is to read lines."""
        label = 0 if "label" in self.optional else parser.LABEL_NEEDED
        return parser.Rules(
            layout.dense,
            label | (0 if "qid" in self.optional else parser.QUERY_NEEDED),
            0 if self.zero_based else 1,
            layout.width,
            -1 if self.n_features is None else self.n_features,
            self.dtype == np.float32,
        )


class LetorLayout(NamedTuple):
    """How values are stored: known or guessed before parsing, checked after."""

    dense: bool
    width: int


LetorRows = tuple[Matrix, FloatArray, IntArray, list[bytes], AnyArray | None]
"""X, labels, the row and the name of each run of a query, and document ids, line by line."""


def open_text(path: Any) -> bytes | mmap.mmap:
    """Map the text of a file; what is packed, or comes from a stream, is read into memory."""
    with open_bytes(path) as stream:
        if not hasattr(path, "read") and is_regular(stream) and os.fstat(stream.fileno()).st_size:
            return mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ)
        return stream.read()


def cut_lines(buffer: Any, range_bytes: int) -> list[tuple[int, int]]:
    """Cut a text that ends with a line break into ranges; they depend on the text only."""
    cuts = [len(_BOM) if buffer[: len(_BOM)] == _BOM else 0]
    while cuts[-1] < len(buffer):
        target = min(cuts[-1] + range_bytes, len(buffer))
        cuts.append(buffer.find(b"\n", target - 1) + 1)
    return list(pairwise(cuts))


def read_rows(
    buffer: Any, name: str, request: LetorRequest, executor: Executor, line: int = 0
) -> LetorRows | None:
    """Parse a text, and return None if it holds no document.

    Raise a ParseError for the first thing that is wrong; ``line`` lines are before the text.
    """
    if buffer[-1:] != b"\n":
        buffer = buffer[:] + b"\n"
    ranges = cut_lines(buffer, request.range_bytes)
    layout = _guess(buffer, ranges, request)
    while True:
        rows = _RowArrays(buffer, ranges, layout, request, executor)
        parts = executor.map(rows.parse, range(len(ranges)))
        exact = _decide([part.report for part in parts], request)
        failed = next((part.error for part in parts if part.error is not None), None)
        # Counts stop at an error; a sparse matrix needs no width before it is joined.
        settled = failed is not None or not (exact.dense or layout.dense)
        if settled or exact == layout:
            break
        layout = exact
    if failed is not None:
        code, place = failed
        raise _error(code, place, buffer, name, request, line)
    if not sum(int(part.report[parser.ROWS]) for part in parts):
        return None
    return rows.join(parts)


def _guess(buffer: Any, ranges: list[tuple[int, int]], request: LetorRequest) -> LetorLayout:
    """Return the likely layout, from the first lines of some ranges or all of a small file."""
    samples = []
    for start, stop in ranges[:: -(-len(ranges) // request.n_samples) or 1]:
        if len(ranges) > 1 and stop - start > request.sample_bytes:
            stop = buffer.find(b"\n", start + request.sample_bytes) + 1
        samples.append((start, stop))
    rows = _RowArrays(buffer, samples, LetorLayout(False, 0), request, Executor())
    return _decide([rows.parse(at).report for at in range(len(samples))], request)


def _decide(reports: list[IntArray], request: LetorRequest) -> LetorLayout:
    """Choose the layout from what was counted."""
    table = np.array(reports, dtype=np.int64).reshape(-1, parser.N_FIELDS)
    total, width = table.sum(axis=0), request.n_features
    width = int(table[:, parser.WIDTH].max(initial=0)) if width is None else width
    full = int(total[parser.NONZEROS]) >= DENSE_FROM * int(total[parser.ROWS]) * width
    dense = full if request.storage == "auto" else request.storage == "dense"
    return LetorLayout(dense, width)


class _Part(NamedTuple):
    """What became of a range, beside the values in their place; an error is a code and a place."""

    report: IntArray
    query_rows: IntArray
    query_names: list[bytes]
    doc_ids: AnyArray | None
    error: Any


class _RowArrays:
    """Room for all rows, filled by ranges in any order and then closed up."""

    def __init__(
        self,
        buffer: Any,
        ranges: list[tuple[int, int]],
        layout: LetorLayout,
        request: LetorRequest,
        executor: Any,
    ) -> None:
        self.buffer, self.text = buffer, np.frombuffer(buffer, dtype=np.uint8)
        self.ranges, self.layout, self.request = ranges, layout, request

        def starts(byte: int) -> IntArray:
            """Count a byte in each range, and add up."""
            counts = executor.map(
                lambda at: np.count_nonzero(self.text[slice(*at)] == byte), ranges
            )
            return np.concatenate(([0], np.cumsum(counts, dtype=np.int64)))

        self.first_row = starts(ord("\n"))
        n_rows = int(self.first_row[-1])
        self.y, self.row_stops = np.empty(n_rows), np.empty(n_rows, dtype=np.int64)
        # Memory that is never written to is never taken: too much room costs nothing.
        if layout.dense:
            self.first_slot = self.first_row * layout.width
            self.values = np.zeros(n_rows * layout.width, dtype=request.dtype)
            self.indices = np.empty(0, dtype=np.int32)
        else:
            self.first_slot = starts(ord(":"))
            self.values = np.empty(int(self.first_slot[-1]), dtype=request.dtype)
            self.indices = np.empty(int(self.first_slot[-1]), dtype=np.int32)

    def parse(self, number: int) -> _Part:
        """Parse one range into its place, its names included."""
        start, stop = self.ranges[number]
        rows, slots = (
            slice(*first[number : number + 2]) for first in (self.first_row, self.first_slot)
        )
        room = parser.Room(
            self.y[rows],
            self.values[slots],
            self.indices if self.layout.dense else self.indices[slots],
            self.row_stops[rows],
            np.empty((len(self.y[rows]), 4), dtype=np.int64),
            # a hard number such as 1e23 has seven bytes with its index, and five as a label
            np.empty(((stop - start) // 5 + 1, 3), dtype=np.int64),
        )
        report = np.zeros(parser.N_FIELDS, dtype=np.int64)
        parser.parse_lines(self.text, start, stop, self.request.rules(self.layout), room, report)
        error: Any = int(report[parser.ERROR]), int(report[parser.PLACE])
        if (place := _read_hard(self.buffer, room, report)) is not None:
            error = parser.OVERFLOW, place
        elif error[0] == parser.FINE:
            error = None
        spans = room.spans[: report[parser.ROWS]]
        heads = np.flatnonzero(spans[:, parser.QUERY] >= 0)
        names, bad = _tokens(self.buffer, spans[heads, : parser.QUERY_STOP + 1])
        doc_ids, other = _documents(self.buffer, self.text, spans[:, parser.DOCUMENT :])
        bad = min((at for at in (bad, other) if at is not None), default=None)
        # Within a line, what does not follow the grammar comes before names that are no text.
        if bad is not None and (error is None or b"\n" in self.buffer[bad : error[1]]):
            error = parser.NOT_TEXT, bad
        return _Part(report, heads, names, doc_ids, error)

    def join(self, parts: list[_Part]) -> LetorRows:
        """Close the gaps that blank lines, comments and zeros left, and return the arrays."""
        n_rows = np.array([part.report[parser.ROWS] for part in parts])
        at_row = np.concatenate(([0], np.cumsum(n_rows)))
        stored = np.array([part.report[parser.ENTRIES] for part in parts])
        width: int | None = self.layout.width
        X: Matrix
        if self.layout.dense:
            _close_gaps(self.values, self.first_slot, n_rows * self.layout.width)
            X = self.values.reshape(int(at_row[-1]), self.layout.width)
        else:
            for number, at in enumerate(np.cumsum(stored) - stored):
                self.row_stops[self.first_row[number] :][: n_rows[number]] += at
            _close_gaps(self.row_stops, self.first_row, n_rows)
            _close_gaps(self.values, self.first_slot, stored)
            _close_gaps(self.indices, self.first_slot, stored)
            width = self.request.n_features
            if width is None:
                width = max(int(part.report[parser.WIDTH]) for part in parts)
            X = csr(self.values, self.indices, np.concatenate(([0], self.row_stops)), width)
            if any(part.report[parser.N_HARD] for part in parts):
                X.eliminate_zeros()  # they underflow
        _close_gaps(self.y, self.first_row, n_rows)
        heads = [part.query_rows + at for part, at in zip(parts, at_row[:-1], strict=True)]
        names = [name for part in parts for name in part.query_names]
        ids = None
        if any(part.doc_ids is not None for part in parts):
            each = zip((part.doc_ids for part in parts), n_rows.tolist(), strict=True)
            ids = np.concatenate([np.full(n, "", "U1") if own is None else own for own, n in each])
        return X, self.y, np.concatenate(heads), names, ids


def _read_hard(buffer: Any, room: parser.Room, report: IntArray) -> int | None:
    """Read what the kernel left to Python; return the place of a number that is too large."""
    for place, stop, slot in room.hard[: report[parser.N_HARD]].tolist():
        value = float(buffer[place:stop])
        if slot >= 0:
            with np.errstate(over="ignore"):
                value = float(room.values.dtype.type(value))
        if not np.isfinite(value):
            return int(place)
        if slot < 0:
            room.labels[-1 - slot] = value
            continue
        report[parser.NONZEROS] -= value == 0
        if slot != parser.NOWHERE:
            room.values[slot] = value
    return None


def _close_gaps(array: AnyArray, first: IntArray, used: IntArray) -> None:
    """Move what each range used down to the end of the one before, and free the room left."""
    at = 0
    for start, n in zip(first[:-1].tolist(), used.tolist(), strict=True):
        if start != at:
            array[at : at + n] = array[start : start + n]
        at += n
    if at != len(array):
        array.resize(at, refcheck=False)


def _tokens(buffer: Any, spans: IntArray) -> tuple[list[bytes], int | None]:
    """Return the tokens of spans, and the place of the first that is no text."""
    names = [buffer[max(start, 0) : stop] for start, stop in spans.tolist()]
    for at, name in enumerate(names):
        if b"\0" in name or name.decode("utf-8", "replace").encode() != name:
            return names, int(spans[at, 0])
    return names, None


def _documents(buffer: Any, text: AnyArray, spans: IntArray) -> tuple[AnyArray | None, int | None]:
    """Return document ids as text (empty where there is none), or the place of a bad one."""
    starts, stops = spans.T
    if not (starts >= 0).any():
        return None, None
    longest = int((stops - starts).max())
    if longest <= _LONG_NAME:
        characters = np.zeros((len(starts), longest), dtype=np.uint32)
        if parser.copy_tokens(text, starts, stops, characters):
            return characters.view(f"U{longest}")[:, 0], None
    names, bad = _tokens(buffer, np.maximum(spans, 0))
    return None if bad is not None else text_array([name.decode() for name in names]), bad


_LONG_NAME = 64  # letters, four bytes each in an array of text of fixed width


def text_array(names: list[str]) -> AnyArray:
    """Return an array of fixed-width text, or of objects if a name is long."""
    is_long = max(map(len, names), default=0) > _LONG_NAME
    return np.array(names, dtype=object if is_long else str)


_LINE = "expected 'LABEL qid:QUERY INDEX:VALUE ...'"
_SENTENCES = {
    parser.BAD_LABEL: f"the label {{token}} is missing or not a finite number: {_LINE}",
    parser.NO_QID: f"'qid:' is missing before {{token}}: {_LINE}",
    parser.EMPTY_QID: f"the query identifier after 'qid:' is empty: {_LINE}",
    parser.BAD_ENTRY: "{token} is not a feature: expected INDEX:VALUE with a whole INDEX",
    parser.ZERO_INDEX: "feature index 0 in a file read as one-based: load it with "
    "`zero_based=True`",
    parser.INDEX_BEYOND: "the index of {token} is beyond {largest}",
    parser.INDEX_ORDER: "the index of {token} is repeated or out of order: expected ascending ones",
    parser.BAD_VALUE: "the value {token} is missing or not a finite number: expected INDEX:VALUE",
    parser.OVERFLOW: "{token} is beyond the range of {dtype}: rescale it, or use "
    "`dtype=numpy.float64`",
    parser.NOT_TEXT: "{token} is not UTF-8 text: expected identifiers in UTF-8",
}


def _error(
    code: int, place: int, buffer: Any, name: str, request: LetorRequest, line: int
) -> ParseError:
    """Describe what is wrong with the token at a place; ``line`` lines are before the text."""
    begin = max(buffer.rfind(b"\n", 0, place) + 1, len(_BOM) * (buffer[: len(_BOM)] == _BOM))
    rest = buffer[place : buffer.find(b"\n", place)].removesuffix(b"\r")
    token = rest.partition(b"#")[0].replace(b"\t", b" ").partition(b" ")[0]
    shown = quoted(token) if token else "the end of the line"
    given = request.n_features
    largest = parser.LARGEST_INDEX if given is None else f"n_features={given}"
    problem = _SENTENCES[code].format(token=shown, largest=largest, dtype=request.dtype.name)
    line += 1 + int(np.count_nonzero(np.frombuffer(buffer, np.uint8, place) == ord("\n")))
    return ParseError(problem, path=name, line=line, column=place - begin + 1)
