"""One piece of work in a process of its own: ``python work.py NAME SIZE``.

Only what users call, so that the package on the path may be of any version. The last line is
a JSON object: what was done, and its seconds of the processor, of the clock, and extra figures.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ENOUGH = 3.0
"""Processor seconds after which a piece of work is not repeated any more."""


READ = """
import json, time
import leanrank.data, polars as pl
def peak():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) / 1024
before, seconds = peak(), []
for _ in range(4):
    start = time.process_time()
    {read}
    seconds.append(time.process_time() - start)
print(json.dumps({{"processor": min(seconds), "peak MB above start": peak() - before}}))
"""


def least(work: Callable[[], Any], times: int = 5) -> dict[str, float]:
    """Return the least processor time of some repetitions, and the least time of the clock."""
    processor, clock = [], []
    for _ in range(times):
        start = time.process_time(), time.perf_counter()
        work()
        processor.append(time.process_time() - start[0])
        clock.append(time.perf_counter() - start[1])
        if sum(processor) > ENOUGH:
            break
    return {"processor": min(processor), "clock": min(clock)}


def peak() -> float:
    """Return the largest resident memory of this process so far, in MB.

    From Linux: ``getrusage`` counts the memory of the process that started this one.
    """
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024


def made(
    n: int, n_features: int, *, per_query: int = 100, levels: int = 5, dtype: Any = np.float64
) -> tuple[Any, Any, Any]:
    """Draw X, y and qid; 0 levels stand for labels that all differ."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, n_features), dtype=np.float32).astype(dtype, copy=False)
    scores = X @ rng.normal(size=n_features).astype(dtype) / np.sqrt(n_features)
    y = scores + rng.normal(size=n)
    if levels:
        y = np.searchsorted(np.quantile(y, np.arange(1, levels) / levels), y).astype(float)
    return X, y, np.arange(n) // per_query


def tune(n_jobs: int) -> dict[str, Any]:
    """Sixteen trials on the first fold of a public set, or on the sample."""
    import os

    from leanrank import data
    from leanrank.selection import tune as search

    folder = Path(os.environ.get("LEANRANK_DATA", "")) / "MQ2008" / "Fold1"
    if folder.is_dir():
        training = data.load_letor(folder / "train.txt")
        validation = data.load_letor(folder / "vali.txt", n_features=training.n_features)
    else:
        training, validation, _ = data.load_sample()
    search(training, validation, trials=16, n_jobs=n_jobs)
    return {
        "16 trials": least(lambda: search(training, validation, trials=16, n_jobs=n_jobs), times=3)
    }


def requests(n_documents: int) -> dict[str, Any]:
    """Scores of a few documents by ten curves, as a server asks for them."""
    import pandas as pd

    from leanrank.rankers import DominationRanker

    X, y, qid = made(5_000, 10)
    ranker = DominationRanker(0.01, l1_ratio=0.5, curves=8, n_jobs=1).fit(X, y, qid)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(10)])
    named = DominationRanker(0.01, l1_ratio=0.5, curves=8, n_jobs=1).fit(frame, y, qid)
    model, some, rows = ranker.to_model(), X[:n_documents], frame[:n_documents]
    found = {}
    for name, ask in {
        "predict, NumPy": lambda: ranker.predict(some),
        "predict, pandas": lambda: named.predict(rows),
        "model.predict": lambda: model.predict(some),
    }.items():
        thousand = least(lambda ask=ask: [ask() for _ in range(1_000)])
        found[name] = {key: value / 1_000 for key, value in thousand.items()}
    return found


def curves(n: int) -> dict[str, Any]:
    """A fit of curves and one of lines at a hundredth of the largest strength, and its memory."""
    from leanrank.rankers import DominationRanker

    X, y, qid = made(n, 136, per_query=120, dtype=np.float32)
    before = peak()
    found: dict[str, Any] = {}
    for name, options in (("lines", {}), ("curves", {"curves": 8})):
        some = n // 100 // 120 * 120
        DominationRanker(0.01, n_jobs=1, **options).fit(X[:some], y[:some], qid[:some])
        ranker = DominationRanker(n_jobs=1, **options)
        ranker.set_params(alpha=0.01 * ranker.alpha_max(X, y, qid))
        found[name] = least(lambda ranker=ranker: ranker.fit(X, y, qid), times=2)
        found[name] |= {
            "peak MB": peak(),
            "over X": peak() / (X.nbytes / 2**20),
            "gap": ranker.dual_gap_,
        }
    found["curves"]["MB before"] = before
    return found


def levels(n_levels: int) -> dict[str, Any]:
    """Domination of 200,000 × 40 with few or many label levels."""
    from leanrank.rankers import DominationRanker

    return _fits(DominationRanker(0.01, n_jobs=1), made(200_000, 40, levels=n_levels))


