"""Writing LETOR lines: blocks of rows become bytes in a compiled loop.

A number is written with the fewest of 15, 16 or 17 significant digits (6 to 9 for float32) that are
proven to read back to the same bits, trailing zeros left out: every decimal of up to 15 digits that
was read is written as it was, but for its layout. A row with a number for which there is no such
proof is written by Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, IntArray
from leanrank.data.letor.decimals import (
    HIGHEST_POWER,
    LOWEST_POWER,
    ROUNDED,
    multiply_high,
    powers_of_ten,
    round_to_single,
    scale_decimal,
)
from leanrank.data.ranking_data import RankingData

_LONGEST_NUMBER = 28
_LONGEST_ENTRY = _LONGEST_NUMBER + 12


def lines_of(
    data: RankingData,
    queries: list[bytes],
    documents: list[bytes] | None,
    first_index: int,
    entries_per_block: int = 100_000,
) -> Iterator[bytes]:
    """Return the lines of all documents in the order in which they were loaded, a block at a time.

    ``queries`` has one name per query, ``documents`` one per document (perhaps empty).
    """
    rows = np.arange(len(data)) if data.order is None else np.argsort(data.order)
    query_of = np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))
    per_row = data.n_features if not data.is_sparse else data.X.nnz // max(1, len(data)) + 1
    step = max(1, entries_per_block // max(1, per_row))
    # A last column of zeros would be forgotten, and with it the number of features.
    keep_width = data.n_features > 0 and not _last_column_is_used(data)
    for start in range(0, len(rows), step):
        block = rows[start : start + step]
        row_ptr, indices, values = _entries(data.X, block)
        if keep_width and start == 0:
            row_ptr, indices, values = _with_last_zero(row_ptr, indices, values, data.n_features)
        heads = [b" qid:" + queries[q] for q in query_of[block].tolist()]
        tails = [b""] * len(block)
        if documents is not None:
            tails = [
                b" #docid = " + documents[row] if documents[row] else b"" for row in block.tolist()
            ]
        labels = np.ascontiguousarray(data.y[block])
        yield _lines(labels, heads, row_ptr, indices + first_index, values, tails)


def _last_column_is_used(data: RankingData) -> bool:
    if data.is_sparse:
        last = data.X.indices == data.n_features - 1
        return bool(np.any(_is_kept(data.X.data[last])))
    return bool(np.any(_is_kept(data.X[:, -1])))


def _is_kept(values: AnyArray) -> AnyArray:
    """Return which values are written: all but positive zeros."""
    return (values != 0) | np.signbit(values)


def _entries(X: Any, rows: IntArray) -> tuple[IntArray, IntArray, AnyArray]:
    block = X[rows]
    if isinstance(block, np.ndarray):
        kept = _is_kept(block)
        at_row, indices = np.nonzero(kept)
        values = block[at_row, indices]
    else:
        kept = _is_kept(block.data)
        at_row = np.repeat(np.arange(len(rows)), np.diff(block.indptr))[kept]
        indices, values = block.indices[kept].astype(np.int64), block.data[kept]
    row_ptr = np.searchsorted(at_row, np.arange(len(rows) + 1))
    return row_ptr, indices, values


def _with_last_zero(
    row_ptr: IntArray, indices: IntArray, values: AnyArray, width: int
) -> tuple[IntArray, IntArray, AnyArray]:
    end = int(row_ptr[1])
    later = (np.arange(len(row_ptr)) > 0).astype(np.int64)
    return row_ptr + later, np.insert(indices, end, width - 1), np.insert(values, end, 0.0)


def _lines(
    labels: AnyArray,
    heads: list[bytes],
    row_ptr: IntArray,
    indices: IntArray,
    values: AnyArray,
    tails: list[bytes],
) -> bytes:
    names = np.frombuffer(
        b"".join(part for pair in zip(heads, tails, strict=True) for part in pair), np.uint8
    )
    lengths = np.array([[len(head), len(tail)] for head, tail in zip(heads, tails, strict=True)])
    name_ptr = np.concatenate(([0], np.cumsum(lengths)))
    room = len(names) + len(labels) * (_LONGEST_NUMBER + 1) + len(values) * _LONGEST_ENTRY
    out = np.empty(room, dtype=np.uint8)
    pieces = []
    row = 0
    while row < len(labels):
        stop, size = write_rows(
            row, labels, names, name_ptr, row_ptr, indices, values,
            values.dtype == np.float32, powers_of_ten(), out,
        )  # fmt: skip
        pieces.append(out[:size].tobytes())
        if stop < len(labels):
            entries = zip(
                indices[row_ptr[stop] : row_ptr[stop + 1]].tolist(),
                values[row_ptr[stop] : row_ptr[stop + 1]],
                strict=True,
            )
            features = "".join(f" {index}:{value!s}" for index, value in entries)
            label = str(labels[stop])
            pieces.append(label.encode() + heads[stop] + features.encode() + tails[stop] + b"\n")
        row = stop + 1
    return b"".join(pieces)


@kernel
def write_rows(
    row: int,
    labels: AnyArray,
    names: AnyArray,
    name_ptr: AnyArray,
    row_ptr: AnyArray,
    indices: AnyArray,
    values: AnyArray,
    single: bool,
    powers: AnyArray,
    out: AnyArray,
) -> tuple[int, int]:
    """Write rows from ``row`` on; stop at one that is left to Python, and give it and the bytes."""
    digits = np.empty(20, dtype=np.uint8)
    at = 0
    while row < len(labels):
        begin = at
        at = _write_number(labels[row], False, powers, out, at, digits)
        if at < 0:
            return row, begin
        for i in range(name_ptr[2 * row], name_ptr[2 * row + 1]):
            out[at] = names[i]
            at += 1
        for entry in range(row_ptr[row], row_ptr[row + 1]):
            out[at] = 32
            at = _write_whole(indices[entry], out, at + 1, digits)
            out[at] = 58
            at = _write_number(np.float64(values[entry]), single, powers, out, at + 1, digits)
            if at < 0:
                return row, begin
        for i in range(name_ptr[2 * row + 1], name_ptr[2 * row + 2]):
            out[at] = names[i]
            at += 1
        out[at] = 10
        at += 1
        row += 1
    return row, at


@kernel
def _write_number(
    value: float, single: bool, powers: AnyArray, out: AnyArray, at: int, digits: AnyArray
) -> int:
    """Write a finite number and give the end, or -1 if it is left to Python."""
    if np.signbit(value):
        out[at] = 45
        at += 1
        value = -value
    if value < 1e15 and value == np.floor(value):
        return _write_whole(np.int64(value), out, at, digits)
    w, q = shortest_decimal(value, single, powers)
    if w == 0:
        return -1
    while w % 10 == 0:
        w //= 10
        q += 1
    n = 0
    while w > 0:
        digits[n] = 48 + w % 10
        w //= 10
        n += 1
    point = n + q  # digits before the decimal point
    exponent = 0
    if point > 17 or point < -4:
        exponent = point - 1
        point = 1
    if point <= 0:
        out[at] = 48
        out[at + 1] = 46
        at += 2
        for _ in range(-point):
            out[at] = 48
            at += 1
    for i in range(max(n, point)):
        if i == point and point > 0:
            out[at] = 46
            at += 1
        out[at] = digits[n - 1 - i] if i < n else 48
        at += 1
    if exponent != 0:
        out[at] = 101
        at += 1
        if exponent < 0:
            out[at] = 45
            at += 1
        at = _write_whole(abs(exponent), out, at, digits)
    return at


@kernel
def _write_whole(number: Any, out: AnyArray, at: int, digits: AnyArray) -> int:
    n = 0
    while number > 9:
        digits[n] = 48 + number % 10
        number //= 10
        n += 1
    out[at] = 48 + number
    at += 1
    while n > 0:
        n -= 1
        out[at] = digits[n]
        at += 1
    return at


@kernel
def shortest_decimal(value: float, single: bool, powers: AnyArray) -> tuple[Any, Any]:
    """Find few digits w and a power q such that w × 10^q reads back as ``value`` > 0; w = 0: none.

    The value is first taken to 17 digits, with an error of about a unit; a decimal of up to 15
    digits (6 for float32) is then its own rounding to 15 (6), so longer ones are tried only after
    that. Of those the second nearest may do where the nearest does not, beside a power of two.
    """
    q = np.int64(np.floor(math.log10(value))) - 16
    if -q > HIGHEST_POWER or -q < LOWEST_POWER:
        return np.int64(0), q
    fraction, exponent = math.frexp(value)
    factor = np.uint64(fraction * 9007199254740992.0) << np.uint64(11)
    # value = factor × 2^(exponent − 64), 10^−q = power × 2^(floor(−q log2 10) − 127)
    shift = 63 - (exponent + ((-q * 217706) >> 16))
    if shift < 1 or shift > 63:
        return np.int64(0), q
    scaled = multiply_high(factor, powers[-q - LOWEST_POWER, 0])
    longest = np.int64((scaled + (np.uint64(1) << np.uint64(shift - 1))) >> np.uint64(shift))
    unit = np.int64(100_000_000_000) if single else np.int64(100)
    while unit > 0:
        power = q
        size = unit
        while size > 1:
            size //= 10
            power += 1
        w = (longest + unit // 2) // unit
        for candidate in (w, w - 1 if w * unit > longest else w + 1):
            back, how = scale_decimal(candidate, power, powers)
            if single and how == ROUNDED:
                back, how = round_to_single(back, how)
            if how == ROUNDED and back == value:
                return candidate, power
        unit //= 10
    return np.int64(0), q
