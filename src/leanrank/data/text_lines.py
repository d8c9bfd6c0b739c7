"""Lines of text files, plain or compressed, and the numbers in them."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

from leanrank.data.sources import decimal, open_bytes, quoted, shown_name
from leanrank.errors import ParseError

__all__ = ["LONGEST_LINE", "decimal", "parse_number", "shown_name", "text_lines"]

LONGEST_LINE = 1 << 28
"""Bytes of the longest line that is read, so that a damaged file cannot fill the memory."""


def text_lines(
    path: str | os.PathLike[str], *, longest: int = LONGEST_LINE
) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of every line, without its end.

    Parameters
    ----------
    path : str or path
        A file of UTF-8 text, also compressed; ``-`` is standard input.
    longest : int
        The longest line, in bytes.
    """
    name = shown_name(path)
    with open_bytes(path) as stream:
        line = 0
        while raw := stream.readline(longest + 1):
            line += 1
            if len(raw) > longest:
                problem = f"the line is longer than {longest:,} bytes: write a record per line"
                raise ParseError(problem, path=name, line=line)
            if b"\0" in raw:
                raise ParseError("the line holds a NUL byte", path=name, line=line)
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                problem, column = "the line is not UTF-8 text", error.start + 1
                raise ParseError(problem, path=name, line=line, column=column) from None
            yield line, text.removeprefix("\ufeff" if line == 1 else "").rstrip("\r\n")


def parse_number(text: str, what: str, path: str | os.PathLike[str], line: int) -> float:
    """Return a finite number that is written in ASCII digits, or say where it is not."""
    value = decimal(text)
    if not math.isfinite(value):
        problem = f"the {what} {quoted(text.encode())} is not a finite number"
        raise ParseError(problem, path=shown_name(path), line=line)
    return value
