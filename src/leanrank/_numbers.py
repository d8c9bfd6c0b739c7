"""Checks of numbers that a caller gives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

from leanrank.errors import InputError


def is_whole(value: Any) -> bool:
    """Return whether a value is a whole number, also of NumPy; True and False are not."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_number(value: Any) -> bool:
    """Return whether a value is a real number, infinity included; NaN, True and False are not."""
    return isinstance(value, Real) and not isinstance(value, bool) and value == value


def check_whole(name: str, value: Any, low: int = 1, high: int | None = None) -> int:
    """Return a whole number; raise an InputError if it is out of range.

    >>> check_whole("epochs", 0)
    Traceback (most recent call last):
    leanrank.errors.InputError: epochs=0 must be a whole number, at least 1
    """
    if not is_whole(value) or value < low or (high is not None and value > high):
        limit = f"at least {low}" if high is None else f"from {low} to {high}"
        raise InputError(f"{name}={value!r} must be a whole number, {limit}")
    return int(value)


def check_number(
    name: str, value: Any, *, low: float = 0.0, open_low: bool = False, high: float = math.inf
) -> float:
    """Return a finite number; raise an InputError if it is out of range.

    >>> check_number("alpha", 0.5)
    0.5
    >>> check_number("alpha", -1)
    Traceback (most recent call last):
    leanrank.errors.InputError: alpha=-1 must be a finite number, at least 0
    """
    wrong = not is_number(value) or not (value > low if open_low else value >= low)
    if wrong or value > high or not abs(value) < math.inf:
        bound = f"{'above' if open_low else 'at least'} {low:g}"
        if high < math.inf:
            bound += f" and at most {high:g}"
        raise InputError(f"{name}={value!r} must be a finite number, {bound}")
    return float(value)


def defined(value: Any) -> Any:
    """Return plain values for JSON, with None for numbers that are not finite.

    >>> defined({"p": float("nan"), "interval": (0.5, float("inf"))})
    {'p': None, 'interval': [0.5, None]}
    """
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): defined(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [defined(item) for item in value]
    return value
