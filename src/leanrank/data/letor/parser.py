"""The compiled parser of LETOR lines: one function that reads a range of whole lines.

The text it is given ends with a line break, so it looks for that byte and never for the end. It
stops at the first thing that is wrong and returns what and where; the sentence is made elsewhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.matrices import MOST_FEATURES

# Fields of the report; the entries are those listed, the place is that of the error.
ROWS, ENTRIES, NONZEROS, WIDTH, N_HARD, ERROR, PLACE, N_FIELDS = range(8)

FINE, BAD_LABEL, NO_QID, EMPTY_QID, BAD_ENTRY, ZERO_INDEX, INDEX_BEYOND = range(7)
INDEX_ORDER, BAD_VALUE, OVERFLOW, NOT_TEXT = range(7, 11)
READ, HARD, NOT_A_NUMBER = range(3)  # how a number was read; hard ones are left to Python

NOWHERE = 2**62  # the slot of a value that is read but not kept
LARGEST_INDEX = MOST_FEATURES - 1

# Columns of the spans: where the query's name (-1 when it is the name of the row before) and the
# document's (-1 when there is none) start and stop.
QUERY, QUERY_STOP, DOCUMENT, DOCUMENT_STOP = range(4)

LABEL_NEEDED, QUERY_NEEDED = 1, 2
"""What every line must have; without the bit, lines may lack it."""

_DOCID, _QID, _NULL = tuple(b"docid"), tuple(b"qid:"), tuple(b"NULL")
TENS = np.array([10.0**i for i in range(23)])
_KEPT = 100_000_000_000_000_000  # digits are taken while w is below: w stays under 10^18


class Rules(NamedTuple):
    """How lines are read.

    Indices start at ``first_index``, 0 or 1. Those beyond ``n_features`` are refused, unless it is
    negative. Values go to dense rows of ``width`` values, and what lies beyond is only counted; or
    they are listed with their indices. ``single`` rounds values to float32 from float64.
    """

    dense: bool
    needs: int
    first_index: int
    width: int
    n_features: int
    single: bool


class Room(NamedTuple):
    """Arrays that are filled from the range's first row on.

    Numbers that Python has to read are noted in ``hard`` with their place, their end and their slot
    in the values, -1 - row for a label.
    """

    labels: FloatArray
    values: AnyArray
    indices: AnyArray
    row_stops: IntArray
    spans: IntArray
    hard: IntArray


@kernel
def parse_lines(
    text: AnyArray, start: int, stop: int, rules: Rules, room: Room, report: IntArray
) -> None:
    """Read the lines of ``text[start:stop]``.

    A document without a label gets NaN, and one without a query an empty name. Zeros are not
    listed.
    """
    dense, needs, first_index, width, n_features, single = rules
    labels, values, indices, row_stops, spans, hard = room
    row = 0
    stored = 0
    n_nonzero = 0
    widest = 0
    n_hard = 0
    error = FINE
    place = start
    query = query_stop = np.int64(-1)  # what uses a plain −1 is compiled for that number as well
    at = start
    while at < stop:
        at = _skip_blanks(text, at)
        if text[at] == 13 and text[at + 1] == 10:
            at += 1
        if text[at] == 10:
            at += 1
            continue
        if text[at] == 35:
            at = _next_line(text, at)
            continue

        place = at
        at, value, how, error = _read_label(text, at, needs)
        if error != FINE:
            break
        if how == HARD:
            n_hard = _note(hard, n_hard, place, at, -1 - row)
        labels[row] = value
        place = _skip_blanks(text, at)
        begin, at, error = _read_query(text, place, needs)
        if error != FINE:
            break
        same = query >= 0 and _are_equal(text, begin, at, query, query_stop)
        spans[row, QUERY] = -1 if same else begin
        spans[row, QUERY_STOP] = at
        query, query_stop = begin, at

        previous = -1
        row_start = row * width
        while True:
            at = _skip_blanks(text, at)
            if text[at] == 13 and text[at + 1] == 10:
                at += 1
            if text[at] == 10 or text[at] == 35:
                break
            place = at
            index: Any = 0
            while True:
                digit = np.int64(text[at]) - 48
                if digit < 0 or digit > 9:
                    break
                if index <= LARGEST_INDEX:
                    index = index * 10 + digit
                at += 1
            if at == place or text[at] != 58:
                error = BAD_ENTRY
                break
            if index <= previous:
                error = INDEX_ORDER
                break
            if index < first_index:
                error = ZERO_INDEX
                break
            previous = index
            column = index - first_index
            if index > LARGEST_INDEX or (n_features >= 0 and column >= n_features):
                error = INDEX_BEYOND
                break
            at += 1
            place = at
            # Short plain decimals are read here: nearly all values are, and a call costs as much.
            negative = text[at] == 45
            if negative:
                at += 1
            begin = at
            w: Any = 0
            while True:
                digit = np.int64(text[at]) - 48
                if digit < 0 or digit > 9:
                    break
                w = w * 10 + digit
                at += 1
            n_digits = at - begin
            places = 0
            if text[at] == 46:
                at += 1
                begin = at
                while True:
                    digit = np.int64(text[at]) - 48
                    if digit < 0 or digit > 9:
                        break
                    w = w * 10 + digit
                    at += 1
                places = at - begin
                n_digits += places
            how = READ
            if 1 <= n_digits <= 15 and (text[at] == 32 or text[at] == 10):
                value = float(w) if places == 0 else float(w) / TENS[places]
                if negative:
                    value = -value
            else:
                at, value, how = _read_value(text, place)
                if how == NOT_A_NUMBER:
                    error = BAD_VALUE
                    break
            if single:
                value = np.float64(np.float32(value))
                if np.isinf(value):
                    error = OVERFLOW
                    break
            if how == HARD or value != 0:
                n_nonzero += 1
            slot = NOWHERE
            if dense:
                if column < width:
                    slot = row_start + column
                    values[slot] = value
            elif how == HARD or value != 0:
                slot = stored
                values[slot] = value
                indices[slot] = column
                stored += 1
            if how == HARD:
                n_hard = _note(hard, n_hard, place, at, slot)
        if error != FINE:
            break
        widest = max(widest, previous - first_index + 1)

        document, document_stop = -1, -1
        if text[at] == 35:
            document, document_stop = _find_document(text, at + 1)
        at = _next_line(text, at)
        spans[row, DOCUMENT] = document
        spans[row, DOCUMENT_STOP] = document_stop
        row_stops[row] = stored
        row += 1
    report[ROWS] = row
    report[ENTRIES] = stored
    report[NONZEROS] = n_nonzero
    report[WIDTH] = widest
    report[N_HARD] = n_hard
    report[ERROR] = error
    report[PLACE] = place


@kernel
def _note(hard: IntArray, at: int, place: int, stop: int, slot: int) -> int:
    hard[at, 0] = place
    hard[at, 1] = stop
    hard[at, 2] = slot
    return at + 1


@kernel
def _read_label(text: AnyArray, start: int, needs: int) -> tuple[int, float, int, int]:
    """Read the label at the start of a line: its end, its value, how it was read, an error."""
    at, value, how = read_decimal(text, start)
    ends = _ends_token(text[at]) or (text[at] == 13 and text[at + 1] == 10)
    if how != NOT_A_NUMBER and ends:
        return at, value, how, FINE
    absent = _begins_with(text, start, _QID) or (how != NOT_A_NUMBER and text[at] == 58)
    if absent and not needs & LABEL_NEEDED:
        return start, np.nan, READ, FINE
    return at, value, how, BAD_LABEL


@kernel
def _read_query(text: AnyArray, start: int, needs: int) -> tuple[int, int, int]:
    """Find the query's name after ``qid:``: where it begins and ends, and an error."""
    if not _begins_with(text, start, _QID):
        return start, start, NO_QID if needs & QUERY_NEEDED else FINE
    at = start + 4
    while not _ends_token(text[at]) and not (text[at] == 13 and text[at + 1] == 10):
        at += 1
    return start + 4, at, EMPTY_QID if at == start + 4 else FINE


