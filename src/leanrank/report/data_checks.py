"""Problems of a data set: leaks, overlaps, constants, uninformative queries."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from leanrank._typing import BoolArray, FloatArray
from leanrank.data.ranking_data import RankingData, column_values, counted, feature_name
from leanrank.metrics.judge import Judge, better_sign, mean_of
from leanrank.rankers.surfaces import constant_in_queries

NEAR_PERFECT = 0.95
"""Share of the way from a random to a perfect order at which a single feature is suspicious."""

_MOST_CHECKED = 12  # features, those most correlated with the labels
_QUERIES = 2000  # on which single features are measured, so that large data take seconds
_MANY_IDLE = 0.2  # share of queries with a single label that is reported


@dataclass(frozen=True)
class Finding:
    """A problem of the data.

    Attributes
    ----------
    kind : {"leak", "overlap", "constant", "idle"}
    title, text : str
        One line, and its meaning.
    features : tuple of int
        The features with the problem.
    """

    kind: str
    title: str
    text: str
    features: tuple[int, ...] = ()

    @property
    def grave(self) -> bool:
        """Whether the problem can make results wrong."""
        return self.kind in ("leak", "overlap")


def check_data(
    training: RankingData, validation: RankingData | None = None, *, measure: str = "ndcg@10"
) -> list[Finding]:
    """Return common problems of ranking data, the most serious first.

    Parameters
    ----------
    training, validation : RankingData
    measure : str
        The measure of single features.

    Returns
    -------
    list of Finding

    Examples
    --------
    >>> from leanrank.data import make_ranking
    >>> data = make_ranking(30, 20)
    >>> leaky = data.replace(X=np.column_stack([data.X, data.y, np.ones(len(data))]))
    >>> [(found.kind, found.features) for found in check_data(leaky)]
    [('leak', (20,)), ('constant', (21,))]
    """
    held_out = None if validation is training else validation
    return [
        *_leaks(training, measure),
        *_overlap(training, held_out),
        *_constants(training),
        *_idle(training, "training"),
        *_idle(held_out, "validation"),
    ]


def _leaks(data: RankingData, measure: str) -> Iterator[Finding]:
    """Yield features that alone rank almost perfectly: often they are made from the labels."""
    judge = Judge(measure)
    some = data.queries[np.flatnonzero(data.informative)[:_QUERIES]]
    if some.n_queries < 10 or better_sign(measure) < 0:
        return

    def value(scores: FloatArray) -> float:
        return mean_of(next(iter(judge.per_query(some, scores).values())))

    chance = value(np.zeros(len(some)))  # the mean over all orders
    correlation = _correlations(some)
    for at in np.argsort(-np.abs(correlation), kind="stable")[:_MOST_CHECKED].tolist():
        column = column_values(some.X, at) * np.sign(correlation[at])
        if correlation[at] == 0 or chance >= 1 or not np.isfinite(column).all():
            continue
        alone = value(column)
        if alone - chance >= NEAR_PERFECT * (1 - chance):
            yield Finding(
                "leak",
                f"{feature_name(at, data.feature_names)} may reveal the labels",
                f"The feature alone has {measure} {alone:.4f}; a random order has {chance:.4f}. "
                "Such a feature is often made from the judgments, or from events after the "
                "ranking: make sure that it is known before.",
                (at,),
            )


def _overlap(training: RankingData, validation: RankingData | None) -> Iterator[Finding]:
    own = [] if validation is None else validation.query_ids.tolist()
    shared = len(set(map(str, training.query_ids.tolist())) & set(map(str, own)))
    if shared:
        yield Finding(
            "overlap",
            f"{shared:,} query ids are in the training and in the validation part",
            f"These are {shared / len(own):.0%} of the validation queries. If they are "
            "the same queries, validation measures memory: split by query.",
        )


def _constants(data: RankingData) -> Iterator[Finding]:
    constant = np.flatnonzero(_constant_features(data)).tolist()
    if constant:
        names = [feature_name(at, data.feature_names) for at in constant[:8]]
        shown = ", ".join(names + ["…"] * (len(constant) > 8))
        yield Finding(
            "constant",
            f"{counted(len(constant), 'feature')} cannot rank anything",
            f"Within every query all documents have the same value: {shown}. Leave them out to "
            "save time.",
            tuple(constant),
        )


def _idle(data: RankingData | None, part: str) -> Iterator[Finding]:
    idle = 0 if data is None else int(data.n_queries - data.informative.sum())
    if data is not None and idle and idle >= _MANY_IDLE * data.n_queries:
        effect = "They do not train" if part == "training" else "They do not distinguish models"
        yield Finding(
            "idle",
            f"{idle:,} of {data.n_queries:,} {part} queries have a single label (ignored)",
            f"All their documents have the same label. {effect}, and some measures count them as "
            "0 or 1 for every model.",
        )


def _correlations(data: RankingData) -> FloatArray:
    """Return the correlation of every feature with the labels within queries, 0 if constant."""
    sizes = np.diff(data.query_ptr)
    n, q = len(data), data.n_queries
    groups = csr_array((np.ones(n), np.arange(n), data.query_ptr), shape=(q, n))
    target = data.y - np.repeat(groups @ data.y / sizes, sizes)
    X: Any = csr_array(data.X) if data.is_sparse else data.X - np.nanmean(data.X, axis=0)
    between = (groups @ X) ** 2 * (1.0 / sizes)[:, None]
    squares = np.asarray((X**2).sum(axis=0) - between.sum(axis=0)).ravel()
    spread = np.sqrt(np.maximum(squares, 0.0)) * np.linalg.norm(target)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.nan_to_num(np.where(spread > 0, X.T @ target / spread, 0.0))


def _constant_features(data: RankingData) -> BoolArray:
    """Return which features have one value within every query."""
    if not len(data):
        return np.zeros(data.n_features, dtype=bool)
    if not data.is_sparse:
        return constant_in_queries(data.X, data.query_ptr)
    columns = data.X.tocsc()
    found: BoolArray = np.bincount(data.X.indices[data.X.data != 0], minlength=data.n_features) == 0
    # a stored feature is constant only if it fills whole queries with one value, which is rare
    for at in np.flatnonzero(~found & (np.diff(columns.indptr) >= np.diff(data.query_ptr).min())):
        column = column_values(columns, int(at))[:, None]
        found[at] = constant_in_queries(column, data.query_ptr)[0]
    return found
