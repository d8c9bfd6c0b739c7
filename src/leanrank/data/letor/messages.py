"""The sentences for what can be wrong in a LETOR file."""

from __future__ import annotations

from leanrank.data.letor import parser
from leanrank.data.sources import quoted

_LINE = "'LABEL qid:QUERY INDEX:VALUE ...'"


def describe(code: int, line: bytes, column: int, n_features: int | None, dtype: str) -> str:
    """Describe what is wrong with the token at the zero-based ``column``, and what is expected."""
    token = _token(line, column)
    shown = quoted(token)
    index = quoted(token.partition(b":")[0])
    if code == parser.BAD_LABEL:
        if b":" in token or not token:
            return f"the label is missing before {shown}: expected {_LINE}"
        return f"the label {shown} is not a finite number: expected {_LINE}"
    if code == parser.NO_QID:
        found = f"found {shown}" if token else "the line ends"
        return f"'qid:' is missing after the label ({found}): expected {_LINE}"
    if code == parser.EMPTY_QID:
        return f"the query identifier after 'qid:' is empty: expected {_LINE}"
    if code == parser.BAD_ENTRY:
        return _bad_entry(token, shown)
    if code == parser.ZERO_INDEX:
        return "feature index 0 in a file read as one-based: load it with zero_based=True"
    if code == parser.LARGE_INDEX:
        return f"feature index {index} is too large: at most {parser.LARGEST_INDEX} is possible"
    if code == parser.INDEX_BEYOND:
        return f"feature index {index} is beyond n_features={n_features}: expected a smaller index"
    if code == parser.REPEATED_INDEX:
        return f"feature index {index} is repeated: expected each index once, in ascending order"
    if code == parser.INDEX_ORDER:
        return f"feature index {index} is out of order: expected ascending indices in a line"
    if code == parser.BAD_VALUE:
        if not token:
            return "the value after ':' is missing (is the line cut short?): expected INDEX:VALUE"
        return f"the value {shown} is not a finite number: expected INDEX:VALUE"
    if code == parser.OVERFLOW:
        remedy = "use dtype=numpy.float64 or rescale" if dtype == "float32" else "rescale"
        return f"the value {shown} is beyond the range of {dtype}: {remedy}"
    if code == parser.CHANGED:
        return "the file changed while it was read: load it again when it is complete"
    if code == parser.NUL_BYTE:
        return "a NUL byte: expected text (is the file binary, or damaged?)"
    return f"{shown} is not UTF-8: expected identifiers in UTF-8"


def token_stop(line: bytes, column: int) -> int:
    """Find where the token at ``column`` ends."""
    stop = column
    body = len(line) - line.endswith(b"\r")
    while stop < body and line[stop] not in b" \t#":
        stop += 1
    return stop


def _token(line: bytes, column: int) -> bytes:
    return line[column : token_stop(line, column)]


def _bad_entry(token: bytes, shown: str) -> str:
    index, colon, _ = token.partition(b":")
    if index[:1] == b"-" and index[1:].isdigit():
        return f"feature index {quoted(index)} is negative: expected INDEX:VALUE"
    if not colon and index.isdigit():
        return f"{shown} has no value (is the line cut short?): expected INDEX:VALUE"
    return f"{shown} is not a feature: expected INDEX:VALUE with a whole, non-negative INDEX"
