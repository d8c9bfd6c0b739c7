"""Scaling features to comparable ranges, within each query or over the whole set.

Every normaliser is a scikit-learn transformer that takes ``qid``. A model file stores it as a small
dictionary: ``normalizer_from_dict`` rebuilds it from the result of ``to_dict``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from leanrank._mapped import empty_beside, is_mapped
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.grouping import group_rows
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling import column_moments, column_ranges
from leanrank.errors import InputError, check_choice
from leanrank.execution import make_executor, query_ranges, row_blocks


class Normalizer(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Base of all normalisers.

    X may be an array, a sparse matrix, a data frame or a RankingData. The result is an array or a
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
        """Learn the scales from the training data.

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
        self._learn(matrix)
        return self

    def transform(self, X: Any, qid: Any = None) -> Any:
        """Scale the documents.

        Parameters
        ----------
        X : array, sparse matrix, data frame or RankingData
            Documents with their features.
        qid : array-like, optional
            The query of each document, in any order; None: all are one query. A RankingData
            includes its queries.
        """
        check_is_fitted(self)
        matrix = self._checked(X, reset=False)
        if isinstance(X, RankingData):
            if qid is not None:
                raise InputError("a RankingData includes its queries: leave qid out")
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
        check_is_fitted(self)
        learned = {name: getattr(self, f"{name}_").tolist() for name in self._learned}
        return {"kind": self.kind, **learned}

    def _is_sound(self) -> bool:
        """Return whether the fitted attributes are possible."""
        return True

    def _learn(self, X: Matrix) -> None:
        """Set the fitted attributes."""

    def _scaled(self, X: Matrix, query_ptr: IntArray) -> Matrix:
        raise NotImplementedError

    def _checked(self, X: Any, *, reset: bool) -> Matrix:
        data = X if isinstance(X, RankingData) else None
        matrix = X if data is None else data.X
        if not self._takes_sparse and hasattr(matrix, "tocsr"):
            raise InputError(
                f"the {self.kind!r} normaliser would make a sparse X dense: do so first with "
                "X.toarray() or `storage='dense'`, or use 'standard'"
            )
        finite = "allow-nan" if self._takes_missing else True
        settings: dict[str, Any] = {"accept_sparse": "csr", "dtype": [np.float64, np.float32]}
        settings |= {"order": "C", "ensure_all_finite": finite}
        try:
            if data is None and (reset or hasattr(self, "n_features_in_")):
                return validate_data(self, X, reset=reset, **settings)
            matrix = check_array(matrix, estimator=self, **settings)
        except ValueError as error:
            if "contains NaN" not in str(error):
                raise
            raise InputError(
                f"X contains NaN, and {self.kind!r} cannot scale missing values: fill them in, or "
                "scale with 'standard' or 'minmax', which leave them NaN (curves need neither)"
            ) from error
        if reset and data is not None:
            self.n_features_in_ = data.n_features
            self.__dict__.pop("feature_names_in_", None)
            if data.feature_names is not None:
                self.feature_names_in_ = np.array(data.feature_names, dtype=object)
        elif matrix.shape[1] != getattr(self, "n_features_in_", matrix.shape[1]):
            raise InputError(
                f"the data have {matrix.shape[1]} features but {type(self).__name__} was fitted on "
                f"{self.n_features_in_}"
            )
        return matrix

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._takes_sparse
        tags.input_tags.allow_nan = self._takes_missing
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class _QueryNormalizer(Normalizer):
    """Base of normalisers that scale each query by its own documents and need no fit."""

    per_query = True
    _takes_missing = False

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def _scaled(self, X: Matrix, query_ptr: IntArray) -> Matrix:
        X = np.ascontiguousarray(X)
        out = empty_beside(X)
        ptr = query_ptr[np.diff(query_ptr, prepend=-1) > 0]  # without empty queries

        def scale(queries: tuple[int, int]) -> None:
            own = ptr[queries[0] : queries[1] + 1]
            rows = slice(own[0], own[-1])
            values = X[rows].astype(np.float64)
            out[rows] = self._scale_queries(values, own[:-1] - own[0], np.diff(own))

        make_executor(self.n_jobs).map(scale, query_ranges(ptr))
        return out

    @staticmethod
    def _scale_queries(X: FloatArray, starts: IntArray, sizes: IntArray) -> FloatArray:
        """Return the rows of some queries scaled; X may be overwritten."""
        raise NotImplementedError

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags


