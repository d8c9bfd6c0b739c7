"""Which columns a model of the default ranker may use, their penalty, and models of every size."""

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
from leanrank.designs.surfaces import PER_PAIR, SurfaceDesign
from leanrank.errors import InputError
from leanrank.execution import cached_property, row_blocks
from leanrank.losses import get_loss
from leanrank.losses.base import Loss
from leanrank.model import Curve, Model, Surface
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.penalties.groups import GroupPenalty
from leanrank.problem.memory import MemoryProblem
from leanrank.rankers.knots import column_parts
from leanrank.rankers.parameters import reject_unused
from leanrank.solvers.base import Solution

JUMP_RATIO = 0.05
"""``group_ratio`` of curves that may jump: ℓ1 puts a rise into one segment, a norm into all."""

MANY_DOCUMENTS = 100_000

QUERIES_FOR_ONE_PART, QUERIES_WITH_MANY_DOCUMENTS = 3_000, 1_000
"""Informative queries from which one held-out part is enough, and with many documents."""


STEP_ROWS = 20_000
"""Documents that stand for all in the Hessian of ``rises``."""

CHOOSING_DOCUMENTS, FEWEST_QUERIES = 100_000, 500
"""Documents that are enough for all choices, if they are of as many queries; set by
``benchmarks flagship``."""


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
        curves: Any = getattr(self.design, "curves", self.design)
        design: Design = SurfaceDesign(curves, pairs) if len(pairs) else curves
        return replace(self, design=design, pairs=tuple(pairs))

    def on(self, design: Design) -> Structure:
        """Return the same columns of other documents, whose curves are given."""
        other = replace(self, design=design, pairs=())
        return other.with_pairs(self.pairs) if self.pairs else other

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
        factors = np.ones(structure.n_features) if self.factors is None else self.factors.copy()
        if dropped is not None:
            factors[dropped] = np.inf
        is_gap = np.zeros(len(owner), dtype=bool)
        if ramps is not None:
            is_gap[: ramps.n_columns] = ramps.is_gap
        each, signs = column_parts(owner, pairs, is_gap, factors, self.signs)
        if ramps is not None and structure.straight:
            each[: ramps.n_columns][ramps.is_bend] = np.inf
        if ramps is None:
            return ElasticNet.build(1.0, 1.0, len(owner), each, signs)
        ratio = self.ratio(structure)
        return GroupPenalty.build(
            1.0, 1.0, len(owner), owner, group_ratio=ratio, factors=each, signs=signs
        )


def loss_of(ranker: Any, emphasis: float) -> Loss[Any]:
    """Return the loss that a ranker asks for."""
    softmax = ranker.loss == "softmax"
    loss = get_loss(ranker.loss, **({"gain": ranker.gain, "emphasis": emphasis} if softmax else {}))
    if not softmax:
        reject_unused(ranker, ("gain",), f"loss={loss.name!r}: use 'softmax'")
    if not (loss.smooth and loss.offers("dual")):
        raise InputError(
            f"LeanRanker needs a smooth loss with a dual, such as softmax, not {loss.name!r}"
        )
    return loss


def checked_costs(costs: FloatArray | None, n_features: int) -> FloatArray:
    """Return what each feature costs; nothing if that was not given."""
    costs = np.zeros(n_features) if costs is None else np.ravel(costs)
    if len(costs) != n_features or not (np.isfinite(costs) & (costs >= 0)).all():
        raise InputError(f"costs must hold {n_features} finite numbers, at least 0")
    return costs


def drawn(data: RankingData, informative: BoolArray, seed: int) -> BoolArray | None:
    """Draw informative queries for the choices; None if the documents are not too many for them."""
    if np.diff(data.query_ptr)[informative].sum() <= 2 * CHOOSING_DOCUMENTS:
        return None
    queries = np.random.default_rng(seed).permutation(by_content(data, informative))
    sizes = np.diff(data.query_ptr)[queries]
    enough = np.cumsum(sizes) - sizes < CHOOSING_DOCUMENTS
    enough[:FEWEST_QUERIES] = True
    chosen = np.zeros(len(informative), dtype=bool)
    chosen[queries[enough]] = True
    return chosen


