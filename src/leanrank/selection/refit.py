"""Fitting a chosen model's features anew to all there is: training and validation part together."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from leanrank.data.ranking_data import RankingData
from leanrank.model import LinearModel, make_provenance
from leanrank.model.base import Model
from leanrank.registry import Space
from leanrank.selection.candidate import Candidate
from leanrank.selection.trials import Task, some_columns
from leanrank.selection.validation import make_ranker


def fit_support(task: Task, chosen: Candidate) -> Model:
    """Fit a candidate's ranker, with its parameters and features, to both parts of the data.

    Only its features are offered, so that no limit is exceeded. If nothing comes of it, or the
    model is not linear, the model remains as it is.
    """
    if not isinstance(chosen.model, LinearModel) or task.validation is None:
        return chosen.model
    columns = chosen.model.indices
    both = stacked(task.training, task.validation)
    algorithm, parameters = chosen.algorithm, dict(chosen.parameters)
    if "n_features_to_select" in parameters:  # the features are selected: what remains is a ridge
        algorithm = "rankrls"
        parameters = {k: v for k, v in parameters.items() if k in ("alpha", "normalize")}
    ranker = make_ranker(Space(algorithm), parameters, task.split)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        weights = ranker.fit(some_columns(both, columns)).coef_
    inside = np.flatnonzero(weights)
    if len(inside) == 0 or not np.isfinite(weights).all():
        return chosen.model
    return LinearModel(
        n_features=both.n_features,
        indices=columns[inside],
        values=weights[inside],
        feature_names=task.training.feature_names,
        provenance=make_provenance(algorithm=type(ranker).__name__, parameters=parameters),
    )


def stacked(first: RankingData, second: RankingData) -> RankingData:
    """Put the queries of one data set after those of another; equal identifiers stay apart.

    >>> one = RankingData([[1.0], [2.0]], [0, 1], qid=["a", "a"])
    >>> stacked(one, one).n_queries
    2
    """
    if first.is_sparse or second.is_sparse:
        from scipy import sparse

        X: Any = sparse.vstack([sparse.csr_array(part.X) for part in (first, second)], "csr")
    else:
        X = np.concatenate([first.X, second.X])

    def joined(name: str, size: Any) -> Any:
        parts = [getattr(part, name) for part in (first, second)]
        if all(part is None for part in parts):
            return None
        empty = 0.0 if name == "offset" else 1.0
        return np.concatenate(
            [
                np.full(size(data), empty) if part is None else part
                for data, part in zip((first, second), parts, strict=True)
            ]
        )

    return RankingData(
        X,
        np.concatenate([first.y, second.y]),
        group=np.concatenate([np.diff(first.query_ptr), np.diff(second.query_ptr)]),
        feature_names=first.feature_names,
        sample_weight=joined("sample_weight", len),
        query_weight=joined("query_weight", lambda data: data.n_queries),
        offset=joined("offset", len),
    )
