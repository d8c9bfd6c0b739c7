"""Fitting and predicting on a Dask cluster: what rankers make of collections."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from leanrank._typing import IntArray
from leanrank.data.partitions import read_partitions
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.problem.cluster import ClusterParts
from leanrank.rankers.constraints import check_parameters
from leanrank.rankers.inputs import check_finite


@dataclass(frozen=True)
class ClusterData:
    """Documents on a cluster, as far as a ranker needs to know them.

    Attributes
    ----------
    X : ClusterParts
    feature_names : tuple of str or None
    n_queries : int
    informative : array of int
        In each part, how many queries have documents at two levels or more.
    how : str
        What was done about queries across partitions.
    """

    X: ClusterParts
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


def cluster_data(
    ranker: Any, X: Any, y: Any, qid: Any, *, preferences: Any, gain_weight: Any, **given: Any
) -> tuple[ClusterData, Labels]:
    """Check what ``fit`` was given on Dask; the labels stay with the documents."""
    check_parameters(ranker, ranker._parameters)
    name = type(ranker).__name__
    if not ranker.fits_on_cluster:
        raise InputError(
            f"{name} needs all documents in memory: give X.compute() if they fit, or fit one of "
            "the rankers that `leanrank systems` marks with 'cluster'"
        )
    if preferences is not None or given.get("group") is not None:
        what = "preferences" if preferences is not None else "group"
        raise InputError(f"{name} takes no {what} on Dask, where rows have no numbers: give y, qid")
    columns = {name: given.get(name) for name in ("sample_weight", "offset")}
    columns = {"y": y, "qid": qid, "gain_weight": gain_weight, **columns}
    partitions = read_partitions(
        X,
        columns,
        query_weight=given.get("query_weight"),
        check=partial(_check, name, ranker._takes_nan),
    )
    data = ClusterData(
        ClusterParts(partitions),
        partitions.facts[0].names,
        sum(facts.n_queries for facts in partitions.facts),
        np.array([facts.n_informative for facts in partitions.facts]),
        partitions.how,
    )
    ranker._take_names(data)
    normalize = getattr(ranker, "normalize", "query")
    return data, Labels(np.zeros(0), np.zeros(1, np.int64), normalize=normalize)


def _check(name: str, allow_nan: bool, data: RankingData) -> None:
    """Reject a partition that a ranker cannot learn from."""
    check_finite(data.X, data.n_features, data.feature_names, allow_nan=allow_nan)
    missing = np.isnan(data.y)
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        row = row if data.order is None else int(data.order[row])
        raise InputError(
            f"the label of document {row} is missing (NaN): {name} needs a label for every "
            "training document"
        )


def relabelling(ranker: Any) -> Callable[[Labels], Labels]:
    """Return what makes a ranker's labels of given ones, fit to travel."""
    return clone(ranker).set_params(callback=None)._with_margins
