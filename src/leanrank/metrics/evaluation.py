"""Evaluating scores against labels, query by query, and TREC runs against judgments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from leanrank._numbers import defined
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.grouping import LONGEST_LIST, Grouping, one_dimensional
from leanrank.data.ranking_data import RankingData
from leanrank.data.trec import Qrels, Run
from leanrank.errors import InputError, warn
from leanrank.execution import make_executor, query_ranges
from leanrank.metrics._inputs import (
    check_finite,
    find_queries,
    label_codes,
    measure_terms,
    numbers,
    tie_order,
)
from leanrank.metrics.conventions import Convention, find_convention
from leanrank.metrics.measures import LOSS, Measure, parse_measures


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The result of an evaluation, by the names of the measures.

    Attributes
    ----------
    means : dict of str to float
        Mean over the queries on which the measure is defined; NaN if there is none.
    per_query : dict of str to array
        One value per query, NaN where it is left out of the mean.
    undefined : dict of str to int
        Number of queries that are left out of the mean.
    query_ids : array
        The queries of the values in ``per_query``, in order of first appearance.
    convention : str
    settings : dict
        All choices: those of the convention and of the caller.
    """

    means: dict[str, float]
    per_query: dict[str, FloatArray]
    undefined: dict[str, int]
    query_ids: AnyArray
    convention: str
    settings: dict[str, Any]

    def __getitem__(self, measure: str) -> float:
        """Return the mean of a measure."""
        return self.means[measure]

    def to_dict(self, *, per_query: bool = False) -> dict[str, Any]:
        """Return plain Python values, ready for JSON; undefined numbers are None."""
        out: dict[str, Any] = {
            "convention": self.convention,
            "settings": dict(self.settings),
            "queries": len(self.query_ids),
            "means": self.means,
            "undefined": dict(self.undefined),
        }
        if per_query:
            out["query_ids"] = self.query_ids.tolist()
            out["per_query"] = {name: row.tolist() for name, row in self.per_query.items()}
        plain: dict[str, Any] = defined(out)
        return plain

    def __repr__(self) -> str:
        n_queries = len(self.query_ids)
        head = f"Evaluation: {n_queries:,} quer{'y' if n_queries == 1 else 'ies'}, "
        head += f"convention {self.convention}"
        if self.settings["changed"]:
            head += " with " + ", ".join(
                f"{name}={self.settings[name]!r}" for name in self.settings["changed"]
            )
        width = max(len(name) for name in self.means)
        lines = [head]
        for name, mean in self.means.items():
            line = f"  {name:<{width}}  {'undefined' if math.isnan(mean) else f'{mean:.4f}'}"
            if self.undefined[name]:
                line += f"  ({self.undefined[name]:,} left out)"
            lines.append(line)
        return "\n".join(lines)


