"""Reading bytes and lines from a file, a compressed file, standard input or a stream."""

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
    """Open a path, ``"-"`` or a binary file object for reading, unpacked on the way.

    Compression is recognised by the first bytes, not by the suffix. An error while reading becomes
    one sentence.
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
                stack.callback(stream.detach)  # the file stays the caller's
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
            raise FileError(f"{name}: this is a directory, give one of its files") from None
        except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
            if kind is None or getattr(error, "errno", None) is not None:
                reason = getattr(error, "strerror", None) or error
                raise FileError(f"{name}: cannot be read ({reason})") from error
            raise ParseError(
                f"the {kind} data is damaged or cut short ({error}): fetch or make the file again",
                path=name,
            ) from error


def is_regular(stream: IO[bytes]) -> bool:
    """Return whether a stream is a file that can be entered anywhere and read again."""
    raw = getattr(stream, "raw", None)
    return isinstance(raw, io.FileIO) and stat.S_ISREG(os.fstat(raw.fileno()).st_mode)


def decimal(text: str) -> float:
    """Return the number that ASCII digits spell, NaN if they do not.

    >>> decimal("-2.5e1"), decimal("1_0"), decimal("１")
    (-25.0, nan, nan)
    """
    return float(text) if _NUMBER.fullmatch(text) else math.nan


def quoted(token: bytes, longest: int = 40) -> str:
    """Return a token of a file as it is quoted in messages, cut if it is long."""
    text = token[: longest + 1].decode("utf-8", "backslashreplace")
    return repr(text if len(token) <= longest else text[:longest] + "…")


def compressed(stream: IO[bytes], name: str) -> AbstractContextManager[Any]:
    """Compress a stream for writing, by the suffix of its name."""
    kind = next((kind for kind in _MODULES if name.endswith(f".{kind}")), None)
    if kind is None:
        return nullcontext(stream)
    if kind == "gz":
        import gzip

        # Neither the time nor the temporary name gets in: the same data gives the same file.
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
