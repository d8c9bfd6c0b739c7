"""Fitting and predicting on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from leanrank._typing import IntArray
from leanrank.data.dask import is_lazy, read_partitions
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.spread import Spread, wide_spread_of_parts
from leanrank.errors import InputError
from leanrank.problem.dask_shards import DaskShards
from leanrank.problem.shard import Shard
from leanrank.rankers import inputs
from leanrank.rankers.parameters import check_parameters

PER_DOCUMENT = ("sample_weight", "offset", "gain_weight")


@dataclass(frozen=True)
class ClusterData:
    """The properties of documents on a cluster that a ranker needs.

    Attributes
    ----------
    X : DaskShards
    feature_names : tuple of str or None
    n_queries : int
    informative : array of int
        In each part, how many queries have documents at two levels or more.
    how : str
        What was done about queries across partitions.
    """

    X: DaskShards
    feature_names: tuple[str, ...] | None
    n_queries: int
    informative: IntArray
    how: str

    @property
    def n_features(self) -> int:
        """How many features a document has."""
        return self.X.n_features

    def __len__(self) -> int:
        return self.X.n_rows

    def spread(self) -> Spread | None:
        """Return the widest and the narrowest feature, if they differ very much."""
        return wide_spread_of_parts(self._apply, len(self), self.feature_names)

    def _apply(self, function: Callable[[Any], Any]) -> list[Any]:
        return [each for each in self.X.map(_of_features, function) if each is not None]


def _of_features(part: Shard, function: Callable[[Any], Any]) -> Any:
    return function(part.data.X) if len(part.data) else None


def data_on_cluster(
    ranker: Any,
    X: Any,
    y: Any = None,
    qid: Any = None,
    *,
    preferences: Any = None,
    **given: Any,
) -> ClusterData:
    """Read a collection for one or more fits of a ranker; the labels stay with the documents."""
    check_parameters(ranker)
    name = type(ranker).__name__
    if isinstance(X, ClusterData):
        inputs.take_names(ranker, X)
        return X
    if not ranker._fits_on_cluster:
        raise InputError(f"{name} needs all documents in memory: give X.compute()")
    if preferences is not None or given.get("group") is not None:
        what = "preferences" if preferences is not None else "group"
        raise InputError(f"{name} takes no {what} on Dask, where rows have no numbers: give y, qid")
    partitions = read_partitions(
        X,
        {"y": y, "qid": qid, **{name: given.get(name) for name in PER_DOCUMENT}},
        query_weight=given.get("query_weight"),
        check=partial(_check, name, ranker._takes_nan),
    )
    data = ClusterData(
        DaskShards(partitions),
        partitions.facts[0].names,
        sum(len(facts.query_ids) for facts in partitions.facts),
        np.array([facts.n_informative for facts in partitions.facts]),
        partitions.how,
    )
    inputs.take_names(ranker, data)
    if not ranker._takes_nan:
        inputs.warn_of_units(data, slow=ranker._slow_unscaled)
    return data


def _check(name: str, allow_nan: bool, data: RankingData) -> None:
    """Reject a partition that a ranker cannot learn from."""
    inputs.check_finite(data.X, data.n_features, data.feature_names, allow_nan=allow_nan)
    inputs.check_labels(data, name)


def fit_partitions(ranker: Any, X: Any, y: Any, qid: Any, **given: Any) -> Any:
    """Learn from the partitions of a collection one after the other, as from a stream."""
    from leanrank.rankers.streaming import fit_stream

    name = type(ranker).__name__
    for what, value in given.items():
        if value is not None and what not in ("sample_weight", "validation"):
            raise InputError(f"{name} takes no {what} from a stream of partitions: leave it out")
    columns = {"y": y, "qid": qid, "sample_weight": given["sample_weight"]}
    partitions = read_partitions(X, columns, check=partial(_check, name, False))
    stream = _Stream(partitions.client, partitions.rows)
    epochs = getattr(ranker, "epochs", 1)
    return fit_stream(ranker, stream, epochs=epochs, validation=given["validation"])


class _Stream:
    """Partitions in order, fetched one at a time."""

    def __init__(self, client: Any, rows: list[Any]) -> None:
        self.client = client
        self.rows = rows

    def __iter__(self) -> Iterator[RankingData]:
        for rows in self.rows:
            yield self.client.gather(rows, asynchronous=False).data


def lazy_predict(ranker: Any, X: Any) -> Any:
    """Return the scores of a collection as a lazy collection."""
    listed = is_lazy(X) or isinstance(X, (list, tuple))
    if not listed and getattr(X, "ndim", 2) == 1:
        raise InputError("X has one dimension: give documents × features, such as X[:, None]")
    if not listed and not np.isnan(X.shape[1]):
        inputs.check_width(ranker, X.shape[1])
    twin = copy(ranker)
    for name in ("history_", "state_", "callback"):
        if hasattr(twin, name):
            setattr(twin, name, None)
    if listed:
        from dask import delayed

        one = delayed(_scores)
        return one(X, twin) if is_lazy(X) else [one(each, twin) for each in X]
    if hasattr(X, "map_partitions"):
        return X.map_partitions(_scores, twin, meta=("score", np.float64))
    if X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return X.map_blocks(_scores, twin, drop_axis=1, dtype=np.float64)


def _scores(X: Any, ranker: Any) -> Any:
    scores = ranker.predict(X) if X.shape[0] else np.zeros(0)
    if not hasattr(X, "index"):
        return scores
    import pandas

    return pandas.Series(scores, index=X.index, name="score")
