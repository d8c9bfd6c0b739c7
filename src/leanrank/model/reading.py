"""Reading a model file: strict, with clear errors, and without executing anything."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import inf, isfinite
from typing import Any, NoReturn

from leanrank.data.matrices import MOST_FEATURES
from leanrank.errors import FileError, ModelError, first_repeated
from leanrank.model.curves import Curve, Line, Ramps, Steps
from leanrank.model.model import Model
from leanrank.model.terms import Levels, Surface

FORMAT, SCHEMA_VERSION = "leanrank-model", 1
CURVES: tuple[type[Curve], ...] = (Line, Ramps, Steps, Levels)
MAX_BYTES = 64 * 2**20
_KINDS = {
    dict: "an object",
    list: "a list",
    str: "a text",
    int: "a whole number",
    float: "a number",
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
    ...     Model.from_coef([0.0, 1.5]).save(f"{folder}/m.json")
    ...     load_model(f"{folder}/m.json")
    Model: 1 of 2 features
      f2   1.5
    """
    source, content = _read(path, max_bytes)
    try:
        document = json.loads(content.decode("utf-8"), object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise ModelError(
            f"{source}, line {error.lineno}, column {error.colno}: not valid JSON ({error.msg})"
        ) from error
    except RecursionError as error:
        raise ModelError(f"{source}: not a model: the JSON is nested too deeply") from error
    except ValueError as error:  # not UTF-8, a repeated key, a number of thousands of digits
        raise ModelError(f"{source}: not a model: {error}") from error
    return Model.from_dict(document, source)


def read_document(document: Any, source: str) -> dict[str, Any]:
    """Read a document into the parameters of a model, which checks that they go together."""
    root = Field(document, source).object(("format", "schema_version"))
    if root.value["format"] != FORMAT:
        root["format"].fail(f"is {root['format']}: {FORMAT!r} is expected")
    version = root["schema_version"].read(int)
    if version != SCHEMA_VERSION:
        root["schema_version"].fail(
            f"is {version}, but this release reads version {SCHEMA_VERSION}: use a release of "
            "leanrank that knows it"
        )
    root.object(
        ("format", "schema_version", "n_features", "curves"),
        ("feature_names", "normalizer", "fill", "surfaces", "provenance", "summary"),
    )
    given = {key: root[key] for key, value in root.value.items() if value is not None}
    n_features = root["n_features"].within(0, MOST_FEATURES)
    names = (
        [one.read(str) for one in given["feature_names"].items()]
        if "feature_names" in given
        else None
    )
    feature = _feature_reader(n_features, names)
    curves = [_curve(item, feature) for item in root["curves"].items()]
    surfaces = [_surface(item, feature) for item in _listed(given, "surfaces")]
    fill = [item.object(("feature", "value"), ()) for item in _listed(given, "fill")]
    for item in _listed(given, "summary"):  # what else it holds is checked where it is used
        feature(item.object(("feature", "values", "errors"))["feature"])
    return {
        "n_features": n_features,
        "curves": _distinct(root["curves"], curves),
        "feature_names": names,
        "normalizer": given["normalizer"].object().value if "normalizer" in given else None,
        "provenance": root["provenance"].object().value if "provenance" in root.value else {},
        "surfaces": _distinct(root, surfaces),
        "fill": {feature(item["feature"]): item["value"].read(float) for item in fill},
        "summary": root.value.get("summary"),
    }


@dataclass(frozen=True)
class Field:
    """One value of a document with its place, such as ``curves[3].weight``, for messages.

    >>> Field({"a": [1, True]}, "m.json")["a"][1].read(float)
    Traceback (most recent call last):
        ...
    leanrank.errors.ModelError: m.json: a[1] is true: a number is expected
    """

    value: Any
    source: str
    path: str = ""

    def __str__(self) -> str:
        if isinstance(self.value, (dict, list)):
            return _KINDS[type(self.value)]
        text = repr(self.value) if isinstance(self.value, str) else json.dumps(self.value)
        return text if len(text) <= 40 else text[:38] + "…" + text[-1]

    def __getitem__(self, key: str | int) -> Field:
        place = f"{self.path}[{key}]" if isinstance(key, int) else f"{self.path}.{key}".strip(".")
        return Field(self.value[key], self.source, place)

    def fail(self, problem: str) -> NoReturn:
        """Raise with the file and the place in front of ``problem``."""
        raise ModelError(f"{self.source}: {self.path or 'the document'} {problem}")

    def read(self, kind: type) -> Any:
        """Check for a value of a kind; true and false are no numbers."""
        known: Any = (int, float) if kind is float else kind
        if not isinstance(self.value, known) or isinstance(self.value, bool):
            self.fail(f"is {self}: {_KINDS[kind]} is expected")
        if kind is not float:
            return self.value
        try:
            number = float(self.value)
        except OverflowError:
            number = inf
        if not isfinite(number) or number != self.value:
            self.fail("is not a finite number that a double can hold")
        return number

    def within(self, low: int, high: int) -> int:
        """Check for a whole number in a closed range."""
        if not low <= self.read(int) <= high:
            self.fail(f"is {self}: a whole number from {low} to {high} is expected")
        return int(self.value)

    def items(self) -> list[Field]:
        """Check for a list and return its elements."""
        return [self[at] for at in range(len(self.read(list)))]

    def numbers(self, depth: int, texts: bool = False) -> Any:
        """Read a number, or lists of them, so many inside each other; or texts among them."""
        if depth:
            return [one.numbers(depth - 1, texts) for one in self.items()]
        return self.value if texts and isinstance(self.value, str) else self.read(float)

    def object(
        self, required: Collection[str] = (), optional: Collection[str] | None = None
    ) -> Field:
        """Check for an object with these keys; ``optional=None`` allows any others."""
        present = self.read(dict)
        for key in required:
            if key not in present:
                self.fail(f"lacks the key {key!r}")
        known = [*required, *(present if optional is None else optional)]
        for key in present:
            if key not in known:
                self.fail(f"has the unknown key {key!r}: the keys here are {', '.join(known)}")
        return self

    def made(self, kind: Any, given: dict[str, Any]) -> Any:
        """Make a term of what was read."""
        try:
            return kind(**given)
        except ModelError as error:
            self.fail(f"cannot be used: {error}")


def _feature_reader(n_features: int, names: list[str] | None) -> Callable[[Field], int]:
    """Return a function that reads a feature: by name if there are names, else by index."""
    if names is None:
        return lambda feature: feature.within(0, n_features - 1)
    known = {name: at for at, name in enumerate(names)}

    def by_name(feature: Field) -> int:
        if feature.read(str) not in known:
            feature.fail(f"is {feature}, which is not in feature_names")
        return known[feature.value]

    return by_name


def _listed(given: dict[str, Field], key: str) -> list[Field]:
    return given[key].items() if key in given else []


def _curve(item: Field, feature: Callable[[Field], int]) -> tuple[int, Curve]:
    item.object(("feature",))
    kind = next((one for one in CURVES if one.keys[0] in item.value), Line)
    item.object(("feature", *kind.keys), ("missing",))
    given = {
        key: item[key].numbers(int(kind is not Line), kind is Levels and key == "levels")
        for key in kind.keys
    }
    if "missing" in item.value:
        given["missing"] = item["missing"].read(float)
    return feature(item["feature"]), item.made(kind, given)


def _surface(item: Field, feature: Callable[[Field], int]) -> tuple[tuple[int, ...], Surface]:
    item.object(("features", "knots", "values", "missing"), ())
    pair = tuple(map(feature, item["features"].items()))
    knots, values = item["knots"].numbers(2), item["values"].numbers(2)
    if len(pair) != 2 or len(knots) != 2:
        item.fail("is not of two features with knots each")
    given = {"first": knots[0], "second": knots[1], "values": values}
    return pair, item.made(Surface, given | {"missing": item["missing"].numbers(1)})


def _distinct(listed: Field, terms: list[tuple[Any, Any]]) -> dict[Any, Any]:
    """Return terms by their features, of which none may occur twice."""
    found = dict(terms)
    if len(found) < len(terms):
        twice = first_repeated([features for features, _ in terms])
        listed.fail(f"has two terms of the same features, {twice} counted from 0")
    return found


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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    twice = first_repeated([key for key, _ in pairs])
    if twice is not None:
        raise ValueError(f"the key {twice!r} occurs twice: keep one")
    return dict(pairs)
