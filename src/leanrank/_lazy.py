"""Import a package's public names on first use, so that ``import leanrank`` stays light."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # importing typing takes time in which Ctrl-C is not caught
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def attach(
    package: str, file: str
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for a package.

    The public names are those of the stub ``__init__.pyi``, which type checkers read as well, one
    per line: ``from MODULE import NAME as NAME``. A name whose line ends with ``# moved`` is
    deprecated: it can be imported with a warning, and is not listed.

    Parameters
    ----------
    package : str
        Its ``__name__``.
    file : str
        Its ``__file__``.
    """
    with open(f"{file}i", encoding="utf-8") as stub:
        words = [line.split() for line in stub if line.startswith("from ")]
    modules = {name: module for _, module, _, name, *_ in words}
    listed = sorted(line[3] for line in words if line[-1] != "moved")

    def load(name: str) -> Any:
        import importlib

        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if modules[name] == ".":
            return importlib.import_module(f".{name}", package)
        value = getattr(importlib.import_module(modules[name], package), name)
        if name in listed:
            setattr(sys.modules[package], name, value)
        else:
            import warnings

            to = f"{package}{modules[name]}"
            warnings.warn(f"import {name} from {to}, not {package}", FutureWarning, stacklevel=2)
        return value

    return load, lambda: listed, listed
