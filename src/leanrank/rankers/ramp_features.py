"""Ramps as features of their own, for learners that see one chunk or one list at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.designs.ramps import ramp_design
from leanrank.errors import InputError
from leanrank.execution import SerialExecutor
from leanrank.model import Model
from leanrank.rankers.curves import find_ramps
from leanrank.rankers.inputs import NamedFeatures


class RampFeatures(NamedFeatures, TransformerMixin, BaseEstimator):
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
        a missing value of another counts as its smallest. If no feature had any, missing values
        are refused.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only when X had column names that are all strings.

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

    takes_nan: ClassVar[bool] = True

    def __init__(self, curves: int | str | Mapping[Any, Any] = "auto") -> None:
        self.curves = curves

    def fit(self, X: Any, y: Any = None) -> RampFeatures:
        """Find the knots in some documents: whatever a ranker takes for X."""
        del y
        values = self.checked_features(X, reset=True)
        found = find_ramps(self.curves, self._names(), values, values.shape[0])
        self.ramps_ = ramp_design(values, found, SerialExecutor()).ramps
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns of all ramps: a RankingData for a RankingData, else an array."""
        check_is_fitted(self, "ramps_")
        values, ramps = self.checked_features(X), self.ramps_
        design = ramp_design(values, ramps, SerialExecutor())
        own = design.ramps  # with columns for gaps that are new
        if own.gap.any() and not ramps.gap.any():
            missing = feature_name(int(np.flatnonzero(own.gap)[0]), self._names())
            raise InputError(
                f"X contains NaN in feature {missing!r}, but the documents of fit had no missing "
                "values: fill them in, or fit the knots on documents that have some"
            )
        kept = np.flatnonzero(~(own.is_gap & ~ramps.gap[own.feature]))
        columns: FloatArray = design.take(kept).dense((0, values.shape[0]))
        if not isinstance(X, RankingData):
            return columns
        names = self._names()
        of_columns = [
            f"{feature_name(int(feature), names)} [{at - ramps.starts[feature]}]"
            for at, feature in enumerate(ramps.feature)
        ]
        return X.replace(X=columns, feature_names=of_columns)

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
            self._names(),
            provenance=model.provenance,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