class QueryMinMaxScaler(_QueryNormalizer):
    """Scale every feature to [0, 1] within each query, as the LETOR sets are published.

    A feature becomes (x − min) / (max − min) over the documents of the query, and 0 where it is the
    same for all of them.

    X must be dense, since zeros do not stay zeros.

    Parameters
    ----------
    n_jobs : int, optional
        Number of threads.

    Examples
    --------
    >>> X = [[1.0, 5.0], [3.0, 5.0], [10.0, 0.0], [20.0, 1.0]]
    >>> QueryMinMaxScaler().fit_transform(X, qid=["a", "a", "b", "b"]).tolist()
    [[0.0, 0.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0]]
    """

    kind = "query-minmax"

    @staticmethod
    def _scale_queries(X: FloatArray, starts: IntArray, sizes: IntArray) -> FloatArray:
        low, high = (f.reduceat(X, starts, axis=0) for f in (np.minimum, np.maximum))
        span = np.where(high == low, np.inf, high - low)
        X -= np.repeat(low, sizes, axis=0)
        X /= np.repeat(span, sizes, axis=0)
        return X


class QueryStandardScaler(_QueryNormalizer):
    """Scale every feature to mean 0 and standard deviation 1 within each query.

    The deviation is over the documents of the query (divided by their number); a feature that is
    the same for all of them becomes 0. X must be dense, since zeros do not stay zeros.

    Parameters
    ----------
    n_jobs : int, optional
        Number of threads.

    Examples
    --------
    >>> QueryStandardScaler().fit_transform([[1.0], [3.0], [7.0]], qid=[1, 1, 2]).tolist()
    [[-1.0], [1.0], [0.0]]
    """

    kind = "query-standard"

    @staticmethod
    def _scale_queries(X: FloatArray, starts: IntArray, sizes: IntArray) -> FloatArray:
        low, high = (f.reduceat(X, starts, axis=0) for f in (np.minimum, np.maximum))
        mean = np.add.reduceat(X, starts, axis=0) / sizes[:, None]
        X -= np.repeat(mean, sizes, axis=0)
        deviation = np.sqrt(np.add.reduceat(X**2, starts, axis=0) / sizes[:, None])
        deviation[(deviation == 0) | (low == high)] = np.inf
        X /= np.repeat(deviation, sizes, axis=0)
        return X


class QueryRankScaler(_QueryNormalizer):
    """Replace every feature by its rank within the query, scaled to [0, 1].

    The smallest value becomes 0 and the largest 1; equal values share the mean of their ranks, so a
    feature that is the same for all documents of a query becomes 0.5. X must be dense.

    Parameters
    ----------
    n_jobs : int, optional
        Number of threads.

    Examples
    --------
    >>> QueryRankScaler().fit_transform([[7.0], [1.0], [900.0]]).tolist()
    [[0.5], [0.0], [1.0]]
    """

    kind = "query-rank"

    @staticmethod
    def _scale_queries(X: FloatArray, starts: IntArray, sizes: IntArray) -> FloatArray:
        from scipy.stats import rankdata

        for start, n_rows in zip(starts.tolist(), sizes.tolist(), strict=True):
            rows = X[start : start + n_rows]
            rows[:] = (rankdata(rows, axis=0) - 1) / (n_rows - 1) if n_rows > 1 else 0.5
        return X


class GlobalStandardScaler(Normalizer):
    """Scale every feature to mean 0 and standard deviation 1 over the training data.

    A feature that is the same in all documents keeps scale 1. A sparse X is scaled but not centred,
    so that it stays sparse: the mean counts as 0. That does not change rankings, which compare
    documents of one query. A sparse X becomes dense if the scaler was fitted on a dense one.

    Attributes
    ----------
    mean_, scale_ : array of float64
        A feature becomes (x − mean) / scale.

    Examples
    --------
    >>> scaler = GlobalStandardScaler().fit([[1.0], [3.0]])
    >>> scaler.transform([[5.0]]).tolist(), scaler.to_dict()
    ([[3.0]], {'kind': 'standard', 'mean': [2.0], 'scale': [1.0]})
    """

    kind = "standard"
    _learned = ("mean", "scale")
    _takes_sparse = True
    mean_: FloatArray
    scale_: FloatArray

    def _is_sound(self) -> bool:
        return bool((self.scale_ > 0).all())

    def _learn(self, X: Matrix) -> None:
        count, mean, variance = column_moments(lambda function: [function(X)])
        # constant up to rounding, as in scikit-learn
        error = count * np.finfo(float).eps
        constant = variance <= error * variance + (error * mean) ** 2
        self.mean_ = mean if isinstance(X, np.ndarray) else np.zeros(len(mean))
        self.scale_ = np.sqrt(np.where(constant, 1.0, variance))
        if not np.isfinite(self.scale_).all():
            feature = int(np.flatnonzero(~np.isfinite(self.scale_))[0]) + 1
            raise InputError(f"the values of feature f{feature} are too large to be standardised")

    def _scaled(self, X: Matrix, query_ptr: IntArray) -> Matrix:
        if isinstance(X, np.ndarray) or self.mean_.any():
            dense = X if isinstance(X, np.ndarray) else X.toarray()
            return _shift_and_divide(dense, self.mean_, self.scale_)
        values = empty_beside(X.data)
        for a, b in row_blocks(len(values), 1 << 20):
            values[a:b] = X.data[a:b] / self.scale_[X.indices[a:b]]
        scaled = type(X)((values, X.indices, X.indptr), shape=X.shape, copy=not is_mapped(X))
        scaled.has_canonical_format = X.has_canonical_format
        return scaled


