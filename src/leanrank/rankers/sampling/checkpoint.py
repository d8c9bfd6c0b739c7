"""Checkpoints: all that a run over a stream knows, in one file that appears whole or not at all.

The file is a NumPy archive of plain arrays with a JSON header: reading one executes nothing.
"""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from importlib import import_module
from typing import Any

import numpy as np

from leanrank._files import atomic_write
from leanrank.data.streams import Position
from leanrank.errors import FileError, InputError

_FORMAT = "leanrank-checkpoint"
_SCHEMA = 1
_ARRAY = "__array__"
_RECORDS = {
    "FTRLRule": "leanrank.solvers.sampling.ftrl",
    "FTRLState": "leanrank.solvers.sampling.ftrl",
    "PairRule": "leanrank.solvers.sampling.pair_descent",
    "PairState": "leanrank.solvers.sampling.pair_descent",
    "ScaledWeights": "leanrank.solvers.sampling._scaled_weights",
    "ViewedState": "leanrank.solvers.sampling.coregularised",
    "Views": "leanrank.solvers.sampling.coregularised",
}
"""Dataclasses and named tuples that a state may be made of; no other class is ever looked up."""

_ANOTHER = "give another checkpoint file, or delete this one to start again"


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
        What else the run must remember.
    """

    made_by: dict[str, Any]
    position: Position
    epoch: int
    fitted: dict[str, Any]
    notes: dict[str, Any] = field(default_factory=dict)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file; whoever is interrupted leaves the one before in place."""
        arrays: dict[str, Any] = {}
        header = {
            "format": _FORMAT,
            "schema_version": _SCHEMA,
            "made_by": self.made_by,
            "position": self.position.to_dict(),
            "epoch": self.epoch,
            "fitted": _pack(self.fitted, arrays),
            "notes": self.notes,
        }
        text = json.dumps(header).encode("utf-8")
        with atomic_write(path, "wb") as stream:
            np.savez(stream, header=np.frombuffer(text, dtype=np.uint8), **arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Checkpoint:
        """Read what :meth:`save` wrote."""
        name = os.fspath(path)
        try:
            with np.load(path, allow_pickle=False) as archive:
                arrays = {key: archive[key] for key in archive.files}
            header = json.loads(arrays.pop("header").tobytes().decode("utf-8"))
            if header["format"] != _FORMAT:
                raise KeyError(header["format"])
            if header["schema_version"] != _SCHEMA:
                raise InputError(
                    f"{name}: this checkpoint has schema version {header['schema_version']}, but "
                    f"this leanrank reads version {_SCHEMA}: {_ANOTHER}"
                )
            return cls(
                header["made_by"],
                Position.from_dict(header["position"]),
                header["epoch"],
                _unpack(header["fitted"], arrays),
                header["notes"],
            )
        except InputError:
            raise
        except (ValueError, KeyError, TypeError, AttributeError, EOFError, zipfile.BadZipFile):
            raise InputError(
                f"{name}: this is no checkpoint of leanrank: give another file"
            ) from None
        except OSError as error:
            raise FileError(f"{name}: cannot be read ({error.strerror or error})") from error

    def check(self, made_by: Mapping[str, Any], path: str | os.PathLike[str]) -> None:
        """Refuse to go on with something else than what was begun, and say what differs."""
        difference = _first_difference(self.made_by, json.loads(json.dumps(made_by)))
        if difference is not None:
            raise InputError(f"{os.fspath(path)}: this checkpoint {difference}: {_ANOTHER}")


def fitted_attributes(ranker: Any) -> dict[str, Any]:
    """Give what fitting set on a ranker."""
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
        if (before.get("bytes"), before.get("head")) != (after.get("bytes"), after.get("head")):
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


def _pack(value: Any, arrays: dict[str, Any]) -> Any:
    """Turn a value into JSON, with the arrays set aside."""
    if isinstance(value, np.ndarray) and value.dtype != object:
        name = f"a{len(arrays)}"
        arrays[name] = value
        return {_ARRAY: name}
    if isinstance(value, np.ndarray):
        return {"__texts__": [str(item) for item in value.tolist()]}
    if isinstance(value, np.generic):
        return value.item()
    if type(value).__name__ in _RECORDS:
        return {"__record__": type(value).__name__, "fields": _pack(_fields_of(value), arrays)}
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


def _unpack(value: Any, arrays: Mapping[str, Any]) -> Any:
    if isinstance(value, list):
        return [_unpack(item, arrays) for item in value]
    if not isinstance(value, dict):
        return value
    if _ARRAY in value:
        return arrays[value[_ARRAY]]
    if "__texts__" in value:
        return np.array(value["__texts__"], dtype=object)
    if "__record__" in value:
        name = value["__record__"]
        record = getattr(import_module(_RECORDS[name]), name)
        return record(**_unpack(value["fields"], arrays))
    return {key: _unpack(item, arrays) for key, item in value.items()}
