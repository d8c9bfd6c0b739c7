"""Differences in spread between features, and the choice of a normaliser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import FloatArray, Matrix
from leanrank.data.ranking_data import feature_name
from leanrank.data.scaling import Apply, column_moments, column_ranges, n_values
from leanrank.data.scaling.normalizers import NORMALIZERS, make_normalizer
from leanrank.errors import InputError, check_choice

SPREAD_FACTOR = 100.0
"""Ratio of spreads above which rankers warn and ``scale="auto"`` standardises."""

ENOUGH_VALUES = 10
"""Features with fewer values other than zero are ignored."""


class Spread(NamedTuple):
    """The largest ratio between the spreads of two features; ``str`` gives a sentence."""

    ratio: float
    widest: str
    narrowest: str

    def __str__(self) -> str:
        times = f"{self.ratio:,.0f}" if self.ratio < 1e6 else f"{self.ratio:.1e}"
        return f"the spread of {self.widest} is {times} times that of {self.narrowest}"


class ScaleChoice(NamedTuple):
    """The kind of normaliser to use, or None; and the reason for "auto"."""

    kind: str | None
    reason: str = ""

    def make(self) -> Any:
        """Return a new normaliser of this kind, or None."""
        return None if self.kind is None else make_normalizer(self.kind)


def scale_wanted(data: Any, scale: str | None = "auto", *, curves: bool = False) -> ScaleChoice:
    """Return the normaliser to use for an option such as ``scale="auto"``.

    Parameters
    ----------
    data : RankingData or ClusterData
        The training data.
    scale : str or None
        "auto" standardises if ``wide_spread`` is not None. "none" and None do not scale. Otherwise
        the kind of a normaliser.
    curves : bool
        Whether only rankers with curves or steps use the data. They need no scaling: "auto" does
        not scale, and a normaliser over all queries is rejected.

    Returns
    -------
    ScaleChoice
        ``choice.make()`` is the normaliser, ``choice.reason`` the reason for "auto".

    Examples
    --------
    >>> import numpy as np
    >>> from leanrank.data import RankingData
    >>> X = np.random.default_rng(0).normal(size=(50, 2)) * [1.0, 5000.0]
    >>> scale_wanted(RankingData(X, feature_names=["bm25", "length"]))
    ScaleChoice(kind='standard', reason="the spread of 'length' is 5,323 times that of 'bm25'")
    >>> scale_wanted(RankingData(X[:, :1])), scale_wanted(RankingData(X), "query-rank").make()
    (ScaleChoice(kind=None, reason=''), QueryRankScaler())
    """
    check_scale(scale)
    if curves and scale == "auto":
        return ScaleChoice(None, "no, curves need no scaling")
    if curves and scale not in (None, "none") and not make_normalizer(scale).per_query:
        raise InputError(
            f"scale={scale!r} has no effect on curves and steps, whose cuts follow the unit of a "
            "feature: leave it out, or choose a normaliser per query"
        )
    if scale == "auto":
        found = spread_of(data)
        return ScaleChoice(None) if found is None else ScaleChoice("standard", str(found))
    return ScaleChoice(None if scale == "none" else scale)


def spread_of(data: Any) -> Spread | None:
    """Return the widest and the narrowest feature of data, in memory or on a cluster."""
    if hasattr(data, "spread"):
        found: Spread | None = data.spread()
        return found
    return wide_spread(data.X, data.feature_names)


def check_scale(scale: str | None) -> None:
    """Reject a misspelt ``scale`` before the work.

    >>> check_scale("standrad")
    Traceback (most recent call last):
    leanrank.errors.InputError: scale='standrad' is not known: did you mean 'standard'?
    """
    if scale is not None:
        check_choice("scale", scale, ("auto", "none", *NORMALIZERS))


def wide_spread(
    X: Matrix, names: Sequence[str] | None = None, factor: float = SPREAD_FACTOR
) -> Spread | None:
    """Return the widest and the narrowest feature, if they differ by more than ``factor``.

    Both the standard deviations and the ranges must differ that much: a rare feature has a small
    deviation whatever its unit, and a feature with an outlier a large range. Features that are
    constant or have fewer than ten values other than zero are ignored.
    """
    return wide_spread_of_parts(lambda function: [function(X)], X.shape[0], names, factor)


def wide_spread_of_parts(
    apply: Apply, n_rows: int, names: Sequence[str] | None = None, factor: float = SPREAD_FACTOR
) -> Spread | None:
    """Return the result of ``wide_spread`` for a matrix in parts."""
    if n_rows < ENOUGH_VALUES:
        return None
    low, high = zip(*apply(column_ranges), strict=True)
    with np.errstate(over="ignore", invalid="ignore"):
        ranges = np.fmax.reduce(high) - np.fmin.reduce(low)
    if _ratio(ranges[ranges > 0]) <= factor:  # as in most data
        return None
    enough = np.sum(apply(n_values), axis=0) >= ENOUGH_VALUES
    counted = np.flatnonzero((ranges > 0) & enough)
    spreads = ranges[counted]
    if _ratio(spreads) <= factor:
        return None
    _, _, variance = column_moments(apply)
    deviations = np.sqrt(variance[counted])
    if deviations.all():  # none underflows
        spreads = deviations
    if _ratio(spreads) <= factor:
        return None
    ends = (int(counted[at]) for at in (np.argmax(spreads), np.argmin(spreads)))
    widest, narrowest = (repr(feature_name(at, names)) for at in ends)
    return Spread(_ratio(spreads), widest, narrowest)


def _ratio(spreads: FloatArray) -> float:
    with np.errstate(over="ignore", invalid="ignore"):
        return float(spreads.max() / spreads.min()) if len(spreads) else 1.0
