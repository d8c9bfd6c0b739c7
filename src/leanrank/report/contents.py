"""The contents of a report, as plain values for the script of the page."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from leanrank._files import atomic_write
from leanrank._typing import FloatArray, IntArray
from leanrank._version import __version__
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.metrics.judge import better_sign
from leanrank.plots import charts
from leanrank.plots.curve_charts import LAYERS, ROOM, curve_parts, heights, one_curve
from leanrank.plots.parts import (
    alt,
    brief,
    feature_rows,
    finished,
    front_models,
    numbers,
    summary,
    theme,
)
from leanrank.plots.term_charts import level_parts, one_table, surface_panels, surface_parts
from leanrank.rankers.inputs import as_data
from leanrank.report.data_checks import check_data
from leanrank.report.page import make_page, today
from leanrank.report.queries import query_details
from leanrank.report.studies import fit_baselines, is_on_path, known_path, measure_baselines
from leanrank.selection.candidate import Candidate
from leanrank.selection.compare import head
from leanrank.selection.study import Study
from leanrank.selection.tuning import with_columns_of

MOST_MODELS, MOST_QUERIES = 40, 2000
"""Largest numbers of models of the front and of queries; of more, evenly spaced ones are shown."""

LISTED_FEATURES = 60
MOST_GROUPS = 8
MOST_CURVES = 12
MOST_PAIRS = 4
_FILL = "container"
Values = Mapping[str, FloatArray]


def write_report(
    study: Study,
    path: str | os.PathLike[str],
    *,
    test: Any = None,
    title: str | None = None,
    command: str | None = None,
    files: Mapping[str, str] | None = None,
) -> None:
    """Write a study as one HTML file that opens from disk.

    It compares the chosen model with baselines, and shows the accuracy-sparsity front with its
    models, coefficient paths, features, single queries with the contributions to their scores, and
    problems of the data. It loads nothing from a network, and shows every name as text.

    Parameters
    ----------
    study : Study
        From ``leanrank.tune``, or ``study_of_model`` for an existing model.
    path : path
        Where to write; ``"-"`` is standard output.
    test : RankingData, data frame or (X, y, qid), optional
        Held-out data on which the models of the front and the baselines are measured.
    title : str, optional
    command : str, optional
        The command that made the page, shown at its end.
    files : mapping of str to str, optional
        The files of "training", "validation" and "test" data.
    """
    page = make_page(report_contents(study, test=test, title=title, command=command, files=files))
    with atomic_write(path) as stream:
        stream.write(page)


def report_contents(
    study: Study,
    *,
    test: Any = None,
    title: str | None = None,
    command: str | None = None,
    files: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Return the contents of a report; parameters are those of ``write_report``."""
    models = _shown_models(study)
    test = with_columns_of(study.training, as_data(test, "test"), "test")
    split, measure = study.split, study.measure
    measures = study.measures or (measure,)
    baselines = study.baselines or measure_baselines(split, measures)
    on_test: dict[str, Values] = {}
    if test is not None:
        for name, one in fit_baselines(split).items():
            on_test[name] = split.judge.per_query(test, one.predict(test), measures)
    against = on_test or baselines
    path = known_path(study)
    queries = _spread(study.validation.n_queries, MOST_QUERIES)
    details = query_details(study, [one.model for one in models], queries, baselines)
    entries: list[dict[str, Any]] = []
    densities: dict[str, Any] = {}
    for one in models:
        values, tested = one.values, None
        if test is not None:
            values = split.judge.per_query(test, one.model.predict(test), measures)
            tested = _headline(values)
        entry = _model_entry(one, study, queries, densities)
        on_path = path is not None and is_on_path(one, study.chosen)
        entry |= {"test": tested, "alpha": one.parameters["alpha"] if on_path else None}
        entry["against"] = {
            name: summary(values[measure] - theirs[measure])
            for name, theirs in against.items()
            if measure in theirs
        }
        entries.append(entry)
    judging = {"headline": study.chosen.values[measure], "judged": study.chosen.judged(measure)}
    if test is not None:
        judging["test"] = values[measure]
    return {
        "title": title or "Ranking report",
        "made": {"version": __version__, "date": today(), "command": command},
        "measure": measure,
        "measures": [name for name in measures if name in study.chosen.values],
        "titles": {name: head(name) for name in measures},
        "higher": {name: better_sign(name) > 0 for name in measures},
        "named": study.feature_names is not None,
        "convention": study.convention,
        "judged": study.judged_on.replace(measure, head(measure)),
        "part": "cross-validation" if study.validation is study.training else "validation",
        "chosen": next(at for at, one in enumerate(models) if one is study.chosen),
        "n_candidates": len(study.candidates),
        "models": entries,
        "baselines": [
            {
                "name": name,
                "headline": _headline(each),
                "test": _headline(on_test[name]) if name in on_test else None,
                "values": numbers(each[measure][queries], 4),
            }
            for name, each in baselines.items()
            if measure in each
        ],
        # queries that count, and queries whose documents all have one label
        "n_queries": {
            key: [int(np.sum(~np.isnan(each))), int(np.sum(np.isnan(each)))]
            for key, each in judging.items()
        },
        "queries": [
            {"id": str(study.validation.query_ids[at]), "position": at} for at in queries.tolist()
        ],
        **details,
        "data": _data_summary(study, test, files or {}),
        "findings": [
            asdict(one) | {"features": list(one.features), "grave": one.grave}
            for one in check_data(study.training, study.validation, measure=measure)
        ],
        "stability": _stability(study),
        "densities": densities,
        "charts": _charts(study, models, baselines, queries, path),
        "themes": {"light": theme(), "dark": theme(dark=True)},
    }


