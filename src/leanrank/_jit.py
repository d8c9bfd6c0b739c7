"""How leanrank compiles: cached on disk, without the GIL, no fast-math, one serial function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np


def kernel(function: Callable[..., Any]) -> Any:
    """Compile a function on plain arrays.

    Division by zero follows NumPy (inf or nan), not Python. The result is cached beside the module,
    so a process pays for compilation only when the code or the machine changes.
    """
    return numba.njit(cache=True, nogil=True, error_model="numpy")(function)


def kernel_view(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Hide a read-only flag from Numba, which would compile the same kernel twice for it.

    Kernels never write to what they are given as input.
    """
    if array.flags.writeable:
        return array
    view = array.view()
    try:
        view.flags.writeable = True
    except ValueError:  # the memory itself is read-only (a memory map): the other compilation
        return array
    return view
