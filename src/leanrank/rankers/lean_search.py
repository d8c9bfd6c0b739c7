"""How the default ranker chooses: strengths, the kind of curves, pairs and sizes by held-out loss.

Queries are divided into folds. A fold's model is fitted to the other queries, and its loss on its
own queries is what every choice is made by: it is smooth in the strength, where NDCG of a few
hundred queries is mostly noise. The positions of documents among knots are computed once; a fold is
the same design with other query weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leanrank._typing import BoolArray, Callback, FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.execution import Executor
from leanrank.losses.base import Labels, Loss
from leanrank.losses.listnet import ListNetPlan
from leanrank.problem.base import Problem
from leanrank.problem.memory import MemoryProblem
from leanrank.rankers.lean_structure import Settings, Structure
from leanrank.rankers.surfaces import find_pairs, rescaled
from leanrank.solvers.base import Solution
from leanrank.solvers.newton.solver import Newton

PAIRS_AGAIN = 0.7
"""Share of the features below which pairs are looked for again, among those that are left."""

PATIENCE = 3
"""Strengths without a lower held-out loss after which a path ends."""

STEP_COLUMNS, STEP_ROWS = 600, 20_000
"""Columns in use up to which a Newton step tells which feature is the weakest, and documents that
stand for all in its Hessian."""


class Part:
    """The problem of some of the queries: a fold's training queries, or all.

    Attributes
    ----------
    weight : array
        Of each query; 0 if it takes no part.
    top : float
        The strength of an empty model, to which others are relative.
    structure, w
        The columns that the part's model may use, and its weights.
    """

    def __init__(self, search: Search, weight: FloatArray) -> None:
        self.search, self.weight = search, weight
        self.plan = search.loss.prepare(replace(search.labels, query_weight=weight))
        self.top = 0.0
        self.structure = search.structure
        self.w = np.zeros(search.structure.design.n_features)

    def problem(self, structure: Structure) -> MemoryProblem:
        """Join a structure's columns with the part's loss."""
        search = self.search
        return MemoryProblem(structure.design, search.loss, self.plan, search.executor)

    def solve(
        self,
        problem: MemoryProblem,
        penalty: Any,
        strength: float,
        w: FloatArray,
        tol: float | None = None,
    ) -> Solution:
        """Minimise at a share of alpha_max."""
        solver = Newton(self.search.settings.tol if tol is None else tol, max_iter=1_000)
        return solver.solve(problem, penalty.times(strength * self.top), w.copy())

    def start(self, structure: Structure) -> tuple[MemoryProblem, Any, FloatArray]:
        """Return problem and penalty, and find alpha_max, from which the path descends."""
        problem, penalty = self.problem(structure), self.search.settings.penalty(structure)
        self.top, w = alpha_max(problem, penalty)
        return problem, penalty, w


class Fold(Part):
    """The queries of one fold held out, a model fitted to the others."""

    def __init__(self, search: Search, held_out: BoolArray) -> None:
        super().__init__(search, np.where(held_out, 0.0, search.query_weight))
        self.held_out = held_out
        self.queries = np.flatnonzero(held_out & search.informative)
        self.rows = np.repeat(held_out, np.diff(search.labels.query_ptr))

    def losses(self, u: FloatArray) -> FloatArray:
        """Return the loss of each held-out query at scores of all documents."""
        search = self.search
        g = np.zeros(len(u))
        found = [search.loss.evaluate(search.plan, q, q + 1, u, g) for q in self.queries.tolist()]
        return np.array(found) / (search.share[self.queries] * search.total)


@dataclass(frozen=True)
class Judged:
    """Held-out results of one way of fitting.

    Attributes
    ----------
    loss : array
        By query; NaN for queries that no fold holds out.
    """

    loss: FloatArray
    weight: FloatArray

    @property
    def mean(self) -> float:
        """Mean over queries, by their weights."""
        return self._mean_and_error(self.loss)[0]

    @property
    def error(self) -> float:
        """Standard error of the mean."""
        return self._mean_and_error(self.loss)[1]

    def gain_over(self, other: Judged) -> tuple[float, float]:
        """Return by how much the mean loss is lower than another's, and the standard error."""
        return self._mean_and_error(other.loss - self.loss)

    def _mean_and_error(self, values: FloatArray) -> tuple[float, float]:
        known = ~np.isnan(values)
        if not known.any():
            return np.nan, np.nan
        share = self.weight[known] / self.weight[known].sum()
        mean = float(share @ values[known])
        return mean, float(np.sqrt(np.sum((share * (values[known] - mean)) ** 2)))


