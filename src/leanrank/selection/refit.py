"""Refitting a chosen model's features to the training and validation parts together."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from leanrank.data.ranking_data import RankingData
from leanrank.model import Model, make_provenance
from leanrank.registry import Space
from leanrank.selection.candidate import Candidate
from leanrank.selection.trials import Task, placed, some_columns
from leanrank.selection.validation import make_ranker


def fit_support(task: Task, chosen: Candidate) -> Model:
    """Fit a candidate's ranker, with its parameters and features, to both parts of the data.

    Only its features are offered, so that no limit is exceeded. A boosted model, or one whose fit
    fails, is returned unchanged.
    """
    boosted = not chosen.model.is_linear and chosen.parameters.get("curves") is None
    if boosted or task.validation is None:
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
        model = ranker.fit(some_columns(both, columns)).to_model()
    if model.n_nonzero == 0:
        return chosen.model
    provenance = make_provenance(algorithm=type(ranker).__name__, parameters=parameters)
    return placed(model, columns, both, provenance)


def stacked(*parts: RankingData) -> RankingData:
    """Put the queries of data sets one after the other; equal identifiers stay apart.

    >>> one = RankingData([[1.0], [2.0]], [0, 1], qid=["a", "a"])
    >>> stacked(one, one).n_queries
    2
    """
    if any(part.is_sparse for part in parts):
        from scipy import sparse

        X: Any = sparse.vstack([sparse.csr_array(part.X) for part in parts], "csr")
    else:
        X = np.concatenate([part.X for part in parts])

    def joined(name: str, size: Any) -> Any:
        each = [getattr(part, name) for part in parts]
        if all(values is None for values in each):
            return None
        empty = 0.0 if name == "offset" else 1.0
        filled = zip(parts, each, strict=True)
        return np.concatenate([np.full(size(p), empty) if v is None else v for p, v in filled])

    return RankingData(
        X,
        np.concatenate([part.y for part in parts]),
        group=np.concatenate([np.diff(part.query_ptr) for part in parts]),
        feature_names=parts[0].feature_names,
        sample_weight=joined("sample_weight", len),
        query_weight=joined("query_weight", lambda data: data.n_queries),
        offset=joined("offset", len),
    )