def by_content(data: RankingData, informative: BoolArray) -> IntArray:
    """Order the informative queries by what they hold, not by their rows or names."""
    queries, X = np.flatnonzero(informative), data.X
    if isinstance(X, np.ndarray):
        blocks = row_blocks(len(X))
        sums = np.concatenate([np.nansum(X[a:b], axis=1, dtype=np.float64) for a, b in blocks])
    else:
        sums = np.nan_to_num(np.asarray(X.sum(axis=1, dtype=np.float64)).ravel())
    held = [np.add.reduceat(np.append(v, 0.0), data.query_ptr[:-1]) for v in (sums, data.y)]
    keys = (held[0][queries], held[1][queries], np.diff(data.query_ptr)[queries])
    return queries[np.lexsort(keys)]


def divided(
    data: RankingData, informative: BoolArray, n_folds: int | str, seed: int
) -> list[BoolArray]:
    """Divide the informative queries at random; no folds if there are fewer than two."""
    queries = by_content(data, informative)
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


def target_sizes(most: int) -> list[int]:
    """Return the numbers of features of a front, from all to one.

    >>> target_sizes(40)
    [40, 32, 25, 20, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    """
    sizes = [most]
    while sizes[-1] > 1:
        sizes.append(min(sizes[-1] - 1, max(int(0.8 * sizes[-1]), 15)))
    return sizes


def rises(problem: MemoryProblem, structure: Structure, w: FloatArray) -> FloatArray:
    """Return by how much the objective rises without each feature and its pairs, by a Newton step.

    If the weights w_j of a feature go to zero and the others move to where this costs least, the
    quadratic model of the loss rises by ½ w_jᵀ [(H⁻¹)_jj]⁻¹ w_j above its gradient. At the optimum
    the penalty cancels that: it is straight on the way of w_j to zero.
    """
    active = np.flatnonzero(w)
    owner = structure.owner[active]
    problem.at(w)
    problem.focus(active)
    hessian = problem.hessian(problem.block, problem.point.u, exact=True, thin=STEP_ROWS)
    ridge = 1e-12 + 1e-6 * hessian.trace() / max(1, len(active))  # a line is a sum of ramps
    inverse = np.linalg.inv(hessian + ridge * np.eye(len(active)))
    found = np.zeros(structure.n_features)
    for j in structure.features_of(np.unique(owner)):
        pairs = [structure.n_features + k for k, pair in enumerate(structure.pairs) if j in pair]
        at = np.flatnonzero(np.isin(owner, [j, *pairs]))
        own = w[active[at]]
        found[j] = 0.5 * own @ np.linalg.solve(inverse[np.ix_(at, at)], own)
    return found


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
        return replace(structure.design.columns, of_query=of_query).terms(w)
    return structure.ramps.curves(w), {}


@dataclass(frozen=True)
class Size:
    """A model of the front.

    Attributes
    ----------
    structure : Structure
    solution : Solution
        On all documents of the search.
    dropped : array of int64
        Features that it may not read.
    row : dict
        Features, pairs and held-out results.
    losses : array, optional
        By query, NaN for those that no fold holds out.
    """

    structure: Structure
    solution: Solution
    dropped: IntArray
    row: dict[str, Any]
    losses: FloatArray | None = None

    @property
    def features(self) -> list[int]:
        """The features that the model reads."""
        return sorted(self.structure.features_of(self.structure.used(self.solution.w)))


def front(sizes: Sequence[Size]) -> list[Size]:
    """Return one model per number of features, descending, the one with the least loss."""
    best: dict[int, Size] = {}
    for size in sizes:
        present = best.setdefault(len(size.features), size)
        if size.row.get("loss", np.inf) < present.row.get("loss", np.inf):
            best[len(size.features)] = size
    return [best[n_features] for n_features in sorted(best, reverse=True)]
