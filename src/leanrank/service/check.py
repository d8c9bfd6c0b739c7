"""Is a model still right for today's documents: its features, its measures, its objective.

Features are compared with the summary in the model file. All figures of all features are one family
of tests: the threshold is the quantile of the largest of them over queries drawn again, so that the
chance of any false alarm is ``LEVEL``. Those that are significant and large are told.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.stats import norm

from leanrank._display import printable_lines
from leanrank._typing import FloatArray
from leanrank.data.clicks.click_log import ClickLog
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.errors import InputError, ModelError
from leanrank.metrics import evaluate
from leanrank.metrics.judge import better_sign
from leanrank.model import Levels, Model
from leanrank.model.summary import OTHERS, Columns, Figures
from leanrank.model.writing import as_model
from leanrank.service.documents import documents_for, judged_rows
from leanrank.service.refit import Bound, Today, refit_bound

LEVEL = 0.02
"""Chance of a false alarm among all features; measures and refit have half of it each."""

MIN_GAIN = 0.005
"""Share of the loss that a refit must gain to be worth it."""

FEWEST_QUERIES, DRAWS, MOST_DRAWN = 20, 1_000, 2_000
UNITS = (10.0, 60.0, 100.0, 1000.0, 1024.0, 3600.0, 1e6)
_LARGE = {"share": 0.05, "missing": 0.02, "beyond": 0.05, "within": 0.1, "agreement": 0.15}
_NEW_LEVELS = 0.005


@dataclass(frozen=True)
class Finding:
    """What is different in a feature.

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


@dataclass(frozen=True)
class Measured:
    """A measure when the model was trained and today; ``p`` is one-sided, None without a test."""

    then: float | None
    then_error: float | None
    now: float
    now_error: float
    p: float | None


