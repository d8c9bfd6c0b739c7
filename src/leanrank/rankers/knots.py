"""Curves: their knots, the groups, factors and signs of their columns, and ramps as features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from leanrank._numbers import check_whole
from leanrank._typing import BoolArray, FloatArray, IntArray, Matrix
from leanrank.data.grouping import as_floats
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.designs.base import Design
from leanrank.designs.ramp_columns import NARROWEST, RampColumns
from leanrank.designs.ramps import Curves, ramp_design
from leanrank.designs.surfaces import SurfaceColumns
from leanrank.errors import InputError
from leanrank.execution import Executor
from leanrank.model import Model
from leanrank.penalties.base import Penalty
from leanrank.penalties.elastic_net import directions as check_directions
from leanrank.penalties.elastic_net import penalty_factors
from leanrank.penalties.groups import group_numbers
from leanrank.problem.sharded import Shards
from leanrank.rankers.inputs import checked_features, names_of
from leanrank.rankers.parameters import by_feature, feature_number, reject_unused

AUTO_SEGMENTS, DOCUMENTS_PER_SEGMENT = 8, 50
"""Segments of "auto", and documents per segment below which it takes fewer; set on validation data
by ``benchmarks curves``."""

MOST_SEGMENTS = 1_000


def n_segments(curves: Any, n_rows: int, most: int = AUTO_SEGMENTS) -> int:
    """Return the number of segments of a curve, at most ``most`` if it is "auto".

    >>> n_segments(5, 100), n_segments("auto", 100), n_segments("auto", 100_000)
    (5, 2, 8)
    """
    if curves == "auto":
        return max(1, min(most, n_rows // DOCUMENTS_PER_SEGMENT))
    if isinstance(curves, str):
        raise InputError(f"curves={curves!r} is not known: give a number of segments, or 'auto'")
    check_whole("curves", curves)
    if curves > MOST_SEGMENTS:
        raise InputError(f"curves={curves} is too many: a curve has at most {MOST_SEGMENTS:,}")
    return int(curves)


def find_ramps(curves: Any, names: Any, X: Matrix, n_rows: int) -> RampColumns:
    """Return the knots of all features: at quantiles of X, or given.

    Parameters
    ----------
    curves : int, "auto" or mapping
        As ``LinearRanker`` takes it.
    names : sequence of str or None
        Names of the features.
    X : array or sparse array
        Documents, or a sample of them.
    n_rows : int
        Number of documents.

    Examples
    --------
    >>> X = np.arange(200.0).reshape(100, 2)
    >>> [a.tolist() for a in find_ramps({"age": [0, 50], "bm25": 1}, ["age", "bm25"], X, 100).knots]
    [[0.0, 50.0], [3.0, 197.0]]
    """
    by_name = isinstance(curves, Mapping)
    ramps = RampColumns.at_quantiles(X, n_segments("auto" if by_name else curves, n_rows))
    knots = list(ramps.knots)
    for feature, given in curves.items() if by_name else ():
        at = feature_number(feature, len(knots), names, "curves")
        if np.ndim(given) == 0:
            column = RampColumns.at_quantiles(X[:, [at]], n_segments(given, n_rows))
            knots[at] = column.knots[0]
        else:
            knots[at] = _given_knots(feature, given)
    ramps = replace(ramps, knots=tuple(knots))
    _check_lengths(ramps, names)
    return ramps


def _given_knots(feature: Any, given: Any) -> FloatArray:
    knots = as_floats(given, f"curves: the knots of the feature {feature!r}")
    ascending = knots.ndim == 1 and np.isfinite(knots).all() and (np.diff(knots) > 0).all()
    if not ascending or not 2 <= len(knots) <= MOST_SEGMENTS + 1:
        raise InputError(
            f"curves: the knots of the feature {feature!r} cannot be used: give 2 to "
            f"{MOST_SEGMENTS + 1:,} finite numbers, each larger than the one before"
        )
    return knots.astype(np.float64)


def _check_lengths(ramps: RampColumns, names: Any) -> None:
    """Reject knots so close or so far apart that a slope would overflow.

    A model may leave out any knot but the outermost two.
    """
    for at in np.flatnonzero(ramps.sizes).tolist():
        knots = ramps.knots[at]
        if knots[-1] - knots[0] > 1.0 / NARROWEST or np.diff(knots).min() < NARROWEST:
            name = feature_name(at, names)
            raise InputError(f"two knots of the feature {name!r} are too close or too far apart")


def curve_design(ranker: Any, X: Any, names: Any, executor: Executor) -> Curves | Shards:
    """Return the ramps of all features for a ranker with curves; on Dask, shards of ramps."""
    name = type(ranker).__name__
    if isinstance(X, Design):
        raise InputError(f"{name} got a prepared design instead of X: leave curves out")
    if isinstance(ranker.penalty, Penalty):
        raise InputError(f"{name}: a penalty object has no curves: name the penalty")
    if ranker._make_solver().reads_columns:
        raise InputError(f"{name}: solver={ranker.solver!r} reads X itself: leave curves out")
    reject_unused(ranker, ("signs",), "curves: use monotone")
    find = partial(find_ramps, ranker.curves, names)
    if isinstance(X, Shards):
        return X.in_ramps(find)
    return ramp_design(X, find(X, X.shape[0]), executor)


def curve_parts(ranker: Any, ramps: RampColumns | SurfaceColumns, names: Any) -> tuple[Any, ...]:
    """Return group, penalty factor and sign of each column; each surface is a group."""
    feature, n_features = ramps.feature, len(ramps.knots)
    pairs = ramps.pairs if isinstance(ramps, SurfaceColumns) else np.zeros((0, 2), np.int64)
    groups = feature
    if ranker.groups is not None:
        number = group_numbers(ranker.groups, n_features)
        groups = np.append(number, n_features + np.arange(len(pairs)))[feature]
    factors = by_feature("penalty_factors", ranker.penalty_factors, n_features, names, 1.0)
    factors = None if factors is None else penalty_factors(factors, n_features)
    signs = directions(ranker, n_features, names)
    return groups, *column_parts(feature, pairs, ramps.is_gap, factors, signs)


def column_parts(
    owner: IntArray,
    pairs: IntArray,
    is_gap: BoolArray,
    factors: FloatArray | None,
    signs: FloatArray | None,
) -> tuple[Any, Any]:
    """Return penalty factor and sign of each column; None where features have none.

    The columns of missing values may have any sign. A surface has the larger factor of its two
    features.
    """
    if factors is not None:
        factors = np.append(factors, factors[pairs].max(axis=1))[owner]
    if signs is not None:
        signs = np.where(is_gap, 0.0, np.append(signs, np.zeros(len(pairs)))[owner])
    return factors, signs


def directions(ranker: Any, n_features: int, names: Any) -> FloatArray | None:
    """Return ``monotone`` as an array of −1, 0 and 1, one per feature; None if it is not given."""
    signs = by_feature("monotone", ranker.monotone, n_features, names, 0.0)
    return None if signs is None else check_directions("monotone", signs, n_features)


def weights_model(
    coef: FloatArray, ramps: RampColumns | SurfaceColumns | None, **more: Any
) -> Model:
    """Return the linear model of weights or, with ramps, the model of their curves.

    ``more`` are further arguments of Model.
    """
    if ramps is None:
        return Model.from_coef(coef, **more)
    if isinstance(ramps, SurfaceColumns):
        curves, more["surfaces"] = ramps.terms(coef)
        return Model(len(ramps.knots), curves, **more)
    return Model(len(ramps.knots), ramps.curves(coef), **more)


def scores_of_models(
    coefs: FloatArray, ramps: RampColumns | SurfaceColumns | None, X: Matrix
) -> FloatArray:
    """Return the scores of documents by several models, one row per model."""
    if ramps is not None:
        return np.array([weights_model(w, ramps).predict(X) for w in coefs])
    used = np.flatnonzero(np.any(coefs, axis=0))
    return np.asarray(X[:, used] @ coefs[:, used].T).T


class RampFeatures(TransformerMixin, BaseEstimator):
    """Ramps of features between fixed knots, as columns for any linear learner.

    A ranker with ``curves=`` chooses its knots from all of its data and never stores the ramps. A
    learner of a stream or of clicks does not have all data: fit the knots to some documents, give
    the learner the output of ``transform``, and turn its weights into curves with ``to_model``.

    Parameters
    ----------
    curves : int, "auto" or dict, default="auto"
        Segments per feature, or knots of some, as for ``LinearRanker``.

    Attributes
    ----------
    ramps_ : RampColumns
        The knots. A feature that had missing values in ``fit`` has a column for them; a missing
        value of another feature counts as its smallest value. If no feature had missing values,
        they are rejected.
    n_features_in_ : int
    feature_names_in_ : array of str
        Only when X had column names that are all strings.

    Examples
    --------
    >>> from leanrank import RampFeatures
    >>> from leanrank.rankers import MinBatSRank
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

    _takes_nan: ClassVar[bool] = True

    def __init__(self, curves: int | str | Mapping[Any, Any] = "auto") -> None:
        self.curves = curves

    def fit(self, X: Any, y: Any = None) -> RampFeatures:
        """Choose the knots from documents, given as X to a ranker."""
        values = checked_features(self, X, reset=True)
        found = find_ramps(self.curves, names_of(self), values, values.shape[0])
        self.ramps_ = ramp_design(values, found, Executor()).ramps
        return self

    def transform(self, X: Any) -> Any:
        """Return the columns of all ramps: a RankingData for a RankingData, else an array."""
        check_is_fitted(self, "ramps_")
        values, ramps = checked_features(self, X), self.ramps_
        design = ramp_design(values, ramps, Executor())
        own = design.ramps  # with columns for new gaps
        if own.gap.any() and not ramps.gap.any():
            missing = feature_name(int(np.flatnonzero(own.gap)[0]), names_of(self))
            raise InputError(
                f"X contains NaN in feature {missing!r}, but fit had none: fill them in"
            )
        kept = np.flatnonzero(~(own.is_gap & ~ramps.gap[own.feature]))
        columns: FloatArray = design.take(kept).written((0, values.shape[0]), values.dtype)
        if not isinstance(X, RankingData):
            return columns
        names = names_of(self)
        of_columns = [
            f"{feature_name(int(feature), names)} [{at - ramps.starts[feature]}]"
            for at, feature in enumerate(ramps.feature)
        ]
        return X.replace(X=columns, feature_names=of_columns)

    def to_model(self, model: Model) -> Model:
        """Return the model of curves that equals a linear model of the ramps."""
        check_is_fitted(self, "ramps_")
        if model.normalizer is not None or model.n_features != self.ramps_.n_columns:
            raise InputError(
                "the model was not learned from these ramps: fit it to the output of transform"
            )
        return Model(
            len(self.ramps_.knots),
            self.ramps_.curves(model.coef),
            names_of(self),
            provenance=model.provenance,
        )

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
