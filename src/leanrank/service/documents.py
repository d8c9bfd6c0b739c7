"""Documents of a user as the rows that a model reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leanrank._typing import BoolArray, FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.model import Levels, Model
from leanrank.model.alignment import Table


def documents_for(model: Model, data: Any, y: Any = None, qid: Any = None) -> RankingData:
    """Return the documents of a frame as a data set that a model scores by position.

    Texts become the positions of levels in the model. A data set is returned as it is.

    >>> from leanrank.model import Levels
    >>> model = Model(1, {0: Levels(("de", "en"), (1.0, 2.0))})
    >>> documents_for(model, np.array([["en"], ["fr"]], dtype=object)).X.tolist()
    [[1.0], [-1.0]]
    """
    documents: RankingData = data
    if not isinstance(data, RankingData):
        read = read_values(model, data)
        X = np.zeros((len(read), model.n_features))
        X[:, model.indices] = read
        documents = RankingData(X, y, qid)
    if len(documents) == 0:
        raise InputError("there are no documents: give at least one")
    return documents


def read_values(model: Model, data: Any) -> FloatArray:
    """Return the values of the features that a model reads, in the order of ``model.indices``."""
    matrix, columns = Table.of(data).take(model, model.indices)
    taken = matrix if columns is None else matrix[:, columns]
    dense = taken if isinstance(taken, np.ndarray) else taken.toarray()
    return np.asarray(dense, dtype=np.float64)


def shown_value(model: Model, feature: int, value: float) -> str:
    """Return the value of a feature as a person would write it.

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
    """Return which documents have a label; None if no query could be measured by them."""
    known = ~np.isnan(data.y)
    return known if known.any() and data.informative.any() else None


def names_of(data: RankingData, rows: Sequence[int]) -> list[str]:
    """Return what documents are called: their ids, or their rows."""
    ids = data.doc_ids
    return [f"row {row}" if ids is None else str(ids[row]) for row in rows]
