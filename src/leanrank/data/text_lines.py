"""Lines of text files, plain or compressed, and the numbers in them."""

from __future__ import annotations

import contextlib
import gzip
import math
import os
import re
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from leanrank.errors import FileError, ParseError

LONGEST_LINE = 1 << 28
"""Bytes of the longest line that is read, so that a damaged file cannot fill the memory."""

_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def text_lines(
    path: str | os.PathLike[str], *, longest: int = LONGEST_LINE
) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of every line, without its end.

    Parameters
    ----------
    path : str or path
        A file of UTF-8 text, compressed if its name ends in ``.gz``; ``-`` is standard input.
    longest : int
        The longest line, in bytes.
    """
    name = shown_name(path)
    try:
        with _opened(path) as stream:
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
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{name}: cannot be read ({reason})") from error


def parse_number(text: str, what: str, path: str | os.PathLike[str], line: int) -> float:
    """Return a finite number that is written in ASCII digits, or say where it is not."""
    value = decimal(text)
    if not math.isfinite(value):
        problem = f"the {what} {text[:40]!r} is not a finite number"
        raise ParseError(problem, path=shown_name(path), line=line)
    return value


def decimal(text: str) -> float:
    """Return the number that ASCII digits spell, NaN if they do not.

    >>> decimal("-2.5e1"), decimal("1_0"), decimal("１")
    (-25.0, nan, nan)
    """
    return float(text) if _DECIMAL.fullmatch(text) else math.nan


def shown_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a file as messages show it."""
    return "<stdin>" if os.fspath(path) == "-" else os.fspath(path)


def _opened(path: str | os.PathLike[str]) -> Any:
    if os.fspath(path) == "-":
        return contextlib.nullcontext(sys.stdin.buffer)
    return gzip.open(path, "rb") if os.fspath(path).endswith(".gz") else Path(path).open("rb")
