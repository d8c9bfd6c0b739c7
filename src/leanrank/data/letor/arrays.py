"""Room for the rows of a LETOR file: ranges are parsed into it, then it is closed up."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.letor import parser
from leanrank.data.letor.decimals import powers_of_ten
from leanrank.data.matrices import csr
from leanrank.data.sources import BLOCK, is_regular, open_bytes, shown_name
from leanrank.errors import FileError, InputError
from leanrank.execution import Executor


@dataclass(frozen=True)
class LetorRequest:
    """What the caller wants."""

    n_features: int | None = None
    zero_based: bool | str = False
    dtype: np.dtype[Any] = np.dtype(np.float64)  # noqa: RUF009
    storage: str = "auto"
    optional: tuple[str, ...] = ()
    in_memory: int = 32 * 2**20  # bytes of unpacked text; what is larger goes to a temporary file
    range_bytes: int = 2**20  # text in one unit of work
    n_samples: int = 16  # of which the storage is guessed
    sample_bytes: int = 2**16

    @property
    def needs(self) -> int:
        """What the parser must find in every line."""
        label = 0 if "label" in self.optional else parser.LABEL_NEEDED
        return label | (0 if "qid" in self.optional else parser.QUERY_NEEDED)


@dataclass(frozen=True)
class LetorLayout:
    """How values are stored: known or guessed before parsing, checked after."""

    dense: bool
    width: int
    first_index: int


@dataclass(frozen=True)
class LetorPart:
    """What became of a range, beside the values in their place."""

    report: IntArray
    query_rows: IntArray
    query_names: list[bytes]
    doc_ids: AnyArray | None
    error: tuple[int, int] | None


@dataclass(frozen=True)
class LetorRows:
    """A whole file in the order of its lines, with the row and name of each run of a query."""

    X: Matrix
    y: FloatArray
    run_rows: IntArray
    run_names: list[bytes]
    doc_ids: AnyArray | None


class RowArrays:
    """Room for all rows, filled by ranges in any order and then closed up."""

    def __init__(
        self,
        ranges: list[Lines],
        n_lines: list[int],
        layout: LetorLayout,
        request: LetorRequest,
        executor: Executor,
    ) -> None:
        self.ranges = ranges
        self.layout = layout
        self.request = request
        self.first_row = np.concatenate(([0], np.cumsum(n_lines, dtype=np.int64)))
        room = int(self.first_row[-1])
        self.y = np.empty(room)
        self.row_stops = np.empty(room, dtype=np.int64)
        # Memory that is never written to is never taken: too much room costs nothing.
        if layout.dense:
            self.first_slot = self.first_row * layout.width
            self.values = _zeros(room, layout.width, request.dtype)
            self.indices = np.empty(0, dtype=np.int32)
        else:
            n_colons = executor.map(lambda lines: lines.count(b":"), ranges)
            self.first_slot = np.concatenate(([0], np.cumsum(n_colons, dtype=np.int64)))
            self.values = np.empty(int(self.first_slot[-1]), dtype=request.dtype)
            self.indices = np.empty(int(self.first_slot[-1]), dtype=np.int32)

    def parse(self, number: int) -> LetorPart:
        """Parse one range into its place."""
        lines, layout, request = self.ranges[number], self.layout, self.request
        rows = slice(*self.first_row[number : number + 2])
        slots = slice(*self.first_slot[number : number + 2])
        values, row_stops = self.values[slots], self.row_stops[rows]
        indices = self.indices if layout.dense else self.indices[slots]
        spans = np.empty((rows.stop - rows.start, 4), dtype=np.int64)
        n_hard = 64  # room for so many; they are rare
        hard = np.empty((0, 2), dtype=np.int64)
        while n_hard > len(hard):
            hard = np.empty((n_hard, 2), dtype=np.int64)
            report = np.zeros(parser.N_FIELDS, dtype=np.int64)
            parser.parse_lines(
                lines.array, lines.start, lines.stop,
                parser.DENSE if layout.dense else parser.SPARSE,
                request.needs, layout.first_index, request.zero_based == "auto", layout.width,
                -1 if request.n_features is None else request.n_features,
                request.dtype == np.float32, powers_of_ten(),
                self.y[rows], values, indices, row_stops, spans, hard, report,
            )  # fmt: skip
            n_hard = int(report[parser.N_HARD])
        error = None
        if report[parser.ERROR] != parser.FINE:
            error = (int(report[parser.ERROR]), int(report[parser.PLACE]))
        if n_hard:
            place = self._read_hard(lines, hard[:n_hard], self.y[rows], values, report)
            if place is not None:
                error = (parser.OVERFLOW, place)
            elif not layout.dense:
                _drop_zeros(hard[:n_hard], values, indices, row_stops, report)
        spans = spans[: report[parser.ROWS]]
        heads = np.flatnonzero(spans[:, parser.QUERY] >= 0)
        names = [
            lines.buffer[start:stop]
            for start, stop in spans[heads, parser.QUERY : parser.QUERY_STOP + 1].tolist()
        ]
        doc_ids, bad = _read_tokens(
            lines, spans[:, parser.DOCUMENT], spans[:, parser.DOCUMENT_STOP]
        )
        for head, name in zip(heads.tolist(), names, strict=True):
            if not name.isascii() and not _is_utf8(name):
                place = int(spans[head, parser.QUERY])
                bad = place if bad is None else min(bad, place)
                break
        # Within a line, what does not follow the grammar comes before names in another encoding.
        if bad is not None and (error is None or b"\n" in lines.buffer[bad : error[1]]):
            error = (parser.NOT_UTF8, bad)
        return LetorPart(report, heads, names, doc_ids, error)

    def _read_hard(
        self, lines: Lines, hard: IntArray, labels: FloatArray, values: AnyArray, report: IntArray
    ) -> int | None:
        """Read what the kernel left to Python; return the place of a number that is too large."""
        for place, slot in hard.tolist():
            end = _number_stop(lines.buffer, place)
            value = float(lines.buffer[place:end])
            if slot >= 0:
                with np.errstate(over="ignore"):
                    value = float(self.request.dtype.type(value))
            if not np.isfinite(value):
                return int(place)
            if slot < 0:
                labels[-1 - slot] = value
                continue
            report[parser.NONZEROS] -= value == 0
            if slot != parser.NOWHERE:
                values[slot] = value
        return None

    def join(self, parts: list[LetorPart]) -> LetorRows:
        """Close the gaps that blank lines, comments and zeros left, and return the arrays."""
        n_rows = np.array([part.report[parser.ROWS] for part in parts])
        at_row = np.concatenate(([0], np.cumsum(n_rows)))
        total = int(at_row[-1])
        X = self._join_dense(n_rows) if self.layout.dense else self._join_sparse(parts, n_rows)
        _close_gaps(self.y, self.first_row, n_rows)
        heads = [part.query_rows + at for part, at in zip(parts, at_row[:-1], strict=True)]
        return LetorRows(
            X,
            self.y[:total],
            np.concatenate(heads),
            [name for part in parts for name in part.query_names],
            _join_ids([part.doc_ids for part in parts], n_rows),
        )

    def _join_dense(self, n_rows: IntArray) -> AnyArray:
        width = self.layout.width
        _close_gaps(self.values, self.first_slot, n_rows * width)
        return (
            self.values.reshape(-1, width)
            if width
            else np.zeros((n_rows.sum(), 0), self.request.dtype)
        )

    def _join_sparse(self, parts: list[LetorPart], n_rows: IntArray) -> Matrix:
        stored = np.array([part.report[parser.ENTRIES] for part in parts])
        at_entry = np.concatenate(([0], np.cumsum(stored)))
        for number, at in enumerate(at_entry[:-1]):
            self.row_stops[self.first_row[number] :][: n_rows[number]] += at
        _close_gaps(self.row_stops, self.first_row, n_rows)
        _close_gaps(self.values, self.first_slot, stored)
        _close_gaps(self.indices, self.first_slot, stored)
        width = self.request.n_features
        if width is None:
            width = max(int(part.report[parser.WIDTH]) for part in parts)
        return csr(self.values, self.indices, np.concatenate(([0], self.row_stops)), width)


def _number_stop(buffer: Any, place: int) -> int:
    """Find the end of the number at ``place``."""
    stop = place
    while buffer[stop] not in b" \t#\r\n":
        stop += 1
    return stop


def _close_gaps(array: AnyArray, first: IntArray, used: IntArray) -> None:
    """Move what each range used down to the end of the one before, and free the room left."""
    at = 0
    for start, n in zip(first[:-1].tolist(), used.tolist(), strict=True):
        if start != at:
            array[at : at + n] = array[start : start + n]
        at += n
    if at != len(array):
        array.resize(at, refcheck=False)


def _drop_zeros(
    hard: IntArray, values: AnyArray, indices: AnyArray, row_stops: IntArray, report: IntArray
) -> None:
    """Take out entries that turned out to be zero (they underflow) only when Python read them."""
    slots = hard[hard[:, 1] >= 0, 1]
    slots = slots[(values[slots] == 0) & ~np.signbit(values[slots])]
    if len(slots):
        n_stored = int(report[parser.ENTRIES])
        for array in (values, indices):
            array[: n_stored - len(slots)] = np.delete(array[:n_stored], slots)
        stops = row_stops[: report[parser.ROWS]]
        stops -= np.searchsorted(slots, stops)
        report[parser.ENTRIES] -= len(slots)


def _read_tokens(
    lines: Lines, starts: IntArray, stops: IntArray
) -> tuple[AnyArray | None, int | None]:
    """Return tokens as an array of str (empty where there is none), or the place of a bad one."""
    present = starts >= 0
    if not present.any():
        return None, None
    lengths = np.where(present, stops - starts, 0)
    longest = int(lengths.max())
    if not _is_bloated(longest, int(lengths.sum()), len(starts)):
        characters = np.zeros((len(starts), longest), dtype=np.uint32)
        if parser.copy_tokens(lines.array, starts, stops, characters):
            return characters.view(f"U{longest}")[:, 0], None
    ids = []
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        token = lines.buffer[start:stop] if start >= 0 else b""
        if not _is_utf8(token):
            return None, start
        ids.append(token.decode("utf-8"))
    return np.array(ids, dtype=object), None


def _join_ids(parts: list[AnyArray | None], n_rows: IntArray) -> AnyArray | None:
    """Join the ids of all ranges: fixed-width text unless one long id would bloat it."""
    if all(part is None for part in parts):
        return None
    filled = [
        np.full(n, "", dtype="U1") if part is None else part
        for part, n in zip(parts, n_rows.tolist(), strict=True)
    ]
    if all(part.dtype.kind == "U" for part in filled):
        longest = max(part.dtype.itemsize for part in filled)
        if longest * n_rows.sum() <= 4 * sum(part.nbytes for part in filled):
            return np.concatenate(filled)
    return text_array([name for part in filled for name in part.tolist()])


def text_array(names: list[str]) -> AnyArray:
    """Return an array of fixed-width text, or of objects where one long name would bloat it."""
    if not _is_bloated(max(map(len, names)), sum(map(len, names)), len(names)):
        return np.array(names, dtype=str)
    return np.array(names, dtype=object)


def _is_bloated(longest: int, total: int, n: int) -> bool:
    return longest * n > 8 * total + 2**16


def _is_utf8(token: bytes) -> bool:
    try:
        token.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _zeros(n_rows: int, width: int, dtype: Any) -> AnyArray:
    try:
        return np.zeros(n_rows * width, dtype=dtype)
    except (MemoryError, ValueError):
        raise InputError(
            f"a dense matrix of {n_rows:,} documents × {width:,} features does not fit in memory: "
            "use `storage='sparse'`"
        ) from None


_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Text:
    """The bytes of a file and the name it has in messages."""

    buffer: bytes | mmap.mmap
    name: str

    @property
    def start(self) -> int:
        """Where the lines begin: after a byte order mark, if there is one."""
        return len(_BOM) if self.buffer[: len(_BOM)] == _BOM else 0


@dataclass(frozen=True)
class Lines:
    """A range of whole lines; the last may live in a buffer of its own, which ends it properly."""

    buffer: Any
    start: int
    stop: int

    @property
    def array(self) -> AnyArray:
        """The whole buffer as an array."""
        return np.frombuffer(self.buffer, dtype=np.uint8)

    def count(self, byte: bytes) -> int:
        """Count a byte in the range."""
        return int(np.count_nonzero(self.array[self.start : self.stop] == ord(byte)))


def open_text(path: Any, in_memory: int) -> Text:
    """Make the text of a path, ``"-"`` or a binary file object available."""
    name = shown_name(path)
    with open_bytes(path) as stream:
        if not hasattr(path, "read") and is_regular(stream):
            return Text(_map(stream, os.fstat(stream.fileno()).st_size), name)
        return Text(_spool(stream, in_memory), name)


def cut_lines(text: Text, range_bytes: int) -> list[Lines]:
    """Cut the text into ranges at line breaks; the cuts depend on the text only."""
    buffer, size = text.buffer, len(text.buffer)
    body = buffer.rfind(b"\n") + 1
    cuts = [min(text.start, body)]
    while cuts[-1] < body:
        target = cuts[-1] + range_bytes
        cuts.append(body if target >= body else buffer.find(b"\n", target - 1) + 1)
    ranges = [Lines(buffer, a, b) for a, b in pairwise(cuts)]
    rest = max(body, text.start)
    if rest < size:
        tail = buffer[rest:] + b"\n"
        ranges.append(Lines(tail, 0, len(tail)))
    return ranges


def _spool(source: Any, in_memory: int) -> bytes | mmap.mmap:
    """Read to the end, into memory while it is little and into a temporary file beyond."""
    blocks = []
    size = 0
    while block := source.read(BLOCK):
        blocks.append(block)
        size += len(block)
        if size > in_memory:
            break
    else:
        return b"".join(blocks)
    with _room_on_disk(), tempfile.TemporaryFile() as file:
        file.writelines(blocks)
        blocks.clear()
        while block := source.read(BLOCK):
            file.write(block)
            size += len(block)
        file.flush()
        return _map(file, size)


@contextmanager
def _room_on_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        raise FileError(
            f"{tempfile.gettempdir()}: no room to unpack the file ({error.strerror}): set TMPDIR "
            "to a directory with more space"
        ) from error


def _map(stream: IO[bytes], size: int) -> bytes | mmap.mmap:
    if size == 0:
        return b""
    return mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ)
