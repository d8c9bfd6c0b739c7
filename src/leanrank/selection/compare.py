"""Comparison of systems on the same queries, with tests of significance against the best one.

The parameters of every system are chosen on the validation part of a split, and its model is
measured once on the test part. Splits and systems are independent of each other, so they may run in
any number of processes: all results but times are the same.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from leanrank._display import html_table
from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.spread import scale_wanted
from leanrank.errors import DataWarning, problem_of
from leanrank.metrics import compare_values, evaluate
from leanrank.metrics.judge import Judge, best_of, mean_of
from leanrank.model.provenance import to_json_values
from leanrank.selection.engine import Split
from leanrank.selection.systems import check_systems, fit_system, title

MEASURES = ("map", "p@10", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10", "mean_ndcg")
SIGNIFICANT = 0.05
MARK = "°"
HEADS = {"map": "MAP", "mean_ndcg": "mean NDCG"}
Parts: TypeAlias = tuple[RankingData, RankingData, RankingData]
OTHERS = ("used", "fit s", "search s", "score ms")
"""The columns after the measures, means over splits: number of features, seconds of the chosen fit
and of the search before it, and milliseconds to score a thousand documents."""


@dataclass(frozen=True)
class Outcome:
    """One system on one split.

    Attributes
    ----------
    system : str
    fold : int
    chosen : Candidate
        The candidate chosen on validation data; None if the system failed.
    per_query : dict of str to array
        Each measure on every test query; NaN where undefined.
    predict_seconds : float
        Time to score a thousand documents.
    scaled : str
        The reason for which features were normalised automatically, if they were.
    problem : str
        Why the system failed, if it did.
    """

    system: str
    fold: int
    chosen: Any = None
    per_query: dict[str, FloatArray] = field(default_factory=dict)
    predict_seconds: float = float("nan")
    scaled: str = ""
    problem: str = ""

    def figures(self) -> dict[str, float]:
        """Return number of features and times."""
        return {
            "features": self.chosen.n_features,
            "fit_seconds": self.chosen.seconds or 0.0,
            "search_seconds": self.chosen.search_seconds,
            "predict_seconds_per_1000": self.predict_seconds,
        }


@dataclass(frozen=True)
class Row:
    """One system on all splits of a set.

    Attributes
    ----------
    means : dict of str to float
        For each measure, the mean of the means of the splits.
    worse : dict of str to float
        For each measure, the p-value of the difference from the best system, corrected for the
        number of systems (Holm); absent for the best.
    figures : dict of str to float
        ``Outcome.figures``, the mean over the splits.
    """

    system: str
    title: str
    means: dict[str, float]
    worse: dict[str, float]
    figures: dict[str, float]


@dataclass(frozen=True)
class ComparedSet:
    """All systems on one data set.

    Attributes
    ----------
    name, convention : str
    choose_by : str
        The measure by which parameters were chosen on validation data.
    measures : tuple of str
    outcomes : list of Outcome
        One per system and split, in the order of systems and then of splits.
    """

    name: str
    convention: str
    choose_by: str
    measures: tuple[str, ...]
    outcomes: list[Outcome]

    @property
    def folds(self) -> list[int]:
        """The splits."""
        return sorted({outcome.fold for outcome in self.outcomes})

    @property
    def problems(self) -> list[str]:
        """One sentence per system that failed."""
        found = {o.system: o for o in reversed(self.outcomes) if o.problem}
        return [f"{title(name)}: {o.problem} (split {o.fold})" for name, o in found.items()]

    @cached_property
    def rows(self) -> list[Row]:
        """A row for every system that finished on all splits."""
        by_system: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            by_system.setdefault(outcome.system, []).append(outcome)
        done = {name: o for name, o in by_system.items() if not any(each.problem for each in o)}
        tests = {measure: _worse(done, measure) for measure in self.measures}
        return [
            Row(
                system=name,
                title=title(name),
                means={m: _mean_of_means(mine, m) for m in self.measures},
                worse={m: tests[m][name] for m in self.measures if name in tests[m]},
                figures={key: _mean(o.figures()[key] for o in mine) for key in mine[0].figures()},
            )
            for name, mine in done.items()
        ]

    def best(self, measure: str) -> str | None:
        """Return the system with the best mean; the first among equals."""
        return _best({row.system: row.means[measure] for row in self.rows}, measure)

    def table(self, best: str = "{}") -> list[list[str]]:
        """Return heads and rows as text; ``best`` is the format of the best value of a measure."""
        tops = [self.best(measure) for measure in self.measures]
        table = [["", *map(head, self.measures), *OTHERS]]
        for row in self.rows:
            texts = cells(row, self.measures)
            for at, top in enumerate(tops):
                texts[at] = best.format(texts[at]) if top == row.system else texts[at]
            table.append([row.title, *texts])
        return table

    def __repr__(self) -> str:
        splits = f"{len(self.folds)} split" + "s" * (len(self.folds) != 1)
        best = ", ".join(f"{m}: {self.best(m)}" for m in self.measures)
        return f"ComparedSet: {self.name}, {len(self.rows)} systems on {splits}; best by {best}"

    def _repr_html_(self) -> str:
        heads, *rows = self.table()
        return html_table(self.name, legend(self), heads, rows)


def compare_systems(
    name: str,
    splits: Iterable[Parts],
    systems: Sequence[str],
    *,
    convention: str = "standard",
    choose_by: str = "map",
    measures: Sequence[str] = MEASURES,
    scale: str | None = None,
    n_jobs: int = 1,
    say: Callable[[str], None] = lambda text: None,
) -> ComparedSet:
    """Fit and measure systems on a data set.

    Parameters
    ----------
    name : str
        Name of the data set.
    splits : iterable of (RankingData, RankingData, RankingData)
        Training, validation and test part; a generator loads one split after the other.
    systems : sequence of str
        Names of ``leanrank.selection.system_names``.
    convention : str, default="standard"
    choose_by : str, default="map"
        The measure by which parameters are chosen on the validation part.
    measures : sequence of str
        Measures on the test part.
    scale : str, optional
        Normaliser of the features, as for ``tune``; fitted to each training part.
    n_jobs : int, default=1
        Processes. A system has one thread, so that times can be compared.
    say : callable
        Called with a line of progress after each system.

    Returns
    -------
    ComparedSet
    """
    check_systems(list(systems))
    outcomes: list[Outcome] = []
    for fold, (train, vali, test) in enumerate(splits, 1):
        choice = scale_wanted(train, scale)
        normalizer = None if choice.kind is None else choice.make().fit(train)
        split = Split(train, vali, choose_by, convention, normalizer=normalizer)
        run = partial(_run, fold, split, test, tuple(measures), choice.reason)
        pool = Parallel(n_jobs, return_as="generator")
        for at, outcome in enumerate(pool(delayed(run)(system) for system in systems), 1):
            outcomes.append(outcome)
            say(f"{name}, split {fold}: {title(outcome.system)} ({at} of {len(systems)})")
    outcomes.sort(key=lambda outcome: systems.index(outcome.system))
    return ComparedSet(name, convention, choose_by, tuple(measures), outcomes)


def head(measure: str) -> str:
    """Return the head of a column.

    >>> head("map"), head("ndcg@10")
    ('MAP', 'NDCG@10')
    """
    return HEADS.get(measure, measure.upper())


def cells(row: Row, measures: Sequence[str]) -> list[str]:
    """Return the texts of a row, with a mark where it is significantly worse than the best."""
    values = [f"{row.means[m]:.4f}{MARK * (row.worse.get(m, 1.0) < SIGNIFICANT)}" for m in measures]
    used, fit, search, score = row.figures.values()
    return [*values, f"{used:.1f}", seconds(fit), seconds(search), seconds(1000 * score)]


def seconds(value: float) -> str:
    """Write a time with about two digits.

    >>> seconds(0.00321), seconds(0.5), seconds(12.34)
    ('0.0032', '0.5', '12')
    """
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def legend(compared: ComparedSet) -> str:
    """Return the explanation of a table."""
    n_splits = len(compared.folds)
    reasons = [outcome.scaled for outcome in compared.outcomes if outcome.scaled]
    averaged = f"means over {n_splits} splits" if n_splits > 1 else "one split"
    return (
        f"Convention {compared.convention}, {averaged}; parameters by validation "
        f"{head(compared.choose_by)}. {MARK}: worse than the best in its column, p < "
        f"{SIGNIFICANT:g} (paired randomisation test over queries, Holm). Used: features in "
        "the model; fit: seconds of the chosen fit; search: seconds of the whole search "
        "before it; score: milliseconds for 1,000 documents."
    ) + (f" Features were standardised, because {reasons[0]}." if reasons else "")


def markdown(compared: ComparedSet) -> str:
    """Return the table in Markdown; the best of each column is bold."""
    heads, *rows = compared.table("**{}**")
    table = [heads, ["---"] + ["---:"] * (len(heads) - 1), *rows]
    lines = [f"### {compared.name}", "", *("| " + " | ".join(texts) + " |" for texts in table)]
    lines += ["", legend(compared), *(f"\n{problem}" for problem in compared.problems), ""]
    return "\n".join(lines)


def to_dict(compared: ComparedSet) -> dict[str, Any]:
    """Return plain values, ready for JSON."""
    return {
        "name": compared.name,
        "convention": compared.convention,
        "choose_by": compared.choose_by,
        "problems": compared.problems,
        "systems": [
            {
                **{key: getattr(row, key) for key in ("system", "title", "means")},
                "p_worse": row.worse,
                **row.figures,
                "splits": [_split(o) for o in compared.outcomes if o.system == row.system],
            }
            for row in compared.rows
        ],
    }


def _split(o: Outcome) -> dict[str, Any]:
    return {
        "split": o.fold,
        "validation": o.chosen.value,
        "parameters": to_json_values(dict(o.chosen.parameters)),
        "means": {m: mean_of(v) for m, v in o.per_query.items()},
        **o.figures(),
        "trials": o.chosen.n_trials,
        "notes": list(o.chosen.notes),
    }


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return p-values corrected for their number by Holm's method.

    >>> holm({"a": 0.01, "b": 0.04, "c": 0.03})
    {'a': 0.03, 'c': 0.06, 'b': 0.06}
    """
    order = sorted(p_values, key=lambda name: p_values[name])
    times = np.arange(len(order), 0, -1) * [p_values[name] for name in order]
    corrected = np.maximum.accumulate(np.minimum(times, 1.0))
    return dict(zip(order, corrected.tolist(), strict=True))


