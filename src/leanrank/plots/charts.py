"""The charts; each function returns an Altair chart.

Names of features, queries and models are values in the data of a chart, never part of its code, so
an unusual name is only drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from leanrank.errors import InputError
from leanrank.plots.curve_charts import curves
from leanrank.plots.parts import (
    LINES,
    ROW_HEIGHT,
    alt,
    bar_axis,
    feature_rows,
    finished,
    front_rows,
    history_rows,
    inline,
    middle,
    path_rows,
    query_rows,
    spread,
    tips,
)
from leanrank.selection.compare import head

if TYPE_CHECKING:
    from leanrank._typing import FloatArray
    from leanrank.data.ranking_data import RankingData
    from leanrank.model.model import Model
    from leanrank.rankers.path import Path
    from leanrank.selection.candidate import Candidate
    from leanrank.selection.study import Study


def plot(thing: Any, data: Any = None, **options: Any) -> Any:
    """Return an Altair chart of a result, for a notebook or ``chart.save("figure.html")``.

    Parameters
    ----------
    thing : Study, Path, Model, fitted ranker or list of dict
        A study shows its front, a path its coefficients, a linear model or ranker its features,
        one with curves each of them, a ranker's ``history_`` its learning curve.
    data : RankingData, optional
        The documents to draw a model's features or curves on.
    **options
        For the chart; see ``leanrank.plots``.

    Examples
    --------
    >>> import leanrank
    >>> data = leanrank.make_ranking(n_queries=20, n_features=5, random_state=0)
    >>> path = leanrank.rankers.DominationRanker().path(data.X, data.y, qid=data.qid, n_alphas=5)
    >>> type(leanrank.plot(path)).__name__
    'LayerChart'
    """
    from leanrank.model.model import Model
    from leanrank.rankers.path import Path
    from leanrank.selection.study import Study

    if isinstance(thing, Study):
        return front(thing, **options)
    if isinstance(thing, Path):
        return coefficient_path(thing, **options)
    model = thing.to_model() if hasattr(thing, "to_model") else thing
    if isinstance(model, Model):
        if model.is_linear and data is None:
            raise InputError("a model is drawn on documents: give a RankingData as data=")
        return (features if model.is_linear else curves)(model, data, **options)
    if isinstance(thing, Sequence) and thing and isinstance(thing[0], dict):
        return learning_curve(thing, **options)
    raise InputError(
        f"an object of type {type(thing).__name__} cannot be drawn: give a study, a path, a model, "
        "a fitted ranker, or the history_ of one"
    )


def front(
    study: Study,
    *,
    models: Sequence[Candidate] | None = None,
    width: int | str = 560,
    height: int = 300,
) -> Any:
    """Return a chart of the measure of models over their numbers of features.

    The Pareto front is in colour, with bootstrap intervals over queries; other models, and the
    baselines of a study, are grey. The parameter ``chosen`` of the chart is the position of the
    marked model in the front.

    Parameters
    ----------
    study : Study
    models : list of Candidate, optional
        The models to show as the front, instead of the Pareto front.
    width, height : int
        In pixels; ``"container"`` fills the width of a page.

    Returns
    -------
    altair.LayerChart
    """
    rows, baselines, chosen, name = front_rows(study, models)
    ends = [row[end] for row in rows if row["model"] >= 0 for end in ("low", "value", "high")]
    ends = [end for end in [*ends, *(line["value"] for line in baselines)] if end is not None]
    margin = 0.06 * (max(ends) - min(ends)) or 0.01
    spread(baselines, margin)
    sizes = [row["features"] for row in rows]
    wide = max(sizes) > 60
    marks = [step * 10**power for power in range(9) for step in (1, 2, 5)]
    own = {"values": [at for at in marks if min(sizes) <= at <= max(sizes)]} if wide else {}
    scale = alt.Scale(type="log" if wide else "linear", nice=False, zero=False, padding=14)
    axis = alt.Axis(grid=False, tickMinStep=1, format=",d", **own)
    x = alt.X("features:Q", title="features used", scale=scale, axis=axis)
    # models far below the front would compress its range
    scale = alt.Scale(domain=[min(ends) - margin, max(ends) + margin], nice=True)
    y = alt.Y("value:Q", title=name, scale=scale)
    tooltip = tips(
        "name:N - model", "features:Q -", "value:Q .4f measure", "low:Q .3f", "high:Q .3f"
    )
    tooltip += tips("cost:N -") if study.costs is not None else []
    points = alt.Chart().encode(x=x, y=y, tooltip=tooltip)
    on_front = points.transform_filter("datum.model >= 0")
    marked = on_front.transform_filter("datum.model == chosen")
    pieces = [
        points.transform_filter("datum.model < 0").mark_circle(style="context", size=22, clip=True),
        on_front.mark_line(style="accent", interpolate="step-after", strokeWidth=1.2, opacity=0.5),
        on_front.mark_rule(style="accent", strokeWidth=1, opacity=0.45).encode(
            y="low:Q", y2="high:Q"
        ),
        marked.mark_rule(style="accent", strokeWidth=3).encode(y="low:Q", y2="high:Q"),
        # under the points, which stay clickable
        marked.mark_point(style="chosen", size=190, filled=False, strokeWidth=2.5, opacity=1),
        on_front.mark_point(style="accent", size=70, filled=True, opacity=1, cursor="pointer")
        .encode(description="name:N")
        .properties(name="models"),
    ]
    if baselines:
        lines = alt.Chart(inline("baselines", baselines)).encode(y="value:Q")
        pieces[1:1] = [
            lines.mark_rule(style="baseline", strokeDash=[4, 4]),
            lines.mark_text(style="baseline", align="right", dy=-6, dx=-2).encode(
                x=alt.value("width"), y="place:Q", text="name:N"
            ),
        ]
    marker = alt.param(name="chosen", value=chosen)
    layered = alt.layer(*pieces, data=inline("front", rows)).add_params(marker)
    return finished(layered, width, height)


def coefficient_path(
    path: Path,
    feature_names: Sequence[str] | None = None,
    *,
    most: int = 8,
    width: int | str = 560,
    height: int = 300,
) -> Any:
    """Return a chart of weights along the path, with the weakest penalty at the right.

    The ``most`` features with the largest weights are named; the others are grey. The parameter
    ``chosen_alpha`` of the chart marks a strength with a line; 0 hides it.
    """
    rows, labels = path_rows(path, feature_names, most)
    if not rows:
        raise InputError("no model of the path uses a feature: let it reach a smaller alpha")
    weak, strong = min(row["alpha"] for row in rows), max(row["alpha"] for row in rows)
    share = 0.28  # of the width, for the names at the end of the lines
    beyond = weak * (weak / strong) ** (share / (1 - share))
    x = alt.X(
        "alpha:Q",
        title="alpha, the penalty weakens to the right",
        scale=alt.Scale(type="log", reverse=True, nice=False, domain=[beyond, strong]),
        axis=alt.Axis(grid=False, format="~g", labelOverlap=True, values=decades([weak, strong])),
    )
    y = alt.Y("weight:Q", title="weight", axis=alt.Axis(tickCount=6))
    tooltip = tips("feature:N -", "alpha:Q .3g", "weight:Q .4g")
    lines = alt.Chart().encode(x=x, y=y, detail=["line:N"], tooltip=tooltip, order="alpha:Q")
    names = (
        alt.Chart(inline("labels", labels))
        .transform_calculate(shown=middle("datum.feature", f"({share} * width / 7)"))
        .encode(x="alpha:Q", y="place:Q", text="shown:N", tooltip="feature:N")
    )
    pieces = [
        lines.transform_filter("datum.sign == 0").mark_line(style="context", strokeWidth=1),
        lines.transform_filter("datum.sign > 0").mark_line(style="accent", strokeWidth=1.8),
        lines.transform_filter("datum.sign < 0").mark_line(style="against", strokeWidth=1.8),
        *(
            names.transform_filter(f"datum.sign {side} 0").mark_text(
                style=style, align="left", dx=6, limit={"expr": f"{share} * width - 8"}
            )
            for side, style in ((">", "accent"), ("<", "against"))
        ),
        alt.Chart(inline("marker", [{"at": 0}]))
        .transform_calculate(alpha="chosen_alpha")
        .transform_filter("datum.alpha > 0")
        .mark_rule(style="chosen", strokeWidth=1.2, strokeDash=[2, 3], clip=True)
        .encode(x="alpha:Q"),
    ]
    marker = alt.param(name="chosen_alpha", value=0)
    layered = alt.layer(*pieces, data=inline("path", rows)).add_params(marker)
    return finished(layered, width, height)


def features(
    model: Model,
    data: RankingData,
    *,
    stability: Any = None,
    costs: FloatArray | None = None,
    most: int = 15,
    width: int | str = 440,
) -> Any:
    """Return a chart of the share of each feature in the variance of scores within queries.

    Bars are coloured by the signs of weights. With a stability result, a ring is the share of
    subsamples of the queries that chose the feature.
    """
    rows = feature_rows(model, data, stability=stability, costs=costs)[:most]
    tooltip = tips("feature:N -", "weight:Q .4g", "share:Q .1% share of variance")
    tooltip += tips("frequency:Q .0% chosen by subsamples", "cost:N -")
    bars = alt.Chart().encode(y=bar_axis("feature"), tooltip=tooltip)
    title = "share of score variance" + ("" if stability is None else " (ring: how often chosen)")
    axis = alt.Axis(format="%", tickCount=5)
    pieces = [
        bars.mark_bar(style=style, height=11).encode(x=alt.X(field, title=title, axis=axis))
        for style, field in (("accent", "up:Q"), ("against", "down:Q"))
    ]
    if stability is not None:
        rings = bars.mark_point(style="chosen", size=55, filled=False, strokeWidth=1.5)
        pieces.append(rings.encode(x="frequency:Q"))
    # with two filters, the layers would have separate data, and bars no common order
    layered = alt.layer(*pieces, data=inline("features", rows)).transform_calculate(
        up="datum.weight >= 0 ? datum.share : null", down="datum.weight < 0 ? datum.share : null"
    )
    return finished(layered, width, ROW_HEIGHT * max(1, len(rows)))


def learning_curve(
    history: Sequence[Mapping[str, Any]],
    *,
    width: int | str = 560,
    height: int = 240,
) -> Any:
    """Return a chart of the measures, or of the loss, per round of a ranker's ``history_``."""
    across, rows = history_rows(history)
    axis = alt.Axis(grid=False, format=",d", labelOverlap=True, tickMinStep=1)
    several = len({row["measure"] for row in rows}) > 1
    low, high = (end(row["value"] for row in rows) for end in (min, max))
    margin = 0.0 if low < high else 0.01  # a flat line, too, gets more than one tick
    scale = alt.Scale(zero=False, domain=[low - margin, high + margin], nice=True)
    chart = (
        alt.Chart(inline("history", rows))
        .mark_line(style="accent", strokeWidth=1.8, point=len(rows) <= 60)
        .encode(
            x=alt.X("at:Q", title=across, axis=axis, scale=alt.Scale(nice=False, zero=False)),
            y=alt.Y("value:Q", title=head(rows[0]["measure"]), scale=scale),
            strokeDash=alt.StrokeDash("measure:N", legend=alt.Legend() if several else None),
            tooltip=tips("measure:N -", "value:Q .4f", f"at:Q - {across}"),
        )
    )
    return finished(chart, width, height)


