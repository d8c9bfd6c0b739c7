"""Exact leave-query-out: scores without training again, and what is chosen by them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import clone

from leanrank._numbers import check_number
from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, warn
from leanrank.execution import make_executor, single_threaded_blas
from leanrank.losses.base import Labels
from leanrank.metrics.judge import Judge, as_good_as, best_of, better_sign, check_rule, mean_of
from leanrank.rankers.base import BaseRanker
from leanrank.solvers.least_squares.centred import Centred
from leanrank.solvers.least_squares.spectrum import Spectrum, leave_query_out_scores


class LeaveQueryOut(BaseRanker):
    """A ranker that can leave out each query without training again; it defines ``_factorise``."""

    alpha: float
    n_jobs: int | None

    def _factorise(self, data: RankingData, labels: Labels) -> Spectrum:
        raise AssertionError(f"{type(self).__name__} must define _factorise")

    def leave_query_out(
        self,
        X: Any,
        y: Any = None,
        qid: Any = None,
        *,
        alphas: Iterable[float] | None = None,
        **options: Any,
    ) -> FloatArray:
        """Score every document by the model of the *other* queries, exactly, in closed form.

        Nothing is trained again: one factorisation serves all queries and all alphas. A query that
        is left out takes its loss out of the objective and changes nothing else, so with
        ``normalize="none"`` the scores are those of training on the other queries; with another
        normalisation its divisor stays that of all queries.

        Parameters
        ----------
        X, y, qid : as for fit
        alphas : iterable of float, optional
            Positive strengths; by default the ranker's own.
        **options
            What else ``fit`` takes.

        Returns
        -------
        array of shape (n_alphas, documents)
            In the order of ``alphas`` and of the rows given.
        """
        listed = [self.alpha] if alphas is None else alphas
        grid = np.array([check_number("alpha", a, open_low=True) for a in listed])
        twin = clone(self)
        with single_threaded_blas():
            data, labels = twin._data_and_labels(X, y, qid, **options)
            spectrum = twin._factorise(data, labels)
            scores = leave_query_out_scores(spectrum, grid, make_executor(self.n_jobs))
        return scores if data is X else data.restore(scores.T).T


def measure_scores(
    scores: FloatArray, centred: Centred, data: RankingData, measure: str, convention: str
) -> FloatArray:
    """Measure the left-out scores of several models on each query.

    Parameters
    ----------
    scores : array of shape (models, documents)
    centred : Centred
        A document of weight 0 is left out of the measure, one of weight 2 is in the list twice;
        weights that are not whole count as 1.
    data : RankingData
    measure : str
        A measure, or "loss" for the negated squared loss: higher is better.
    convention : str

    Returns
    -------
    array of shape (models, queries)
        NaN where the measure is not defined.
    """
    if measure == "loss":
        residuals = (centred.target - centred.project(centred.root * s) for s in scores)
        return np.array([-squared_by_query(residual, centred) for residual in residuals])
    from leanrank.metrics import evaluate

    kept = np.arange(len(data))
    if data.sample_weight is not None:
        kept = np.repeat(kept, _counts(data.sample_weight))
    labels, queries = data.y[kept], centred.query_of[kept]
    ids = None if data.doc_ids is None else data.doc_ids[kept]
    out = np.full((len(scores), data.n_queries), np.nan)
    rules = Judge(measure, convention).rules
    for row, values in zip(out, scores, strict=True):
        result = evaluate(
            labels, values[kept], queries, measures=measure, convention=rules, doc_ids=ids
        )
        row[result.query_ids] = next(iter(result.per_query.values()))
    return out


def warn_of_single_query(centred: Centred, what: str) -> None:
    """Warn that leave-query-out cannot choose."""
    if centred.only_query >= 0:
        warn(
            "only one query has labels that differ, and without it there is no model, so "
            f"leave-query-out says nothing: {what}; give qid, or choose by validation"
        )


def choose_size(values: FloatArray, rule: str, measure: str = "loss") -> int:
    """Return the position of the chosen model, among models in order from the simplest on.

    Parameters
    ----------
    values : array of shape (models, queries)
        Of ``measure``, as ``measure_scores`` returns them.
    rule : {"best", "1se"}
        The best mean, or the first model within one standard error of it.

    Examples
    --------
    >>> values = np.array([[0.1, 0.3], [0.4, 0.62], [0.41, 0.61]])
    >>> choose_size(values, "best"), choose_size(values, "1se")
    (1, 1)
    """
    check_rule(rule)
    turned = measure in ("loss", "criterion")  # negated errors
    worth = values * (1.0 if turned else better_sign(measure))
    means = np.array([mean_of(row) for row in worth])
    if np.isnan(means).all():
        raise InputError(
            "the measure is not defined on any left-out query: choose another measure or convention"
        )
    best = best_of(np.where(np.isnan(means), -np.inf, means))
    return best if rule == "best" else int(np.flatnonzero(as_good_as(worth, best))[0])


def squared_by_query(residual: FloatArray, centred: Centred) -> FloatArray:
    """Sum the squares of a residual over each query."""
    n_queries = len(centred.query_ptr) - 1
    return np.asarray(np.bincount(centred.query_of, residual**2, n_queries), dtype=np.float64)


def _counts(weights: FloatArray) -> IntArray:
    whole = bool(np.all(weights == np.round(weights))) and float(weights.max(initial=0.0)) < 1e6
    return (weights if whole else weights > 0).astype(np.int64)
