"""Judged web searches of MSLR-WEB10K's size, against LightGBM building 100 trees.

Each contestant runs in its own process on the same made-up documents and the same cores, so that
its peak memory is its own. The time is that of the whole ``fit``; LightGBM's binning is shown
apart. The truth behind the labels is linear, which favours a linear model: the NDCG beside the
times only shows that both have learnt.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.domination.problems import load
from benchmarks.harness import Options, Table, run_python, show_seconds
from leanrank.data import make_ranking
from leanrank.execution import available_cores

DOCUMENTS, FEATURES = 120, 136


def run(options: Options) -> list[Table]:
    n_queries = 200 if options.quick else 10_000
    cores = available_cores()
    with tempfile.TemporaryDirectory() as folder:
        _write(Path(folder), n_queries, max(50, n_queries // 5))
        ours = run_python(_program(_OURS, folder, cores, options.repeat))
        theirs = run_python(_program(_LIGHTGBM, folder, cores, options.repeat))
    size = n_queries * DOCUMENTS * FEATURES * 4 / 2**20
    table = Table(
        f"{n_queries * DOCUMENTS:,} × {FEATURES} float32 ({size:.0f} MB), {n_queries:,} queries, "
        f"5 levels, {cores} threads"
    )
    for name, found in (
        ("DominationRanker, gap 1e-6 at 0.01·alpha_max", ours),
        ("LightGBM lambdarank, 100 trees of 31 leaves", theirs),
    ):
        table.add(
            contestant=name,
            time=show_seconds(found["seconds"]),
            ratio=f"{found['seconds'] / ours['seconds']:.1f} ×",
            apart=found["apart"],
            peak_memory=f"{found['peak']:.0f} MB ({found['loaded']:.0f} MB before fit)",
            held_out_ndcg10=found["ndcg"],
            features=found["features"],
        )
    table.note = (
        f"DominationRanker: median of {options.repeat} fits ({ours['n_iter']} reads of X, gap "
        f"{ours['gap']:.1e}); its time includes checking the input. {load()}"
    )
    return [table]


def _write(folder: Path, n_queries: int, n_held_out: int) -> None:
    data = make_ranking(
        n_queries + n_held_out,
        DOCUMENTS,
        FEATURES,
        n_informative=40,
        n_levels=5,
        correlation=0.3,
        label_noise=1.0,
        dtype=np.float32,
    )
    cut = n_queries * DOCUMENTS
    for part, rows in {"train": slice(0, cut), "test": slice(cut, None)}.items():
        np.save(folder / f"{part}_X.npy", data.X[rows])
        np.save(folder / f"{part}_y.npy", data.y[rows])


def _program(body: str, folder: str, cores: int, repeat: int) -> str:
    return (
        f"FOLDER, CORES, REPEAT, DOCUMENTS = {folder!r}, {cores}, {repeat}, {DOCUMENTS}\n"
        + _COMMON
        + body
    )


_COMMON = """
import json, statistics, time
import numpy as np

def read(part):
    X, y = (np.load(f"{FOLDER}/{part}_{name}.npy") for name in "Xy")
    return X, y, np.repeat(np.arange(len(y) // DOCUMENTS), DOCUMENTS)

def peak():
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

def report(seconds, apart, loaded, model_peak, predict, **more):
    from leanrank.metrics import evaluate
    X, y, qid = read("test")
    ndcg = evaluate(y, predict(X), qid, measures=["ndcg@10"]).means["ndcg@10"]
    print(json.dumps(dict(seconds=seconds, apart=apart, loaded=loaded, peak=model_peak,
                          ndcg=ndcg, **more)))
"""

_OURS = """
from leanrank.rankers import DominationRanker
X, y, qid = read("train")
few = 20 * DOCUMENTS
DominationRanker(n_jobs=CORES).fit(X[:few], y[:few], qid=qid[:few])  # compile
loaded = peak()
start = time.perf_counter()
alpha = 0.01 * DominationRanker(n_jobs=CORES).alpha_max(X, y, qid)
apart = f"alpha_max {time.perf_counter() - start:.2g} s"
seconds = []
for _ in range(REPEAT):
    start = time.perf_counter()
    ranker = DominationRanker(alpha, tol=1e-6, n_jobs=CORES).fit(X, y, qid=qid)
    seconds.append(time.perf_counter() - start)
assert ranker.dual_gap_ <= 1e-6
report(statistics.median(seconds), apart, loaded, peak(), ranker.predict, n_iter=ranker.n_iter_,
       gap=ranker.dual_gap_, features=int((ranker.coef_ != 0).sum()))
"""

_LIGHTGBM = """
import lightgbm
X, y, qid = read("train")
loaded = peak()
options = {"objective": "lambdarank", "num_leaves": 31, "num_threads": CORES, "verbosity": -1}
start = time.perf_counter()
data = lightgbm.Dataset(X, y, group=np.full(len(y) // DOCUMENTS, DOCUMENTS), params=options)
data.construct()
apart = f"binning {time.perf_counter() - start:.2g} s"
start = time.perf_counter()
model = lightgbm.train(options, data, num_boost_round=100)
seconds = time.perf_counter() - start
report(seconds, apart, loaded, peak(), model.predict,
       features=int((model.feature_importance() > 0).sum()))
"""
