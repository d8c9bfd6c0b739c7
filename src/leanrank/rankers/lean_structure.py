"""Which columns a model of the default ranker may use, their penalty, and held-out queries."""

from __future__ import annotations

from collections.abc import Sequence
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
from leanrank.execution import cached_property
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.penalties.groups import GroupPenalty

MANY_QUERIES = 3_000
"""Informative queries from which on one held-out part is enough."""


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
    """

    design: Design
    ramps: RampColumns | None
    pairs: tuple[tuple[int, int], ...] = ()
    straight: bool = False

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
        """Return weights of the curves with zeros for the pairs."""
        out = np.zeros(self.design.n_features)
        n_curved = min(len(w), self.design.n_features - PER_PAIR * len(self.pairs))
        out[:n_curved] = w[:n_curved]
        return out

    def features_of(self, owners: IntArray) -> set[int]:
        """Return the features that terms read."""
        found: set[int] = set()
        for owner in owners.tolist():
            found.update(
                (owner,) if owner < self.n_features else self.pairs[owner - self.n_features]
            )
        return found

    def used(self, w: FloatArray) -> IntArray:
        """Return the terms with a weight that is not zero: features, then pairs."""
        return np.unique(self.owner[np.flatnonzero(w)])


@dataclass(frozen=True)
class Settings:
    """What of a ranker's parameters the search needs.

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

    def penalty(self, structure: Structure, dropped: IntArray | None = None) -> Any:
        """Return the penalty at strength 1; terms of dropped features are excluded."""
        owner, n_features = structure.owner, structure.n_features
        factors = np.ones(len(owner))
        signs = np.zeros(len(owner))
        single = owner < n_features
        if self.factors is not None:
            of_pairs = [max(self.factors[f], self.factors[g]) for f, g in structure.pairs]
            factors = np.concatenate((self.factors, of_pairs))[owner]
        if structure.ramps is not None:
            n_curved = structure.ramps.n_columns
            if structure.straight:
                factors[:n_curved][structure.ramps.is_bend] = np.inf
            if self.signs is not None:
                signs[:n_curved] = np.where(structure.ramps.is_gap, 0.0, self.signs[owner[single]])
        elif self.signs is not None:
            signs = self.signs
        if dropped is not None and len(dropped):
            gone = np.zeros(n_features, dtype=bool)
            gone[dropped] = True
            lost = [gone[f] or gone[g] for f, g in structure.pairs]
            factors[np.concatenate((gone, np.array(lost, dtype=bool)))[owner]] = np.inf
        if structure.ramps is None:
            return ElasticNet.build(1.0, 1.0, len(owner), factors, signs)
        return GroupPenalty.build(
            1.0, 1.0, len(owner), owner, group_ratio=self.group_ratio, factors=factors, signs=signs
        )


def divided(
    data: RankingData, informative: BoolArray, n_folds: int | str, seed: int
) -> list[BoolArray]:
    """Divide the informative queries at random; no folds if there are fewer than two.

    They are ordered by what they hold first: neither the order of the rows nor the names of the
    queries matter.
    """
    queries = np.flatnonzero(informative)
    sums = np.nan_to_num(np.asarray(data.X.sum(axis=1, dtype=np.float64)).ravel())
    held = [np.add.reduceat(np.append(v, 0.0), data.query_ptr[:-1]) for v in (sums, data.y)]
    keys = (held[0][queries], held[1][queries], np.diff(data.query_ptr)[queries])
    queries = queries[np.lexsort(keys)]
    if n_folds == "auto":
        n_folds = 5 if len(queries) < MANY_QUERIES else 1
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