@dataclass(frozen=True)
class Size:
    """A model of the front.

    Attributes
    ----------
    structure : Structure
    solution : Solution
        On all documents.
    dropped : array of int64
        Features that it may not read.
    row : dict
        Features, pairs and held-out results.
    """

    structure: Structure
    solution: Solution
    dropped: IntArray
    row: dict[str, Any]

    @property
    def features(self) -> list[int]:
        """The features that the model reads."""
        return sorted(self.structure.features_of(self.structure.used(self.solution.w)))


class Search:
    """The choices for one data set.

    Parameters
    ----------
    data : RankingData
    labels : Labels
    loss : Loss
    structure : Structure
        All columns of one feature.
    settings : Settings
    folds : list of array of bool
        Which queries each fold holds out.
    executor : Executor
    """

    def __init__(
        self,
        data: RankingData,
        labels: Labels,
        loss: Loss[Any],
        structure: Structure,
        settings: Settings,
        folds: Sequence[BoolArray],
        executor: Executor,
    ) -> None:
        self.data, self.labels, self.loss, self.settings = data, labels, loss, settings
        self.structure, self.executor = structure, executor
        n_queries = len(labels.query_ptr) - 1
        given = labels.query_weight
        self.query_weight = np.ones(n_queries) if given is None else np.asarray(given, np.float64)
        self.plan = loss.prepare(labels)
        self.informative = np.asarray(self.plan.scale > 0)
        weight = np.where(self.informative, self.query_weight, 0.0)
        if isinstance(self.plan, ListNetPlan):
            weight = self.plan.scale  # which may emphasise some queries
        self.total = float(weight.sum()) if isinstance(self.plan, ListNetPlan) else 1.0
        self.share = weight / weight.sum()
        self.folds = [Fold(self, held_out) for held_out in folds]

        self.whole = Part(self, self.query_weight)

    def run(self, report: Callback) -> tuple[float, list[Size]]:
        """Choose curves, jumps or lines, the strength and pairs; fit every size of model.

        ``report`` is told every choice.
        """
        strengths, structure, ramps = self.settings.strengths, self.structure, self.structure.ramps
        tried = {"curves": structure}
        if ramps is not None and ramps.is_bend.any():
            if self.settings.jumps:
                tried["jumps"] = replace(structure, jumps=True)
            tried["lines"] = replace(structure, straight=True)
        best: Judged | None = None
        for choice, other in tried.items():
            own_at, judged, own = self.path(other)
            report({"choice": choice, "strength": float(strengths[own_at]), "loss": judged.mean})
            gain, error = (1.0, 0.0) if best is None else judged.gain_over(best)
            if gain > error:
                structure, at, best, weights = other, own_at, judged, own
                tops = [fold.top for fold in self.folds]
        for fold, w, top in zip(self.folds, weights, tops, strict=True):
            fold.structure, fold.w, fold.top = structure, w, top
        strength = self.fit_whole(structure, float(strengths[at]))
        if self.settings.max_pairs and not structure.straight:
            strength = self._with_pairs(at, report)
        return strength, self.sizes(strength)

    def fit_whole(self, structure: Structure, strength: float) -> float:
        """Follow the path on all documents down to a strength, and return it."""
        whole = self.whole
        whole.structure = structure
        problem, penalty, w = whole.start(structure)
        for each in self.settings.strengths:
            if each <= strength:
                break
            w = whole.solve(problem, penalty, float(each), w).w
        whole.w = whole.solve(problem, penalty, strength, w).w
        return strength

    def _with_pairs(self, at: int, report: Callback) -> float:
        """Add pairs to all parts if they lower the held-out loss; return the strength.

        A fold's pairs are found on its own training queries. Models are compared on the scale that
        suits each best, so that pairs must change the order of documents for the better.
        """
        strengths = self.settings.strengths
        found = [find_pairs(self, fold, float(strengths[at])) for fold in self.folds]
        weights = [w for _, w in found]
        best: tuple[Judged, float, list[FloatArray]] | None = None
        for strength in map(float, strengths[max(at - 1, 0) : at + 2]):
            judged = self.unjudged()
            for k, (fold, (structure, _)) in enumerate(zip(self.folds, found, strict=True)):
                problem, penalty = fold.problem(structure), self.settings.penalty(structure)
                weights[k] = fold.solve(problem, penalty, strength, weights[k]).w
                judged.loss[fold.queries] = fold.losses(problem.scores(weights[k]))
            if best is None or judged.mean < best[0].mean:
                best = judged, strength, list(weights)
        assert best is not None
        judged, strength, weights = best
        curves, surfaces = self.unjudged(), self.unjudged()
        for fold, (structure, _), w in zip(self.folds, found, weights, strict=True):
            for of, own, v in ((curves, fold.structure, fold.w), (surfaces, structure, w)):
                u = rescaled(self, fold, fold.problem(own).scores(v))
                of.loss[fold.queries] = fold.losses(u)
        gain, error = surfaces.gain_over(curves)
        told = {"strength": strength, "loss": judged.mean, "gain": gain, "error": error}
        report({"choice": "pairs", **told})
        if not gain > error:
            return float(strengths[at])
        for fold, (structure, _), w in zip(self.folds, found, weights, strict=True):
            fold.structure, fold.w = structure, w
        whole = self.whole
        whole.structure, whole.w = find_pairs(self, whole, strength)
        problem, penalty = whole.problem(whole.structure), self.settings.penalty(whole.structure)
        whole.w = whole.solve(problem, penalty, strength, whole.w).w
        return strength

    def sizes(self, strength: float) -> list[Size]:
        """Fit every size of the front, on all documents and on each fold."""
        whole = self.whole
        most = len(whole.structure.features_of(whole.structure.used(whole.w)))
        sizes = target_sizes(max(1, most))
        runs = [self.shrink(fold, strength, sizes) for fold in self.folds]
        found = []
        for structure, solution, dropped in self.shrink(whole, strength, sizes):
            judged, scores = self.unjudged(), np.full(len(self.data.y), np.nan)
            for fold, run in zip(self.folds, runs, strict=True):
                own, fitted, _ = next(run)
                u = fold.problem(own).scores(fitted.w)
                judged.loss[fold.queries] = fold.losses(u)
                scores[fold.rows] = u[fold.rows]
            row = self._row(structure, solution.w, judged, scores)
            found.append(Size(structure, solution, dropped, row))
        return found

    @property
    def top(self) -> float:
        """The strength of an empty model of all documents."""
        return self.whole.top

    def _row(
        self, structure: Structure, w: FloatArray, judged: Judged, scores: FloatArray
    ) -> dict[str, Any]:
        """Return a row of the front, with held-out measures if queries were held out.

        Scores are NaN where no fold holds a document out.
        """
        from leanrank.metrics import evaluate

        used = structure.used(w)
        n_pairs = int(np.count_nonzero(used >= structure.n_features))
        row: dict[str, Any] = {"features": len(structure.features_of(used)), "pairs": n_pairs}
        known = ~np.isnan(scores)
        if not known.any():
            return row
        row |= {"loss": judged.mean, "loss_error": judged.error}
        y, qid = self.data.y[known], self.data.qid[known]
        found = evaluate(y, scores[known], qid, measures=["ndcg@10", "map"])
        for name, values in found.per_query.items():
            defined = values[~np.isnan(values)]
            if len(defined):  # no fraction of a grade is relevant
                error = float(defined.std() / np.sqrt(len(defined)))
                row |= {name: float(found.means[name]), f"{name}_error": error}
        return row

    def unjudged(self) -> Judged:
        """Return an empty table of held-out losses."""
        return Judged(np.full(len(self.share), np.nan), self.share)

    def path(self, structure: Structure) -> tuple[int, Judged, list[FloatArray]]:
        """Follow the path of all folds; return the best strength, its losses and its weights.

        It ends once the mean held-out loss has not fallen for ``PATIENCE`` strengths.
        """
        begun = [fold.start(structure) for fold in self.folds]
        weights = [w for _, _, w in begun]
        found: list[tuple[Judged, list[FloatArray]]] = []
        for at, strength in enumerate(self.settings.strengths):
            judged = self.unjudged()
            for k, (fold, (problem, penalty, _)) in enumerate(zip(self.folds, begun, strict=True)):
                weights[k] = fold.solve(problem, penalty, float(strength), weights[k]).w
                judged.loss[fold.queries] = fold.losses(problem.scores(weights[k]))
            found.append((judged, list(weights)))
            means = [each.mean for each, _ in found]
            if at - int(np.argmin(means)) >= PATIENCE:
                break
        best = int(np.argmin(means))
        return best, *found[best]

    def importance(self, structure: Structure, w: FloatArray) -> FloatArray:
        """Return the standard deviation of each term's part of the scores, within queries."""
        out = np.zeros(structure.n_features + len(structure.pairs))
        sizes = np.diff(self.labels.query_ptr)
        rows = np.repeat(self.informative, sizes)
        counts = sizes[self.informative]
        starts = np.cumsum(counts) - counts
        for term in structure.used(w).tolist():
            part = structure.design.matvec(np.where(structure.owner == term, w, 0.0))[rows]
            means = np.add.reduceat(part, starts) / counts
            out[term] = np.std(part - np.repeat(means, counts))
        return out

    def by_feature(self, structure: Structure, w: FloatArray) -> FloatArray:
        """Return the importance of each feature; a pair counts for both of its features."""
        sizes = self.importance(structure, w)
        total = sizes[: structure.n_features] ** 2
        for k, pair in enumerate(structure.pairs):
            total[list(pair)] += sizes[structure.n_features + k] ** 2
        return np.sqrt(total)

    def weakest(self, problem: MemoryProblem, structure: Structure, w: FloatArray) -> list[int]:
        """List the features in use, those without which the objective rises least first.

        If they have many columns, those that move the scores within queries least.
        """
        used = sorted(structure.features_of(structure.used(w)))
        formed = self.loss.offers("curvature") or self.loss.offers("products")
        few = formed and np.count_nonzero(w) <= STEP_COLUMNS
        sizes = rises(problem, structure, w) if few else self.by_feature(structure, w)
        return sorted(used, key=lambda j: sizes[j])

    def shrink(
        self, part: Part, strength: float, sizes: Sequence[int]
    ) -> Iterator[tuple[Structure, Solution, IntArray]]:
        """Yield columns, solution and dropped features at each size: drop the weakest, fit again.

        What a larger model did not read does not come back. Pairs are looked for again among the
        features that are left once these are few.
        """
        structure, w = part.structure, part.w
        problem = part.problem(structure)
        dropped = np.zeros(0, dtype=np.int64)
        solution: Solution | None = None
        paired = sizes[0]
        for size in sizes:
            n_used = len(structure.features_of(structure.used(w)))
            if n_used > size:
                kept = self.weakest(problem, structure, w)[-size:]
                dropped = np.setdiff1d(np.arange(structure.n_features), kept)
            if structure.pairs and 1 < size <= PAIRS_AGAIN * paired:
                paired = size
                structure, w = find_pairs(self, part, strength, dropped)
                problem = part.problem(structure)
                solution = None
            if n_used > size or solution is None:
                penalty = self.settings.penalty(structure, dropped)
                solution = part.solve(problem, penalty, strength, penalty.permitted(w))
                w = solution.w
            yield structure, solution, dropped


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


def alpha_max(problem: Problem, penalty: Any) -> tuple[float, FloatArray]:
    """Return the strength of an empty model, and its weights, those of unpenalised features."""
    w = np.zeros(problem.n_features)
    free = penalty.free & ~penalty.excluded
    if free.any():
        w = Newton(tol=1e-8).solve(problem, penalty.only_free()).w
    problem.at(w)
    gradient = problem.gradient()
    gradient[free] = 0.0
    return penalty.alpha_max_ratio(gradient), w


def target_sizes(most: int) -> list[int]:
    """Return the numbers of features of a front, from all to one.

    >>> target_sizes(40)
    [40, 32, 25, 20, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]
    """
    sizes = [most]
    while sizes[-1] > 1:
        sizes.append(min(sizes[-1] - 1, max(int(0.8 * sizes[-1]), 15)))
    return sizes
