"""Documents as a model reads them, and what their scores are made of."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.data.clicks.click_log import ClickLog
from leanrank.data.ranking_data import RankingData
from leanrank.errors import DataWarning, InputError
from leanrank.model import Levels, Model
from leanrank.model.alignment import used_features
from leanrank.model.explain import Explanation


@dataclass(frozen=True)
class Ranking:
    """The documents of one query, best first.

    Attributes
    ----------
    model : Model
    query : object
    explanation : Explanation
        The contributions of every term.
    values : array of shape (documents, features read)
        The features in ``model.indices``; a text is the position of its level.
    labels : array
        NaN where a document has no label.
    documents : list of str
        Document ids, or rows of the data.
    order : array of int64
        The rows, best first.
    """

    model: Model
    query: Any
    explanation: Explanation
    values: FloatArray
    labels: FloatArray
    documents: list[str]
    order: IntArray

    @property
    def terms(self) -> list[int]:
        """The terms, sorted by how much they differ between the documents, largest first."""
        spread = self.explanation.contributions.std(axis=0)
        return np.argsort(-spread, kind="stable").tolist()

    def value(self, row: int, term: int) -> str:
        """Return the value of the feature of a term, or of both of a pair, as text."""
        features = list(self.model.terms)[term]
        at = np.searchsorted(self.model.indices, features)
        pairs = zip(features, self.values[row, at].tolist(), strict=True)
        return " × ".join(shown_value(self.model, feature, value) for feature, value in pairs)

    def find(self, word: str) -> int:
        """Return the row of a document: by its id, or by its rank."""
        if word in self.documents:
            return self.documents.index(word)
        if word.isdigit() and 1 <= int(word) <= len(self.order):
            return int(self.order[int(word) - 1])
        raise InputError(
            f"there is no document {word!r} in query {self.query}: give the id of a document, or "
            f"its rank from 1 to {len(self.order)}"
        )

    def parts(self, row: int) -> dict[str, dict[str, Any]]:
        """Return the value of each term of a document, and what it adds."""
        added = self.explanation.contributions[row].tolist()
        return {
            str(self.explanation.features[at]): {"value": self.value(row, at), "adds": added[at]}
            for at in self.terms
        }

    def why(self, above: int, below: int) -> list[dict[str, Any]]:
        """Return per term the values of two documents, what they add, and the difference."""
        first, second = self.parts(above), self.parts(below)
        return [
            {
                "term": name,
                "values": [first[name]["value"], second[name]["value"]],
                "adds": [first[name]["adds"], second[name]["adds"]],
                "difference": difference,
            }
            for name, difference in self.explanation.why(above, below).differences.items()
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        documents = [
            {
                "rank": rank,
                "document": self.documents[row],
                "label": None if np.isnan(self.labels[row]) else float(self.labels[row]),
                "score": float(self.explanation.scores[row]),
                "terms": self.parts(row),
            }
            for rank, row in enumerate(self.order.tolist(), 1)
        ]
        return {"query": str(self.query), "documents": documents}


def explain_query(model: Model, query: Any, data: Any, y: Any = None, qid: Any = None) -> Ranking:
    """Return the ranking of one query with the contributions of all terms.

    >>> from leanrank.data import RankingData
    >>> data = RankingData([[1.0, 4.0], [2.0, 1.0]], [0, 1], ["jazz", "jazz"])
    >>> ranking = explain_query(Model.from_coef([1.0, -0.5]), "jazz", data)
    >>> ranking.why(1, 0)[0]
    {'term': 'f2', 'values': ['1', '4'], 'adds': [-0.5, -2.0], 'difference': 1.5}
    """
    documents = documents_for(model, data, y, qid)
    found = np.flatnonzero(documents.query_ids.astype(str) == str(query))
    if len(found) == 0:
        some = ", ".join(map(str, documents.query_ids[:3].tolist()))
        raise InputError(f"there is no query {query!r} in the data: the first ones are {some}")
    part = documents.queries[found[:1]]
    explanation = model.explain(part)
    rows = range(*documents.query_ptr[found[0] : found[0] + 2].tolist())
    return Ranking(
        model, part.query_ids[0], explanation, used_features(model, part), part.y,
        names_of(documents, rows), explanation.ranked(0),
    )  # fmt: skip


def documents_for(model: Model, data: Any, y: Any = None, qid: Any = None) -> RankingData:
    """Return the documents of a frame as a data set in the order of the model's features.

    Texts become the positions of levels in the model. A data set is returned unchanged.

    >>> from leanrank.model import Levels
    >>> model = Model(1, {0: Levels(("de", "en"), (1.0, 2.0))})
    >>> documents_for(model, np.array([["en"], ["fr"]], dtype=object)).X.tolist()
    [[1.0], [-1.0]]
    """
    documents: RankingData = data
    if not isinstance(data, RankingData):
        read = used_features(model, data)
        X = np.zeros((len(read), model.n_features))
        X[:, model.indices] = read
        documents = RankingData(X, y, qid)
    if len(documents) == 0:
        raise InputError("there are no documents: give at least one")
    return documents


def shown_value(model: Model, feature: int, value: float) -> str:
    """Return the value of a feature as text.

    >>> shown_value(Model.from_coef([1.0]), 0, 0.25)
    '0.25'
    """
    curve = model.curves.get(feature)
    if np.isnan(value):
        return "missing"
    if isinstance(curve, Levels) and curve.is_text:
        known = 0 <= value < len(curve.levels)
        return str(curve.levels[int(value)]) if known else "another level"
    return f"{value:.4g}"


def judged_rows(data: RankingData) -> BoolArray | None:
    """Return which documents have a label; None if no query has two different labels."""
    known = ~np.isnan(data.y)
    return known if known.any() and data.informative.any() else None


def names_of(data: RankingData, rows: Sequence[int]) -> list[str]:
    """Return the ids of documents, or their rows if they have no ids."""
    ids = data.doc_ids
    return [f"row {row}" if ids is None else str(ids[row]) for row in rows]


def estimated_clicks(log: ClickLog, scores: FloatArray, notes: list[str], **policy: Any) -> Any:
    """Return the result of ``evaluate_policy``; its warnings are added to the notes."""
    from leanrank.online.offpolicy import evaluate_policy

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DataWarning)
        value = evaluate_policy(log, scores, **policy)
    notes += [str(each.message) for each in caught]
    return value
