"""Evaluating a TREC run against judgements, which rarely cover the same documents."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.trec import Qrels, Run
from leanrank.errors import InputError, first_repeated
from leanrank.metrics.conventions import Convention, find_convention
from leanrank.metrics.evaluation import Evaluation, measure_lists
from leanrank.metrics.measures import COVERAGE, TOP_RANK, Measure, parse_measures


def evaluate_run(
    qrels: Qrels,
    run: Run,
    measures: str | Measure | Iterable[str | Measure] = ("ndcg@10", "map"),
    *,
    convention: str | Convention = "trec",
    complete: bool = False,
    ties: str | None = None,
    rel: float | None = None,
    n_jobs: int | None = -1,
) -> Evaluation:
    """Measure a run as trec_eval does.

    A document that was not judged counts as label 0; a judged one that was not retrieved counts
    among the relevant documents and in the ideal list. Queries without judgements are left aside.

    Parameters
    ----------
    qrels : Qrels
        The judgements.
    run : Run
        What was retrieved.
    measures : str or sequence of str
        Those of ranked lists: NDCG, DCG, mean NDCG, AP, P, R, MRR and ERR. The others need every
        document's score.
    convention : str or Convention
        As for ``evaluate``.
    complete : bool
        Whether judged queries that the run does not answer count too, as an empty list (trec_eval's
        option -c); by default they are left aside.
    ties, rel : optional
        Choices to make differently from the convention.
    n_jobs : int, optional
        Threads; the result does not depend on it.

    Returns
    -------
    Evaluation
        Queries in the order of the judgements.

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
        if not measure.sees_tie_order or measure.kind in (TOP_RANK, COVERAGE):
            raise InputError(
                f"the measure {measure.name!r} needs the score of every document and a run may "
                "miss some: use evaluate with full lists"
            )
    base = find_convention(convention)
    chosen = base.replace(ties=ties, rel=rel)
    numbers = {q: at for at, q in enumerate(dict.fromkeys(qrels.qid.tolist()))}
    retrieved = set(run.qid.tolist())
    kept = [q for q in numbers if complete or q in retrieved]
    numbers = {q: at for at, q in enumerate(kept)}

    judged_query = _positions(qrels.qid, numbers)
    judgements = _judgements(qrels, judged_query)
    run_query = _positions(run.qid, numbers)
    rows = np.flatnonzero(run_query >= 0)
    rows = rows[np.argsort(run_query[rows], kind="stable")]
    query, doc_ids = run_query[rows], run.doc_id[rows]
    labels, unjudged = _look_up(query, doc_ids, judgements)
    # the pool: judged documents, and zeros for retrieved documents without judgement
    pool_rows = np.flatnonzero(judged_query >= 0)
    pool_query = np.concatenate((judged_query[pool_rows], query[unjudged]))
    pool_labels = np.concatenate((qrels.label[pool_rows], labels[unjudged]))
    pool_order = np.argsort(pool_query, kind="stable")
    return measure_lists(
        parsed,
        chosen,
        query_ids=np.array(kept, dtype=np.str_),
        query_ptr=_pointers(query, len(kept)),
        scores=run.score[rows],
        labels=labels,
        doc_ids=doc_ids,
        changed=[name for name in ("ties", "rel") if getattr(chosen, name) != getattr(base, name)],
        n_jobs=n_jobs,
        pool_ptr=_pointers(pool_query, len(kept)),
        pool_labels=pool_labels[pool_order],
    )


def _positions(qid: AnyArray, numbers: dict[str, int]) -> IntArray:
    return np.fromiter((numbers.get(q, -1) for q in qid.tolist()), np.int64, len(qid))


def _judgements(qrels: Qrels, query: IntArray) -> dict[tuple[int, str], float]:
    found: dict[tuple[int, str], float] = {}
    rows = zip(query.tolist(), qrels.doc_id.tolist(), qrels.label.tolist(), strict=True)
    for at, doc, label in rows:
        if at >= 0 and found.setdefault((at, doc), label) != label:
            raise InputError(f"document {doc!r} was judged twice for one query: keep one judgement")
    return found


def _look_up(
    query: IntArray, doc_ids: AnyArray, judgements: dict[tuple[int, str], float]
) -> tuple[FloatArray, IntArray]:
    """Return the labels of the retrieved documents, and which of them were not judged."""
    pairs = list(zip(query.tolist(), doc_ids.tolist(), strict=True))
    twice = first_repeated(pairs)
    if twice is not None:
        raise InputError(f"document {twice[1]!r} was retrieved twice for one query: keep one")
    labels = np.fromiter((judgements.get(pair, 0.0) for pair in pairs), np.float64, len(pairs))
    unjudged = [at for at, pair in enumerate(pairs) if pair not in judgements]
    return labels, np.array(unjudged, dtype=np.int64)


def _pointers(query: IntArray, n_queries: int) -> IntArray:
    sizes = np.bincount(query, minlength=n_queries)
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))
