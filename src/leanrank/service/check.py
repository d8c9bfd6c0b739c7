"""Checking whether a model is still right for today's documents: features, measures, objective.

The probability of a false alarm is half that of features for measures, and for the gain of a refit.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from leanrank._display import printable_lines
from leanrank.data.clicks.click_log import ClickLog
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, ModelError
from leanrank.metrics import evaluate
from leanrank.metrics.judge import better_sign
from leanrank.model import Model
from leanrank.model.summary import FEWEST_QUERIES
from leanrank.model.writing import as_model
from leanrank.service.drift import DRAWS, LEVEL, Finding, changed_features
from leanrank.service.explain import documents_for, estimated_clicks, judged_rows
from leanrank.service.refit import Bound, Today, refit_bound

MIN_GAIN = 0.005
"""Least gain of a useful refit, as a share of the loss."""


@dataclass(frozen=True)
class Measured:
    """A measure at the time of training and today; ``p`` is one-sided, None without a test."""

    then: float | None
    then_error: float | None
    now: float
    now_error: float
    p: float | None


@dataclass(frozen=True)
class Gain:
    """The gain of a refit on held-out queries, as a share of the loss."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class Check:
    """The result of checking whether a model is still right.

    Attributes
    ----------
    model : Model
    data : RankingData
    findings : list of Finding
        Features that changed, largest first.
    measures : dict of str to Measured
    clicks : dict of str to Estimate
        Clicks per list by each estimator and ``logged``; empty without a click log.
    bound : Bound or None
    held_out : Gain or None
        Only if the bound is above ``MIN_GAIN``.
    notes : list of str
        Sentences on what could not be checked, and why.
    threshold : float
        Standard errors above which a figure counts as different.
    """

    model: Model
    data: RankingData
    findings: list[Finding]
    measures: dict[str, Measured]
    clicks: dict[str, Any]
    bound: Bound | None
    held_out: Gain | None
    notes: list[str]
    threshold: float

    @property
    def alarms(self) -> list[str]:
        """Sentences on what needs action; empty if the model is still right."""
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
                f"seen (at least {self.held_out.low:.1%}): {self._advice}"
            )
        return found

    @property
    def needs_refit(self) -> bool:
        """Whether a refit helps on held-out queries."""
        return self.held_out is not None and self.held_out.low > 0 < self.held_out.value - MIN_GAIN

    @property
    def _advice(self) -> str:
        """Advice on a refit: broken features must be repaired before."""
        if not self.needs_refit:
            return "no need"
        return "mend the features first" if self.findings else "learn again"

    @property
    def refit_text(self) -> str:
        """A sentence on the bound and the gain of a refit; empty without labels."""
        if self.bound is None:
            return ""
        says = f"a refit can gain at most {self.bound.gain:.2%} of the loss"
        if self.held_out is None:
            return f"{says}: no need" if self.bound.gain <= MIN_GAIN else says
        one = self.held_out
        seen = f"{one.value:+.2%} ({one.low:+.2%} to {one.high:+.2%}) on queries it has not seen"
        return f"{says}, and gains {seen}: {self._advice}"

    @property
    def verdict(self) -> str:
        """The result in one sentence."""
        if not self.alarms:
            fine = "nothing wrong in what could be checked" if self.notes else "still right"
            return fine + f"; {self.refit_text}" * bool(self.refit_text)
        n = len({each.feature for each in self.findings})
        parts = [f"{n} feature{'s' * (n != 1)} changed"] if n else []
        parts += ["rankings are worse"] * any("worse" in each for each in self.alarms)
        parts += [self._advice] * self.needs_refit
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        bound = None if self.bound is None else {**vars(self.bound), "gain": self.bound.gain}
        return {
            "verdict": self.verdict,
            "alarms": self.alarms,
            "queries": self.data.n_queries,
            "documents": len(self.data),
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
        from leanrank.service.pages import write_page

        write_page(self, path, title)

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
        Today's documents. With labels, measures and the gain of a refit are checked as well. The
        labels of a ClickLog are clicks per expected examination; with propensities, expected clicks
        are estimated.
    y, qid : array-like, optional
        Labels and queries of an array or frame.
    measures : str or sequence of str
    random_state : int, default=0
        Seed of the bootstrap.
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
    findings, threshold = changed_features(known, documents, random_state, notes)
    measured: dict[str, Measured] = {}
    clicks: dict[str, Any] = {}
    bound = gain = gains = None
    try:
        if log is not None:
            value = estimated_clicks(log, known.predict(documents), notes, **policy)
            clicks = {"logged": value.logged, **value.estimates}
    except InputError as error:
        notes.append(str(error))
    try:
        judged = documents
        if log is not None:
            judged, gains = log.labelled(None)
        rows = judged_rows(judged)
        if rows is None:
            notes.append("there are no labels, so measures and the gain of a refit are unknown")
        else:
            judged, gains = _only(judged, rows), None if gains is None else gains[rows]
            measured = _measures(known, judged, measures, clicked=log is not None)
            today = Today(known, judged, gain_weight=gains, n_jobs=n_jobs)
            bound = refit_bound(today)
            if bound.gain > MIN_GAIN and judged.informative.sum() >= FEWEST_QUERIES:
                gain = held_out_gain(today, random_state)
            elif bound.gain > MIN_GAIN:
                notes.append(
                    f"there are fewer than {FEWEST_QUERIES} queries with different labels: too few "
                    "to measure what a refit gains"
                )
    except (ModelError, InputError) as error:
        notes.append(str(error))
    return Check(known, documents, findings, measured, clicks, bound, gain, notes, threshold)


def held_out_gain(today: Today, seed: int = 0) -> Gain:
    """Return the gain of a refit on held-out queries: each half is refitted for the other.

    The interval is a bootstrap interval over queries, from quantile ``LEVEL / 2`` to 1 minus that.
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
    if rows.all():
        return data
    columns = {name: getattr(data, name) for name in ("sample_weight", "offset")}
    given = {name: values[rows] for name, values in columns.items() if values is not None}
    if data.query_weight is not None:
        pairs = zip(data.query_ids.tolist(), data.query_weight.tolist(), strict=True)
        given["query_weight"] = dict(pairs)
    names = data.feature_names
    return RankingData(data.X[rows], data.y[rows], data.qid[rows], feature_names=names, **given)


def _measures(
    model: Model, data: RankingData, measures: Any, *, clicked: bool
) -> dict[str, Measured]:
    """Return the measures of today's documents with those of the training of the model.

    Measures of clicks and of judgments are not compared.
    """
    training = model.provenance.get("training") or {}
    row, known = training.get("held_out") or {}, model.provenance.get("measures") or {}
    if clicked != bool(training.get("clicks")):
        row = known = {}
    found = evaluate(data, model.predict(data), measures=measures)
    out = {}
    for name, values in found.per_query.items():
        values = values[~np.isnan(values)]
        now, error = float(values.mean()), float(values.std() / np.sqrt(max(len(values) - 1, 1)))
        held_out, validation = row.get(name), (known.get("validation") or {}).get(name)
        then = held_out if validation is None else validation
        then_error = row.get(f"{name}_error") if validation is None else error
        p = None
        if then is not None and then_error is not None and len(values) >= FEWEST_QUERIES:
            p = float(norm.cdf(better_sign(name) * (now - then) / np.hypot(error, then_error)))
        elif then is None:
            then = (known.get("training") or {}).get(name)
        out[name] = Measured(then, None if p is None else then_error, now, error, p)
    return out
