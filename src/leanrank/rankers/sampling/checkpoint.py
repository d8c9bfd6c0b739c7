"""Checkpoints: all that a run over a stream knows, in one file that appears whole or not at all.

The file begins with a line that names the format, its version and the SHA-256 of all that follows:
a line of JSON, and the arrays that it names, one after the other. Reading one executes nothing, and
every value is checked for its type, shape and range before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, TypeVar

import numpy as np

from leanrank._files import HeldFile
from leanrank.data.streams import Position
from leanrank.errors import InputError
from leanrank.rankers.sampling import run_states

_MAGIC = b"leanrank-checkpoint"
_SCHEMA = 2
_ARRAY = "__array__"
_RECORD = "__record__"
_DTYPES = ("<f8", "<i8", "<u8")

T = TypeVar("T")

ANOTHER = "give another checkpoint file, or delete this one to start again"
"""What to do about a checkpoint that cannot be used."""


@dataclass(frozen=True)
class Checkpoint:
    """A moment of a run.

    Parameters
    ----------
    made_by : dict
        What the run depends on: version, algorithm, parameters, features, source.
    position : Position
        How far it had read.
    epoch : int
        Passes completed.
    fitted : dict
        Fitted attributes of the ranker: numbers, text, lists, arrays and the run's state.
    notes : dict
        What else the run must remember: counts.
    """

    made_by: dict[str, Any]
    position: Position
    epoch: int
    fitted: dict[str, Any]
    notes: dict[str, int] = field(default_factory=dict)

    def save(self, file: HeldFile) -> None:
        """Write the file; an interrupted write leaves the one before."""
        try:
            run_states.check_fitted(self.fitted)
        except ValueError as error:
            raise InputError(f"{file.path}: the run cannot be kept: {error}") from None
        header = {
            "made_by": self.made_by,
            "position": self.position.to_dict(),
            "epoch": self.epoch,
            "fitted": self.fitted,
            "notes": self.notes,
        }
        file.replace(state_bytes(header))

    @classmethod
    def load(cls, file: HeldFile) -> Checkpoint | None:
        """Read what ``save`` wrote; None if the file is new."""
        content = file.read()
        if not content and not os.path.exists(file.previous):
            return None
        try:
            return cls._read(content)
        except ValueError as error:
            if str(error):
                raise InputError(f"{file.path}: {error}{recovery(file)}") from None
            raise InputError(
                f"{file.path}: this is no checkpoint of leanrank: give another file"
            ) from None

    @classmethod
    def _read(cls, content: bytes) -> Checkpoint:
        def read(header: Any, arrays: Arrays) -> Checkpoint:
            run_states.check_header(header)
            fitted = unpack(header["fitted"], arrays)
            run_states.check_fitted(fitted)
            position = Position.from_dict(header["position"])
            return cls(header["made_by"], position, header["epoch"], fitted, header["notes"])

        return read_state(content, read)

    def check(self, made_by: Mapping[str, Any], ranker: Any, path: str) -> None:
        """Reject a run other than the one that was begun, naming the difference."""
        difference = _first_difference(self.made_by, json.loads(json.dumps(made_by)))
        if difference is not None:
            raise InputError(f"{path}: this checkpoint {difference}: {ANOTHER}")
        try:
            run_states.check_ranker(self.fitted, ranker)
        except ValueError as error:
            raise InputError(f"{path}: this checkpoint is damaged ({error}): {ANOTHER}") from None


def state_bytes(header: Mapping[str, Any], magic: bytes = _MAGIC, schema: int = _SCHEMA) -> bytes:
    """Return the content of a state file: numbers, text, lists, arrays and known records."""
    arrays: list[Any] = []
    packed = json.dumps(_pack(header, arrays)).encode()
    body = b"".join([packed, b"\n", *(array.tobytes() for array in arrays)])
    return _first_line(body, magic, schema) + body


def read_state(
    content: bytes, read: Callable[[Any, Arrays], T], magic: bytes = _MAGIC, schema: int = _SCHEMA
) -> T:
    """Check the first line of a state file, and have ``read`` make sense of the header.

    A ValueError says what is wrong; it is empty if this is no state file.
    """
    first, _, body = content.partition(b"\n")
    words = first.split(b" ")
    if content and (len(words) != 3 or words[0] != magic):
        raise ValueError
    if content and words[1] != b"%d" % schema:
        raise ValueError(
            f"this checkpoint has schema version {words[1].decode('ascii', 'replace')[:9]}, "
            f"but this leanrank reads version {schema}"
        )
    if not content or first + b"\n" != _first_line(body, magic, schema):
        raise ValueError("this checkpoint is damaged (its checksum does not fit its content)")
    try:
        text, _, raw = body.partition(b"\n")
        return read(json.loads(text), Arrays(raw))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"this checkpoint is damaged ({error})") from None


def _first_line(body: bytes, magic: bytes, schema: int) -> bytes:
    return b"%s %d %s\n" % (magic, schema, hashlib.sha256(body).hexdigest().encode())


def recovery(file: HeldFile) -> str:
    """Return how to go on with a damaged state file, to end a message with."""
    if not os.path.exists(file.previous):
        return f": {ANOTHER}"
    return f": rename {file.previous.name}, the one before it, to go on from there, or delete both"


def fitted_attributes(ranker: Any) -> dict[str, Any]:
    """Return what fitting set on a ranker."""
    return {
        name: value
        for name, value in vars(ranker).items()
        if name.endswith("_") and not name.startswith("_")
    }


def _first_difference(then: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    if then.get("version") != now["version"]:
        return f"is of leanrank {then.get('version')}, and this is {now['version']}"
    if then["algorithm"] != now["algorithm"]:
        return f"is of {then['algorithm']}, not of {now['algorithm']}"
    before, after = then["parameters"], now["parameters"]
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            return f"was made with {name}={_show(before, name)}, not {name}={_show(after, name)}"
    for name in ("features", "epochs"):
        if then[name] != now[name]:
            return f"was made with {name}={then[name]}, not {name}={now[name]}"
    return _source_difference(then["source"], now["source"])


def _source_difference(then: list[dict[str, Any]], now: list[dict[str, Any]]) -> str | None:
    if len(then) != len(now):
        return f"was made from {len(then)} source(s), not from {len(now)}"
    for before, after in zip(then, now, strict=True):
        if before == after:
            continue
        file, other = before.get("file", "an iterable"), after.get("file", "an iterable")
        if file != other:
            return f"was made from {file}, not from {other}"
        if any(before.get(key) != after.get(key) for key in ("bytes", "digest", "modified")):
            return f"was made when {file} was another file (its size or content has changed)"
        if before.get("changed") != after.get("changed"):
            return f"was made from {file} {_how(before)}, not {_how(after)}"
        odd = next(key for key in {**before, **after} if before.get(key) != after.get(key))
        return (
            f"was made with {file} read with {odd}={_show(before, odd)}, not {odd}="
            f"{_show(after, odd)}"
        )
    return None


def _how(source: Mapping[str, Any]) -> str:
    changes = source.get("changed")
    return "changed by " + ", ".join(changes) if changes else "as it is"


def _show(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    return value if isinstance(value, str) else json.dumps(value)


def _pack(value: Any, arrays: list[Any]) -> Any:
    """Turn a value into JSON, with the arrays set aside."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        plain = np.ascontiguousarray(value, dtype=value.dtype.newbyteorder("<"))
        if plain.dtype.str not in _DTYPES:
            raise InputError(f"an array of {value.dtype} cannot be kept in a checkpoint")
        arrays.append(plain)
        return {_ARRAY: plain.dtype.str, "shape": list(value.shape)}
    if isinstance(value, np.ndarray):
        return {"__texts__": [str(item) for item in value.tolist()]}
    if isinstance(value, np.generic):
        return value.item()
    if type(value).__name__ in run_states.RECORDS:
        return {_RECORD: type(value).__name__, "fields": _pack(_fields_of(value), arrays)}
    if isinstance(value, Mapping):
        return {str(key): _pack(item, arrays) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_pack(item, arrays) for item in value]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise InputError(f"a {type(value).__name__} cannot be kept in a checkpoint")


