"""Arrays in mapped files, whose pages the operating system reads on use and drops if needed."""

from __future__ import annotations

import math
import os
import tempfile
from typing import Any

import numpy as np

from leanrank._typing import AnyArray
from leanrank.errors import named_errors


def is_mapped(array: Any) -> bool:
    """Return whether an array, or the values of a sparse matrix, are a view of a mapped file.

    >>> is_mapped(scratch((2, 3), np.float32)[1:]), is_mapped(np.zeros(3))
    (True, False)
    """
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "data" if hasattr(array, "indptr") else "base", None)
    return array is not None


def scratch(shape: tuple[int, ...], dtype: Any, folder: str | None = None) -> AnyArray:
    """Return zeros in an unnamed temporary file, which is deleted with the last view."""
    if 0 in shape:
        return np.zeros(shape, dtype=dtype)
    n_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    with tempfile.TemporaryFile(dir=folder) as file:
        if hasattr(os, "posix_fallocate"):
            # a full disk is an error here, and would later kill the process
            with named_errors(folder or tempfile.gettempdir()):
                os.posix_fallocate(file.fileno(), 0, n_bytes)
        array = np.memmap(file, dtype=dtype, mode="w+", shape=shape)
    array.filename = os.path.join(folder or tempfile.gettempdir(), "scratch")
    return array


def empty_beside(X: AnyArray, shape: tuple[int, ...] | None = None, dtype: Any = None) -> AnyArray:
    """Return an empty array: in memory if X is, else in a temporary file beside that of X.

    >>> is_mapped(empty_beside(np.zeros(3))), is_mapped(empty_beside(scratch((3,), float)))
    (False, True)
    """
    shape, dtype = X.shape if shape is None else shape, X.dtype if dtype is None else dtype
    if not is_mapped(X):
        return np.empty(shape, dtype=dtype)
    source: Any = X
    while not isinstance(source, np.memmap):
        source = source.base
    folder = os.path.dirname(str(source.filename or ""))
    usable = folder != "" and os.access(folder, os.W_OK)
    return scratch(shape, dtype, folder if usable else None)


def take_rows(X: Any, rows: Any) -> Any:
    """Return some rows of a dense or CSR matrix; those of a mapped one are in a temporary file.

    >>> take_rows(np.array([[1.0], [2.0], [3.0]]), np.array([2, 0])).tolist()
    [[3.0], [1.0]]
    """
    if isinstance(rows, slice) or not is_mapped(X):
        return X[rows]
    if isinstance(X, np.ndarray):
        out = empty_beside(X, (len(rows), X.shape[1]))
        for low in range(0, len(rows), _ROWS):
            part = rows[low : low + _ROWS]
            out[low : low + len(part)] = X[part]
        return out
    sizes = np.diff(X.indptr)[rows]
    ptr = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    values, indices = (empty_beside(a, (int(ptr[-1]),)) for a in (X.data, X.indices))
    for low in range(0, len(rows), _ROWS):
        part = X[rows[low : low + _ROWS]]
        entries = slice(int(ptr[low]), int(ptr[low]) + len(part.data))
        values[entries], indices[entries] = part.data, part.indices
    chosen = type(X)((values, indices, ptr), shape=(len(rows), X.shape[1]), copy=False)
    chosen.has_canonical_format = X.has_canonical_format
    return chosen


_ROWS = 16_384  # copied at a time


class Spool:
    """Values that are appended to an unnamed temporary file, and mapped in the end.

    >>> spool = Spool(np.float64)
    >>> spool.append([1, 2])
    >>> spool.append([3])
    >>> spool.mapped().tolist()
    [1.0, 2.0, 3.0]
    """

    def __init__(self, dtype: Any, folder: str | None = None) -> None:
        self.dtype = np.dtype(dtype)
        self.size = 0
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  (it lives with the spool)

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()  # maps remain valid

    def append(self, values: Any) -> None:
        """Append values."""
        array = np.ascontiguousarray(values, dtype=self.dtype)
        if array.size:
            self._file.write(array.reshape(-1).view(np.uint8).data)
            self.size += array.size

    def mapped(self) -> AnyArray:
        """Return all values as a flat array."""
        if not self.size:
            return np.zeros(0, dtype=self.dtype)
        self._file.flush()
        return np.memmap(self._file, dtype=self.dtype, mode="r", shape=(self.size,))
