"""Documents without labels, for rankers that learn from them."""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank._typing import BoolArray
from leanrank.data.matrices import stacked
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError


def take_missing_labels(X: Any, y: Any) -> tuple[Any, Any, BoolArray | None]:
    """Replace labels that are NaN, so that the rest can be checked, and return which these were.

    Returns X, y and a mask in the order of the rows given, or None if every document has a label.
    """
    held = X if isinstance(X, RankingData) and y is None else None
    labels = held.y if held is not None else y
    try:
        missing = np.isnan(np.asarray(labels))
    except TypeError:  # not numbers: the usual checks report it
        return X, y, None
    if labels is None or missing.ndim != 1 or not missing.any():
        return X, y, None
    filled = np.where(missing, 0.0, labels)
    return (held.replace(y=filled), None, missing) if held is not None else (X, filled, missing)


def join_unlabeled(
    X: Any, y: Any, qid: Any, unlabeled: Any, options: dict[str, Any]
) -> tuple[RankingData, dict[str, Any]]:
    """Append documents without labels, as documents labelled NaN.

    Uses ``sample_weight`` of ``options`` and returns the others; what else is given per document
    or per query is rejected.
    """
    for name in ("group", "query_weight", "gain_weight", "offset"):
        if options.get(name) is not None:
            raise InputError(
                f"{name} cannot be given beside unlabeled: put the documents without labels into "
                "X, with the label NaN"
            )
    more, more_qid = _documents(unlabeled)
    weight, names = options.get("sample_weight"), getattr(X, "columns", None)
    if isinstance(X, RankingData):
        if y is not None or qid is not None or weight is not None:
            raise InputError("a RankingData brings its own y, qid and weights: leave them out")
        weight, names = X.sample_weight, X.feature_names
        X, y, qid = X.X, X.y, X.qid
    if qid is None or y is None:
        raise InputError("documents beside unlabeled need y and qid: give both")
    n_rows, n_more = _shape(X)[0], _shape(more)[0]
    if _shape(X)[1] != _shape(more)[1]:
        raise InputError(
            f"unlabeled has {_shape(more)[1]} features but X has {_shape(X)[1]}: they must match"
        )
    if len(more_qid) != n_more:
        raise InputError(
            f"unlabeled has {n_more} documents but {len(more_qid)} query identifiers: give one each"
        )
    if weight is not None:
        weight = np.concatenate((weight, np.ones(n_more)))
    labels = np.concatenate((np.asarray(y, dtype=np.float64), np.full(n_more, np.nan)))
    if len(labels) != n_rows + n_more:
        raise InputError(f"y has {len(labels) - n_more} labels but X has {n_rows} documents")
    queries = np.concatenate((np.asarray(qid), np.asarray(more_qid)))
    X = stacked([X, more])
    joined = RankingData(X, labels, queries, feature_names=names, sample_weight=weight)
    return joined, {k: v for k, v in options.items() if k != "sample_weight"}


def _documents(unlabeled: Any) -> tuple[Any, Any]:
    if isinstance(unlabeled, RankingData):
        return unlabeled.X, unlabeled.qid
    if isinstance(unlabeled, tuple) and len(unlabeled) == 2:
        return unlabeled
    raise InputError("unlabeled must be a RankingData or a tuple (X, qid)")


def _shape(X: Any) -> tuple[int, int]:
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if len(shape) != 2:
        raise InputError("documents must be a table: one row per document, one column per feature")
    return int(shape[0]), int(shape[1])