def evaluate(
    y: Any,
    scores: Any,
    qid: Any = None,
    *,
    group: Any = None,
    measures: str | Measure | Iterable[str | Measure] = ("ndcg@10", "map"),
    convention: str | Convention = "standard",
    doc_ids: Any = None,
    gain: str | None = None,
    discount: str | None = None,
    rel: float | None = None,
    ties: str | None = None,
    short_lists: str | None = None,
    no_relevant: float | str | None = None,
    n_jobs: int | None = -1,
) -> Evaluation:
    """Measure how well scores order the documents of each query.

    Parameters
    ----------
    y : array-like or RankingData
        One label per document, higher is better. A data set includes queries and document ids; the
        scores are then in its row order, as those of ``ranker.predict(data.X)``. Collections on
        Dask are gathered: one label and one score per document.
    scores : array-like
        One finite score per document; higher scores rank first.
    qid : array-like, optional
        One query identifier per document, rows in any order. None: one query.
    group : array-like, optional
        Instead of qid: the sizes of consecutive queries.
    measures : str or sequence of str
        ``ndcg[@k]``, ``dcg[@k]``, ``mean_ndcg``, ``map[@k]``, ``p@k``, ``r@k``, ``mrr[@k]``,
        ``err[@k]``, ``auc``, ``all_pairs_error``, ``domination_error``, ``kendall_tau_b``,
        ``joachims_tau``, ``loss``; a relevance threshold of its own in
        parentheses, as in ``map(rel=2)``, and the top of ERR's scale as in ``err@10(max=4)``.
    convention : str or Convention
        ``standard``, ``letor3``, ``letor4``, ``mslr``, ``trec`` or ``lightgbm``; the next
        parameters change single choices of it, see ``Convention``.
    doc_ids : array-like, optional
        One document id per row, which ``ties="docid"`` needs.
    gain, discount, rel, ties, short_lists, no_relevant : optional
        Choices to make differently from the convention.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    Evaluation

    Warns
    -----
    DataWarning
        If ties stay in input order and, in a tenth or more of the queries with several label
        levels, at least half of the documents, of several levels, share the best score: the measure
        then depends more on the order of the file than on the scores. Also if many documents have
        no ``qid``, so that they count as one query.

    Examples
    --------
    >>> evaluate([2, 0, 1, 1, 0], [3.0, 2.0, 1.0, 0.5, 0.7], ["a", "a", "a", "b", "b"])
    Evaluation: 2 queries, convention standard
      ndcg@10  0.7974
      map      0.6667
    """
    parsed = parse_measures(measures)
    base = find_convention(convention)
    changes = {
        "gain": gain,
        "discount": discount,
        "rel": rel,
        "ties": ties,
        "short_lists": short_lists,
        "no_relevant": no_relevant,
    }
    chosen = base.replace(**changes)
    if isinstance(y, RankingData):
        if qid is not None or group is not None:
            raise InputError("a RankingData includes its queries: leave qid and group out")
        doc_ids = y.doc_ids if doc_ids is None else doc_ids
        labels, grouping = y.y, Grouping(y.query_ids, y.query_ptr, None)
        check_finite(labels, "y")
    else:
        labels = numbers(y, "y")
        grouping = find_queries(qid, group, len(labels))
        if qid is None and group is None and len(labels) > LONGEST_LIST:
            warn(
                f"evaluate got no qid, so all {len(labels):,} documents count as one query: give "
                "qid (if they are one, the same value for all)",
                once="evaluate without qid",
            )
    values = numbers(scores, "scores", len(labels))
    ids = None
    if chosen.ties == "docid":
        if doc_ids is None:
            raise InputError(
                "ties by document id need doc_ids: give one id per document, or choose other ties, "
                "such as ties='average'"
            )
        ids = grouping.take(one_dimensional(doc_ids, "doc_ids", len(labels)).astype(np.str_))
    changed = [name for name in changes if getattr(chosen, name) != getattr(base, name)]
    columns = grouping.take(values), grouping.take(labels), ids
    lists = Lists(grouping.query_ids, grouping.query_ptr, *columns)
    return measure_lists(parsed, chosen, lists, changed=changed, n_jobs=n_jobs)


def evaluate_run(
    qrels: Qrels,
    run: Run,
    measures: str | Measure | Iterable[str | Measure] = ("ndcg@10", "map"),
    *,
    convention: str | Convention = "trec",
    complete: bool = False,
    n_jobs: int | None = -1,
) -> Evaluation:
    """Measure a run as trec_eval does.

    A document that was not judged counts as label 0; a judged one that was not retrieved counts
    among the relevant documents and in the ideal list. Queries without judgments are left out.

    Parameters
    ----------
    qrels : Qrels
        The judgments.
    run : Run
        The retrieved documents.
    measures : str or sequence of str
        Those of ranked lists: NDCG, DCG, mean NDCG, AP, P, R, MRR and ERR. The others need every
        document's score.
    convention : str or Convention
        As for ``evaluate``; ``Convention.replace`` changes single choices.
    complete : bool
        Whether judged queries that the run does not answer count as empty lists (trec_eval's option
        -c); by default they are left out.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    Evaluation
        Queries in the order of the judgments.

    Examples
    --------
    >>> qrels = Qrels(["q", "q", "q"], ["a", "b", "c"], [1, 0, 2])
    >>> evaluate_run(qrels, Run(["q", "q"], ["b", "a"], [2.0, 1.0]), ["map", "r@10"])
    Evaluation: 1 query, convention trec
      map   0.2500
      r@10  0.5000
    """
    parsed = parse_measures(measures)
    for measure in parsed:
        if not measure.sees_tie_order:
            raise InputError(
                f"the measure {measure.name!r} needs the score of every document, which a run may "
                "lack: use evaluate with full lists"
            )
    judged = _by_query(qrels, qrels.label, "judged")
    listed = _by_query(run, run.score, "retrieved")
    kept = [query for query in judged if complete or query in listed]
    doc_ids: list[str] = []
    scores: list[float] = []
    labels: list[float] = []
    pool: list[float] = []  # labels of judged documents, and zeros for others that were retrieved
    ends = [(0, 0)]
    for query in kept:
        known, found = judged[query], listed.get(query, {})
        doc_ids += found
        scores += found.values()
        labels += [known.get(document, 0.0) for document in found]
        pool += [*known.values(), *(0.0 for document in found if document not in known)]
        ends.append((len(doc_ids), len(pool)))
    query_ptr, pool_ptr = np.array(ends, dtype=np.int64).T.copy()
    ids, documents = np.array(kept, dtype=np.str_), np.array(doc_ids, dtype=np.str_)
    own = np.array(scores), np.array(labels)
    lists = Lists(ids, query_ptr, *own, documents, pool_ptr, np.array(pool))
    return measure_lists(parsed, find_convention(convention), lists, n_jobs=n_jobs)


