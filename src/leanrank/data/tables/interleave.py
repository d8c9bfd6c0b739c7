"""Writing many columns into rows in one compiled call, without the GIL.

NumPy needs one call per column, and threads that fill their rows side by side then spend their time
passing the GIL around. A kernel cannot take a list of arrays whose length it does not know, so it
takes the columns' addresses.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import intrinsic

from leanrank._jit import kernel
from leanrank._typing import AnyArray, IntArray


def gather_rows(out: AnyArray, columns: Sequence[AnyArray]) -> None:
    """Write columns of the type and length of ``out`` into its rows; see ``can_gather``."""
    addresses = np.array([column.ctypes.data for column in columns], dtype=np.int64)
    _gather(addresses, out)


def can_gather(out: AnyArray, columns: Sequence[AnyArray]) -> bool:
    """Return whether the columns are plain memory of the type and length of ``out``."""
    return out.flags.c_contiguous and all(
        column.dtype == out.dtype
        and column.flags.c_contiguous
        and column.flags.aligned
        and len(column) == len(out)
        for column in columns
    )


@intrinsic
def _pointer(typing_context: Any, address: Any, out: Any) -> Any:
    """Turn an address into a pointer to numbers of the type of ``out``."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(out.dtype)(types.int64, out), generate


@kernel
def _gather(addresses: IntArray, out: AnyArray) -> None:
    n_rows, n_columns = out.shape
    for first in range(0, n_rows, 16):  # few rows at a time stay in the nearest cache
        last = min(first + 16, n_rows)
        for j in range(n_columns):
            column = numba.carray(_pointer(addresses[j], out), n_rows)
            for i in range(first, last):
                out[i, j] = column[i]
