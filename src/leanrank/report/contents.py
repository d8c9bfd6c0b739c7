"""Everything that a report shows, as plain values for the page's script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank._version import __version__
from leanrank.data.ranking_data import RankingData, counted, feature_name
from leanrank.metrics.judge import better_sign, mean_of
from leanrank.plots import charts
from leanrank.plots.colours import theme
from leanrank.plots.curve_charts import LAYERS, ROOM, curve_parts, heights, one_curve
from leanrank.plots.numbers import brief, figures, numbers
from leanrank.plots.rows import feature_rows, front_models
from leanrank.report.baselines import fit_baselines, measure_baselines
from leanrank.report.data_checks import check_data
from leanrank.report.paths import find_paths, path_of
from leanrank.report.queries import query_details
from leanrank.selection.candidate import Candidate, bootstrap_interval
from leanrank.selection.engine import Split
from leanrank.selection.study import Study
from leanrank.selection.tables import head

LISTED_FEATURES = 60
MOST_GROUPS = 8
MOST_CURVES = 12
_FILL = "container"


def report_contents(
    study: Study,
    *,
    test: RankingData | None = None,
    title: str | None = None,
    max_models: int = 40,
    max_queries: int = 2000,
    max_cells: int = 90_000,
) -> dict[str, Any]:
    """Gather what a report of a study shows.

    Parameters
    ----------
    study : Study
    test : RankingData, optional
        Measured for the models of the front and for the baselines, and for nothing else.
    title : str, optional
    max_models, max_queries : int
        The front and the queries are thinned out evenly beyond these.
    max_cells : int
        Feature values on the page; the default is about half a megabyte.
    """
    models = _shown_models(study, max_models)
    split = study.split
    measures = study.measures or (study.measure,)
    baselines = study.baselines or measure_baselines(split, measures)
    on_test = {}
    if test is not None:
        for name, one in fit_baselines(split).items():
            on_test[name] = split.judge.per_query(test, one.predict(test), measures)
    against = on_test or baselines
    paths = find_paths(study)
    queries = _spread_queries(study.validation, max_queries)
    details = query_details(study, [one.model for one in models], queries, baselines, max_cells)
    return {
        "title": title or "Ranking report",
        "version": __version__,
        "measure": study.measure,
        "measures": [name for name in measures if name in study.chosen.values],
        "titles": {name: head(name) for name in measures},
        "higher": {name: better_sign(name) > 0 for name in measures},
        "named": study.feature_names is not None,
        "convention": study.convention,
        "judged": _judged(study),
        "part": "cross-validation" if study.validation is study.training else "validation",
        "chosen": next(at for at, one in enumerate(models) if one is study.chosen),
        "n_candidates": len(study.candidates),
        "models": [
            _model_entry(one, study, split, test, measures, queries, path_of(one, paths), against)
            for one in models
        ],
        "baselines": [
            {
                "name": name,
                "headline": _headline(values),
                "test": _headline(on_test[name]) if name in on_test else None,
                "values": numbers(values[study.measure][queries], 4),
            }
            for name, values in baselines.items()
            if study.measure in values
        ],
        "n_queries": {
            "headline": study.validation.n_queries,
            "test": None if test is None else test.n_queries,
            "judged": len(study.chosen.judged(study.measure)),
        },
        "queries": [
            {"id": str(study.validation.query_ids[at]), "position": at} for at in queries.tolist()
        ],
        **details,
        "data": _data_summary(study, test),
        "findings": [
            {"kind": one.kind, "grave": one.grave, "title": one.title, "text": one.text}
            for one in check_data(study.training, study.validation, measure=study.measure)
        ],
        "stability": _stability(study),
        "densities": _densities(study, models),
        "scaled": None if study.normalizer is None else study.normalizer.kind,
        "charts": _charts(study, models, baselines, queries, paths),
        "themes": {"light": theme(), "dark": theme(dark=True)},
    }


def _shown_models(study: Study, most: int) -> list[Candidate]:
    """Return the front, thinned out if it is long, with the chosen model among it."""
    models = front_models(study)
    if len(models) <= most:
        return models
    at = next(at for at, one in enumerate(models) if one is study.chosen)
    kept = {*np.linspace(0, len(models) - 1, most - 1).astype(int).tolist(), at}
    return [models[k] for k in sorted(kept)]


def _model_entry(
    one: Candidate,
    study: Study,
    split: Split,
    test: RankingData | None,
    measures: tuple[str, ...],
    queries: Any,
    path: str | None,
    baselines: Mapping[str, Mapping[str, FloatArray]],
) -> dict[str, Any]:
    rows = feature_rows(
        one.model, study.validation, stability=study.stability, costs=study.costs
    )  # fmt: skip
    score, *interval = figures(
        one.score(study.measure), bootstrap_interval(one.judged(study.measure))
    )
    values, on_test = one.values, None
    if test is not None:
        values = split.judge.per_query(test, one.model.predict(test), measures)
        on_test = _headline(values)
    return {
        "name": one.name,
        "algorithm": one.algorithm,
        "features": one.n_features,
        "of": one.model.n_features,
        "cost": None if study.costs is None else study.costs.show(one.cost),
        "kind": "linear" if one.model.is_linear else "curves",
        "curves": _curves(one, study),
        "score": score,
        "interval": interval,
        "headline": _headline(one.values),
        "test": on_test,
        "against": {
            name: _difference(values[study.measure], theirs[study.measure])
            for name, theirs in baselines.items()
            if study.measure in theirs
        },
        "values": numbers(one.values[study.measure][queries], 4),
        "rows": rows[:LISTED_FEATURES],
        "path": path,
        "alpha": one.parameters.get("alpha") if path is not None else None,
    }


def _curves(one: Candidate, study: Study) -> dict[str, Any] | None:
    """Return the charts of the curves of a model, the densities apart: models share those."""
    if one.model.is_linear:
        return None
    draws = study.draws if one is study.chosen else ()
    parts = curve_parts(one.model, study.training, draws, most=MOST_CURVES)
    ends = [brief(end) for end in heights(parts)]
    for part in parts:
        del part["rows"]["density"], part["rows"]["name"], part["rows"]["documents"]
    return {"heights": ends, "parts": parts, "room": ROOM}


def _densities(study: Study, models: list[Candidate]) -> dict[str, Any]:
    """Return the bars of every feature of which some model has a curve."""
    found: dict[str, Any] = {}
    for one in models:
        if not one.model.is_linear:
            for part in curve_parts(one.model, study.training, most=MOST_CURVES):
                found[str(part["index"])] = part["rows"]["density"]
    return found


def _headline(values: Mapping[str, FloatArray]) -> dict[str, list[float | None]]:
    """Return the mean of each measure and its interval."""
    return {
        name: figures(mean_of(each), bootstrap_interval(each))
        for name, each in values.items()
        if not np.isnan(each).all()
    }


def _difference(ours: FloatArray, theirs: FloatArray) -> list[float | None]:
    """Return the mean of a paired difference and its interval."""
    paired = ours - theirs
    return figures(mean_of(paired), bootstrap_interval(paired))


def _judged(study: Study) -> str:
    """Describe the queries on which the front is judged, and other models beside the chosen one."""
    said = [_judged_by(study)]
    if study.leanness is not None:
        said.append(f"The best of any size, {study.leanness}.")
    if study.beside_default is not None:
        said.append(f"LeanRanker's best, {study.beside_default}.")
    return " ".join(said).replace(study.measure, head(study.measure))


def _judged_by(study: Study) -> str:
    n_validation = counted(study.validation.n_queries, "query", "queries")
    if study.measure in study.chosen.training_values:
        n_training = counted(study.training.n_queries, "training query", "training queries")
        return (
            f"Judged on {n_validation} of the validation part and on {n_training}, each of these "
            "by a model that was fitted without it."
        )
    if study.validation is study.training:
        return f"Judged on {n_validation}, each by a model that was fitted without it."
    return f"Judged on {n_validation} of the validation part."


def _spread_queries(data: RankingData, most: int) -> Any:
    """Take all queries, or some evenly from many."""
    if data.n_queries <= most:
        return np.arange(data.n_queries)
    return np.unique(np.linspace(0, data.n_queries - 1, most).astype(int))


def _data_summary(study: Study, test: RankingData | None) -> list[dict[str, Any]]:
    parts = {"training": study.training}
    if study.validation is not study.training:
        parts["validation"] = study.validation
    if test is not None:
        parts["test"] = test
    summary = []
    for name, data in parts.items():
        sizes = np.diff(data.query_ptr)
        levels, counts = np.unique(data.y[~np.isnan(data.y)], return_counts=True)
        many = len(levels) > 8
        summary.append(
            {
                "part": name,
                "queries": data.n_queries,
                "documents": len(data),
                "features": data.n_features,
                "sizes": [int(sizes.min()), int(np.median(sizes)), int(sizes.max())]
                if len(sizes)
                else [0, 0, 0],
                "informative": int(data.informative.sum()),
                "levels": []
                if many
                else [
                    [f"{level:g}", brief(count / max(1, counts.sum()))]
                    for level, count in zip(levels.tolist(), counts.tolist(), strict=True)
                ],
                "n_levels": len(levels),
            }
        )
    return summary


def _stability(study: Study) -> dict[str, Any] | None:
    """Summarise which features were selected again on subsamples."""
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
    return {
        "subsamples": brief(result.n_subsamples),
        "jaccard": brief(result.jaccard),
        "index": brief(result.stability_index),
        "groups": groups[:MOST_GROUPS],
    }


def _charts(
    study: Study,
    models: list[Candidate],
    baselines: Mapping[str, Mapping[str, FloatArray]],
    queries: Any,
    paths: Mapping[str, Any],
) -> dict[str, Any]:
    some = next((each[study.measure] for each in baselines.values() if study.measure in each), None)
    chosen = study.chosen.values[study.measure]
    return {
        "front": _spec(
            charts.front(replace(study, baselines=baselines), models=models, width=_FILL)
        ),
        "features": _spec(
            charts.features(
                study.chosen.model,
                study.validation,
                stability=study.stability,
                costs=study.costs,
                width=_FILL,
            )
        ),
        "queries": None
        if some is None
        else _spec(
            charts.wins_and_losses(
                chosen[queries], some[queries], measure=study.measure, width=_FILL
            )
        ),
        "paths": {
            name: _spec(charts.coefficient_path(path, study.feature_names, width=_FILL))
            for name, path in paths.items()
        },
        "one_curve": None if all(one.model.is_linear for one in models) else _spec(_empty_curve()),
        "curve": _spec(charts.learning_curve(study.history, width=_FILL))
        if study.history and len(study.history) > 1
        else None,
    }


def _empty_curve() -> Any:
    """Return the chart of one curve; the page fills it for each feature."""
    import altair

    names = ("low_x", "high_x", "low_y", "high_y", "room")
    *ends, width = [altair.expr(name) for name in (*names[:4], "width - room")]
    rows: dict[str, Any] = {name: [] for name in LAYERS}
    chart = one_curve(rows, ends[:2], ends[2:], _FILL, 120, width, "digits")
    size = altair.AutoSizeParams(type="fit-x", contains="padding")
    params = [altair.param(name=name, value=at % 2) for at, name in enumerate(names)]
    params.append(altair.param(name="digits", value=7))
    return chart.properties(autosize=size).add_params(*params)


def _spec(chart: Any) -> dict[str, Any]:
    """Return a chart without colours: the page sets those, light or dark."""
    spec = dict(chart.to_dict())
    spec.pop("config", None)
    return spec
