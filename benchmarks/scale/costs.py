"""What an iteration costs, as a function of documents, features, working set and workers.

Times of the questions that an iteration asks are measured at a dozen and more sizes, a model is
fitted to them by least squares of relative errors, and from it follows what 64 workers would need
for 10⁹ documents × 500 features. A simulated cluster (16 workers in one process, 64 partitions,
added latency) checks the part of the model that is communication.
"""

from __future__ import annotations

import asyncio
import itertools
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table
from benchmarks.scale.dask import cluster, on_workers, traffic
from leanrank.losses.domination import DominationLoss
from leanrank.problem.sharded import ShardedProblem
from leanrank.rankers import DominationRanker

SIZES = tuple(itertools.product((800, 2_400), (60, 240), (4, 16), (1, 2)))
"""Queries of 120 documents, features, partitions, workers."""

AN_ITERATION = {"pass": 1, "hessian": 2, "step": 2, "other": 2}
"""Questions of an iteration, at most: a step takes a Hessian and a look, and there are two."""


def run(options: Options) -> list[Table]:
    sizes = SIZES[:4] if options.quick else SIZES
    points = [point for size in sizes for point in _measure(*size, repeat=options.repeat)]
    constants, table = _fit(points)
    return [table, _extrapolation(constants), _simulated(options)]