def _by_query(table: Qrels | Run, numbers: FloatArray, what: str) -> dict[str, dict[str, float]]:
    """Return a number for each document of each query."""
    found: dict[str, dict[str, float]] = {}
    columns = (table.qid.tolist(), table.doc_id.tolist(), numbers.tolist())
    for query, document, number in zip(*columns, strict=True):
        mine = found.setdefault(query, {})
        if document in mine:
            raise InputError(f"document {document!r} was {what} twice for one query: keep one")
        mine[document] = number
    return found


class Lists(NamedTuple):
    """Documents grouped by query, with valid numbers.

    Attributes
    ----------
    query_ids, query_ptr : array
    scores, labels : array
    doc_ids : array or None
    pool_ptr, pool_labels : array or None
        The labels of all documents that could have been listed; None if the lists have all.
    """

    query_ids: AnyArray
    query_ptr: IntArray
    scores: FloatArray
    labels: FloatArray
    doc_ids: AnyArray | None = None
    pool_ptr: IntArray | None = None
    pool_labels: FloatArray | None = None


def measure_lists(
    measures: tuple[Measure, ...],
    convention: Convention,
    lists: Lists,
    *,
    changed: Sequence[str] = (),
    n_jobs: int | None = 1,
) -> Evaluation:
    """Return the evaluation of lists; ``changed`` names choices that differ from the convention."""
    from leanrank._jit import kernel_view
    from leanrank.metrics._kernels import Gains, carried_by_ties, measure_range
    from leanrank.metrics._pair_measures import softmax_losses

    query_ids, query_ptr, scores, labels, doc_ids, pool_ptr, pool_labels = lists
    everything = labels if pool_labels is None else np.concatenate((labels, pool_labels))
    codes, levels = label_codes(everything)
    codes, pool_codes = codes[: len(labels)], codes[0 if pool_labels is None else len(labels) :]
    if convention.ties in ("docid", "pessimistic"):
        breaker: AnyArray = -codes
        if convention.ties == "docid" and doc_ids is not None:
            breaker = doc_ids
            with np.errstate(over="ignore"):
                scores = scores.astype(np.float32).astype(np.float64)
        order = tie_order(query_ptr, scores, breaker)
        scores, codes = scores[order], codes[order]
    query_ptr, scores, codes = map(kernel_view, (query_ptr, scores, codes))
    pool_ptr = query_ptr if pool_ptr is None else kernel_view(pool_ptr)
    if convention.ties == "input" and any(measure.sees_tie_order for measure in measures):
        carried, informative = carried_by_ties(query_ptr, scores, codes)
        if carried and 10 * carried >= informative:
            warn(
                f"in {carried} of {informative} queries at least half of the documents share the "
                "best score and are ranked in input order, which may follow the labels: check the "
                "scores, or use ties='average'"
            )
    terms = measure_terms(measures, convention, levels)
    gains = np.zeros(len(levels))
    if any(measure.uses_gains for measure in measures):
        gains = convention.gains(levels)
    top_label = max(0.0, float(levels[-1])) if len(levels) else 0.0
    stops = np.exp2(np.maximum(levels, 0.0) - top_label) - np.exp2(-top_label)
    n_queries = len(query_ptr) - 1
    longest = max(int(np.diff(ptr).max(initial=0)) for ptr in (query_ptr, pool_ptr))
    discounts, values = convention.discounts(longest), np.empty((len(measures), n_queries))
    average = convention.ties == "average"
    depth = max((m.k or longest for m in measures if m.uses_gains), default=0)
    worth = Gains(gains, stops, discounts, depth)

    def run(part: tuple[int, int]) -> None:
        queries = slice(part[0], part[1] + 1)
        ptr, pools = query_ptr[queries], pool_ptr[queries]
        rows, pool = slice(ptr[0], ptr[-1]), slice(pools[0], pools[-1])
        measure_range(
            terms, average, ptr - ptr[0], scores[rows], codes[rows], pools - pools[0],
            pool_codes[pool], worth, values[:, slice(*part)],
        )  # fmt: skip

    make_executor(n_jobs).map(run, query_ranges(query_ptr))
    for row, measure in zip(values, measures, strict=True):
        if measure.kind == LOSS:
            row[:] = softmax_losses(scores, gains[codes], query_ptr)
    settings = {**vars(convention), "changed": list(changed)}
    del settings["name"], settings["source"]
    per_query = {measure.name: row for measure, row in zip(measures, values, strict=True)}
    defined = {name: row[~np.isnan(row)] for name, row in per_query.items()}
    return Evaluation(
        means={name: float(row.mean()) if len(row) else math.nan for name, row in defined.items()},
        per_query=per_query,
        undefined={name: n_queries - len(row) for name, row in defined.items()},
        query_ids=query_ids,
        convention=convention.name,
        settings=settings,
    )
