"""Bias and coverage of what a log says about a new ranker, where the truth is known."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table
from benchmarks.online.traffic import DEPTH, judged, weights
from leanrank.data import ClickLog, RankingData
from leanrank.errors import DataWarning
from leanrank.online import ClickModel, evaluate_policy, user

ESTIMATES = ("ips", "clipped", "self-normalised", "doubly-robust")


def run(options: Options) -> list[Table]:
    name, data = judged(options)
    n_lists, n_logs = (2_000, 5) if options.quick else (10_000, 60)
    rng = np.random.default_rng(0)
    new = data.X @ weights(data)
    old = new + 0.5 * new.std() * rng.normal(size=len(new))  # a ranker that sees less
    data, page = _first_page(data, old)
    new, old = new[page] / new.std(), old[page] / new.std()
    users = {
        "navigational": user("navigational"),
        "informational": user("informational"),
        "position-based": ClickModel.position_based([0.1, 0.5, 0.9]),
    }
    table = Table(
        f"{name}: clicks per list of a new ranker from {n_logs} logs of {n_lists:,} lists",
        note="The first page is served in an order drawn without replacement in proportion to "
        "exp(old score), and the new ranker orders it too. bias: mean error in % of "
        "the truth, ± two standard errors of that mean; rmse in % of the truth; coverage of the "
        "95 % intervals. warned: logs with fewer than 100 effective lists.",
    )
    for who, model in users.items():
        logs = [_log(data, old, model, n_lists, s) for s in range(n_logs)]
        for assume, depth in (("cascade", 1), ("cascade", 3), ("position", 3), ("position", 10)):
            row = {"user": who, "assume": assume, "depth": depth}
            _add(table, logs, data, new, model, row)
    return [table]


def _add(
    table: Table,
    logs: list[ClickLog],
    data: RankingData,
    new: np.ndarray,
    model: ClickModel,
    row: dict[str, Any],
) -> None:
    truth = _value(data, new, model, row["depth"])
    found = {name: [] for name in ESTIMATES}
    effective, warned = [], 0
    for log in logs:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", DataWarning)
            value = evaluate_policy(log, new, depth=row["depth"], assume=row["assume"])
        warned += bool(told)
        effective.append(value.effective_lists)
        for name, one in value.estimates.items():
            found[name].append((one.value - truth, one.low <= truth <= one.high))
    for name, results in found.items():
        error, held = np.array(results).T
        spread = 200 * error.std(ddof=1) / np.sqrt(len(error)) / truth
        table.add(
            **row,
            effective=f"{np.mean(effective):,.0f}",
            warned=f"{warned}/{len(logs)}",
            truth=f"{truth:.3f}",
            estimate=name,
            bias=f"{100 * error.mean() / truth:+.1f} ± {spread:.1f}",
            rmse=f"{100 * np.sqrt((error**2).mean()) / truth:.1f}",
            coverage=f"{100 * held.mean():.0f} %",
        )


def _first_page(data: RankingData, scores: np.ndarray) -> tuple[RankingData, np.ndarray]:
    """Keep the ten documents of each query that the old ranker likes best, and their rows."""
    query = np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))
    order = np.lexsort((-scores, query))
    page = np.sort(order[np.arange(len(order)) - data.query_ptr[:-1][query] < DEPTH])
    return RankingData(data.X[page], data.y[page], qid=data.qid[page]), page


def _value(data: RankingData, scores: np.ndarray, model: ClickModel, depth: int) -> float:
    """Return the expected clicks of a ranker, each query as often as any other."""
    total = 0.0
    for query in range(data.n_queries):
        rows = np.arange(data.query_ptr[query], data.query_ptr[query + 1])
        best = rows[np.argsort(-scores[rows], kind="stable")][:depth]
        total += model.probabilities(data.y[best].astype(int)[None]).sum()
    return total / data.n_queries


def _log(
    data: RankingData, strength: np.ndarray, model: ClickModel, n_lists: int, seed: int
) -> ClickLog:
    rng = np.random.default_rng(seed)
    queries = np.sort(rng.integers(data.n_queries, size=n_lists))
    shown = np.empty((n_lists, DEPTH), dtype=np.int64)
    chance = np.empty((n_lists, DEPTH))
    for query in np.unique(queries):
        mine = np.flatnonzero(queries == query)
        rows = np.arange(data.query_ptr[query], data.query_ptr[query + 1])
        score = strength[rows] - strength[rows].max()
        order = np.argsort(-(score + rng.gumbel(size=(len(mine), len(rows)))), axis=1)
        mass = np.exp(score)[order]
        left = np.cumsum(mass[:, ::-1], axis=1)[:, ::-1]  # of what is not shown above
        shown[mine], chance[mine] = rows[order[:, :DEPTH]], (mass / left)[:, :DEPTH]
    mixed = rng.permutation(n_lists)  # so that halves of the log are alike
    shown, chance = shown[mixed], chance[mixed]
    clicked = model.simulate(data.y[shown].astype(int), seed)
    position = np.tile(np.arange(1, DEPTH + 1), n_lists)
    ptr = np.arange(0, n_lists * DEPTH + 1, DEPTH)
    return ClickLog(data, shown.ravel(), position, clicked.ravel(), ptr, chance.ravel())
