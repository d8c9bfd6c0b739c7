"""Charts of curves: the contribution of each feature, over the density of its values.

A ranking does not depend on a constant, so the mean over the documents is subtracted from a curve.
The horizontal axis has the units of the data, unless there is a per-query scaler.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leanrank._typing import AnyArray, FloatArray
from leanrank.data.ranking_data import feature_name
from leanrank.errors import InputError
from leanrank.model.curves import Curve, Line, Steps
from leanrank.model.export.formula import in_units_of_data
from leanrank.model.terms import Levels
from leanrank.plots.parts import (
    ALL_DIGITS,
    alt,
    brief,
    columns_seen,
    inline,
    names_of,
    numbers,
    numeric_rows,
    offline,
    shown_range,
    some_documents,
    theme,
    tips,
    value_axis,
)
from leanrank.plots.term_charts import level_parts, one_table, surface_panels, surface_parts

if TYPE_CHECKING:
    from leanrank.data.ranking_data import RankingData
    from leanrank.model.model import Model

N_BARS = 24
"""Bars of a density."""

ROOM = 46
"""Pixels at the right of a curve for missing values."""

CONFIDENCE = 0.9
LAYERS = ("density", "band", "straight", "curve", "missing", "documents")
Rows = list[dict[str, Any]]


def curves(
    model: Model,
    data: RankingData | None = None,
    *,
    draws: Sequence[Model] = (),
    most: int = 12,
    columns: int = 3,
    width: int = 190,
    height: int = 130,
) -> Any:
    """Return charts of the terms of a model: curves, look-up tables and surfaces.

    A curve is over the density of its feature's values; the dashed line is the straight line
    nearest to it on the documents, and a diamond at the right is the contribution of a missing
    value. A category has one bar per level. A surface of two features is a heat map, beside one of
    the sum of their curves; dots are documents.

    Parameters
    ----------
    model : Model
    data : RankingData or data frame, optional
        Documents for the densities and the straight lines, as ``model.predict`` takes them;
        without them, the chart has only the terms.
    draws : sequence of Model, optional
        The same ranker on bootstrap samples (``leanrank.selection.bootstrap_models``): a band shows
        90% of their curves. Those without a normaliser get that of the model.
    most : int
        Largest number of terms of each kind, the largest first.
    columns, width, height : int
        Number of charts side by side, and the size of each in pixels.

    Returns
    -------
    altair.VConcatChart
    """
    parts = curve_parts(model, data, draws, most=most)
    tables, pairs = level_parts(model, data, most=most), surface_parts(model, data, most=most)
    if not (parts or tables or pairs):
        raise InputError("the model uses no feature: there is no curve to draw")
    charts = [
        one_curve(
            part["rows"],
            part["range"],
            heights(parts),
            width,
            height,
            width - ROOM if part["rows"]["missing"] else width,
            name=part["feature"],
            title=None if part["scaled"] is None else f"scaled ({part['scaled']})",
            suffix=f"_{at}",
        )
        for at, part in enumerate(parts)
    ]
    charts += [one_table(part, width, f"_levels_{at}") for at, part in enumerate(tables)]
    rows = [alt.concat(*charts, columns=columns)] if charts else []
    rows += [
        alt.hconcat(*surface_panels(part, width, f"_pair_{at}").values())
        for at, part in enumerate(pairs)
    ]
    chart = alt.vconcat(*rows).resolve_scale(color="independent", size="independent")
    return offline(chart.configure(**theme()))


def curve_parts(
    model: Model, data: RankingData | None, draws: Sequence[Model] = (), *, most: int = 12
) -> list[dict[str, Any]]:
    """Return the contents of a chart for each feature, the largest curve first.

    Returns
    -------
    list of dict
        ``index`` and ``feature``, the ``range`` of its values, the normaliser after which they are
        ``scaled`` or None, the ``mean`` of the curve over the documents, and ``rows`` by layer.
    """
    drawn = in_units_of_data(model)
    bands = [
        in_units_of_data(each.replace(normalizer=each.normalizer or model.normalizer)).curves
        for each in draws
    ]
    seen = {} if data is None else columns_seen(drawn, some_documents(data))
    parts = []
    for index, curve in drawn.curves.items():
        if isinstance(curve, Levels):  # categories have bars
            continue
        name = feature_name(index, model.feature_names)
        with np.errstate(over="ignore", invalid="ignore"):  # what is not finite is not drawn
            part = _part(name, curve, seen.get(index), [each.get(index) for each in bands])
        part["index"] = index
        part["scaled"] = None if drawn.normalizer is None else drawn.normalizer["kind"]
        y = [row["y"] for layer in ("curve", "missing") for row in part["rows"][layer]]
        parts.append((max(y, default=0.0) - min(y, default=0.0), part))
    parts.sort(key=lambda each: -each[0])
    return [part for _, part in parts[:most]]


def _part(
    name: str, curve: Curve, column: AnyArray | None, drawn: Sequence[Curve | None]
) -> dict[str, Any]:
    """Return the contents of the chart of a feature."""
    values = np.asarray(curve.cuts if column is None else column, dtype=np.float64)
    there, missing = values[np.isfinite(values)], np.isnan(values)
    low, high = shown_range(there, curve.cuts)
    mean = 0.0 if column is None else mean_added(curve, values)
    x = _points(curve, low, high)
    rows: dict[str, Rows] = {layer: [] for layer in LAYERS}
    rows["curve"] = numeric_rows(x=x, y=curve(x) - mean, order=range(len(x)))
    if column is not None:
        counts, edges = np.histogram(there, N_BARS, (low, high))
        shares = counts / max(1, counts.max(initial=0)), counts / max(1, len(there))
        bars = numeric_rows(x=edges[:-1], x2=edges[1:], share=shares[0], documents=shares[1])
        rows["density"] = [bar for bar in bars if bar["documents"]]
        ends = np.array([low, high])
        line = _straight(curve, there, mean, ends)
        rows["straight"] = [] if line is None else numeric_rows(x=ends, y=line)
    if drawn:
        x = np.linspace(low, high, 49)
        lower, upper = _band(drawn, values, x)
        rows["band"] = numeric_rows(x=x, low=lower, high=upper)
    if curve.missing is not None and (column is None or missing.any()):
        share = 0.0 if column is None else missing.mean()
        rows["missing"] = [{"y": brief(curve.missing - mean), "share": brief(share, 3)}]
    drawable = {
        layer: [row for row in each if None not in row.values()] for layer, each in rows.items()
    }
    reach = numbers((low, high), ALL_DIGITS)
    return {"feature": name, "range": reach, "mean": brief(mean, 7), "rows": drawable}


def heights(parts: Sequence[Mapping[str, Any]]) -> tuple[float, float]:
    """Return the ends of a common vertical axis, on which curves can be compared."""
    keys = {"curve": ("y",), "missing": ("y",), "band": ("low", "high"), "straight": ("y",)}
    ends = [
        row[key]
        for part in parts
        for layer, names in keys.items()
        for row in part["rows"][layer]
        for key in names
    ]
    low, high = min(ends, default=0.0), max(ends, default=0.0)
    margin = 0.06 * (high - low) or 0.5
    return low - margin, high + margin


def one_curve(
    rows: Mapping[str, Rows],
    across: Sequence[Any],
    up: Sequence[Any],
    width: int | str,
    height: int,
    end: Any,
    *,
    name: str = "",
    title: str | None = None,
    suffix: str = "",
) -> Any:
    """Return a chart of a curve; ``across`` and ``up`` are the ends of axes, as numbers or names.

    ``end`` is the width of the horizontal axis in pixels; missing values are at its right. The data
    sets have the names of the layers with ``suffix``, since charts side by side need different
    names.
    """
    x = alt.X("x:Q", **value_axis(across, title, range=[0, end]))
    y = alt.Y("y:Q", **value_axis(up) | {"axis": alt.Axis(tickCount=4)})

    def layer(name: str) -> Any:
        return alt.Chart(inline(name + suffix, rows[name]))

    at_value = tips("x:Q .4~g", "y:Q +.4~g adds")
    right = {"x": alt.value("width")}
    bars = (
        layer("density")
        .mark_rect(style="context", opacity=0.45, clip=True)
        .encode(
            x=x,
            x2="x2:Q",
            y=alt.Y("share:Q", axis=None, scale=alt.Scale(domain=[0, 4])),
            y2=alt.datum(0),
            tooltip=tips("documents:Q .1%"),
        )
    )
    documents = layer("documents").encode(x=x, y=y, tooltip=tips("name:N - document") + at_value)
    known = documents.transform_filter("isValid(datum.x)")
    unknown = documents.transform_filter("!isValid(datum.x)").encode(**right)
    over = [
        *names_of({"feature": name} if name else {}, f"name{suffix}"),
        layer("band")
        .mark_area(style="accent", opacity=0.3, clip=True)
        .encode(x=x, y=alt.Y("low:Q", title=None), y2="high:Q"),
        layer("straight")
        .mark_line(style="baseline", strokeWidth=1.2, strokeDash=[4, 3], clip=True)
        .encode(x=x, y=y),
        layer("curve")
        .mark_line(style="accent", strokeWidth=2, clip=True)
        .encode(x=x, y=y, order="order:Q", tooltip=at_value),
        layer("missing")
        .mark_point(style="against", shape="diamond", size=70, filled=True, opacity=1, xOffset=-20)
        .encode(y=y, tooltip=tips("y:Q +.4~g missing adds", "share:Q .1% documents"), **right),
        layer("missing")
        .mark_text(style="against", align="right", dy=-12, text="missing")
        .encode(y=y, **right),
        *(
            some.transform_filter(f"datum.second == {second}").mark_point(
                style="chosen", size=75, filled=not second, strokeWidth=2, opacity=1, xOffset=offset
            )
            for some, offset in ((known, 0), (unknown, -20))
            for second in (0, 1)
        ),
    ]
    layered = alt.layer(bars, alt.layer(*over)).resolve_scale(y="independent")
    return layered.properties(width=width, height=height)


def mean_added(curve: Curve, values: FloatArray) -> float:
    """Return the mean contribution of a curve to documents with these values."""
    added = _added(curve, values)
    return float(added.mean()) if len(added) else 0.0


def _added(curve: Curve, values: FloatArray) -> FloatArray:
    """Return the contributions of values, 0 for values that a model would reject."""
    return np.nan_to_num(curve(values), posinf=0.0, neginf=0.0)


def _points(curve: Curve, low: float, high: float) -> FloatArray:
    """Return the ends of a chart and the cuts of a curve between them; both sides of steps."""
    cuts = np.array([cut for cut in curve.cuts if low < cut < high], dtype=np.float64)
    if isinstance(curve, Steps):
        cuts = np.repeat(cuts, 2)
        cuts[1::2] = np.nextafter(cuts[1::2], np.inf)
    return np.concatenate(([low], cuts, [high]))


def _straight(curve: Curve, there: FloatArray, mean: float, ends: FloatArray) -> FloatArray | None:
    """Return the straight line nearest to a curve on the documents, at the ends of its chart."""
    spread = there - there.mean() if len(there) else there
    square = float(spread @ spread)
    if isinstance(curve, Line) or not 0 < square < np.inf:
        return None
    added = _added(curve, there) - mean
    line: FloatArray = added.mean() + float(spread @ added) / square * (ends - there.mean())
    return line


def _band(draws: Sequence[Curve | None], values: FloatArray, x: FloatArray) -> FloatArray:
    """Return quantiles of the drawn curves at x: the ends of a band."""
    drawn = np.zeros((len(draws), len(x)))
    for row, curve in zip(drawn, draws, strict=True):
        if curve is not None:
            row[:] = curve(x) - mean_added(curve, values)
    ends: FloatArray = np.quantile(drawn, ((1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2), axis=0)
    return ends
