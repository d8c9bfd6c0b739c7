"""TREC run and qrels files, and pools of the runs of several retrievers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import numpy as np

from leanrank._display import printable
from leanrank._files import atomic_write
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.grouping import group_rows, one_dimensional, one_per_row
from leanrank.data.ranking_data import RankingData, counted
from leanrank.data.sources import compressed, parse_number, shown_name, text_lines
from leanrank.errors import InputError, ParseError


class _Table:
    """The columns of both files: query, document and a number, in any order."""

    qid: AnyArray
    doc_id: AnyArray

    def __post_init__(self) -> None:
        """Check the columns against each other; identifiers become text."""
        numeric = list(vars(self))[2]  # score or label
        qid = np.asarray(self.qid).astype(np.str_)
        doc_id = one_dimensional(np.asarray(self.doc_id).astype(np.str_), "doc_id", len(qid))
        rows = group_rows(None, len(qid))
        numbers = one_per_row(getattr(self, numeric), numeric, rows, len(qid))
        for name, values in (("qid", qid), ("doc_id", doc_id), (numeric, numbers)):
            object.__setattr__(self, name, values)

    def __repr__(self) -> str:
        queries = counted(len(set(self.qid.tolist())), "query", "queries")
        tag = f", tag {self.tag}" if hasattr(self, "tag") else ""
        documents = counted(len(self.qid), "document")
        return printable(f"{type(self).__name__}: {queries}, {documents}{tag}")


@dataclass(frozen=True, repr=False)
class Run(_Table):
    """Retrieved documents with scores: one row per document and query, in any order.

    >>> Run(["q1", "q1"], ["d3", "d7"], [2.5, 1.0], tag="bm25")
    Run: 1 query, 2 documents, tag bm25
    """

    qid: AnyArray
    doc_id: AnyArray
    score: FloatArray
    tag: str = "leanrank"


@dataclass(frozen=True, repr=False)
class Qrels(_Table):
    """Judged documents with labels: one row per document and query, in any order.

    >>> Qrels(["q1", "q1"], ["d3", "d7"], [1, 0])
    Qrels: 1 query, 2 documents
    """

    qid: AnyArray
    doc_id: AnyArray
    label: FloatArray


def load_run(path: str | os.PathLike[str]) -> Run:
    """Read a run: ``query Q0 document rank score tag``, one document per line.

    The rank is not used, as in trec_eval: scores give the order. ``-`` reads standard input;
    compression is recognised.
    """
    qids, docs, scores, tags = _read(path, "query Q0 document rank score tag", "score")
    return Run(qids, docs, scores, tags[-1] if tags else "leanrank")


def load_qrels(path: str | os.PathLike[str]) -> Qrels:
    """Read judgments: ``query iteration document label``, one document per line."""
    qids, docs, labels, _ = _read(path, "query iteration document label", "label")
    return Qrels(qids, docs, labels)


def dump_run(run: Run, path: str | os.PathLike[str]) -> None:
    """Write a run, the documents of each query by descending score, ties by document id.

    Scores read back to the same bits. The file appears under its name only when it is complete.
    """
    rank = _ranks(run.qid, run.doc_id, run.score)
    first = {qid: at for at, qid in enumerate(dict.fromkeys(run.qid.tolist()))}
    order = np.lexsort((rank, np.array([first[qid] for qid in run.qid.tolist()])))
    columns = (each[order].tolist() for each in (run.qid, run.doc_id, rank, run.score))
    rows = zip(*columns, strict=True)
    lines = (f"{qid} Q0 {doc} {at} {score!r} {run.tag}\n" for qid, doc, at, score in rows)
    _write(path, lines, {"query": run.qid, "document id": run.doc_id, "tag": np.array([run.tag])})


def dump_qrels(qrels: Qrels, path: str | os.PathLike[str]) -> None:
    """Write judgments in the order given; whole labels are written without a decimal point."""
    columns = (each.tolist() for each in (qrels.qid, qrels.doc_id, qrels.label))
    rows = zip(*columns, strict=True)
    lines = (f"{qid} 0 {doc} {repr(label).removesuffix('.0')}\n" for qid, doc, label in rows)
    _write(path, lines, {"query": qrels.qid, "document id": qrels.doc_id})


def _write(
    path: str | os.PathLike[str], lines: Iterable[str], tokens: Mapping[str, AnyArray]
) -> None:
    for what, names in tokens.items():
        for name in dict.fromkeys(names.tolist()):
            if not name or not name.isprintable() or " " in name:
                raise InputError(
                    f"the {what} {name!r} is empty or holds a blank or a control character"
                )
    with atomic_write(path, "wb") as stream, compressed(stream, os.fsdecode(path)) as out:
        out.writelines(line.encode() for line in lines)


def _read(
    path: str | os.PathLike[str], form: str, numeric: str
) -> tuple[AnyArray, AnyArray, FloatArray, list[str]]:
    """Return the columns query, document and a number, and the last field of every line."""
    names = form.split()
    pairs: dict[tuple[str, str], float] = {}
    last = []
    for line, text in text_lines(path):
        fields = re.findall(r"[^ \t]+", text)
        if not fields:
            continue
        if len(fields) != len(names):
            problem = f"expected {len(names)} fields ({form}), found {len(fields)}"
            raise ParseError(problem, path=shown_name(path), line=line)
        qid, doc = fields[0], fields[2]
        if (qid, doc) in pairs:
            problem = f"document {doc!r} is listed a second time for query {qid!r}: keep one"
            raise ParseError(problem, path=shown_name(path), line=line)
        pairs[qid, doc] = parse_number(fields[names.index(numeric)], numeric, path, line)
        last.append(fields[-1])
    qids, docs = (np.array([pair[at] for pair in pairs], np.str_) for at in (0, 1))
    return qids, docs, np.array(list(pairs.values()), float), last


SCALERS = ("query-minmax", "query-standard", "query-rank", "query-reciprocal-rank")
"""Normalisers of the scores of a run, see ``RunPool.scaled``."""
QDRANT = "query-qdrant-rank"
"""Qdrant's normaliser of ranks, with a constant per run; learned for Qdrant only."""


