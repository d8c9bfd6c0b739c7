"""Losses: functions of scores, levels and queries, without the features."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leanrank.losses.base import Loss

LOSSES: dict[str, str] = {
    "domination": "leanrank.losses.domination.DominationLoss",
    "exponential": "leanrank.losses.exponential.ExponentialLoss",
    "hinge": "leanrank.losses.hinge.HingeLoss",
    "listnet": "leanrank.losses.listnet.ListNetLoss",
    "logistic": "leanrank.losses.logistic.LogisticLoss",
    "softmax": "leanrank.losses.listnet.SoftmaxLoss",
    "squared": "leanrank.losses.squared.SquaredLoss",
    "squared-hinge": "leanrank.losses.hinge.SquaredHingeLoss",
}
"""The name of each loss as a parameter of rankers, and the class."""


def get_loss(name: str | Loss[Any], **options: Any) -> Loss[Any]:
    """Return a loss by its name, with the options of its class.

    A ``leanrank.losses.base.Loss`` of your own is returned unchanged.

    >>> get_loss("squared").name
    'squared'
    >>> get_loss("hinges")
    Traceback (most recent call last):
    leanrank.errors.InputError: there is no loss 'hinges': did you mean 'hinge'?
    """
    from importlib import import_module

    from leanrank.losses.base import Loss

    if isinstance(name, Loss):
        return name
    if not isinstance(name, str) or name not in LOSSES:
        from leanrank.errors import InputError, suggest

        raise InputError(f"there is no loss {name!r}: {suggest(name, LOSSES)}")
    module, _, kind = LOSSES[name].rpartition(".")
    loss: Loss[Any] = getattr(import_module(module), kind)(**options)
    return loss


def pair_loss(name: str) -> Loss[Any]:
    """Return a loss with ``pair_slope`` by its name.

    >>> pair_loss("hinge").pair_steepness
    1.0
    >>> pair_loss("listnet")
    Traceback (most recent call last):
    leanrank.errors.InputError: loss='listnet' is not known: choose from hinge, logistic, squared, \
squared-hinge
    """
    from leanrank.errors import check_choice

    if not isinstance(name, str) or name not in LOSSES or not _draws_pairs(name):
        check_choice("loss", name, list(filter(_draws_pairs, LOSSES)))
    return get_loss(name)


def _draws_pairs(name: str) -> bool:
    return get_loss(name).offers("pair_slope")
