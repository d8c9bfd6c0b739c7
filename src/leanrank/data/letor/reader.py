"""From the text of a LETOR file to arrays: ranges of lines, parsed in parallel into one place.

Counting line breaks (and colons) first gives room for the rows (and entries) of every range, so
that each range is parsed straight into the final arrays: the text is read twice, the values are
written once. Whether X is dense, how wide it is and where indices start is guessed from samples;
the parse itself finds the exact answer, and in the rare case of a wrong guess runs once more.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, IntArray
from leanrank.data.letor import parser
from leanrank.data.letor.arrays import (
    LetorLayout,
    LetorPart,
    LetorRequest,
    LetorRows,
    Lines,
    RowArrays,
    Text,
    cut_lines,
)
from leanrank.data.letor.decimals import powers_of_ten
from leanrank.data.matrices import DENSE_FROM
from leanrank.data.sources import quoted
from leanrank.errors import ParseError
from leanrank.execution import Executor


def read_rows(text: Text, request: LetorRequest, executor: Executor) -> LetorRows:
    """Parse the text; raise a ParseError for the first thing in it that is wrong."""
    ranges = cut_lines(text, request.range_bytes)
    n_lines = executor.map(lambda lines: lines.count(b"\n"), ranges)
    layout = _guess(ranges, request)
    while True:
        store = RowArrays(ranges, n_lines, layout, request, executor)
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


def _guess(ranges: list[Lines], request: LetorRequest) -> LetorLayout:
    """Look at the first lines of some ranges; a small file is looked at in full."""
    step = -(-len(ranges) // request.n_samples) if ranges else 1
    bound = -1 if request.n_features is None else request.n_features
    first = 0 if request.zero_based is True else 1
    none = _no_room(request.dtype)
    total = np.zeros(parser.N_FIELDS, dtype=np.int64)
    for lines in ranges[::step]:
        stop = lines.stop
        if len(ranges) > 1 and stop - lines.start > request.sample_bytes:
            stop = lines.buffer.find(b"\n", lines.start + request.sample_bytes) + 1
        report = np.zeros(parser.N_FIELDS, dtype=np.int64)
        parser.parse_lines(
            lines.array, lines.start, stop, parser.MEASURE, request.needs, first,
            request.zero_based == "auto", 0, bound, request.dtype == np.float32, powers_of_ten(),
            *none, report,
        )  # fmt: skip
        widest = max(total[parser.WIDTH], report[parser.WIDTH])
        total += report
        total[parser.WIDTH] = widest
    return _decide(total, first, request)


def _decide(total: IntArray, first_index: int, request: LetorRequest) -> LetorLayout:
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
    return LetorLayout(dense, width, first_index)


def _settle(parts: list[LetorPart], layout: LetorLayout, request: LetorRequest) -> LetorLayout:
    """Return the layout that the exact counts ask for, or the one at hand if it will do."""
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


def _no_room(dtype: Any) -> tuple[AnyArray, AnyArray, AnyArray, AnyArray, AnyArray, AnyArray]:
    """Return empty arrays for a parse that only counts."""
    return (
        np.empty(0),
        np.empty(0, dtype=dtype),
        np.empty(0, dtype=np.int32),
        np.empty(0, dtype=np.int64),
        np.empty((0, 4), dtype=np.int64),
        np.empty((0, 2), dtype=np.int64),
    )


def _complain(
    text: Text,
    ranges: list[Lines],
    n_lines: list[int],
    parts: list[LetorPart],
    request: LetorRequest,
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
            nul = line.find(b"\0", column, _token_stop(line, column))
            if nul >= 0:
                code, column = parser.NUL_BYTE, nul
        raise ParseError(
            _describe(code, line, column, request.n_features, np.dtype(request.dtype).name),
            path=text.name,
            line=sum(n_lines[:number]) + before.count(b"\n") + 1,
            column=column + 1,
        )


_LINE = "'LABEL qid:QUERY INDEX:VALUE ...'"
_INDEX = "feature index {index} is"
_SENTENCES = {
    parser.EMPTY_QID: f"the query identifier after 'qid:' is empty: expected {_LINE}",
    parser.ZERO_INDEX: (
        "feature index 0 in a file read as one-based: load it with `zero_based=True`"
    ),
    parser.LARGE_INDEX: f"{_INDEX} too large: at most {parser.LARGEST_INDEX} is possible",
    parser.INDEX_BEYOND: f"{_INDEX} beyond n_features={{n_features}}: expected a smaller index",
    parser.REPEATED_INDEX: f"{_INDEX} repeated: expected each index once, in ascending order",
    parser.INDEX_ORDER: f"{_INDEX} out of order: expected ascending indices in a line",
    parser.CHANGED: "the file changed while it was read: load it again when it is complete",
    parser.NUL_BYTE: "a NUL byte: expected text (is the file binary, or damaged?)",
    parser.NOT_UTF8: "{shown} is not UTF-8: expected identifiers in UTF-8",
}
"""What is said of an error whose sentence does not depend on the token."""


def _describe(code: int, line: bytes, column: int, n_features: int | None, dtype: str) -> str:
    """Describe what is wrong with the token at the zero-based ``column``, and what is expected."""
    token = line[column : _token_stop(line, column)]
    shown = quoted(token)
    if code == parser.BAD_LABEL:
        if b":" in token or not token:
            return f"the label is missing before {shown}: expected {_LINE}"
        return f"the label {shown} is not a finite number: expected {_LINE}"
    if code == parser.NO_QID:
        found = f"found {shown}" if token else "the line ends"
        return f"'qid:' is missing after the label ({found}): expected {_LINE}"
    if code == parser.BAD_ENTRY:
        return _bad_entry(token, shown)
    if code == parser.BAD_VALUE:
        if not token:
            return "the value after ':' is missing (is the line cut short?): expected INDEX:VALUE"
        return f"the value {shown} is not a finite number: expected INDEX:VALUE"
    if code == parser.OVERFLOW:
        remedy = "use `dtype=numpy.float64` or rescale" if dtype == "float32" else "rescale"
        return f"the value {shown} is beyond the range of {dtype}: {remedy}"
    index = quoted(token.partition(b":")[0])
    return _SENTENCES[code].format(index=index, shown=shown, n_features=n_features)


def _token_stop(line: bytes, column: int) -> int:
    """Find where the token at ``column`` ends."""
    stop = column
    body = len(line) - line.endswith(b"\r")
    while stop < body and line[stop] not in b" \t#":
        stop += 1
    return stop


def _bad_entry(token: bytes, shown: str) -> str:
    index, colon, _ = token.partition(b":")
    if index[:1] == b"-" and index[1:].isdigit():
        return f"feature index {quoted(index)} is negative: expected INDEX:VALUE"
    if not colon and index.isdigit():
        return f"{shown} has no value (is the line cut short?): expected INDEX:VALUE"
    return f"{shown} is not a feature: expected INDEX:VALUE with a whole, non-negative INDEX"
