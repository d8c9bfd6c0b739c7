"""A comparison as text: Markdown, and plain values for JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from leanrank.metrics.judge import mean_of
from leanrank.model.provenance import to_json_values
from leanrank.selection.compare import SIGNIFICANT, ComparedSet, Outcome, Row

MARK = "°"
HEADS = {"map": "MAP", "mean_ndcg": "mean NDCG"}
OTHERS = ("used", "fit s", "search s", "score ms")
"""The columns after the measures: features used, seconds of the chosen fit and of the search, and
milliseconds to score a thousand documents; all are means over the splits."""


def head(measure: str) -> str:
    """Return the head of a column.

    >>> head("map"), head("ndcg@10")
    ('MAP', 'NDCG@10')
    """
    return HEADS.get(measure, measure.upper())


def cells(row: Row, measures: Sequence[str]) -> list[str]:
    """Return the texts of a row, with a mark where it is significantly worse than the best."""
    values = [f"{row.means[m]:.4f}{MARK * is_worse(row, m)}" for m in measures]
    return [
        *values,
        f"{row.n_features:.1f}",
        seconds(row.fit_seconds),
        seconds(row.search_seconds),
        seconds(1000 * row.predict_seconds),
    ]


def is_worse(row: Row, measure: str) -> bool:
    """Return whether a system is significantly worse than the best by a measure."""
    return row.worse.get(measure, 1.0) < SIGNIFICANT


def seconds(value: float) -> str:
    """Write a time with about two digits.

    >>> seconds(0.00321), seconds(0.5), seconds(12.34)
    ('0.0032', '0.50', '12')
    """
    if not math.isfinite(value):
        return "–"
    if value >= 10:
        return f"{value:.0f}"
    digits = 1 if value <= 0 else max(1, 1 - math.floor(math.log10(value)))
    return f"{value:.{min(digits, 4)}f}"


def legend(compared: ComparedSet) -> str:
    """Explain a table."""
    n_splits = len(compared.folds)
    reasons = [outcome.scaled for outcome in compared.outcomes if outcome.scaled]
    averaged = f"means over {n_splits} splits" if n_splits > 1 else "one split"
    return (
        f"Convention {compared.convention}, {averaged}; parameters by validation "
        f"{head(compared.choose_by)}. {MARK}: worse than the best in its column, p < "
        f"{SIGNIFICANT:g} (paired randomisation test over queries, Holm). Used: features with "
        "a part in the scores; fit: seconds of the chosen fit; search: seconds of the whole search "
        "before it; score: milliseconds for 1,000 documents."
    ) + (f" Features were standardised, because {reasons[0]}." if reasons else "")


def markdown(compared: Sequence[ComparedSet]) -> str:
    """Write tables for a web page; the best of each column is bold."""
    parts = []
    for one in compared:
        lines = [f"### {one.name}", ""]
        heads = ["", *map(head, one.measures), *OTHERS]
        lines += [_line(heads), _line(["---"] + ["---:"] * (len(heads) - 1))]
        for row in one.rows:
            texts = cells(row, one.measures)
            for at, measure in enumerate(one.measures):
                if one.best(measure) == row.system:
                    texts[at] = f"**{texts[at]}**"
            lines.append(_line([row.title, *texts]))
        lines += ["", legend(one), *(f"\n{problem}" for problem in one.problems)]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def to_dict(compared: Sequence[ComparedSet]) -> dict[str, Any]:
    """Return plain values, ready for JSON."""
    return {
        "sets": [
            {
                "name": one.name,
                "convention": one.convention,
                "choose_by": one.choose_by,
                "problems": one.problems,
                "systems": [
                    {
                        "system": row.system,
                        "title": row.title,
                        "means": row.means,
                        "p_worse": row.worse,
                        "features": row.n_features,
                        "fit_seconds": row.fit_seconds,
                        "search_seconds": row.search_seconds,
                        "predict_seconds_per_1000": row.predict_seconds,
                        "splits": [_split(o) for o in one.outcomes if o.system == row.system],
                    }
                    for row in one.rows
                ],
            }
            for one in compared
        ]
    }


def _split(o: Outcome) -> dict[str, Any]:
    return {
        "split": o.fold,
        "validation": o.chosen.value,
        "parameters": to_json_values(dict(o.chosen.parameters)),
        "means": {m: mean_of(v) for m, v in o.per_query.items()},
        "features": o.chosen.n_features,
        "trials": o.chosen.n_trials,
        "fit_seconds": o.chosen.seconds,
        "search_seconds": o.chosen.search_seconds,
        "predict_seconds_per_1000": o.predict_seconds,
        "notes": list(o.chosen.notes),
    }


def _line(texts: Sequence[str]) -> str:
    return "| " + " | ".join(texts) + " |"