def lines(x: Any, values: Mapping[str, Any], *, width: int = 560, height: int = 300) -> Any:
    """Return a chart of several lines over a common axis, in different colours."""
    rows = [
        {"x": float(at), "line": name, "value": float(y)}
        for name, line in values.items()
        for at, y in zip(x, line, strict=True)
    ]
    scale = alt.Scale(range=LINES, domain=list(values))
    legend = alt.Legend(orient="bottom", symbolType="stroke", symbolOpacity=1.0)
    zoomed = alt.Scale(zero=False)
    chart = (
        alt.Chart(inline("lines", rows))
        .mark_line(strokeWidth=1.6)
        .encode(
            x=alt.X("x:Q", title="", axis=alt.Axis(grid=False), scale=zoomed),
            y=alt.Y("value:Q", title="", scale=zoomed),
            color=alt.Color("line:N", sort=list(values), title=None, scale=scale, legend=legend),
        )
    )
    return finished(chart, width, height)


def decades(x: Sequence[float]) -> list[float]:
    """Return the powers of ten among the values of an axis, or its ends if there are few."""
    low, high = math.ceil(math.log10(min(x))), math.floor(math.log10(max(x)))
    powers = [10.0**power for power in range(low, high + 1)]
    return powers if len(powers) > 1 else [min(x), *powers, max(x)]


