"""A fitted linear ranker, reduced to what is needed to score documents with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.data.ranking_data import feature_name
from leanrank.errors import ModelError
from leanrank.model.base import Model
from leanrank.model.fields import Field
from leanrank.model.parts import read_weights
from leanrank.model.scoring import weighted_sums


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel(Model):
    """Weights of features, with what is needed to apply them: immutable, small, plain data.

    Usually made by an estimator's ``to_model()`` or by :func:`leanrank.load_model`; by hand with
    :meth:`from_coef`.

    Parameters
    ----------
    n_features : int
        How many features a document has.
    indices : array of int64
        The features with a weight, ascending, zero-based.
    values : array of float64
        Their weights; finite and not zero.
    feature_names : tuple of str, optional
        One distinct name per feature. With names on both sides, data are aligned by name.
    normalizer : dict, optional
        What a normaliser of :mod:`leanrank.data.normalize` gives as ``to_dict()``; it is applied to
        the features before the weights.
    provenance : dict, optional
        How the model was made; see :func:`leanrank.model.make_provenance`.

    Examples
    --------
    >>> model = LinearModel.from_coef([0.5, 0.0, -2.0], feature_names=["bm25", "length", "spam"])
    >>> model
    LinearModel: 2 of 3 features
      spam  -2
      bm25   0.5
    >>> model.predict([[1.0, 7.0, 0.0], [4.0, 7.0, 1.0]]).tolist()
    [0.5, 0.0]
    >>> model.rank([[1.0, 7.0, 0.0], [4.0, 7.0, 1.0]]).tolist()
    [1, 2]
    >>> model.to_dict()["weights"]
    [{'feature': 'bm25', 'value': 0.5}, {'feature': 'spam', 'value': -2.0}]
    """

    n_features: int
    indices: IntArray
    values: FloatArray
    feature_names: tuple[str, ...] | None = None
    normalizer: Mapping[str, Any] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    kind: ClassVar[str] = "linear"
    own_keys: ClassVar[tuple[str, ...]] = ("weights",)

    def __post_init__(self) -> None:
        indices, values = _checked_weights(self.indices, self.values, self.n_features)
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "values", values)
        self._check_shared()

    @classmethod
    def from_coef(
        cls,
        coef: Any,
        *,
        feature_names: Sequence[str] | None = None,
        normalizer: Mapping[str, Any] | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> LinearModel:
        """Make a model from one weight per feature; zeros are left out.

        >>> LinearModel.from_coef([0.0, 1.5]).weights
        {'f2': 1.5}
        """
        dense = np.asarray(coef, dtype=np.float64)
        if dense.ndim != 1:
            raise ModelError(f"coef has {dense.ndim} dimensions: give one weight per feature")
        indices = np.flatnonzero(dense)
        return cls(
            n_features=len(dense),
            indices=indices,
            values=dense[indices],
            feature_names=None if feature_names is None else tuple(map(str, feature_names)),
            normalizer=normalizer,
            provenance={} if provenance is None else provenance,
        )

    @property
    def coef(self) -> FloatArray:
        """One weight per feature, zeros included."""
        dense = np.zeros(self.n_features)
        dense[self.indices] = self.values
        return dense

    @property
    def weights(self) -> dict[str, float]:
        """The weights by feature name, largest magnitude first."""
        return self._by_weight(self.values)

    def _scores(self, matrix: Matrix, columns: IntArray | None) -> FloatArray:
        return weighted_sums(matrix, self.values, columns)

    def _contributions(self, matrix: Matrix, columns: IntArray | None) -> FloatArray:
        used = matrix if columns is None else matrix[:, columns]
        dense = used if isinstance(used, np.ndarray) else used.toarray()
        parts: FloatArray = dense.astype(np.float64) * self.values
        return parts

    def _own_parts(self) -> dict[str, Any]:
        names = self.feature_names
        return {
            "weights": [
                {"feature": at if names is None else names[at], "value": value}
                for at, value in zip(self.indices.tolist(), self.values.tolist(), strict=True)
            ]
        }

    @classmethod
    def _read_own(
        cls, root: Field, n_features: int, names: tuple[str, ...] | None
    ) -> dict[str, Any]:
        indices, values = read_weights(root["weights"], n_features, names)
        return {"indices": indices, "values": values}


def _checked_weights(indices: Any, values: Any, n_features: int) -> tuple[IntArray, FloatArray]:
    at = np.array(indices, dtype=np.int64)
    weight = np.array(values, dtype=np.float64)
    if at.ndim != 1 or at.shape != weight.shape:
        raise ModelError(f"{at.shape} indices and {weight.shape} values do not belong together")
    if len(at) and (at[0] < 0 or at[-1] >= n_features or (np.diff(at) <= 0).any()):
        raise ModelError(f"indices must ascend without repeats from 0 to at most {n_features - 1}")
    if not np.isfinite(weight).all():
        bad = int(at[np.flatnonzero(~np.isfinite(weight))[0]])
        name = feature_name(bad)
        raise ModelError(f"the weight of feature {name} is not finite: the model cannot be used")
    if (weight == 0).any():
        raise ModelError("a weight is zero: only features with a weight belong in a model")
    at.flags.writeable = False
    weight.flags.writeable = False
    return at, weight
