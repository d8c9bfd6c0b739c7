"""Sections of text and tables on a difference or a check, and pages of them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from leanrank._files import atomic_write
from leanrank.plots.charts import lines
from leanrank.plots.curve_charts import curve_parts
from leanrank.report.page import drawn, figures_table, static_page
from leanrank.service.check import Check
from leanrank.service.diff import Diff, largest_terms

MOST_CURVES, MOST_MOVES = 12, 8
WIDTH = 270  # of a chart, for telephones


class Section(NamedTuple):
    """A section of a page or of output on a terminal; empty sections are left out."""

    title: str
    text: str = ""
    items: Sequence[str] = ()
    heads: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    note: str = ""


def diff_sections(found: Diff) -> list[Section]:
    """Return the sections on the difference between two models, the verdict first."""

    def size(value: float | None) -> str:
        return "–" if value is None else f"{value:+.3g}"

    measures = [
        [
            name, f"{one.mean_a:.4f}", f"{one.mean_b:.4f}", f"{one.difference:+.4f}",
            "{:+.4f} to {:+.4f}".format(*one.interval), f"{one.p_randomization:.2g}",
            f"{one.wins:,}:{one.losses:,}",
        ]
        for name, one in found.measures.items()
    ]  # fmt: skip
    terms = [
        [
            term.name, size(term.old), size(term.new),
            *(f"{one:.1%}" for one in (term.old_share, term.new_share, term.change_share)),
            "new" if term.old is None else "gone" if term.new is None else "",
        ]
        for term in found.terms
    ]  # fmt: skip
    sections = [
        Section("What would change?", found.verdict),
        Section(
            "Is it better?",
            heads=("", "old", "new", "change", "95% interval", "p", "won:lost"),
            rows=measures,
            note="p: paired randomisation test."
            + " Clicks are per list, by each estimator." * found.clicked,
        ),
        Section(
            "How much do rankings change?",
            f"{found.changed():.1%} of the queries have other documents, or another order, among "
            f"their first {found.k}. {found.replaced():.1%} of the documents there were not there "
            f"before. Rank-biased overlap is {found.value('overlap'):.3f} on average; 1 is the "
            "same ranking.",
        ),
        Section(
            "Which terms differ?",
            heads=("term", "old", "new", "share, old", "share, new", "of the change", ""),
            rows=terms,
            note="Weight of a line or height of a curve; share of the variance of scores within "
            "queries; share of the variance of the change.",
        ),
    ]
    note = (
        "Rise: of the score, in standard deviations, relative to the mean of these documents; by: "
        "the terms that add most to it."
    )
    for query in found.queries:
        rows = [
            [
                each["document"], str(each["old"]), str(each["new"]),
                "–" if each["label"] is None else f"{each['label']:g}",
                f"{each['rise']:+.2f}", largest_terms(each["terms"]),
            ]
            for each in query.documents
        ]  # fmt: skip
        title = f"Ranks of query {query.query}, overlap {query.overlap:.2f}"
        heads = ("document", "old", "new", "label", "rise", "by")
        sections.append(Section(title, heads=heads, rows=rows, note=note))
        note = ""  # only once
    return [*sections, Section("What could not be measured well?", items=found.notes)]


def check_sections(found: Check) -> list[Section]:
    """Return the sections on a check, the verdict first."""
    findings = [
        [each.feature, each.kind, f"{each.then:.3f}", f"{each.now:.3f}", f"{each.z:+.1f}"]
        for each in found.findings
    ]
    measures = [
        [
            name, _with_error(one.then, one.then_error), _with_error(one.now, one.now_error),
            "–" if one.p is None else f"{one.p:.2g}",
        ]
        for name, one in found.measures.items()
    ]  # fmt: skip
    clicks = [
        [name, f"{one.value:.4f}", f"{one.low:.4f} to {one.high:.4f}"]
        for name, one in found.clicks.items()
    ]
    sections = [
        Section("Verdict", found.verdict, found.alarms),
        Section(
            "Which features changed?",
            heads=("feature", "what", "then", "now", "standard errors"),
            rows=findings,
            note="Shares of documents, or a correlation. The largest difference of all features is "
            f"beyond {found.threshold:.1f} standard errors by chance in 2 of 100 checks.",
        ),
        Section(
            "Are rankings worse?",
            heads=("", "then", "now", "p"),
            rows=measures,
            note="Then: on held-out queries when the model was trained. p: of a fall, one-sided.",
        ),
        Section("How many clicks?", heads=("per list", "clicks", "95% interval"), rows=clicks),
    ]
    if (bound := found.bound) is not None:
        says = f"{found.refit_text}. " if found.alarms else ""  # else the verdict says it
        says += f"Objective {bound.objective:.5f}; no weights of the same terms reach less than "
        moves = [] if found.held_out is None else list(bound.moves.items())[:MOST_MOVES]
        sections.append(
            Section(
                "What would a refit gain?",
                f"{says}{bound.lower:.5f}.",
                heads=("feature", "gradient"),
                rows=[[name, f"{size:.3g}"] for name, size in moves],
                note="How much the weights of a feature should move, as a share of the strength of "
                "the penalty."
                if moves
                else "",
            )
        )
    return [*sections, Section("What could not be checked?", items=found.notes)]


def _with_error(value: float | None, error: float | None) -> str:
    """Return a mean and its standard error as text, as far as known."""
    if value is None:
        return "–"
    return f"{value:.4f}" if error is None else f"{value:.4f} ± {error:.4f}"


def write_page(found: Diff | Check, path: str | os.PathLike[str], title: str) -> None:
    """Write the page of a difference between two models, or of a check."""
    if isinstance(found, Diff):
        parts = [_section(one) for one in diff_sections(found)]
        parts.insert(4, _curves(found))  # after the table of the terms
    else:
        parts = [_section(one) for one in check_sections(found)]
    lead = f"{found.data.n_queries:,} queries, {len(found.data):,} documents."
    with atomic_write(path) as stream:
        stream.write(static_page(title, lead, "".join(parts)))


def _section(one: Section, body: str = "") -> str:
    """Return a section as HTML."""
    if one.text:
        body += f"<p>{escape(one.text[:1].upper() + one.text[1:].removesuffix('.'))}.</p>"
    if one.items:
        body += "<ul>" + "".join(f"<li>{escape(text)}</li>" for text in one.items) + "</ul>"
    if one.rows:
        body += figures_table(one.heads, one.rows)
    if not body:
        return ""
    note = f'<p class="note">{escape(one.note)}</p>' if one.note else ""
    return f"<section><h2>{escape(one.title)}</h2>\n{body}{note}</section>\n"


def _curves(found: Diff) -> str:
    """Return charts of the curves of both models, in standard deviations of the scores."""
    parts = [
        {one["feature"]: one for one in curve_parts(model, found.data, most=model.n_features)}
        for model in (found.old, found.new)
    ]
    charts: list[str] = []
    if any(one["scaled"] for each in parts for one in each.values()):
        return ""  # curves of features that are scaled by query have no common axis
    for term in found.terms:
        pair = [each[term.name]["rows"]["curve"] if term.name in each else [] for each in parts]
        bends = [point["x"] for points in pair for point in points]
        if not bends or len(charts) == MOST_CURVES:
            continue
        x = np.union1d(np.linspace(min(bends), max(bends), 60), bends)
        both = {name: np.zeros(len(x)) for name in ("old", "new")}
        for line, points, spread in zip(both.values(), pair, found.spreads, strict=True):
            if points:
                places, heights = ([point[axis] for point in points] for axis in "xy")
                line += np.interp(x, places, heights) / spread
        chart = drawn(lines(x, both, width=WIDTH, height=150))
        charts.append(f"<div><h3>{escape(term.name)}</h3>{chart}</div>")
    if not charts:
        return ""
    note = "What each feature adds to a score, less its mean, in standard deviations of the scores."
    about = Section("How do the curves differ?", note=note)
    return _section(about, f'<div class="both">{"".join(charts)}</div>')
