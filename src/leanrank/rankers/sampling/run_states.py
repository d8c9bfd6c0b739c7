"""What the state of a run is made of, checked before any of it is used.

A checkpoint may come damaged, or from somebody else. Its arrays reach kernels that do not look at
bounds, so that a wrong shape could end the process.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import numpy as np

from leanrank._numbers import is_whole
from leanrank.losses import pair_loss

_MOST = 2**53
_LARGEST = 1.7e308
_MOST_PAIRS = 2**24  # of one step, which are held in memory

Sizes = dict[str, int]
Check = Callable[[Any, str, Sizes], None]
"""Raises a ValueError unless a value is right; names of sizes get their value where first met."""


def check_header(header: Any) -> None:
    """Check everything but the fitted attributes."""
    if not isinstance(header, dict):
        raise ValueError("the header is no object")
    _object(header, "the header", _HEADER, {})
    _object(header["made_by"], "made_by", _MADE_BY, {})
    _object(header["position"], "position", dict.fromkeys(_POSITION, _count()), {})
    _object(header["notes"], "notes", dict.fromkeys(_NOTES, _count()), {})
    if header["epoch"] > header["made_by"]["epochs"]:
        raise ValueError("it has more passes than were asked for")
    if header["position"]["part"] >= max(1, len(header["made_by"]["source"])):
        raise ValueError("its position is in a source that is not there")


def check_fitted(fitted: Mapping[str, Any]) -> None:
    """Check the attributes that fitting sets on a ranker."""
    sizes: Sizes = {}
    for name in _NEEDED:
        if name not in fitted:
            raise ValueError(f"{name} is missing")
    _FITTED["n_features_in_"](fitted["n_features_in_"], "n_features_in_", sizes)
    sizes["features"] = int(fitted["n_features_in_"])
    for name, value in fitted.items():
        if not name.isidentifier() or not name.endswith("_") or name.startswith("_"):
            raise ValueError("an attribute has no name of one")
        _FITTED.get(name, _plain)(value, name, sizes)


def check_ranker(fitted: Mapping[str, Any], ranker: Any) -> None:
    """Check that the attributes are those of this ranker."""
    for name in fitted:
        if hasattr(type(ranker), name):
            raise ValueError(f"{name} is not set by fitting")
    wanted = next((_STATES[c.__name__] for c in type(ranker).__mro__ if c.__name__ in _STATES), "")
    if "state_" in fitted and type(fitted["state_"]).__name__ != (wanted or "PairState"):
        raise ValueError("state_ is that of another system")


def make_record(name: Any, values: Any) -> Any:
    """Make a part of a state from its fields, checked one by one."""
    if not isinstance(name, str) or name not in RECORDS:
        raise ValueError("it holds a part of no known kind")
    module, checks = RECORDS[name]
    if not isinstance(values, dict):
        raise ValueError(f"{name} has no fields")
    _object(values, name, checks, {})
    return getattr(import_module(module), name)(**values)


def _object(value: Any, where: str, checks: Mapping[str, Check], sizes: Sizes) -> None:
    if not isinstance(value, dict) or set(value) != set(checks):
        raise ValueError(f"{where} has not the entries that it should have")
    for key, check in checks.items():
        check(value[key], f"{where}.{key}", sizes)


def _count(low: int = 0, high: int = _MOST) -> Check:
    def check(value: Any, where: str, _: Sizes) -> None:
        whole = is_whole(value)
        if not whole or not low <= value <= high:
            raise ValueError(f"{where} is not a whole number from {low} to {high}")

    return check


def _number(low: float = -math.inf, *, infinite: bool = False) -> Check:
    def check(value: Any, where: str, _: Sizes) -> None:
        # a whole number in its place would have kernels compiled anew for its type
        if not isinstance(value, float) or not low <= value <= (math.inf if infinite else _LARGEST):
            raise ValueError(f"{where} is not a number of its range")

    return check


def _array(
    dtype: type, *axes: str | int | None, low: float = -math.inf, high: float = math.inf
) -> Check:
    """Check an array; an axis is a length, a name of one, a name or nothing ("a?"), or any."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != len(axes):
            raise ValueError(f"{where} is not an array of its type")
        for length, axis in zip(value.shape, axes, strict=True):
            wanted: int | None
            if isinstance(axis, str):
                free = axis.endswith("?") and length == 0
                wanted = None if free else sizes.setdefault(axis.rstrip("?"), length)
            else:
                wanted = axis
            if wanted is not None and length != wanted:
                raise ValueError(f"{where} has {length} entries instead of {wanted}")
        if value.size and not np.isfinite(value).all():
            raise ValueError(f"{where} holds a number that is not finite")
        if value.size and not low <= value.min() <= value.max() <= high:
            raise ValueError(f"{where} holds a number out of its range")

    return check