def _shown_models(study: Study) -> list[Candidate]:
    """Return the front with the chosen model; of a long front, evenly spaced models."""
    models = front_models(study)
    at = next(at for at, one in enumerate(models) if one is study.chosen)
    if len(models) <= MOST_MODELS:
        return models
    return [models[k] for k in {*_spread(len(models), MOST_MODELS - 1).tolist(), at}]


def _spread(n: int, most: int) -> IntArray:
    """Return all positions, or ``most`` evenly spaced ones."""
    return np.arange(n) if n <= most else np.unique(np.linspace(0, n - 1, most).astype(int))


def _model_entry(
    one: Candidate, study: Study, queries: IntArray, densities: dict[str, Any]
) -> dict[str, Any]:
    rows = feature_rows(one.model, study.validation, stability=study.stability, costs=study.costs)
    score, *interval = summary(one.judged(study.measure))
    return {
        "name": one.name,
        "features": one.n_features,
        "of": one.model.n_features,
        "cost": None if study.costs is None else brief(one.cost, 6),
        "kind": "linear" if one.model.is_linear else "curves",
        "curves": _terms(one, study, densities),
        "score": score,
        "interval": interval,
        "headline": _headline(one.values),
        "values": numbers(one.values[study.measure][queries], 4),
        "rows": rows[:LISTED_FEATURES],
    }


def _terms(one: Candidate, study: Study, densities: dict[str, Any]) -> dict[str, Any] | None:
    """Return the charts of the terms of a model; densities, which models share, go apart."""
    if one.model.is_linear:
        return None
    draws = study.draws if one is study.chosen else ()
    parts = curve_parts(one.model, study.training, draws, most=MOST_CURVES)
    ends = [brief(end) for end in heights(parts)]
    for part in parts:
        densities[str(part["index"])] = part["rows"].pop("density")
        del part["rows"]["documents"]
    charts = {
        part["feature"]: one_table(part, _FILL)
        for part in level_parts(one.model, study.training, most=MOST_CURVES)
    }
    for part in surface_parts(one.model, study.training, most=MOST_PAIRS):
        charts |= surface_panels(part, _FILL)
    others = [
        {"title": name, "spec": _spec(finished(chart, _FILL, chart.height))}
        for name, chart in charts.items()
    ]
    drawn = len(parts) + len({chart["title"].partition(": ")[0] for chart in others})
    hidden = len(one.model.terms) - drawn
    return {"heights": ends, "parts": parts, "room": ROOM, "others": others, "hidden": hidden}


