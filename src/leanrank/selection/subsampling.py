"""Stability of selected features under changes of the queries, and interchangeable features."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from leanrank._display import printable_lines
from leanrank._numbers import check_number, check_whole
from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.errors import InputError
from leanrank.execution import add_up, make_executor, query_ranges, single_threaded_blas
from leanrank.model import Model
from leanrank.selection.cross_validation import run_fits
from leanrank.selection.folds import ranking_data

MOST_COMPARED = 2000
"""Largest number of features that are compared for groups, by a square table of correlations."""


@dataclass(frozen=True)
class FeatureGroup:
    """Features that are nearly interchangeable within queries.

    Attributes
    ----------
    features : tuple of int
        The most often selected first.
    frequency : float
        Share of the subsamples in which at least one of them was selected.
    at_once : float
        Mean number of them that were selected together, over the subsamples in which any was. If it
        is near 1, the features of a larger group replace each other.
    correlation : float
        The smallest |correlation| of two of them within queries; 1 for a feature alone.
    """

    features: tuple[int, ...]
    frequency: float
    at_once: float
    correlation: float


@dataclass(frozen=True, eq=False, repr=False)
class StabilityResult:
    """The features that a ranker selected on many subsamples of the queries.

    Attributes
    ----------
    n_features : int
        Number of features of the data.
    features : array of int
        The features that were ever selected, ascending.
    weights : array of shape (n_subsamples, len(features))
        Their weights, or heights of curves and steps; 0 if not selected.
    groups : list of FeatureGroup
        Groups of correlated features that were ever selected, the most often selected group first.
    share : float
        Share of the queries in each subsample.
    feature_names : tuple of str or None
    """

    n_features: int
    features: IntArray
    weights: FloatArray
    groups: list[FeatureGroup]
    share: float
    feature_names: tuple[str, ...] | None = None

    @property
    def n_subsamples(self) -> int:
        """Number of subsamples."""
        return len(self.weights)

    @property
    def frequencies(self) -> FloatArray:
        """For each feature of the data, the share of the subsamples in which it was selected."""
        out = np.zeros(self.n_features)
        out[self.features] = (self.weights != 0).mean(axis=0)
        return out

    @property
    def sizes(self) -> IntArray:
        """Number of selected features in each subsample."""
        return np.count_nonzero(self.weights, axis=1)

    @cached_property
    def stability_index(self) -> float:
        """Nogueira's stability: 1 if the features are always the same, about 0 if drawn at random.

        It does not depend on the number of selected features. NaN if always all or no features
        are selected.
        """
        # Nogueira, Sechidis & Brown (2018), "On the stability of feature selection algorithms"
        p = self.frequencies
        chance = float(p.mean()) * (1 - float(p.mean()))
        if chance == 0.0:
            return float("nan")
        m = self.n_subsamples
        return 1.0 - float(np.mean(p * (1 - p))) * m / (m - 1) / chance

    def name(self, feature: int) -> str:
        """Return a feature's name; ``f1`` is the first of those without names."""
        return feature_name(feature, self.feature_names)

    def __repr__(self) -> str:
        lines = [
            f"StabilityResult: {self.n_subsamples} subsamples of {100 * self.share:.0f}% of the "
            f"queries, {self.sizes.mean():.1f} of {self.n_features:,} features on average, "
            f"agreement {self.stability_index:.2f} beyond chance"
        ]
        frequency = self.frequencies
        for group in self.groups[:_SHOWN]:
            members = ", ".join(
                f"{self.name(f)} {100 * frequency[f]:.0f}%" for f in group.features[:_SHOWN]
            )
            text = self.name(group.features[0]) if len(group.features) == 1 else f"any of {members}"
            lines.append(f"  {100 * group.frequency:3.0f}%  {text}")
        if len(self.groups) > _SHOWN:
            lines.append(f"  and {len(self.groups) - _SHOWN} more")
        return printable_lines("\n".join(lines))


_SHOWN = 10
"""Groups, and features of a group, that are printed."""


