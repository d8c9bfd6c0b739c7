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
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import IO, Any

import numpy as np

from leanrank._typing import AnyArray
from leanrank.data.sources import BLOCK, is_regular, open_bytes, shown_name
from leanrank.errors import FileError

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


def open_text(path: Any, in_memory: int) -> Text:
    """Make the text of a path, ``"-"`` or a binary file object available."""
    name = shown_name(path)
    with open_bytes(path) as stream:
        if isinstance(stream, io.BufferedReader) and is_regular(stream):
            return Text(_map(stream, os.fstat(stream.fileno()).st_size), name)
        return Text(_spool(stream, in_memory), name)


def cut_lines(text: Text, range_bytes: int) -> list[Lines]:
    """Cut the text into ranges at line breaks; the cuts depend on the text only."""
    buffer, size = text.buffer, len(text.buffer)
    body = buffer.rfind(b"\n") + 1
    cuts = [min(text.start, body)]
    while cuts[-1] < body:
        target = cuts[-1] + range_bytes
        cuts.append(body if target >= body else buffer.find(b"\n", target - 1) + 1)
    ranges = [Lines(buffer, a, b) for a, b in pairwise(cuts)]
    rest = max(body, text.start)
    if rest < size:
        tail = buffer[rest:] + b"\n"
        ranges.append(Lines(tail, 0, len(tail)))
    return ranges


def _spool(source: Any, in_memory: int) -> bytes | mmap.mmap:
    """Read to the end, into memory while it is little and into a temporary file beyond."""
    blocks = []
    size = 0
    while block := source.read(BLOCK):
        blocks.append(block)
        size += len(block)
        if size > in_memory:
            break
    else:
        return b"".join(blocks)
    with _room_on_disk(), tempfile.TemporaryFile() as file:
        file.writelines(blocks)
        blocks.clear()
        while block := source.read(BLOCK):
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
