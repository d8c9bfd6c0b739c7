"""TREC run and qrels files, and the runs of several retrievers side by side."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._display import printable
from leanrank._files import atomic_write
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.grouping import group_rows, one_dimensional, one_per_row
from leanrank.data.ranking_data import RankingData, counted
from leanrank.data.sources import compressed, parse_number, shown_name, text_lines
from leanrank.errors import InputError, ParseError


@dataclass(frozen=True)
class Run:
    """What a system retrieved: one row per document and query, in any order.

    >>> Run(["q1", "q1"], ["d3", "d7"], [2.5, 1.0], tag="bm25")
    Run: 1 query, 2 documents, tag bm25
    """

    qid: AnyArray
    doc_id: AnyArray
    score: FloatArray
    tag: str = "leanrank"

    def __post_init__(self) -> None:
        _set_columns(self, "score")

    def __repr__(self) -> str:
        return printable(f"Run: {_size(self)}, tag {self.tag}")


@dataclass(frozen=True)
class Qrels:
    """What was judged: one row per document and query, in any order.

    >>> Qrels(["q1", "q1"], ["d3", "d7"], [1, 0])
    Qrels: 1 query, 2 documents
    """

    qid: AnyArray
    doc_id: AnyArray
    label: FloatArray

    def __post_init__(self) -> None:
        _set_columns(self, "label")

    def __repr__(self) -> str:
        return f"Qrels: {_size(self)}"


def load_run(path: str | os.PathLike[str]) -> Run:
    """Read a run: ``query Q0 document rank score tag``, one document per line.

    The rank is not used, as in trec_eval: the scores decide. ``-`` reads standard input;
    compression is recognised.
    """
    qids, docs, scores, tags = _read(path, "query Q0 document rank score tag", "score")
    return Run(qids, docs, scores, tags[-1] if tags else "leanrank")


def load_qrels(path: str | os.PathLike[str]) -> Qrels:
    """Read judgements: ``query iteration document label``, one document per line."""
    qids, docs, labels, _ = _read(path, "query iteration document label", "label")
    return Qrels(qids, docs, labels)


def dump_run(run: Run, path: str | os.PathLike[str]) -> None:
    """Write a run, each query's documents by falling score, and by document id where scores tie.

    Scores are written so that they read back to the same bits. The file appears whole or not at
    all.
    """
    _check_tokens(run.qid, "query")
    _check_tokens(run.doc_id, "document id")
    _check_tokens(np.array([run.tag]), "tag")
    first = {qid: place for place, qid in enumerate(dict.fromkeys(run.qid.tolist()))}
    rank = _ranks(run.qid, run.doc_id, run.score)
    place = np.array([first[qid] for qid in run.qid.tolist()], dtype=np.int64)
    order = np.lexsort((rank, place))
    with atomic_write(path, "wb") as stream, compressed(stream, os.fsdecode(path)) as out:
        for row in order.tolist():
            score = float(run.score[row])
            line = f"{run.qid[row]} Q0 {run.doc_id[row]} {rank[row]} {score!r} {run.tag}\n"
            out.write(line.encode())


def dump_qrels(qrels: Qrels, path: str | os.PathLike[str]) -> None:
    """Write judgements in the order given; whole labels are written without a decimal point."""
    _check_tokens(qrels.qid, "query")
    _check_tokens(qrels.doc_id, "document id")
    with atomic_write(path, "wb") as stream, compressed(stream, os.fsdecode(path)) as out:
        for qid, doc, label in zip(
            qrels.qid.tolist(), qrels.doc_id.tolist(), qrels.label.tolist(), strict=True
        ):
            shown = int(label) if label.is_integer() else repr(label)
            out.write(f"{qid} 0 {doc} {shown}\n".encode())


def _set_columns(table: Run | Qrels, numeric: str) -> None:
    """Check the columns against each other; identifiers become text."""
    qid = np.asarray(table.qid).astype(np.str_)
    n_rows = len(qid)
    doc_id = one_dimensional(np.asarray(table.doc_id).astype(np.str_), "doc_id", n_rows)
    numbers = one_per_row(getattr(table, numeric), numeric, group_rows(None, n_rows), n_rows)
    for name, values in (("qid", qid), ("doc_id", doc_id), (numeric, numbers)):
        object.__setattr__(table, name, values)


def _size(table: Run | Qrels) -> str:
    queries = counted(len(set(table.qid.tolist())), "query", "queries")
    return f"{queries}, {counted(len(table.qid), 'document')}"


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


def _check_tokens(values: AnyArray, what: str) -> None:
    for value in dict.fromkeys(values.tolist()):
        if not value or not value.isprintable() or " " in value:
            raise InputError(
                f"the {what} {value!r} is empty or holds a blank or a control character"
            )


SCALERS = ("query-minmax", "query-standard", "query-rank", "query-reciprocal-rank")
"""What can be made of a run's scores, see ``RunPool.scaled``."""
QDRANT = "query-qdrant-rank"
"""What Qdrant makes of ranks, with a constant per run; learned for Qdrant only."""


