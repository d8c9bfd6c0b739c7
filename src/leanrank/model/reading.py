"""Reading a model file: strict, with clear errors, and without executing anything."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from typing import Any

from leanrank.errors import FileError, ModelError
from leanrank.model.base import Model
from leanrank.model.boosted import BoostedModel
from leanrank.model.fields import Duplicated, Field, shorten
from leanrank.model.linear import LinearModel

FORMAT = "leanrank-model"
SCHEMA_VERSIONS = (1,)
MAX_BYTES = 64 * 2**20

KINDS: dict[str, Callable[[Field], Model]] = {
    "linear": LinearModel.from_field,
    "boosted": BoostedModel.from_field,
}


def load_model(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Model:
    """Read a model file.

    The file is data: nothing in it is executed, and any deviation from the format is rejected, so
    untrusted files can be read safely. A pickled model cannot.

    Parameters
    ----------
    path : path
        The file, or ``"-"`` for standard input.
    max_bytes : int
        Refuse larger files.

    Raises
    ------
    ModelError
        The file is not a valid model; the message names the file, the field and what is expected.
    FileError
        The file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     LinearModel.from_coef([0.0, 1.5]).save(f"{folder}/m.json")
    ...     load_model(f"{folder}/m.json")
    LinearModel: 1 of 2 features
      f2   1.5
    """
    source, content = _read(path, max_bytes)
    root = check_header(Field(_parse(content, source), source))
    return KINDS[root["kind"].value](root)


def check_header(root: Field, kinds: Iterable[str] | None = None) -> Field:
    """Check format, schema version and kind, before anything else."""
    root.object()
    root.object(("format",))
    if root["format"].string() != FORMAT:
        root["format"].wrong(f"{FORMAT!r}")
    root.object(("schema_version",))
    version = root["schema_version"]
    if isinstance(version.value, bool) or not isinstance(version.value, int):
        version.wrong("a whole number")
    if version.value not in SCHEMA_VERSIONS:
        readable = " and ".join(map(str, SCHEMA_VERSIONS))
        version.fail(
            f"is {version.value}, but this release reads version {readable}: use a release of "
            "leanrank that knows it"
        )
    root.object(("kind",))
    known = list(KINDS if kinds is None else kinds)
    if root["kind"].string() not in known:
        root["kind"].wrong(" or ".join(map(repr, known)))
    return root


def _read(path: str | os.PathLike[str], max_bytes: int) -> tuple[str, bytes]:
    name = os.fspath(path)
    try:
        if name == "-":
            name, content = "<stdin>", sys.stdin.buffer.read(max_bytes + 1)
        else:
            with open(name, "rb") as stream:
                content = stream.read(max_bytes + 1)
    except OSError as error:
        raise FileError(f"{name}: cannot be read ({error.strerror or error})") from error
    if len(content) > max_bytes:
        raise ModelError(
            f"{name}: the file is larger than {max_bytes:,} bytes, the limit for a model: raise "
            "max_bytes if it is meant to be that large"
        )
    return name, content


def _parse(content: bytes, source: str) -> Any:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelError(
            f"{source}: byte {error.start + 1} is not UTF-8 text: a model is a JSON document"
        ) from error
    try:
        return json.loads(text, object_pairs_hook=_object, parse_float=_float)
    except json.JSONDecodeError as error:
        raise ModelError(
            f"{source}, line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})"
        ) from error
    except RecursionError as error:
        raise ModelError(f"{source}: not a model: the JSON is nested too deeply") from error
    except ValueError as error:  # a number beyond what Python or a double can hold
        raise ModelError(f"{source}: not a model: {error}") from error


def _float(text: str) -> float:
    number = float(text)
    if number == 0 and re.search("[1-9]", text.lower().partition("e")[0]):
        raise ValueError(f"the number {shorten(text)} is too small for a double")
    return number


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    marked = Duplicated(plain)
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            marked.key = key
            break
        seen.add(key)
    return marked
