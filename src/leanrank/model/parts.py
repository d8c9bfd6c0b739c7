"""Reading the parts of a model document: names, weights, provenance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.model.fields import Field, shorten

_PROVENANCE_OBJECTS = ("data", "measures", "parameters", "training", "versions")
_PROVENANCE_TEXTS = ("algorithm", "created")


def read_names(root: Field, n_features: int) -> tuple[str, ...] | None:
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


def feature_reader(n_features: int, names: tuple[str, ...] | None) -> Callable[[Field], int]:
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


def read_weights(
    listed: Field, n_features: int, names: tuple[str, ...] | None
) -> tuple[IntArray, FloatArray]:
    """Read the weights, in any order, into ascending indices and their values."""
    read_feature = feature_reader(n_features, names)
    found: dict[int, float] = {}
    for item in listed.array():
        item.object(("feature", "value"), ())
        feature = item["feature"]
        at = read_feature(feature)
        if at in found:
            feature.fail(f"is {shorten(feature.value)}, which has a weight already")
        value = item["value"].number()
        if value == 0:
            item["value"].fail("is zero: leave features without weight out")
        found[at] = value
    ordered = sorted(found)
    return (
        np.array(ordered, dtype=np.int64),
        np.array([found[at] for at in ordered], dtype=np.float64),
    )


def read_provenance(given: Field) -> dict[str, Any]:
    """Read how the model was made: known entries, each of its type."""
    given.object((), (*_PROVENANCE_TEXTS, *_PROVENANCE_OBJECTS))
    read: dict[str, Any] = {}
    for key in sorted(given.value):
        entry = given[key]
        read[key] = entry.string() if key in _PROVENANCE_TEXTS else entry.object().json()
    return read