def _measure(
    n_queries: int, n_features: int, n_parts: int, n_workers: int, repeat: int
) -> list[dict[str, Any]]:
    """Time a pass over X, Hessians of two working sets, and steps in them."""
    points = []
    with cluster(n_workers):
        parts = on_workers(n_queries, n_features, n_parts).X
        problem = ShardedProblem(parts, DominationLoss())
        shape = {"n": parts.n_rows, "p": n_features, "m": n_parts, "k": n_workers}
        problem.at(np.zeros(n_features))
        problem.gradient_scale()
        small = (1e-9 * at for at in itertools.count(1))  # parts remember the last weights

        def again() -> None:
            problem.at(np.full(n_features, next(small)))

        points.append(shape | {"kind": "pass", "s": 0, "t": _timed(again, repeat)})
        for size in (n_features // 4, n_features):
            problem.focus(np.arange(size))
            step = np.full(size, 1e-3)

            def hessian() -> None:
                problem.focused_hessian()

            def look(step: Any = step) -> None:
                problem.try_step(step, 1.0 + next(small))

            shape |= {"s": size}
            points.append(shape | {"kind": "hessian", "t": _timed(hessian, repeat)})
            points.append(shape | {"kind": "step", "t": _timed(look, repeat)})
    return points


def _timed(function: Any, repeat: int) -> float:
    function()
    found = []
    for _ in range(repeat):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


TERMS = {
    "pass": ("trip", "document, pass", "document × feature"),
    "hessian": ("trip", "document, hessian", "document × s²", "partition × s²", "s² × worker"),
    "step": ("trip", "document, step", "document × s"),
}
"""What the time of each question is a sum of; a trip costs the same in all."""


def _terms(point: dict[str, Any]) -> dict[str, float]:
    n, p, m, s, k = (float(point[name]) for name in "npmsk")
    sizes = {
        "trip": 1.0,
        "document, pass": n / k,
        "document × feature": n * p / k,
        "document, hessian": n / k,
        "document × s²": n * s * s / k,
        "partition × s²": m * s * s / k,
        "s² × worker": s * s * k,
        "document, step": n / k,
        "document × s": n * s / k,
    }
    return {name: sizes[name] for name in TERMS[point["kind"]]}


def _predicted(constants: dict[str, float], point: dict[str, Any]) -> float:
    return sum(constants[name] * size for name, size in _terms(point).items())


def _fit(points: list[dict[str, Any]]) -> tuple[dict[str, float], Table]:
    from scipy.optimize import nnls

    names = list(dict.fromkeys(name for terms in TERMS.values() for name in terms))
    matrix = np.zeros((len(points), len(names)))
    for row, point in enumerate(points):
        for name, size in _terms(point).items():
            matrix[row, names.index(name)] = size / point["t"]
    scale = np.linalg.norm(matrix, axis=0)
    scale[scale == 0.0] = 1.0
    found = nnls(matrix / scale, np.ones(len(points)))[0] / scale
    constants = dict(zip(names, found.tolist(), strict=True))
    errors = np.array([_predicted(constants, point) / point["t"] - 1.0 for point in points])
    table = Table(f"Seconds per question, fitted to {len(points)} measured points")
    for kind in TERMS:
        own = [at for at, point in enumerate(points) if point["kind"] == kind]
        table.add(
            question=kind,
            model=" + ".join(f"{constants[name]:.2g} · {name}" for name in TERMS[kind]),
            points=len(own),
            median_error=f"{100 * np.median(np.abs(errors[own])):.0f} %",
            largest_error=f"{100 * np.abs(errors[own]).max():.0f} %",
        )
    table.note = (
        "Documents and partitions are those of one worker; s is the size of the working set; times "
        "in seconds. Sizes: "
        + "; ".join(
            f"{values} {name}"
            for key, name in (
                ("n", "documents"),
                ("p", "features"),
                ("m", "partitions"),
                ("k", "workers"),
            )
            for values in [" and ".join(f"{each:,}" for each in sorted({p[key] for p in points}))]
        )
        + "."
    )
    return constants, table


def _extrapolation(constants: dict[str, float]) -> Table:
    """Return what the model says of sizes that no machine here can hold."""
    table = Table(
        "From the model: 10⁹ documents × 500 features, float32, 8 partitions per worker, s = 250, "
        "5 iterations"
    )

    def iteration(k: float) -> float:
        size = {"n": 1e9, "p": 500.0, "m": 8.0 * k, "s": 250.0, "k": k}
        asked = {
            kind: _predicted(constants, size | {"kind": kind})
            for kind in ("pass", "hessian", "step")
        }
        asked["other"] = constants["trip"]
        return sum(times * asked[kind] for kind, times in AN_ITERATION.items())

    for k in (8, 64, 512, 4_096):
        adding = AN_ITERATION["hessian"] * constants["s² × worker"] * 250**2 * k
        undivided = adding + sum(AN_ITERATION.values()) * constants["trip"]
        answers = (500 + 2 * (250 * 251 / 2 + 250)) * 8 * k
        table.add(
            workers=k,
            memory_per_worker=f"{1e9 * 500 * 4 / k / 2**30:,.1f} GB",
            seconds_per_iteration=f"{iteration(k):,.2f}",
            fit=f"{5 * iteration(k):,.0f} s",
            not_divided_by_workers=f"{100 * undivided / iteration(k):.0f} %",
            received_per_iteration=f"{answers / 1e6:,.1f} MB",
        )
    grid = np.unique(np.logspace(0, 4.5, 200).round())
    best = int(grid[np.argmin([iteration(float(k)) for k in grid])])
    table.note = (
        f"An iteration is fastest on about {best:,} workers, with {iteration(best):.1f} s: beyond, "
        "adding up the workers' Hessians takes longer than the documents."
    )
    return table


@contextmanager
def latency(client: Any, seconds: float) -> Iterator[None]:
    """Let every message to a worker take longer, as if it were far away."""
    run = client.run

    async def late(*arguments: Any, **options: Any) -> Any:
        await asyncio.sleep(seconds)
        return await run(*arguments, **options)

    client.run = late
    try:
        yield
    finally:
        client.run = run


def _simulated(options: Options) -> Table:
    table = Table("A simulated cluster: 16 workers, 64 partitions, latency added to every message")
    base, trips = 0.0, 0
    with cluster(16, processes=False) as client:
        data = on_workers(640, 40, 64)
        alpha = 0.01 * DominationRanker().alpha_max(data)
        DominationRanker(alpha).fit(data)
        for delay in (0.0, 0.02, 0.1) if options.quick else (0.0, 0.01, 0.05, 0.2):
            with traffic() as counted, latency(client, delay):
                start = time.perf_counter()
                ranker = DominationRanker(alpha).fit(data)
                seconds = time.perf_counter() - start
            base, trips = (seconds, counted.trips) if delay == 0.0 else (base, trips)
            predicted = base + trips * delay
            table.add(
                latency=f"{1e3 * delay:.0f} ms",
                iterations=ranker.n_iter_,
                trips=counted.trips,
                measured=f"{seconds:.2f} s",
                predicted=f"{predicted:.2f} s",
                error=f"{100 * (predicted / seconds - 1):+.0f} %",
            )
    return table
