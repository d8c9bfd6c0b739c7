"""Problems of a data set: leaks, constants, skewed labels, uninformative queries."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from leanrank._typing import BoolArray, FloatArray
from leanrank.data.ranking_data import RankingData, column_values, feature_name
from leanrank.errors import DataWarning

NEAR_PERFECT = 0.95
"""A single feature that comes this far from a random order to a perfect one is suspicious."""

_LOOKED_AT = 12  # features, those most correlated with the labels
_QUERIES = 2000  # that single features are measured on: seconds, whatever the size of the data
_SKEWED = 0.95  # share of the documents with one label, from which that is said
_IDLE = 0.2  # share of the queries without information, from which that is said


@dataclass(frozen=True)
class Finding:
    """Something to know about the data.

    Attributes
    ----------
    kind : {"leak", "overlap", "constant", "missing", "skew", "idle"}
    grave : bool
        Whether results may be wrong because of it.
    title, text : str
        One line, and what it means.
    features : tuple of int
        The features that it is about.
    """

    kind: str
    grave: bool
    title: str
    text: str
    features: tuple[int, ...] = ()


def check_data(
    training: RankingData, validation: RankingData | None = None, *, measure: str = "ndcg@10"
) -> list[Finding]:
    """Look for common problems of ranking data, the gravest first.

    Parameters
    ----------
    training, validation : RankingData
    measure : str
        By which single features are judged.

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
    found = [
        *_leaks(training, measure),
        *_overlap(training, validation),
        *_missing(training),
        *_constants(training),
        *_skew(training),
        *_idle(training, "training"),
    ]
    if validation is not None and validation is not training:
        found += _idle(validation, "validation")
    return sorted(found, key=lambda one: not one.grave)


def _leaks(data: RankingData, measure: str) -> list[Finding]:
    """Features that alone rank almost perfectly are usually made from the labels."""
    from leanrank.metrics import evaluate
    from leanrank.metrics.judge import better_sign

    some = data.queries[np.flatnonzero(data.informative)[:_QUERIES]]
    if some.n_queries < 10 or better_sign(measure) < 0:
        return []
    correlation = _correlations(some)

    def value(scores: FloatArray) -> float:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            result = evaluate(some, scores, measures=measure, ties="average", n_jobs=1)
        return float(next(iter(result.means.values())))

    chance = value(np.zeros(len(some)))  # ties averaged: the mean over all orders
    found = []
    for at in np.argsort(-np.abs(correlation), kind="stable")[:_LOOKED_AT].tolist():
        if not np.isfinite(correlation[at]) or correlation[at] == 0 or chance >= 1:
            continue
        column = column_values(some.X, at) * np.sign(correlation[at])
        if np.isnan(column).any():
            continue
        alone = value(column)
        if alone - chance >= NEAR_PERFECT * (1 - chance):
            name = feature_name(at, data.feature_names)
            found.append(
                Finding(
                    "leak",
                    True,
                    f"{name} may give the labels away",
                    f"Alone it ranks with {measure} {alone:.4f}, where a random order reaches "
                    f"{chance:.4f}. A feature this good is often made from the judgements, or from "
                    "what happened after the ranking: make sure that it is known beforehand.",
                    (at,),
                )
            )
    return found


def _overlap(training: RankingData, validation: RankingData | None) -> list[Finding]:
    if validation is None or validation is training:
        return []
    shared = set(map(str, training.query_ids.tolist())) & set(
        map(str, validation.query_ids.tolist())
    )
    if not shared:
        return []
    share = len(shared) / validation.n_queries
    return [
        Finding(
            "overlap",
            True,
            f"{len(shared):,} query ids are in the training and in the validation part",
            f"These are {share:.0%} of the validation queries. If they are the same queries, "
            "validation measures what was memorised: split by query.",
        )
    ]


def _missing(data: RankingData) -> list[Finding]:
    values = data.X.data if data.is_sparse else data.X
    count = int(np.count_nonzero(np.isnan(values)))
    if not count:
        return []
    return [
        Finding(
            "missing",
            False,
            f"{count:,} feature values are missing",
            "Only boosted rankers and those with curves take NaN as a missing value.",
        )
    ]


