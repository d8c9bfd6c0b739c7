"""Pages of a ranker in use: one HTML file each, without scripts."""

from __future__ import annotations

import os
from html import escape

import numpy as np

from leanrank._files import atomic_write
from leanrank._typing import FloatArray
from leanrank.model import Curve, Levels, Model
from leanrank.model.export.formula import in_units_of_data
from leanrank.model.summary import sampled_queries
from leanrank.model.terms import Surface
from leanrank.report.page import drawn_lines, figures_table, static_page
from leanrank.service.check import Check
from leanrank.service.diff import Diff, QueryChange, largest_terms
from leanrank.service.documents import read_values

MOST_CURVES = 12
MOST_TERMS = 40
SMALL = {"wide": (330, 150, "bottom"), "narrow": (270, 150, "bottom")}
STYLE = """
.curves { display: grid; gap: 1rem 2rem; }
.curves { grid-template-columns: repeat(auto-fill, minmax(19rem, 1fr)); }
.curves h3 { margin: .6rem 0 .2rem; overflow-wrap: anywhere; }
td { text-align: right; }
td:last-child, th[scope="col"]:last-child { text-align: left; }
"""


def write_diff(found: Diff, path: str | os.PathLike[str], title: str) -> None:
    """Write the page of a difference between two models."""
    n = len(found.overlap)
    lead = f"{n:,} queries, {len(found.data):,} documents."
    parts = [
        _section("What would change?", f'<p class="verdict">{escape(found.verdict)}</p>'),
        _measures(found),
        _section(
            "How much do rankings change?",
            f"<p>{found.changed():.1%} of the queries have other documents, or another order, "
            f"among their first {found.k}. {found.replaced():.1%} of the documents there were not "
            f"there before. Rank-biased overlap is {found.value('overlap'):.3f} on average; 1 is "
            "the same ranking.</p>",
        ),
        _terms(found),
        _curves(found),
        _section("Which queries change most?", "".join(map(_query, found.queries)))
        if found.queries
        else "",
    ]
    page = static_page(title, lead, "".join(parts), style=STYLE)
    with atomic_write(path) as stream:
        stream.write(page)


def write_check(found: Check, path: str | os.PathLike[str], title: str) -> None:
    """Write the page of a check."""
    lead = f"{found.n_queries:,} queries, {found.n_documents:,} documents."
    listed = "".join(f"<li>{escape(text)}</li>" for text in found.alarms)
    parts = [
        _section(
            "Is it still right?",
            f'<p class="verdict">{escape(found.verdict)}</p>'
            + (f"<ul>{listed}</ul>" * bool(listed)),
        )
    ]
    if found.findings:
        heads = ["feature", "what", "then", "now", "standard errors"]
        rows = [
            [each.feature, each.kind, f"{each.then:.3f}", f"{each.now:.3f}", f"{each.z:+.1f}"]
            for each in found.findings
        ]
        note = (
            "Shares of documents, or a correlation. The largest difference of all features is "
            f"beyond {found.threshold:.1f} standard errors by chance in 2 of 100 checks."
        )
        parts.append(
            _noted("Which features changed?", figures_table("Features", heads, rows), note)
        )
    if found.measures:
        heads = ["", "then", "now", "p"]
        rows = [[name, *one.cells()] for name, one in found.measures.items()]
        note = "Then: on held-out queries when the model was trained. p: of a fall, one-sided."
        parts.append(_noted("Are rankings worse?", figures_table("Measures", heads, rows), note))
    if found.clicks:
        rows = [
            [name, f"{one.value:.4f}", f"{one.low:.4f} to {one.high:.4f}"]
            for name, one in found.clicks.items()
        ]
        table = figures_table("Clicks", ["per list", "clicks", "95 % interval"], rows)
        parts.append(_section("How many clicks?", table))
    if found.bound is not None:
        moves = list(found.bound.moves.items())[:MOST_CURVES]
        rows = [[name, f"{size:.3g}"] for name, size in moves]
        note = (
            f"Objective {found.bound.objective:.5f}; no weights of the same terms reach less than "
            f"{found.bound.lower:.5f}. The table has the features whose gradient says that their "
            "weights should move, and how much, as a share of the strength of the penalty."
        )
        table = figures_table("Features", ["feature", "gradient"], rows)
        parts.append(
            _noted("What would a refit gain?", f"<p>{escape(found.refit_text)}.</p>{table}", note)
        )
    if found.notes:
        listed = "".join(f"<li>{escape(text)}</li>" for text in found.notes)
        parts.append(_section("What could not be checked?", f"<ul>{listed}</ul>"))
    with atomic_write(path) as stream:
        stream.write(static_page(title, lead, "".join(parts), style=STYLE))


def _noted(title: str, body: str, note: str) -> str:
    return _section(title, f'{body}<p class="note">{escape(note)}</p>')


def _section(title: str, body: str) -> str:
    return f"<section><h2>{escape(title)}</h2>\n{body}</section>\n"


