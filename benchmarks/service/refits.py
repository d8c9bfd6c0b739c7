"""Bounds of a refit beside real refits, and the time of a warm one beside a cold one."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.curves.speed import N_FEATURES, PER_QUERY
from benchmarks.harness import Options, Table
from benchmarks.service.checks import data_sets, fast
from leanrank import LeanRanker
from leanrank.data import RankingData, make_ranking
from leanrank.execution import single_threaded_blas
from leanrank.service.refit import Today, refit_bound

PROBLEMS = 50


def bound(options: Options) -> Table:
    """Half of the problems are made up, half are divisions of MQ2008 and YANDEX."""
    table = Table("The bound of what a refit gains, beside what it gains (to a gap of 1e-9)")
    real = dict(data_sets(options))
    rows: dict[str, list[tuple[float, float, float]]] = {"made up": [], **{n: [] for n in real}}
    for seed in range(6 if options.quick else PROBLEMS):
        name = list(rows)[seed % 3]
        if name == "made up":
            data = make_ranking(n_queries=80, n_features=8, random_state=seed)
        else:
            data = real[name]
        rng = np.random.default_rng(seed)
        part = rng.permutation(data.n_queries)
        old, new = (data.queries[np.sort(rows_)] for rows_ in np.array_split(part, 2))
        if seed % 2:  # half of them with labels that no longer fit
            new = new.replace(y=rng.permutation(new.y))
        today = Today(fast().fit(old).to_model(), new)
        rough, close = refit_bound(today, tol=1.0), refit_bound(today)
        gain = (close.objective - today.solve(1e-9).objective) / close.loss
        rows[name].append((gain, close.gain, rough.gain))
    for name, found in rows.items():
        gains, close_, rough_ = np.array(found).T
        table.add(
            problems=name,
            number=len(found),
            **{"real gain, mean": f"{gains.mean():.4%}", "largest": f"{gains.max():.3%}"},
            **{"bound − gain, least": f"{(close_ - gains).min():.1e}"},
            **{"mean": f"{(close_ - gains).mean():.1e}"},
            **{"from one gradient, mean": f"{(rough_ - gains).mean():.1e}"},
            below=int((close_ < gains - 1e-12).sum() + (rough_ < gains - 1e-12).sum()),
        )
    return table


def refit(options: Options) -> Table:
    """Yesterday's documents and today's are drawn alike; clocks are of the process."""
    n = 60_000 if options.quick else 1_200_000
    old, new = drawn(n, 0), drawn(n, 1)
    LeanRanker(max_pairs=0).fit(old.queries[:200])  # compiled before the clock starts
    ranker, chosen = clock(lambda: LeanRanker(max_pairs=0, n_jobs=1).fit(old))
    today, placed = clock(lambda: Today(ranker.to_model(), new, n_jobs=1))
    runs: dict[str, list[float]] = {"warm": [], "cold": []}
    for _ in range(1 if options.quick else 3):
        warm, seconds = clock(lambda: today.solve(1e-6))
        runs["warm"].append(seconds)
        cold, seconds = clock(lambda: today.solve(1e-6, np.zeros_like(today.w)))
        runs["cold"].append(seconds)
    warm_seconds, cold_seconds = (float(np.median(each)) for each in runs.values())
    table = Table(f"Learning again from {n:,} documents × {N_FEATURES}, gap 1e-6, one thread")
    for name, seconds, extra in (
        ("warm: same terms, from yesterday's weights", warm_seconds, placed),
        ("cold: same terms, from zero", cold_seconds, placed),
        ("again: all is chosen again (yesterday's fit)", chosen, 0.0),
    ):
        whole = seconds + extra
        table.add(
            refit=name,
            **{"solving, s": round(seconds, 1), "with placing documents, s": round(whole, 1)},
            **{"times warm": round(seconds / warm_seconds, 2)},
            **{"whole, times warm": round(whole / (warm_seconds + placed), 2)},
        )
    same = abs(warm.objective - cold.objective) / cold.objective
    table.note = f"Processor time. Objectives of warm and cold differ by {same:.1e}."
    return table


def drawn(n: int, seed: int) -> RankingData:
    """Draw documents as ``benchmarks curves`` does, with a seed."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, N_FEATURES), dtype=np.float32)
    X[:, ::4] = np.maximum(X[:, ::4], 0.0)
    X[:, 1::4] = np.exp(X[:, 1::4])
    scores = np.minimum(X[:, 1], 1.5) + (X[:, 4] > 0.5) + 0.5 * np.tanh(2 * X[:, 2])
    scores += 0.4 * X[:, 3] - 0.3 * np.abs(X[:, 6]) + 0.15 * X[:, 10:25].sum(axis=1)
    scores += rng.standard_normal(n, dtype=np.float32)
    y = np.digitize(scores, np.quantile(scores, [0.5, 0.75, 0.9, 0.97]))
    return RankingData(X, y, np.arange(n) // PER_QUERY)


def clock(function: Callable[[], Any]) -> tuple[Any, float]:
    with single_threaded_blas():
        start = time.process_time()
        result = function()
        return result, time.process_time() - start