def _flag(value: Any, where: str, _: Sizes) -> None:
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{where} is neither true nor false")


def _text(value: Any, where: str, _: Sizes) -> None:
    if not isinstance(value, str):
        raise ValueError(f"{where} is no text")


def _pair_loss(value: Any, where: str, sizes: Sizes) -> None:
    _text(value, where, sizes)
    pair_loss(value)


def _list_of(item: Check) -> Check:
    def check(value: Any, where: str, sizes: Sizes) -> None:
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"{where} is no list")
        for at, each in enumerate(value):
            item(each, f"{where}[{at}]", sizes)

    return check


def _mapping(value: Any, where: str, _: Sizes) -> None:
    if not isinstance(value, dict):
        raise ValueError(f"{where} is no object")


def _plain(value: Any, where: str, sizes: Sizes) -> None:
    """Accept what a ranker may keep for its user to read."""
    if isinstance(value, (list, tuple)):
        _list_of(_plain)(value, where, sizes)
    elif isinstance(value, dict):
        _list_of(_plain)(list(value.values()), where, sizes)
    elif isinstance(value, np.ndarray):
        if value.dtype.kind not in "fiuO":
            raise ValueError(f"{where} is not an array of numbers")
    elif value is not None and not isinstance(value, (bool, int, float, str, np.number)):
        raise ValueError(f"{where} is of no type that is kept")


def _history(value: Any, where: str, sizes: Sizes) -> None:
    _list_of(_mapping)(value, where, sizes)
    for at, entry in enumerate(value):
        for name in ("epoch", "queries"):
            _count()(entry.get(name), f"{where}[{at}].{name}", sizes)
        for name, number in entry.items():
            if not isinstance(name, str) or not isinstance(number, (int, float, np.number)):
                raise ValueError(f"{where}[{at}] holds something that is no number")


def _names(value: Any, where: str, sizes: Sizes) -> None:
    if not isinstance(value, np.ndarray) or value.shape != (sizes["features"],):
        raise ValueError(f"{where} does not name every feature")


def _record(*names: str) -> Check:
    """Check a part that ``make_record`` made for how its sizes fit the rest."""

    def check(value: Any, where: str, sizes: Sizes) -> None:
        name = type(value).__name__
        if name not in names:
            raise ValueError(f"{where} is not a part of its kind")
        for key, inner in RECORDS[name][1].items():
            inner(getattr(value, key), f"{where}.{key}", sizes)
        if name == "ScaledWeights" and len({part.shape for part in value[2:5]}) > 1:
            raise ValueError(f"{where} lacks what averaging needs")
        if hasattr(value, "weights_") and _truncates(value) != (value.rule.l1 > 0):
            raise ValueError(f"{where} lacks what truncation needs")

    return check


def _truncates(state: Any) -> bool:
    return bool(state.weights_.taken.shape[1])


_LEARNER = "leanrank.online.learners.state"
_FTRL, _PAIRS, _VIEWS, _SCALED = (
    f"leanrank.solvers.sampling.{name}"
    for name in ("ftrl", "pair_descent", "coregularised", "_scaled_weights")
)
_RUN = {"steps": _count(), "documents": _count(), "epoch": _count(), "seed": _count(high=2**31)}
_VECTOR = _array(np.float64, "features")
_PAIR_STATE = {
    "weights_": _record("ScaledWeights"),
    "generator": _array(np.uint64, 1),
    "rule": _record("PairRule"),
    **_RUN,
}