def stability(
    ranker: Any,
    X: Any,
    y: Any = None,
    qid: Any = None,
    *,
    n_subsamples: int = 50,
    share: float = 0.5,
    correlation: float = 0.9,
    n_jobs: int | None = None,
    random_state: int | None = None,
    **options: Any,
) -> StabilityResult:
    """Fit a ranker on many subsamples of the queries, and count the features it selects.

    Parameters
    ----------
    ranker : ranker
        With the parameters to be examined, such as an alpha from cross-validation. Set its seed, if
        it has one, since randomness counts as instability.
    X, y, qid : as for fit
        Or a RankingData.
    n_subsamples : int, default=50
        Number of subsamples.
    share : float, default=0.5
        Share of the informative queries in a subsample, drawn without replacement.
    correlation : float, default=0.9
        Features form a group if any two of them have at least this |correlation| within queries.
        Only the 2,000 most often selected features are compared.
    n_jobs : int, optional
        Threads that share the subsamples; the result does not depend on it.
    random_state : int or None, default=None
        Seed of the subsamples; None is 0.
    **options
        ``group``, ``sample_weight``, ``query_weight`` and ``offset``, as for fit.

    Returns
    -------
    StabilityResult

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import DominationRanker
    >>> data = make_ranking(n_queries=80, n_features=20, n_informative=3, random_state=0)
    >>> found = stability(DominationRanker(alpha=0.1), data, n_subsamples=10)
    >>> int((found.frequencies == 1).sum())
    3
    >>> 0 < found.stability_index <= 1
    True
    """
    check_whole("n_subsamples", n_subsamples, 2)
    rng = _generator(random_state)
    check_number("share", share, high=1.0, open_low=True)
    check_number("correlation", correlation, high=1.0, open_low=True)
    data = ranking_data(ranker, X, y, qid, **options)
    informative = np.flatnonzero(data.informative)
    n_drawn = max(1, round(share * len(informative)))
    if n_drawn >= len(informative):
        raise InputError(
            f"share={share:g} of the {len(informative)} queries with information leaves none out: "
            "give more queries or a smaller share"
        )
    draws = [np.sort(rng.choice(informative, n_drawn, replace=False)) for _ in range(n_subsamples)]
    models = _fitted(ranker, data, draws, n_jobs)
    weights = np.zeros((n_subsamples, data.n_features))
    for row, model in zip(weights, models, strict=True):
        row[model.indices] = model.values
    features = np.flatnonzero(weights.any(axis=0))
    weights = weights[:, features]
    return StabilityResult(
        n_features=data.n_features,
        features=features,
        weights=weights,
        groups=_groups(data, features, weights != 0, correlation, n_jobs),
        share=share,
        feature_names=data.feature_names,
    )


def bootstrap_models(
    ranker: Any,
    data: RankingData,
    *,
    n_draws: int = 20,
    n_jobs: int | None = None,
    random_state: int | None = None,
) -> list[Model]:
    """Return models of a ranker fitted to bootstrap samples of the queries.

    Their differences show the uncertainty due to the choice of queries, for example as a band
    around curves (``leanrank.plots.curves``).

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import DominationRanker
    >>> data = make_ranking(n_queries=40, n_features=5, n_informative=2, random_state=0)
    >>> models = bootstrap_models(DominationRanker(alpha=0.1, curves=4), data, n_draws=3)
    >>> len(models), all(model.n_nonzero >= 2 for model in models)
    (3, True)
    """
    check_whole("n_draws", n_draws, 2)
    rng = _generator(random_state)
    draws = [np.sort(rng.integers(data.n_queries, size=data.n_queries)) for _ in range(n_draws)]
    return _fitted(ranker, data, draws, n_jobs)


def _generator(random_state: int | None) -> np.random.Generator:
    return np.random.default_rng(check_whole("random_state", random_state or 0, 0))


def _fitted(
    ranker: Any, data: RankingData, draws: list[IntArray], n_jobs: int | None
) -> list[Model]:
    """Return the models of a ranker fitted to several lists of queries."""

    def fit(drawn: IntArray) -> Model:
        model: Model = clone(ranker).fit(data.queries[drawn]).to_model()
        return model

    return run_fits(fit, draws, n_jobs)


