"""Text collections with topics: one set of documents, one ranking task per topic."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._files import atomic_write
from leanrank._typing import AnyArray, Matrix
from leanrank.data.ranking_data import RankingData
from leanrank.errors import FileError, InputError, ParseError, check_choice


@dataclass(frozen=True, eq=False)
class TextCollection:
    """Documents as vectors of words, and the topics that each is about.

    Attributes
    ----------
    name : str
    X : CSR array, shape (documents, words)
        tf-idf weights, rows of length 1.
    Y : CSR array of bool, shape (documents, topics)
    topics : tuple of str
        The names of the columns of Y.
    words : tuple of str or None
        The names of the columns of X, when known.
    doc_ids : array of str
    part : array of str
        ``"train"``, ``"test"``, or ``""`` for documents outside of the usual split.
    """

    name: str
    X: Matrix
    Y: Matrix
    topics: tuple[str, ...]
    words: tuple[str, ...] | None
    doc_ids: AnyArray
    part: AnyArray

    def topic(self, name: str, part: str = "train") -> RankingData:
        """Return a topic as a ranking task: a single query, label 1 for documents about it.

        Parameters
        ----------
        name : str
            One of ``topics``.
        part : {"train", "test"}, default="train"
            Which documents.
        """
        if name not in self._columns:
            raise InputError(f"{self.name} has no topic {name!r}: see its attribute topics")
        check_choice("part", part, ("train", "test"))
        rows = self._rows[part]
        labels = self.Y[:, [self._columns[name]]].toarray().ravel()[rows]
        return RankingData(
            self._matrices[part],
            labels.astype(np.float64),
            np.full(len(rows), name),
            doc_ids=self.doc_ids[rows],
            feature_names=self.words,
        )

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {topic: column for column, topic in enumerate(self.topics)}

    @cached_property
    def _rows(self) -> dict[str, AnyArray]:
        return {part: np.flatnonzero(self.part == part) for part in ("train", "test")}

    @cached_property
    def _matrices(self) -> dict[str, Matrix]:
        """Keep X cut into parts: all topics share it."""
        return {part: self.X[rows] for part, rows in self._rows.items()}

    def __repr__(self) -> str:
        return (
            f"TextCollection {self.name}: {self.X.shape[0]:,} documents "
            f"({len(self._rows['train']):,} train, {len(self._rows['test']):,} test), "
            f"{self.X.shape[1]:,} words, {len(self.topics):,} topics"
        )


def load_reuters(path: Path, name: str = "Reuters-21578") -> TextCollection:
    """Load Reuters-21578 from one JSON object per line, in the ModApte split.

    Words are weighted by tf-idf with the document frequencies of the training documents.
    """
    from scipy.sparse import csr_array
    from sklearn.feature_extraction.text import TfidfVectorizer

    articles = list(_articles(path))
    used = {"TRAIN": "train", "TEST": "test"}
    part = np.array(
        [used.get(a["lewissplit"], "") if a["has_topics"] == "YES" else "" for a in articles]
    )
    texts = [f"{a['title']}\n{a['body']}" for a in articles]
    vectorizer = TfidfVectorizer()
    try:
        vectorizer.fit([text for text, where in zip(texts, part, strict=True) if where == "train"])
    except ValueError as error:
        raise FileError(f"{path}: holds no training articles with words") from error
    topics = sorted({topic for a in articles for topic in a["topics"]})
    column = {topic: at for at, topic in enumerate(topics)}
    rows = np.repeat(np.arange(len(articles)), [len(a["topics"]) for a in articles])
    columns = np.array([column[topic] for a in articles for topic in a["topics"]], dtype=np.int64)
    return TextCollection(
        name=name,
        X=csr_array(vectorizer.transform(texts)),
        Y=csr_array(
            (np.ones(len(rows), bool), (rows, columns)), shape=(len(articles), len(topics))
        ),
        topics=tuple(topics),
        words=tuple(vectorizer.get_feature_names_out()),
        doc_ids=np.array([str(a["id"]) for a in articles]),
        part=part,
    )


def load_rcv1(data_dir: Path, *, download: bool, name: str = "RCV1") -> TextCollection:
    """Load RCV1 through scikit-learn, which knows where it is and checks it."""
    from scipy.sparse import csr_array
    from sklearn.datasets import fetch_rcv1

    try:
        bunch = fetch_rcv1(data_home=data_dir, download_if_missing=download)
    except OSError as error:
        reason = getattr(error, "reason", None) or error
        raise FileError(
            f"{name} is not in {data_dir} and cannot be downloaded ({reason}): run "
            f"sklearn.datasets.fetch_rcv1(data_home={str(data_dir)!r}) where there is a network"
        ) from error
    n_train = 23_149  # the first documents are the training part of LYRL2004
    part = np.full(bunch.data.shape[0], "test", dtype="U5")
    part[:n_train] = "train"
    return TextCollection(
        name=name,
        X=csr_array(bunch.data),
        Y=csr_array(bunch.target.astype(bool)),
        topics=tuple(map(str, bunch.target_names)),
        words=None,
        doc_ids=bunch.sample_id.astype(str),
        part=part,
    )


def convert_reuters(sgml_files: Iterable[Path], target: Path) -> None:
    """Rewrite the SGML files that Reuters-21578 is published in as one JSON object per line."""
    with atomic_write(target) as stream:
        for file in sorted(sgml_files):
            for found in _ARTICLE.finditer(file.read_text(encoding="latin-1")):
                stream.write(json.dumps(_article(*found.groups()), ensure_ascii=False) + "\n")


_ARTICLE = re.compile(r"<REUTERS\b([^>]*)>(.*?)</REUTERS>", re.DOTALL)
_NOT_TEXT = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def _article(head: str, content: str) -> dict[str, Any]:
    attributes = dict(re.findall(r'(\w+)="([^"]*)"', head))
    topics = re.search(r"<TOPICS>(.*?)</TOPICS>", content, re.DOTALL)
    text = re.search(r"<TEXT[^>]*>(.*?)</TEXT>", content, re.DOTALL)
    inside = text.group(1) if text else ""
    body = _element("BODY", inside)
    if not body and "<TITLE>" not in inside:  # an unprocessed article is all text
        body = _plain(inside)
    return {
        "id": int(attributes["NEWID"]),
        "lewissplit": attributes["LEWISSPLIT"],
        "has_topics": attributes["TOPICS"],
        "topics": re.findall(r"<D>(.*?)</D>", topics.group(1)) if topics else [],
        "title": _element("TITLE", inside),
        "body": body,
    }


def _element(name: str, text: str) -> str:
    found = re.search(rf"<{name}>(.*?)</{name}>", text, re.DOTALL)
    return _plain(found.group(1)) if found else ""


def _plain(text: str) -> str:
    return " ".join(_NOT_TEXT.sub(" ", html.unescape(text)).split())


def _articles(path: Path) -> Iterator[dict[str, Any]]:
    kinds = {"lewissplit": str, "has_topics": str, "topics": list, "title": str, "body": str}
    with open(path, encoding="utf-8") as stream:
        for number, line in enumerate(stream, 1):
            try:
                article = json.loads(line)
                wrong = [key for key, kind in kinds.items() if not isinstance(article[key], kind)]
                article["id"]
            except (ValueError, KeyError, TypeError) as error:
                raise ParseError(
                    f"not an article ({type(error).__name__}: {error}): a JSON object with id, "
                    f"{', '.join(kinds)} is expected",
                    path=str(path),
                    line=number,
                ) from error
            if wrong:
                raise ParseError(f"{wrong[0]} has the wrong type", path=str(path), line=number)
            yield article