class GlobalMinMaxScaler(Normalizer):
    """Scale every feature to [0, 1] over the training data.

    A feature becomes (x − min) / (max − min), and x − min if it is the same in all training
    documents. X must be dense.

    Attributes
    ----------
    min_, max_ : array of float64
        The least and the greatest value of each feature.

    Examples
    --------
    >>> scaler = GlobalMinMaxScaler().fit([[1.0], [3.0]])
    >>> scaler.transform([[2.0], [5.0]]).tolist(), scaler.to_dict()
    ([[0.5], [2.0]], {'kind': 'minmax', 'min': [1.0], 'max': [3.0]})
    """

    kind = "minmax"
    _learned = ("min", "max")
    min_: FloatArray
    max_: FloatArray

    def _is_sound(self) -> bool:
        return bool((self.min_ <= self.max_).all())

    def _learn(self, X: Matrix) -> None:
        self.min_, self.max_ = map(np.nan_to_num, column_ranges(X))

    def _scaled(self, X: Matrix, query_ptr: IntArray) -> Matrix:
        span = np.where(self.max_ > self.min_, self.max_ - self.min_, 1.0)
        return _shift_and_divide(X, self.min_, span)


def _shift_and_divide(X: AnyArray, shift: FloatArray, scale: FloatArray) -> AnyArray:
    """Compute (X − shift) / scale in float64 and store it in the type of X."""
    out = empty_beside(X)
    for a, b in row_blocks(X.shape[0]):
        out[a:b] = (X[a:b] - shift) / scale
    return out


def as_normalizer(step: Any) -> Any:
    """Return the normaliser that is equal to a fitted scaler of scikit-learn, or None.

    ``StandardScaler``, ``MaxAbsScaler`` and ``MinMaxScaler`` to [0, 1] are known; a normaliser is
    returned unchanged.
    """
    if isinstance(step, Normalizer):
        return step
    unit = isinstance(step, MinMaxScaler) and not step.clip and tuple(step.feature_range) == (0, 1)
    if not isinstance(step, (StandardScaler, MaxAbsScaler)) and not unit:
        return None
    check_is_fitted(step)
    if unit:
        ends = {"min": step.data_min_, "max": step.data_max_}
        return normalizer_from_dict({"kind": "minmax", **ends})
    mean = step.mean_ if getattr(step, "with_mean", False) else np.zeros(step.n_features_in_)
    scale = step.scale_ if getattr(step, "with_std", True) else np.ones(step.n_features_in_)
    return normalizer_from_dict({"kind": "standard", "mean": mean, "scale": scale})


_PER_QUERY = QueryMinMaxScaler, QueryStandardScaler, QueryRankScaler
NORMALIZERS: dict[str, type[Normalizer]] = {
    scaler.kind: scaler for scaler in (*_PER_QUERY, GlobalStandardScaler, GlobalMinMaxScaler)
}
"""The normalisers by their names in model files and on the command line."""


def make_normalizer(kind: str) -> Any:
    """Return a new normaliser of a kind.

    >>> make_normalizer("query-rank")
    QueryRankScaler()
    """
    check_choice("scale", kind, NORMALIZERS)
    return NORMALIZERS[kind]()


def normalizer_from_dict(spec: Mapping[str, Any]) -> Any:
    """Return the normaliser of a result of ``to_dict``; raise an InputError for anything else.

    >>> normalizer_from_dict({"kind": "minmax", "min": [0], "max": [4]}).transform([[3.0]]).tolist()
    [[0.75]]
    """
    if not isinstance(spec, Mapping) or "kind" not in spec:
        raise InputError("a normaliser must be an object with a 'kind'")
    fresh = make_normalizer(spec["kind"])
    names, sound = fresh._learned, set(spec) == {"kind", *fresh._learned}
    try:
        learned = np.array([spec[name] for name in names], dtype=np.float64)
        for name, values in zip(names, learned, strict=True):
            setattr(fresh, f"{name}_", values)
            fresh.n_features_in_ = len(values)
        shaped = not names or (learned.ndim == 2 and learned.size > 0)
        sound = sound and shaped and bool(np.isfinite(learned).all()) and fresh._is_sound()
    except (KeyError, TypeError, ValueError, OverflowError):
        sound = False
    if not sound:
        raise InputError(
            f"the {fresh.kind!r} normaliser needs {' and '.join(names) or 'no entry'} as lists of "
            "possible finite numbers: write the model again"
        )
    return fresh
