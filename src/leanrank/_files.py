"""Writing files so that nobody ever sees half of one."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from leanrank.errors import FileError


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Open a temporary file beside ``path`` and rename it there when the block succeeds.

    On any exception, Ctrl-C included, the temporary file is removed and ``path`` is left as it was.
    ``"-"`` writes to standard output. A device or a pipe is written to directly, because a rename
    would replace it; through a symbolic link, the file it points to is the one that is replaced.
    """
    if os.fspath(path) == "-":
        stream = sys.stdout.buffer if "b" in mode else sys.stdout
        yield stream
        stream.flush()
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise FileError(f"{path}: this is a directory: give the name of a file")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    direct = None
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            direct = open(path, mode, **text)  # type: ignore[call-overload]  # noqa: SIM115
        else:
            handle, name = tempfile.mkstemp(prefix=f".{target.name[:64]}.", dir=target.parent)
    except OSError as error:
        raise FileError(
            f"{path}: cannot write here ({error.strerror}): choose a directory that exists and "
            "is writable"
        ) from error
    if direct is not None:
        with direct:
            yield direct
        return
    try:
        with os.fdopen(handle, mode, **text) as stream:  # type: ignore[call-overload]
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, _default_mode(target))
        os.replace(name, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(name)
        raise


def _default_mode(target: Path) -> int:
    """Keep the mode of a file that is replaced; a new one gets what ``open`` would have given."""
    with contextlib.suppress(OSError):
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
