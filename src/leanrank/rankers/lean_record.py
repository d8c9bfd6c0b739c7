"""What a model file keeps of the problem that a model solves, so that it can be solved again.

A model holds curves. The penalty is about columns: ramps, a line beside them, a gap. So the file
holds the knots and the weights of these columns as well, for the features that the model reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.surfaces import PER_PAIR, SurfaceDesign, split_surfaces
from leanrank.errors import ModelError
from leanrank.model import Curve, Model, Surface
from leanrank.rankers.lean_structure import Settings, Structure


def terms_of(
    structure: Structure, w: FloatArray, of_query: Any
) -> tuple[dict[int, Curve], dict[tuple[int, int], Surface]]:
    """Return the curves and surfaces of a model with ramps."""
    assert structure.ramps is not None
    knots, surfaces = structure.ramps.knots, {}
    if isinstance(structure.design, SurfaceDesign):
        w, grids = split_surfaces(structure.design, w, of_query)
        for (f, g), grid in zip(structure.pairs, grids, strict=True):
            if grid.any():
                sides = tuple(knots[f].tolist()), tuple(knots[g].tolist())
                surfaces[f, g] = Surface(*sides, tuple(map(tuple, grid.tolist())))
    return structure.ramps.curves(w[: structure.ramps.n_columns]), surfaces


def record_of(
    structure: Structure,
    w: FloatArray,
    alpha: float,
    emphasis: float,
    settings: Settings,
    *,
    every: bool = False,
) -> dict[str, Any]:
    """Return the columns of the features in use, or of all, with their weights, in plain values."""
    used = sorted(structure.features_of(structure.owner if every else structure.used(w)))
    record: dict[str, Any] = {
        "alpha": float(alpha), "emphasis": float(emphasis), "straight": structure.straight,
    }  # fmt: skip
    ramps = structure.ramps
    both = ("factor", settings.factors), ("sign", settings.signs)
    given = {name: values for name, values in both if values is not None}
    parameters = [{name: float(values[j]) for name, values in given.items()} for j in used]
    if ramps is None:
        record["columns"] = [
            {"feature": j, **own, "weights": [float(w[j])]}
            for j, own in zip(used, parameters, strict=True)
        ]
        return record
    columns = []
    for j, own in zip(used, parameters, strict=True):
        begin, end = ramps.starts[j : j + 2].tolist()
        places = {"knots": ramps.knots[j].tolist(), "line": float(ramps.rate[j])}
        if j in ramps.levels:
            places = {"groups": len(ramps.levels[j])}
        weights = w[begin:end].tolist()
        gap = bool(ramps.gap[j])
        columns.append({"feature": j, **own, **places, "gap": gap, "weights": weights})
    pairs = w[ramps.n_columns :].reshape(-1, PER_PAIR)
    record["columns"] = columns
    record["pairs"] = [
        {"features": list(pair), "weights": own.tolist()}
        for pair, own in zip(structure.pairs, pairs, strict=True)
        if every or own.any()
    ]
    return record


@dataclass(frozen=True)
class Record:
    """The columns of a model, read from its file.

    Attributes
    ----------
    features : array of int64
        Those that the model reads, and those that a refit left without weight; ``ramps`` and
        ``pairs`` count in them.
    alpha, emphasis : float
    straight : bool
    ramps : RampColumns or None
        None: one weight per feature.
    weights : list of list of float
        Of each feature's columns.
    factors, signs : array
        Penalty factor and direction of each feature.
    pairs : tuple of (int, int)
    pair_weights : array
    """

    features: IntArray
    alpha: float
    emphasis: float
    straight: bool
    ramps: RampColumns | None
    weights: list[list[float]]
    factors: FloatArray
    signs: FloatArray
    pairs: tuple[tuple[int, int], ...]
    pair_weights: FloatArray

    @classmethod
    def of(cls, model: Model) -> Record:
        """Read the record of a model that LeanRanker made."""
        made = model.provenance.get("training") or {}
        if model.provenance.get("algorithm") != "LeanRanker" or "columns" not in made:
            raise ModelError(
                "the model does not say which problem it solves, so it cannot be solved again: "
                "train it with LeanRanker of this release"
            )
        try:
            return cls._read(model, made)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ModelError(
                f"the training record of the model cannot be read ({error!r}): train it again"
            ) from error

    @classmethod
    def _read(cls, model: Model, made: Any) -> Record:
        known = model.curves
        columns = [
            each
            for each in made["columns"]
            if "groups" not in each or each["feature"] in known  # whose levels are in the model
        ]
        place = {int(each["feature"]): at for at, each in enumerate(columns)}
        if not set(place) >= set(model.indices.tolist()):
            raise ValueError("other features than the model reads")
        weights = [list(map(float, each["weights"])) for each in columns]
        ramps = None
        if columns and "gap" in columns[0]:
            levels = {
                at: level_groups(model, each["feature"])
                for at, each in enumerate(columns)
                if "groups" in each
            }
            knots = tuple(np.array(each.get("knots", [])) for each in columns)
            gaps = np.array([each["gap"] for each in columns], dtype=bool)
            rates = np.array([each.get("line", 0.0) for each in columns])
            ramps = RampColumns(knots, gaps, rates).with_levels(levels)
        pairs = made.get("pairs") or []
        return cls(
            np.array(list(place), dtype=np.int64),
            float(made["alpha"]), float(made["emphasis"]), bool(made["straight"]), ramps, weights,
            np.array([float(each.get("factor", 1.0)) for each in columns]),
            np.array([float(each.get("sign", 0.0)) for each in columns]),
            tuple((place[f], place[g]) for f, g in (each["features"] for each in pairs)),
            np.array([each["weights"] for each in pairs], dtype=np.float64).ravel(),
        )  # fmt: skip

    def start(self, ramps: RampColumns | None) -> FloatArray:
        """Return the weights for a design that may have more columns for gaps."""
        parts = list(self.weights)
        if ramps is not None and self.ramps is not None:
            new = ramps.gap & ~self.ramps.gap
            parts = [own + [0.0] * bool(more) for own, more in zip(parts, new, strict=True)]
        return np.concatenate([np.zeros(0), *parts, self.pair_weights])


def level_groups(model: Model, feature: int) -> tuple[tuple[Any, ...], ...]:
    """Return the levels of a category; the rare ones, which share a value, are the last group."""
    levels = list(getattr(model.curves.get(feature), "levels", ()))
    made = (model.provenance.get("training") or {}).get("columns") or []
    n_groups = next((each.get("groups") for each in made if each["feature"] == feature), None)
    n_single = len(levels) if n_groups is None else min(len(levels), n_groups) - 1
    if n_groups is None or n_groups >= len(levels):
        return tuple((each,) for each in levels)
    return (*((each,) for each in levels[:n_single]), tuple(levels[n_single:]))


def group_codes(model: Model, feature: int, values: FloatArray) -> FloatArray:
    """Return the group of each value of a category; NaN for levels that the model does not know."""
    curve: Any = model.curves[feature]
    groups = level_groups(model, feature)
    if curve.is_text:
        known = (values >= 0) & (values < len(curve.levels))
        codes = np.minimum(values, len(groups) - 1.0)
    else:
        levels = np.array([one for group in groups for one in group])
        number = np.repeat(np.arange(float(len(groups))), [len(group) for group in groups])
        order: IntArray = np.argsort(levels)
        at = order[np.minimum(np.searchsorted(levels[order], values), len(levels) - 1)]
        known, codes = levels[at] == values, number[at]
    return np.where(known, codes, np.nan)