@dataclass(frozen=True)
class RunPool:
    """The documents that any of several runs retrieved, with the score and the rank in each.

    Attributes
    ----------
    data : RankingData
        A row per document and query. X holds the scores, one column per run, NaN where the run
        lacks the document; y the labels, 0 for documents without a judgment.
    rank : array of int64, shape (documents, runs)
        The place in the run, counted from 1; 0 where the run lacks the document. Equal scores are
        ordered by document id, the greatest first, as TREC's tools do.
    judged_ptr, judged_labels : array
        The labels of all documents of each query that were retrieved or judged.
    notes : tuple of str
        What was left out or assumed, a sentence each.
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
        columns, unjudged_queries = [], set()
        for name, run in runs.items():
            pairs = list(zip(run.qid.tolist(), run.doc_id.tolist(), strict=True))
            if len(set(pairs)) < len(pairs):
                raise InputError(f"the run {name!r} lists a document twice for one query: keep one")
            kept = np.array([qrels is None or query in judged for query, _ in pairs], dtype=bool)
            unjudged_queries |= set(run.qid[~kept].tolist())
            at = [index.setdefault(pairs[i], len(index)) for i in np.flatnonzero(kept).tolist()]
            columns.append((kept, at))
        if not index:
            raise InputError("no run answers a query that was judged: compare the ids of queries")
        X = np.full((len(index), len(runs)), np.nan)
        rank = np.zeros(X.shape, dtype=np.int64)
        for j, (run, (kept, at)) in enumerate(zip(runs.values(), columns, strict=True)):
            X[at, j] = run.score[kept]
            rank[at, j] = _ranks(run.qid[kept], run.doc_id[kept], run.score[kept])
        qid, documents = (np.array([pair[at] for pair in index], np.str_) for at in (0, 1))
        labels = [judged.get(query, {}).get(document) for query, document in index]
        y = np.array([0.0 if label is None else label for label in labels])
        data = RankingData(X, y, qid, doc_ids=documents, feature_names=runs)
        rank = rank if data.order is None else rank[data.order]
        others = [
            [label for document, label in judged.get(q, {}).items() if (q, document) not in index]
            for q in data.query_ids.tolist()
        ]
        sizes = np.diff(data.query_ptr) + [len(each) for each in others]
        own = np.split(data.y, data.query_ptr[1:-1])
        every = [value for pair in zip(own, others, strict=True) for value in pair]
        ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
        notes = []
        if qrels is not None:
            lost = len(judged.keys() - set(data.query_ids.tolist()))
            notes = _notes(labels, others, len(unjudged_queries), lost, runs, rank, data)
        return cls(data, rank, ptr, np.concatenate(every).astype(np.float64), tuple(notes))

    def queries(self, chosen: AnyArray) -> RunPool:
        """Return the pool of some queries, by a mask or ascending positions."""
        numbers = np.arange(self.data.n_queries)[chosen]
        rows = np.repeat(np.isin(np.arange(self.data.n_queries), numbers), self._sizes)
        sizes = np.diff(self.judged_ptr)
        labels = np.repeat(np.isin(np.arange(len(sizes)), numbers), sizes)
        ptr = np.concatenate(([0], np.cumsum(sizes[numbers]))).astype(np.int64)
        picked = self.data.queries[numbers]
        return RunPool(picked, self.rank[rows], ptr, self.judged_labels[labels], self.notes)

    def scaled(self, scaler: str, constant: int | tuple[int, ...] = 60) -> FloatArray:
        """Return one comparable value per document and run; a document that a run lacks gets 0.

        Parameters
        ----------
        scaler : str
            Within each query and over the documents that the run has: ``"query-minmax"`` from the
            lowest score, 0, to the highest, 1 (1 if all are equal); ``"query-standard"`` mean 0
            and standard deviation 1, documents that the run lacks at its lowest; ``"query-rank"``
            evenly from 1 at the top down to 0 for those it lacks; ``"query-reciprocal-rank"``
            (constant + 1) / (constant + rank); ``"query-qdrant-rank"`` constant / (constant +
            rank), which is Qdrant's 1 / (rank / weight + k − 1) with k = 2.
        constant : int, or one per run
            Of reciprocal ranks.
        """
        has = self.rank > 0
        X, starts = self.data.X, self.data.query_ptr[:-1]
        sizes = self._sizes

        def per_query(function: Any, values: FloatArray) -> FloatArray:
            return np.repeat(function.reduceat(values, starts, axis=0), sizes, axis=0)

        if scaler == QDRANT:
            own = np.broadcast_to(np.array(constant, dtype=np.float64), self.rank.shape)
            return np.where(has, own / (own + self.rank), 0.0)
        if scaler == "query-reciprocal-rank":
            assert isinstance(constant, int)
            return np.where(has, (constant + 1.0) / (constant + self.rank), 0.0)
        count = per_query(np.add, has.astype(np.float64))
        if scaler == "query-rank":
            return np.where(has, 1.0 - (self.rank - 1.0) / np.maximum(count, 1.0), 0.0)
        low = per_query(np.minimum, np.where(has, X, np.inf))
        high = per_query(np.maximum, np.where(has, X, -np.inf))
        with np.errstate(invalid="ignore", divide="ignore"):
            if scaler == "query-minmax":
                share = np.where(high > low, (X / 2 - low / 2) / (high / 2 - low / 2), 1.0)
                return np.where(has, share, 0.0)
            if scaler == "query-standard":
                middle = np.where(has, X, 0.0)
                centred = np.where(has, X - per_query(np.add, middle) / np.maximum(count, 1.0), 0.0)
                spread = np.sqrt(per_query(np.add, centred**2) / np.maximum(count, 1.0))
                z = np.where(spread > 0, centred / spread, 0.0)
                floor = per_query(np.minimum, np.where(has, z, np.inf))
                return np.where(has, z, np.where(count > 0, floor, 0.0))
        raise InputError(f"scaler={scaler!r} is not known: choose from {', '.join(SCALERS)}")

    @property
    def _sizes(self) -> IntArray:
        return np.diff(self.data.query_ptr)


def as_run(run: Any, name: str) -> Run:
    """Make a run of a path or of a table with the columns qid, doc_id and score."""
    if isinstance(run, (str, os.PathLike)):
        return load_run(run)
    return run if isinstance(run, Run) else Run(*_columns(run, "score", f"the run {name!r}"), name)


def as_qrels(qrels: Any) -> Qrels:
    """Make judgments of a path or of a table with the columns qid, doc_id and label."""
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
    """Return the place of each document in its query's list, from 1."""
    if len(qid) == 0:
        return np.zeros(0, dtype=np.int64)
    by_id = np.argsort(doc_id, kind="stable")[::-1]
    _, query = np.unique(qid, return_inverse=True)
    order = by_id[np.lexsort((-score[by_id], query[by_id]))]
    sorted_query = query[order]
    starts = np.flatnonzero(np.concatenate(([True], sorted_query[1:] != sorted_query[:-1])))
    lengths = np.diff(np.append(starts, len(order)))
    ranks = np.empty(len(order), dtype=np.int64)
    ranks[order] = np.arange(len(order)) - np.repeat(starts, lengths) + 1
    return ranks


def _notes(
    labels: list[float | None],
    others: list[list[float]],
    n_unjudged: int,
    n_lost: int,
    runs: Mapping[str, Run],
    rank: IntArray,
    data: RankingData,
) -> list[str]:
    """Return what was left out or assumed, and the runs that do not answer every query."""
    unjudged = sum(label is None for label in labels)
    missed = sum(label > 0 for one in others for label in one)
    queries = counted(n_unjudged, "query", "queries")
    lost = counted(n_lost, "judged query", "judged queries")
    found = {
        f"{queries} without judgments left out": n_unjudged,
        f"{lost} left out that no run answers": n_lost,
        f"{unjudged:,} of {counted(len(labels), 'retrieved document')} without a judgment count as "
        "label 0": unjudged,
        f"{counted(missed, 'relevant document')} not retrieved by any run: no weights can find "
        "them": missed,
    }
    answers = (np.add.reduceat(rank > 0, data.query_ptr[:-1], axis=0) > 0).sum(axis=0)
    for name, n in zip(runs, answers.tolist(), strict=True):
        whole = counted(data.n_queries, "query", "queries")
        found[f"the run {name!r} answers {n:,} of {whole}"] = data.n_queries - n
    return [note for note, count in found.items() if count]
