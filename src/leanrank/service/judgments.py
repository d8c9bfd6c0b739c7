"""Uncertain judgments: the agreement of judges, and the expected gains of documents.

Several people, or language models, rate the same documents and disagree. Dawid and Skene (1979)
explain ratings by a true level of each document and a table per judge: the probability that the
judge says l where k is true. EM estimates both. A few trusted judgments, whose level is known,
calibrate the tables of judges who rated the same documents.

It is implemented here because crowd-kit 1.4, which has the same method, depends on pandas, NLTK and
transformers.

``judge_next`` chooses the documents to judge next: those whose label would change the model, or the
difference between two models, most.

*The model.* With the softmax loss, a label of gain G moves the target of a query of total gain T by
G/(T + G) towards the document. The gradient in the size of every term changes by that times z, the
contributions of the terms to the document minus their mean under the current target. A Newton step
then changes the sizes by H⁻¹ of it, and the loss by ½ E[(G/(T + G))²]·zᵀH⁻¹z, which is the worth of
a document. H is the Hessian in the sizes of the terms, and grows with each document chosen, so that
the next one differs from it.

*A difference of two models.* The difference of DCG is Σ gain·(discount by one − by the other). An
unjudged document makes it uncertain by the variance of its gain times the square of that bracket
(Carterette, Allan and Sitaraman 2006).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.logs import number
from leanrank.data.logs.judgments import rated_cells, read_judgments
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, check_choice, first_repeated
from leanrank.model import Model
from leanrank.model.scoring import rank_within_queries
from leanrank.model.writing import as_model
from leanrank.service.explain import documents_for

SCALES = ("ordinal", "interval", "nominal")


@dataclass(frozen=True, repr=False)
class Ratings:
    """Ratings of documents by judges.

    Attributes
    ----------
    items : list of (str, str)
        Query and document.
    judges : list of str
    levels : array
        The ratings that occur, ascending.
    item, judge, level : array of int64
        One entry per rating.
    """

    items: list[tuple[str, str]]
    judges: list[str]
    levels: FloatArray
    item: IntArray
    judge: IntArray
    level: IntArray

    @classmethod
    def of(cls, rows: Sequence[tuple[str, str, str, float]]) -> Ratings:
        """Return the ratings of (query, document, judge, rating).

        >>> Ratings.of([("q", "a", "ann", 1), ("q", "a", "bob", 0), ("q", "b", "bob", 1)])
        Ratings: 3 ratings of 2 documents by 2 judges, levels 0, 1
        """
        if not rows:
            raise InputError("there are no ratings: give at least one")
        items = list(dict.fromkeys((q, d) for q, d, _, _ in rows))
        judges = list(dict.fromkeys(j for _, _, j, _ in rows))
        row, who = ({one: at for at, one in enumerate(each)} for each in (items, judges))
        levels, level = np.unique([float(r) for *_, r in rows], return_inverse=True)
        item = np.array([row[q, d] for q, d, _, _ in rows], dtype=np.int64)
        judge = np.array([who[j] for _, _, j, _ in rows], dtype=np.int64)
        twice = first_repeated([(q, d, j) for q, d, j, _ in rows])
        if twice is not None:
            q, d, j = twice
            raise InputError(f"{j} rates document {d!r} of query {q!r} twice: keep one rating")
        return cls(items, judges, levels, item, judge, level.astype(np.int64))

    def counts(self) -> FloatArray:
        """Return how many judges gave each document each level."""
        out = np.zeros((len(self.items), len(self.levels)))
        np.add.at(out, (self.item, self.level), 1.0)
        return out

    def __repr__(self) -> str:
        levels = ", ".join(f"{level:g}" for level in self.levels)
        return (
            f"Ratings: {len(self.item):,} ratings of {len(self.items):,} documents by "
            f"{len(self.judges)} judges, levels {levels}"
        )


def read_ratings(*paths: str | os.PathLike[str]) -> Ratings:
    """Return the ratings of files, with their judges.

    A CSV file has one row per rating with columns for query, document, judge and rating; or, like a
    book of Quepid, one row per document with one column per judge, where empty cells are no
    ratings. A file of OpenSearch's workbench (JSON) or of TREC has the judgments of one judge, with
    the name of the file.
    """
    rows: list[tuple[str, str, str, float]] = []
    for path in paths:
        if os.fspath(path).endswith(".csv"):
            rows += [
                (query, document, judge, number(rating, "rating", place))
                for place, query, document, judge, rating in rated_cells(path, judges=True)
                if rating
            ]
        else:
            found, judge = read_judgments(path), Path(path).stem
            pairs = zip(found.qid.tolist(), found.doc_id.tolist(), strict=True)
            labels = found.label.tolist()
            rows += [(str(q), str(d), judge, r) for (q, d), r in zip(pairs, labels, strict=True)]
    return Ratings.of(rows)


def krippendorff_alpha(
    ratings: Ratings, scale: str = "ordinal", *, judge: int | None = None, query: str | None = None
) -> float:
    """Return Krippendorff's alpha: 1 for full agreement, 0 for agreement by chance.

    Parameters
    ----------
    ratings : Ratings
    scale : {"ordinal", "interval", "nominal"}
    judge : int, optional
        Use only pairs of ratings with this judge: the agreement of the judge with the others.
    query : str, optional
        Use only documents of this query, with the disagreement by chance over all documents.

    Examples
    --------
    >>> rows = [("q", "a", "x", 1), ("q", "a", "y", 1), ("q", "b", "x", 2), ("q", "b", "y", 1)]
    >>> round(krippendorff_alpha(Ratings.of(rows), "nominal"), 3)
    0.0
    """
    check_choice("scale", scale, SCALES)
    others = ratings.counts()[ratings.item]  # of the same document, one row per rating
    others[np.arange(len(others)), ratings.level] -= 1
    n_others = others.sum(axis=1)
    paired = n_others > 0
    chosen = np.array([query is None or q == query for q, _ in ratings.items])[ratings.item]
    if judge is not None:
        chosen &= ratings.judge == judge
    together, observed = (np.zeros((len(ratings.levels), len(ratings.levels))) for _ in range(2))
    for sums, rows in ((together, paired), (observed, paired & chosen)):
        np.add.at(sums, ratings.level[rows], others[rows] / n_others[rows, None])
    total = together.sum(axis=0)
    n = total.sum()
    distance = _distances(ratings.levels, total, scale)
    chance = float(total @ distance @ total) / max(n * (n - 1), 1)
    weight = observed.sum()
    if chance == 0 or weight == 0:
        return float("nan")
    return float(1.0 - (observed * distance).sum() / weight / chance)


def _distances(levels: FloatArray, total: FloatArray, scale: str) -> FloatArray:
    if scale == "nominal":
        return 1.0 - np.eye(len(levels))
    if scale == "interval":
        return np.subtract.outer(levels, levels) ** 2
    reached = np.cumsum(total) - 0.5 * total
    return np.asarray(np.subtract.outer(reached, reached) ** 2)


@dataclass(frozen=True)
class Consensus:
    """Estimated true levels of documents, and tables of judges.

    Attributes
    ----------
    ratings : Ratings
    posterior : array of shape (documents, levels)
    tables : array of shape (judges, levels, levels)
        Probability that a judge says the level of the column where that of the row is true.
    """

    ratings: Ratings
    posterior: FloatArray
    tables: FloatArray

    def gains(self) -> FloatArray:
        """Return the expected gain 2^y − 1 of each document: labels for ``gain="linear"``."""
        return np.asarray(self.posterior @ (np.exp2(self.ratings.levels) - 1.0))


def dawid_skene(
    ratings: Ratings,
    *,
    trusted: Mapping[tuple[str, str], float] | None = None,
    smoothing: float = 1.0,
    n_iter: int = 200,
    tol: float = 1e-8,
) -> Consensus:
    """Estimate true levels and the tables of judges by expectation and maximisation.

    Parameters
    ----------
    ratings : Ratings
    trusted : mapping of (query, document) to rating, optional
        Known levels.
    smoothing : float, default=1.0
        Pseudo-counts of each judge: this many correct ratings per level, and as many spread over
        all levels.
    n_iter, tol
        Largest number of iterations, and the change of probabilities below which they end.

    Examples
    --------
    >>> rows = [("q", d, j, r) for d, j, r in [("a", "x", 1), ("a", "y", 1), ("b", "x", 0)]]
    >>> dawid_skene(Ratings.of(rows)).gains().round(1).tolist()
    [1.0, 0.5]
    """
    n_levels, counts = len(ratings.levels), ratings.counts()
    known = np.full(len(ratings.items), -1)
    place = {item: at for at, item in enumerate(ratings.items)}
    for item, value in (trusted or {}).items():
        if value not in ratings.levels:
            raise InputError(f"trusted has the rating {value:g}, which no judge gave: leave it out")
        if item in place:
            known[place[item]] = int(np.searchsorted(ratings.levels, value))
    pinned = np.flatnonzero(known >= 0)
    posterior = counts / counts.sum(axis=1, keepdims=True)
    before = smoothing * (np.eye(n_levels) + 1.0 / n_levels)
    for _ in range(n_iter):
        posterior[pinned] = np.eye(n_levels)[known[pinned]]
        share = posterior.mean(axis=0) + 1e-12
        tables = np.tile(before, (len(ratings.judges), 1, 1))
        np.add.at(
            tables.transpose(0, 2, 1), (ratings.judge, ratings.level), posterior[ratings.item]
        )
        tables /= tables.sum(axis=2, keepdims=True)
        logs = np.tile(np.log(share), (len(ratings.items), 1))
        np.add.at(logs, ratings.item, np.log(tables[ratings.judge, :, ratings.level]))
        logs -= logs.max(axis=1, keepdims=True)
        new = np.exp(logs)
        new /= new.sum(axis=1, keepdims=True)
        new[pinned] = np.eye(n_levels)[known[pinned]]
        moved = float(np.abs(new - posterior).max())
        posterior = new
        if moved < tol:
            break
    return Consensus(ratings, posterior, tables)


BINS = 10
"""Number of score bins with equally many judged documents, for the probabilities of levels."""


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
        Documents; the choice is among those whose label is NaN.
    y, qid : array-like, optional
        Labels and queries of an array or frame.
    n : int, default=40
    against : Model or fitted ranker, optional
        Second model: reduce the uncertainty of the difference instead of improving the first model.
    depth : int, default=10
        Number of top documents that count in the difference.

    Returns
    -------
    rows : array of int64
        Rows of the returned data, the most useful first.
    worth : array
        Expected change of the loss, or removed variance of the difference.
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
    """Return the probability of each level for each document by its score, and levels' gains.

    Probabilities are counts among judged documents of similar score; without any, gains of 0 and 1
    are equally likely.
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
    """Choose one document after the other, updating H with each."""
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
    # in a query without a gain, the first gain determines the target
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
