"""``-p alpha=0.01``: text from the command line to an estimator's parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from leanrank.errors import InputError, suggest

_WHOLE = re.compile(r"[+-]?[0-9]+")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf")
_LONGEST = 4000
"""Digits from which Python refuses to read a whole number."""

_WORDS = {"true": True, "True": True, "false": False, "False": False, "None": None, "null": None}


def parse_parameters(
    given: Sequence[str], defaults: Mapping[str, Any], of: str, option: str = "-p"
) -> dict[str, Any]:
    """Read ``name=value`` words, such as the parameters of an estimator.

    Parameters
    ----------
    given : sequence of str
        As typed.
    defaults : mapping
        The parameters there are and their default values.
    of : str
        Whose they are, for messages.
    option : str
        The option that takes them, for messages.

    Examples
    --------
    >>> parse_parameters(["alpha=2", "normalize=none"], {"alpha": 1.0, "normalize": "query"}, "R")
    {'alpha': 2, 'normalize': 'none'}
    """
    parsed: dict[str, Any] = {}
    for word in given:
        name, equals, text = word.partition("=")
        name = name.strip()
        if not equals or not name:
            example = f"{option} {next(iter(defaults))}=…"
            raise InputError(f"{option} {word}: write NAME=VALUE, such as {example}")
        if name not in defaults:
            kind = "parameter" if option == "-p" else "option"
            raise InputError(f"{of} has no {kind} {name!r}: {suggest(name, defaults)}")
        if name in parsed:
            raise InputError(f"{option} {name}=… is given twice: give it once")
        parsed[name] = parse_value(text.strip(), defaults[name])
        is_switch = option == "-p" and isinstance(defaults[name], bool)
        if is_switch and not isinstance(parsed[name], bool):
            raise InputError(f"{option} {word}: {name} is either on or off: write true or false")
    return parsed


def parse_value(text: str, default: Any = None) -> Any:
    """Turn text into a number, truth value, None, list, JSON object or, failing that, text.

    The word ``none`` is a text for a parameter whose default is one, such as ``normalize``.

    >>> [parse_value(t) for t in ("3", "1e-3", "true", "none", "map", "1,2.5,", "'3'")]
    [3, 0.001, True, None, 'map', [1, 2.5], '3']
    >>> parse_value("none", default="query")
    'none'
    >>> parse_value('{"age": [0, 7, 365]}')
    {'age': [0, 7, 365]}
    """
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise InputError(
                f'{text[:40]} is not a JSON object: write {{"NAME": VALUE, …}}'
            ) from None
    if "," in text:
        parts = [part.strip() for part in text.split(",")]
        return [parse_value(part) for part in (parts if parts[-1] else parts[:-1])]
    if text in _WORDS:
        return _WORDS[text]
    if text == "none" and not isinstance(default, str):
        return None
    if _WHOLE.fullmatch(text) and len(text) < _LONGEST:
        return int(text)
    if _REAL.fullmatch(text):
        return float(text)
    return text


def parse_directions(text: str) -> dict[str, int]:
    """Read ``name=up`` or ``name=down`` words between commas.

    >>> parse_directions("bm25=up, spam=down")
    {'bm25': 1, 'spam': -1}
    """
    directions = {"up": 1, "down": -1}
    found: dict[str, int] = {}
    for word in text.split(","):
        name, _, direction = (part.strip() for part in word.rpartition("="))
        if not name or direction not in directions:
            raise InputError(f"--monotone {word.strip()}: write NAME=up or NAME=down")
        if name in found:
            raise InputError(f"--monotone {name}=… is given twice: give it once")
        found[name] = directions[direction]
    return found
