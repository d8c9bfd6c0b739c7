"""TREC run and qrels files."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import numpy as np

from leanrank._display import printable
from leanrank._files import atomic_write
from leanrank._typing import AnyArray, FloatArray
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
    first: dict[str, int] = {}
    place = [first.setdefault(q, len(first)) for q in run.qid.tolist()]
    by_id = np.argsort(run.doc_id, kind="stable")[::-1]
    order = by_id[np.lexsort((-run.score[by_id], np.array(place, dtype=np.int64)[by_id]))]
    with atomic_write(path, "wb") as stream, compressed(stream, os.fsdecode(path)) as out:
        rank, before = 0, -1
        for row in order.tolist():
            rank = rank + 1 if place[row] == before else 1
            before = place[row]
            score = float(run.score[row])
            line = f"{run.qid[row]} Q0 {run.doc_id[row]} {rank} {score!r} {run.tag}\n"
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
    lengths = set()
    for name in ("qid", "doc_id", numeric):
        try:
            dtype = np.float64 if name == numeric else np.str_
            values = np.asarray(getattr(table, name)).astype(dtype)
        except (TypeError, ValueError) as error:
            raise InputError(f"{name} holds something that is not a number ({error})") from error
        if values.ndim != 1:
            raise InputError(f"{name} has {values.ndim} dimensions: give one value per row")
        lengths.add(len(values))
        object.__setattr__(table, name, values)
    if len(lengths) > 1:
        raise InputError(f"qid, doc_id and {numeric} differ in length: give one value per row each")
    wrong = np.flatnonzero(~np.isfinite(getattr(table, numeric)))
    if len(wrong):
        row = int(wrong[0])
        value = getattr(table, numeric)[row]
        raise InputError(f"{numeric} is {value} in row {row}: it must be a finite number")


def _size(table: Run | Qrels) -> str:
    queries, rows = len(set(table.qid.tolist())), len(table.qid)
    return f"{queries:,} quer{'y' if queries == 1 else 'ies'}, {rows:,} document{'s' * (rows != 1)}"


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
