"""What rankers that solve one optimisation problem share: the problem, where to start, progress."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._typing import Callback, FloatArray, Matrix
from leanrank.data.ranking_data import RankingData
from leanrank.designs.base import Design
from leanrank.errors import check_choice
from leanrank.execution import Executor, make_executor
from leanrank.losses.base import Labels, Loss, refuse_edges
from leanrank.problem.base import Problem
from leanrank.problem.memory import MemoryProblem
from leanrank.problem.parts import PartedProblem, Parts
from leanrank.rankers.curves import weights_model
from leanrank.rankers.inputs import check_number, check_whole, refuse_idle
from leanrank.rankers.linear import BaseLinearRanker


class ProblemRanker(BaseLinearRanker):
    """A ranker that solves one optimisation problem.

    A subclass names its loss in ``make_loss`` and solves in ``_fit_problem``.
    """

    _takes_preferences = True  # the loss has the last word
    fits_on_cluster = True

    tol: float
    max_iter: int
    warm_start: bool
    n_jobs: int | None
    verbose: int
    callback: Callback | None

    dual_gap_: float
    objective_: float
    n_iter_: int
    history_: list[dict[str, Any]]

    def make_loss(self) -> Loss[Any]:
        """Return the loss."""
        raise AssertionError(f"{type(self).__name__} must define make_loss")

    def with_margins(self, labels: Labels) -> Labels:
        """Return the labels with the margins that the ranker asks for."""
        return labels

    def make_problem(
        self, X: Matrix | Design | Parts, labels: Labels, executor: Executor | None = None
    ) -> Problem:
        """Join features and labels, rows grouped by query, with the loss.

        Where X is in parts, so are the labels.
        """
        loss = self.make_loss()
        if isinstance(X, Parts):
            from leanrank.rankers.cluster import relabelling

            return PartedProblem(X, loss, labels.normalize, relabelling(self))
        if not loss.takes_edges:
            refuse_edges(labels, loss.name)
        plan = loss.prepare(self.with_margins(labels))
        return MemoryProblem(X, loss, plan, executor or make_executor(self.n_jobs))

    def _fit(self, data: RankingData, labels: Labels) -> FloatArray:
        problem = self.make_problem(data.X, labels)
        start = getattr(self, "coef_", None) if self.warm_start else None
        if start is not None and len(start) != problem.n_features:
            start = None
        coef = self._fit_problem(problem, None if start is None else start.copy())
        curved = self.ramps_ is not None
        if isinstance(problem, MemoryProblem) and curved and data.X.dtype == np.float32:
            # values among the knots were rounded
            scores = weights_model(coef, self.ramps_).predict(data.X)
            shift = 0.0 if problem.plan.offset is None else problem.plan.offset
            self.objective_ += problem.evaluate(scores - shift)[0] - problem.at(coef)
        return coef

    def _check_stopping(self) -> None:
        check_number("tol", self.tol, open_low=True)
        check_whole("max_iter", self.max_iter)

    def _fit_problem(self, problem: Problem, w: FloatArray | None) -> FloatArray:
        """Solve from weights w or from zero, and keep what is known of the solution."""
        raise AssertionError(f"{type(self).__name__} must define _fit_problem")


def scaled_margins(ranker: Any, labels: Labels, *, positive: bool = False) -> Labels:
    """Return the labels with ``margin_scale`` as margin per label where ``margin`` is "scaled"."""
    if ranker.margin is None:
        refuse_idle(ranker, ("margin_scale",), "margin=None: use margin='scaled'")
        return labels
    check_choice("margin", ranker.margin, ("scaled",))
    return labels.with_margin(check_number("margin_scale", ranker.margin_scale, open_low=positive))
