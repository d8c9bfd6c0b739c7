"""How the default ranker chooses strength, kind of curves, pairs and sizes by held-out loss.

Queries are divided into folds. The model of a fold is fitted to the other queries, and every choice
is made by its loss on the held-out ones: the loss is smooth in the strength, whereas NDCG of a few
hundred queries is mostly noise. The positions of documents among knots are computed once; a fold is
the same design with other query weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leanrank._typing import BoolArray, Callback, FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.designs.base import make_design
from leanrank.designs.ramps import RampDesign, ramp_design
from leanrank.execution import Executor
from leanrank.losses.base import Labels, Loss
from leanrank.losses.listnet import ListNetPlan
from leanrank.problem.memory import MemoryProblem
from leanrank.rankers.base import WEIGHTS
from leanrank.rankers.lean_structure import (
    Settings,
    Size,
    Structure,
    front,
    parts_within,
    rises,
    target_sizes,
)
from leanrank.rankers.path import alpha_max
from leanrank.rankers.surfaces import find_pairs
from leanrank.solvers.base import Solution
from leanrank.solvers.newton.solver import Newton

PAIRS_AGAIN = 0.7
"""Pairs are searched again once this share of the features is left."""

PATIENCE = 2
"""Number of strengths without a lower held-out loss after which a path ends."""

CLEARLY = 2.0
"""Standard errors by which a smaller model must have the lower held-out loss to be preferred."""

FEWEST_JUDGED = 10
"""Held-out queries below which their loss says too little to take a smaller model."""

STEP_COLUMNS = 600
"""Largest number of columns for a Newton step that finds the weakest feature."""


class Part:
    """The problem of some of the queries: all, or all but those of a fold.

    Attributes
    ----------
    weight : array
        Of each query; 0 if it is held out.
    queries, rows : array
        The informative queries that are held out, and a mask of the documents that are.
    top : float
        The strength of an empty model, to which others are relative.
    structure, w
        The columns that the part's model may use, and its weights.
    """

    def __init__(self, search: Search, held_out: BoolArray) -> None:
        self.search, self.weight = search, np.where(held_out, 0.0, search.query_weight)
        self.plan = search.loss.prepare(replace(search.labels, query_weight=self.weight))
        self.queries = np.flatnonzero(held_out & search.informative)
        self.rows = np.repeat(held_out, search.sizes_of_queries)
        self.top = 0.0
        self.structure = search.kinds["curves"]
        self.w = np.zeros(self.structure.design.n_features)

    def problem(self, structure: Structure) -> MemoryProblem:
        """Join the columns of a structure with the loss of this part."""
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
        solver = Newton(self.search.settings.tol if tol is None else tol, max_iter=1_000, larger=1)
        return solver.solve(problem, penalty.times(strength * self.top), w.copy())

    def start(self, structure: Structure) -> tuple[MemoryProblem, Any, FloatArray]:
        """Return problem, penalty and the weights at alpha_max, where the path starts."""
        problem, penalty = self.problem(structure), self.search.settings.penalty(structure)
        self.top, w = alpha_max(problem, penalty)
        return problem, penalty, w


@dataclass(frozen=True)
class Tried:
    """A kind of curves at one strength.

    Attributes
    ----------
    structure : Structure
    position : int
        Of the strength among those of the path.
    loss : float
        The mean of ``losses``, the held-out loss of each query.
    losses : array
    weights : list of array
        Of each fold.
    tops : list of float
        The strength of an empty model of each fold.
    """

    structure: Structure
    position: int
    loss: float
    losses: FloatArray
    weights: list[FloatArray]
    tops: list[float]


@dataclass
class Search:
    """The choices for one data set.

    Held-out losses are arrays by query, NaN for queries that no fold holds out.

    Attributes
    ----------
    data : RankingData
    labels : Labels
    loss : Loss
    kinds : dict of Structure
        The columns of each kind of model to try; a later one must be better than those before.
    settings : Settings
    executor : Executor
    """

    data: RankingData
    labels: Labels
    loss: Loss[Any]
    kinds: Mapping[str, Structure]
    settings: Settings
    executor: Executor

    def __post_init__(self) -> None:
        self.sizes_of_queries = np.diff(self.labels.query_ptr)
        given = self.labels.query_weight
        self.query_weight = np.ones(self.data.n_queries) if given is None else np.asarray(given)
        self.plan = self.loss.prepare(self.labels)
        self.informative = np.asarray(self.plan.scale > 0)
        weight = np.where(self.informative, self.query_weight, 0.0)
        self.total = 1.0
        if isinstance(self.plan, ListNetPlan):
            weight = self.plan.scale  # which may emphasise some queries
            self.total = float(weight.sum())
        self.share = weight / weight.sum()
        self.folds: list[Part] = []
        self.whole = Part(self, np.zeros(self.data.n_queries, dtype=bool))

    def divide(self, held_out: Sequence[BoolArray]) -> None:
        """Make a fold of each set of queries that is held out."""
        self.folds = [Part(self, queries) for queries in held_out]

    def of_queries(self, chosen: BoolArray) -> Search:
        """Return the same choices for some of the queries; the knots of curves stay."""
        data, executor = self.data.queries[chosen], self.executor
        rows = np.repeat(chosen, self.sizes_of_queries)

        def fewer(kind: Structure) -> Structure:
            whole, ramps = kind.design, kind.ramps
            if ramps is None:
                return kind.on(make_design(data.X, executor, data.query_ptr))
            # a dense X has the codes of categories
            X = whole.X[rows] if isinstance(whole, RampDesign) else data.X
            return kind.on(ramp_design(X, ramps, executor))

        kinds = {name: fewer(kind) for name, kind in self.kinds.items()}
        given = {name: getattr(data, name) for name in ("y", "query_ptr", *WEIGHTS)}
        if self.labels.gain_weight is not None:
            given["gain_weight"] = self.labels.gain_weight[rows]
        return replace(self, data=data, labels=replace(self.labels, **given), kinds=kinds)

    def losses(self, u: FloatArray, queries: IntArray) -> FloatArray:
        """Return the loss of some informative queries at scores of all documents."""
        g = np.zeros(len(u))
        found = [self.loss.evaluate(self.plan, q, q + 1, u, g) for q in queries.tolist()]
        return np.array(found) / (self.share[queries] * self.total)

    def mean_and_error(self, values: FloatArray) -> tuple[float, float]:
        """Return the mean over held-out queries, by their weights, and its standard error."""
        judged = ~np.isnan(values)
        share = self.share[judged] / self.share[judged].sum()
        mean = float(share @ values[judged])
        return mean, float(np.sqrt(np.sum((share * (values[judged] - mean)) ** 2)))

    def run(self, report: Callback) -> tuple[float, list[Size]]:
        """Choose curves, jumps or lines, the strength and pairs; fit every size of model.

        Every choice is passed to ``report``.
        """
        strengths, tried = self.settings.strengths, []
        best: Tried | None = None
        for kind, structure in self.kinds.items():
            found = self.path(structure, best)
            tried.append(found)
            strength = float(strengths[found.position])
            report({"choice": kind, "strength": strength, "loss": found.loss})
            gain, error = 1.0, 0.0
            if best is not None:
                gain, error = self.mean_and_error(best.losses - found.losses)
            if gain > error:
                best = found
        assert best is not None
        for fold, w, top in zip(self.folds, best.weights, best.tops, strict=True):
            fold.structure, fold.w, fold.top = best.structure, w, top
        strength = self.fit_whole(best.structure, float(strengths[best.position]))
        if self.settings.max_pairs:  # lines need a weaker penalty than curves
            curves = tried[0] if best.structure.straight else best
            strength = self._with_pairs(min(best.position, curves.position), report) or strength
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

    def _with_pairs(self, position: int, report: Callback) -> float | None:
        """Add pairs to all parts if they improve the held-out rankings; return their strength.

        The search starts one strength above that at ``position``.

        The pairs of a fold are found on its own training queries. They must put more pairs of
        documents in the right order: the loss may also fall by a mere change of scale, which moves
        no document, where gains are not the exponential of a sum of terms.
        """
        strengths = self.settings.strengths
        first = float(strengths[position])
        found = self.executor.map(lambda fold: find_pairs(self, fold, first), self.folds)
        weights = [w for _, w in found]
        tried = []
        for strength in map(float, strengths[max(position - 1, 0) :]):
            begun = [
                (fold.problem(structure), self.settings.penalty(structure))
                for fold, (structure, _) in zip(self.folds, found, strict=True)
            ]
            losses, weights = self._fitted_folds(begun, strength, weights)
            tried.append((self.mean_and_error(losses)[0], strength, weights))
            if len(tried) > 2 and tried[-1][0] > tried[-2][0]:
                break
        loss, strength, weights = min(tried, key=lambda each: each[0])
        curves, surfaces = (np.full(len(self.data.y), np.nan) for _ in range(2))
        for fold, (structure, _), w in zip(self.folds, found, weights, strict=True):
            curves[fold.rows] = fold.problem(fold.structure).scores(fold.w)[fold.rows]
            surfaces[fold.rows] = fold.problem(structure).scores(w)[fold.rows]
        gain, error = self.mean_and_error(self.disorder(curves) - self.disorder(surfaces))
        choice = {"choice": "pairs", "strength": strength, "loss": loss}
        report({**choice, "gain": gain, "error": error})
        if not gain > error:
            return None
        for fold, (structure, _), w in zip(self.folds, found, weights, strict=True):
            fold.structure, fold.w = structure, w
        whole = self.whole
        whole.structure, whole.w = find_pairs(self, whole, strength)
        problem, penalty = whole.problem(whole.structure), self.settings.penalty(whole.structure)
        whole.w = whole.solve(problem, penalty, strength, whole.w).w
        return strength

    def sizes(self, strength: float) -> list[Size]:
        """Fit every size, on all documents and on each fold; return the front."""
        whole = self.whole
        most = len(whole.structure.features_of(whole.structure.used(whole.w)))
        sizes = target_sizes(max(1, most))
        runs = [self.shrink(fold, strength, sizes) for fold in self.folds]
        found = []
        for structure, solution, dropped in self.shrink(whole, strength, sizes):
            losses, scores = self.no_losses(), np.full(len(self.data.y), np.nan)
            for fold, fit in zip(self.folds, self.executor.map(next, runs), strict=True):
                u = fold.problem(fit[0]).scores(fit[1].w)
                losses[fold.queries] = self.losses(u, fold.queries)
                scores[fold.rows] = u[fold.rows]
            row = self._row(structure, solution.w, losses, scores)
            found.append(Size(structure, solution, dropped, row, losses))
        return front(found)

    def best_size(self, sizes: Sequence[Size], most: int) -> int:
        """Return the size that is best, counted from the largest that is allowed, ``most``.

        A smaller one must be clearly better: the least of some fifteen losses is low by chance too.
        """
        losses: list[Any] = [size.losses for size in sizes[most:]]
        if np.count_nonzero(~np.isnan(losses[0])) < FEWEST_JUDGED:
            return most
        least = min(range(len(losses)), key=lambda at: self.mean_and_error(losses[at])[0])
        gain, error = self.mean_and_error(losses[0] - losses[least])
        return most + least if gain > CLEARLY * error else most

    @property
    def top(self) -> float:
        """The strength of an empty model of all documents."""
        return self.whole.top

    def _row(
        self, structure: Structure, w: FloatArray, losses: FloatArray, scores: FloatArray
    ) -> dict[str, Any]:
        """Return a row of the front, with held-out measures if queries were held out."""
        used = structure.used(w)
        n_pairs = int(np.count_nonzero(used >= structure.n_features))
        row: dict[str, Any] = {"features": len(structure.features_of(used)), "pairs": n_pairs}
        if np.isnan(scores).all():
            return row
        row["loss"], row["loss_error"] = self.mean_and_error(losses)
        found, _ = self._measure(scores, "ndcg@10", "map")
        for name, values in found.items():
            defined = values[~np.isnan(values)]
            if len(defined):  # fractions of a grade have no MAP
                error = float(defined.std() / np.sqrt(len(defined)))
                row |= {name: float(defined.mean()), f"{name}_error": error}
        return row

    def no_losses(self) -> FloatArray:
        """Return one NaN per query, for losses of held-out queries."""
        return np.full(self.data.n_queries, np.nan)

    def disorder(self, scores: FloatArray) -> FloatArray:
        """Return the share of pairs of documents in the wrong order, of each held-out query.

        Scores are NaN where no fold holds a document out.
        """
        out = self.no_losses()
        found, held_out = self._measure(scores, "all_pairs_error")
        out[held_out] = found["all_pairs_error"]
        return out

    def _measure(self, scores: FloatArray, *measures: str) -> tuple[dict[str, Any], BoolArray]:
        """Measure held-out queries, and say which they are; a query drawn twice counts twice."""
        from leanrank.metrics import evaluate

        scored, ptr = ~np.isnan(scores), self.data.query_ptr
        held_out = scored[ptr[:-1]]
        sizes = np.diff(ptr)[held_out]
        found = evaluate(self.data.y[scored], scores[scored], group=sizes, measures=measures)
        return found.per_query, held_out

    def path(self, structure: Structure, best: Tried | None = None) -> Tried:
        """Follow the path of all folds with some columns, to the strength of the least loss.

        It ends once the mean held-out loss has not fallen for ``PATIENCE`` strengths, or is above
        that of the ``best`` kind so far where that is at its best.
        """
        begun = self.executor.map(lambda fold: fold.start(structure), self.folds)
        weights = [w for _, _, w in begun]
        problems = [(problem, penalty) for problem, penalty, _ in begun]
        tops = [fold.top for fold in self.folds]
        tried: list[Tried] = []
        for position, strength in enumerate(self.settings.strengths):
            losses, weights = self._fitted_folds(problems, float(strength), weights)
            loss = self.mean_and_error(losses)[0]
            tried.append(Tried(structure, position, loss, losses, weights, tops))
            behind = best is not None and position >= best.position and loss > best.loss
            lowest = min(tried, key=lambda each: each.loss)
            if behind or position - lowest.position >= PATIENCE:
                break
        return lowest

    def _fitted_folds(
        self, problems: Sequence[tuple[MemoryProblem, Any]], strength: float, w: list[FloatArray]
    ) -> tuple[FloatArray, list[FloatArray]]:
        """Solve the problem of each fold; return the losses of its own queries and the weights."""
        losses = self.no_losses()

        def fit(given: tuple[Part, tuple[MemoryProblem, Any], FloatArray]) -> FloatArray:
            fold, (problem, penalty), start = given
            w = fold.solve(problem, penalty, strength, start).w
            losses[fold.queries] = self.losses(problem.scores(w), fold.queries)
            return w

        return losses, self.executor.map(fit, zip(self.folds, problems, w, strict=True))

    def importance(self, structure: Structure, w: FloatArray) -> FloatArray:
        """Return the standard deviation within queries of what each term adds to the scores."""
        out = np.zeros(structure.n_features + len(structure.pairs))
        for term, part in parts_within(structure, w, self.sizes_of_queries, self.informative):
            out[term] = np.std(part)
        return out

    def by_feature(self, structure: Structure, w: FloatArray) -> FloatArray:
        """Return the importance of each feature; a pair counts for both of its features."""
        sizes = self.importance(structure, w)
        total = sizes[: structure.n_features] ** 2
        for k, pair in enumerate(structure.pairs):
            total[list(pair)] += sizes[structure.n_features + k] ** 2
        return np.sqrt(total)

    def weakest(self, problem: MemoryProblem, structure: Structure, w: FloatArray) -> list[int]:
        """List the features in use, the least important first.

        Importance is the rise of the objective without a feature or, with many columns, how much
        the feature moves the scores within queries.
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

        A feature that was dropped does not come back. Pairs are searched again among the features
        that are left once these are few.
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
