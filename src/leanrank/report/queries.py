"""Queries of a report in detail: their documents, and the contributions to their scores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.model.curves import Line, Ramps, Steps
from leanrank.model.export.formula import in_units_of_data
from leanrank.model.model import Model
from leanrank.model.terms import Levels, Surface
from leanrank.plots.parts import brief, columns_seen, numbers
from leanrank.selection.study import Study

TOP = 10
"""Number of listed documents of a query."""

EXACT = 17
"""Digits of feature values and cuts, so that rounding moves no value across a threshold."""

MOST_LOOKED_INTO, MOST_CELLS = 120, 90_000
"""Largest numbers of queries and of feature values: half a megabyte, or three with all digits."""


def query_details(
    study: Study,
    models: Sequence[Model],
    queries: IntArray,
    baselines: Mapping[str, Mapping[str, FloatArray]],
) -> dict[str, Any]:
    """Return the documents of some queries, their features, and each model's scores and ranks.

    The page computes the contributions from feature values and weights, since storing them takes
    too much space. The order of the documents is stored, since rounded values could change it.

    Returns
    -------
    dict
        ``details``: one entry per query; ``columns``: the features of all models; ``scoring``: one
        entry per model.
    """
    data = study.validation
    models = [in_units_of_data(model) for model in models]  # as the charts show them
    union = np.unique(np.concatenate([model.indices for model in models]))
    looked_into = _most_telling(study, queries, baselines)
    specs = list(dict.fromkeys(_key(model) for model in models))
    most = max(1, MOST_CELLS // max(1, len(union) * len(specs) * 2 * TOP))
    looked_into = looked_into[: min(MOST_LOOKED_INTO, most)]
    part = data.queries[looked_into]
    orders = [_orders(model.predict(part), part.query_ptr) for model in models]
    features = [
        _feature_values([one for one in models if _key(one) == key], part, union) for key in specs
    ]
    digits = 4 if all(model.is_linear for model in models) else EXACT
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
                "names": [
                    f"document {row + 1}" if ids is None else str(ids[row])
                    for row in shown.tolist()
                ],
                "labels": numbers(part.y[start:stop][shown], 4),
                "values": [
                    [numbers(row, digits) for row in each[start:stop][shown].tolist()]
                    for each in features
                ],
                "orders": [[place[row] for row in order[number].tolist()] for order in orders],
            }
        )
    names = study.feature_names
    return {
        "details": details,
        "columns": [feature_name(at, names) for at in union.tolist()],
        "scoring": [
            {
                "matrix": specs.index(_key(model)),
                "names": model.term_names,
                "parts": _scoring(model, union),
            }
            for model in models
        ],
    }


def _most_telling(
    study: Study, queries: IntArray, baselines: Mapping[str, Mapping[str, FloatArray]]
) -> list[int]:
    """Return queries by the difference of the chosen model from the first baseline, both ways."""
    values = study.chosen.values[study.measure]
    other = next((each[study.measure] for each in baselines.values()), np.zeros(len(values)))
    gaps = (values - other)[queries]
    some = queries[~np.isnan(gaps)]
    by_gap = some[np.argsort(gaps[~np.isnan(gaps)], kind="stable")].tolist()
    # a loss, a win, the next loss, ...
    return [by_gap[-(at + 1) // 2] if at % 2 else by_gap[at // 2] for at in range(len(by_gap))]


def _orders(scores: FloatArray, query_ptr: IntArray) -> list[IntArray]:
    """Return the first documents of each query, best first."""
    each = np.split(scores, query_ptr[1:-1])
    return [np.argsort(-own, kind="stable")[:TOP] for own in each]


def _feature_values(models: Sequence[Model], data: RankingData, columns: IntArray) -> FloatArray:
    """Return the normalised features of models with one normaliser; NaN where missing."""
    curves = {at: curve for model in models for at, curve in model.curves.items()}
    every = {at: curves.get(at, Line(1.0)) for at in columns.tolist()}
    seen = columns_seen(models[0].replace(curves=every, surfaces={}), data)
    return np.column_stack([seen[at] for at in columns.tolist()])


def _scoring(model: Model, union: IntArray) -> list[dict[str, Any]]:
    """Return each term for the page, with the positions of its features."""
    parts = []
    for features, term in model.terms.items():
        values: dict[str, Any] = {"at": np.searchsorted(union, features).tolist()}
        if isinstance(term, Surface):
            values["knots"] = [numbers(side, EXACT) for side in (term.first, term.second)]
            values["values"] = [numbers(row, 7) for row in term.values]
            values["missing"] = numbers(term.missing, 7)
        elif isinstance(term, Line):
            values["weight"] = brief(term.weight, 7)
        elif isinstance(term, Levels):
            codes = range(len(term.levels)) if term.is_text else term.levels
            values |= {"levels": numbers(codes, EXACT), "values": numbers(term.values, 7)}
        elif isinstance(term, (Ramps, Steps)):
            values["ramps"] = isinstance(term, Ramps)
            values |= {"cuts": numbers(term.cuts, EXACT), "heights": numbers(term.heights, 7)}
        if not isinstance(term, Surface) and term.missing is not None:
            values["missing"] = brief(term.missing, 7)
        parts.append(values)
    return parts


def _key(model: Model) -> str:
    return json.dumps(model.normalizer, sort_keys=True, default=str)
