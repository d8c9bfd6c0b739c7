"""Bytes and lines of a file, a compressed file, standard input or a stream."""

from __future__ import annotations

import io
import lzma
import math
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib import import_module
from typing import IO, Any

from leanrank.errors import FileError, InputError, LeanrankError, ParseError

PACKED = ("", ".gz", ".xz", ".bz2")
"""Suffixes of compression that text files may have."""

_MAGIC = {b"\x1f\x8b": "gz", b"\xfd7zXZ\x00": "xz", b"BZh": "bz2"}
_MODULES = {"gz": "gzip", "xz": "lzma", "bz2": "bz2"}  # imported only when needed
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def shown_name(path: Any) -> str:
    """Return the name of a source in messages.

    >>> shown_name("-"), shown_name(io.BytesIO())
    ('<stdin>', '<stream>')
    """
    if hasattr(path, "read"):
        name = getattr(path, "name", None)
        return name if isinstance(name, str) else "<stream>"
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(
            f"path is {type(path).__name__}: give a file name, '-' for standard input or "
            "a binary file"
        )
    name = os.fsdecode(path)
    return "<stdin>" if name == "-" else name


@contextmanager
def open_bytes(path: Any) -> Iterator[IO[bytes]]:
    """Open a path, ``"-"`` or a binary file object for reading, decompressed.

    Compression is recognised by the first bytes, not by the suffix. Errors while reading become a
    FileError or a ParseError.
    """
    name = shown_name(path)
    kind = None
    with ExitStack() as stack:
        try:
            stream: Any = path
            if not hasattr(path, "read"):
                given = path == "-"
                stream = sys.stdin.buffer if given else stack.enter_context(open(path, "rb"))
            elif isinstance(path, io.TextIOBase):
                raise InputError(f"{name}: the file returns text: open it in binary mode ('rb')")
            if not hasattr(stream, "peek"):
                stream = io.BufferedReader(stream)
                stack.callback(stream.detach)  # the caller closes the file
            head = stream.peek(8)
            kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)
            if kind is not None:
                stream = stack.enter_context(import_module(_MODULES[kind]).open(stream))
            yield stream
        except LeanrankError:
            raise
        except FileNotFoundError:
            raise FileError(f"{name}: there is no such file") from None
        except IsADirectoryError:
            raise FileError(f"{name}: this is a directory: give one of its files") from None
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            if kind is None or getattr(error, "errno", None) is not None:
                reason = getattr(error, "strerror", None) or error
                raise FileError(f"{name}: cannot be read ({reason})") from error
            raise ParseError(
                f"the {kind} data are damaged or cut short ({error}): get the file again",
                path=name,
            ) from error


def is_regular(stream: IO[bytes]) -> bool:
    """Return whether a stream is a regular file, which can be read from any offset and again."""
    raw = getattr(stream, "raw", None)
    return isinstance(raw, io.FileIO) and stat.S_ISREG(os.fstat(raw.fileno()).st_mode)


def decimal(text: str) -> float:
    """Return the number that a text of ASCII digits spells, else NaN.

    >>> decimal("-2.5e1"), decimal("1_0"), decimal("１")
    (-25.0, nan, nan)
    """
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def quoted(token: bytes, longest: int = 40) -> str:
    """Return a token of a file in quotes for messages, cut if it is long."""
    text = token[: longest + 1].decode("utf-8", "backslashreplace")
    return repr(text if len(token) <= longest else text[:longest] + "…")


def compressed(stream: IO[bytes], name: str) -> AbstractContextManager[Any]:
    """Return a stream for writing that compresses by the suffix of its name."""
    kind = next((kind for kind in _MODULES if name.endswith(f".{kind}")), None)
    if kind is None:
        return nullcontext(stream)
    if kind == "gz":
        import gzip

        # Without the time and the temporary name, the same data give the same file.
        return gzip.GzipFile("", "wb", 6, stream, mtime=0)
    packed: AbstractContextManager[Any] = import_module(_MODULES[kind]).open(stream, "wb")
    return packed


def text_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the number and the text of every line, without its end.

    ``path`` is a file of UTF-8 text, also compressed; ``-`` is standard input.
    """
    name = shown_name(path)
    with open_bytes(path) as stream:
        for line, raw in enumerate(stream, start=1):
            try:
                text = raw.decode("utf-8")
            except UnicodeDecodeError as error:
                problem, column = "the line is not UTF-8 text", error.start + 1
                raise ParseError(problem, path=name, line=line, column=column) from None
            yield line, text.removeprefix("\ufeff" if line == 1 else "").rstrip("\r\n")


def parse_number(text: str, what: str, path: str | os.PathLike[str], line: int) -> float:
    """Return a finite number that is written in ASCII digits, or raise a ParseError."""
    value = decimal(text)
    if not math.isfinite(value):
        problem = f"the {what} {quoted(text.encode())} is not a finite number"
        raise ParseError(problem, path=shown_name(path), line=line)
    return value
