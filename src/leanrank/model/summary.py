"""A small summary of the training documents of a model, and the same figures of other documents.

Every figure is a ratio of sums over queries, so that its standard error is over queries: documents
of one query are similar, and treating them as independent would raise false alarms. The figures of
a feature are

- the share of the documents at or below each of nine *cuts*, quantiles of the training documents;
  of a category, the share of each of its most frequent levels;
- the share of the documents where it is missing, and the share where it is beyond the knots of its
  curve, or, of a category, a level that the model does not know;
- the share of its variance, in ranks, that is within queries;
- its correlation, in ranks and within queries, with the contributions of the other terms.

The last two detect a column whose values belong to other documents: its distribution is the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.model.alignment import used_features
from leanrank.model.curves import Ramps
from leanrank.model.model import Model
from leanrank.model.terms import Levels

MOST_FEATURES = 200
"""Largest number of features of a summary, those with the largest terms: about 100 kB."""

MOST_LEVELS, LEAST_DOCUMENTS = 20, 10
"""Largest number of levels in the summary of a category, and fewest documents of each."""

FEWEST_QUERIES = 20
"""Fewest queries of equal weight for a variance or a correlation."""

CUTS = np.arange(1, 10) / 10.0
OTHERS = ("missing", "beyond", "within", "agreement")
SAMPLE, MOST_CELLS = 50_000, 20_000_000
"""Largest numbers of documents (of evenly spaced queries) and of values that are read."""


@dataclass(frozen=True)
class Figures:
    """Figures of one feature.

    Attributes
    ----------
    values : array
        The figures of the cuts or levels, then ``OTHERS``; NaN where undefined.
    influence : array of shape (queries, figures)
        The influence of each query on each value; the sum over queries is zero.
    """

    values: FloatArray
    influence: FloatArray

    @property
    def errors(self) -> FloatArray:
        """Standard errors over queries, at least one divided by the number of queries."""
        n = len(self.influence)
        spread = np.sqrt((self.influence**2).sum(axis=0) * n / max(n - 1, 1))
        return np.maximum(spread, 1.0 / max(n, 1))


def summarize(model: Model, data: RankingData) -> list[dict[str, Any]]:
    """Return a summary of the features that a model reads.

    Examples
    --------
    >>> from leanrank.data import load_sample
    >>> train, _, _ = load_sample()
    >>> model = Model.from_coef(np.eye(train.n_features)[0])
    >>> [(entry["feature"], len(entry["cuts"])) for entry in summarize(model, train)]
    [(0, 9)]
    """
    columns = Columns.of(model, data)
    reach = dict.fromkeys(model.indices.tolist(), 0.0)
    for features, term in model.terms.items():
        for at in features:
            reach[at] = max(reach[at], abs(term.size))
    kept = sorted(sorted(reach, key=lambda at: -reach[at])[:MOST_FEATURES])
    names, entries = model.feature_names, []
    for at in kept:
        entry = columns.described(at)
        figures = columns.figures(at, entry)
        entry["values"] = [None if v != v else float(f"{v:.6g}") for v in figures.values]
        entry["errors"] = [float(f"{error:.3g}") for error in figures.errors]
        entries.append({"feature": at if names is None else names[at], **entry})
    return entries


def with_summary(model: Model, data: RankingData) -> Model:
    """Return a model with a summary of its training documents."""
    return model.replace(summary=summarize(model, data)) if len(data) else model


def sampled_queries(data: RankingData, most: int = SAMPLE) -> RankingData:
    """Return the data, or evenly spaced queries with about ``most`` documents."""
    step = max(1, -(-len(data) // max(most, 1)))
    return data if step == 1 else data.queries[np.arange(0, data.n_queries, step)]


@dataclass(frozen=True)
class Columns:
    """The values of a model's features, and the contributions of its terms.

    Attributes
    ----------
    model : Model
    query_ptr : array
    values : dict of int to array
        Unscaled; NaN where missing or infinite; a text is the position of its level.
    added : array of shape (documents, terms)
        Contributions; a missing value that the model rejects is replaced by the median.
    """

    model: Model
    query_ptr: IntArray
    values: Mapping[int, FloatArray]
    added: FloatArray

    @classmethod
    def of(cls, model: Model, data: RankingData) -> Columns:
        """Return the columns of documents, or of a sample of the queries."""
        width = model.n_nonzero if model.normalizer is None else model.n_features
        data = sampled_queries(data, min(SAMPLE, MOST_CELLS // max(width, 1)))
        raw = used_features(model, data)
        raw[np.isinf(raw)] = np.nan
        values = {j: raw[:, at] for at, j in enumerate(model.indices.tolist())}
        filled = raw.copy()
        for at, feature in enumerate(model.indices.tolist()):
            absent, curve = np.isnan(filled[:, at]), model.curves.get(feature)
            if feature in model.fill:
                filled[absent, at] = model.fill[feature]
            elif absent.any() and curve is not None and curve.missing is None:
                known = filled[~absent, at]
                filled[absent, at] = np.median(known) if len(known) else 0.0
        scaled: Any = filled
        used = None
        if model.normalizer is not None:
            whole = np.zeros((len(data), model.n_features))
            whole[:, model.indices] = filled
            scaled, used, _ = model.prepared(RankingData(whole, qid=data.qid))
        return cls(model, data.query_ptr, values, model.term_sum.contributions(scaled, used))

    def described(self, feature: int) -> dict[str, Any]:
        """Return the cuts or levels at which the distribution of a feature is summarised."""
        curve, x = self.model.curves.get(feature), self.values[feature]
        if isinstance(curve, Levels):
            codes, n_single = self._codes(feature)
            found, counts = np.unique(codes[(codes >= 0) & (codes < n_single)], return_counts=True)
            order = np.argsort(-counts, kind="stable")[:MOST_LEVELS]
            common = [int(found[k]) for k in order if counts[k] >= LEAST_DOCUMENTS]
            return {"levels": [curve.levels[code] for code in common]}
        known = x[~np.isnan(x)]
        cuts = np.unique(np.quantile(known, CUTS, method="lower")) if len(known) else np.zeros(0)
        return {"cuts": sorted({float(f"{cut:.6g}") for cut in cuts})}

    def figures(self, feature: int, entry: Mapping[str, Any]) -> Figures:
        """Return the figures of a feature at the cuts or levels of an entry."""
        x, ptr = self.values[feature], self.query_ptr
        here, all_rows = (~np.isnan(x)).astype(float), np.ones(len(x))
        curve = self.model.curves.get(feature)
        if isinstance(curve, Levels):
            codes, _ = self._codes(feature)
            places = {level: at for at, level in enumerate(curve.levels)}
            shares = [codes == places.get(level, -2) for level in entry["levels"]]
            beyond = codes == -1.0
            rank: FloatArray = np.zeros(len(x))
        else:
            cuts = np.array(entry["cuts"], dtype=np.float64)
            shares = [x <= cut for cut in cuts]
            # the position between the cuts around a value, or that of an equal cut
            sides = np.searchsorted(cuts, x), np.searchsorted(cuts, x, side="right")
            rank = (sides[0] + sides[1]).astype(np.float64) / 2.0
            ends = self.model.normalizer is None and isinstance(curve, Ramps)
            low, high = (curve.cuts[0], curve.cuts[-1]) if ends else (-np.inf, np.inf)  # type: ignore[union-attr]
            beyond = (x < low) | (x > high)
        known = here > 0
        parts = [_ratio(share & known, here, ptr) for share in shares]
        parts += [_ratio(1.0 - here, all_rows, ptr), _ratio(beyond & known, here, ptr)]
        parts += self._within(feature, rank, known)
        return Figures(np.array([v for v, _ in parts]), np.stack([i for _, i in parts], axis=1))

    def _within(self, feature: int, rank: FloatArray, here: Any) -> list[tuple[float, FloatArray]]:
        """Return the share of the variance within queries, and the correlation with the rest."""
        nothing = np.nan, np.zeros(len(self.query_ptr) - 1)
        own = [feature in features for features in self.model.terms]
        rest = self.added[:, ~np.array(own, dtype=bool)].sum(axis=1)
        sizes = np.diff(self.query_ptr)
        query = np.repeat(np.arange(len(sizes)), sizes)
        t = np.where(here, rank - rank[here].mean() if here.any() else 0.0, 0.0)
        v = rankdata(rest) / max(len(rest), 1)
        v = v - v.mean()
        tc, vc = (_centred(each, here, query, len(sizes)) for each in (t, v))
        tt, vv, tv, whole = (float(a @ b) for a, b in ((tc, tc), (vc, vc), (tc, vc), (t, t)))
        by_query = np.bincount(query, t * t, minlength=len(sizes))
        if not (tt > 1e-12 * len(t) and whole**2 > FEWEST_QUERIES * float(by_query @ by_query)):
            return [nothing, nothing]  # too few queries have most of the variance
        within = _ratio(tc * tc, t * t, self.query_ptr)
        if not vv > 1e-12 * len(t):
            return [within, nothing]
        r = tv / np.sqrt(tt * vv)
        # the derivative of r by the weight of a query, through its three sums
        each = tc * vc / np.sqrt(tt * vv) - 0.5 * r * (tc * tc / tt + vc * vc / vv)
        return [within, (float(r), np.bincount(query, each, minlength=len(sizes)).astype(float))]

    def _codes(self, feature: int) -> tuple[FloatArray, int]:
        """Return the position of each level (−1: unknown) and the number of ungrouped levels."""
        curve: Any = self.model.curves[feature]
        x = self.values[feature]
        at = curve.positions(x)
        codes = np.where(at < len(curve.levels), at, -1.0)
        made = (self.model.provenance.get("training") or {}).get("columns") or []
        n_groups = next((one.get("groups") for one in made if one["feature"] == feature), None)
        n_single = len(curve.levels)
        if n_groups is not None and n_groups < n_single:
            n_single = n_groups - 1  # rare levels share a value, and are left out
        return np.where(np.isnan(x), np.nan, codes), n_single


def _ratio(top: Any, bottom: FloatArray, ptr: IntArray) -> tuple[float, FloatArray]:
    """Return Σ top / Σ bottom over documents, and the influence of each query."""
    a, b = (np.add.reduceat(np.append(np.asarray(v, float), 0.0), ptr[:-1]) for v in (top, bottom))
    empty = np.diff(ptr) == 0
    a[empty], b[empty] = 0.0, 0.0
    total = b.sum()
    if total <= 0:
        return np.nan, np.zeros(len(a))
    value = float(a.sum() / total)
    return value, (a - value * b) / total


def _centred(values: FloatArray, here: Any, query: IntArray, n_queries: int) -> FloatArray:
    """Return values minus their mean in the query, zero where ``here`` is False."""
    counts = np.maximum(np.bincount(query[here], minlength=n_queries), 1)
    means = np.bincount(query[here], values[here], minlength=n_queries) / counts
    return np.where(here, values - means[query], 0.0)
