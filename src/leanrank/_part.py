"""Common base of losses and penalties: the operations that each declares."""

from __future__ import annotations

from functools import cache
from typing import ClassVar

from leanrank.errors import InputError


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
