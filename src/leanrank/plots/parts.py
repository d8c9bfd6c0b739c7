"""Common parts of charts: rows of rounded numbers, colours, axes, tooltips."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData, column_values, feature_name
from leanrank.errors import InputError, MissingDependencyError
from leanrank.metrics.judge import better_sign, mean_of
from leanrank.selection.candidate import Candidate, bootstrap_interval
from leanrank.selection.compare import head
from leanrank.selection.study import Study

if TYPE_CHECKING:
    from leanrank.model.model import Model
    from leanrank.rankers.path import Path

ROW_HEIGHT = 20
"""Height of a bar with its name, in pixels."""


class _Altair:
    """Altair, imported on first use."""

    def __getattr__(self, name: str) -> Any:
        try:
            import altair
        except ImportError as error:
            raise MissingDependencyError("altair", "report", "drawing a chart") from error
        return getattr(altair, name)


alt: Any = _Altair()


def inline(name: str, rows: list[dict[str, Any]]) -> Any:
    """Return rows as named data of a chart, which a page can replace."""
    return alt.InlineData(values=rows, name=name)


def finished(chart: Any, width: int | str, height: Any) -> Any:
    """Return a chart with size and colours; ``"container"`` fills the width of a page."""
    if width == "container":
        chart = chart.properties(autosize=alt.AutoSizeParams(type="fit-x", contains="padding"))
    return offline(chart.properties(width=width, height=height).configure(**theme()))


def offline(chart: Any) -> Any:
    """Return the chart with a ``save`` that writes its scripts into the page."""
    kind = type(chart)

    def save(self: Any, fp: Any, format: str | None = None, **options: Any) -> None:
        page = {"inline": True} if (format or str(fp)).endswith("html") else {}
        kind.save(self, fp, format, **{**page, **options})

    object.__setattr__(chart, "__class__", type(kind.__name__, (kind,), {"save": save}))
    return chart


def tips(*fields: str) -> list[Any]:
    """Return a tooltip of texts "FIELD FORMAT TITLE"; - is the default format."""
    made = []
    for field, how, *title in (one.split(maxsplit=2) for one in fields):
        options = {"format": how} if how != "-" else {}
        made.append(alt.Tooltip(field, **options, **({"title": title[0]} if title else {})))
    return made


def bar_axis(field: str) -> Any:
    """Return an axis of named bars, in the order of their ``place``."""
    axis = {"domain": False, "ticks": False, "grid": False, "labelLimit": 150, "labelPadding": 6}
    return alt.Y(
        f"{field}:N",
        # sorted by a number, so that names are not in the code of the chart
        sort=alt.EncodingSortField("place", op="min", order="ascending"),
        title=None,
        axis=alt.Axis(**axis, labelExpr=middle("datum.label", "24")),
    )


def names_of(names: dict[str, str], data: str) -> list[Any]:
    """Return layers with the names of the chart and its axes, as data."""
    rows = alt.Chart(inline(data, [names]))
    where = {
        "feature": ({"align": "left", "fontWeight": "bold", "dy": -5}, 0, 0),
        "x": ({"align": "right", "dy": 32}, "width", "height"),
        "y": ({"align": "right", "angle": 270, "dy": -34}, 0, 0),
    }
    return [
        rows.mark_text(
            style="chosen" if key == "feature" else "baseline", baseline="bottom", **how
        ).encode(text=f"{key}:N", x=alt.value(x), y=alt.value(y))
        for key, (how, x, y) in where.items()
        if key in names
    ]


def value_axis(ends: Sequence[Any], title: str | None = None, **scale: Any) -> dict[str, Any]:
    """Return title, scale and axis of values; ends are numbers or parameters."""
    domain = {"domainMin": ends[0], "domainMax": ends[1]}
    return {
        "title": title,
        "scale": alt.Scale(nice=False, zero=False, **domain, **scale),
        "axis": alt.Axis(grid=False, tickCount=4, labelOverlap=True, format=".15~g"),
    }


def middle(name: str, most: str) -> str:
    """Return an expression that leaves out the middle of a long name."""
    ends = f"slice({name}, 0, {most} / 2 - 1) + '…' + slice({name}, 1 - {most} / 2)"
    return f"length({name}) > {most} ? {ends} : {name}"


LINES = ["#1f5fa6", "#c2561a", "#1b8a5a", "#8a4fbf", "#8f7200", "#b83a78", "#5b6570", "#007f93"]
"""Colours of unordered lines."""


def theme(*, dark: bool = False) -> dict[str, Any]:
    """Return the colours and fonts of all charts, as a Vega-Lite configuration.

    One accent colour, a second one for its opposite, grey for context.
    """
    light = "#1c2024 #5b6570 #e3e6ea #1f5fa6 #b5501b #b4bcc6"
    colours = "#dfe3e8 #9aa4b0 #323a45 #6db3f8 #f2a06c #566170" if dark else light
    text, muted, faint, accent, against, context = colours.split()
    axis: dict[str, Any] = dict.fromkeys(("labelColor", "titleColor"), muted)
    axis |= dict.fromkeys(("gridColor", "domainColor", "tickColor"), faint)
    axis |= {"labelFontSize": 11, "titleFontSize": 11.5, "titleFontWeight": "normal"}
    styles = {"accent": accent, "against": against, "context": context, "baseline": muted}
    return {
        "background": "transparent",
        "font": "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif",
        "view": {"stroke": None},
        "axis": axis | {"titlePadding": 8, "labelPadding": 4},
        "range": {"diverging": [against, faint, accent]},
        "legend": {"labelColor": muted, "titleColor": muted},
        "style": {name: {"color": one} for name, one in (styles | {"chosen": text}).items()},
    }


MOST_OTHERS = 400
"""Largest number of models behind the front; of more, evenly spaced ones are shown."""

COUNTS = ("round", "iteration", "epoch", "trial")
"""Names of the horizontal axis of a learning curve; without any, entries are numbered."""

OUTSIDE = 0.005
"""Share of the documents beyond either end of a chart, which are outliers."""

ALL_DIGITS = 15  # of a decimal number that a float64 holds
ALONG = ("x", "x2", "y")  # columns with the values of an axis
_DOCUMENTS = 20_000  # enough to know the variance of a score


def front_models(study: Study) -> list[Candidate]:
    """Return the front, fewest features first, and the chosen model of a study."""
    models = list(study.front)
    if not any(one is study.chosen for one in models):
        models.append(study.chosen)
        models.sort(key=lambda one: (one.n_features, one.cost))
    return models


def front_rows(
    study: Study, models: Sequence[Candidate] | None = None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int, str]:
    """Return the points, the baselines, the position of the chosen model and the measure."""
    name, costs = study.measure, study.costs
    models = list(models or front_models(study))
    shown = {id(one) for one in models}
    others = [one for one in study.candidates if id(one) not in shown and one.n_features]
    others = [one for one in others if np.isfinite(one.score(name))]
    if len(others) > MOST_OTHERS:
        others = [others[at] for at in np.linspace(0, len(others) - 1, MOST_OTHERS, dtype=int)]
    rows = []
    for place, one in [*enumerate(models), *((-1, one) for one in others)]:
        cost = None if costs is None else brief(one.cost, 6)
        row = {"model": place, "name": one.name, "features": one.n_features, "cost": cost}
        points = summary(one.judged(name)) if place >= 0 else [brief(one.score(name)), None, None]
        rows.append(row | dict(zip(("value", "low", "high"), points, strict=True)))
    pooled = any(name in one.training_values for one in models)
    # a mean over other queries could not be compared with the points
    baselines = [
        {"name": title, "value": brief(mean), "place": mean}
        for title, values in study.baselines.items()
        if not pooled and name in values and not np.isnan(mean := mean_of(values[name]))
    ]
    about = head(name) + " (validation and training)" * pooled
    return rows, baselines, models.index(study.chosen), about


def path_rows(
    path: Path, feature_names: Sequence[str] | None, most: int = 8, limit: int = 40
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the points of each line and the position of its name; at most ``limit`` lines."""
    usable = path.alphas > 0
    alphas, coefs = path.alphas[usable], path.weights[usable]
    reach = np.abs(coefs).max(axis=0, initial=0.0)
    lines = [at for at in np.argsort(-reach, kind="stable")[:limit].tolist() if reach[at] > 0]
    rows, labels = [], []
    for order, feature in enumerate(lines):
        name = feature_name(feature, feature_names)
        column = coefs[:, feature]
        largest = column[np.argmax(np.abs(column))]
        sign = int(np.sign(largest)) if order < most else 0
        # one zero is enough before a weight is not zero
        first = max(0, int(np.flatnonzero(column)[0]) - 1)
        about = {"line": feature, "feature": name, "sign": sign}
        points = numeric_rows(alpha=alphas[first:], weight=column[first:])
        rows += [about | point for point in points]
        if sign:
            labels.append(about | {"alpha": brief(alphas[-1]), "place": float(column[-1])})
    spread(labels, float(np.ptp(coefs)) / 18 if len(lines) else 0.0)
    return rows, labels


