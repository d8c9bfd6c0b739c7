"""RankRLS: regularised least squares on the differences within each query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.execution import make_executor, single_threaded_blas
from leanrank.losses.base import Labels
from leanrank.losses.squared import SquaredLoss
from leanrank.problem.base import Problem
from leanrank.problem.memory import MemoryProblem
from leanrank.problem.parts import PartedProblem, Parts
from leanrank.rankers.base import check_number
from leanrank.rankers.least_squares.held_out import LeaveQueryOut
from leanrank.rankers.linear import BaseLinearRanker
from leanrank.rankers.validation import held_out_data
from leanrank.solvers.least_squares.centred import Centred
from leanrank.solvers.least_squares.ridge import (
    LARGEST_FACTORISATION,
    solve_ridge,
    solve_ridge_dual,
    solve_ridge_path,
)
from leanrank.solvers.least_squares.spectrum import Spectrum, factorise

if TYPE_CHECKING:
    from leanrank.rankers.path import Path


@dataclass(eq=False, repr=False)
class RankRLS(LeaveQueryOut, BaseLinearRanker):
    """Closed-form ranking: a ridge regression on query-centred data (Pahikkala et al. 2007).

    With more documents than features it is solved in the primal, else in the dual; where both are
    more than 8,192, by conjugate gradients. A sparse X stays sparse.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the ℓ2² penalty. With ``normalize="none"`` it is the paper's λ.
    normalize : {"query", "term", "none"}, default="query"
        Whether every query, every document or nothing is normalised; see the objective in the
        documentation.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Examples
    --------
    >>> from leanrank import RankRLS, make_ranking
    >>> data = make_ranking(n_queries=30, random_state=0)
    >>> ranker = RankRLS(alpha=0.01).fit(data.X, data.y, qid=data.qid)
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.5)
    True

    Score each query by the model of the other queries:

    >>> scores = ranker.leave_query_out(data.X, data.y, qid=data.qid, alphas=[0.001, 0.1])
    >>> scores.shape == (2, len(data))
    True
    """

    alpha: float = 1e-3
    _: KW_ONLY
    normalize: str = "query"
    n_jobs: int | None = None

    fits_on_cluster = True

    def _fit(self, data: RankingData, labels: Labels) -> FloatArray:
        alpha = check_number("alpha", self.alpha)
        loss = SquaredLoss()
        if isinstance(data.X, Parts):
            return solve_ridge(PartedProblem(data.X, loss, self.normalize), alpha)
        plan = loss.prepare(labels)
        if len(data) < data.n_features and len(data) <= LARGEST_FACTORISATION:
            return solve_ridge_dual(Centred.from_plan(data.X, plan), alpha)
        return solve_ridge(MemoryProblem(data.X, loss, plan, make_executor(self.n_jobs)), alpha)

    def path(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        alphas: Iterable[float],
        validation: Any = None,
        measures: Sequence[str] = ("ndcg@10",),
        convention: str = "standard",
        **options: Any,
    ) -> Path:
        """Solve for several alphas from one factorisation.

        Parameters
        ----------
        X, y, qid : as for fit
        alphas : iterable of float
        validation : RankingData or (X, y, qid), optional
            Where to measure each model.
        measures : sequence of str
        convention : str
        **options
            What else ``fit`` takes.

        Returns
        -------
        Path
            Models by descending alpha; their gap is 0, as they solve a linear system.
        """
        from leanrank.rankers.path import Path, measure_models

        twin = clone(self)
        data, labels = twin._data_and_labels(X, y, qid, **options)
        twin.count_queries(data, labels)
        grid = check_alphas(alphas)[::-1]
        held_out = held_out_data(twin, validation)
        loss = SquaredLoss()
        problem: Problem
        with single_threaded_blas():
            if isinstance(data.X, Parts):
                problem = PartedProblem(data.X, loss, self.normalize)
                coefs = solve_ridge_path(problem, grid.tolist())
            else:
                plan = loss.prepare(labels)
                spectrum = self._factorise(data, labels)
                coefs = np.array([spectrum.weights(float(alpha)) for alpha in grid])
                problem = MemoryProblem(data.X, loss, plan, make_executor(self.n_jobs))
            values = [problem.at(w) for w in coefs]
        return Path(
            alphas=grid,
            coefs=coefs,
            dual_gaps=np.zeros(len(grid)),
            objectives=np.array(values) + 0.5 * grid * np.sum(coefs**2, axis=1),
            n_iters=np.ones(len(grid), dtype=np.int64),
            measures=measure_models(coefs, held_out, measures, convention),
            template=twin,
        )

    def _factorise(self, data: RankingData, labels: Labels) -> Spectrum:
        return factorise(Centred.from_plan(data.X, SquaredLoss().prepare(labels)))


def check_alphas(alphas: Iterable[float]) -> FloatArray:
    """Check a grid of strengths and sort it, ascending."""
    grid = np.sort([check_number("alphas", alpha) for alpha in alphas]).astype(np.float64)
    if len(grid) == 0:
        raise InputError("alphas is empty: give at least one strength")
    return grid
