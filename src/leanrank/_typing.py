"""Names for the types that travel through leanrank, and the base of losses and penalties."""

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
"""What is called with each entry of a history."""


class Part:
    """A loss or a penalty: a part of what a ranker minimises.

    The base class of its kind lists the operations; defining an optional operation declares it.
    """

    kind: ClassVar[str]
    name: ClassVar[str]

    @classmethod
    @cache  # a solver asks at every step
    def offers(cls, operation: str) -> bool:
        """Return whether this part defines an operation, or has a property that is true."""
        found = getattr(cls, operation)
        if isinstance(found, bool):
            return found
        listed = next(base for base in reversed(cls.__mro__) if operation in vars(base))
        return found is not getattr(listed, operation)


def require(part: Part, solver: str, *operations: str) -> None:
    """Check that a part offers what a solver needs, with one sentence that names both.

    Of an operation written as "this or that", one will do.
    """
    missing = [o for o in operations if not any(map(part.offers, o.split(" or ")))]
    if missing:
        words = ", ".join("a continuous gradient" if o == "smooth" else o for o in missing)
        raise InputError(
            f"the solver {solver!r} needs {words} of the {part.kind} {part.name!r}, "
            f"which does not offer it: choose another solver for {part.name!r}"
        )
