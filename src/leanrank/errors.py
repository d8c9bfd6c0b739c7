"""The errors and warnings of leanrank.

Each error is also a ``ValueError``, ``OSError`` or ``ImportError``, for callers that catch those. A
message is one sentence on one line of at most 300 characters: what was wrong, where, what to do.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

__all__ = [
    "CacheWarning",
    "ClusterError",
    "DataWarning",
    "FileError",
    "InputError",
    "LeanrankError",
    "LeanrankWarning",
    "MissingDependencyError",
    "ModelError",
    "NoLevelsError",
    "ParseError",
]


def one_line(text: str, longest: int = 300) -> str:
    r"""Return a message on one line, without control characters, cut in the middle if too long.

    >>> one_line("a\tbad\nfile"), one_line("0123456789", longest=7)
    ('a bad file', '0123…89')
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if len(line) <= longest:
        return line
    tail = longest * 2 // 5
    return f"{line[: longest - tail - 1]}…{line[-tail:]}"


def suggest(name: object, known: Iterable[str]) -> str:
    """Return a hint at the most similar known name, or at all known names.

    >>> suggest("alhpa", ["alpha", "tol"]), suggest("x", ["tol", "alpha"])
    ("did you mean 'alpha'?", 'choose from alpha, tol')
    """
    import difflib

    options = sorted(known)
    near = difflib.get_close_matches(str(name), options, n=1)
    return f"did you mean {near[0]!r}?" if near else "choose from " + ", ".join(options)


def first_repeated(items: Sequence[Any]) -> Any:
    """Return the first item that occurs a second time, or None.

    >>> first_repeated("abcbc"), first_repeated("abc")
    ('b', None)
    """
    seen: set[Any] = set()
    for item in items if len(set(items)) < len(items) else ():
        if item in seen:
            return item
        seen.add(item)
    return None


WARNED: set[tuple[str, str, int]] = set()
"""Warnings with ``once`` that were issued: name, file and line."""


def warn(message: str, category: type[Warning] | None = None, *, once: str | None = None) -> None:
    """Issue a warning, by default a DataWarning, at the calling line outside leanrank.

    With a name in ``once``, that line gets at most one warning of this name in a process.
    """
    import sys
    import warnings

    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("leanrank."):
        frame, level = frame.f_back, level + 1
    if once is not None:
        line = once, frame.f_code.co_filename, frame.f_lineno
        if line in WARNED:
            return
        WARNED.add(line)
    warnings.warn(one_line(message), category or DataWarning, stacklevel=level)


def check_choice(name: str, value: object, known: Iterable[str]) -> None:
    """Reject a parameter that is not an allowed choice.

    >>> check_choice("solver", "newtn", ["newton", "proximal"])
    Traceback (most recent call last):
    leanrank.errors.InputError: solver='newtn' is not known: did you mean 'newton'?
    """
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name}={value!r} is not known: {suggest(value, known)}")


def problem_of(error: Exception) -> str:
    """Return one sentence on an error; an error of another library gets its type.

    >>> problem_of(ZeroDivisionError("by zero"))
    'unexpected ZeroDivisionError: by zero'
    """
    if isinstance(error, LeanrankError):
        return str(error)
    return f"unexpected {type(error).__name__}: {one_line(str(error))[:200]}"


def overflow(what: str) -> str:
    """Return the message for numbers beyond the range of double precision."""
    return (
        f"{what} met numbers beyond double precision, so its weights would not be finite: scale "
        "features, labels and weights to about 1"
    )


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def named_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Raise a FileError that names the file if the disk is full."""
    try:
        yield
    except OSError as error:
        if error.errno not in _DISK_FULL or error.filename is not None:
            raise
        raise FileError(f"{path}: {not_written(error)}") from error


def not_written(error: OSError) -> str:
    """Return the message for a file that could not be written, without its name."""
    remedy = ": free space, or choose another disk" if error.errno in _DISK_FULL else ""
    return f"cannot be written ({error.strerror or error}){remedy}"


class LeanrankError(Exception):
    """Base of all errors of leanrank."""

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))

    def __reduce__(self) -> Any:
        return _restored, (type(self), str(self)), self.__dict__


def _restored(kind: type[LeanrankError], message: str) -> LeanrankError:
    """Return an unpickled error, without the constructor of its class."""
    error = kind.__new__(kind)
    LeanrankError.__init__(error, message)
    return error


class InputError(LeanrankError, ValueError):
    """Invalid data or an invalid parameter."""


class NoLevelsError(InputError):
    """Data without a pair of documents to learn from."""

    def __init__(self) -> None:
        super().__init__(
            "no query has documents at two levels, so there is nothing to learn from: give labels "
            "that differ within a query (n_samples=1 or a constant label cannot train a ranker)"
        )


class ParseError(InputError):
    """A text file that does not follow its format.

    Parameters
    ----------
    problem : str
        What is wrong and what is expected.
    path : str
        The file, or ``"<stdin>"``.
    line, column : int, optional
        One-based position of the first wrong byte.
    """

    def __init__(
        self, problem: str, *, path: str, line: int | None = None, column: int | None = None
    ) -> None:
        position = {"line": line, "column": column}
        where = "".join(f", {what} {at}" for what, at in position.items() if at is not None)
        super().__init__(f"{path}{where}: {problem}")
        self.problem, self.path, self.line, self.column = problem, path, line, column


class ModelError(LeanrankError, ValueError):
    """A model file that is not valid, or a model that does not fit the data."""


class FileError(LeanrankError, OSError):
    """A file that is missing, unreadable or cannot be written."""


class ClusterError(LeanrankError, OSError):
    """A cluster that cannot continue."""


class MissingDependencyError(LeanrankError, ImportError):
    """A missing optional package."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}': install it with "
            f"`pip install 'leanrank[{extra}]'`"
        )
        self.package, self.extra, self.purpose = package, extra, purpose


class LeanrankWarning(UserWarning):
    """Base of all warnings that leanrank issues."""


class DataWarning(LeanrankWarning):
    """Data that can be used, but probably not as intended."""


class CacheWarning(LeanrankWarning):
    """Compiled code that cannot be saved for other processes."""