@dataclass(frozen=True)
class RunPool:
    """The documents that any of several runs retrieved, with the score and the rank in each.

    Attributes
    ----------
    data : RankingData
        A row per document and query. X holds the scores, one column per run, NaN where the run
        lacks the document; y the labels, 0 for documents without a judgment.
    rank : array of int64, shape (documents, runs)
        The rank in the run, from 1; 0 where the run lacks the document. Equal scores are ordered by
        document id, the greatest first, as by TREC's tools.
    judged_ptr, judged_labels : array
        The labels of all documents of each query that were retrieved or judged.
    notes : tuple of str
        One sentence on each thing that was left out or assumed.
    """

    data: RankingData
    rank: IntArray
    judged_ptr: IntArray
    judged_labels: FloatArray
    notes: tuple[str, ...] = ()

    @classmethod
    def build(cls, runs: Mapping[str, Run], qrels: Qrels | None = None) -> RunPool:
        """Join runs, one column each.

        Parameters
        ----------
        runs : mapping of str to Run
        qrels : Qrels, optional
            Judgments: queries without any are left out, as are judged queries that no run answers.

        Examples
        --------
        >>> bm25, dense = Run(["q", "q"], ["a", "b"], [3.0, 1.0]), Run(["q"], ["c"], [0.9])
        >>> pool = RunPool.build({"bm25": bm25, "dense": dense}, Qrels(["q"], ["c"], [1]))
        >>> pool.data.doc_ids.tolist(), pool.rank.tolist(), pool.data.y.tolist()
        (['a', 'b', 'c'], [[1, 0], [2, 0], [0, 1]], [0.0, 0.0, 1.0])
        """
        if len(runs) < 1:
            raise InputError("there is no run: give at least one")
        judged: dict[str, dict[str, float]] = {}
        if qrels is not None:
            rows = zip(qrels.qid.tolist(), qrels.doc_id.tolist(), qrels.label.tolist(), strict=True)
            for query, document, label in rows:
                judged.setdefault(query, {})[document] = label
        index: dict[tuple[str, str], int] = {}
        columns, answered = [], set[str]()
        for name, run in runs.items():
            pairs = list(zip(run.qid.tolist(), run.doc_id.tolist(), strict=True))
            if len(set(pairs)) < len(pairs):
                raise InputError(f"the run {name!r} lists a document twice for one query: keep one")
            answered.update(run.qid.tolist())
            kept = [qrels is None or query in judged for query, _ in pairs]
            at = [index.setdefault(pair, len(index)) for pair in compress(pairs, kept)]
            columns.append((np.array(kept, dtype=bool), at))
        if not index:
            raise InputError("no run answers a judged query: compare the query ids of both files")
        X = np.full((len(index), len(runs)), np.nan)
        rank = np.zeros(X.shape, dtype=np.int64)
        for j, (run, (has, at)) in enumerate(zip(runs.values(), columns, strict=True)):
            X[at, j] = run.score[has]
            rank[at, j] = _ranks(run.qid[has], run.doc_id[has], run.score[has])
        qid, documents = (np.array([pair[at] for pair in index], np.str_) for at in (0, 1))
        y = np.array([judged.get(query, {}).get(document, 0.0) for query, document in index])
        data = RankingData(X, y, qid, doc_ids=documents, feature_names=runs)
        rank = rank if data.order is None else rank[data.order]
        missed = [
            [label for document, label in judged.get(q, {}).items() if (q, document) not in index]
            for q in data.query_ids.tolist()
        ]
        own = np.split(data.y, data.query_ptr[1:-1])
        labels = [np.append(*pair) for pair in zip(own, missed, strict=True)]
        ptr = np.cumsum([0, *map(len, labels)], dtype=np.int64)
        pool = cls(data, rank, ptr, np.concatenate(labels))
        if qrels is None:
            return pool
        unjudged = sum(document not in judged[query] for query, document in index)
        return replace(pool, notes=tuple(_notes(pool, answered, set(judged), unjudged)))

    def queries(self, chosen: AnyArray) -> RunPool:
        """Return the pool of some queries, by a mask or ascending positions."""
        kept, sizes = np.zeros(self.data.n_queries, dtype=bool), np.diff(self.judged_ptr)
        kept[chosen] = True
        ptr = np.cumsum([0, *sizes[kept]], dtype=np.int64)
        labels, rank = self.judged_labels[np.repeat(kept, sizes)], np.repeat(kept, self._sizes)
        return RunPool(self.data.queries[kept], self.rank[rank], ptr, labels, self.notes)

    def scaled(self, scaler: str, constant: int | tuple[int, ...] = 60) -> FloatArray:
        """Return a normalised score per document and run; 0 where a run lacks the document.

        Parameters
        ----------
        scaler : str
            Within each query and over the documents that the run has: ``"query-minmax"`` from the
            lowest score, 0, to the highest, 1 (1 if all are equal); ``"query-standard"`` mean 0
            and standard deviation 1, and the lowest value for documents that the run lacks;
            ``"query-rank"`` in even steps from 1 at the top down to 0 for those it lacks;
            ``"query-reciprocal-rank"``
            (constant + 1) / (constant + rank); ``"query-qdrant-rank"`` constant / (constant +
            rank), which is Qdrant's 1 / (rank / weight + k − 1) with k = 2.
        constant : int, or one per run
            The constant of reciprocal ranks.
        """
        has = self.rank > 0
        X, starts = self.data.X, self.data.query_ptr[:-1]
        sizes = self._sizes

        def per_query(function: Any, values: FloatArray) -> FloatArray:
            return np.repeat(function.reduceat(values, starts, axis=0), sizes, axis=0)

        if scaler in (QDRANT, "query-reciprocal-rank"):
            own = np.array(constant, dtype=np.float64)
            return np.where(has, (own + (scaler != QDRANT)) / (own + self.rank), 0.0)
        count = per_query(np.add, has.astype(np.float64))
        n = np.maximum(count, 1.0)
        if scaler == "query-rank":
            return np.where(has, 1.0 - (self.rank - 1.0) / n, 0.0)
        low = per_query(np.minimum, np.where(has, X, np.inf))
        high = per_query(np.maximum, np.where(has, X, -np.inf))
        with np.errstate(invalid="ignore", divide="ignore"):
            if scaler == "query-minmax":
                share = np.where(high > low, (X / 2 - low / 2) / (high / 2 - low / 2), 1.0)
                return np.where(has, share, 0.0)
            if scaler == "query-standard":
                middle = np.where(has, X, 0.0)
                centred = np.where(has, X - per_query(np.add, middle) / n, 0.0)
                spread = np.sqrt(per_query(np.add, centred**2) / n)
                z = np.where(spread > 0, centred / spread, 0.0)
                floor = per_query(np.minimum, np.where(has, z, np.inf))
                return np.where(has, z, np.where(count > 0, floor, 0.0))
        raise InputError(f"scaler={scaler!r} is not known: choose from {', '.join(SCALERS)}")

    @property
    def _sizes(self) -> IntArray:
        return np.diff(self.data.query_ptr)


