"""Functions of scores: what a ranking costs, given levels and queries. Features are not seen."""

from __future__ import annotations

from typing import Any

LOSSES: dict[str, str] = {
    "domination": "leanrank.losses.domination.DominationLoss",
    "exponential": "leanrank.losses.exponential.ExponentialLoss",
    "hinge": "leanrank.losses.hinge.HingeLoss",
    "listnet": "leanrank.losses.listnet.ListNetLoss",
    "logistic": "leanrank.losses.logistic.LogisticLoss",
    "squared": "leanrank.losses.squared.SquaredLoss",
    "squared-hinge": "leanrank.losses.squared_hinge.SquaredHingeLoss",
}
"""The name of each loss as a parameter of rankers, and the class."""


def get_loss(name: Any, **options: Any) -> Any:
    """Make a loss by its name, with the options of its class; loaded when asked for.

    A loss of one's own, with ``prepare`` and ``evaluate``, is given back as it is.

    >>> get_loss("squared").name
    'squared'
    >>> get_loss("hinges")
    Traceback (most recent call last):
    leanrank.errors.InputError: there is no loss 'hinges': did you mean 'hinge'?
    """
    from importlib import import_module

    if hasattr(name, "prepare") and hasattr(name, "evaluate"):
        return name
    if not isinstance(name, str) or name not in LOSSES:
        from leanrank.errors import InputError, suggest

        raise InputError(f"there is no loss {name!r}: {suggest(name, LOSSES)}")
    module, _, kind = LOSSES[name].rpartition(".")
    return getattr(import_module(module), kind)(**options)
