"""Comparing a new model with the old one that it would replace."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._display import printable_lines
from leanrank._typing import FloatArray, IntArray
from leanrank.data.clicks.click_log import ClickLog
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.metrics.comparison import Comparison, compare_values, rank_biased_overlap
from leanrank.metrics.evaluation import evaluate
from leanrank.metrics.judge import better_sign
from leanrank.metrics.measures import parse_measures
from leanrank.model import Model
from leanrank.model.explain import Explanation
from leanrank.model.scoring import rank_within_queries
from leanrank.model.summary import sampled_queries
from leanrank.model.writing import as_model
from leanrank.service.explain import documents_for, estimated_clicks, judged_rows, names_of

_GATE = re.compile(r"\s*(\S+?)\s*([<>])\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e-?\d+)?)\s*(%?)\s*", re.I)
_SHARES = ("changed", "replaced")
OTHER_GATES = (*_SHARES, "overlap", "clicks")
"""Quantities of gates other than measures."""


@dataclass(frozen=True)
class TermChange:
    """A term of either model.

    Attributes
    ----------
    name : str
    old, new : float or None
        Its weight or height; None in a model without the term.
    old_share, new_share : float
        Share of the variance of the model's scores within queries.
    change_share : float
        Share of the variance of the change of scores; over all terms they add up to 1.
    """

    name: str
    old: float | None
    new: float | None
    old_share: float
    new_share: float
    change_share: float


@dataclass(frozen=True)
class QueryChange:
    """A query whose ranking changes.

    Attributes
    ----------
    query : object
    overlap : float
        Rank-biased overlap of the two rankings.
    documents : list of dict
        The first k of either ranking: ``document``, ``old`` and ``new`` rank, ``label`` or None,
        ``rise`` of the score relative to the mean of these documents, and ``terms``: the
        contribution of each term to the rise, largest magnitude first.
    """

    query: Any
    overlap: float
    documents: list[dict[str, Any]]


@dataclass(frozen=True, repr=False)
class Diff:
    """The differences of a new model from an old one, on the documents of a data set.

    Scores of the two models are compared in units of their standard deviation within queries, which
    changes no ranking.

    Attributes
    ----------
    old, new : Model
    data : RankingData
    measures : dict of str to Comparison
        New minus old; empty without labels. For a click log, clicks per list by each estimator.
    clicked : bool
        Whether the documents are those of a click log.
    ranks : array of shape (2, documents)
        Ranks by the old and by the new model, from 1 within a query.
    overlap : array
        Rank-biased overlap of each query.
    terms : list of TermChange
        Those with the largest change of scores first.
    queries : list of QueryChange
        Those with the least overlap first.
    k : int
        Number of top documents that count.
    spreads : pair of float
        Standard deviations of the scores of the old and of the new model.
    notes : list of str
        Warnings of the estimates of clicks.
    """

    old: Model
    new: Model
    data: RankingData
    measures: dict[str, Comparison]
    clicked: bool
    ranks: IntArray
    overlap: FloatArray
    terms: list[TermChange]
    queries: list[QueryChange]
    k: int
    spreads: tuple[float, float]
    notes: list[str]

    def changed(self, k: int | None = None) -> float:
        """Return the share of queries whose first k documents or their order differ."""
        return float(np.mean(self._differs(k or self.k, in_order=True)))

    def replaced(self, k: int | None = None) -> float:
        """Return the mean share of a query's first k documents that were not among them before."""
        return float(np.mean(self._differs(k or self.k, in_order=False)))

    def _differs(self, k: int, *, in_order: bool) -> FloatArray:
        top = self.ranks <= k
        differs = top[1] & ((self.ranks[0] != self.ranks[1]) if in_order else ~top[0])
        starts, sizes = self.data.query_ptr[:-1], np.diff(self.data.query_ptr)
        filled = sizes > 0
        counts = np.add.reduceat(differs.astype(np.float64), starts[filled])
        return np.asarray(counts > 0 if in_order else counts / np.minimum(sizes[filled], k), float)

    def value(self, name: str) -> float:
        """Return ``changed@k``, ``replaced@k``, ``overlap``, or the difference of a measure."""
        kind, _, depth = name.partition("@")
        if kind in _SHARES:
            return float(getattr(self, kind)(int(depth) if depth.isdigit() else None))
        if name == "overlap":
            return float(self.overlap.mean())
        known = {"clicks": self.measures["doubly-robust"]} if self.clicked else self.measures
        if name in known:
            return known[name].difference
        others = ", ".join([*known, "changed@k", "replaced@k", "overlap"])
        raise InputError(f"there is no {name!r} to compare: choose from {others}")

    def failures(self, gates: Sequence[str]) -> list[str]:
        """Return the gates that fail, such as ``"ndcg@10 < -0.005"`` or ``"changed@10 > 30%"``."""
        failed = []
        for gate in gates:
            name, above, limit = parse_gate(gate)
            value = self.value(name)
            if value > limit if above else value < limit:
                failed.append(f"{gate.strip()}: it is {_signed(name, value)}")
        return failed

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        n = len(self.overlap)
        says = f"{self.changed():.1%} of {n:,} queries change among their first {self.k} documents"
        if not self.measures:
            return says
        name, first = next(iter(self.measures.items()))
        sign = 1.0 if self.clicked else better_sign(name)
        if self.clicked:
            name, first = "clicks per list", self.measures["doubly-robust"]
        low, high = first.interval
        word = "no clear difference"
        if low > 0 or high < 0:
            word = "better" if first.difference * sign > 0 else "worse"
        tested = f"p = {first.p_randomization:.2g}"
        if np.isfinite(low):  # one query has no interval
            tested = f"95% interval {low:+.4f} to {high:+.4f}, {tested}"
        return f"{word}: {name} {first.difference:+.4f} ({tested}); {says}"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {
            "verdict": self.verdict,
            "measures": {name: each.to_dict() for name, each in self.measures.items()},
            "clicked": self.clicked,
            "queries": len(self.overlap),
            "k": self.k,
            "changed": self.changed(),
            "replaced": self.replaced(),
            "overlap": self.value("overlap"),
            "terms": [vars(term) for term in self.terms],
            "most_changed": [
                {"query": str(one.query), "overlap": one.overlap, "documents": one.documents}
                for one in self.queries
            ],
            "notes": self.notes,
        }

    def write(self, path: str | os.PathLike[str], *, title: str = "Old and new model") -> None:
        """Write an HTML page that opens from disk and loads nothing; ``"-"`` is standard output."""
        from leanrank.service.pages import write_page

        write_page(self, path, title)

    def __repr__(self) -> str:
        lines = [f"Diff: {self.verdict}"]
        for name, one in self.measures.items():
            low, high = one.interval
            lines.append(
                f"  {name:<15}  {one.mean_a:.4f} → {one.mean_b:.4f}  {one.difference:+.4f} "
                f"({low:+.4f} to {high:+.4f})  p = {one.p_randomization:.2g}"
            )
        lines.append(
            f"  changed@{self.k} {self.changed():.1%}, replaced@{self.k} {self.replaced():.1%}, "
            f"rank-biased overlap {self.value('overlap'):.3f}"
        )
        return printable_lines("\n".join([*lines, *(f"  note: {note}" for note in self.notes)]))


