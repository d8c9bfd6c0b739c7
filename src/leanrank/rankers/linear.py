"""What linear rankers share: one weight per feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.losses.base import Labels
from leanrank.model.scoring import weighted_sums
from leanrank.rankers.base import BaseRanker

if TYPE_CHECKING:
    from leanrank.model import Model


class BaseLinearRanker(BaseRanker):
    """A ranker whose score is a weighted sum of the features.

    A subclass implements ``_fit(data, labels)``, which returns the weights and may set further
    fitted attributes; or ``_learn``, if it uses validation data.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    """

    coef_: FloatArray

    def _learn(self, data: RankingData, labels: Labels, held_out: RankingData | None) -> None:
        del held_out
        self.coef_ = self._fit(data, labels)

    def _fit(self, data: RankingData, labels: Labels) -> FloatArray:
        """Return the weights for validated data."""
        raise AssertionError(f"{type(self).__name__} must define _fit")

    def predict(self, X: Any) -> FloatArray:
        """Score documents, in the order given; a higher score ranks first.

        Only the columns of non-zero weights are read.
        """
        check_is_fitted(self, "coef_")
        data = self.checked_features(X)
        support = np.flatnonzero(self.coef_)
        if len(support) == data.shape[1]:
            return weighted_sums(data, self.coef_)
        return weighted_sums(data, self.coef_[support], support)

    @property
    def sparsity_(self) -> float:
        """Share of the features that the model uses, ‖w‖₀ / n."""
        check_is_fitted(self, "coef_")
        return float(np.count_nonzero(self.coef_)) / max(1, len(self.coef_))

    def to_model(self, *, provenance: Mapping[str, Any] | None = None) -> Model:
        """Return the fitted weights as a plain model, which can be saved, sent and exported."""
        from leanrank.model import Model

        check_is_fitted(self, "coef_")
        support = np.flatnonzero(self.coef_)
        return Model.linear(
            n_features=self.n_features_in_,
            feature_names=self._names(),
            indices=support,
            values=self.coef_[support],
            provenance={**self._provenance(), **(provenance or {})},
        )
