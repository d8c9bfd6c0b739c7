"""Which documents to judge next: those whose label would move the model, or a difference, most.

*The model.* With the softmax loss, a label of gain G moves the target of a query of total gain T by
G/(T + G) towards the document, and so the gradient in the size of every term by that times z, what
the terms add to the document less their mean by the present target. A Newton step then moves the
sizes by H⁻¹ of it, which changes the loss by ½ E[(G/(T + G))²]·zᵀH⁻¹z: a document is worth the
expectation over G. H is that of the sizes of the terms, and grows with each document chosen, so
that the next is unlike it.

*A difference of two models.* The difference of DCG is Σ gain·(discount by one − by the other). An
unjudged document makes it uncertain by the variance of its gain times the square of that bracket
(Carterette, Allan and Sitaraman 2006).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.model import Model
from leanrank.model.scoring import rank_within_queries
from leanrank.model.writing import as_model
from leanrank.service.explain import documents_for

BINS = 10
"""Parts of equally many judged documents by score, in which levels have about the same chances."""


def judge_next(
    model: Any,
    pool: Any,
    y: Any = None,
    qid: Any = None,
    *,
    n: int = 40,
    against: Any = None,
    depth: int = 10,
) -> tuple[IntArray, FloatArray, RankingData]:
    """Choose the documents without a label whose judgment would help most.

    Parameters
    ----------
    model : Model or fitted ranker
    pool : RankingData, array or data frame
        Documents; those whose label is NaN are to choose from.
    y, qid : array-like, optional
        Labels and queries of an array or frame.
    n : int, default=40
    against : Model or fitted ranker, optional
        To measure the difference between two models instead of moving the first.
    depth : int, default=10
        Documents of a ranking that count in the difference.

    Returns
    -------
    rows : array of int64
        Rows of the returned data, the most useful first.
    worth : array
        Expected change of the loss, or variance of the difference that is taken away.
    data : RankingData

    Examples
    --------
    >>> pool = RankingData([[2.0], [1.0], [0.0]], [float("nan")] * 3, ["jazz"] * 3)
    >>> one, other = Model.from_coef([1.0]), Model.from_coef([-1.0])
    >>> judge_next(one, pool, n=2, against=other)[0].tolist()
    [0, 2]
    """
    known = as_model(model)
    data = documents_for(known, pool, y, qid)
    open_ = np.flatnonzero(np.isnan(data.y))
    if len(open_) == 0:
        raise InputError("every document of the pool has a label: give some without")
    scores = known.predict(data)
    chances, gains = gain_chances(data, scores)
    if against is not None:
        other = as_model(against)
        ranks = [
            rank_within_queries(each, data.qid)
            for each in (scores, other.predict(documents_for(other, pool, y, qid)))
        ]
        parts = [np.where(rank <= depth, 1.0 / np.log2(1.0 + rank), 0.0) for rank in ranks]
        mean = chances @ gains
        worth = (chances @ gains**2 - mean**2) * (parts[0] - parts[1]) ** 2
        order = open_[np.argsort(-worth[open_], kind="stable")][:n]
        return order, worth[order], data
    return *_moving_most(known, data, scores, chances, gains, open_, n), data


def gain_chances(data: RankingData, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the chance of each level for each document by its score, and the levels' gains.

    Counted among judged documents of similar score; without any, 0 and 1 are taken as equally
    likely.
    """
    judged = ~np.isnan(data.y)
    if not judged.any():
        return np.full((len(data), 2), 0.5), np.array([0.0, 1.0])
    levels, at = np.unique(data.y[judged], return_inverse=True)
    edges = np.quantile(scores[judged], np.arange(1, BINS) / BINS)
    bins = np.searchsorted(edges, scores)
    counts = np.ones((BINS, 1)) * np.bincount(at, minlength=len(levels)) / judged.sum()
    np.add.at(counts, (bins[judged], at), 1.0)
    return (counts / counts.sum(axis=1, keepdims=True))[bins], np.exp2(levels) - 1.0


def _moving_most(
    model: Model,
    data: RankingData,
    scores: FloatArray,
    chances: FloatArray,
    gains: FloatArray,
    open_: IntArray,
    n: int,
) -> tuple[IntArray, FloatArray]:
    """Choose one document after the other, H growing with each."""
    sizes = np.diff(data.query_ptr)
    query = np.repeat(np.arange(len(sizes)), sizes)
    added = model.explain(data).contributions
    judged = np.where(np.isnan(data.y), 0.0, np.exp2(np.nan_to_num(data.y)) - 1.0)
    total = np.bincount(query, judged, minlength=len(sizes))
    top = np.maximum.reduceat(scores, data.query_ptr[:-1][sizes > 0])
    shares = np.exp(scores - np.repeat(top, sizes[sizes > 0]))
    shares /= np.bincount(query, shares, minlength=len(sizes))[query]
    target = np.where(total[query] > 0, judged / np.maximum(total[query], 1e-300), shares)
    z = added - _by_query(target, added, query, len(sizes))[query]
    spread = added - _by_query(shares, added, query, len(sizes))[query]
    hessian = (spread * shares[:, None]).T @ spread
    hessian += (1e-6 * np.trace(hessian) / max(1, len(hessian)) + 1e-12) * np.eye(len(hessian))
    inverse = np.linalg.inv(hessian)
    # without a judged gain, the first one is all of the target
    moved = gains / np.maximum(total[query][open_, None] + gains, 1e-300)
    factor = np.sum(chances[open_] * moved**2, axis=1)
    z, left = z[open_], np.ones(len(open_), dtype=bool)
    chosen, worth = [], []
    for _ in range(min(n, len(open_))):
        value = 0.5 * factor * np.einsum("ij,jk,ik->i", z, inverse, z)
        at = int(np.argmax(np.where(left, value, -1.0)))
        chosen.append(int(open_[at]))
        worth.append(float(value[at]))
        left[at] = False
        along = inverse @ z[at]
        inverse -= factor[at] * np.outer(along, along) / (1.0 + factor[at] * float(z[at] @ along))
    return np.array(chosen, dtype=np.int64), np.array(worth)


def _by_query(weight: FloatArray, values: FloatArray, query: IntArray, n: int) -> FloatArray:
    """Return the weighted sums of the columns of values in each query."""
    out = np.zeros((n, values.shape[1]))
    np.add.at(out, query, weight[:, None] * values)
    return out
