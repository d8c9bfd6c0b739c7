"""From the text of a LETOR file to arrays: ranges of lines, parsed in parallel into one place.

Counting line breaks (and colons) first gives room for the rows (and entries) of every range, so that
each range is parsed straight into the final arrays: the text is read twice, the values are written
once. Whether X is dense, how wide it is and where indices start is guessed from samples; the parse
itself finds the exact answer, and in the rare case of a wrong guess runs once more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data import _letor_parser as parser
from leanrank.data._letor_complaints import describe, token_stop
from leanrank.data._letor_numbers import powers_of_ten, read_hard
from leanrank.data._letor_source import Text
from leanrank.errors import InputError, ParseError
from leanrank.execution import Executor

DENSE_FROM = 0.25
"""Share of non-zeros from which ``storage="auto"`` chooses a dense matrix."""

RANGE_BYTES = 2**20
"""Text in one unit of work."""

_SAMPLES, _SAMPLE_BYTES = 16, 2**16
_HARD_ROOM = 64


@dataclass(frozen=True)
class Request:
    """What the caller wants."""

    n_features: int | None
    zero_based: bool | str
    dtype: Any
    storage: str


@dataclass(frozen=True)
class Layout:
    """How values are stored: known or guessed before parsing, checked after."""

    dense: bool
    width: int
    first_index: int


@dataclass(frozen=True)
class Lines:
    """A range of whole lines; the last may live in a buffer of its own, which ends it properly."""

    buffer: Any
    start: int
    stop: int

    @property
    def bytes(self) -> AnyArray:
        return np.frombuffer(self.buffer, dtype=np.uint8)


@dataclass(frozen=True)
class Part:
    """What became of a range, beside the values in their place."""

    report: IntArray
    query_rows: IntArray
    query_names: list[bytes]
    doc_ids: AnyArray | None
    error: tuple[int, int] | None


@dataclass(frozen=True)
class Rows:
    """A whole file in the order of its lines: what queries start where, and the documents' names."""

    X: Matrix
    y: FloatArray
    run_rows: IntArray
    run_names: list[bytes]
    doc_ids: AnyArray | None


def read_rows(text: Text, request: Request, executor: Executor) -> Rows:
    """Parse the text; raise a ParseError for the first thing in it that is wrong."""
    ranges = cut_lines(text)
    n_lines = executor.map(_count_lines, ranges)
    layout = _guess(ranges, request)
    while True:
        store = _Store(ranges, n_lines, layout, request, executor)
        parts = executor.map(store.parse, range(len(ranges)))
        settled = _settle(parts, layout, request)
        if settled == layout:
            break
        layout = settled
    _complain(text, ranges, n_lines, parts, request)
    if not sum(int(part.report[parser.ROWS]) for part in parts):
        raise ParseError(
            "no document: expected lines such as '2 qid:1 1:0.5 2:3 #docid = A7'", path=text.name
        )
    return store.join(parts)