RECORDS: dict[str, tuple[str, dict[str, Check]]] = {
    "FTRLRule": (
        _FTRL,
        {
            **{"alpha": _number(0), "gamma": _number(0), "rho": _number(0)},
            **{"uniform": _flag, "per_step": _flag},
        },
    ),
    "FTRLState": (
        _FTRL,
        {
            **{"rule": _record("FTRLRule"), "v": _VECTOR, "w": _VECTOR, **_RUN},
            "s": _array(np.float64, "features", low=0.0),
        },
    ),
    "LearnerRule": (
        _LEARNER,
        {
            "method": _count(high=4),
            "length": _count(1, _MOST_PAIRS),
            "schedule": _count(high=3),
            **dict.fromkeys(("explore", "eta0", "power", "alpha", "rho", "mu"), _number(0)),
            **dict.fromkeys(("eta", "clip", "delta"), _number(0)),
            "ftrl": _flag,
            "n_unlabeled": _count(0, _MOST_PAIRS),
        },
    ),
    "LearnerState": (
        _LEARNER,
        {
            "w": _array(np.float64, "vectors", "features"),
            "member": _array(np.float64, "vectors", "features", low=0.0, high=1.0),
            **dict.fromkeys(("v", "s"), _array(np.float64, "vectors", "features?")),
            "generator": _array(np.uint64, 1),
            "counts": _array(np.int64, 2, low=0),
        },
    ),
    "PairRule": (
        _PAIRS,
        {
            "loss": _pair_loss,
            "schedule": _count(high=3),
            **dict.fromkeys(("eta0", "power", "l2", "l1"), _number(0)),
            **dict.fromkeys(("passive_aggressive", "project"), _flag),
            **dict.fromkeys(("largest", "ceiling"), _number(0, infinite=True)),
            "every": _count(1, 2**62),
        },
    ),
    "PairState": (_PAIRS, _PAIR_STATE),
    "ScaledWeights": (
        _SCALED,
        {
            "v": _array(np.float64, "vectors", "features"),
            "numbers": _array(np.float64, "vectors", 7),
            **dict.fromkeys(
                ("late", "now", "before", "taken"), _array(np.float64, "vectors", "features?")
            ),
        },
    ),
    "ViewedState": (
        _VIEWS,
        {**_PAIR_STATE, "views": _record("Views"), "hidden_generator": _array(np.uint64, 1)},
    ),
    "Views": (
        _VIEWS,
        {
            "member": _array(np.float64, "vectors", "features", low=0.0, high=1.0),
            "alpha": _array(np.float64, "vectors", low=0.0),
            "eta0": _array(np.float64, "vectors", low=0.0),
            "mu": _number(0),
            "n_labeled": _count(1, _MOST_PAIRS),
            "n_unlabeled": _count(0, _MOST_PAIRS),
        },
    ),
}
"""Dataclasses and named tuples that a state may be made of; no other class is ever looked up."""

_STATES = {"MinBatSRank": "FTRLState", "LinearRanker": "FTRLState", "LCRA": "ViewedState"}
"""The state of a system, where it is not a PairState."""

_HEADER: dict[str, Check] = {
    **dict.fromkeys(("made_by", "position", "fitted", "notes"), _mapping),
    "epoch": _count(),
}
_MADE_BY: dict[str, Check] = {
    **dict.fromkeys(("version", "algorithm", "features"), _text),
    **{"parameters": _mapping, "epochs": _count(1), "source": _list_of(_mapping)},
}
_NOTES = ("queries", "documents", "width")
_POSITION = ("part", "offset", "line", "queries", "documents")

_NEEDED = ("n_features_in_", "n_queries_", "n_informative_queries_", "n_iter_", "history_")
_FITTED: dict[str, Check] = {
    **dict.fromkeys(("n_queries_", "n_informative_queries_", "n_iter_"), _count()),
    "n_features_in_": _count(high=2**40),
    "history_": _history,
    "alpha_": _number(0),
    "feature_names_in_": _names,
    "views_": _list_of(_array(np.int64, None, low=0)),
    "state_": _record("FTRLState", "PairState", "ViewedState"),
}
