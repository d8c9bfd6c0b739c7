"""RankRLS that chooses its own alpha by exact leave-query-out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.execution import make_executor
from leanrank.losses.base import Labels
from leanrank.losses.squared import SquaredLoss
from leanrank.rankers.least_squares.held_out import (
    choose_size,
    measure_scores,
    warn_of_single_query,
)
from leanrank.rankers.least_squares.rankrls import check_alphas
from leanrank.rankers.linear import BaseLinearRanker
from leanrank.solvers.least_squares.centred import Centred
from leanrank.solvers.least_squares.leave_query_out import leave_query_out_scores
from leanrank.solvers.least_squares.spectrum import factorise


@dataclass(eq=False, repr=False)
class RankRLSCV(BaseLinearRanker):
    """RankRLS with the alpha that ranks each query best when that query is left out of training.

    The leave-query-out scores are exact and cost little more than one fit: one factorisation serves
    every alpha and every query.

    Parameters
    ----------
    alphas : iterable of float, default=1e-6 … 1e2 by factors of ten
        Positive strengths to choose from.
    measure : str, default="ndcg@10"
        Any measure of ``leanrank.metrics.evaluate``, or "loss" for the squared loss itself.
    convention : str, default="standard"
        How the measure treats ties, short lists and so on.
    rule : {"best", "1se"}, default="best"
        The best alpha, or the largest one whose measure is within one standard error of the best.
    normalize : {"query", "term", "none"}, default="query"
        As for RankRLS.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    alpha_ : float
        The chosen strength; among equals the largest.
    alphas_ : array
        Ascending.
    measures_ : array of shape (n_alphas,)
        The mean measure of the leave-query-out scores of each alpha.

    Examples
    --------
    >>> from leanrank import RankRLSCV, make_ranking
    >>> data = make_ranking(n_queries=30, random_state=0)
    >>> ranker = RankRLSCV(alphas=[1e-4, 1e-2, 1.0, 100.0]).fit(data.X, data.y, qid=data.qid)
    >>> ranker.alpha_ < 100
    True
    """

    alphas: Iterable[float] = (1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0, 100.0)
    _: KW_ONLY
    measure: str = "ndcg@10"
    convention: str = "standard"
    rule: str = "best"
    normalize: str = "query"
    n_jobs: int | None = None

    def _fit(self, data: RankingData, labels: Labels) -> FloatArray:
        grid = check_alphas(self.alphas)
        if grid[0] <= 0:
            raise InputError("alphas must be positive: alpha=0 has no unique left-out model")
        centred = Centred.from_plan(data.X, SquaredLoss().prepare(labels))
        warn_of_single_query(centred, "the largest alpha is taken")
        spectrum = factorise(centred)
        scores = leave_query_out_scores(spectrum, grid, make_executor(self.n_jobs))
        values = measure_scores(scores, centred, data, self.measure, self.convention)
        # from the simplest model to the most flexible
        chosen = len(grid) - 1 - choose_size(values[::-1], self.rule, self.measure)
        self.alphas_ = grid
        self.alpha_ = float(grid[chosen])
        with np.errstate(invalid="ignore"):
            means = np.nanmean(values, axis=1)
        self.measures_ = -means if self.measure == "loss" else means
        return spectrum.weights(self.alpha_)
