"""The choice of surfaces: listed pairs, or pairs with the largest gain by a Newton step."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import issparse

from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.data.ranking_data import feature_name
from leanrank.designs import surfaces
from leanrank.errors import InputError, warn
from leanrank.execution import Executor, row_blocks
from leanrank.losses.base import Curvature
from leanrank.problem.shard import Shard, Sums
from leanrank.problem.sharded import Shards
from leanrank.rankers.knots import directions
from leanrank.rankers.lean_structure import Structure
from leanrank.rankers.parameters import feature_number

if TYPE_CHECKING:
    from leanrank.rankers.lean_search import Part, Search

SCREENED_FEATURES = 40
"""Largest number of features whose pairs are screened; the strongest ones are taken."""

CANDIDATES = 120
"""Number of pairs that are fitted before the strongest are kept; set by ``benchmarks flagship``."""

SCREENED_ROWS = 50_000
"""Largest number of documents to screen on."""


def with_surfaces(
    ranker: Any, problem: Any, names: Any
) -> tuple[surfaces.SurfaceDesign | Shards, surfaces.SurfaceColumns]:
    """Return the documents with the curves and surfaces of a ranker, and their columns.

    Parameters
    ----------
    ranker : LinearRanker
        Its ``pairs`` are a list or a number. For a number, the curves are fitted first, and pairs
        of features with a curve are screened at their scores.
    problem : MemoryProblem or ShardedProblem
        The problem of the curves alone.
    names : sequence of str or None
    """
    shards: Shards | None = getattr(problem, "shards", None)
    if shards is not None and shards.ramps is not None:
        of_query = np.all(shards.map(_constant), axis=0)
        design: Any = surfaces.columns_design(shards.sample()[0], shards.ramps, Executor())
    else:
        design = problem.design
        of_query = constant_in_queries(design.X, problem.plan.query_ptr)
    ramps = design.ramps
    n_features = len(ramps.knots)
    signs = directions(ranker, n_features, names)
    fixed = np.zeros(n_features, dtype=bool) if signs is None else signs != 0
    if np.ndim(ranker.pairs):
        pairs = _listed(ranker.pairs, n_features, names, fixed)
    else:
        w = ranker._solve(problem, ranker.alpha).w
        sizes = np.zeros(n_features)
        np.add.at(sizes, ramps.feature, np.abs(w))
        found = candidates(~fixed & (ramps.sizes > 0), of_query, sizes)
        pairs = strongest(problem, found, w, int(ranker.pairs))
    both = surfaces.SurfaceDesign(design, pairs)
    columns = replace(both.columns, of_query=of_query)
    return both if shards is None else shards.with_columns(columns), columns


def _constant(shard: Shard) -> BoolArray:
    return constant_in_queries(shard.data.X, shard.data.query_ptr)


def _listed(pairs: Any, n_features: int, names: Any, monotone: BoolArray) -> list[tuple[int, int]]:
    found = set()
    for pair in pairs:
        if isinstance(pair, str) or len(pair) != 2:
            raise InputError(f"pairs has {pair!r}: give two features, such as ('bm25', 'age')")
        f, g = sorted(feature_number(feature, n_features, names, "pairs") for feature in pair)
        if f == g:
            raise InputError(f"pairs has {pair!r}: give two different features")
        for at in (f, g):
            if monotone[at]:
                name = feature_name(at, names)
                raise InputError(f"pairs has the feature {name!r}, which is monotone: leave it out")
        found.add((f, g))
    return sorted(found)


def find_pairs(
    search: Search, part: Part, strength: float, dropped: IntArray | None = None
) -> tuple[Structure, FloatArray]:
    """Find the strongest pairs on a part's own queries; return them with weights to start from.

    Many candidates are fitted beside the curves, and those that matter most are kept. With
    ``dropped`` features, the curves of the others are fitted first.
    """
    structure, w = part.structure.with_pairs(()), part.w
    if dropped is not None:
        penalty = search.settings.penalty(structure, dropped)
        start = penalty.permitted(structure.widened(w))
        w = part.solve(part.problem(structure), penalty, strength, start).w
    listed = _screened(search, part, structure, w, dropped)
    many = structure.with_pairs(listed)
    penalty = search.settings.penalty(many, dropped)
    w = part.solve(part.problem(many), penalty, strength, many.widened(w)).w
    sizes = search.importance(many, w)[structure.n_features :]
    order = np.argsort(-sizes, kind="stable")[: search.settings.max_pairs]
    kept = np.sort(order[sizes[order] > 0])
    few = structure.with_pairs([listed[k] for k in kept])
    n_curved = structure.design.n_features
    own = w[n_curved:].reshape(-1, surfaces.PER_PAIR)[kept]
    return few, np.concatenate((w[:n_curved], own.ravel()))


def _screened(
    search: Search, part: Part, structure: Structure, w: FloatArray, dropped: IntArray | None
) -> list[tuple[int, int]]:
    """List the pairs with the largest gain beside the curves of a part, by one Newton step.

    Categories have no surfaces, and those of a monotone feature would not be monotone.
    """
    ramps, settings = structure.ramps, search.settings
    assert ramps is not None
    free = ~ramps.is_category & (ramps.sizes > 0)
    if settings.signs is not None:
        free &= settings.signs == 0
    if settings.factors is not None:
        free &= np.isfinite(settings.factors)
    if dropped is not None:
        free[dropped] = False
    spread = search.importance(structure, w)[: structure.n_features]
    pairs = candidates(free, settings.of_query, spread, heredity=settings.heredity)
    return strongest(part.problem(structure), pairs, w, CANDIDATES)


def strongest(problem: Any, pairs: IntArray, w: FloatArray, most: int) -> list[tuple[int, int]]:
    """Return the ``most`` pairs with the largest gain beside curves of weights w."""
    if len(pairs) == 0:
        return []
    step = -(-problem.n_rows // SCREENED_ROWS)
    gains = surfaces.screening_gains(*problem.summed(_steps, pairs, w, step))
    best = np.argsort(-gains, kind="stable")[:most]
    return [(int(f), int(g)) for f, g in pairs[np.sort(best)]]


def _steps(problem: Any, pairs: IntArray, w: FloatArray, step: int) -> Sums:
    """Sum what a Newton step of each pair needs; one in ``step`` of the queries is enough."""
    plan, loss, u = problem.plan, problem.loss, problem.scores(w)
    sizes, ptr = np.diff(plan.query_ptr), plan.query_ptr
    weight = np.repeat(1.0 / np.maximum(sizes, 1), sizes)
    if loss.offers("curvature"):
        found = Curvature.empty(loss, plan)
        loss.curvature(plan, 0, len(sizes), u, found)
        weight = found.diag
    rows = np.repeat((np.arange(len(sizes)) % step == 0) & (plan.scale > 0), sizes)
    some = problem.evaluate(u)[1] * rows, weight * rows
    return surfaces.screening_sums(problem.design, pairs, *some, ptr, problem.executor)


def candidates(
    free: BoolArray, of_query: Any, sizes: FloatArray, *, heredity: bool = True
) -> IntArray:
    """Return pairs of features of a model, also with features that are constant within queries.

    Parameters
    ----------
    free : array of bool
        Which features may be paired.
    of_query : array of bool, or False
        Which are constant within queries: alone they cannot rank.
    sizes : array
        Sizes of the curves; 0 for features that are not in the model.
    heredity : bool
        Whether both features must be in the model, unless one is constant within queries.
    """
    within = free & ~np.broadcast_to(of_query, len(free))
    features = np.flatnonzero(within & (sizes > 0))
    features = np.sort(features[np.argsort(-sizes[features])][:SCREENED_FEATURES])
    if not heredity:
        features = np.flatnonzero(within)
    pairs = {*combinations(features.tolist(), 2)}
    others = np.flatnonzero(free & ~within).tolist()
    pairs |= {(min(f, g), max(f, g)) for f, g in product(others, features.tolist())}
    return np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)


def query_columns(design: Any, query_ptr: IntArray, names: Any) -> BoolArray:
    """Return which features have one value per query, and warn of those that no pair can have."""
    found = constant_in_queries(design.X, query_ptr)
    for at in np.flatnonzero(found & design.ramps.is_category).tolist():
        warn(
            f"the category {feature_name(at, names)!r} has one value per query and is not used: "
            "give a column of 0 and 1 for each value, which weights can depend on"
        )
    return found


def constant_in_queries(X: Any, query_ptr: IntArray) -> BoolArray:
    """Return which columns are constant within every query.

    >>> X = np.array([[1.0, 5.0, np.nan], [1.0, 6.0, np.nan], [2.0, 5.0, 1.0]])
    >>> constant_in_queries(X, np.array([0, 2, 3]))
    array([ True, False,  True])
    """
    if issparse(X):
        columns = X.tocsc()
        some = (columns[:, a:b].toarray() for a, b in row_blocks(X.shape[1], 8))
        return np.concatenate([constant_in_queries(each, query_ptr) for each in some])
    first = np.zeros(len(X), dtype=bool)
    first[query_ptr[:-1][np.diff(query_ptr) > 0]] = True
    left = np.arange(X.shape[1])
    for begin, end in row_blocks(len(X) - 1):
        rows = begin + 1 + np.flatnonzero(~first[begin + 1 : end + 1])
        one, other = X[rows][:, left], X[rows - 1][:, left]
        left = left[((one == other) | (np.isnan(one) & np.isnan(other))).all(axis=0)]
    constant = np.zeros(X.shape[1], dtype=bool)
    constant[left] = True
    return constant
