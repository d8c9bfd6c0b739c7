"""Choosing among models by what they do on queries left out of training."""

from __future__ import annotations

import warnings

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import DataWarning, InputError
from leanrank.solvers.least_squares.centred import Centred

RULES = ("best", "1se")


def measure_scores(
    scores: FloatArray, centred: Centred, data: RankingData, measure: str, convention: str
) -> FloatArray:
    """Measure the left-out scores of several models, query by query.

    Parameters
    ----------
    scores : array of shape (models, documents)
    centred : Centred
        A document of weight 0 is left out of the measure, one of weight 2 is in the list twice;
        weights that are not whole count as 1.
    data : RankingData
    measure : str
        A measure, or "loss" for the squared loss with its sign turned: higher is better.
    convention : str

    Returns
    -------
    array of shape (models, queries)
        NaN where the measure is not defined.
    """
    if measure == "loss":
        return np.array([-squared_by_query(left_out_residual(s, centred), centred) for s in scores])
    from leanrank.metrics import evaluate

    kept = np.arange(len(data))
    if data.sample_weight is not None:
        kept = np.repeat(kept, _counts(data.sample_weight))
    labels, queries = data.y[kept], centred.query_of[kept]
    ids = None if data.doc_ids is None else data.doc_ids[kept]
    out = np.full((len(scores), data.n_queries), np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # a model of few features may tie
        for row, values in zip(out, scores, strict=True):
            result = evaluate(
                labels, values[kept], queries, measures=measure, convention=convention, doc_ids=ids
            )
            row[result.query_ids] = next(iter(result.per_query.values()))
    return out


def warn_of_single_query(centred: Centred, what: str) -> None:
    """Say that leave-query-out has nothing to go by."""
    if centred.only_query >= 0:
        warnings.warn(
            "only one query has labels that differ, and without it there is no model, so "
            f"leave-query-out says nothing: {what}; give qid, or choose by validation",
            DataWarning,
            stacklevel=6,
        )


def choose_size(values: FloatArray, rule: str) -> int:
    """Choose among models in order from the simplest on, given a measure of each query.

    "best" takes the first of those with the best mean; "1se" the first whose mean is within one
    standard error of the best one's mean.

    >>> values = np.array([[0.1, 0.3], [0.4, 0.6], [0.41, 0.61]])
    >>> choose_size(values, "best"), choose_size(values, "1se")
    (2, 1)
    """
    if rule not in RULES:
        raise InputError(f"rule={rule!r} is not known: choose one of {RULES}")
    defined = ~np.isnan(values)
    counts = defined.sum(axis=1)
    if not counts.any():
        raise InputError(
            "the measure is not defined on any left-out query: choose another measure or convention"
        )
    sums = np.where(defined, values, 0.0).sum(axis=1)
    means = np.divide(sums, counts, out=np.full(len(values), -np.inf), where=counts > 0)
    best = int(np.argmax(means))
    if rule == "best":
        return best
    mine = values[best][defined[best]]
    spread = float(mine.std(ddof=1)) / np.sqrt(len(mine)) if len(mine) > 1 else 0.0
    return int(np.flatnonzero(means >= means[best] - spread)[0])


def left_out_residual(scores: FloatArray, centred: Centred) -> FloatArray:
    """Turn left-out scores into the residual of the centred regression."""
    return centred.target - centred.project(centred.root * scores)


def squared_by_query(residual: FloatArray, centred: Centred) -> FloatArray:
    """Sum the squares of a residual over each query."""
    n_queries = len(centred.query_ptr) - 1
    return np.asarray(np.bincount(centred.query_of, residual**2, n_queries), dtype=np.float64)


def _counts(weights: FloatArray) -> IntArray:
    whole = bool(np.all(weights == np.round(weights))) and float(weights.max(initial=0.0)) < 1e6
    return (weights if whole else weights > 0).astype(np.int64)
