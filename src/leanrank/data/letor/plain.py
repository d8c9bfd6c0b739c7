"""Reading LETOR text without compiled code, so that a saved model scores where nothing compiles.

Only text that is plainly right is read here; whatever is odd or wrong is left to the compiled
parser, which says what and where.
"""

from __future__ import annotations

import math
import re
from array import array
from itertools import pairwise
from typing import Any

import numpy as np

from leanrank._jit import is_compiled
from leanrank._typing import Matrix
from leanrank.data.letor.arrays import LetorRequest, LetorRows, text_array
from leanrank.data.letor.parser import LARGEST_INDEX, parse_lines
from leanrank.data.letor.source import Text
from leanrank.data.matrices import DENSE_FROM, csr

_SPACE = b" \t\v\f\r"
_LABEL = re.compile(rb"[-+.0-9eE]+")
_FEATURES = re.compile(rb"(?:[0-9]+:(?:[-+.0-9eE]+|NULL|[nN][aA][nN]) )*")
_DOCUMENT = re.compile(rb"docid[%s]*[=:][%s]*([^%s]*)" % (_SPACE, _SPACE, _SPACE))


def read_plain(text: Text, request: LetorRequest) -> LetorRows | None:
    """Read documents that are to be scored, or return None to have them read otherwise."""
    if "label" not in request.optional or request.dtype != np.float64 or is_compiled(parse_lines):
        return None
    content = bytes(text.buffer[text.start :]) if _is_short(text, request.plain_rows) else b"\0"
    if b"\0" in content:
        return None
    lines = content.replace(b"\r\n", b"\n").split(b"\n")
    try:
        rows = _Rows(request.zero_based is True, "qid" in request.optional)
        for line in lines:
            rows.add(line)
        return rows.arrays(request)
    except ValueError:
        return None


def _is_short(text: Text, n_rows: int) -> bool:
    at = 0
    for _ in range(n_rows):
        at = text.buffer.find(b"\n", at) + 1
        if not at:
            return True
    return at == len(text.buffer)


class _Rows:
    """Rows of a file so far. A ValueError means that a line is not plain."""

    def __init__(self, zero_based: bool, without_query: bool) -> None:
        self.first = 0 if zero_based else 1
        self.without_query = without_query
        self.labels: list[float] = []
        self.queries: list[bytes] = []
        self.documents: list[str] = []
        self.sizes: list[int] = []
        self.indices = array("q")
        self.values = array("d")

    def add(self, line: bytes) -> None:
        """Add a line, which may be empty or a comment."""
        body, mark, comment = line.partition(b"#")
        if b"\r" in body or b"\v" in body or b"\f" in body:
            raise ValueError
        words = body.split()
        if not words:
            return
        label, query, at = math.nan, b"", 0
        if b":" not in words[at]:
            if not _LABEL.fullmatch(words[at]):
                raise ValueError
            label, at = float(words[at]), 1
            if not math.isfinite(label):
                raise ValueError
        if words[at : at + 1] and words[at].startswith(b"qid:"):
            query, at = words[at][4:], at + 1
        if not query and (not self.without_query or words[at - 1 : at] == [b"qid:"]):
            raise ValueError
        self._add_features(words[at:])
        self.labels.append(label)
        self.queries.append(query)
        self.documents.append(_document(comment) if mark else "")

    def _add_features(self, words: list[bytes]) -> None:
        joined = b" ".join([*words, b""])
        if not _FEATURES.fullmatch(joined):
            raise ValueError
        parts = joined.replace(b":", b" ").replace(b"NULL", b"nan").split()
        indices = list(map(int, parts[::2]))
        if indices and (indices[0] < self.first or indices[-1] > LARGEST_INDEX):
            raise ValueError
        if any(a >= b for a, b in pairwise(indices)):
            raise ValueError
        self.sizes.append(len(indices))
        self.indices.extend(indices)
        self.values.extend(map(float, parts[1::2]))

    def arrays(self, request: LetorRequest) -> LetorRows:
        """Return the arrays that the compiled parser would have made."""
        if not self.labels:
            raise ValueError
        indices = np.array(self.indices, dtype=np.int64) - self.first
        values = np.array(self.values, dtype=np.float64)
        width = int(indices.max(initial=-1)) + 1
        if np.isinf(values).any() or width > (request.n_features or width):
            raise ValueError
        heads = [
            at for at, name in enumerate(self.queries) if not at or name != self.queries[at - 1]
        ]
        names = [self.queries[at] for at in heads]
        for name in names:
            name.decode("utf-8")
        return LetorRows(
            _matrix(np.array(self.sizes), indices, values, request.n_features or width, request),
            np.array(self.labels),
            np.array(heads, dtype=np.int64),
            names,
            text_array(self.documents) if any(self.documents) else None,
        )


def _matrix(sizes: Any, indices: Any, values: Any, width: int, request: LetorRequest) -> Matrix:
    n_rows = len(sizes)
    dense = np.count_nonzero(values) >= DENSE_FROM * n_rows * width
    if request.storage == "dense" or (request.storage == "auto" and dense):
        X = np.zeros((n_rows, width))
        X[np.repeat(np.arange(n_rows), sizes), indices] = values
        return X
    kept = (values != 0) | np.signbit(values)
    rows = np.repeat(np.arange(n_rows), sizes)[kept]
    starts = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=n_rows))))
    return csr(values[kept], indices[kept], starts, width)


def _document(comment: bytes) -> str:
    """Return the name of the document in a comment: see ``load_letor``."""
    words = comment.strip(_SPACE)
    named = _DOCUMENT.match(words)
    if named:
        return named[1].decode("utf-8")
    return words.decode("utf-8") if len(words.split()) == 1 else ""