def diff(
    old: Any,
    new: Any,
    data: Any,
    y: Any = None,
    qid: Any = None,
    *,
    measures: str | Sequence[str] = ("ndcg@10", "map"),
    convention: str = "standard",
    k: int = 10,
    n_queries: int = 10,
    **policy: Any,
) -> Diff:
    """Compare two models on the same documents: measures, rankings, terms.

    Parameters
    ----------
    old, new : Model or fitted ranker
    data : RankingData, ClickLog, array or data frame
        Documents; without labels only rankings are compared. A ClickLog with propensities gives
        expected clicks by ``leanrank.online.evaluate_policy``.
    y, qid : array-like, optional
        Labels and queries of an array or frame.
    measures, convention
        As for ``leanrank.evaluate``.
    k : int, default=10
        Number of top documents that count.
    n_queries : int, default=10
        Number of queries to show, those that change most.
    **policy
        For ``evaluate_policy``: ``assume``, ``discount``, ``clip``, …

    Returns
    -------
    Diff

    Examples
    --------
    >>> from leanrank.data import RankingData
    >>> data = RankingData([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [2, 1, 0])
    >>> old, new = Model.from_coef([1.0, 2.0]), Model.from_coef([2.0, 1.0])
    >>> diff(old, new, data, measures="ndcg@10")
    Diff: no clear difference: ndcg@10 +0.2033 ...
      ndcg@10          0.7967 → 1.0000  +0.2033 (+nan to +nan)  p = 1
      changed@10 100.0%, replaced@10 0.0%, rank-biased overlap 0.900
    """
    models = as_model(old), as_model(new)
    log = data if isinstance(data, ClickLog) else None
    parts = [documents_for(each, log.data if log else data, y, qid) for each in models]
    scores = [each.predict(part) for each, part in zip(models, parts, strict=True)]
    documents = parts[0]
    ranks = np.stack([rank_within_queries(each, documents.qid) for each in scores])
    overlap = rank_biased_overlap(ranks, documents.query_ptr)
    values: list[Mapping[str, FloatArray]] = [{}, {}]
    notes: list[str] = []
    known = None if log else judged_rows(documents)
    if known is not None:
        labels, queries = documents.y[known], documents.qid[known]
        chosen: dict[str, Any] = {"measures": measures, "convention": convention}
        values = [evaluate(labels, each[known], queries, **chosen).per_query for each in scores]
    elif log is not None:
        values = [estimated_clicks(log, each, notes, depth=k, **policy).per_list for each in scores]
    compared = {
        name: compare_values(
            before, values[1][name], measure=None if log else name,
            n_permutations=1_000 if log else 10_000,
        )
        for name, before in values[0].items()
    }  # fmt: skip
    worst = np.argsort(overlap, kind="stable")[:n_queries]
    worst = worst[overlap[worst] < 1.0]
    terms, spreads = _terms(models, parts)
    shown = _queries(models, parts, worst, spreads, ranks, overlap, k)
    clicked = log is not None
    return Diff(
        *models, documents, compared, clicked, ranks, overlap, terms, shown, int(k), spreads, notes
    )