def cut_lines(text: Text) -> list[Lines]:
    """Cut the text into ranges at line breaks; the cuts depend on the text only."""
    buffer, size = text.buffer, len(text.buffer)
    body = buffer.rfind(b"\n") + 1
    cuts = [min(text.start, body)]
    while cuts[-1] < body:
        target = cuts[-1] + RANGE_BYTES
        cuts.append(body if target >= body else buffer.find(b"\n", target - 1) + 1)
    ranges = [Lines(buffer, a, b) for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    rest = max(body, text.start)
    if rest < size:
        tail = buffer[rest:] + b"\n"
        ranges.append(Lines(tail, 0, len(tail)))
    return ranges


def _count_lines(lines: Lines) -> int:
    return _count_byte(lines, ord("\n"))


def _count_colons(lines: Lines) -> int:
    return _count_byte(lines, ord(":"))


def _count_byte(lines: Lines, byte: int) -> int:
    return int(np.count_nonzero(lines.bytes[lines.start : lines.stop] == byte))


def _guess(ranges: list[Lines], request: Request) -> Layout:
    """Look at the first lines of some ranges; a small file is looked at in full."""
    step = -(-len(ranges) // _SAMPLES) if ranges else 1
    bound = -1 if request.n_features is None else request.n_features
    first = 0 if request.zero_based is True else 1
    none = _no_room(request.dtype)
    total = np.zeros(parser.N_FIELDS, dtype=np.int64)
    for lines in ranges[::step]:
        stop = lines.stop
        if len(ranges) > 1 and stop - lines.start > _SAMPLE_BYTES:
            stop = lines.buffer.find(b"\n", lines.start + _SAMPLE_BYTES) + 1
        report = np.zeros(parser.N_FIELDS, dtype=np.int64)
        parser.parse_lines(
            lines.bytes, lines.start, stop, parser.MEASURE, first, request.zero_based == "auto",
            0, bound, request.dtype == np.float32, powers_of_ten(), *none, report,
        )  # fmt: skip
        widest = max(total[parser.WIDTH], report[parser.WIDTH])
        total += report
        total[parser.WIDTH] = widest
    return _decide(total, first, request)


def _decide(total: IntArray, first_index: int, request: Request) -> Layout:
    """Choose the layout from what was counted with indices that start at ``first_index``."""
    width = int(total[parser.WIDTH])
    if request.zero_based == "auto" and total[parser.ZERO_SEEN]:
        width += first_index
        first_index = 0
    if request.n_features is not None:
        width = request.n_features
    dense = request.storage == "dense"
    if request.storage == "auto":
        cells = int(total[parser.ROWS]) * width
        dense = int(total[parser.NONZEROS]) >= DENSE_FROM * cells
    return Layout(dense, width, first_index)


def _settle(parts: list[Part], layout: Layout, request: Request) -> Layout:
    """Give the layout that the exact counts ask for, or the one at hand if it will do."""
    if not parts:
        return layout
    reports = np.array([part.report for part in parts])
    total = reports.sum(axis=0)
    total[parser.WIDTH] = reports[:, parser.WIDTH].max()
    exact = _decide(total, layout.first_index, request)
    failed = any(part.error is not None for part in parts)
    if failed:
        # The counts stop at the error; only another start of the indices could move it.
        return layout if exact.first_index == layout.first_index else exact
    if not exact.dense and not layout.dense:
        return replace(layout, first_index=exact.first_index)
    return exact


class _Store:
    """Room for all rows, filled by ranges in any order and then closed up."""

    def __init__(
        self,
        ranges: list[Lines],
        n_lines: list[int],
        layout: Layout,
        request: Request,
        executor: Executor,
    ) -> None:
        self.ranges = ranges
        self.layout = layout
        self.request = request
        self.first_row = np.concatenate(([0], np.cumsum(n_lines, dtype=np.int64)))
        room = int(self.first_row[-1])
        self.y = np.empty(room)
        if layout.dense:
            self.first_slot = self.first_row * layout.width
            self.values = _zeros(room, layout.width, request.dtype)
            self.indices = np.empty(0, dtype=np.int32)
            self.row_stops = np.empty(room, dtype=np.int64)
        else:
            n_colons = executor.map(_count_colons, ranges)
            self.first_slot = np.concatenate(([0], np.cumsum(n_colons, dtype=np.int64)))
            self.values = np.empty(int(self.first_slot[-1]), dtype=request.dtype)
            self.indices = np.empty(int(self.first_slot[-1]), dtype=np.int32)
            self.row_stops = np.empty(room, dtype=np.int64)

    def parse(self, number: int) -> Part:
        """Parse one range into its place."""
        lines, layout, request = self.ranges[number], self.layout, self.request
        rows = slice(*self.first_row[number : number + 2])
        slots = slice(*self.first_slot[number : number + 2])
        values, row_stops = self.values[slots], self.row_stops[rows]
        indices = self.indices if layout.dense else self.indices[slots]
        spans = np.empty((rows.stop - rows.start, 4), dtype=np.int64)
        n_hard = _HARD_ROOM
        hard = np.empty((0, 2), dtype=np.int64)
        while n_hard > len(hard):
            hard = np.empty((n_hard, 2), dtype=np.int64)
            report = np.zeros(parser.N_FIELDS, dtype=np.int64)
            parser.parse_lines(
                lines.bytes, lines.start, lines.stop,
                parser.DENSE if layout.dense else parser.SPARSE,
                layout.first_index, request.zero_based == "auto", layout.width,
                -1 if request.n_features is None else request.n_features,
                request.dtype == np.float32, powers_of_ten(),
                self.y[rows], values, indices, row_stops, spans, hard, report,
            )  # fmt: skip
            n_hard = int(report[parser.N_HARD])
        error = None
        if report[parser.ERROR] != parser.FINE:
            error = (int(report[parser.ERROR]), int(report[parser.PLACE]))
        if n_hard:
            place = self._read_hard(lines, hard[:n_hard], self.y[rows], values)
            if place is not None:
                error = (parser.OVERFLOW, place)
            elif not layout.dense:
                _drop_zeros(hard[:n_hard], values, indices, row_stops, report)
        spans = spans[: report[parser.ROWS]]
        heads = np.flatnonzero(spans[:, parser.QUERY] >= 0)
        names = [lines.buffer[a:b] for a, b in spans[heads, :2].tolist()]
        doc_ids, bad = _read_tokens(lines, spans[:, 2], spans[:, 3])
        for head, name in zip(heads.tolist(), names, strict=True):
            if not name.isascii() and not _is_utf8(name):
                place = int(spans[head, parser.QUERY])
                bad = place if bad is None else min(bad, place)
                break
        if bad is not None:
            error = (parser.NOT_UTF8, bad)
        return Part(report, heads, names, doc_ids, error)

    def _read_hard(
        self, lines: Lines, hard: IntArray, labels: FloatArray, values: AnyArray
    ) -> int | None:
        """Read what the kernel left to Python; give the place of a number that is too large."""
        for place, slot in hard.tolist():
            end = token_stop_in(lines.buffer, place)
            single = slot >= 0 and self.request.dtype == np.float32
            value = read_hard(lines.buffer[place:end].decode("ascii"), single)
            if not np.isfinite(value):
                return int(place)
            if slot >= 0:
                values[slot] = value
            else:
                labels[-1 - slot] = value
        return None

    def join(self, parts: list[Part]) -> Rows:
        """Close the gaps that blank lines, comments and zeros left, and give the arrays."""
        n_rows = np.array([part.report[parser.ROWS] for part in parts])
        at_row = np.concatenate(([0], np.cumsum(n_rows)))
        total = int(at_row[-1])
        X = self._join_dense(n_rows) if self.layout.dense else self._join_sparse(parts, n_rows)
        _close_gaps(self.y, self.first_row, n_rows)
        heads = [part.query_rows + at for part, at in zip(parts, at_row[:-1], strict=True)]
        return Rows(
            X,
            self.y[:total],
            np.concatenate(heads),
            [name for part in parts for name in part.query_names],
            _join_ids([part.doc_ids for part in parts], n_rows),
        )

    def _join_dense(self, n_rows: IntArray) -> AnyArray:
        width = self.layout.width
        _close_gaps(self.values, self.first_slot, n_rows * width)
        return self.values.reshape(-1, width) if width else np.zeros((n_rows.sum(), 0), self.request.dtype)

    def _join_sparse(self, parts: list[Part], n_rows: IntArray) -> Matrix:
        from scipy.sparse import csr_array

        stored = np.array([part.report[parser.ENTRIES] for part in parts])
        at_entry = np.concatenate(([0], np.cumsum(stored)))
        for number, at in enumerate(at_entry[:-1]):
            self.row_stops[self.first_row[number] :][: n_rows[number]] += at
        _close_gaps(self.row_stops, self.first_row, n_rows)
        _close_gaps(self.values, self.first_slot, stored)
        _close_gaps(self.indices, self.first_slot, stored)
        small = at_entry[-1] <= np.iinfo(np.int32).max
        starts = np.concatenate(([0], self.row_stops)).astype(np.int32 if small else np.int64)
        width = self.request.n_features
        if width is None:
            width = max(int(part.report[parser.WIDTH]) for part in parts)
        matrix = csr_array((self.values, self.indices, starts), shape=(len(starts) - 1, width))
        matrix.has_canonical_format = True
        return matrix


def token_stop_in(buffer: Any, place: int) -> int:
    """Find the end of the number at ``place``."""
    stop = place
    while buffer[stop] not in b" \t#\r\n":
        stop += 1
    return stop


def _close_gaps(array: AnyArray, first: IntArray, used: IntArray) -> None:
    """Move what each range used down to the end of the one before, and give back the room left."""
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


def _read_tokens(lines: Lines, starts: IntArray, stops: IntArray) -> tuple[AnyArray | None, int | None]:
    """Give tokens as an array of str (empty where there is none), or the place of a bad one."""
    present = starts >= 0
    if not present.any():
        return None, None
    lengths = np.where(present, stops - starts, 0)
    longest = int(lengths.max())
    if longest * len(starts) <= 8 * int(lengths.sum()) + 2**16:
        characters = np.zeros((len(starts), longest), dtype=np.uint32)
        if parser.copy_tokens(lines.bytes, starts, stops, characters):
            return characters.view(f"U{longest}")[:, 0], None
    ids = []
    for start, stop in zip(starts.tolist(), stops.tolist(), strict=True):
        token = lines.buffer[start:stop] if start >= 0 else b""
        if not _is_utf8(token):
            return None, start
        ids.append(token.decode("utf-8"))
    return np.array(ids, dtype=object), None


def _join_ids(parts: list[AnyArray | None], n_rows: IntArray) -> AnyArray | None:
    """Put the ids of all ranges together; fixed-width text unless one long id would bloat it."""
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
    listed = np.concatenate([part.astype(object) for part in filled])
    lengths = np.array([len(name) for name in listed])
    if lengths.max() * len(listed) <= 8 * lengths.sum() + 2**16:
        return listed.astype(str)
    return listed


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
            "use storage='sparse'"
        ) from None


def _no_room(dtype: Any) -> tuple[AnyArray, ...]:
    """Give empty arrays for a parse that only counts."""
    return (
        np.empty(0),
        np.empty(0, dtype=dtype),
        np.empty(0, dtype=np.int32),
        np.empty(0, dtype=np.int64),
        np.empty((0, 4), dtype=np.int64),
        np.empty((0, 2), dtype=np.int64),
    )


def _complain(
    text: Text, ranges: list[Lines], n_lines: list[int], parts: list[Part], request: Request
) -> None:
    """Raise the error of the first range that has one."""
    for number, part in enumerate(parts):
        if part.error is None:
            continue
        code, place = part.error
        lines = ranges[number]
        before = lines.buffer[lines.start : place]
        line_start = lines.start + before.rfind(b"\n") + 1
        line = lines.buffer[line_start : lines.buffer.find(b"\n", place)]
        column = place - line_start
        if code not in (parser.NUL_BYTE, parser.NOT_UTF8):
            nul = line.find(b"\0", column, token_stop(line, column))
            if nul >= 0:
                code, column = parser.NUL_BYTE, nul
        raise ParseError(
            describe(code, line, column, request.n_features, np.dtype(request.dtype).name),
            path=text.name,
            line=sum(n_lines[:number]) + before.count(b"\n") + 1,
            column=column + 1,
        )