@dataclass(frozen=True)
class Gain:
    """What a refit gains on queries that it has not seen, as a share of the loss."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Check:
    """Whether a model is still right.

    Attributes
    ----------
    findings : list of Finding
        Features that changed, largest first.
    measures : dict of str to Measured
    clicks : dict of str to Estimate
        Clicks per list by each estimator and ``logged``; empty without a click log.
    bound : Bound or None
    held_out : Gain or None
        Only if the bound is above ``MIN_GAIN``.
    notes : list of str
        What could not be checked, and why.
    threshold : float
        Standard errors from which a figure counts as different.
    n_queries, n_documents : int
    """

    model: Model
    findings: list[Finding]
    measures: dict[str, Measured]
    clicks: dict[str, Any]
    bound: Bound | None
    held_out: Gain | None
    notes: list[str]
    threshold: float
    n_queries: int
    n_documents: int

    @property
    def alarms(self) -> list[str]:
        """What calls for action, one sentence each; empty if the model is still right."""
        found = [each.text for each in self.findings]
        for name, one in self.measures.items():
            if one.p is not None and one.p < LEVEL / 2:
                found.append(
                    f"{name} was {one.then:.4f} and is {one.now:.4f} (p = {one.p:.2g}): rankings "
                    "are worse than they were"
                )
        if self.held_out is not None and self.needs_refit:
            found.append(
                f"a refit gains {self.held_out.value:.1%} of the loss on queries that it has not "
                f"seen (at least {self.held_out.low:.1%}): learn again"
            )
        return found

    @property
    def needs_refit(self) -> bool:
        """Whether a refit helps on queries that it has not seen."""
        return self.held_out is not None and self.held_out.low > 0 < self.held_out.value - MIN_GAIN

    @property
    def refit_text(self) -> str:
        """What the certificate says, as a sentence; empty without labels."""
        if self.bound is None:
            return ""
        says = f"a refit can gain at most {self.bound.gain:.2%} of the loss"
        if self.held_out is None:
            return f"{says}: no need"
        one = self.held_out
        seen = f"{one.value:+.2%} ({one.low:+.2%} to {one.high:+.2%}) on queries it has not seen"
        return f"{says}, and gains {seen}: {'learn again' if self.needs_refit else 'no need'}"

    @property
    def verdict(self) -> str:
        """One sentence for the person who decides."""
        if not self.alarms:
            return "still right" + f"; {self.refit_text}" * bool(self.refit_text)
        n = len({each.feature for each in self.findings})
        parts = [f"{n} feature{'s' * (n != 1)} changed"] if n else []
        parts += ["rankings are worse"] * any("worse" in each for each in self.alarms)
        parts += ["learn again"] * self.needs_refit
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        bound = None if self.bound is None else {**vars(self.bound), "gain": self.bound.gain}
        return {
            "verdict": self.verdict,
            "alarms": self.alarms,
            "queries": self.n_queries,
            "documents": self.n_documents,
            "features": [vars(each) for each in self.findings],
            "measures": {name: vars(one) for name, one in self.measures.items()},
            "clicks": {name: vars(one) for name, one in self.clicks.items()},
            "refit": bound,
            "refit_held_out": None if self.held_out is None else vars(self.held_out),
            "notes": self.notes,
            "threshold": self.threshold,
        }

    def write(self, path: str | os.PathLike[str], *, title: str = "Is it still right?") -> None:
        """Write an HTML page that opens from disk and loads nothing; ``"-"`` is standard output."""
        from leanrank.service.pages import write_check

        write_check(self, path, title)

    def __repr__(self) -> str:
        lines = [f"Check: {self.verdict}", *(f"  {alarm}" for alarm in self.alarms)]
        return printable_lines("\n".join([*lines, *(f"  note: {note}" for note in self.notes)]))


def check(
    model: Any,
    data: Any,
    y: Any = None,
    qid: Any = None,
    *,
    measures: str | tuple[str, ...] = ("ndcg@10", "map"),
    random_state: int = 0,
    n_jobs: int | None = None,
    **policy: Any,
) -> Check:
    """Check whether a model is still right for today's documents.

    Parameters
    ----------
    model : Model or fitted ranker
        With the summary of its training documents.
    data : RankingData, ClickLog, array or data frame
        Today's documents. With labels, measures and the gain of a refit are checked as well; a
        ClickLog with propensities gives expected clicks.
    y, qid : array-like, optional
        Labels and queries of an array or frame.
    measures : str or sequence of str
    random_state : int, default=0
        Seed of the queries that are drawn again.
    n_jobs : int, optional
    **policy
        For ``leanrank.online.evaluate_policy``.

    Examples
    --------
    >>> from leanrank import LeanRanker
    >>> from leanrank.data import load_sample
    >>> train, vali, test = load_sample()
    >>> model = LeanRanker(max_features=3).fit(train).to_model()
    >>> check(model, test).alarms
    []
    >>> feature = int(model.indices[0])
    >>> broken = test.X.copy()
    >>> broken[:, feature] *= 1000
    >>> check(model, test.replace(X=broken)).findings[0].kind
    'moved'
    """
    known = as_model(model)
    log = data if isinstance(data, ClickLog) else None
    documents = documents_for(known, log.data if log else data, y, qid)
    notes: list[str] = []
    findings, threshold = _features(known, documents, random_state, notes)
    measured: dict[str, Measured] = {}
    clicks: dict[str, Any] = {}
    bound = gain = None
    rows = None if log else judged_rows(documents)
    try:
        if log is not None:
            from leanrank.online.offpolicy import evaluate_policy

            value = evaluate_policy(log, known.predict(documents), **policy)
            clicks = {"logged": value.logged, **value.estimates}
        elif rows is not None:
            judged = documents if rows.all() else _only(documents, rows)
            measured = _measures(known, judged, measures)
            today = Today(known, judged, n_jobs=n_jobs)
            bound = refit_bound(today)
            if bound.gain > MIN_GAIN:
                gain = held_out_gain(today, random_state)
        else:
            notes.append("there are no labels, so measures and the gain of a refit are unknown")
    except (ModelError, InputError) as error:
        notes.append(str(error))
    return Check(
        known, findings, measured, clicks, bound, gain, notes, threshold, documents.n_queries,
        len(documents),
    )  # fmt: skip


def held_out_gain(today: Today, seed: int = 0) -> Gain:
    """Measure what a refit gains on queries that it has not seen: each half by the other.

    The interval is that of queries drawn again, at twice ``LEVEL / 2``.
    """
    informative = np.flatnonzero(today.plan.scale > 0)
    rng = np.random.default_rng(seed)
    first = np.zeros(len(today.plan.scale), dtype=bool)
    first[rng.permutation(informative)[::2]] = True
    before, after = today.losses(today.w), np.zeros(len(first))
    for half in (first, ~first):
        after[half] = today.losses(today.solve(1e-3, queries=~half).w)[half]
    gains, total = (before - after)[informative], before.sum()
    drawn = rng.multinomial(len(gains), np.full(len(gains), 1 / len(gains)), size=DRAWS) @ gains
    low, high = np.quantile(drawn, (LEVEL / 2, 1 - LEVEL / 2)) / total
    return Gain(float(gains.sum() / total), float(low), float(high))


def _only(data: RankingData, rows: Any) -> RankingData:
    """Return the documents of some rows."""
    weights = None if data.sample_weight is None else data.sample_weight[rows]
    return RankingData(
        data.X[rows], data.y[rows], data.qid[rows], feature_names=data.feature_names,
        sample_weight=weights,
    )  # fmt: skip


def _measures(model: Model, data: RankingData, measures: Any) -> dict[str, Measured]:
    """Measure today's documents beside what was measured when the model was trained."""
    training = model.provenance.get("training") or {}
    row, told = training.get("held_out") or {}, model.provenance.get("measures") or {}
    found = evaluate(data, model.predict(data), measures=measures)
    out = {}
    for name, values in found.per_query.items():
        values = values[~np.isnan(values)]
        now, error = float(values.mean()), float(values.std() / np.sqrt(max(len(values) - 1, 1)))
        held_out, validation = row.get(name), (told.get("validation") or {}).get(name)
        then = held_out if validation is None else validation
        then_error = row.get(f"{name}_error") if validation is None else error
        p = None
        if then is not None and then_error is not None and len(values) >= FEWEST_QUERIES:
            p = float(norm.cdf(better_sign(name) * (now - then) / np.hypot(error, then_error)))
        elif then is None:
            then = (told.get("training") or {}).get(name)
        out[name] = Measured(then, None if p is None else then_error, now, error, p)
    return out