@kernel
def _read_value(text: AnyArray, start: int) -> tuple[int, float, int]:
    """Read any value of a feature: its end, the number (NaN if missing), how it was read."""
    at, value, how = read_decimal(text, start)
    if how == NOT_A_NUMBER and _is_missing(text, start):
        at, value, how = start + (4 if text[start + 1] == _NULL[1] else 3), np.nan, READ
    ends = _ends_token(text[at]) or (text[at] == 13 and text[at + 1] == 10)
    return at, value, how if ends else NOT_A_NUMBER


@kernel
def read_decimal(text: AnyArray, at: int) -> tuple[int, float, int]:
    """Read the number w × 10^q that starts at ``at``: its end, its value, how it was read."""
    negative = text[at] == 45
    if negative or text[at] == 43:
        at += 1
    w: Any = np.int64(0)
    q: Any = np.int64(0)
    n_digits, hard, point = 0, False, False
    while True:
        digit = np.int64(text[at]) - 48
        if digit == -2 and not point:
            point = True
        elif digit < 0 or digit > 9:
            break
        else:
            if w < _KEPT:
                w = w * 10 + digit
                q -= point
            else:
                q += not point
                hard |= digit != 0
            n_digits += 1
        at += 1
    if n_digits == 0:
        return at, 0.0, NOT_A_NUMBER
    if text[at] == 101 or text[at] == 69:
        at += 1
        below = text[at] == 45
        if below or text[at] == 43:
            at += 1
        start = at
        power: Any = np.int64(0)
        while True:
            digit = np.int64(text[at]) - 48
            if digit < 0 or digit > 9:
                break
            power = min(power * 10 + digit, 100_000)
            at += 1
        if at == start:
            return at, 0.0, NOT_A_NUMBER
        hard |= power == 100_000
        q += -power if below else power
    value = 0.0
    if w != 0:
        hard |= q < -22 or q > 22 or (q > 0 and w > 2**53)
        if not hard and q >= 0:
            value = float(w) * TENS[q]
        elif not hard:
            value, hard = _divide(w, TENS[-q])
    return at, -value if negative else value, HARD if hard and w != 0 else READ


