"""What linear rankers share: one weight, or one curve, per feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leanrank._typing import FloatArray
from leanrank.data.dask.collections import is_dask
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.losses.base import Labels
from leanrank.model.scoring import weighted_sums
from leanrank.rankers.base import BaseRanker
from leanrank.rankers.cluster import lazy_predict
from leanrank.rankers.curves import weights_model

if TYPE_CHECKING:
    from leanrank.designs.ramp_columns import RampColumns
    from leanrank.model import Curve, Model


class BaseLinearRanker(BaseRanker):
    """A ranker whose score is a weighted sum of the features, or of their ramps.

    A subclass implements ``_fit(data, labels)``, which returns the weights and may set further
    fitted attributes; or ``_learn``, if it uses validation data.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    """

    coef_: FloatArray
    ramps_: RampColumns | None = None  # with curves, what ``coef_`` weighs

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        del held_out
        self.coef_ = self._fit(data, labels)

    def _fit(self, data: RankingData, labels: Labels) -> FloatArray:
        """Return the weights for validated data."""
        raise AssertionError(f"{type(self).__name__} must define _fit")

    def predict(self, X: Any) -> FloatArray:
        """Score documents, in the order given; a higher score ranks first.

        Only the columns of non-zero weights are read. The scores of a Dask collection are one,
        computed when they are asked for.
        """
        check_is_fitted(self, "coef_")
        if is_dask(X):
            return lazy_predict(self, X)
        data = self.checked_features(X)
        if self.ramps_ is not None:
            model = weights_model(self.coef_, self.ramps_, feature_names=self._names())
            return model.predict(data)
        support = np.flatnonzero(self.coef_)
        if len(support) == data.shape[1]:
            return weighted_sums(data, self.coef_)
        return weighted_sums(data, self.coef_[support], support)

    @property
    def sparsity_(self) -> float:
        """Share of the features that the model uses, ‖w‖₀ / n."""
        return self.n_features_ / max(1, self.n_features_in_)

    @property
    def n_features_(self) -> int:
        """How many features the model uses."""
        check_is_fitted(self, "coef_")
        used = self.coef_.nonzero()[0] if self.ramps_ is None else self.ramps_.used(self.coef_)
        return len(used)

    @property
    def curves_(self) -> dict[str, Curve]:
        """What each feature in use adds to a score, by its name."""
        model = self.to_model()
        return {feature_name(at, self._names()): curve for at, curve in model.curves.items()}

    def to_model(self, *, provenance: Mapping[str, Any] | None = None) -> Model:
        """Return the fitted weights as a plain model, which can be saved, sent and exported."""
        check_is_fitted(self, "coef_")
        return weights_model(
            self.coef_,
            self.ramps_,
            feature_names=self._names(),
            provenance={**self._provenance(), **(provenance or {})},
        )