def _groups(
    data: RankingData,
    features: IntArray,
    selected: BoolArray,
    threshold: float,
    n_jobs: int | None,
) -> list[FeatureGroup]:
    """Return groups of correlated features, the most often selected group first."""
    often = selected.sum(axis=0)
    compared = np.sort(np.argsort(-often, kind="stable")[:MOST_COMPARED])
    table = np.abs(within_query_correlation(data, features[compared], n_jobs=n_jobs))
    members_of = [compared[members] for members in correlated_groups(table, threshold)]
    members_of += [np.array([at]) for at in np.setdiff1d(np.arange(len(features)), compared)]
    groups = []
    for at in members_of:
        at = at[np.argsort(-often[at], kind="stable")]
        counts = selected[:, at].sum(axis=1)
        inside = np.searchsorted(compared, at)
        groups.append(
            FeatureGroup(
                features=tuple(features[at].tolist()),
                frequency=float((counts > 0).mean()),
                at_once=float(counts[counts > 0].mean()),
                correlation=float(table[np.ix_(inside, inside)].min()) if len(at) > 1 else 1.0,
            )
        )
    return sorted(groups, key=lambda group: (-group.frequency, group.features))


def within_query_correlation(
    data: RankingData, features: IntArray, *, n_jobs: int | None = None
) -> FloatArray:
    """Return the correlations of features over documents, each minus its mean over the query.

    So differences between queries, such as the length of the query, do not count; neither do
    missing values. The data are read once. The result does not depend on the number of threads.

    Returns
    -------
    array of shape (features, features)
        1 on the diagonal; otherwise 0 for a feature that is constant within every query.

    Examples
    --------
    >>> data = RankingData([[1.0, 2], [2, 1], [11, 32], [12, 31]], qid=[1, 1, 2, 2])
    >>> within_query_correlation(data, np.arange(2)).tolist()
    [[1.0, -1.0], [-1.0, 1.0]]
    """
    ptr = data.query_ptr

    def sums(part: tuple[int, int]) -> FloatArray:
        """Return Σ (x − mean)(x − mean)ᵀ over some queries, and below it Σ x²."""
        first, last = part
        block: Any = data.X[int(ptr[first]) : int(ptr[last])][:, features].astype(np.float64)
        if data.is_sparse:
            block = block.toarray()
        missing = np.isnan(block)
        block[missing] = 0.0
        squares = np.einsum("ij,ij->j", block, block)
        query_of = np.repeat(np.arange(last - first), np.diff(ptr[first : last + 1]))
        if len(block):
            starts = np.flatnonzero(np.diff(query_of, prepend=-1))
            sizes = np.diff(starts, append=len(block))
            known = np.add.reduceat(~missing, starts, axis=0, dtype=np.int64)
            means = np.add.reduceat(block, starts, axis=0) / np.maximum(known, 1)
            block -= np.repeat(means, sizes, axis=0)
            block[missing] = 0.0
        return np.vstack([block.T @ block, squares])

    with single_threaded_blas():
        parts = make_executor(n_jobs).map(sums, query_ranges(ptr))
    total = add_up(parts) if parts else np.zeros((len(features) + 1, len(features)))
    gram, within = total[:-1], np.diag(total[:-1])
    varying = within > _ROUNDING * total[-1]
    inverse = np.where(varying, 1.0 / np.sqrt(np.where(varying, within, 1.0)), 0.0)
    table: FloatArray = np.clip(gram * inverse[:, None] * inverse[None, :], -1.0, 1.0)
    np.fill_diagonal(table, 1.0)
    return table


_ROUNDING = 1e-24
"""Share of a feature's sum of squares below which the part within queries is rounding."""


def correlated_groups(correlation: FloatArray, threshold: float = 0.9) -> list[IntArray]:
    """Return groups of features in which any two have at least a |correlation|.

    Parameters
    ----------
    correlation : array of shape (features, features)
        Correlations of either sign.
    threshold : float, default=0.9
        The least |correlation| within a group.

    Returns
    -------
    list of array of int
        The features of each group, ascending; groups by their first feature. A group may have one
        feature.

    Examples
    --------
    >>> table = np.array([[1.0, 0.2, -0.95], [0.2, 1.0, 0.1], [-0.95, 0.1, 1.0]])
    >>> [group.tolist() for group in correlated_groups(table)]
    [[0, 2], [1]]
    """
    n_features = len(correlation)
    if n_features < 2:
        return [np.arange(n_features)] if n_features else []
    from sklearn.cluster import AgglomerativeClustering

    farthest = 1.0 - threshold + 1e-12
    clusters = AgglomerativeClustering(
        None, metric="precomputed", linkage="complete", distance_threshold=farthest
    )
    label = clusters.fit_predict(np.clip(1.0 - np.abs(correlation), 0.0, 1.0))
    groups = [np.flatnonzero(label == one) for one in np.unique(label)]
    return sorted(groups, key=lambda group: int(group[0]))
