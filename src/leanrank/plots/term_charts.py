"""Charts of other terms than curves: look-up tables as bars, surfaces as heat maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import feature_name
from leanrank.model.curves import Line
from leanrank.model.export.formula import in_units_of_data
from leanrank.model.terms import Levels, term_name
from leanrank.plots.parts import (
    ALL_DIGITS,
    ROW_HEIGHT,
    alt,
    bar_axis,
    brief,
    columns_seen,
    inline,
    names_of,
    numbers,
    numeric_rows,
    shown_range,
    some_documents,
    tips,
    value_axis,
)

if TYPE_CHECKING:
    from leanrank.model.model import Model

N_CELLS = 20
"""Cells of a heat map along each feature."""

MOST_LEVELS = 12


def level_parts(model: Model, data: Any = None, *, most: int = 12) -> list[dict[str, Any]]:
    """Return the contents of a chart for each category, the largest differences first.

    Returns
    -------
    list of dict
        ``index``, ``feature``, its ``n_levels``, and ``rows``: at most ``MOST_LEVELS`` levels,
        those of most documents, with what each ``adds`` minus the mean, and its ``share`` of the
        documents.
    """
    tables = {at: one for at, one in model.curves.items() if isinstance(one, Levels)}
    seen = {} if data is None or not tables else columns_seen(model, some_documents(data))
    parts = []
    for index in sorted(tables, key=lambda at: -tables[at].size)[:most]:
        table = tables[index]
        names = [*(str(one).removesuffix(".0") for one in table.levels), "other"]
        values, shares = np.append(table.values, table.missing), np.zeros(len(names))
        if index in seen:
            codes = np.arange(len(table.levels)) if table.is_text else np.array(table.levels)
            counts = np.array([np.count_nonzero(seen[index] == code) for code in codes])
            shares = np.append(counts, len(seen[index]) - counts.sum()) / max(1, len(seen[index]))
        listed = np.argsort(-shares - 1e-9 * np.abs(values), kind="stable")[:MOST_LEVELS]
        added = values - shares @ values
        rows = [
            {"level": names[at], "adds": brief(added[at]), "share": brief(shares[at], 3)}
            for at in listed[np.argsort(-added[listed], kind="stable")].tolist()
        ]
        name = feature_name(index, model.feature_names)
        part = {"index": index, "feature": name, "n_levels": len(table.levels)}
        parts.append(part | {"rows": [row | {"place": k} for k, row in enumerate(rows)]})
    return parts


def one_table(part: Mapping[str, Any], width: int | str = 190, suffix: str = "") -> Any:
    """Return a chart of a look-up table, with one bar per level."""
    x = alt.X("adds:Q", title=None, axis=alt.Axis(tickCount=4))
    tooltip = tips("level:N -", "adds:Q +.4~g", "share:Q .1% documents")
    bars = alt.Chart(inline(f"levels{suffix}", part["rows"]))
    bars = bars.encode(y=bar_axis("level"), x=x, tooltip=tooltip)
    sides = [
        bars.transform_filter(f"datum.adds {side} 0").mark_bar(style=style, height=11)
        for side, style in ((">=", "accent"), ("<", "against"))
    ]
    hidden = part["n_levels"] + 1 - len(part["rows"])
    title = part["feature"] + (f" (and {hidden} more levels)" if hidden else "")
    layered = alt.layer(*sides, *names_of({"feature": title}, f"levels_names{suffix}"))
    return layered.properties(width=width, height=ROW_HEIGHT * len(part["rows"]))


def surface_parts(model: Model, data: Any = None, *, most: int = 12) -> list[dict[str, Any]]:
    """Return the contents of a chart for each pair, the largest surface first.

    Returns
    -------
    list of dict
        ``index`` and ``features``, both of two; ``feature``, the name of the pair; the ``ranges``
        of the features; the normaliser after which they are ``scaled`` or None; ``missing``, the
        contributions where the first, the second or both are missing; ``cells`` with the
        contributions of the ``pair`` and of the ``curves`` of its features, each minus its mean
        over the documents, and the ``share`` of the documents.
    """
    drawn = in_units_of_data(model)
    seen = {} if data is None or not drawn.surfaces else columns_seen(drawn, some_documents(data))
    largest = sorted(drawn.surfaces, key=lambda pair: -drawn.surfaces[pair].size)[:most]
    with np.errstate(over="ignore", invalid="ignore"):
        return [_pair_part(drawn, pair, [seen.get(at) for at in pair]) for pair in largest]


def _pair_part(
    model: Model, pair: tuple[int, int], columns: list[FloatArray | None]
) -> dict[str, Any]:
    surface = model.surfaces[pair]
    values = [np.zeros(0) if one is None else one for one in columns]
    knots = (surface.first, surface.second)
    ranges = [shown_range(one, side) for one, side in zip(values, knots, strict=True)]
    steps = [(high - low) / N_CELLS for low, high in ranges]
    i, j = (at.ravel() for at in np.indices((N_CELLS, N_CELLS)))
    x, y = (low + at * step for (low, _), at, step in zip(ranges, (i, j), steps, strict=True))

    def additive(*at: FloatArray) -> FloatArray:
        parts = [model.curves.get(one, Line(0.0))(v) for one, v in zip(pair, at, strict=True)]
        return np.asarray(np.nan_to_num(parts).sum(axis=0))

    counts = np.histogram2d(values[0], values[1], N_CELLS, ranges)[0].ravel()
    cells = {"x": x, "y": y, "share": counts / max(1, len(values[0]))}
    for name, term in (("pair", surface), ("curves", additive)):
        added = [np.nan_to_num(term(*at)) for at in ((x + steps[0] / 2, y + steps[1] / 2), values)]
        cells[name] = added[0] - (added[1].mean() if len(added[1]) else 0.0)
    names = [feature_name(at, model.feature_names) for at in pair]
    return {
        "index": list(pair),
        "features": names,
        "feature": term_name(names),
        "ranges": [numbers(ends, ALL_DIGITS) for ends in ranges],
        "scaled": None if model.normalizer is None else model.normalizer["kind"],
        "missing": numbers(surface.missing),
        "cells": numeric_rows(**cells),
    }


def surface_panels(
    part: Mapping[str, Any], width: int | str = 190, suffix: str = ""
) -> dict[str, Any]:
    """Return heat maps of a surface and of the sum of its features' curves, by title.

    Dots are documents; their size is the number of documents.
    """
    cells = part["cells"]
    far = max(abs(cell[kind] or 0.0) for cell in cells for kind in ("pair", "curves")) or 1.0
    steps = dict(zip("xy", ((high - low) / N_CELLS for low, high in part["ranges"]), strict=True))
    x, y = map(value_axis, part["ranges"])
    scaled = "" if part["scaled"] is None else f", scaled ({part['scaled']})"
    axes = dict(zip("xy", (name + scaled for name in part["features"]), strict=True))
    colour = alt.Scale(domain=[-far, far], domainMid=0, interpolate="lab")
    legend = alt.Legend(title=None, format="+.2~g", gradientLength=95, tickCount=3)
    tooltip = tips("x_mid:Q .4~g x", "y_mid:Q .4~g y", "adds:Q +.3~g", "share:Q .2%")
    panels = {}
    for kind, title in (("pair", part["feature"]), ("curves", "their curves")):
        if not any(cell[kind] for cell in cells):
            continue
        rows = [
            {key: cell[key] for key in ("x", "y", "share")} | {"adds": cell[kind]} for cell in cells
        ]
        base = alt.Chart().transform_calculate(
            # cells overlap, which hides seams
            **{f"{at}2": f"datum.{at} + {1.05 * step!r}" for at, step in steps.items()},
            **{f"{at}_mid": f"datum.{at} + {step / 2!r}" for at, step in steps.items()},
        )
        heat = base.mark_rect(clip=True).encode(
            x=alt.X("x:Q", **x),
            x2="x2:Q",
            y=alt.Y("y:Q", **y),
            y2="y2:Q",
            color=alt.Color("adds:Q", scale=colour, legend=legend),
            tooltip=tooltip,
        )
        dots = base.transform_filter("datum.share > 0").mark_circle(style="chosen", opacity=0.4)
        dots = dots.encode(
            x=alt.X("x_mid:Q", **x),
            y=alt.Y("y_mid:Q", **y),
            size=alt.Size("share:Q", legend=None, scale=alt.Scale(range=[1, 40])),
        )
        texts = names_of({"feature": title, **axes}, f"{kind}_names{suffix}")
        layered = alt.layer(heat, dots, *texts, data=inline(f"{kind}_cells{suffix}", rows))
        name = title if kind == "pair" else f"{part['feature']}: {title}"
        panels[name] = layered.properties(width=width, height=190)
    return panels
