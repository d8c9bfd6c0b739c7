"""Refitting a model to other documents, and a bound on the gain.

Today's objective is today's loss plus the penalty of yesterday's training, over the same terms with
the same knots. It is convex, so a dual value bounds the objective of all weights of these terms
from below: today's objective at yesterday's weights minus that bound is the largest possible gain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import BoolArray, FloatArray
from leanrank.data.clicks.click_log import ClickLog
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.designs.base import make_design
from leanrank.designs.ramps import ramp_design
from leanrank.designs.surfaces import SurfaceDesign
from leanrank.errors import InputError, check_choice
from leanrank.execution import make_executor, single_threaded_blas
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.model import Levels, Line, Model
from leanrank.model.summary import with_summary
from leanrank.model.writing import as_model
from leanrank.problem.memory import MemoryProblem
from leanrank.rankers.lean import LeanRanker
from leanrank.rankers.lean_record import Record, group_codes, record_of
from leanrank.rankers.lean_structure import Settings, Structure, terms_of
from leanrank.rankers.surfaces import constant_in_queries
from leanrank.service.explain import documents_for
from leanrank.solvers.base import Solution
from leanrank.solvers.newton.solver import Newton

BOUND_TOL = 1e-3
"""Relative duality gap of the bound."""

SAMPLE = 30
"""Sample size per column for Hessians; tuned with ``benchmarks service --only refit``."""


class Today:
    """The optimisation problem of a model on given documents.

    Parameters
    ----------
    model : Model
        A model of LeanRanker.
    data : RankingData
        Documents with labels.
    gain_weight : array, optional
        Gain weights of a click log.
    loss : Loss, optional
        The loss, if the model was trained with an object; the model file has only names.
    n_jobs : int, optional
    """

    def __init__(
        self,
        model: Model,
        data: RankingData,
        *,
        gain_weight: FloatArray | None = None,
        loss: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.model, self.data, self.record = model, data, Record.of(model)
        self.clicked = gain_weight is not None
        made = model.provenance["parameters"]
        given = made["loss"] if loss is None else loss
        softmax = {"gain": made["gain"], "emphasis": self.record.emphasis}
        self.loss = get_loss(given, **softmax if given == "softmax" else {})
        if unknown := int(np.isnan(data.y).sum()):
            raise InputError(f"{unknown:,} documents have no label: give those that have one")
        self.executor = make_executor(n_jobs)
        self.labels = Labels(
            kernel_view(data.y), kernel_view(data.query_ptr), sample_weight=data.sample_weight,
            query_weight=data.query_weight, offset=data.offset,
            gain_weight=None if gain_weight is None else kernel_view(gain_weight),
        )  # fmt: skip
        self.plan = self.loss.prepare(self.labels)
        if not (self.plan.scale > 0).any():
            raise InputError(
                "no query has documents of different labels, so nothing can be learned from them: "
                "give labelled documents"
            )
        self.structure = self._structure()
        self.w = self.record.start(self.structure.ramps)
        self.settings = Settings(
            group_ratio=self.record.group_ratio,
            factors=self.record.factors,
            signs=self.record.signs,
            strengths=np.ones(1),
            max_pairs=0,
            tol=BOUND_TOL,
        )
        self.penalty = self.settings.penalty(self.structure).times(self.record.alpha)

    def _structure(self) -> Structure:
        """Return the design of the documents with the model's knots."""
        model, ramps, features = self.model, self.record.ramps, self.record.features.tolist()
        reader = model.replace(
            curves={j: model.curves.get(j, Line(1.0)) for j in features}, surfaces={}, summary=None
        )
        matrix, columns, _ = reader.prepared(self.data)
        if columns is None:
            X = matrix
        elif isinstance(matrix, np.ndarray):
            X = np.take(matrix, columns, axis=1)  # row by row: an index reads column by column
        else:
            X = matrix[:, columns]
        if ramps is None:
            return Structure(make_design(X, self.executor, self.data.query_ptr), None)
        X = np.ascontiguousarray(X if isinstance(X, np.ndarray) else X.toarray())
        categories = [
            at for at, j in enumerate(features) if isinstance(model.curves.get(j), Levels)
        ]
        if categories:
            X = X.copy()
        for at in categories:
            X[:, at] = group_codes(model, features[at], X[:, at].astype(np.float64))
        design = ramp_design(X, ramps, self.executor)
        structure = Structure(design, design.ramps, straight=self.record.straight)
        return structure.with_pairs(self.record.pairs) if self.record.pairs else structure

    def problem(self, queries: BoolArray | None = None) -> MemoryProblem:
        """Return the problem of all queries, or of some."""
        plan = self.plan
        if queries is not None:
            given = self.labels.query_weight
            weight = np.where(queries, 1.0 if given is None else given, 0.0)
            plan = self.loss.prepare(replace(self.labels, query_weight=weight))
        return MemoryProblem(self.structure.design, self.loss, plan, self.executor)

    def solve(
        self, tol: float, w: FloatArray | None = None, queries: BoolArray | None = None
    ) -> Solution:
        """Return the solution, starting from given weights or those of the model."""
        start = self.penalty.permitted((self.w if w is None else w).copy())
        # one Hessian of a sample is used for several steps, also near the minimum
        solver = Newton(tol, max_iter=1_000, far=0.0, good_step=0.5, sample_per_feature=SAMPLE)
        with single_threaded_blas():
            return solver.solve(self.problem(queries), self.penalty, start)

    def losses(self, w: FloatArray) -> FloatArray:
        """Return the loss of each query."""
        u = self.problem().scores(w)
        g = np.zeros(len(u))
        queries = range(len(self.plan.scale))
        return np.array([self.loss.evaluate(self.plan, q, q + 1, u, g) for q in queries])

    def model_of(self, solution: Solution) -> Model:
        """Return the model of a solution, with the record of its own columns."""
        model, structure = self.model, self.structure
        features = self.record.features.tolist()
        known = self.record.alpha, self.record.emphasis, self.settings
        record = record_of(structure, solution.w, *known, every=True)
        for each in record["columns"]:
            each["feature"] = features[each["feature"]]
        for each in record.get("pairs", ()):
            each["features"] = [features[at] for at in each["features"]]
        made = {k: v for k, v in model.provenance.items() if k not in ("data", "measures")}
        report = {"dual_gap": solution.gap, "objective": solution.objective}
        made["training"] = report | {"n_iter": solution.n_iter} | record
        before = model.provenance["training"]
        if "held_out" in before and self.clicked == bool(before.get("clicks")):
            made["training"]["held_out"] = before["held_out"]  # same terms and strength
        if self.clicked:
            made["training"]["clicks"] = True
        of_query: Any = False  # which features have one value per query, where pairs ask
        if isinstance(structure.design, SurfaceDesign):
            of_query = constant_in_queries(structure.design.curves.X, self.data.query_ptr)
        curves, surfaces = terms_of(structure, solution.w, of_query)
        new = model.replace(
            curves={features[at]: curve for at, curve in curves.items()},
            surfaces={(features[f], features[g]): one for (f, g), one in surfaces.items()},
            provenance=made,
            summary=None,
        )
        return new if model.summary is None else with_summary(new, self.data)