def feature_rows(
    model: Model, data: RankingData, *, stability: Any = None, costs: FloatArray | None = None
) -> list[dict[str, Any]]:
    """Return one row per term of a model, the largest share of the variance first."""
    explained = model.explain(some_documents(data))
    shares = explained.variance_shares
    terms = list(model.terms.items())
    rows = []
    for place, at in enumerate(np.argsort(-shares, kind="stable").tolist()):
        features, term = terms[at]
        row = {"place": place, "feature": explained.features[at], "weight": brief(term.size)}
        row |= {"share": brief(shares[at]), "index": None, "frequency": None, "cost": None}
        if len(features) == 1:  # pairs have no frequency and no cost
            row["index"] = features[0]
            if stability is not None:
                row["frequency"] = brief(stability.frequencies[features[0]])
            if costs is not None:
                row["cost"] = brief(costs[features[0]], 6)
        rows.append(row)
    return rows


def columns_seen(model: Model, data: Any) -> dict[int, FloatArray]:
    """Return the inputs of a model's terms for some documents, by feature index."""
    matrix, columns, _ = model.prepared(data)
    places = range(len(model.indices)) if columns is None else columns.tolist()
    return {
        index: np.asarray(column_values(matrix, at), dtype=np.float64)
        for index, at in zip(model.indices.tolist(), places, strict=True)
    }


