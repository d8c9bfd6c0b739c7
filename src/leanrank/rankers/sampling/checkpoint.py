"""State files: all that a run over a stream or an online learner knows, whole or not at all.

The first line names the format, its version and the SHA-256 of what follows: the arrays, as
``numpy.savez`` writes them, and a text of JSON among them. Reading executes nothing. A state is a
data class or a named tuple. Its annotations say what each field has to be, and its ``check``, if it
has one, how the fields fit together: kernels that do not look at bounds read its arrays.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from leanrank._files import HeldFile
from leanrank.data.streams import Position
from leanrank.errors import InputError

_MAGIC, _SCHEMA = b"leanrank-checkpoint", 3
_TEXT, _ARRAY = "header", "__array__"

T = TypeVar("T")


@dataclass(frozen=True)
class Checkpoint:
    """A moment of a run.

    Attributes
    ----------
    made_by : dict
        What the run depends on: version, algorithm, parameters, features, epochs, source.
    position : Position
        How far it had read.
    epoch : int
        Passes completed.
    queries, documents, width : int
        Read in this pass, and features seen.
    fitted : dict
        Fitted attributes of the ranker: numbers, text, lists and arrays.
    state : object, optional
        The ranker's ``state_``; None before the first query with information.
    """

    made_by: dict[str, Any]
    position: Position
    epoch: int
    queries: int
    documents: int
    width: int
    fitted: dict[str, Any]
    state: Any = None

    def save(self, file: HeldFile) -> None:
        """Write the file; an interrupted write leaves the one before."""
        file.replace(state_bytes(self, _MAGIC, _SCHEMA))

    @classmethod
    def load(cls, file: HeldFile, ranker: Any) -> Checkpoint | None:
        """Read what ``save`` wrote for a ranker; None if the file is new."""
        content, remedy = file.read(), ANOTHER
        if os.path.exists(file.previous):
            remedy = f"rename {file.previous.name}, the one before it, to go on from there"
        elif not content:
            return None

        def read(header: Any) -> Checkpoint:
            if header["state"] is not None:
                header["state"] = restored(ranker.state_type, header["state"])
            found: Checkpoint = restored(cls, header)
            _flat(found.made_by)
            fitted = found.fitted
            if found.state is not None and len(found.state.weights()) != fitted["n_features_in_"]:
                raise ValueError("its state has another number of features")
            if "feature_names_in_" in fitted:
                fitted["feature_names_in_"] = np.array(fitted["feature_names_in_"], dtype=object)
            return found

        try:
            return read_state(content, read, _MAGIC, _SCHEMA)
        except ValueError as error:
            raise InputError(f"{file.path}: {error}: {remedy}") from None

    def compare(self, made_by: Mapping[str, Any], path: str) -> None:
        """Reject a run other than the one that was begun, naming the difference."""
        then, now = (_flat(json.loads(json.dumps(each))) for each in (self.made_by, made_by))
        for name in {**now, **then}:
            if then.get(name) != now.get(name):
                raise InputError(
                    f"{path}: this checkpoint was made with {name}={then.get(name)}, not "
                    f"{name}={now.get(name)}: {ANOTHER}"
                )


ANOTHER = "give another checkpoint file, or delete this one to start again"
"""What to do about a checkpoint that cannot be used."""


def _flat(made_by: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a run depends on under names for a message."""
    rest = {name: value for name, value in made_by.items() if name != "source"}
    files = [source.get("file", "an iterable") for source in made_by["source"]]
    found = {**rest.pop("parameters"), **rest, "sources": ", ".join(files)}
    for file, source in zip(files, made_by["source"], strict=True):
        found |= {f"{name} of {file}": value for name, value in source.items() if name != "file"}
    return found


def state_bytes(state: Any, magic: bytes, schema: int) -> bytes:
    """Return the content of a state file."""
    arrays: dict[str, Any] = {}
    text = json.dumps(_plain(state, arrays)).encode()
    stream = io.BytesIO()
    arrays[_TEXT] = np.frombuffer(text, np.uint8)
    np.savez(stream, **arrays)
    body = stream.getvalue()
    return _first_line(body, magic, schema) + body


def read_state(content: bytes, read: Callable[[Any], T], magic: bytes, schema: int) -> T:
    """Check the first line of a state file, and have ``read`` make sense of the header.

    A ValueError says what is wrong.
    """
    first, _, body = content.partition(b"\n")
    words = first.split(b" ")
    if content and (len(words) != 3 or words[0] != magic):
        raise ValueError(f"this is no {magic.decode()} file")
    if content and words[1] != b"%d" % schema:
        raise ValueError(
            f"this file has schema version {words[1].decode('ascii', 'replace')[:9]}, but this "
            f"leanrank reads version {schema}"
        )
    if not content or first + b"\n" != _first_line(body, magic, schema):
        raise ValueError("this file is damaged (its checksum does not fit its content)")
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as arrays:
            text = arrays[_TEXT].tobytes()

            def with_arrays(entries: dict[str, Any]) -> Any:
                return arrays[str(entries[_ARRAY])] if set(entries) == {_ARRAY} else entries

            return read(json.loads(text, object_hook=with_arrays))
    except Exception as error:  # somebody wrote this file by hand
        raise ValueError(f"this file is damaged ({type(error).__name__}: {error})") from None


def _first_line(body: bytes, magic: bytes, schema: int) -> bytes:
    return b"%s %d %s\n" % (magic, schema, hashlib.sha256(body).hexdigest().encode())


def fitted_attributes(ranker: Any) -> dict[str, Any]:
    """Return what fitting set on a ranker."""
    return {
        name: value
        for name, value in vars(ranker).items()
        if name.endswith("_") and not name.startswith("_")
    }


def _plain(value: Any, arrays: dict[str, Any]) -> Any:
    """Turn a value into JSON, with the arrays set aside."""
    if isinstance(value, np.ndarray):
        if value.dtype == object:
            return value.tolist()
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {_ARRAY: name}
    if isinstance(value, np.generic):
        return value.item()
    if is_dataclass(value):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {str(key): _plain(item, arrays) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, arrays) for item in value]
    return value


def restored(kind: Any, value: Any, where: str = "it") -> Any:
    """Make a value of an annotated type, and check it: no number of a state is negative.

    >>> restored(Position, {"part": 0, "offset": 7, "line": 1, "queries": 1, "documents": 3})
    Position(part=0, offset=7, line=1, queries=1, documents=3)
    >>> restored(float, -1.0, "rate")
    Traceback (most recent call last):
        ...
    ValueError: rate is out of its range
    """
    if kind is Any:
        return value
    if type(None) in get_args(kind):
        kind = get_args(kind)[0]
    if get_origin(kind) is np.ndarray:
        dtype = get_args(get_args(kind)[1])[0]
        if not isinstance(value, np.ndarray) or value.dtype != dtype:
            raise ValueError(f"{where} is not an array of {dtype.__name__}")
        if not np.isfinite(value).all():
            raise ValueError(f"{where} holds a number that is not finite")
        return value
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        if not isinstance(value, dict) or set(value) != set(hints):
            raise ValueError(f"{where} has missing or unknown entries")
        assert callable(kind)
        made = kind(**{name: restored(hints[name], value[name], name) for name in hints})
        if hasattr(made, "check"):
            made.check()
        return made
    kind = get_origin(kind) or kind
    if type(value) is not kind:
        raise ValueError(f"{where} is not of type {kind.__name__}")
    if kind in (int, float) and not 0 <= value <= (2**62 if kind is int else np.inf):
        raise ValueError(f"{where} is out of its range")
    return value