@dataclass(frozen=True)
class Bound:
    """A bound on the gain of a refit of the same terms at the same strength.

    Attributes
    ----------
    objective : float
        Loss plus penalty of the model on these documents.
    loss : float
    lower : float
        No weights of these terms have a lower objective.
    moves : dict of str to float
        Distance of 0 from the subgradients of loss + penalty, as a share of the strength, by
        feature, largest first.
    """

    objective: float
    loss: float
    lower: float
    moves: dict[str, float]

    @property
    def gain(self) -> float:
        """The largest possible gain of a refit, as a share of the loss."""
        return max(0.0, self.objective - self.lower) / self.loss if self.loss > 0 else 0.0


def refit_bound(today: Today, tol: float = BOUND_TOL) -> Bound:
    """Return an upper bound on the gain of a refit.

    The bound is valid for any ``tol``, and closer to the gain for a smaller one.
    """
    problem, w = today.problem(), today.penalty.permitted(today.w.copy())
    loss = float(problem.at(w))
    objective = loss + float(today.penalty.value(w))
    residual = today.penalty.residual(w, problem.gradient()) / max(today.record.alpha, 1e-300)
    owner, structure = today.structure.owner, today.structure
    sizes = np.sqrt(np.bincount(owner, residual**2, minlength=structure.n_features))
    names = [feature_name(j, today.model.feature_names) for j in today.record.features.tolist()]
    moves = {names[j]: float(sizes[j]) for j in np.argsort(-sizes[: structure.n_features])}
    solution = today.solve(tol)
    lower = solution.objective * (1.0 - solution.gap)
    return Bound(objective, loss, lower, moves)


def refit(
    model: Any,
    data: Any,
    y: Any = None,
    qid: Any = None,
    *,
    structure: str = "same",
    tol: float = 1e-6,
    loss: Any = None,
    n_jobs: int | None = None,
) -> Model:
    """Refit a model to new documents: the same terms, knots and strength, from its weights.

    Parameters
    ----------
    model : Model or fitted LeanRanker
    data : RankingData, ClickLog, array or data frame
    y, qid : array-like, optional
        Labels and queries of an array or frame.
    structure : {"same", "again"}, default="same"
        "again" chooses terms, knots and strength again, with the parameters of the model.
    tol : float, default=1e-6
        Relative duality gap.
    loss : Loss, optional
        The loss, if the model was trained with an object instead of a name.
    n_jobs : int, optional

    Examples
    --------
    >>> from leanrank import LeanRanker
    >>> from leanrank.data import load_sample
    >>> train, vali, test = load_sample()
    >>> yesterday = LeanRanker(max_features=3).fit(train).to_model()
    >>> today = refit(yesterday, vali)
    >>> today.term_names == yesterday.term_names, today.provenance["training"]["dual_gap"] <= 1e-6
    (True, True)
    """
    known, gains = as_model(model), None
    check_choice("structure", structure, ("same", "again"))
    if structure == "again":
        more = {"tol": tol, "n_jobs": n_jobs} | ({} if loss is None else {"loss": loss})
        return _ranker_of(known).set_params(**more).fit(data, y, qid).to_model()
    if isinstance(data, ClickLog):
        (data, gains), y = data.labelled(y), None
    documents = documents_for(known, data, y, qid)
    today = Today(known, documents, gain_weight=gains, loss=loss, n_jobs=n_jobs)
    return today.model_of(today.solve(tol))


def _ranker_of(model: Model) -> LeanRanker:
    """Return a ranker with the parameters of a model; integer keys are texts in a model file."""
    Record.of(model)  # raises an error if no LeanRanker made it
    parameters, names = dict(model.provenance["parameters"]), model.feature_names or ()
    for name, given in parameters.items():
        if isinstance(given, Mapping):
            parameters[name] = {
                key if key in names else int(key): value for key, value in given.items()
            }
    return LeanRanker(**parameters)
