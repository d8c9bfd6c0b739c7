"""Fits on a local Dask cluster of processes: what travels, two workers against one, overhead.

Made-up documents are generated on the workers, partition by partition, and so can be generated
again. The truth behind the labels is linear.
"""

from __future__ import annotations

import pickle
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table, show_seconds
from leanrank.data import make_ranking
from leanrank.data.ranking_data import RankingData
from leanrank.problem.dask_shards import DaskShards
from leanrank.rankers import DominationRanker
from leanrank.rankers.dask import ClusterData, data_on_cluster

DOCUMENTS, FEATURES, PARTITIONS = 120, 136, 8


def run(options: Options) -> list[Table]:
    n_queries = 200 if options.quick else 10_000
    table = Table(
        f"{n_queries * DOCUMENTS:,} × {FEATURES} float32 in {PARTITIONS} partitions, gap 1e-6 at "
        "0.01·alpha_max, one thread per worker"
    )
    seconds, bits = {}, set()
    for n_workers in (1, 2):
        with cluster(n_workers):
            data = on_workers(n_queries)
            alpha = 0.01 * DominationRanker().alpha_max(data)
            with traffic() as counted:
                ranker = DominationRanker(alpha).fit(data)
            times = []
            for _ in range(options.repeat):
                start = time.perf_counter()
                DominationRanker(alpha).fit(data)
                times.append(time.perf_counter() - start)
        seconds[n_workers] = statistics.median(times)
        bits.add(ranker.coef_.tobytes())
        n = ranker.n_iter_
        table.add(
            workers=n_workers,
            fit=show_seconds(seconds[n_workers]),
            speed=f"{seconds[1] / seconds[n_workers]:.2f} ×",
            iterations=n,
            gap=f"{ranker.dual_gap_:.1e}",
            trips_per_iteration=f"{counted.trips / n:.1f}",
            sent_per_iteration=f"{counted.sent / n / 1e3:.1f} kB",
            received_per_iteration=f"{counted.received / n / 1e3:.1f} kB",
        )
    same = "the same bits" if len(bits) == 1 else "NOT the same bits"
    table.note = f"One and two workers give {same}. Data are in the workers' memory beforehand."
    tables = [table]
    if options.data is not None:
        tables.append(_overhead(options))
    return tables


def _overhead(options: Options) -> Table:
    from leanrank.data import load_letor

    assert options.data is not None
    fold = next(options.data.rglob("MQ2008/Fold1"))
    train = load_letor(fold / "train.txt")
    table = Table("MQ2008, first fold, 4 partitions: what a cluster adds to an iteration")
    alpha = 0.01 * DominationRanker().alpha_max(train)
    DominationRanker(alpha).fit(train)
    memory = _median(lambda: DominationRanker(alpha).fit(train))
    for n_workers in (1, 2):
        with cluster(n_workers) as client:
            edges = np.linspace(0, train.n_queries, 5).astype(int)
            parts = [train.queries[a:b] for a, b in pairwise(edges)]
            data = data_on_cluster(DominationRanker(), client.scatter(parts))
            ranker = DominationRanker(alpha).fit(data)
            with traffic() as counted:
                ranker = DominationRanker(alpha).fit(data)
            fitted = _median(lambda: DominationRanker(alpha).fit(data))  # noqa: B023
        table.add(
            workers=n_workers,
            in_memory=show_seconds(memory),
            on_cluster=show_seconds(fitted),
            iterations=ranker.n_iter_,
            trips=counted.trips,
            overhead_per_iteration=show_seconds((fitted - memory) / ranker.n_iter_),
            per_trip=show_seconds((fitted - memory) / counted.trips),
        )
    return table


def _median(function: Any, times: int = 5) -> float:
    found = []
    for _ in range(times):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


@contextmanager
def cluster(n_workers: int, threads: int = 1, *, processes: bool = True) -> Iterator[Any]:
    """Start a cluster on this machine that only this machine can reach."""
    from distributed import Client, LocalCluster

    where = {"host": "127.0.0.1"} if processes else {}
    with (
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=threads,
            processes=processes,
            dashboard_address="127.0.0.1:0",
            worker_dashboard_address="127.0.0.1:0",
            silence_logs=50,
            memory_limit=0,
            **where,
        ) as local,
        Client(local) as client,
    ):
        yield client


def made(
    at: int, n_queries: int, n_features: int = FEATURES, documents: int = DOCUMENTS
) -> RankingData:
    """Make one partition; the truth is the same in all of them."""
    data = make_ranking(
        n_queries,
        documents,
        n_features,
        n_informative=min(40, n_features // 2),
        n_levels=5,
        label_noise=1.0,
        dtype=np.float32,
        random_state=at,
    )
    rng = np.random.default_rng(0)
    truth = np.where(rng.random(n_features) < 0.3, rng.normal(size=n_features), 0.0)
    noisy = (
        data.X @ truth + np.random.default_rng(at).normal(size=len(data)) * np.abs(truth).sum() / 4
    )
    edges = np.quantile(noisy, [0.5, 0.75, 0.9, 0.97])
    qid = data.qid + 1_000_000 * at
    return RankingData(data.X, np.digitize(noisy, edges), qid)


def on_workers(
    n_queries: int, n_features: int = FEATURES, n_parts: int = PARTITIONS
) -> ClusterData:
    """Make documents on the workers of the current client."""
    import dask

    parts = [
        dask.delayed(made, pure=True)(at, n_queries // n_parts, n_features) for at in range(n_parts)
    ]
    return data_on_cluster(DominationRanker(), parts)


class Traffic:
    """Trips, and bytes of questions and answers as they are pickled."""

    trips = sent = received = 0


@contextmanager
def traffic() -> Iterator[Traffic]:
    """Count what travels between a problem and its parts."""
    counted, trip = Traffic(), DaskShards._trip

    async def counting(self: DaskShards, function: Any, places: Any, arguments: Any) -> Any:
        found = await trip(self, function, places, arguments)
        counted.trips += 1
        counted.sent += sum(len(pickle.dumps((each, arguments))) for each in places.values())
        counted.received += sum(len(pickle.dumps(answer)) for answer in found[0])
        return found

    DaskShards._trip = counting  # type: ignore[method-assign]
    try:
        yield counted
    finally:
        DaskShards._trip = trip  # type: ignore[method-assign]
