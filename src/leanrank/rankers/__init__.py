"""The rankers: scikit-learn estimators, each a named point of loss × penalty × solver."""

from typing import Any

from leanrank._lazy import attach
from leanrank.registry import classes, ranker_names

_load, __dir__, __all__ = attach(__name__, __file__)


def __getattr__(name: str) -> Any:
    if name == "RANKERS":  # from the name on the command line to the name of the class
        return ranker_names()
    registered = classes().get(name)  # may be of another package
    return _load(name) if registered is None else registered.load()