def as_run(run: Any, name: str) -> Run:
    """Return the run of a path, or of a table with the columns qid, doc_id and score."""
    if isinstance(run, (str, os.PathLike)):
        return load_run(run)
    return run if isinstance(run, Run) else Run(*_columns(run, "score", f"the run {name!r}"), name)


def as_qrels(qrels: Any) -> Qrels:
    """Return the judgments of a path, or of a table with the columns qid, doc_id and label."""
    if isinstance(qrels, (str, os.PathLike)):
        from leanrank.data.logs.judgments import read_judgments

        return read_judgments(qrels)
    return qrels if isinstance(qrels, Qrels) else Qrels(*_columns(qrels, "label", "the judgments"))


def _columns(table: Any, numeric: str, where: str) -> tuple[Any, Any, Any]:
    try:
        return table["qid"], table["doc_id"], table[numeric]
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise InputError(
            f"{where} is a {type(table).__name__} without the columns qid, doc_id, {numeric}: give "
            "such a table, or the path of a file"
        ) from error


def _ranks(qid: AnyArray, doc_id: AnyArray, score: FloatArray) -> IntArray:
    """Return the rank of each document in its query, from 1."""
    by_id = np.argsort(doc_id, kind="stable")[::-1]
    _, query, sizes = np.unique(qid, return_inverse=True, return_counts=True)
    order = by_id[np.lexsort((-score[by_id], query[by_id]))]
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(1, len(order) + 1) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return ranks


def _notes(pool: RunPool, answered: set[str], judged: set[str], n_unjudged: int) -> Iterator[str]:
    """Yield sentences on what was left out or assumed, and on runs that miss queries."""
    data, queries = pool.data, ("query", "queries")
    if n := len(answered - judged):
        yield f"{counted(n, *queries)} without judgments left out"
    if n := len(judged - answered):
        yield f"{counted(n, 'judged query', 'judged queries')} left out that no run answers"
    if n_unjudged:
        documents = counted(len(data), "retrieved document")
        yield f"{n_unjudged:,} of {documents} without a judgment count as label 0"
    if n_missed := int((pool.judged_labels > 0).sum() - (data.y > 0).sum()):
        documents = counted(n_missed, "relevant document")
        yield f"{documents} not retrieved by any run: no weights can find them"
    answers = (np.add.reduceat(pool.rank > 0, data.query_ptr[:-1], axis=0) > 0).sum(axis=0)
    for name, n in zip(data.feature_names or (), answers.tolist(), strict=True):
        if n < data.n_queries:
            yield f"the run {name!r} answers {n:,} of {counted(data.n_queries, *queries)}"