def _best(means: Mapping[str, float], measure: str) -> str | None:
    """Return the system with the best defined mean; the first among equals."""
    defined = {name: mean for name, mean in means.items() if np.isfinite(mean)}
    if not defined:
        return None
    return list(defined)[best_of(Judge(measure).worth(list(defined.values())))]


def _worse(done: Mapping[str, list[Outcome]], measure: str) -> dict[str, float]:
    """Return the corrected p-value of each system against the best, over queries of all splits."""
    means = {name: _mean_of_means(mine, measure) for name, mine in done.items()}
    best = _best(means, measure)
    if best is None:
        return {}
    top = _all_queries(done[best], measure)
    others = [name for name, mean in means.items() if np.isfinite(mean) and name != best]
    found = {name: compare_values(top, _all_queries(done[name], measure)) for name in others}
    return holm({name: one.p_randomization for name, one in found.items()})


def _run(
    fold: int, split: Split, test: RankingData, measures: Sequence[str], scaled: str, system: str
) -> Outcome:
    with warnings.catch_warnings():
        # uninformative queries and tied scores are expected here
        warnings.simplefilter("ignore", DataWarning)
        try:
            chosen = fit_system(system, split)
        except Exception as error:  # the other systems go on
            return Outcome(system, fold, problem=problem_of(error))
        seconds = []
        for _ in range(5):
            started = time.perf_counter()
            scores = chosen.model.predict(test)
            seconds.append(time.perf_counter() - started)
        found = evaluate(test, scores, measures=measures, convention=split.convention, n_jobs=1)
    per_thousand = min(seconds) / max(1, len(test)) * 1000
    return Outcome(system, fold, chosen, found.per_query, per_thousand, scaled)


def _mean(values: Iterable[float]) -> float:
    return float(np.mean(list(values)))


def _mean_of_means(outcomes: Sequence[Outcome], measure: str) -> float:
    return _mean(mean_of(outcome.per_query[measure]) for outcome in outcomes)


def _all_queries(outcomes: Sequence[Outcome], measure: str) -> FloatArray:
    return np.concatenate([outcome.per_query[measure] for outcome in outcomes])
