"""A slow reading of LETOR text, from the documented rules; it shares nothing with leanrank."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

NUMBER = re.compile(rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
LARGEST_INDEX = 2**31 - 2


class Wrong(Exception):
    """The first thing wrong: one-based line and column, and a word for the kind."""

    def __init__(self, line: int, column: int, kind: str) -> None:
        super().__init__(line, column, kind)
        self.line, self.column, self.kind = line, column, kind


@dataclass
class Parsed:
    """A file in the order of its lines."""

    rows: list[dict]
    shape: tuple[int, int]
    y: np.ndarray
    qid: list
    doc_ids: list | None
    dtype: type

    @property
    def X(self) -> np.ndarray:
        """The values as a dense matrix."""
        X = np.zeros(self.shape, dtype=self.dtype)
        for at, row in enumerate(self.rows):
            for column, value in row.items():
                X[at, column] = value
        return X


def parse(content: bytes, *, n_features=None, zero_based=False, dtype=np.float64) -> Parsed:
    """Read the text of a file."""
    base = 0 if zero_based else 1
    rows = _rows(content, n_features, base, dtype)
    if not rows:
        raise Wrong(0, 0, "no document")
    widest = max((index for row in rows for index in row[2]), default=base - 1) - base + 1
    shape = (len(rows), widest if n_features is None else n_features)
    values = [{index - base: value for index, value in row[2].items()} for row in rows]
    names = [row[1] for row in rows]
    if all(
        re.fullmatch(r"0|-?[1-9][0-9]*", n, re.ASCII) and -(2**63) <= int(n) < 2**63 for n in names
    ):
        names = [int(name) for name in names]
    ids = [row[3] for row in rows]
    y = np.array([row[0] for row in rows])
    return Parsed(values, shape, y, names, ids if any(ids) else None, dtype)


def _rows(content, n_features, base, dtype):
    rows = []
    if content.startswith(b"\xef\xbb\xbf"):
        content = content[3:]
    for number, line in enumerate(content.split(b"\n"), 1):
        row = _line(line.removesuffix(b"\r"), number, n_features, base, dtype)
        if row is not None:
            rows.append(row)
    return rows


def _line(line, number, n_features, base, dtype):
    body, _, comment = line.partition(b"#")
    tokens = [(m.start(), m.group()) for m in re.finditer(rb"[^ \t]+", body)]
    result = None
    if tokens:

        def wrong(column, kind):
            return Wrong(number, column + 1, kind)

        column, token = tokens[0]
        if not NUMBER.fullmatch(token):
            raise wrong(column, "label")
        label = float(token)
        if np.isinf(label):
            raise wrong(column, "overflow")
        if len(tokens) < 2 or not tokens[1][1].startswith(b"qid:"):
            raise wrong(tokens[1][0] if len(tokens) > 1 else len(body), "qid")
        column, token = tokens[1]
        query = token[4:]
        if not query:
            raise wrong(column, "empty qid")
        query_column = column + 4
        entries = {}
        previous = -1
        for column, token in tokens[2:]:
            match = re.match(rb"([0-9]+):", token)
            if not match:
                raise wrong(column, "entry")
            index = int(match.group(1))
            if index <= previous:
                raise wrong(column, "order")
            if index > LARGEST_INDEX:
                raise wrong(column, "large")
            if index == 0 and base == 1:
                raise wrong(column, "zero")
            if n_features is not None and index - base >= n_features:
                raise wrong(column, "beyond")
            previous = index
            value = token[match.end() :]
            if value.lower() == b"nan" or value == b"NULL":
                entries[index] = np.nan
                continue
            if not NUMBER.fullmatch(value):
                raise wrong(column + match.end(), "value")
            entries[index] = _value(value.decode(), dtype)
            if np.isinf(entries[index]):
                raise wrong(column + match.end(), "overflow")
    if tokens:
        if not _is_utf8(query):
            raise wrong(query_column, "utf8")
        document, at = _document(comment)
        if not _is_utf8(document):
            raise Wrong(number, len(body) + 2 + at, "utf8")
        result = label, query.decode(), entries, document.decode()
    return result


def _document(comment: bytes) -> tuple[bytes, int]:
    match = re.match(rb"\s*docid\s*[=:]\s*(\S*)", comment) or re.fullmatch(rb"\s*(\S+)\s*", comment)
    return (match.group(1), match.start(1)) if match else (b"", 0)


def _is_utf8(token: bytes) -> bool:
    return b"\0" not in token and token.decode("utf-8", "replace").encode() == token


def _value(token: str, dtype):
    with np.errstate(over="ignore"):
        return np.dtype(dtype).type(float(token))
