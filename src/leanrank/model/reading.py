"""Reading a model file: strict, with clear errors, and without executing anything."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from typing import Any

from leanrank.data.matrices import MOST_FEATURES
from leanrank.errors import FileError, ModelError, first_repeated
from leanrank.model.curves import Curve, Line, Ramps, Steps
from leanrank.model.fields import Duplicated, Field, shorten
from leanrank.model.model import Model
from leanrank.model.provenance import read_provenance
from leanrank.model.terms import Levels, Surface

FORMAT = "leanrank-model"
SCHEMA_VERSION = 1
CURVES: tuple[type[Curve], ...] = (Line, Ramps, Steps, Levels)
MAX_BYTES = 64 * 2**20


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
    ...     Model.from_coef([0.0, 1.5]).save(f"{folder}/m.json")
    ...     load_model(f"{folder}/m.json")
    Model: 1 of 2 features
      f2   1.5
    """
    source, content = _read(path, max_bytes)
    return Model.from_dict(_parse(content, source), source)


def read_document(root: Field) -> dict[str, Any]:
    """Read a document into the parameters of a model."""
    _check_header(root)
    root.object(
        ("format", "schema_version", "n_features", "curves"),
        ("feature_names", "normalizer", "fill", "surfaces", "provenance", "summary"),
    )
    n_features = root["n_features"].integer(0, MOST_FEATURES)
    names = _read_names(root, n_features)
    read_feature = _feature_reader(n_features, names)
    given = root.value.get("normalizer")
    has_surfaces = root.value.get("surfaces") is not None
    return {
        "n_features": n_features,
        "curves": _read_curves(root["curves"], read_feature),
        "feature_names": names,
        "normalizer": None if given is None else root["normalizer"].object().json(),
        "provenance": read_provenance(root["provenance"]) if "provenance" in root.value else {},
        "surfaces": _read_surfaces(root["surfaces"], read_feature) if has_surfaces else {},
        "fill": _read_fill(root["fill"], read_feature) if root.value.get("fill") else {},
        "summary": _read_summary(root, read_feature),
    }


def _check_header(root: Field) -> None:
    """Check the format and the schema version, before anything else."""
    root.object()
    root.object(("format",))
    if root["format"].string() != FORMAT:
        root["format"].wrong(f"{FORMAT!r}")
    root.object(("schema_version",))
    version = root["schema_version"]
    if isinstance(version.value, bool) or not isinstance(version.value, int):
        version.wrong("a whole number")
    if version.value != SCHEMA_VERSION:
        version.fail(
            f"is {version.value}, but this release reads version {SCHEMA_VERSION}: use a release "
            "of leanrank that knows it"
        )


def _read_names(root: Field, n_features: int) -> tuple[str, ...] | None:
    """Read the distinct names of all features, if the document has them."""
    if root.value.get("feature_names") is None:
        return None
    listed = root["feature_names"]
    seen: dict[str, int] = {}
    for at, item in enumerate(listed.array()):
        name = item.string()
        if seen.setdefault(name, at) != at:
            item.fail(f"is {shorten(name)}, which feature_names[{seen[name]}] is already")
    if len(seen) != n_features:
        listed.fail(f"has {len(seen)} names but n_features is {n_features}")
    return tuple(seen)


def _feature_reader(n_features: int, names: tuple[str, ...] | None) -> Callable[[Field], int]:
    """Return a function that reads a feature: by name if there are names, else by index."""
    if names is None:
        return lambda feature: feature.integer(0, n_features - 1)
    known = {name: at for at, name in enumerate(names)}

    def by_name(feature: Field) -> int:
        name = feature.string()
        if name not in known:
            feature.fail(f"is {shorten(name)}, which is not in feature_names")
        return known[name]

    return by_name


def _read_curves(listed: Field, read_feature: Callable[[Field], int]) -> dict[int, Curve]:
    """Read what single features add, in any order."""
    found: dict[int, Curve] = {}
    for item in listed.array():
        item.object(("feature",))
        kind = next((one for one in CURVES if one.keys[0] in item.value), Line)
        item.object(("feature", *kind.keys), ("missing",))
        given: dict[str, Any] = {}
        for key in kind.keys:
            texts = kind is Levels and key == "levels"
            given[key] = item[key].number() if kind is Line else _numbers(item[key], texts=texts)
        if "missing" in item.value:
            given["missing"] = item["missing"].number()
        curve = _made(item, kind, given)
        feature = item["feature"]
        at = read_feature(feature)
        if at in found:
            feature.fail(f"is {shorten(feature.value)}, which has a curve already")
        found[at] = curve
    return found


def _read_surfaces(
    listed: Field, read_feature: Callable[[Field], int]
) -> dict[tuple[int, int], Surface]:
    """Read what pairs of features add, in any order."""
    found: dict[tuple[int, int], Surface] = {}
    for item in listed.array():
        item.object(("features", "knots", "values", "missing"), ())
        pair = tuple(map(read_feature, item["features"].array()))
        knots = [_numbers(side) for side in item["knots"].array()]
        if len(pair) != 2 or len(knots) != 2:
            item.fail("is not of two features with knots each")
        if pair in found:
            item["features"].fail("are those of a surface before")
        values = [_numbers(row) for row in item["values"].array()]
        given = {"first": knots[0], "second": knots[1], "values": values}
        found[pair] = _made(item, Surface, given | {"missing": _numbers(item["missing"])})
    return found


def _read_fill(listed: Field, read_feature: Callable[[Field], int]) -> dict[int, float]:
    items = [item.object(("feature", "value"), ()) for item in listed.array()]
    return {read_feature(item["feature"]): item["value"].number() for item in items}


def _read_summary(root: Field, read_feature: Callable[[Field], int]) -> list[Any] | None:
    """Read how features were distributed; what each entry holds is checked where it is used."""
    if root.value.get("summary") is None:
        return None
    for item in root["summary"].array():
        read_feature(item.object(("feature", "values", "errors"))["feature"])
    read: list[Any] = root["summary"].json()
    return read


def _made(item: Field, kind: Any, given: dict[str, Any]) -> Any:
    try:
        made = kind(**given)
    except ModelError as error:
        item.fail(f"cannot be used: {error}")
    if made.is_zero:
        item.fail("is zero: leave features without weight out")
    return made


def _numbers(listed: Field, texts: bool = False) -> Any:
    """Read a list of numbers; with ``texts``, of numbers or texts."""
    return [
        one.string() if texts and isinstance(one.value, str) else one.number()
        for one in listed.array()
    ]


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
        return json.loads(text, object_pairs_hook=_object, parse_float=_float, parse_int=_int)
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


def _int(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:  # Python reads some thousand digits
        raise ValueError(f"the number {shorten(text)} is too large for a double") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    plain = dict(pairs)
    if len(plain) == len(pairs):
        return plain
    marked = Duplicated(plain)
    marked.key = first_repeated([key for key, _ in pairs])
    return marked
