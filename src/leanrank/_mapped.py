"""Arrays in files: the system reads what is touched, and drops it when memory is short."""

from __future__ import annotations

import tempfile
from typing import Any

import numpy as np

from leanrank._typing import AnyArray


def is_mapped(array: Any) -> bool:
    """Tell whether an array, or a sparse matrix's values, are a view of a mapped file.

    >>> is_mapped(scratch((2, 3), np.float32)[1:]), is_mapped(np.zeros(3))
    (True, False)
    """
    while array is not None and not isinstance(array, np.memmap):
        array = getattr(array, "data" if hasattr(array, "indptr") else "base", None)
    return array is not None


def scratch(shape: tuple[int, ...], dtype: Any, folder: str | None = None) -> AnyArray:
    """Return zeros in an unnamed temporary file, which is gone with the last view of it."""
    if 0 in shape:
        return np.zeros(shape, dtype=dtype)
    with tempfile.TemporaryFile(dir=folder) as file:
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape)


class Spool:
    """Values appended to an unnamed temporary file, and mapped once all are there.

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

    def append(self, values: Any) -> None:
        """Write values behind those before."""
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