def _fields_of(record: Any) -> dict[str, Any]:
    if hasattr(record, "_asdict"):
        return dict(record._asdict())
    return {field.name: getattr(record, field.name) for field in fields(record)}


class Arrays:
    """Takes arrays from the bytes after the header, in their order."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self.at = 0

    def take(self, dtype: Any, shape: Any) -> Any:
        if dtype not in _DTYPES:
            raise ValueError("an array is of no known type")
        sizes = isinstance(shape, list) and len(shape) <= 2
        if not sizes or not all(type(n) is int and 0 <= n < 2**48 for n in shape):
            raise ValueError("an array has no shape")
        n_bytes = 8 * int(np.prod([*shape, 1], dtype=object))
        start, self.at = self.at, self.at + n_bytes
        if self.at > len(self.raw):
            raise ValueError("an array is longer than the file")
        flat = np.frombuffer(self.raw[start : self.at], dtype=dtype)
        return flat.astype(flat.dtype.newbyteorder("=")).reshape(shape)


def unpack(value: Any, arrays: Arrays) -> Any:
    """Restore a value of a header, with its arrays and records."""
    if isinstance(value, list):
        return [unpack(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if _ARRAY in value:
        return arrays.take(value[_ARRAY], value.get("shape"))
    if "__texts__" in value:
        texts = value["__texts__"]
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError("a list of texts is none")
        return np.array(texts, dtype=object)
    if _RECORD in value:
        return run_states.make_record(value[_RECORD], unpack(value.get("fields"), arrays))
    return {key: unpack(item, arrays) for key, item in value.items()}
