"""Checking a parsed JSON document field by field, so that every error names its place."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator
from typing import Any, NoReturn

from leanrank.errors import ModelError, first_repeated

MAX_DEPTH = 32
"""Nesting of objects and lists; a model needs five."""

_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Duplicated(dict[str, Any]):
    """A JSON object in which a key occurred twice; kept so that the error can say where."""

    key: str = ""


class Field:
    """One value of a document with its place, such as ``weights[3].value``.

    Parameters
    ----------
    value : object
        The parsed value.
    source : str
        The file, for messages.
    path : str
        The place in the document; empty for the document itself.

    Examples
    --------
    >>> Field({"a": [1, True]}, "m.json")["a"][1].number()
    Traceback (most recent call last):
        ...
    leanrank.errors.ModelError: m.json: a[1] is true: a number is expected
    """

    __slots__ = ("path", "source", "value")

    def __init__(self, value: Any, source: str, path: str = "") -> None:
        self.value = value
        self.source = source
        self.path = path

    def fail(self, problem: str) -> NoReturn:
        """Raise with the file and the place in front of ``problem``."""
        raise ModelError(f"{self.source}: {self.path or 'the document'} {problem}")

    def wrong(self, expected: str) -> NoReturn:
        """Raise because the value is of the wrong kind."""
        self.fail(f"is {describe(self.value)}: {expected} is expected")

    def __getitem__(self, key: str | int) -> Field:
        if isinstance(key, int):
            return Field(self.value[key], self.source, f"{self.path}[{key}]")
        return Field(self.value[key], self.source, self._below(key))

    def object(
        self, required: Collection[str] = (), optional: Collection[str] | None = None
    ) -> Field:
        """Check for an object with these keys; ``optional=None`` allows any others."""
        if not isinstance(self.value, dict):
            self.wrong("an object")
        if isinstance(self.value, Duplicated):
            self.fail(f"has the key {self.value.key!r} twice: keep one")
        if not all(isinstance(key, str) for key in self.value):
            self.fail("has a key that is not a text")
        for key in required:
            if key not in self.value:
                self.fail(f"lacks the key {key!r}")
        if optional is not None:
            for key in self.value:
                if key not in required and key not in optional:
                    known = ", ".join([*required, *optional])
                    self.fail(f"has the unknown key {shorten(key)}: the keys here are {known}")
        return self

    def array(self) -> Iterator[Field]:
        """Check for a list and return its elements."""
        if not isinstance(self.value, list):
            self.wrong("a list")
        return (self[at] for at in range(len(self.value)))

    def string(self) -> str:
        """Check for text that can be written as UTF-8 again."""
        if not isinstance(self.value, str):
            self.wrong("a text")
        if not is_utf8(self.value):
            self.fail("holds half of a surrogate pair: write the whole character")
        return self.value

    def number(self) -> float:
        """Check for a finite number that a double holds; true and false are none."""
        if isinstance(self.value, bool) or not isinstance(self.value, (int, float)):
            self.wrong("a number")
        try:
            number = float(self.value)
        except OverflowError:
            number = math.inf
        if not math.isfinite(number):
            self.fail(
                "is not a finite number: NaN, Infinity and numbers beyond 1.8e308 are not allowed"
            )
        if number != self.value:
            self.fail(
                f"is {describe(self.value)}, a whole number that a double cannot hold: the nearest "
                f"is {number:.0f}"
            )
        return number

    def integer(self, low: int, high: int) -> int:
        """Check for a whole number in a closed range."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            self.wrong("a whole number")
        if not low <= self.value <= high:
            self.wrong(f"a whole number from {low} to {high}")
        return self.value

    def json(self, depth: int = 0) -> Any:
        """Check any JSON value all the way down: finite numbers, distinct keys, sane depth."""
        if depth > MAX_DEPTH:
            self.fail(f"is nested more than {MAX_DEPTH} levels deep")
        if self.value is None or isinstance(self.value, bool):
            return self.value
        if isinstance(self.value, dict):
            self.object()
            for key in self.value:
                if not is_utf8(key):
                    self.fail("has a key with half of a surrogate pair: write the whole character")
            return {key: self[key].json(depth + 1) for key in self.value}
        if isinstance(self.value, list):
            return [item.json(depth + 1) for item in self.array()]
        if isinstance(self.value, str):
            return self.string()
        self.number()
        return self.value

    def _below(self, key: str) -> str:
        if not _PLAIN_KEY.fullmatch(key):
            return f"{self.path}[{shorten(key)}]"
        return f"{self.path}.{key}" if self.path else key


def describe(value: Any) -> str:
    """Describe a value in a few words.

    >>> describe([1, 2]), describe("x" * 100), describe(None)
    ('a list', "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…'", 'null')
    """
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, (str, float)):
        return shorten(value)
    if isinstance(value, int):
        return str(value) if abs(value) < 10**30 else "a very large number"
    return f"a {type(value).__name__}"


def shorten(value: str | float) -> str:
    """Quote a value, cut to a length that fits in a sentence."""
    text = repr(value)
    if len(text) <= 40:
        return text
    return repr(str(value)[:37])[:-1] + "…" + text[-1]


def is_utf8(text: str) -> bool:
    """Return whether text has no lone surrogates."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def check_names(names: tuple[str, ...] | None, n_features: int) -> None:
    """Reject names that are not one distinct text per feature."""
    if names is None:
        return
    if len(names) != n_features:
        raise ModelError(f"{len(names)} feature names were given for {n_features} features")
    twice = first_repeated(names)
    if twice is not None:
        raise ModelError(f"the feature name {shorten(twice)} occurs twice: names must be distinct")
    for name in names:
        if not is_utf8(name):
            raise ModelError(f"the feature name {shorten(name)} cannot be written as UTF-8")