def _features(
    model: Model, data: RankingData, seed: int, notes: list[str]
) -> tuple[list[Finding], float]:
    """Compare the features with the summary of the model."""
    if not model.summary:
        notes.append("the model file has no summary of its training data: train it again with one")
        return [], np.inf
    if data.n_queries < FEWEST_QUERIES:
        notes.append(f"there are fewer than {FEWEST_QUERIES} queries: too few to compare features")
        return [], np.inf
    columns = Columns.of(model, data)
    names, entries, figures = model.feature_names, [], []
    for entry in model.summary:
        name = entry["feature"]
        at = int(name) if names is None else names.index(name)
        entries.append((at, entry))
        try:
            figures.append(columns.figures(at, entry))
        except (KeyError, TypeError, ValueError) as wrong:
            raise ModelError(f"the summary of feature {name!r} cannot be used: {wrong}") from wrong
    then, then_error = (
        np.concatenate([np.array(entry[key], dtype=np.float64) for _, entry in entries])
        for key in ("values", "errors")
    )
    now = np.concatenate([one.values for one in figures])
    if len(then) != len(now) or len(then_error) != len(now):
        raise ModelError("the summary of the model has another length: train it again")
    error = np.hypot(then_error, np.concatenate([one.errors for one in figures]))
    z = np.nan_to_num((now - then) / error)
    threshold = largest_by_chance(figures, then_error, seed)
    found: dict[int, tuple[Finding, Any, FloatArray]] = {}
    begin = 0
    for (at, entry), one in zip(entries, figures, strict=True):
        part = slice(begin, begin + len(one.values))
        begin = part.stop
        finding = _finding(columns, at, entry, then[part], now[part], z[part], threshold)
        if finding is not None:
            found[at] = finding, entry, then[part]
    if any(finding.kind != "agreement" for finding, _, _ in found.values()):
        # a feature that changed changes the rest of the score for all others
        found = {at: each for at, each in found.items() if each[0].kind != "agreement"}
    told = [
        replace(finding, text=finding.text + _swapped(columns, at, list(found), entry, shares))
        for at, (finding, entry, shares) in found.items()
    ]
    return sorted(told, key=lambda each: -abs(each.z)), threshold