def _headline(values: Values) -> dict[str, list[float | None]]:
    """Return the mean of each measure and its interval."""
    return {name: summary(each) for name, each in values.items() if not np.isnan(each).all()}


def _data_summary(
    study: Study, test: RankingData | None, files: Mapping[str, str]
) -> list[dict[str, Any]]:
    own = None if study.validation is study.training else study.validation
    parts = (("training", study.training), ("validation", own), ("test", test))
    return [
        {"part": name, "file": files.get(name), **_sizes_and_levels(data)}
        for name, data in parts
        if data is not None
    ]


def _sizes_and_levels(data: RankingData) -> dict[str, Any]:
    sizes = np.diff(data.query_ptr) if data.n_queries else np.zeros(1, dtype=int)
    levels, counts = np.unique(data.y[~np.isnan(data.y)], return_counts=True)
    shares = [[f"{at:g}", brief(n / counts.sum())] for at, n in zip(levels, counts, strict=True)]
    return {
        "queries": data.n_queries,
        "documents": len(data),
        "features": data.n_features,
        "sizes": [int(sizes.min()), int(np.median(sizes)), int(sizes.max())],
        "informative": int(data.informative.sum()),
        "levels": shares if len(levels) <= 8 else [],
        "n_levels": len(levels),
    }


def _stability(study: Study) -> dict[str, Any] | None:
    """Return how often subsamples select the same features."""
    result = study.stability
    if result is None:
        return None
    groups = [
        {
            "features": [feature_name(at, study.feature_names) for at in group.features],
            "frequency": brief(group.frequency),
            "at_once": brief(group.at_once, 3),
        }
        for group in result.groups
        if len(group.features) > 1
    ]
    index, n_subsamples = brief(result.stability_index), result.n_subsamples
    return {"subsamples": n_subsamples, "index": index, "groups": groups[:MOST_GROUPS]}


def _charts(
    study: Study,
    models: Sequence[Candidate],
    baselines: Mapping[str, Values],
    queries: IntArray,
    path: Any,
) -> dict[str, Any]:
    one, measure, names = study.chosen, study.measure, study.feature_names
    about = {"stability": study.stability, "costs": study.costs}
    beside = next((each[measure] for each in baselines.values() if measure in each), None)
    shown: dict[str, Any] = {
        "front": charts.front(replace(study, baselines=baselines), models=models, width=_FILL),
        "features": charts.features(one.model, study.validation, **about, width=_FILL),
        "queries": None,
        "curve": None,
        "one_curve": None,
        "path": None if path is None else charts.coefficient_path(path, names, width=_FILL),
    }
    if beside is not None:
        values = one.values[measure][queries]
        shown["queries"] = charts.wins_and_losses(
            values, beside[queries], measure=measure, width=_FILL
        )
    if study.history and len(study.history) > 1:
        shown["curve"] = charts.learning_curve(study.history, width=_FILL)
    if not all(each.model.is_linear for each in models):
        shown["one_curve"] = _empty_curve()
    return {name: None if chart is None else _spec(chart) for name, chart in shown.items()}


def _empty_curve() -> Any:
    """Return an empty chart of a curve, which the page fills for each feature."""
    names = ("low_x", "high_x", "low_y", "high_y", "room")
    *ends, width = [alt.expr(name) for name in (*names[:4], "width - room")]
    rows: dict[str, Any] = {name: [] for name in LAYERS}
    chart = one_curve(rows, ends[:2], ends[2:], _FILL, 120, width)
    params = [alt.param(name=name, value=at % 2) for at, name in enumerate(names)]
    return finished(chart, _FILL, 120).add_params(*params)


def _spec(chart: Any) -> dict[str, Any]:
    """Return a chart without colours, which the page sets, light or dark."""
    spec = dict(chart.to_dict())
    spec.pop("config", None)
    return spec
