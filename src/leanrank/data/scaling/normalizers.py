"""Scaling features to comparable ranges, within each query or over the whole set.

Every normaliser is a scikit-learn transformer that takes ``qid``, and travels with a model as a
small dictionary: ``normalizer_from_dict`` gives back what ``to_dict`` wrote.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.preprocessing import MaxAbsScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.data.scaling import arithmetic
from leanrank.data.scaling.arithmetic import Apply
from leanrank.data.scaling.base import Normalizer
from leanrank.errors import InputError


class _QueryNormalizer(Normalizer):
    """Scales each query by its own documents, and learns nothing."""

    per_query = True
    _takes_missing = False

    def __init__(self, *, n_jobs: int | None = None) -> None:
        self.n_jobs = n_jobs

    def _scaled(self, X: Matrix, query_ptr: IntArray) -> Matrix:
        return arithmetic.by_query(self.kind.removeprefix("query-"), X, query_ptr, self.n_jobs)

    def _check_fitted(self) -> None:
        pass

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

    A sparse X stays sparse, its unstored zeros taking part. That is possible unless a feature has
    both negative values and unstored zeros within a query; then there is an error.

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
    _takes_sparse = True

    def _scaled(self, X: Matrix, query_ptr: IntArray) -> Matrix:
        if isinstance(X, np.ndarray):
            return super()._scaled(X, query_ptr)
        return arithmetic.minmax_sparse(X, query_ptr)


class QueryStandardScaler(_QueryNormalizer):
    """Scale every feature to mean 0 and standard deviation 1 within each query.

    The deviation is over the documents of the query (divided by their number); a feature that is
    the same for all of them becomes 0. X must be dense, since the zeros of a sparse one would move.

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


class GlobalStandardScaler(Normalizer):
    """Scale every feature to mean 0 and standard deviation 1 over the training data.

    A feature that is the same in all documents keeps scale 1. A sparse X is scaled but not centred,
    so that it stays sparse: the mean counts as 0. Rankers see no difference, because they compare
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

    def _check_learned(self) -> None:
        if not (self.scale_ > 0).all():
            raise InputError("the 'standard' normaliser has a scale that is not positive")

    def _learn(self, apply: Apply) -> None:
        self.mean_, self.scale_ = arithmetic.mean_and_deviation(apply)

    def _scaled(self, X: Matrix, query_ptr: IntArray) -> Matrix:
        if isinstance(X, np.ndarray):
            return arithmetic.shift_and_divide(X, self.mean_, self.scale_)
        if self.mean_.any():
            return arithmetic.shift_and_divide(X.toarray(), self.mean_, self.scale_)
        return arithmetic.divide_entries(X, self.scale_)


class GlobalMinMaxScaler(Normalizer):
    """Scale every feature to [0, 1] over the training data.

    A feature becomes (x − min) / (max − min), and x − min if it is the same in all training
    documents. A sparse X stays sparse if the least value of every feature is 0; otherwise there is
    an error.

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
    _takes_sparse = True
    min_: FloatArray
    max_: FloatArray

    def _check_learned(self) -> None:
        if not (self.min_ <= self.max_).all():
            raise InputError("the 'minmax' normaliser has a min that is above its max")

    def _learn(self, apply: Apply) -> None:
        self.min_, self.max_ = (np.nan_to_num(ends) for ends in arithmetic.ranges_of_parts(apply))

    def _scaled(self, X: Matrix, query_ptr: IntArray) -> Matrix:
        span = np.where(self.max_ > self.min_, self.max_ - self.min_, 1.0)
        if isinstance(X, np.ndarray):
            return arithmetic.shift_and_divide(X, self.min_, span)
        moved = np.flatnonzero(self.min_)
        if len(moved):
            raise InputError(
                f"the least value of feature f{moved[0] + 1} is {self.min_[moved[0]]:g}, so min–max"
                " scaling would fill a sparse X: make it dense with X.toarray() first"
            )
        return arithmetic.divide_entries(X, span)


def as_normalizer(step: Any) -> Any:
    """Return a normaliser that does what a fitted scaler of scikit-learn does, or None.

    ``StandardScaler`` and ``MaxAbsScaler`` are known; a normaliser is returned as it is.
    """
    if isinstance(step, Normalizer):
        return step
    if not isinstance(step, (StandardScaler, MaxAbsScaler)):
        return None
    check_is_fitted(step)
    centred = isinstance(step, StandardScaler) and step.with_mean
    scaled = isinstance(step, MaxAbsScaler) or step.with_std
    scaler = GlobalStandardScaler()
    scaler.mean_ = np.array(step.mean_ if centred else np.zeros(step.n_features_in_), dtype=float)
    scaler.scale_ = np.array(step.scale_ if scaled else np.ones(step.n_features_in_), dtype=float)
    scaler.n_features_in_ = step.n_features_in_
    return scaler


NORMALIZERS: dict[str, type[Normalizer]] = {
    scaler.kind: scaler
    for scaler in (
        QueryMinMaxScaler,
        QueryStandardScaler,
        QueryRankScaler,
        GlobalStandardScaler,
        GlobalMinMaxScaler,
    )
}
"""The normalisers by the name that they have in a model file and on the command line."""


def make_normalizer(kind: Any, choices: Iterable[str] = tuple(NORMALIZERS)) -> Any:
    """Return a new normaliser of a kind; a message about an unknown one lists ``choices``.

    >>> make_normalizer("query-rank")
    QueryRankScaler()
    """
    if not isinstance(kind, str) or kind not in NORMALIZERS:
        raise InputError(f"there is no normaliser {kind!r}: choose from {', '.join(choices)}")
    return NORMALIZERS[kind]()


def normalizer_from_dict(spec: Mapping[str, Any]) -> Any:
    """Rebuild a normaliser from what its ``to_dict`` gave; anything unexpected is an error.

    >>> normalizer_from_dict({"kind": "minmax", "min": [0], "max": [4]}).transform([[3.0]]).tolist()
    [[0.75]]
    """
    if not isinstance(spec, Mapping) or "kind" not in spec:
        raise InputError("a normaliser must be an object with a 'kind'")
    fresh = make_normalizer(spec["kind"])
    return fresh.from_fields({key: value for key, value in spec.items() if key != "kind"})
