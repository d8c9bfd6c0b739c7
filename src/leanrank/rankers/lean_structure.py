"""Which columns a model of the default ranker may use, their penalty, and their record in a file.

A model holds curves, but the penalty depends on columns: ramps, a line beside them, a gap. So the
model file also holds the knots and the weights of these columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leanrank._numbers import check_whole
from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.designs.base import Design
from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.ramps import RampDesign
from leanrank.designs.surfaces import PER_PAIR, SurfaceDesign
from leanrank.errors import ModelError
from leanrank.execution import cached_property
from leanrank.model import Curve, Model, Surface
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.penalties.groups import GroupPenalty

JUMP_RATIO = 0.05
"""``group_ratio`` of curves that may jump: ℓ1 puts a rise into one segment, a norm into all."""

MANY_DOCUMENTS = 100_000

QUERIES_FOR_ONE_PART, QUERIES_WITH_MANY_DOCUMENTS = 3_000, 1_000
"""Informative queries from which one held-out part is enough, and with many documents."""


@dataclass(frozen=True)
class Structure:
    """Which columns a model may use.

    Attributes
    ----------
    design : Design
    ramps : RampColumns or None
        None: one column per feature.
    pairs : tuple of (int, int)
        Features of the surfaces, whose columns come last.
    straight : bool
        Whether curves must be lines.
    jumps : bool
        Whether curves may jump.
    """

    design: Design
    ramps: RampColumns | None
    pairs: tuple[tuple[int, int], ...] = ()
    straight: bool = False
    jumps: bool = False

    @cached_property
    def owner(self) -> IntArray:
        """The feature of each column, or the number of features plus the number of its pair."""
        feature = np.arange(self.design.n_features) if self.ramps is None else self.ramps.feature
        pairs = np.repeat(np.arange(len(self.pairs)), PER_PAIR) + self.n_features
        return np.concatenate((feature, pairs))

    @property
    def n_features(self) -> int:
        """Features of X."""
        return self.design.n_features if self.ramps is None else len(self.ramps.knots)

    def with_pairs(self, pairs: Sequence[tuple[int, int]]) -> Structure:
        """Return the same curves with other pairs."""
        curves = self.design.curves if isinstance(self.design, SurfaceDesign) else self.design
        assert isinstance(curves, RampDesign)
        design: Design = SurfaceDesign(curves, pairs) if len(pairs) else curves
        return replace(self, design=design, pairs=tuple(pairs))

    def widened(self, w: FloatArray) -> FloatArray:
        """Return the weights of the curves, with zeros for the pairs."""
        out = np.zeros(self.design.n_features)
        n_curved = min(len(w), self.design.n_features - PER_PAIR * len(self.pairs))
        out[:n_curved] = w[:n_curved]
        return out

    def features_of(self, owners: IntArray) -> set[int]:
        """Return the features that some terms read."""
        n = self.n_features
        terms = ((one,) if one < n else self.pairs[one - n] for one in owners.tolist())
        return {feature for term in terms for feature in term}

    def used(self, w: FloatArray) -> IntArray:
        """Return the terms with a weight that is not zero: features, then pairs."""
        return np.unique(self.owner[np.flatnonzero(w)])


@dataclass(frozen=True)
class Settings:
    """The parameters of a ranker that the search needs.

    Attributes
    ----------
    group_ratio : float
    factors, signs : array or None
        Penalty factor and direction of each feature.
    strengths : array
        Shares of alpha_max, descending.
    max_pairs : int
    tol : float
    heredity : bool
        Whether only features with a curve in the model are paired.
    of_query : array of bool
        Which features have one value per query.
    """

    group_ratio: float
    factors: FloatArray | None
    signs: FloatArray | None
    strengths: FloatArray
    max_pairs: int
    tol: float
    heredity: bool = True
    of_query: Any = False

    def ratio(self, structure: Structure) -> float:
        """Return the share of the norm of each curve."""
        return JUMP_RATIO if structure.jumps else self.group_ratio

    def penalty(self, structure: Structure, dropped: IntArray | None = None) -> Any:
        """Return the penalty at strength 1; terms of dropped features are excluded."""
        owner, ramps = structure.owner, structure.ramps
        pairs = np.array(structure.pairs, dtype=np.int64).reshape(-1, 2)
        factors = np.ones(structure.n_features) if self.factors is None else self.factors
        factors = np.append(factors, factors[pairs].max(axis=1))[owner]  # the dearer of two
        signs = np.zeros(structure.n_features) if self.signs is None else self.signs
        signs = np.append(signs, np.zeros(len(pairs)))[owner]
        if ramps is not None:
            signs[: ramps.n_columns][ramps.is_gap] = 0.0  # gaps may have any sign
        if ramps is not None and structure.straight:
            factors[: ramps.n_columns][ramps.is_bend] = np.inf
        if dropped is not None:
            is_dropped = np.isin(np.arange(structure.n_features), dropped)
            is_dropped = np.append(is_dropped, is_dropped[pairs].any(axis=1))
            factors[is_dropped[owner]] = np.inf
        if ramps is None:
            return ElasticNet.build(1.0, 1.0, len(owner), factors, signs)
        ratio = self.ratio(structure)
        return GroupPenalty.build(
            1.0, 1.0, len(owner), owner, group_ratio=ratio, factors=factors, signs=signs
        )


def divided(
    data: RankingData, informative: BoolArray, n_folds: int | str, seed: int
) -> list[BoolArray]:
    """Divide the informative queries at random; no folds if there are fewer than two.

    The queries are sorted by their content first, so that neither the order of the rows nor the
    names of the queries matter.
    """
    queries = np.flatnonzero(informative)
    sums = np.nan_to_num(np.asarray(data.X.sum(axis=1, dtype=np.float64)).ravel())
    held = [np.add.reduceat(np.append(v, 0.0), data.query_ptr[:-1]) for v in (sums, data.y)]
    keys = (held[0][queries], held[1][queries], np.diff(data.query_ptr)[queries])
    queries = queries[np.lexsort(keys)]
    if n_folds == "auto":
        many = len(data) >= MANY_DOCUMENTS
        enough = QUERIES_WITH_MANY_DOCUMENTS if many else QUERIES_FOR_ONE_PART
        n_folds = 5 if len(queries) < enough else 1
    check_whole("n_folds", n_folds)
    if len(queries) < 2:
        return []
    order = np.random.default_rng(seed).permutation(queries)
    step = 5 if n_folds == 1 else min(int(n_folds), len(queries))
    folds = []
    for k in range(1 if n_folds == 1 else step):
        held_out = np.zeros(len(informative), dtype=bool)
        held_out[order[k::step]] = True
        folds.append(held_out)
    return folds


def parts_within(
    structure: Structure, w: FloatArray, sizes: IntArray, counted: BoolArray
) -> Iterator[tuple[int, FloatArray]]:
    """Yield each term in use, and its part of the scores less the mean of the query.

    ``sizes`` are those of all queries, and only those that are ``counted`` have rows.
    """
    rows, sizes = np.repeat(counted, sizes), sizes[counted]
    starts = np.cumsum(sizes) - sizes
    for term in structure.used(w).tolist():
        part = structure.design.matvec(np.where(structure.owner == term, w, 0.0))[rows]
        yield term, part - np.repeat(np.add.reduceat(part, starts) / sizes, sizes)


def terms_of(
    structure: Structure, w: FloatArray, of_query: Any
) -> tuple[dict[int, Curve], dict[tuple[int, int], Surface]]:
    """Return the curves and surfaces of a model."""
    if structure.ramps is None:
        return dict(Model.from_coef(w).curves), {}
    if isinstance(structure.design, SurfaceDesign):
        return structure.design.terms(w, of_query)
    return structure.ramps.curves(w), {}


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
        ratio = made.get("group_ratio", model.provenance["parameters"]["group_ratio"])  # before 0.2
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
