"""The result of fusing runs: weights, also by type of query, and a comparison with simple rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from leanrank._display import printable_lines
from leanrank._typing import FloatArray
from leanrank.data.trec import Run, RunPool, as_run
from leanrank.errors import InputError
from leanrank.metrics import Comparison
from leanrank.metrics.judge import better_sign

FUSED, RRF, EQUAL = "learned weights", "reciprocal rank fusion", "equal weights"
TODAY, ONE_SET = "weights of today", "one set of weights"

LEAST = 10
"""Number of queries below which a type has the weights of all queries."""

FEW_VALUES = 5
"""Distinct values up to which each is a type; more are divided into three ranges of equal size."""


class Setting(NamedTuple):
    """A setting to choose by cross-validation; ``alpha`` None means equal weights."""

    scaler: str
    constant: int | tuple[int, ...] | None
    alpha: float | None

    def scaled(self, pool: RunPool) -> FloatArray:
        """Return the scaled scores of a pool."""
        return pool.scaled(self.scaler, self.constant or 60)

    def __str__(self) -> str:
        constant = "" if self.constant is None else f" with constant {self.constant}"
        strength = "equal weights" if self.alpha is None else f"alpha {self.alpha:g}"
        return f"{self.scaler}{constant}, {strength}"


class CurvePoint(NamedTuple):
    """The measure with some judged queries, compared with that of all training queries."""

    n_queries: int
    mean: float
    against_all: Comparison


@dataclass(frozen=True)
class QueryTypes:
    """The types of queries, from the columns of a table.

    Attributes
    ----------
    cuts : dict of str to tuple of float
        For each column, the bounds between ranges of a number; empty if each value is a type.
    names : tuple of str
        The types with enough queries, such as ``"kind=navigational"``.
    """

    cuts: dict[str, tuple[float, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    @classmethod
    def find(cls, table: Any, query_ids: Any) -> QueryTypes:
        """Return the types of some queries.

        >>> table = {"qid": range(40), "length": [1, 2] * 20}
        >>> QueryTypes.find(table, range(40)).names
        ('length=1', 'length=2')
        """
        columns = _columns(table)
        cuts = {}
        for name, values in columns.items():
            if name != "qid":
                numeric = values.dtype.kind in "iuf" and len(np.unique(values)) > FEW_VALUES
                ends = np.nanquantile(values, [1 / 3, 2 / 3]) if numeric else np.zeros(0)
                cuts[name] = tuple(np.unique(ends).tolist())
        of = cls(cuts, ()).of(table)
        counts = Counter(of.get(str(query), "") for query in query_ids)
        names = sorted(name for name, n in counts.items() if name and n >= LEAST)
        return cls(cuts, tuple(names))

    def of(self, table: Any) -> dict[str, str]:
        """Return the type of each query of a table."""
        columns = _columns(table)
        missing = [name for name in self.cuts if name not in columns]
        if missing:
            raise InputError(f"query_features has no column {missing[0]!r}")
        labels = [self._labels(name, columns[name]) for name in self.cuts]
        queries = map(str, columns["qid"].tolist())
        return {q: ", ".join(own) for q, *own in zip(queries, *labels, strict=True)}

    def _labels(self, name: str, values: Any) -> list[str]:
        ends = self.cuts[name]
        if not ends:
            return [f"{name}={value}" for value in values.tolist()]
        words = [f"{name} up to {ends[0]:g}"]
        words += [f"{name} up to {end:g}" for end in ends[1:]] + [f"{name} above {ends[-1]:g}"]
        at = np.where(np.isnan(values), len(words), np.searchsorted(ends, values))
        return [(*words, f"{name} missing")[one] for one in at.tolist()]

    def widened(self, X: FloatArray, pool: RunPool, of: Mapping[str, str]) -> FloatArray:
        """Return features with further columns for each type, whose weights are added for it."""
        own = np.array([of.get(str(query), "") for query in pool.data.query_ids.tolist()])
        rows = np.repeat(own, np.diff(pool.data.query_ptr))
        return np.hstack([X, *(X * (rows == name)[:, None] for name in self.names)])

    def weights(self, w: FloatArray) -> dict[str, FloatArray]:
        """Return the weights of each type from the weights of widened features."""
        shared, *own = w.reshape(1 + len(self.names), -1)
        return {name: shared + more for name, more in zip(self.names, own, strict=True)}


@dataclass(frozen=True, repr=False)
class Fusion:
    """Weights of runs, and their measures on queries that they were not learned from.

    Attributes
    ----------
    weights : dict of str to float
        The weight of each run. They add up to 1 if none is negative.
    setting : Setting
        Scaler, constant and strength, chosen on all queries.
    dual_gap : float or None
        Relative duality gap of the final fit. None for equal weights, which are not fitted.
    measure, convention, loss : str
    n_queries : int
        Judged queries.
    means : dict of str to float
        The measure of the learned weights, reciprocal rank fusion, equal weights and each run
        alone, on the same queries. The learned weights of each fold were fitted without it.
    comparisons : dict of str to Comparison
        The learned weights compared with each of the others, paired by query.
    per_query : dict of str to array
        The measure on every query.
    fold_settings : list of Setting
        The setting chosen without each fold.
    curve : list of CurvePoint
        The learning curve.
    notes : tuple of str
        Documents that were left out, and other assumptions about the input.
    types : QueryTypes
        The types of queries, if the weights depend on them.
    weights_by_type : dict of str to dict
        The weights of each type of query; ``weights`` are for all other queries.
    """

    weights: dict[str, float]
    setting: Setting
    dual_gap: float | None
    measure: str
    convention: str
    loss: str
    n_queries: int
    means: dict[str, float]
    comparisons: dict[str, Comparison]
    per_query: dict[str, FloatArray]
    fold_settings: list[Setting]
    curve: list[CurvePoint]
    notes: tuple[str, ...]
    types: QueryTypes = field(default_factory=QueryTypes)
    weights_by_type: dict[str, dict[str, float]] = field(default_factory=dict)

    def apply(self, runs: Mapping[str, Any], query_features: Any = None) -> Run:
        """Return the fusion of runs by the learned weights; runs have the names of ``weights``."""
        missing = [name for name in self.weights if name not in runs]
        if missing:
            raise InputError(f"the run {missing[0]!r} is missing: give {', '.join(self.weights)}")
        pool = RunPool.build({name: as_run(runs[name], name) for name in self.weights})
        if self.weights_by_type and query_features is None:
            raise InputError("the weights depend on the query: give query_features")
        of = self.types.of(query_features) if self.weights_by_type else {}
        queries = [of.get(str(query), "") for query in pool.data.query_ids.tolist()]
        own = [list(self.weights_by_type.get(name, self.weights).values()) for name in queries]
        weights = np.repeat(np.array(own), np.diff(pool.data.query_ptr), axis=0)
        scores = (self.setting.scaled(pool) * weights).sum(axis=1)
        assert pool.data.doc_ids is not None
        return Run(pool.data.qid, pool.data.doc_ids, scores)

    def verdict(self) -> str:
        """Return sentences that compare the learned weights with simple rules and the best run."""
        others = [name for name in (TODAY, ONE_SET) if name in self.comparisons]
        best = max(self.comparisons, key=lambda name: better_sign(self.measure) * self.means[name])
        words = {name: self._against(name) for name in (RRF, best, *others)}
        sentences = [f"The learned weights {words[RRF]}."]
        if not words[RRF].startswith("beat"):
            sentences.append(f"Use {RRF}, which needs no judgments, or judge more queries.")
        elif best not in (RRF, *others) and not words[best].startswith("beat"):
            others.insert(0, best)
        return " ".join([*sentences, *(f"They {words[name]}." for name in others)])

    def _against(self, system: str) -> str:
        """Return, in words, whether the learned weights are better than a system, and how much."""
        against = self.comparisons[system]
        low, high = sorted(better_sign(self.measure) * end for end in against.interval)
        word = "beat" if low > 0 else "are worse than" if high < 0 else "do not beat"
        return (
            f"{word} {'the ' * (system == TODAY)}{system} ({against.difference:+.4f} "
            f"{self.measure}, 95% interval {against.interval[0]:+.4f} to "
            f"{against.interval[1]:+.4f}, {self.n_queries:,} queries)"
        )

    def curve_sentence(self) -> str:
        """Return a sentence on the number of judged queries that gives nearly the same measure."""
        if not self.curve:
            return ""
        near = [p for p in self.curve if abs(p.against_all.difference) <= 0.005] or self.curve[-1:]
        point, most = near[0], self.curve[-1].n_queries
        low, high = point.against_all.interval
        return (
            f"With {point.n_queries:,} judged queries you are within "
            f"{abs(point.against_all.difference):.4f} {self.measure} of what {most:,} give (95% "
            f"interval of the difference {low:+.4f} to {high:+.4f})."
        )

    def __repr__(self) -> str:
        weights = ", ".join(f"{name} {weight:.3f}" for name, weight in self.weights.items())
        means = ", ".join(f"{name} {mean:.4f}" for name, mean in self.means.items())
        text = f"Fusion: {weights} ({self.setting})\n  {self.measure}: {means}\n  {self.verdict()}"
        return printable_lines(text)


def _columns(table: Any) -> dict[str, Any]:
    """Return the columns of a mapping, a data frame or an Arrow table."""
    if isinstance(table, Mapping):
        names = list(table)
    else:
        names = list(getattr(table, "column_names", None) or table.columns)
    if "qid" not in names or len(names) < 2:
        raise InputError("query_features needs the column 'qid' and at least one more")
    return {str(name): np.asarray(table[name]) for name in names}