def largest_by_chance(figures: list[Figures], then_error: FloatArray, seed: int) -> float:
    """Return the quantile 1 − ``LEVEL`` of the largest |z| if nothing has changed.

    Queries are drawn again, and every draw is compared with its own standard error; the error of
    the summary is added as normal noise.
    """
    influence = np.concatenate([one.influence for one in figures], axis=1)
    errors = np.concatenate([one.errors for one in figures])
    rng = np.random.default_rng(seed)
    if len(influence) > MOST_DRAWN:  # their own errors are larger, and so is what they are for
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
    then: FloatArray,
    now: FloatArray,
    z: FloatArray,
    threshold: float,
) -> Finding | None:
    """Describe the figure of a feature that differs most, if any differs enough."""
    n_shares = len(z) - len(OTHERS)
    kinds = ["share"] * n_shares + list(OTHERS)
    category = isinstance(columns.model.curves.get(feature), Levels)
    large = np.array([_LARGE[kind] for kind in kinds])
    change = np.nan_to_num(now - then)
    wrong = (np.abs(z) > threshold) & (np.abs(change) >= large)
    if category:
        at = kinds.index("beyond")
        wrong[at] = now[at] - then[at] > _NEW_LEVELS
    for kind in ("missing", "beyond"):  # fewer gaps, or fewer values far out, are no harm
        wrong[kinds.index(kind)] &= now[kinds.index(kind)] > then[kinds.index(kind)]
    if not wrong.any():
        return None
    at = int(np.argmax(np.where(wrong, np.abs(z), -1.0)))
    name = feature_name(feature, columns.model.feature_names)
    x = columns.values[feature]
    known = x[~np.isnan(x)]
    kind = kinds[at]
    before, today = float(then[at]), float(now[at])
    gaps = kinds.index("missing")
    if wrong[gaps] and (kind != "share" or now[gaps] - then[gaps] > 0.1):
        kind, before, today, at = "missing", float(then[gaps]), float(now[gaps]), gaps
        text = f"is missing in {today:.1%} of the documents, and was in {before:.1%}"
    elif category and wrong[kinds.index("beyond")]:
        at = kinds.index("beyond")
        kind, before, today = "new levels", float(then[at]), float(now[at])
        text = f"has a level that the model does not know in {today:.1%} of the documents"
    elif len(known) and known.min() == known.max():
        kind, text = "moved", f"has one value, {known[0]:.6g}, in all documents"
    elif kind == "share" and category:
        kind = "moved"
        text = f"is {entry['levels'][at]} in {today:.1%} of the documents, and was in {before:.1%}"
    elif kind in ("share", "beyond"):
        moved = _distance(columns.values[feature], entry, then)
        unit = _unit(x, entry, then)
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
    """Recognise a factor between the values and the summary."""
    plain = _distance(x, entry, then)
    factors = {f"{unit:g} times": unit for unit in UNITS}
    factors |= {f"1/{unit:g}": 1.0 / unit for unit in UNITS}
    found = {text: _distance(x / factor, entry, then) for text, factor in factors.items()}
    best = min(found, key=lambda text: found[text])
    if found[best] >= min(0.15, 0.5 * plain):
        return ""
    for one, other in (("1000 times", "1024 times"), ("1/1000", "1/1024")):
        if best in (one, other) and abs(found[one] - found[other]) < 0.05:
            return f"{one} or {other}"  # too near to be told apart by shares
    return best


def _swapped(
    columns: Columns, feature: int, changed: list[int], entry: Mapping[str, Any], then: FloatArray
) -> str:
    """Name the changed column that looks as this one did."""
    if len(entry.get("cuts", ())) < 3:
        return ""
    plain = _distance(columns.values[feature], entry, then)
    others = {j: _distance(columns.values[j], entry, then) for j in changed if j != feature}
    best = min(others, key=lambda j: others[j], default=feature)
    if best == feature or others[best] > min(0.15, 0.5 * plain):
        return ""
    return f"; {feature_name(best, columns.model.feature_names)} looks as it did: swapped?"
