"""Where the text of a LETOR file comes from: a file, a compressed file, standard input, a stream.

Whatever it is, the parser gets one read-only buffer that it can enter anywhere. A plain file is
mapped into memory. What can only be read once, front to back, is first unpacked: into memory when
small, else into a nameless temporary file that is mapped, so that a large text never fills the
memory beside the arrays made of it.
"""

from __future__ import annotations

import errno
import io
import mmap
import os
import stat
import sys
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any

import numpy as np

from leanrank._typing import AnyArray
from leanrank.errors import FileError, InputError, ParseError

IN_MEMORY = 32 * 2**20
"""Unpacked texts up to this size are kept in memory."""

RANGE_BYTES = 2**20
"""Text in one unit of work."""

_BLOCK = 2**20
_MAGIC = {b"\x1f\x8b": "gz", b"\xfd7zXZ\x00": "xz", b"BZh": "bz2"}
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Text:
    """The bytes of a file and the name it has in messages."""

    buffer: bytes | mmap.mmap
    name: str

    @property
    def start(self) -> int:
        """Where the lines begin: after a byte order mark, if there is one."""
        return len(_BOM) if self.buffer[: len(_BOM)] == _BOM else 0


@dataclass(frozen=True)
class Lines:
    """A range of whole lines; the last may live in a buffer of its own, which ends it properly."""

    buffer: Any
    start: int
    stop: int

    @property
    def array(self) -> AnyArray:
        """The whole buffer as an array."""
        return np.frombuffer(self.buffer, dtype=np.uint8)

    def count(self, byte: bytes) -> int:
        """Count a byte in the range."""
        return int(np.count_nonzero(self.array[self.start : self.stop] == ord(byte)))


def open_text(path: Any) -> Text:
    """Make the text of a path, ``"-"`` or a binary file object available.

    Compression is recognised by its first bytes, so the suffix may be missing; the suffix
    of a file without those bytes is an error, because it is not what it says.
    """
    if hasattr(path, "read"):
        name = getattr(path, "name", None)
        return _from_stream(path, name if isinstance(name, str) else "<stream>")
    if not isinstance(path, (str, os.PathLike)):
        raise InputError(
            f"path is {type(path).__name__}: give a file name, '-' for standard input or "
            "a binary file"
        )
    name = os.fsdecode(path)
    if name == "-":
        return _from_stream(sys.stdin.buffer, "<stdin>")
    try:
        with open(name, "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                return _from_stream(stream, name)
            head = stream.read(8)
            stream.seek(0)
            if _compression(head) is not None:
                return _from_stream(stream, name)
            for kind in _MAGIC.values():
                if name.endswith(f".{kind}"):
                    raise ParseError(
                        f"the name says {kind} but the content is not: rename the file or make it "
                        "again",
                        path=name,
                    )
            return Text(_map(stream, status.st_size), name)
    except FileNotFoundError:
        raise FileError(f"{name}: there is no such file") from None
    except IsADirectoryError:
        raise FileError(f"{name}: this is a directory, give one of its files") from None
    except OSError as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"{name}: cannot be read ({error.strerror or error})") from error


def cut_lines(text: Text) -> list[Lines]:
    """Cut the text into ranges at line breaks; the cuts depend on the text only."""
    buffer, size = text.buffer, len(text.buffer)
    body = buffer.rfind(b"\n") + 1
    cuts = [min(text.start, body)]
    while cuts[-1] < body:
        target = cuts[-1] + RANGE_BYTES
        cuts.append(body if target >= body else buffer.find(b"\n", target - 1) + 1)
    ranges = [Lines(buffer, a, b) for a, b in pairwise(cuts)]
    rest = max(body, text.start)
    if rest < size:
        tail = buffer[rest:] + b"\n"
        ranges.append(Lines(tail, 0, len(tail)))
    return ranges


def _from_stream(stream: IO[bytes], name: str) -> Text:
    head = stream.read(8)
    if isinstance(head, str):
        raise InputError(f"{name}: the file object gives text, open it in binary mode ('rb')")
    while 0 < len(head) < 8 and (more := stream.read(8 - len(head))):  # a pipe may give less
        head += more
    kind = _compression(head)
    source: Any = io.BufferedReader(_Rejoined(head, stream), _BLOCK)
    with ExitStack() as stack:
        if kind is not None:
            source = stack.enter_context(_opener(kind)(source))
        try:
            return Text(_spool(source), name)
        except FileError:
            raise
        except _damage() as error:
            if kind is None:
                raise FileError(f"{name}: cannot be read ({error})") from error
            raise ParseError(
                f"the {kind} data is damaged or cut short ({error}): fetch or make the file again",
                path=name,
            ) from error


def _compression(head: bytes) -> str | None:
    return next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), None)


def _opener(kind: str) -> Any:
    if kind == "gz":
        import gzip

        return gzip.open
    if kind == "xz":
        import lzma

        return lzma.open
    import bz2

    return bz2.open


def _damage() -> tuple[type[Exception], ...]:
    """Name the errors of the decompressors; they are imported only when needed otherwise."""
    from gzip import BadGzipFile
    from lzma import LZMAError

    return EOFError, BadGzipFile, LZMAError, OSError, zlib.error


class _Rejoined(io.RawIOBase):
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, stream: IO[bytes]) -> None:
        self._head = head
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        block = self._head or self._stream.read(len(buffer))
        self._head = block[len(buffer) :]
        block = block[: len(buffer)]
        buffer[: len(block)] = block
        return len(block)


def _spool(source: Any) -> bytes | mmap.mmap:
    """Read to the end, into memory while it is little and into a temporary file beyond."""
    blocks = []
    size = 0
    while block := source.read(_BLOCK):
        blocks.append(block)
        size += len(block)
        if size > IN_MEMORY:
            break
    else:
        return b"".join(blocks)
    with _room_on_disk(), tempfile.TemporaryFile() as file:
        file.writelines(blocks)
        blocks.clear()
        while block := source.read(_BLOCK):
            file.write(block)
            size += len(block)
        file.flush()
        return _map(file, size)


@contextmanager
def _room_on_disk() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES):
            raise
        raise FileError(
            f"{tempfile.gettempdir()}: no room to unpack the file ({error.strerror}): set TMPDIR "
            "to a directory with more space"
        ) from error


def _map(stream: IO[bytes], size: int) -> bytes | mmap.mmap:
    if size == 0:
        return b""
    return mmap.mmap(stream.fileno(), size, access=mmap.ACCESS_READ)
