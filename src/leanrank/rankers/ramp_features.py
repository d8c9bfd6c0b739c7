"""Ramps as features of their own, for learners that see one chunk or one list at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from leanrank._typing import FloatArray, Matrix
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.designs.ramps import ramp_design
from leanrank.errors import InputError
from leanrank.execution import SerialExecutor
from leanrank.model import Model
from leanrank.rankers.curves import find_ramps


class RampFeatures(TransformerMixin, BaseEstimator):
    """Ramps of features with knots that stay where they are, as columns for any linear learner.

    A ranker with ``curves=`` finds its knots in all of its data and never stores the ramps. A
    learner of a stream or of clicks cannot see all data first: fit the knots on some documents,
    give the learner what ``transform`` returns, and turn its weights into curves with ``to_model``.

    Parameters
    ----------
    curves : int, "auto" or dict, default="auto"
        Segments per feature, or knots of some, as for the rankers.

    Attributes
    ----------
    ramps_ : RampColumns
        The knots. A feature that had missing values when they were found has a column for them;
        a missing value of another counts as its smallest.

    Examples
    --------
    >>> from leanrank import MinBatSRank, RampFeatures
    >>> from leanrank.data import stream_ranking
    >>> chunks = list(stream_ranking(200, n_features=5))
    >>> ramps = RampFeatures(4).fit(chunks[0])
    >>> learner = MinBatSRank(alpha=0.1).fit_stream([ramps.transform(chunk) for chunk in chunks])
    >>> model, some = ramps.to_model(learner.to_model()), chunks[0]
    >>> model.n_features
    5
    >>> bool(np.allclose(model.predict(some), learner.predict(ramps.transform(some))))
    True
    """

    def __init__(self, curves: int | str | Mapping[Any, Any] = "auto") -> None:
        self.curves = curves

    def fit(self, X: Any, y: Any = None) -> RampFeatures:
        """Find the knots in some documents: a RankingData, an array or a sparse matrix."""
        del y
        values = _matrix(X)
        self.feature_names_ = X.feature_names if isinstance(X, RankingData) else None
        found = find_ramps(self.curves, self.feature_names_, values, values.shape[0])
        self.ramps_ = ramp_design(values, found, SerialExecutor()).ramps
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns of all ramps: a RankingData for a RankingData, else an array."""
        check_is_fitted(self, "ramps_")
        values, ramps = _matrix(X), self.ramps_
        if values.shape[1] != len(ramps.knots):
            raise InputError(
                f"X has {values.shape[1]} features but the knots are for {len(ramps.knots)}: give "
                "the same columns"
            )
        design = ramp_design(values, ramps, SerialExecutor())
        own = design.ramps  # with columns for gaps that are new
        kept = np.flatnonzero(~(own.is_gap & ~ramps.gap[own.feature]))
        columns: FloatArray = design.take(kept).dense((0, values.shape[0]))
        if not isinstance(X, RankingData):
            return columns
        names = [
            f"{feature_name(int(feature), self.feature_names_)} [{at - ramps.starts[feature]}]"
            for at, feature in enumerate(ramps.feature)
        ]
        return X.replace(X=columns, feature_names=names)

    def to_model(self, model: Model) -> Model:
        """Return a linear model of the ramps as a model of the features, with a curve for each."""
        check_is_fitted(self, "ramps_")
        if model.normalizer is not None or model.n_features != self.ramps_.n_columns:
            raise InputError(
                "the model was not learned from these ramps as they are: give it what transform "
                "returns, without scaling"
            )
        return Model(
            len(self.ramps_.knots),
            self.ramps_.curves(model.coef),
            self.feature_names_,
            provenance=model.provenance,
        )


def _matrix(X: Any) -> Matrix:
    values = X.X if isinstance(X, RankingData) else X
    if hasattr(values, "tocsr"):
        return values
    values = np.asarray(values)
    if values.ndim != 2 or values.dtype.kind not in "fiub":
        raise InputError("X must be a matrix of numbers, one row per document")
    return values if values.dtype.kind == "f" else values.astype(np.float64)
