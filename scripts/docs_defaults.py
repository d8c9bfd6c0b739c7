"""An extension of griffe, which reads the docstrings for the site: ``a, b : int`` becomes two
entries, since griffe would give both the default of the first.
"""

from __future__ import annotations

import re
from typing import Any

from griffe import Class, Extension, Function

ENTRY = re.compile(r"(?m)^( *)(\w+(?:, \w+)+)( :.*)?\n((?:\1    .*\n?)*)")


def one_by_one(found: re.Match[str]) -> str:
    """Write an entry of several names once per name."""
    indent, names, kind, text = found.groups(default="")
    return "".join(f"{indent}{name}{kind}\n{text.rstrip()}\n" for name in names.split(", "))


class OneByOne(Extension):
    """Separates the entries of the parameters, in functions and in classes."""

    def on_function_instance(self, *, func: Function, **kwargs: Any) -> None:
        self._separate(func)

    def on_class_members(self, *, cls: Class, **kwargs: Any) -> None:
        self._separate(cls)

    def _separate(self, thing: Function | Class) -> None:
        if thing.docstring is not None:
            head, mark, rest = thing.docstring.value.partition("Parameters\n----------\n")
            own, *others = re.split(r"(?m)(?=^\w+\n---+\n)", rest, maxsplit=1)
            thing.docstring.value = head + mark + ENTRY.sub(one_by_one, own) + "".join(others)
