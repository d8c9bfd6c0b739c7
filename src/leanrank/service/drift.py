"""Detecting changed features: today's figures compared with the summary in the model file.

All figures of all features are one family of tests: the threshold is a quantile of the largest of
them in a bootstrap over queries, so that the probability of any false alarm is ``LEVEL``. Findings
are the significant and large differences.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.errors import ModelError
from leanrank.model import Levels, Model
from leanrank.model.summary import FEWEST_QUERIES, OTHERS, Columns, Figures

LEVEL = 0.02
"""Probability of a false alarm among all features."""

DRAWS, MOST_DRAWN = 1_000, 2_000
UNITS = (10.0, 60.0, 100.0, 1000.0, 1024.0, 3600.0, 1e6)
_LARGE = {"share": 0.05, "missing": 0.02, "beyond": 0.05, "within": 0.1, "agreement": 0.15}
_NEW_LEVELS = 0.005


@dataclass(frozen=True)
class Finding:
    """A difference in a feature.

    Attributes
    ----------
    feature : str
    kind : str
        ``moved``, ``missing``, ``beyond``, ``new levels``, ``within`` or ``agreement``.
    then, now : float
        The figure in the summary and today: shares of documents, or a correlation.
    z : float
        Their difference in standard errors.
    text : str
        A sentence.
    """

    feature: str
    kind: str
    then: float
    now: float
    z: float
    text: str


def changed_features(
    model: Model, data: RankingData, seed: int, notes: list[str]
) -> tuple[list[Finding], float]:
    """Return the findings on the features of a model, and the threshold in standard errors."""
    if not model.summary:
        notes.append("the model file has no summary of its training data: train it again with one")
        return [], np.inf
    if data.n_queries < FEWEST_QUERIES:
        notes.append(f"there are fewer than {FEWEST_QUERIES} queries: too few to compare features")
        return [], np.inf
    columns, summary, names = Columns.of(model, data), model.summary, model.feature_names
    try:
        features = [
            int(entry["feature"]) if names is None else names.index(entry["feature"])
            for entry in summary
        ]
        figures = [columns.figures(at, entry) for at, entry in zip(features, summary, strict=True)]
        then, then_error = (
            np.concatenate([np.array(entry[key], dtype=np.float64) for entry in summary])
            for key in ("values", "errors")
        )
        now = np.concatenate([one.values for one in figures])
        if not len(then) == len(then_error) == len(now):
            raise ValueError("figures are missing")
    except (KeyError, TypeError, ValueError) as wrong:
        raise ModelError(
            f"the summary of the model cannot be used ({wrong}): train it again"
        ) from wrong
    error = np.hypot(then_error, np.concatenate([one.errors for one in figures]))
    z = np.nan_to_num((now - then) / error)
    threshold = largest_by_chance(figures, then_error, seed)
    ends = np.cumsum([len(one.values) for one in figures])[:-1]
    parts = np.split(np.stack([then, now, z]), ends, axis=1)
    found: dict[int, tuple[Finding, Any, FloatArray]] = {}
    for at, entry, part in zip(features, summary, parts, strict=True):
        finding = _finding(columns, at, entry, part, threshold)
        if finding is not None:
            found[at] = finding, entry, part[0]
    if any(finding.kind != "agreement" for finding, _, _ in found.values()):
        # a changed feature changes the agreement of all others with the rest of the score
        found = {at: each for at, each in found.items() if each[0].kind != "agreement"}
    named = [
        replace(finding, text=finding.text + _swapped(columns, at, list(found), entry, shares))
        for at, (finding, entry, shares) in found.items()
    ]
    return sorted(named, key=lambda each: -abs(each.z)), threshold


def largest_by_chance(figures: list[Figures], then_error: FloatArray, seed: int) -> float:
    """Return the quantile 1 − ``LEVEL`` of the largest |z| if nothing has changed.

    Each bootstrap sample is compared with its own standard error; the error of the summary is added
    as normal noise.
    """
    influence = np.concatenate([one.influence for one in figures], axis=1)
    errors = np.concatenate([one.errors for one in figures])
    rng = np.random.default_rng(seed)
    if len(influence) > MOST_DRAWN:  # rescale influences to all queries
        kept = rng.choice(len(influence), MOST_DRAWN, replace=False)
        influence = influence[kept] * np.sqrt(len(influence) / MOST_DRAWN)
        influence -= influence.mean(axis=0)
    n = len(influence)
    largest = np.zeros(DRAWS)
    for begin in range(0, DRAWS, 100):
        times = rng.multinomial(n, np.full(n, 1.0 / n), size=100).astype(np.float64)
        moved = times @ influence
        spread = np.maximum(times @ influence**2 - moved**2 / n, 0.0)
        own = np.maximum(spread * n / max(n - 1, 1), (1.0 / n) ** 2)
        noise = rng.standard_normal(moved.shape) * then_error
        z = (moved + noise) / np.sqrt(own + then_error**2)
        largest[begin : begin + 100] = np.abs(np.where(errors > 0, z, 0.0)).max(axis=1, initial=0.0)
    return float(np.quantile(largest, 1.0 - LEVEL))


def _finding(
    columns: Columns,
    feature: int,
    entry: Mapping[str, Any],
    figures: FloatArray,
    threshold: float,
) -> Finding | None:
    """Return a finding on the figure of a feature that differs most, if it differs enough."""
    then, now, z = figures
    kinds = ["share"] * (len(z) - len(OTHERS)) + list(OTHERS)
    gaps, beyond = kinds.index("missing"), kinds.index("beyond")
    category = isinstance(columns.model.curves.get(feature), Levels)
    change = np.nan_to_num(now - then)
    wrong = (np.abs(z) > threshold) & (np.abs(change) >= [_LARGE[kind] for kind in kinds])
    if category:
        wrong[beyond] = change[beyond] > _NEW_LEVELS
    wrong[[gaps, beyond]] &= change[[gaps, beyond]] > 0  # fewer gaps or outliers are fine
    if not wrong.any():
        return None
    at = int(np.argmax(np.where(wrong, np.abs(z), -1.0)))
    if wrong[gaps] and (kinds[at] != "share" or change[gaps] > 0.1):
        at = gaps
    elif category and wrong[beyond]:
        at = beyond
    kind, before, today = kinds[at], float(then[at]), float(now[at])
    name = feature_name(feature, columns.model.feature_names)
    x = columns.values[feature]
    known = x[~np.isnan(x)]
    if kind == "missing":
        text = f"is missing in {today:.1%} of the documents, and was in {before:.1%}"
    elif kind == "beyond" and category:
        kind = "new levels"
        text = f"has a level that the model does not know in {today:.1%} of the documents"
    elif len(known) and known.min() == known.max():
        kind, text = "moved", f"has one value, {known[0]:.6g}, in all documents"
    elif kind == "share" and category:
        kind = "moved"
        text = f"is {entry['levels'][at]} in {today:.1%} of the documents, and was in {before:.1%}"
    elif kind in ("share", "beyond"):
        moved, unit = _distance(x, entry, then), _unit(x, entry, then)
        kind = "beyond" if kind == "beyond" and moved < _LARGE["share"] else "moved"
        if unit:
            text = f"is {unit} as large as it was: in another unit?"
        elif kind == "beyond":
            text = f"is beyond the knots of its curve in {today:.1%}, and was in {before:.1%}"
        else:
            text = f"has another distribution: Kolmogorov–Smirnov distance {moved:.2f}"
    else:
        what = (
            "share of variance within queries"
            if kind == "within"
            else "correlation with the rest of the score"
        )
        text = (
            f"has the {what} {today:.2f}, and had {before:.2f}: are its values, or those of "
            "another feature, from other documents?"
        )
    return Finding(name, kind, before, today, float(z[at]), f"{name} {text}")


def _distance(x: FloatArray, entry: Mapping[str, Any], then: FloatArray) -> float:
    """Return the Kolmogorov–Smirnov distance from the summary, at its cuts."""
    cuts = np.array(entry.get("cuts", ()), dtype=np.float64)
    known = np.sort(x[~np.isnan(x)])
    if not len(known) or not len(cuts):
        return 1.0
    shares = np.searchsorted(known, cuts * (1 + 1e-9 * np.sign(cuts)), side="right") / len(known)
    return float(np.abs(shares - then[: len(cuts)]).max())


def _unit(x: FloatArray, entry: Mapping[str, Any], then: FloatArray) -> str:
    """Return a text on a factor between the values and the summary, if there is one."""
    plain = _distance(x, entry, then)
    factors = {f"{unit:g} times": unit for unit in UNITS}
    factors |= {f"1/{unit:g}": 1.0 / unit for unit in UNITS}
    found = {text: _distance(x / factor, entry, then) for text, factor in factors.items()}
    best = min(found, key=lambda text: found[text])
    if found[best] >= min(0.15, 0.5 * plain):
        return ""
    for one, other in (("1000 times", "1024 times"), ("1/1000", "1/1024")):
        if best in (one, other) and abs(found[one] - found[other]) < 0.05:
            return f"{one} or {other}"  # too close to distinguish by shares
    return best


def _swapped(
    columns: Columns, feature: int, changed: list[int], entry: Mapping[str, Any], then: FloatArray
) -> str:
    """Return a text on the changed column that has this one's former distribution, if any."""
    if len(entry.get("cuts", ())) < 3:
        return ""
    plain = _distance(columns.values[feature], entry, then)
    others = {j: _distance(columns.values[j], entry, then) for j in changed if j != feature}
    best = min(others, key=lambda j: others[j], default=feature)
    if best == feature or others[best] > min(0.15, 0.5 * plain):
        return ""
    return f"; {feature_name(best, columns.model.feature_names)} looks as it did: swapped?"
