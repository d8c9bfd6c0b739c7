"""Damage to bytes and to JSON values."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

TOKENS = (
    b"0 1 -1 nan inf -inf 1e400 1e-400 -0.0 9007199254740993 99999999999999999999 4294967296 "
    b"2147483647 -2147483648 9223372036854775807 0x10 1_000 true null {} [] \" ' , ; : # \t \r\n "
    b"qid: Q0 \xd9\xa1\xd9\xa2 \xef\xbc\x91 \xc2\xa0 \xff \xfe\xff \xef\xbb\xbf \x00 \x1a \x1f\x8b"
).split(b" ")

NUMBERS: tuple[Any, ...] = (
    *(0, 1, -1, 2, 0.5, -0.0, 1e-320, 1e308, -1e308, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63)),
    *(10**30, float("nan"), float("inf"), True, False, None, "", "1", "nan", "\u0661", [], {}),
)


def mutated(rng: random.Random, content: bytes, tokens: Sequence[bytes] = TOKENS) -> bytes:
    """Return content with one to four changes."""
    text = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at, kind = rng.randrange(len(text) + 1), rng.randrange(9)
        if kind == 0 and text:
            text[at % len(text)] ^= 1 << rng.randrange(8)
        elif kind == 1 and text:
            text[at % len(text)] = rng.randrange(256)
        elif kind == 2:
            del text[at : at + rng.choice((1, 1, 2, 8, 64))]
        elif kind == 3:
            piece = bytes(text[at : at + rng.choice((1, 4, 16, 200))])
            to = rng.randrange(len(text) + 1)
            text[to:to] = piece
        elif kind == 4:
            text[at:at] = rng.choice(tokens)
        elif kind == 5:
            text[at : at + rng.choice((1, 2, 5))] = rng.choice(tokens)
        elif kind == 6:
            del text[at:]
        elif kind == 7:
            lines = bytes(text).split(b"\n")
            a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[a], lines[b] = lines[b], lines[a]
            text[:] = b"\n".join(lines)
        else:
            text[at:at] = bytes(rng.randrange(256) for _ in range(rng.choice((1, 4, 8))))
    return bytes(text)


def mutated_json(rng: random.Random, document: Any) -> Any:
    """Return a JSON value with one place changed, removed, doubled or renamed."""
    places = list(_places(document, ()))
    path = rng.choice(places)
    return _changed(rng, document, path)


def _places(value: Any, path: tuple[Any, ...]) -> Any:
    yield path
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _places(item, (*path, key))
    elif isinstance(value, list):
        for at in range(min(len(value), 12)):
            yield from _places(value[at], (*path, at))


def _changed(rng: random.Random, value: Any, path: tuple[Any, ...]) -> Any:
    if path:
        key, rest = path[0], path[1:]
        copy = dict(value) if isinstance(value, dict) else list(value)
        if not rest and rng.random() < 0.2:
            if isinstance(copy, dict) and rng.random() < 0.5:
                copy[rng.choice(["", "__class__", "x_", str(key) + "2", "state_"])] = copy[key]
            del copy[key]
            return copy
        copy[key] = _changed(rng, value[key], rest)
        return copy
    if isinstance(value, (int, float)) and not isinstance(value, bool) and rng.random() < 0.4:
        return rng.choice([value + 1, value - 1, value * 2, -value, value * 1.5, value + 10**6])
    if isinstance(value, list) and value and rng.random() < 0.5:
        return rng.choice([value[:-1], [*value, value[0]], value[::-1], value * 2])
    return rng.choice(NUMBERS)