def _measures(found: Diff) -> str:
    rows = []
    for name, one in {**found.measures, **found.clicks}.items():
        low, high = one.interval
        rows.append(
            [
                name, f"{one.mean_a:.4f}", f"{one.mean_b:.4f}", f"{one.difference:+.4f}",
                f"{low:+.4f} to {high:+.4f}", f"{one.p_randomization:.2g}",
                f"{one.wins:,} : {one.losses:,}",
            ]
        )  # fmt: skip
    if not rows:
        return ""
    heads = ["", "old", "new", "difference", "95 % interval", "p", "won : lost"]
    note = "p: paired randomisation test. Clicks are per list, by each estimator."
    return _section(
        "Is it better?", figures_table("Measures", heads, rows) + f'<p class="note">{note}</p>'
    )


def _terms(found: Diff) -> str:
    def size(value: float | None) -> str:
        return "–" if value is None else f"{value:+.3g}"

    rows = [
        [
            term.name, size(term.old), size(term.new), f"{term.old_share:.1%}",
            f"{term.new_share:.1%}", f"{term.change_share:.1%}",
            "new" if term.old is None else "gone" if term.new is None else "",
        ]
        for term in found.terms[:MOST_TERMS]
    ]  # fmt: skip
    heads = ["term", "old", "new", "share, old", "share, new", "of the change", ""]
    more = len(found.terms) - len(rows)
    note = (
        "Weight of a line or height of a curve; share of the variance of scores within queries; "
        "share of the variance of the change." + f" {more} more terms are not shown." * (more > 0)
    )
    return _section(
        "Which terms differ?",
        figures_table("Terms", heads, rows) + f'<p class="note">{note}</p>',
    )


def _curves(found: Diff) -> str:
    """Draw the curves of both models over each other, in standard deviations of the scores."""
    models = [in_units_of_data(each) for each in (found.old, found.new)]
    if any(model.normalizer is not None for model in models):
        return ""  # curves of features that are scaled by query have no common axis
    data = sampled_queries(found.data)
    columns = [_columns(model, read_values(model, data)) for model in models]
    charts: list[str] = []
    for term in found.terms:
        if len(charts) == MOST_CURVES:
            break
        pair = [each.get(term.name) for each in columns]
        curves = [None if each is None else each[0] for each in pair]
        if all(curve is None or isinstance(curve, (Levels, Surface)) for curve in curves):
            continue
        values = next(each[1] for each in pair if each is not None)
        x = _places(curves, values)
        drawn = {
            name: [0.0] * len(x) if curve is None else _centred(curve, x, values, spread)
            for name, curve, spread in zip(("old", "new"), curves, found.spreads, strict=True)
        }
        chart = drawn_lines(x.tolist(), drawn, SMALL, x_label="", y_label="")
        charts.append(f"<div><h3>{escape(term.name)}</h3>{chart}</div>")
    if not charts:
        return ""
    note = "What each feature adds to a score, less its mean, in standard deviations of the scores."
    return _section(
        "How do the curves differ?",
        f'<div class="curves">{"".join(charts)}</div><p class="note">{note}</p>',
    )


def _columns(model: Model, values: FloatArray) -> dict[str, tuple[Curve, FloatArray]]:
    names = dict(zip(model.terms, model.term_names, strict=True))
    places = {at: place for place, at in enumerate(model.indices.tolist())}
    return {
        names[(at,)]: (curve, values[:, places[at]]) for at, curve in model.curves.items()
    }  # fmt: skip


def _places(curves: list[Curve | None], values: FloatArray) -> FloatArray:
    """Return where to draw: evenly, and at the knots, without outliers."""
    there = values[np.isfinite(values)]
    low, high = np.quantile(there, (0.005, 0.995)) if len(there) else (0.0, 1.0)
    if not low < high:
        low, high = low - 0.5, high + 0.5
    cuts = np.array([cut for each in curves if each is not None for cut in each.cuts])
    cuts = cuts[(cuts > low) & (cuts < high)]
    return np.unique(np.concatenate((np.linspace(low, high, 60), cuts)))


def _centred(curve: Curve, x: FloatArray, values: FloatArray, spread: float) -> list[float]:
    mean = float(np.nan_to_num(curve(values)).mean())
    drawn: list[float] = ((curve(x) - mean) / spread).tolist()
    return drawn


def _query(one: QueryChange) -> str:
    labelled = any(each["label"] is not None for each in one.documents)
    rows = [
        [
            each["document"], str(each["old"]), str(each["new"]),
            *([f"{each['label']:g}"] if labelled else []),
            f"{each['rise']:+.2f}", largest_terms(each["terms"]),
        ]
        for each in one.documents
    ]  # fmt: skip
    heads = ["document", "old rank", "new rank", *["label"] * labelled, "rise", "by"]
    return (
        f"<h3>Query {escape(str(one.query))}, overlap {one.overlap:.2f}</h3>\n"
        + figures_table(f"Query {one.query}", heads, rows)
    )  # fmt: skip