def rankrls(n_features: int) -> dict[str, Any]:
    """RankRLS of 10,000 documents, by the number of features."""
    from leanrank.rankers import RankRLS

    return _fits(RankRLS(1.0, n_jobs=1), made(10_000, n_features))


def curve_features(n_features: int) -> dict[str, Any]:
    """Curves of 20,000 documents, by the number of features."""
    from leanrank.rankers import DominationRanker

    X, y, qid = made(20_000, n_features)
    ranker = DominationRanker(n_jobs=1, curves=8)
    ranker.set_params(alpha=0.05 * ranker.alpha_max(X, y, qid))
    return _fits(ranker, (X, y, qid))


def ranknet(n_features: int) -> dict[str, Any]:
    """RankNet of 10,000 documents, by the number of features."""
    from leanrank.rankers import RankNet

    return _fits(RankNet(0.01, n_jobs=1), made(10_000, n_features, per_query=20))


def ranknet_list(n: int) -> dict[str, Any]:
    """RankNet of one list of labels that all differ."""
    from leanrank.rankers import RankNet

    return _fits(RankNet(0.01, n_jobs=1), made(n, 10, per_query=n, levels=0))


def minbatsrank(n: int) -> dict[str, Any]:
    """One pass of MinBatSRank, by the number of documents."""
    from leanrank.rankers import MinBatSRank

    return _fits(MinBatSRank(0.01, epochs=1), made(n, 40))


def spd(n: int) -> dict[str, Any]:
    """The set-up of SPD, and a million steps after it, by the number of documents."""
    from leanrank.rankers import SPD

    data = made(n, 40)
    first = _fits(SPD(n_steps=1), data)["fit"]
    all_of_them = _fits(SPD(n_steps=1_000_001), data)["fit"]
    steps = {key: all_of_them[key] - first[key] for key in first}
    return {"set-up": first, "a million steps": steps}


def greedy(n: int) -> dict[str, Any]:
    """Ten features chosen by greedy RankRLS, by the number of documents."""
    from leanrank.rankers import GreedyRankRLS

    return _fits(GreedyRankRLS(10, 1.0, n_jobs=1), made(n, 40, dtype=np.float32))


def parquet(n: int) -> dict[str, Any]:
    """Read n × 136 float32 from Parquet, with one thread, beside polars to NumPy."""
    from leanrank.data import RankingData, dump_parquet

    readers = {
        "leanrank.data.load": "from leanrank.data import load; load({path!r}, n_jobs=1)",
        "polars to NumPy, C order": "pl.read_parquet({path!r}).to_numpy(order='c')",
        "polars to NumPy, its own order": "pl.read_parquet({path!r}).to_numpy(order='fortran')",
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "data.parquet")
        dump_parquet(RankingData(*made(n, 136, dtype=np.float32)), path)
        for name, read in readers.items():
            words = [sys.executable, "-W", "ignore", "-c", READ.format(read=read.format(path=path))]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            found[name] = json.loads(done.stdout)
    return found


def dask(n: int) -> dict[str, Any]:
    """A later fit on a cluster of one thread beside one in memory."""
    import dask.array as da
    from distributed import Client, LocalCluster

    from leanrank.rankers import DominationRanker

    X, y, qid = made(n, 136, per_query=120, dtype=np.float32)
    ranker = DominationRanker(n_jobs=1)
    ranker.set_params(alpha=0.01 * ranker.alpha_max(X, y, qid))
    ranker.fit(X, y, qid)
    found = {"in memory": least(lambda: ranker.fit(X, y, qid))}
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None
        ) as local,
        Client(local),
    ):
        rows = n // 8 // 120 * 120
        parts = [da.from_array(each, chunks=(rows, *each.shape[1:])) for each in (X, y, qid)]
        start = time.process_time()
        ranker.fit(*parts)
        first = time.process_time() - start
        found["later on Dask"] = least(lambda: ranker.fit(*parts))
        found["first on Dask"] = {"processor": first, "clock": float("nan")}
    return found


def rankboost(n: int) -> dict[str, Any]:
    """Thirty rounds of RankBoost, 40 features."""
    from leanrank.rankers import RankBoost

    return _fits(RankBoost(30, n_jobs=1), made(n, 40))


def _fits(ranker: Any, data: tuple[Any, Any, Any]) -> dict[str, Any]:
    """Time a fit; the first on a part of the documents compiles what is missing."""
    _, y, qid = data
    some = np.flatnonzero(qid < max(2, len(np.unique(qid)) // 50))
    if len(some) < len(y):
        ranker.fit(*(each[some] for each in data))
    else:
        ranker.fit(*data)
    return {"fit": least(lambda: ranker.fit(*data))}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](int(sys.argv[2]))))
