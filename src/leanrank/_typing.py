"""Type aliases, and the base class of losses and penalties."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar, TypeAlias

import numpy as np
import numpy.typing as npt

from leanrank.errors import InputError

FloatArray: TypeAlias = npt.NDArray[np.float64]
IntArray: TypeAlias = npt.NDArray[np.int64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]
Matrix: TypeAlias = Any
"""A C-contiguous float ndarray or a SciPy CSR array; SciPy is not imported for its type."""
Callback: TypeAlias = Callable[[dict[str, Any]], None]
"""A function that is called with each entry of a history."""


class Part:
    """A loss or a penalty: a part of the objective of a ranker.

    The base class of its kind lists the operations. A class offers an optional operation if it
    defines it.
    """

    kind: ClassVar[str]
    name: ClassVar[str]

    @classmethod
    @cache  # solvers call it at every step
    def offers(cls, operation: str) -> bool:
        """Return whether this part defines an operation, or has a property that is true."""
        found = getattr(cls, operation)
        if isinstance(found, bool):
            return found
        listed = next(base for base in reversed(cls.__mro__) if operation in vars(base))
        return found is not getattr(listed, operation)


def require(part: Part, solver: str, *operations: str) -> None:
    """Raise an InputError if a part lacks an operation that a solver needs.

    For "this or that", one of the two operations is enough.
    """
    missing = [o for o in operations if not any(map(part.offers, o.split(" or ")))]
    if missing:
        words = ", ".join("a continuous gradient" if o == "smooth" else o for o in missing)
        raise InputError(
            f"the solver {solver!r} needs {words} of the {part.kind} {part.name!r}, "
            f"which does not offer it: choose another solver for {part.name!r}"
        )
