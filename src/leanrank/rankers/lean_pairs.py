"""Which pairs of features the default ranker tries: those that promise most by one Newton step."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.ramps import RampDesign, ramp_design
from leanrank.designs.surfaces import PER_PAIR, screen
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.memory import MemoryProblem
from leanrank.rankers.lean_structure import Settings, Structure
from leanrank.rankers.surfaces import candidates, score_weights
from leanrank.solvers.newton.solver import Newton

if TYPE_CHECKING:
    from leanrank.rankers.lean_search import Part, Search

CANDIDATES = 120
"""Pairs that are fitted before the strongest are kept; set by ``benchmarks flagship``."""

SCALE_SEGMENTS = 8
"""Of the scale on which models with and without pairs are compared."""

SCREENED_ROWS = 50_000
"""Most documents to screen on."""


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
    own = w[n_curved:].reshape(-1, PER_PAIR)[kept]
    return few, np.concatenate((w[:n_curved], own.ravel()))


def rescaled(search: Search, part: Part, u: FloatArray) -> FloatArray:
    """Return scores on the scale that fits a part's own queries best: h(u), with h rising.

    Where gains are no exponential of a sum, as with labels cut from one, pairs could lower the loss
    by changing the scale of the scores alone. The order stays, so that is not worth a pair.
    """
    own = u[np.repeat(part.weight > 0, np.diff(search.labels.query_ptr))]
    knots = np.unique(np.quantile(own, np.linspace(0.0, 1.0, SCALE_SEGMENTS + 1)))
    if len(knots) < 2:
        return u
    design = ramp_design(u[:, None], RampColumns((knots,), np.zeros(1, bool)), search.executor)
    problem = MemoryProblem(design, search.loss, part.plan, search.executor)
    penalty = ElasticNet.build(1e-6, 1.0, len(knots) - 1, signs=np.ones(len(knots) - 1))
    return problem.scores(Newton(1e-5, max_iter=100).solve(problem, penalty, np.diff(knots)).w)


def _screened(
    search: Search, part: Part, structure: Structure, w: FloatArray, dropped: IntArray | None
) -> list[tuple[int, int]]:
    """List the pairs that promise most, by the gradient of a part's own model of curves."""
    assert isinstance(structure.design, RampDesign)
    sizes = search.importance(structure, w)[: structure.n_features]
    pairs = _candidates(search.settings, structure, sizes)
    if dropped is not None:
        pairs = pairs[~np.isin(pairs, dropped).any(axis=1)]
    if len(pairs) == 0:
        return []
    problem = part.problem(structure)
    u = problem.scores(w)
    g = problem.evaluate(u)[1]
    curvature = score_weights(search.loss, part.plan, u, part.weight)
    keep = _sampled_queries(search, part)
    g[~keep], curvature[~keep] = 0.0, 0.0
    ptr = search.labels.query_ptr
    gains = screen(structure.design, pairs, g, curvature, ptr, search.executor)
    order = np.argsort(-gains, kind="stable")[:CANDIDATES]
    return [(int(f), int(g)) for f, g in pairs[np.sort(order)]]


def _candidates(settings: Settings, structure: Structure, sizes: FloatArray) -> IntArray:
    """List pairs of features in the model, and of these with those of the query.

    Categories have no surfaces, and those of a monotone feature would not be monotone.
    """
    assert structure.ramps is not None
    free = ~structure.ramps.is_category & (structure.ramps.sizes > 0)
    if settings.signs is not None:
        free &= settings.signs == 0
    if settings.factors is not None:
        free &= np.isfinite(settings.factors)
    return candidates(free, settings.of_query, sizes, heredity=settings.heredity)


def _sampled_queries(search: Search, part: Part) -> BoolArray:
    """Mark the documents of evenly spaced queries, at most ``SCREENED_ROWS`` of them."""
    sizes = np.diff(search.labels.query_ptr)
    step = max(1, -(-int(sizes.sum()) // SCREENED_ROWS))
    taken = (np.arange(len(sizes)) % step == 0) & (part.weight > 0)
    return np.repeat(taken, sizes)
