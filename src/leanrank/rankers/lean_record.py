"""The record of the default ranker's columns in a model's file, from which a refit begins.

A model holds curves. The penalty is about columns: ramps, a line beside them, a gap. So the file
holds the knots and the weights of these columns as well, for the features that the model reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.surfaces import PER_PAIR
from leanrank.errors import ModelError
from leanrank.model import Model
from leanrank.rankers.lean_structure import Settings, Structure


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
        "group_ratio": settings.ratio(structure),
    }  # fmt: skip
    ramps, columns = structure.ramps, []
    given = {"factor": settings.factors, "sign": settings.signs}
    for j in used:
        column: dict[str, Any] = {"feature": j}
        column |= {name: float(of[j]) for name, of in given.items() if of is not None}
        if ramps is None:
            column["weights"] = [float(w[j])]
        else:
            begin, end = ramps.starts[j : j + 2].tolist()
            if j in ramps.levels:
                column["groups"] = len(ramps.levels[j])
            else:
                column |= {"knots": ramps.knots[j].tolist(), "line": float(ramps.rate[j])}
            column |= {"gap": bool(ramps.gap[j]), "weights": w[begin:end].tolist()}
        columns.append(column)
    record["columns"] = columns
    if ramps is not None:
        pairs = w[ramps.n_columns :].reshape(-1, PER_PAIR)
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
    alpha, emphasis, group_ratio : float
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
    group_ratio: float
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
            raise ModelError("the model does not say which problem it solves: train a LeanRanker")
        try:
            return cls._read(model, made)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ModelError(
                f"the training record of the model cannot be read ({error!r}): train it again"
            ) from error

    @classmethod
    def _read(cls, model: Model, made: Any) -> Record:
        columns = [
            each
            for each in made["columns"]
            if "groups" not in each or each["feature"] in model.curves  # which has the levels
        ]
        position = {int(each["feature"]): at for at, each in enumerate(columns)}
        if not set(position) >= set(model.indices.tolist()):
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
        ratio = made["group_ratio"]
        return cls(
            np.array(list(position), dtype=np.int64),
            float(made["alpha"]), float(made["emphasis"]), float(ratio),
            bool(made["straight"]), ramps, weights,
            np.array([float(each.get("factor", 1.0)) for each in columns]),
            np.array([float(each.get("sign", 0.0)) for each in columns]),
            tuple((position[f], position[g]) for f, g in (each["features"] for each in pairs)),
            np.array([each["weights"] for each in pairs], dtype=np.float64).ravel(),
        )  # fmt: skip

    def start(self, ramps: RampColumns | None) -> FloatArray:
        """Return the weights for a design that may have more columns for gaps."""
        weights = list(self.weights)
        if ramps is not None and self.ramps is not None:
            new = ramps.gap & ~self.ramps.gap
            weights = [own + [0.0] * bool(more) for own, more in zip(weights, new, strict=True)]
        return np.concatenate([np.zeros(0), *weights, self.pair_weights])


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
