"""The sentences for what can be wrong in a LETOR file."""

from __future__ import annotations

from leanrank.data.letor import parser
from leanrank.data.sources import quoted

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


def describe(code: int, line: bytes, column: int, n_features: int | None, dtype: str) -> str:
    """Describe what is wrong with the token at the zero-based ``column``, and what is expected."""
    token = line[column : token_stop(line, column)]
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


def token_stop(line: bytes, column: int) -> int:
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
