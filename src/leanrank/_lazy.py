"""Import a package's public names on first use, so that ``import leanrank`` stays light."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def attach(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` for a package.

    ``names`` maps each module to the public names that it defines, separated by spaces; a name that
    equals the last part of its module is that module itself.
    """
    modules = {name: module for module, listed in names.items() for name in listed.split()}

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = importlib.import_module(modules[name])
        value = module if modules[name] == f"{package}.{name}" else getattr(module, name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted(modules), sorted(modules)