def wins_and_losses(
    values: Any,
    baseline: Any,
    *,
    query_ids: Any = None,
    measure: str = "ndcg@10",
    width: int | str = 560,
    height: int = 220,
) -> Any:
    """Return a chart of the difference between two models on each query, largest win first.

    Parameters
    ----------
    values, baseline : array
        A measure on the same queries, NaN where it is undefined.
    query_ids : array, optional
    measure : str
        The measure of the values; it determines whether higher is better.
    """
    rows = query_rows(values, baseline, query_ids, measure)
    bars = alt.Chart().encode(
        x=alt.X(
            "place:O",
            title="queries, from the largest win to the largest loss",
            axis=alt.Axis(labels=False, ticks=False, grid=False, domain=False),
            scale=alt.Scale(paddingInner=0.15 if len(rows) < 150 else 0),
        ),
        y=alt.Y("difference:Q", title=f"difference in {head(measure)}"),
        tooltip=tips("query:N -", "difference:Q +.4f", "value:Q .4f model", "other:Q .4f baseline"),
    )
    pieces = [
        bars.transform_filter("datum.gain >= 0").mark_bar(style="accent", cursor="pointer"),
        bars.transform_filter("datum.gain < 0").mark_bar(style="against", cursor="pointer"),
        bars.transform_filter("datum.position == chosen_query").mark_bar(style="chosen"),
        alt.Chart(inline("zero", [{"at": 0}])).mark_rule(style="context").encode(y="at:Q"),
    ]
    marker = alt.param(name="chosen_query", value=-1)
    layered = alt.layer(*pieces, data=inline("queries", rows)).add_params(marker)
    return finished(layered, width, height)
