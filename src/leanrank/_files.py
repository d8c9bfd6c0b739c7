"""Atomic writes, and state files that one process uses at a time."""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from leanrank.errors import FileError, named_errors, not_written

try:
    import fcntl
except ImportError:  # Windows: files are written atomically, but not locked
    fcntl = None  # type: ignore[assignment]


@contextlib.contextmanager
def atomic_write(path: str | os.PathLike[str], mode: str = "w") -> Iterator[IO[Any]]:
    """Yield a stream to a file that gets its name when the block succeeds.

    On any exception, also Ctrl-C, ``path`` is not changed; a kill leaves a hidden temporary file
    beside it. ``"-"`` is standard output. A device or a pipe is written directly, because a rename
    would replace it; a symbolic link stays, and its target is replaced.
    """
    if os.fspath(path) == "-":
        stream = sys.stdout.buffer if "b" in mode else sys.stdout
        with named_errors("standard output"):
            yield stream
            stream.flush()
        return
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise FileError(f"{path}: this is a directory: give the name of a file")
    text = {} if "b" in mode else {"encoding": "utf-8", "newline": "\n"}
    direct = os.path.exists(path) and not os.path.isfile(path)
    try:
        if direct:
            handle, name = os.open(path, os.O_WRONLY), ""
        else:
            handle, name = tempfile.mkstemp(prefix=f".{target.name[:32]}.", dir=target.parent)
    except OSError as error:
        raise FileError(
            f"{path}: cannot be written ({error.strerror}): choose a directory that exists and is "
            "writable"
        ) from error
    try:
        with named_errors(path), os.fdopen(handle, mode, **text) as stream:  # type: ignore[call-overload]
            yield stream
            stream.flush()
            if not direct:
                os.fsync(handle)
        if not direct:  # the file is closed: Windows cannot rename open files
            os.chmod(name, _default_mode(target))
            os.replace(name, target)
    except BaseException:
        _remove(name)
        raise


class HeldFile(contextlib.AbstractContextManager["HeldFile"]):
    """A state file that one process uses at a time, until it is closed or the process ends.

    The operating system locks a hidden file beside it, and releases the lock of a killed process.

    Parameters
    ----------
    path : path
        The state file, which is created with the first content.

    Examples
    --------
    >>> folder = tempfile.TemporaryDirectory()
    >>> with HeldFile(f"{folder.name}/a") as held:
    ...     held.append(b"one")
    ...     HeldFile(f"{folder.name}/a")
    Traceback (most recent call last):
        ...
    leanrank.errors.FileError: .../a: another process is using this file: wait until it ends, or ...
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._target = Path(os.path.realpath(path))
        if self._target.exists() and not self._target.is_file():
            raise FileError(f"{self.path}: cannot be used (it is not a regular file)")
        self._lock_path = self._target.with_name(f".{self._target.name[:200]}.lock")
        try:
            self._lock = open(self._lock_path, "wb")  # noqa: SIM115  (held until it is closed)
        except OSError as error:
            raise FileError(f"{self.path}: cannot be used ({error.strerror or error})") from error
        if not self._is_mine():
            self._lock.close()
            raise FileError(
                f"{self.path}: another process is using this file: wait until it ends, or give "
                "another name"
            )

    def read(self) -> bytes:
        """Return the whole content."""
        try:
            return self._target.read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise FileError(f"{self.path}: cannot be read ({error.strerror or error})") from error

    def append(self, content: bytes, at: int | None = None) -> None:
        """Append to the file, truncated ``at`` an offset if given, and flush it to disk."""
        try:
            with open(self._target, "ab") as stream:
                if at is not None:
                    stream.truncate(at)
                stream.write(content)
                stream.flush()
                os.fsync(stream.fileno())
        except OSError as error:
            raise FileError(f"{self.path}: {not_written(error)}") from error

    def replace(self, content: bytes) -> None:
        """Replace the content atomically."""
        with atomic_write(self._target, "wb") as stream:
            stream.write(content)

    def close(self) -> None:
        """Release the file."""
        if not self._lock.closed:
            if fcntl is not None:  # Windows cannot remove open files
                _remove(str(self._lock_path))
            self._lock.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    def _is_mine(self) -> bool:
        """Return whether this process has locked the hidden file, which others may remove."""
        if fcntl is None:
            return True
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return os.path.samestat(os.fstat(self._lock.fileno()), os.stat(self._lock_path))
        except (BlockingIOError, FileNotFoundError):
            return False


def check_name(path: str | os.PathLike[str]) -> None:
    """Reject an option given as the name of a file or directory to write."""
    name = os.fspath(path)
    if name.startswith("-") and name != "-":
        raise FileError(f"{name} is an option, not a file: write ./{name} if it is a file")


def make_folder(path: str | os.PathLike[str]) -> Path:
    """Return a directory, which is created with its parents unless it exists."""
    check_name(path)
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{path}: cannot create this directory ({error.strerror})") from error
    return Path(path)


def file_identity(path: str) -> dict[str, Any]:
    """Return facts that identify a file and its content.

    The digest is of the whole file up to ``_WHOLE`` bytes. For a larger one it is of samples over
    the whole length, and the facts include the time of the last change.
    """
    try:
        with open(path, "rb") as stream:
            facts = os.fstat(stream.fileno())
            digest = hashlib.sha256()
            step = _SAMPLE if facts.st_size <= _WHOLE else facts.st_size // (_WHOLE // _SAMPLE)
            for offset in range(0, facts.st_size, step):
                stream.seek(offset)
                digest.update(stream.read(_SAMPLE))
    except OSError as error:
        raise FileError(f"{path}: cannot be read ({error.strerror or error})") from error
    found = {"file": os.path.basename(path), "bytes": facts.st_size, "digest": digest.hexdigest()}
    return found | ({"modified": facts.st_mtime_ns} if facts.st_size > _WHOLE else {})


_WHOLE, _SAMPLE = 2**26, 2**16  # about a tenth of a second


def _remove(name: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(name)


def _default_mode(target: Path) -> int:
    """Return the mode of the replaced file, or the mode that ``open`` gives a new file."""
    with contextlib.suppress(OSError):
        return target.stat().st_mode & 0o7777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