def _constants(data: RankingData) -> list[Finding]:
    constant = _constant_features(data)
    if not constant.any():
        return []
    places = np.flatnonzero(constant).tolist()
    shown = ", ".join(feature_name(at, data.feature_names) for at in places[:8]) + (
        ", …" if len(places) > 8 else ""
    )
    one = len(places) == 1
    return [
        Finding(
            "constant",
            False,
            f"{len(places):,} feature{'' if one else 's'} cannot rank anything",
            f"Within every query all documents have the same value: {shown}. "
            f"{'It costs' if one else 'They cost'} time and can be left out.",
            tuple(places),
        )
    ]


def _skew(data: RankingData) -> list[Finding]:
    labelled = data.y[~np.isnan(data.y)]
    if len(labelled) == 0:
        return []
    levels, counts = np.unique(labelled, return_counts=True)
    top = int(np.argmax(counts))
    share = counts[top] / len(labelled)
    if len(levels) < 2 or share < _SKEWED:
        return []
    others = len(labelled) - int(counts[top])
    return [
        Finding(
            "skew",
            False,
            f"{share:.1%} of the training documents have the label {levels[top]:g}",
            f"Only {others:,} documents teach what stands above or below them, so intervals are "
            "wide; more judgements help more than more models.",
        )
    ]


def _idle(data: RankingData, part: str) -> list[Finding]:
    idle = int(data.n_queries - data.informative.sum())
    if not idle or idle < _IDLE * data.n_queries:
        return []
    effect = "They teach nothing" if part == "training" else "They cannot tell models apart"
    return [
        Finding(
            "idle",
            False,
            f"{idle:,} of {data.n_queries:,} {part} queries carry no information",
            f"All their documents have the same label. {effect}, and some measures count them as "
            "0 or 1 for every model.",
        )
    ]


def _correlations(data: RankingData) -> FloatArray:
    """Correlate every feature with the labels within queries; 0 where a feature is constant."""
    sizes = np.diff(data.query_ptr)
    target = data.y - np.repeat(np.add.reduceat(data.y, data.query_ptr[:-1]) / sizes, sizes)
    covariance = np.asarray(data.X.T @ target).ravel()
    spread = np.sqrt(np.maximum(_inner_squares(data), 0.0)) * np.linalg.norm(target)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 0, covariance / spread, 0.0)


def _inner_squares(data: RankingData) -> FloatArray:
    """Return the sum of squares of each feature around its query's mean."""
    X, sizes = data.X, np.diff(data.query_ptr)
    if data.is_sparse:
        from scipy.sparse import csr_array

        n, q = len(data), data.n_queries
        groups = csr_array((np.ones(n), np.arange(n), data.query_ptr), shape=(q, n))
        sums = csr_array(groups @ X)
        weighted = sums.multiply(sums).multiply((1.0 / np.maximum(sizes, 1))[:, None])
        squares = np.asarray(X.multiply(X).sum(axis=0)).ravel()
        return np.asarray(squares - np.asarray(weighted.sum(axis=0)).ravel())
    total = np.zeros(data.n_features)
    for start, stop in pairwise(data.query_ptr.tolist()):
        block = np.asarray(X[start:stop], dtype=np.float64)
        if len(block):
            total += ((block - block.mean(axis=0)) ** 2).sum(axis=0)
    return total


def _constant_features(data: RankingData) -> BoolArray:
    """Return which features have one value within every query."""
    starts = data.query_ptr[:-1][np.diff(data.query_ptr) > 0]
    if not len(starts):
        return np.zeros(data.n_features, dtype=bool)
    if not data.is_sparse:
        high = np.maximum.reduceat(data.X, starts, axis=0)
        low = np.minimum.reduceat(data.X, starts, axis=0)
        return np.asarray((high == low).all(axis=0))
    used = np.bincount(data.X.indices[data.X.data != 0], minlength=data.n_features) > 0
    constant = ~used
    # a stored feature is constant only if it fills whole queries with one value, which is rare
    column = data.X.tocsc()
    for at in np.flatnonzero(used & (np.diff(column.indptr) >= np.diff(data.query_ptr).min())):
        dense = column_values(column, int(at)).astype(np.float64)
        high, low = np.maximum.reduceat(dense, starts), np.minimum.reduceat(dense, starts)
        constant[at] = bool((high == low).all())
    return constant
