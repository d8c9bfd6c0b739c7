"""Names for the types that travel through leanrank."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]
Matrix: TypeAlias = Any
"""A C-contiguous float ndarray or a SciPy CSR array; SciPy is not imported for its type."""
Callback: TypeAlias = Callable[[dict[str, Any]], None]
"""What is called with each entry of a history."""
