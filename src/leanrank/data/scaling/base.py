"""What all normalisers have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.data.grouping import group_rows
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.arithmetic import Apply
from leanrank.errors import InputError


class Normalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """What all normalisers have in common.

    X may be an array, a sparse matrix, a data frame or a RankingData; the answer is an array or a
    sparse matrix in the order of X's rows, or a RankingData. float32 stays float32.
    """

    kind: ClassVar[str]
    per_query: ClassVar[bool] = False  # whether a document is scaled by those of its query
    _learned: ClassVar[tuple[str, ...]] = ()  # the fitted attributes, without the underscore
    _takes_sparse: ClassVar[bool] = False
    _takes_missing: ClassVar[bool] = True  # NaN stays NaN

    # scikit-learn passes qid on from a pipeline once metadata routing is enabled.
    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__transform: ClassVar[dict[str, bool]] = {"qid": True}

    def fit(self, X: Any, y: Any = None, qid: Any = None) -> Any:
        """Learn what is needed of the training data.

        Parameters
        ----------
        X : array, sparse matrix, data frame or RankingData
            Documents with their features.
        y : None
            Not used.
        qid : array-like, optional
            The query of each document; None: all are one query.
        """
        matrix = self._checked(X, reset=True)
        if qid is not None:
            group_rows(qid, matrix.shape[0])
        self._learn(lambda function, *more: [function(matrix, *more)])
        return self

    def fit_parts(self, apply: Apply, n_features: int, names: Sequence[str] | None = None) -> Any:
        """Learn from a matrix in several parts, which have been checked.

        Parameters
        ----------
        apply : callable
            ``apply(function, *more)`` returns ``function(X, *more)`` of each part's X.
        n_features : int
        names : sequence of str, optional
            Of the features.
        """
        self._take_names(n_features, names)
        self._learn(apply)
        return self

    def transform(self, X: Any, qid: Any = None) -> Any:
        """Scale the documents.

        Parameters
        ----------
        X : array, sparse matrix, data frame or RankingData
            Documents with their features.
        qid : array-like, optional
            The query of each document, in any order; None: all are one query. A RankingData brings
            its own.
        """
        self._check_fitted()
        matrix = self._checked(X, reset=False)
        if isinstance(X, RankingData):
            if qid is not None:
                raise InputError("qid was given beside a RankingData, which has its own queries")
            return X.with_fields(X=self._scaled(matrix, X.query_ptr))
        grouping = group_rows(qid, matrix.shape[0])
        scaled = self._scaled(grouping.take(matrix), grouping.query_ptr)
        if grouping.order is None:
            return scaled
        if isinstance(scaled, np.ndarray):
            return grouping.restore(scaled)
        return scaled[np.argsort(grouping.order)]

    def fit_transform(self, X: Any, y: Any = None, qid: Any = None) -> Any:
        """Fit and transform; see ``fit`` and ``transform``."""
        return self.fit(X, y, qid=qid).transform(X, qid=qid)

    def to_dict(self) -> dict[str, Any]:
        """Return the normaliser as data, from which ``normalizer_from_dict`` rebuilds it."""
        self._check_fitted()
        learned = {name: getattr(self, f"{name}_").tolist() for name in self._learned}
        return {"kind": self.kind, **learned}

    @classmethod
    def from_fields(cls, fields: Mapping[str, Any]) -> Any:
        """Rebuild a normaliser from what ``to_dict`` gave beside its kind."""
        _expect_keys(cls.kind, fields, cls._learned)
        self = cls()
        given = {name: fields[name] for name in cls._learned}
        for name, values in _number_lists(cls.kind, given).items():
            setattr(self, f"{name}_", values)
            self.n_features_in_ = len(values)
        self._check_learned()
        return self

    def _check_learned(self) -> None:
        """Reject fitted attributes that no data could give."""

    def _learn(self, apply: Apply) -> None:
        """Set the fitted attributes."""

    def _scaled(self, X: Matrix, query_ptr: IntArray) -> Matrix:
        raise NotImplementedError

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def _checked(self, X: Any, *, reset: bool) -> Matrix:
        if not self._takes_sparse:
            _refuse_sparse(X.X if isinstance(X, RankingData) else X, self.kind)
        settings = {
            "accept_sparse": "csr",
            "dtype": [np.float64, np.float32],
            "order": "C",
            "ensure_all_finite": "allow-nan" if self._takes_missing else True,
        }
        try:
            return self._validated(X, reset, settings)
        except ValueError as error:
            if "contains NaN" not in str(error):
                raise
            raise InputError(
                f"X contains NaN, and {self.kind!r} cannot scale missing values: fill them in, or "
                "scale with 'standard' or 'minmax', which keep them (curves need neither)"
            ) from error

    def _validated(self, X: Any, reset: bool, settings: dict[str, Any]) -> Matrix:
        if not isinstance(X, RankingData) and (reset or hasattr(self, "n_features_in_")):
            return validate_data(self, X, reset=reset, **settings)
        matrix = check_array(X.X if isinstance(X, RankingData) else X, estimator=self, **settings)
        if reset:
            self._take_names(X.n_features, X.feature_names)
        elif matrix.shape[1] != getattr(self, "n_features_in_", matrix.shape[1]):
            raise InputError(
                f"the data have {matrix.shape[1]} features but {type(self).__name__} was fitted on "
                f"{self.n_features_in_}"
            )
        return matrix

    def _take_names(self, n_features: int, names: Sequence[str] | None) -> None:
        self.n_features_in_ = n_features
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.input_tags.allow_nan = self._takes_missing
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _expect_keys(kind: str, fields: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for name in names:
        if name not in fields:
            raise InputError(f"the {kind!r} normaliser lacks {name!r}")
    extra = sorted(map(str, set(fields) - set(names)))
    if extra:
        raise InputError(f"the {kind!r} normaliser has an unknown entry {extra[0]!r}")


def _number_lists(kind: str, fields: Mapping[str, Any]) -> dict[str, FloatArray]:
    arrays = {}
    for name, values in fields.items():
        if not isinstance(values, list) or not all(type(v) in (int, float) for v in values):
            raise InputError(f"{name!r} of the {kind!r} normaliser must be a list of numbers")
        try:
            array = np.array(values, dtype=np.float64)
        except OverflowError:
            array = np.array([np.inf])
        if not np.isfinite(array).all():
            raise InputError(
                f"{name!r} of the {kind!r} normaliser holds a value that is not finite"
            )
        arrays[name] = array
    lengths = {len(array) for array in arrays.values()}
    if len(lengths) > 1 or 0 in lengths:
        raise InputError(
            f"{' and '.join(fields)} of the {kind!r} normaliser differ in length or are empty"
        )
    return arrays


def _refuse_sparse(X: Any, kind: str) -> None:
    if hasattr(X, "tocsr"):
        raise InputError(
            f"the {kind!r} normaliser would fill a sparse X with values: make it dense with "
            "X.toarray() first, or use 'query-minmax'"
        )