def parse_gate(text: str) -> tuple[str, bool, float]:
    """Return the quantity of a gate, whether values above the limit fail, and the limit.

    >>> parse_gate("ndcg@10 < -0.005"), parse_gate("changed@10>30%")
    (('ndcg@10', False, -0.005), ('changed@10', True, 0.3))
    """
    found = _GATE.fullmatch(text)
    if found is None:
        raise InputError(
            f"{text!r} is not a gate: write a name, < or >, and a number: 'ndcg@10 < -0.005'"
        )
    name, sign, limit, percent = found.groups()
    kind = name.partition("@")[0]
    if percent and kind not in _SHARES and name != "overlap":
        raise InputError(
            f"{text!r}: a difference is not a share: write it as a number, such as -0.005"
        )
    if kind not in OTHER_GATES:
        name = parse_measures(name)[0].name
    return name, sign == ">", float(limit) / (100.0 if percent else 1.0)


def _signed(name: str, value: float) -> str:
    shares = name.partition("@")[0] in _SHARES
    return f"{value:.1%}" if shares else f"{value:.4f}" if name == "overlap" else f"{value:+.4f}"


def _terms(
    models: tuple[Model, Model], parts: Sequence[RankingData]
) -> tuple[list[TermChange], tuple[float, float]]:
    """Return the terms of both models, and the standard deviations of their scores."""
    old, new = (
        model.explain(sampled_queries(part)) for model, part in zip(models, parts, strict=True)
    )
    spreads = _spread(old), _spread(new)
    change = _change(old, new, spreads)
    shares = [
        dict(zip(each.features, each.variance_shares.tolist(), strict=True))
        for each in (old, new, change)
    ]
    sizes = [model.weights for model in models]
    rows = [
        TermChange(
            name, sizes[0].get(name), sizes[1].get(name),
            *(each.get(name, 0.0) for each in shares),
        )
        for name in map(str, change.features)
    ]  # fmt: skip
    return sorted(rows, key=lambda row: -abs(row.change_share)), spreads


def _spread(parts: Explanation) -> float:
    """Return the standard deviation of scores within queries; 1 if they do not differ."""
    sizes, scores = np.diff(parts.query_ptr), parts.scores[parts.rows]
    query = np.repeat(np.arange(len(sizes)), sizes)
    means = np.bincount(query, scores, minlength=len(sizes)) / np.maximum(sizes, 1)
    return float(np.std(scores - means[query])) or 1.0


def _change(old: Explanation, new: Explanation, spreads: tuple[float, float]) -> Explanation:
    """Return the contribution of each term to the change of scores, in standard deviations."""
    names = tuple(dict.fromkeys((*old.features, *new.features)))
    parts = np.zeros((len(old), len(names)))
    for sign, each, spread in ((-1.0, old, spreads[0]), (1.0, new, spreads[1])):
        at = [names.index(name) for name in each.features]
        parts[:, at] += sign * each.contributions / spread
    return Explanation(
        parts.sum(axis=1), parts, names, old.query_ptr, old.rows, old.query_ids, old.doc_ids
    )


def _queries(
    models: tuple[Model, Model],
    parts: Sequence[RankingData],
    queries: IntArray,
    spreads: tuple[float, float],
    ranks: IntArray,
    overlap: FloatArray,
    k: int,
) -> list[QueryChange]:
    """Return the top documents of some queries, with the terms that changed their ranks."""
    found = []
    for query in queries.tolist():
        begin, end = parts[0].query_ptr[query : query + 2].tolist()
        old, new = (m.explain(p.queries[[query]]) for m, p in zip(models, parts, strict=True))
        change = _change(old, new, spreads)
        old_new, labels = ranks[:, begin:end], parts[0].y[begin:end]
        rows = np.flatnonzero((old_new <= k).any(axis=0))
        moved = change.contributions - change.contributions[rows].mean(axis=0)
        rows = rows[np.argsort(old_new[1, rows], kind="stable")]
        names = names_of(parts[0], (begin + rows).tolist())
        documents = [
            {
                "document": name,
                "old": int(old_new[0, row]),
                "new": int(old_new[1, row]),
                "label": None if np.isnan(labels[row]) else float(labels[row]),
                "rise": float(moved[row].sum()),
                "terms": {
                    str(change.features[at]): float(moved[row, at])
                    for at in np.argsort(-np.abs(moved[row]), kind="stable")
                },
            }
            for row, name in zip(rows.tolist(), names, strict=True)
        ]
        found.append(QueryChange(parts[0].query_ids[query], float(overlap[query]), documents))
    return found


def largest_terms(terms: Mapping[str, float], most: int = 3) -> str:
    """Return the largest contributions to the change of a document, as text.

    >>> largest_terms({"bm25": 0.5, "age": -0.25, "spam": 0.0})
    'bm25 +0.50, age -0.25'
    """
    shown = [(name, value) for name, value in terms.items() if abs(value) >= 0.005][:most]
    return ", ".join(f"{name} {value:+.2f}" for name, value in shown)
