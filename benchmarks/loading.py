"""Reading a text file of MSLR shape: leanrank beside scikit-learn and XGBoost, Parquet, memory.

The file is made up: 136 features, about 120 documents a query, whole numbers and short decimals in
the proportions of the public set. It is in the page cache before anything is timed.
"""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table, race, run_python

MEGABYTES, QUICK_MEGABYTES = 200, 10
N_FEATURES = 136
THREADS = 2


def run(options: Options) -> list[Table]:
    """Give the tables of speed, memory and first calls; ``--only`` picks one."""
    parts = {"text": _text, "parquet": _parquet, "memory": _memory, "first": _first_call}
    chosen = [options.only] if options.only else list(parts)
    with _mslr_file(QUICK_MEGABYTES if options.quick else MEGABYTES) as path:
        return [parts[name](path, options) for name in chosen]


def _text(path: Path, options: Options) -> Table:
    from sklearn.datasets import load_svmlight_file

    from leanrank import load_letor

    def letor(**how: object) -> object:
        return lambda: len(load_letor(path, **how))  # type: ignore[arg-type]

    contestants: dict[str, Any] = {
        "scikit-learn load_svmlight_file": lambda: (
            load_svmlight_file(str(path), query_id=True)[1].size
        ),
        "leanrank, 1 thread": letor(n_jobs=1),
        f"leanrank, {THREADS} threads": letor(n_jobs=THREADS),
        f"leanrank, {THREADS} threads, float32": letor(n_jobs=THREADS, dtype=np.float32),
        f"leanrank, {THREADS} threads, sparse": letor(n_jobs=THREADS, storage="sparse"),
    }
    if find_spec("xgboost") is not None:
        from xgboost import DMatrix

        contestants["XGBoost DMatrix"] = lambda: DMatrix(f"{path}?format=libsvm").num_row()
    for name, read in contestants.items():  # compiles, and brings the file into the page cache
        if not name.startswith("scikit-learn"):
            read()
    timings = race(contestants, repeat=min(3, options.repeat), warm_up=0)
    size = path.stat().st_size
    table = Table(
        f"Reading {size / 1e6:.0f} MB of text",
        note=f"{N_FEATURES} features; the limit is 8 × scikit-learn with {THREADS} threads.",
    )
    reference = timings["scikit-learn load_svmlight_file"].median
    for name, timing in timings.items():
        speed = size / 1e6 / timing.median
        table.add(
            reader=name,
            time=str(timing),
            **{"MB/s": speed, "× scikit-learn": reference / timing.median},
        )
    return table


def _parquet(path: Path, options: Options) -> Table:
    from leanrank.data import dump_letor, dump_parquet, load, load_letor

    data = load_letor(path)
    copy = path.with_suffix(".parquet")
    again = path.with_suffix(".again.txt")
    dump_parquet(data, copy)
    dump_letor(data.queries[:2], again)
    load(copy)
    reading = race(
        {
            "text": lambda: len(load_letor(path, n_jobs=THREADS)),
            "Parquet": lambda: len(load(copy, n_jobs=THREADS)),
        },
        repeat=options.repeat,
    )
    writing = race(
        {"text": lambda: dump_letor(data, again), "Parquet": lambda: dump_parquet(data, copy)},
        repeat=1,
        warm_up=0,
    )
    table = Table("Text and Parquet", note="The limit is 3 × for reading Parquet.")
    for name, file in (("text", again), ("Parquet", copy)):
        table.add(
            format=name,
            MB=file.stat().st_size / 1e6,
            reading=str(reading[name]),
            writing=str(writing[name]),
            **{"× reading text": reading["text"].median / reading[name].median},
        )
    return table


def _memory(path: Path, options: Options) -> Table:
    table = Table(
        "Peak anonymous memory of reading",
        note="RssAnon above that before the call, sampled in a fresh process; the limit is 2.5 × "
        "the arrays returned.",
    )
    for how in ("", "dtype='float32'", "storage='sparse'"):
        call = f"load_letor({str(path)!r}, n_jobs={THREADS}, {how})"
        figures = run_python(_MEMORY.format(call=call, how=how))
        table.add(
            call=f"load_letor(path, {how})" if how else "load_letor(path)",
            **{
                "arrays MB": figures["arrays"] / 1e6,
                "peak MB": figures["peak"] / 1e6,
                "peak ÷ arrays": figures["peak"] / figures["arrays"],
            },
        )
    return table


def _first_call(path: Path, options: Options) -> Table:
    """The first call in a process, with nothing compiled yet and with everything in the cache."""
    code = (
        "import io, json, time\nfrom leanrank import load_letor\nstart = time.perf_counter()\n"
        "load_letor(io.BytesIO(b'1 qid:1 1:0.5 #a'))\n"
        "print(json.dumps({'seconds': time.perf_counter() - start}))"
    )
    table = Table("First call in a process", note="One document, import of Numba included.")
    with tempfile.TemporaryDirectory() as cache:
        for name in ("nothing compiled yet", "compiled before"):
            seconds = run_python(code, env={"NUMBA_CACHE_DIR": cache})["seconds"]
            table.add(case=name, seconds=seconds)
    return table


@contextmanager
def _mslr_file(megabytes: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mslr.txt"
        write_mslr_like(path, megabytes * 10**6)
        yield path


def write_mslr_like(path: Path, n_bytes: int) -> None:
    """Write documents until the file has about ``n_bytes``; features recur, queries do not."""
    rng = np.random.default_rng(0)
    documents = [_features(rng) for _ in range(6_000)]
    pool = itertools.cycle(documents)
    size = 0
    with path.open("w") as file:
        for query in itertools.count(1):
            labels = rng.choice(5, size=rng.integers(60, 181), p=[0.52, 0.32, 0.13, 0.02, 0.01])
            text = "".join(f"{y} qid:{query} {next(pool)} \n" for y in labels)
            file.write(text)
            size += len(text)
            if size >= n_bytes:
                return


def _features(rng: np.random.Generator) -> str:
    """Give counts, scores and zeros in groups of columns, as the public set has them."""
    kind = np.arange(N_FEATURES) % 5
    counts = rng.integers(0, np.array([4, 300, 60_000])[np.minimum(kind, 2)])
    scores = rng.gamma(2.0, 8.0, N_FEATURES)
    absent = rng.random(N_FEATURES) < 0.35
    return " ".join(
        f"{j + 1}:0"
        if absent[j]
        else f"{j + 1}:{counts[j]}"
        if kind[j] < 3
        else f"{j + 1}:{scores[j]:.6f}"
        for j in range(N_FEATURES)
    )


_MEMORY = """
import io, json, threading, time
from leanrank import load_letor

def anonymous():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("RssAnon"))

load_letor(io.BytesIO(b"1 qid:1 1:0.5 #a"), n_jobs=2, {how})
before, peak, done = anonymous(), 0, threading.Event()

def watch():
    global peak
    while not done.wait(0.001):
        peak = max(peak, anonymous())

watcher = threading.Thread(target=watch)
watcher.start()
data = {call}
peak = max(peak, anonymous())
done.set()
watcher.join()
X = data.X
arrays = data.y.nbytes + data.query_ids.nbytes + data.query_ptr.nbytes
arrays += X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if data.is_sparse else X.nbytes
print(json.dumps(dict(arrays=arrays, peak=peak - before)))
"""
