"""The queries that a reader can look into: their documents, and what scores are made of."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData, column_values, feature_name
from leanrank.errors import InputError
from leanrank.model.curves import Line, Ramps, Steps
from leanrank.model.model import Model
from leanrank.model.terms import Levels
from leanrank.plots.numbers import brief, digits_along, numbers
from leanrank.report.studies import as_seen_by
from leanrank.selection.study import Study

TOP = 10
"""Documents of a query that are listed."""

MOST_LOOKED_INTO = 120


def query_details(
    study: Study,
    models: Sequence[Model],
    queries: IntArray,
    baselines: Mapping[str, Mapping[str, FloatArray]],
    max_cells: int,
) -> dict[str, Any]:
    """Return the documents of some queries, their features, and each model's scores and ranks.

    A model's contributions are computed on the page, from feature values and weights: they would be
    too many to write down. Its order of the documents is written down, since rounded values might
    not give the same.

    Returns
    -------
    dict
        ``details``: one entry per query shown; ``columns``: the features that some model uses;
        ``scoring``: one entry per model.
    """
    data = study.validation
    union = np.unique(np.concatenate([model.indices for model in models]))
    looked_into = _most_telling(study, queries, baselines)
    specs = list(dict.fromkeys(_key(model) for model in models))
    most = max(1, max_cells // max(1, len(union) * len(specs) * 2 * TOP))
    looked_into = looked_into[: min(MOST_LOOKED_INTO, most)]
    part = data.queries[looked_into]
    orders = [_orders(model.predict(part), part.query_ptr) for model in models]
    features = [
        _feature_values(next(m for m in models if _key(m) == key), part, union) for key in specs
    ]
    digits = [_digits(models, at) for at in union.tolist()]
    details = []
    for number, position in enumerate(looked_into):
        start, stop = part.query_ptr[number : number + 2].tolist()
        shown = np.unique(np.concatenate([order[number] for order in orders]))
        place = {row: at for at, row in enumerate(shown.tolist())}
        ids = None if part.doc_ids is None else part.doc_ids[start:stop]
        details.append(
            {
                "position": position,
                "documents": stop - start,
                "names": [f"document {row + 1}" if ids is None else str(ids[row])
                          for row in shown.tolist()],
                "labels": numbers(part.y[start:stop][shown], 4),
                "values": [
                    [list(map(brief, row, digits)) for row in each[start:stop][shown].tolist()]
                    for each in features
                ],
                "orders": [[place[row] for row in order[number].tolist()] for order in orders],
            }
        )  # fmt: skip
    names = study.feature_names
    return {
        "details": details,
        "columns": [feature_name(at, names) for at in union.tolist()],
        "scoring": [
            {"matrix": specs.index(_key(model)), "parts": _scoring(model, union, digits)}
            for model in models
        ],
    }


def _most_telling(
    study: Study, queries: IntArray, baselines: Mapping[str, Mapping[str, FloatArray]]
) -> list[int]:
    """Order queries by how much the chosen model differs from the first baseline, both ways."""
    values = study.chosen.values[study.measure]
    other = next((each[study.measure] for each in baselines.values()), np.zeros(len(values)))
    gaps = (values - other)[queries]
    some = queries[~np.isnan(gaps)]
    by_gap = some[np.argsort(gaps[~np.isnan(gaps)], kind="stable")].tolist()
    ordered: list[int] = []
    while by_gap:  # a loss, a win, the next loss, ...
        ordered.append(by_gap.pop(0))
        if by_gap:
            ordered.append(by_gap.pop())
    return ordered


def _orders(scores: FloatArray, query_ptr: IntArray) -> list[IntArray]:
    """Return the first documents of each query, best first."""
    return [
        np.argsort(-scores[start:stop], kind="stable")[:TOP]
        for start, stop in pairwise(query_ptr.tolist())
    ]


def _feature_values(model: Model, data: RankingData, columns: IntArray) -> FloatArray:
    """Return features as a model sees them, after its normaliser; NaN where one is missing."""
    X = as_seen_by(model, data).X
    return np.column_stack([column_values(X, at) for at in columns.tolist()]).astype(np.float64)


def _digits(models: Sequence[Model], feature: int) -> int:
    """Return to how many digits values of a feature are written, and the cuts of its curves.

    A value must fall on the right side of every threshold, and stand between two knots where it
    does.
    """
    digits = 4 if all(model.is_linear for model in models) else 9
    for model in models:
        curve = model.curves.get(feature)
        if isinstance(curve, (Ramps, Steps)):
            gaps = np.diff(curve.cuts) if isinstance(curve, Ramps) else np.zeros(1)
            largest = max(map(abs, curve.cuts), default=0.0)
            digits = max(digits, digits_along(largest, float(gaps.min()), 9))
    return digits


def _scoring(model: Model, union: IntArray, digits: Sequence[int]) -> list[dict[str, Any]]:
    """Return the curve of each feature, with its place among the columns."""
    if model.surfaces or any(isinstance(curve, Levels) for curve in model.curves.values()):
        raise InputError(
            "the page of a report computes curves only, and a model has categories or pairs of "
            "features: leave that out of the study"
        )
    parts = []
    for feature, curve in model.curves.items():
        at = int(np.searchsorted(union, feature))
        values: dict[str, Any] = {"at": at}
        if isinstance(curve, Line):
            values["weight"] = brief(curve.weight, 7)
        elif isinstance(curve, (Ramps, Steps)):
            values["ramps"] = isinstance(curve, Ramps)
            values |= {
                "cuts": numbers(curve.cuts, digits[at]),
                "heights": numbers(curve.heights, 7),
            }
        if curve.missing is not None:
            values["missing"] = brief(curve.missing, 7)
        parts.append(values)
    return parts


def _key(model: Model) -> str:
    return json.dumps(model.normalizer, sort_keys=True, default=str)