@kernel
def _divide(w: int, power: float) -> tuple[float, bool]:
    """Divide a whole number by a power of ten in twice the precision; True if a tie is too near."""
    high = float(w)
    value = high / power
    # the error of value × power, by Dekker's product of halves
    a = 134217729.0 * value
    b = 134217729.0 * power
    a_high, b_high = a - (a - value), b - (b - power)
    a_low, b_low = value - a_high, power - b_high
    product = value * power
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    rest = (((high - product) - error) + float(w - np.int64(high))) / power
    near = value * 2.0**-95
    return value + rest, value + (rest - near) != value + (rest + near)


@kernel
def _is_missing(text: AnyArray, at: int) -> bool:
    """Return whether ``NULL``, as in LETOR 3.0, or ``nan`` in any case stands here."""
    if text[at] | 32 == 110 and text[at + 1] | 32 == 97:
        return bool(text[at + 2] | 32 == 110)
    return bool(_begins_with(text, at, _NULL))


@kernel
def _begins_with(text: AnyArray, at: int, word: Any) -> bool:
    for i in range(len(word)):  # noqa: SIM110
        if text[at + i] != word[i]:
            return False
    return True


@kernel
def _are_equal(text: AnyArray, begin: int, end: int, other: int, other_end: int) -> bool:
    if end - begin != other_end - other:
        return False
    for i in range(end - begin):  # noqa: SIM110
        if text[begin + i] != text[other + i]:
            return False
    return True


@kernel
def _skip_blanks(text: AnyArray, at: int) -> int:
    while text[at] == 32 or text[at] == 9:
        at += 1
    return at


@kernel
def copy_tokens(text: AnyArray, starts: AnyArray, stops: AnyArray, out: AnyArray) -> bool:
    """Copy ASCII tokens into rows of UCS-4 characters; return whether all were ASCII text."""
    for i in range(len(starts)):
        if starts[i] >= 0:
            for j in range(stops[i] - starts[i]):
                byte = text[starts[i] + j]
                if byte > 127 or byte == 0:
                    return False
                out[i, j] = byte
    return True


@kernel
def _ends_token(byte: int) -> bool:
    return byte == 32 or byte == 10 or byte == 9 or byte == 35


@kernel
def _next_line(text: AnyArray, at: int) -> int:
    while text[at] != 10:
        at += 1
    return at + 1


@kernel
def _find_document(text: AnyArray, at: int) -> tuple[int, int]:
    """Find the document's name in a comment: ``docid = NAME``, ``docid:NAME``, or one word."""
    at = _skip_space(text, at)
    begin = at
    if _begins_with(text, at, _DOCID):
        mark = _skip_space(text, at + 5)
        if text[mark] == 61 or text[mark] == 58:
            begin = _skip_space(text, mark + 1)
            at = begin
            while text[at] != 10 and not _is_space(text[at]):
                at += 1
            return (begin, at) if at > begin else (-1, -1)
    while text[at] != 10 and not _is_space(text[at]):
        at += 1
    alone = at > begin and text[_skip_space(text, at)] == 10
    return (begin, at) if alone else (-1, -1)


@kernel
def _skip_space(text: AnyArray, at: int) -> int:
    while text[at] != 10 and _is_space(text[at]):
        at += 1
    return at


@kernel
def _is_space(byte: int) -> bool:
    return byte == 32 or (9 <= byte <= 13)
