"""Reading a model file: strict, with clear errors, and without executing anything."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from math import inf, isfinite
from typing import Any

from leanrank.data.matrices import MOST_FEATURES
from leanrank.data.sources import open_bytes, shown_name
from leanrank.errors import LeanrankError, ModelError, first_repeated
from leanrank.model.curves import Curve, Line, Ramps, Steps
from leanrank.model.model import Model
from leanrank.model.provenance import plain_json
from leanrank.model.terms import Levels, Surface

FORMAT, SCHEMA_VERSION = "leanrank-model", 1
CURVES: tuple[type[Curve], ...] = (Line, Ramps, Steps, Levels)
_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a whole number",
    float: "a number",
}

# A shape is a type, a list of one shape, or the shapes of an object by their keys.
_SURFACE = {"features": [object], "knots": [[float]], "values": [[float]], "missing": [float]}
_HEAD: dict[str, Any] = {"format": object, "schema_version": int}
_DOCUMENT = {
    **_HEAD,
    "n_features": int,
    "curves": [dict],
    "feature_names?": [str],
    "normalizer?": dict,
    "fill?": [{"feature": object, "value": float}],
    "surfaces?": [_SURFACE],
    "provenance?": dict,
    "summary?": [
        {"feature": object, "values": list, "errors": list, "cuts?": list, "levels?": list}
    ],
}


def load_model(path: str | os.PathLike[str], *, max_bytes: int = 64 * 2**20) -> Model:
    """Read a model file.

    Nothing in the file is executed, and any deviation from the format is rejected. So untrusted
    files can be read safely, unlike pickled models.

    Parameters
    ----------
    path : path
        The file, or ``"-"`` for standard input; compression is recognised.
    max_bytes : int
        Largest size of the (decompressed) file; larger ones are rejected.

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
    source = shown_name(path)
    with open_bytes(path) as stream:
        content = stream.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ModelError(f"{source}: larger than {max_bytes:,} bytes, the limit: raise max_bytes")
    try:
        document = json.loads(content.decode("utf-8"), object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise ModelError(
            f"{source}, line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})"
        ) from error
    except (ValueError, RecursionError) as error:  # not UTF-8, a key twice, …
        raise ModelError(f"{source}: not a model: {error}") from error
    return Model.from_dict(document, source)


def read_document(document: Any) -> Model:
    """Return the model of a document."""
    given = shaped(document, dict)
    optional = ("feature_names", "normalizer")  # these may be null
    given = {key: one for key, one in given.items() if one is not None or key not in optional}
    head = shaped({key: given[key] for key in _HEAD if key in given}, _HEAD)
    if head["format"] != FORMAT:
        raise ModelError(f"format is {_shown(head['format'])}: {FORMAT!r} is expected")
    if head["schema_version"] != SCHEMA_VERSION:
        raise ModelError(
            f"schema_version is {head['schema_version']}, but this release reads version "
            f"{SCHEMA_VERSION}: use a release of leanrank that knows it"
        )
    root = shaped(given, _DOCUMENT)
    n_features, names = root["n_features"], root.get("feature_names")
    _check_range(n_features, 0, MOST_FEATURES, "n_features")
    places = None if names is None else {name: at for at, name in enumerate(names)}

    def feature(given: Any, place: str) -> int:
        if places is None:
            return _check_range(given, 0, n_features - 1, place)
        if shaped(given, str, place) not in places:
            raise ModelError(f"{place} is {_shown(given)}, which is not in feature_names")
        return places[given]

    def curve(given: dict[str, Any], place: str) -> tuple[int, Curve]:
        kind = next((kind for kind in CURVES if kind.keys[0] in given), Line)
        numbers: Any = float if kind is Line else [(str, float)] if kind is Levels else [float]
        shape = {"feature": object, **dict.fromkeys(kind.keys, numbers), "missing?": float}
        read = shaped(given, shape, place)
        return feature(read.pop("feature"), f"{place}.feature"), _made(kind, read, place)

    def surface(given: dict[str, Any], place: str) -> tuple[tuple[int, ...], Surface]:
        pair = tuple(feature(each, f"{place}.features") for each in given.pop("features"))
        knots = given.pop("knots")
        if len(pair) != 2 or len(knots) != 2:
            raise ModelError(f"{place} needs two features and the knots of both")
        return pair, _made(Surface, {"first": knots[0], "second": knots[1], **given}, place)

    def distinct(key: str, read: Callable[[dict[str, Any], str], Any]) -> dict[Any, Any]:
        terms = [read(one, f"{key}[{at}]") for at, one in enumerate(root.get(key, []))]
        if (twice := first_repeated([features for features, _ in terms])) is not None:
            raise ModelError(f"{key} has two terms of the same features, {twice} counted from 0")
        return dict(terms)

    terms = {"curves": distinct("curves", curve), "surfaces": distinct("surfaces", surface)}
    for at, one in enumerate(root.get("summary", [])):
        feature(one["feature"], f"summary[{at}].feature")
    fill = {
        feature(one["feature"], f"fill[{at}].feature"): one["value"]
        for at, one in enumerate(root.get("fill", []))
    }
    plain_json(document, "the document")
    parts = {key: one for key, one in root.items() if key not in _HEAD}
    model: Model = _made(Model, parts | terms | {"fill": fill}, "the document")
    return model


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if (twice := first_repeated([key for key, _ in pairs])) is not None:
        raise ValueError(f"the key {twice!r} occurs twice: keep one")
    return dict(pairs)


def shaped(value: Any, shape: Any, place: str = "") -> Any:
    """Return a value that has a shape, its numbers as doubles; else raise an error.

    >>> shaped({"a": [1, True]}, {"a": [float]})
    Traceback (most recent call last):
        ...
    leanrank.errors.ModelError: a[1] is true: a number is expected
    """
    if isinstance(shape, tuple):  # either of two
        shape = shape[not isinstance(value, shape[0])]
    kind = shape if isinstance(shape, type) else type(shape)
    known: Any = (int, float) if kind is float else kind
    what = place or "the document"
    if not isinstance(value, known) or (isinstance(value, bool) and kind is not object):
        raise ModelError(f"{what} is {_shown(value)}: {_KINDS[kind]} is expected")
    if kind is float:
        return _double(value, what)
    if isinstance(shape, list):
        return [shaped(one, shape[0], f"{place}[{at}]") for at, one in enumerate(value)]
    if not isinstance(shape, dict):
        return value
    keys = {key.rstrip("?"): inner for key, inner in shape.items()}
    for key in shape:
        if key not in value and not key.endswith("?"):
            raise ModelError(f"{what} lacks the key {key!r}")
    for key in value:
        if key not in keys:
            raise ModelError(
                f"{what} has the unknown key {key!r}: the keys here are {', '.join(keys)}"
            )
    return {key: shaped(one, keys[key], f"{place}.{key}".strip(".")) for key, one in value.items()}


def _shown(value: Any) -> str:
    if isinstance(value, (dict, list)):
        return _KINDS[type(value)]
    text = repr(value) if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 40 else text[:38] + "…" + text[-1]


def _double(value: float, what: str) -> float:
    try:
        number = float(value)
    except OverflowError:
        number = inf
    if not isfinite(number) or number != value:
        raise ModelError(f"{what} is not a finite number that a double can hold")
    return number


def _check_range(value: Any, low: int, high: int, place: str) -> int:
    if not low <= shaped(value, int, place) <= high:
        raise ModelError(
            f"{place} is {_shown(value)}: a whole number from {low} to {high} is expected"
        )
    return int(value)


def _made(kind: Any, given: dict[str, Any], place: str) -> Any:
    try:
        made = kind(**given)
        if isinstance(made, Model):
            made.needs_qid  # noqa: B018  a wrong normaliser fails now
        return made
    except LeanrankError as error:
        raise ModelError(f"{place} cannot be used: {error}") from error