def shown_range(values: FloatArray, cuts: Sequence[float]) -> tuple[float, float]:
    """Return the ends of an axis, without outliers."""
    there = values[np.isfinite(values)]
    some = there if len(there) else np.array(cuts or (0.0, 1.0))
    most = np.finfo(np.float64).max / 4  # so that the length of the axis is finite
    low, high = map(float, np.quantile(np.clip(some, -most, most), (OUTSIDE, 1 - OUTSIDE)))
    margin = max(0.5, 1e-9 * abs(low))
    return (low, high) if low < high else (low - margin, high + margin)


def some_documents(data: Any) -> Any:
    """Return the first queries, with enough documents for a variance or a density."""
    if not isinstance(data, RankingData):
        return data
    n_queries = int(np.searchsorted(data.query_ptr, _DOCUMENTS, side="right"))
    return data.queries[: max(1, n_queries)] if data.n_queries else data


def history_rows(history: Sequence[Mapping[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
    """Return what the horizontal axis counts, and the points of a learning curve."""
    first = dict(history[0]) if history else {}
    drawn = [key for key in first if _is_measure(key)]
    drawn = drawn or [str(key) for key in ("loss", "objective", "dual_gap") if key in first][:1]
    across = next((key for key in COUNTS if key in first), "round")
    rows = [
        {"at": entry.get(across, number), "measure": measure, "value": brief(entry[measure])}
        for measure in drawn
        for number, entry in enumerate(history, 1)
        if math.isfinite(entry.get(measure, math.nan))
    ]
    if not rows:
        raise InputError("the history has no measure or loss: give the history_ of a ranker")
    return across, rows


def query_rows(
    values: Any, baseline: Any, query_ids: Any = None, measure: str = "ndcg@10"
) -> list[dict[str, Any]]:
    """Return each query's difference, the largest win first; undefined ones are left out."""
    first, second = (np.asarray(v, dtype=np.float64) for v in (values, baseline))
    if first.shape != second.shape or first.ndim != 1:
        raise InputError(
            f"values has shape {first.shape} and baseline {second.shape}: give one value "
            "per query, of the same queries"
        )
    ids = np.arange(len(first)) if query_ids is None else np.asarray(query_ids)
    gains = better_sign(measure) * (first - second)
    order = np.argsort(-gains, kind="stable")
    return [
        {
            "place": place,
            "position": at,
            "query": str(ids[at]),
            "gain": brief(gains[at]),
            "difference": brief(first[at] - second[at]),
            "value": brief(first[at]),
            "other": brief(second[at]),
        }
        for place, at in enumerate(order[~np.isnan(gains[order])].tolist())
    ]


def _is_measure(name: str) -> bool:
    from leanrank.metrics import Measure

    try:
        return bool(Measure.parse(name).higher_is_better)  # a loss has a scale of its own
    except InputError:
        return False


def spread(labels: list[dict[str, Any]], gap: float) -> None:
    """Move labels apart that would overlap."""
    labels.sort(key=lambda label: label["place"])
    for before, label in pairwise(labels):
        label["place"] = max(label["place"], before["place"] + gap)


def brief(value: Any, digits: int = 5) -> float | None:
    """Return a rounded number; None if it is not finite, since JSON has no NaN.

    >>> brief(0.123456789), brief(float("nan")), brief(3)
    (0.12346, None, 3.0)
    """
    number = float(value)
    return float(f"{number:.{digits}g}") if math.isfinite(number) else None


def numbers(values: Iterable[Any], digits: int = 5) -> list[float | None]:
    """Return rounded numbers."""
    return [brief(value, digits) for value in values]


def summary(values: FloatArray) -> list[float | None]:
    """Return a mean over queries and its interval with the decimals that are shown.

    A page, a chart and the command line then show the same digits: rounding twice could change the
    last one.

    >>> summary(np.array([0.03124, 0.03124, np.nan]))
    [0.0312, 0.031, 0.031]
    """
    mean, *ends = mean_of(values), *bootstrap_interval(values)
    rounded = [float(f"{mean:.4f}"), *(float(f"{end:.3f}") for end in ends)]
    return [value if math.isfinite(value) else None for value in rounded]


def numeric_rows(**columns: Any) -> list[dict[str, Any]]:
    """Return rows from columns of numbers; columns of ``ALONG`` have all digits, others five.

    >>> numeric_rows(x=[1.7e9 + 1.25, 2.0], added=[0.123456, float("nan")])
    [{'x': 1700000001.25, 'added': 0.12346}, {'x': 2.0, 'added': None}]
    """
    rounded = [numbers(each, ALL_DIGITS if name in ALONG else 5) for name, each in columns.items()]
    return [dict(zip(columns, row, strict=True)) for row in zip(*rounded, strict=True)]
