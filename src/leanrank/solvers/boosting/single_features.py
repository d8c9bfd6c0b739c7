"""Single features as weak rankers, and the measure of each on every query."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData, column_values
from leanrank.errors import DataWarning, InputError, NoLevelsError
from leanrank.metrics import Measure, evaluate
from leanrank.metrics.measures import AUC, DCG, JOACHIMS, KENDALL
from leanrank.penalties.elastic_net import directions


class SingleFeatures:
    """Every feature used as a score, and a running sum of some of them.

    Parameters
    ----------
    data : RankingData
        Queries of one level, and those on which the measure is not defined, are left out; a
        document of ``sample_weight`` 2 is in the list twice.
    measure, convention : str
        The measure lies within [−1, 1] and is higher for better rankings.
    signs : array-like or int
        One of −1, 0, 1 per feature, or one for all: negated, both, or as it is.
    n_jobs : int or None

    Attributes
    ----------
    features, signs : array
        The feature of each weak ranker and its sign.
    table : array of shape (weak rankers, queries)
        The measure of each on each query.
    query_weight : array

    Examples
    --------
    >>> data = RankingData([[1.0, 0.0], [2.0, 5.0]], [0, 1])
    >>> weak = SingleFeatures(data, "map", "standard", 0, None)
    >>> weak.features.tolist(), weak.signs.tolist()
    ([0, 0, 1, 1], [1.0, -1.0, 1.0, -1.0])
    >>> weak.table.ravel().tolist()
    [1.0, 0.5, 1.0, 0.5]
    >>> weak.add(1, 0.5).tolist()               # the sum is now -0.5 times the first feature
    [0.5]
    """

    def __init__(
        self, data: RankingData, measure: str, convention: str, signs: Any, n_jobs: int | None
    ) -> None:
        _check_measure(measure)
        self.measure, self.convention, self.n_jobs = measure, convention, n_jobs
        self.features, self.signs = _weak_rankers(signs, data.n_features)
        self._data, weight = _informative(_repeated(data))
        self._X = self._data.X.tocsc() if self._data.is_sparse else self._data.X
        self._scores = np.zeros(len(self._data))
        table = np.array([self._measured(self._column(weak)) for weak in range(len(self.signs))])
        table = table.reshape(len(self.signs), len(weight))
        self._defined = ~np.isnan(table).any(axis=0)
        if not self._defined.any():
            raise InputError(f"{measure} is not defined on any query: choose another measure")
        self.table: FloatArray = table[:, self._defined]
        self.query_weight: FloatArray = weight[self._defined]

    def add(self, weak: int, value: float) -> FloatArray:
        """Add a weak ranker with a weight to the sum; return the measure on each query."""
        self._scores += value * self._column(weak)
        return self._measured(self._scores)[self._defined]

    def _column(self, weak: int) -> FloatArray:
        column = column_values(self._X, int(self.features[weak])).astype(np.float64)
        return np.asarray(self.signs[weak] * column)

    def _measured(self, scores: FloatArray) -> FloatArray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)  # a single feature ties many documents
            found = evaluate(
                self._data,
                scores,
                measures=self.measure,
                convention=self.convention,
                n_jobs=self.n_jobs,
            )
        return found.per_query[self.measure]


def _check_measure(name: str) -> None:
    kind = Measure.parse(name).kind
    bounded = kind != DCG and (kind <= AUC or kind in (KENDALL, JOACHIMS))
    if not bounded:
        raise InputError(
            f"measure={name!r} cannot be boosted: it must be higher for better rankings and lie "
            "within -1 and 1, such as 'map' or 'ndcg@10'"
        )


def _weak_rankers(signs: Any, n_features: int) -> tuple[IntArray, FloatArray]:
    """List the features to use and the sign of each; a feature of sign 0 is listed twice."""
    each = directions("signs", signs, n_features)
    up, down = np.flatnonzero(each >= 0), np.flatnonzero(each <= 0)
    features = np.concatenate((up, down))
    sign = np.repeat([1.0, -1.0], [len(up), len(down)])
    order = np.argsort(features, kind="stable")
    return features[order], sign[order]


def _informative(data: RankingData) -> tuple[RankingData, FloatArray]:
    """Return the informative queries and their weights."""
    weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
    queries = np.flatnonzero(data.informative & (weight > 0))
    if len(queries) == 0:
        raise NoLevelsError
    return data.queries[queries], weight[queries]


def _repeated(data: RankingData) -> RankingData:
    """Repeat documents by sample_weight: one of weight 2 is in the list twice."""
    if data.sample_weight is None:
        return data
    counts = data.sample_weight.astype(np.int64)
    if not np.array_equal(counts, data.sample_weight):
        raise InputError(
            "a measure takes each document a whole number of times: give whole sample_weight, or "
            "query_weight"
        )
    if (counts == 1).all():
        return data
    rows = np.repeat(np.arange(len(data)), counts)
    return data.with_fields(
        X=data.X[rows],
        y=data.y[rows],
        query_ptr=np.append(0, np.cumsum(counts))[data.query_ptr],
        doc_ids=None if data.doc_ids is None else data.doc_ids[rows],
        order=None,
        sample_weight=None,
    )
