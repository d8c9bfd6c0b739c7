"""A worker is killed (SIGKILL) at random moments of a fit: the same bits, or what else happens.

Twenty kills of one of two worker processes, each in a cluster of its own, at moments drawn over the
time of an undisturbed fit; the nanny starts another worker. Then one kill each for the rankers of
LightGBM and XGBoost on Dask.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import threading
import time
from typing import Any

from benchmarks.harness import Options, Table
from benchmarks.scale.dask import cluster, made
from benchmarks.scale.peers import collections, contestants
from leanrank.rankers import DominationRanker

PATIENCE = 60.0
"""Seconds after which a fit that a kill disturbed counts as hanging."""


def run(options: Options) -> list[Table]:
    return [_ours(3 if options.quick else 20, 400 if options.quick else 2_000), _peers()]


def _ours(n_kills: int, n_queries: int) -> Table:
    import dask

    rng = random.Random(0)
    table = Table(f"{n_kills} kills at random moments of a fit of {n_queries * 120:,} × 136")
    same = late = 0
    delays, usual, seconds = [], [], []
    expected = None

    def fit() -> tuple[bytes, float]:
        parts = [dask.delayed(made, pure=True)(at, n_queries // 8) for at in range(8)]
        start = time.perf_counter()
        ranker = DominationRanker(0.003).fit(parts)
        return ranker.coef_.tobytes(), time.perf_counter() - start

    for _ in range(n_kills):
        with cluster(2) as client:  # a new one: a nanny may give up a worker that dies early
            fit()
            bits, taken = fit()
            expected = expected or bits
            usual.append(taken)
            delays.append(rng.uniform(0.0, taken))
            pid = rng.choice(sorted(client.run(os.getpid).values()))
            timer = threading.Timer(delays[-1], os.kill, (pid, signal.SIGKILL))
            timer.start()
            bits, taken = fit()
            late += timer.is_alive()  # the fit was faster than the kill
            timer.join()
        same += bits == expected
        seconds.append(taken)
        print(f"{delays[-1]:.2f} s: {bits == expected}, {taken:.1f} s", flush=True)
    table.add(
        kills=n_kills,
        same_bits=same,
        after_the_end=late,
        moments=f"{min(delays):.2f} to {max(delays):.2f} s",
        undisturbed=f"{sorted(usual)[n_kills // 2]:.1f} s (median)",
        disturbed=f"{sorted(seconds)[n_kills // 2]:.1f} s (median), {max(seconds):.1f} s",
    )
    return table


def _peers() -> Table:
    table = Table("What one kill in the middle of a fit does (24,000 × 136, two workers)")
    for name in list(contestants()):
        receive, send = multiprocessing.Pipe(duplex=False)
        child = multiprocessing.get_context("spawn").Process(target=_killed, args=(name, send))
        child.start()
        text = f"hangs: no end after {PATIENCE:.0f} s"
        if receive.poll(PATIENCE + 30):
            text = receive.recv()
        os.kill(child.pid or 0, signal.SIGKILL)
        child.join()
        table.add(contestant=name, outcome=text)
        print(table.rows[-1], flush=True)
    return table


def _killed(name: str, send: Any) -> None:
    fit = contestants()[name]
    with cluster(2) as client:
        fit(*collections(client, 200))  # compile, connect
        data = collections(client, 200)
        start = time.perf_counter()
        fit(*data)
        usual = time.perf_counter() - start
        data = collections(client, 200)
        pid = min(client.run(os.getpid).values())
        timer = threading.Timer(usual / 2, os.kill, (pid, signal.SIGKILL))
        timer.start()
        start = time.perf_counter()
        try:
            fit(*data)
            text = f"goes on, ends after {time.perf_counter() - start:.1f} s (usual {usual:.1f} s)"
            if timer.is_alive():
                text = "not measured: the fit ended before the kill"
        except BaseException as error:
            taken = time.perf_counter() - start
            text = f"fails after {taken:.1f} s: {type(error).__name__}: {str(error)[:160]}"
        send.send(" ".join(text.split()))
