"""A page about learners tried on simulated users: one HTML file without scripts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape

import numpy as np

from leanrank._files import atomic_write
from leanrank._typing import FloatArray
from leanrank.online.trial import Learned, Preference, Trial
from leanrank.report.page import drawn_lines, figures_table, static_page

_STYLE = """
.chart { margin: .8rem 0 1.6rem; }
.chart h3 { margin: 0 0 .3rem; }
"""


def write_trial(trial: Trial, path: str | os.PathLike[str], *, title: str | None = None) -> None:
    """Write what learners did as one HTML file that opens from disk and loads nothing.

    Parameters
    ----------
    trial : Trial
        From ``leanrank.online.trial.try_learners``.
    path : path
        Where to write; ``"-"`` is standard output.
    title : str, optional
    """
    users = list(dict.fromkeys(one.user for one in trial.results))
    names = list(dict.fromkeys(one.learner for one in trial.results))
    lead = (
        f"{', '.join(names)} on {trial.n_queries:,} simulated lists of ten, "
        f"{trial.n_seeds} run{'s' * (trial.n_seeds != 1)} each. {trial.data.n_queries:,} queries, "
        f"{len(trial.data):,} documents, {trial.data.n_features:,} features."
    )
    sections = [_user(trial, [one for one in trial.results if one.user == who]) for who in users]
    links = "".join(f'<a href="#{escape(who)}">{escape(who)}</a>' for who in users)
    links = f'<nav aria-label="Users">{links}</nav>\n' if len(users) > 1 else ""
    title = title or "Learning from clicks"
    with atomic_write(path) as stream:
        stream.write(static_page(title, lead, "".join(sections), links=links, style=_STYLE))


def _user(trial: Trial, results: Sequence[Learned]) -> str:
    """Write the section of one kind of user."""
    who, where = results[0].user, "other queries" if trial.held_out else "the same queries"
    best = max(results, key=lambda one: float(one.learned[:, -1].mean()))
    served = max(results, key=lambda one: float(one.cumulative.mean()))
    verdict = (
        f"Highest means: {best.learner} for what was learned after {trial.n_queries:,} lists "
        f"(NDCG@10 {best.learned[:, -1].mean():.4f} on {where}), {served.learner} for the lists "
        "shown while learning."
    )
    charts = [
        _chart(title, {one.learner: getattr(one, part) for one in results}, results[0])
        for title, part in (
            (f"NDCG@10 of what was learned, on {where}", "learned"),
            ("NDCG@10 of the lists shown", "served"),
        )
    ]
    shaded = " Shaded: 95 % of the mean over the runs." if trial.n_seeds > 1 else ""
    return (
        f'<section id="{escape(who)}"><h2>{escape(who.capitalize())} users</h2>\n'
        f'<p class="verdict">{escape(verdict)}</p>\n{_figures(results)}'
        '<p class="note">Cumulative: the sum of the NDCG of all lists shown, list t times 0.995 to '
        "the power t. Preferred: lists, interleaved by team draft, on which users preferred the "
        "last ranker of the first run to the one it began with, a random order.</p>\n"
        f'{"".join(charts)}<p class="note">The axis of lists is logarithmic.{shaded}</p>\n'
        "</section>\n"
    )


def _figures(results: Sequence[Learned]) -> str:
    middle = [at for at in (100,) if at in results[0].at.tolist() and at < results[0].at[-1]]
    heads = ["learner", "cumulative NDCG", *(f"NDCG@10 after {at:,}" for at in middle)]
    heads += [f"after {results[0].at[-1]:,}", "features", "preferred to the first"]
    rows = []
    for one in results:
        at = [int(np.searchsorted(one.at, step)) for step in middle]
        cells = [_mean(one.cumulative, 2), *(_mean(one.learned[:, i], 4) for i in at)]
        cells += [_mean(one.learned[:, -1], 4), f"{one.features.mean():g}"]
        rows.append([one.learner, *cells, preference_text(one.preference)])
    return figures_table("Figures", heads, rows)


def preference_text(preference: Preference) -> str:
    """Write how users chose between the first and the last ranker.

    >>> preference_text(Preference(n_lists=2000, wins=900, losses=300, decided=85))
    '900 : 300 of 2,000, clear after 85'
    """
    when = "undecided" if preference.decided is None else f"clear after {preference.decided:,}"
    return f"{preference.wins:,} : {preference.losses:,} of {preference.n_lists:,}, {when}"


def _mean(values: FloatArray, digits: int) -> str:
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{values.mean():.{digits}f} ± {half_width(values):.{digits}f}"


def half_width(values: FloatArray) -> float:
    """Return half the width of the 95 % interval of a mean."""
    from scipy.stats import t

    n = len(values)
    return float(t.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n)) if n > 1 else 0.0


def _chart(title: str, curves: dict[str, FloatArray], one: Learned) -> str:
    """Draw a chart twice, for wide and for narrow screens."""
    begin = int(np.searchsorted(one.at, 10)) if one.at[-1] >= 100 else 0  # noise before that
    means, bands = {}, {}
    for name, values in curves.items():
        half = np.array([half_width(column) for column in values.T[begin:]])
        means[name] = values.mean(axis=0)[begin:]
        low, high = np.clip((means[name] - half, means[name] + half), 0.0, 1.0).tolist()
        bands[name] = list(zip(low, high, strict=True))
    both = drawn_lines(
        one.at[begin:].tolist(),
        means,
        x_label="lists shown",
        y_label="NDCG@10",
        bands=bands,
        log_x=True,
    )
    return f'<div class="chart"><h3>{escape(title)}</h3>{both}</div>\n'
