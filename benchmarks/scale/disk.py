"""A fit of data on disk, in bounded memory, beside the time to read the file once.

20 million made-up documents × 136 float32 (11 GB) are written as a store (``--scratch`` says where;
a file that is there already is used again, and left there), mapped and fitted to a gap of 1e-6.
``python -m benchmarks.scale.disk FILE DOCUMENTS`` writes such a file beforehand. Where a control
group limits memory (``systemd-run --scope -p MemoryMax=6G python -m benchmarks …``), so that the
page cache cannot hold the file, every pass reads the disk; the title says how much there is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness import Options, Table, run_python, show_seconds
from leanrank.execution import available_cores

DOCUMENTS, FEATURES = 100, 136
SIZE, QUICK_SIZE = 20_000_000, 200_000
COMPARED, QUICK_COMPARED = 2_000_000, 50_000
PER_DOCUMENT, FIXED = 100, 400e6
"""The limit of anonymous memory: bytes per document, and beside that."""


def run(options: Options) -> list[Table]:
    size = QUICK_SIZE if options.quick else SIZE
    compared = QUICK_COMPARED if options.quick else COMPARED
    with tempfile.TemporaryDirectory(dir=options.scratch) as folder:
        kept = Path(options.scratch or folder) / f"scale-{size}.arrow"
        file = kept if kept.exists() else Path(folder) / "large.arrow"
        if not kept.exists():
            write(file, size)
        large = _fit(file, size)
        small = Path(folder) / "small.arrow"
        write(small, compared)
        same = _same(small, compared)
    return [*large, same]


def write(path: Path, n_documents: int) -> None:
    """Write a store of made-up documents, chunk by chunk; 40 features matter."""
    from leanrank.data import RankingData, write_store

    def chunks(n_queries: int = 200) -> Iterator[RankingData]:
        weights = np.random.default_rng(0).normal(size=40).astype(np.float32) / np.sqrt(40)
        for first in range(0, n_documents // DOCUMENTS, n_queries):
            rng = np.random.default_rng([1, first])
            n_rows = n_queries * DOCUMENTS
            X = rng.standard_normal((n_rows, FEATURES), dtype=np.float32)
            noise = rng.standard_normal(n_rows, dtype=np.float32)
            y = np.clip(np.round(1.0 + X[:, :40] @ weights + noise), 0, 4)
            ids, ptr = first + np.arange(n_queries), np.arange(0, n_rows + 1, DOCUMENTS)
            yield RankingData.of_fields(X=X, y=y, query_ids=ids, query_ptr=ptr)

    write_store(chunks(), path)


def _fit(file: Path, size: int) -> list[Table]:
    n_bytes = file.stat().st_size
    cores = available_cores()
    before = _cat(file)
    found = run_python(_FIT.format(file=str(file), cores=cores, few=2_000))
    after = _cat(file)
    limit = PER_DOCUMENT * size + FIXED
    peak = found["peak"]
    table = Table(
        f"{size:,} × {FEATURES} float32 ({n_bytes / 1e9:.1f} GB) on disk, "
        f"{_memory() / 1e9:.1f} GB of memory, {cores} threads"
    )
    table.add(
        what="DominationRanker at 0.01·alpha_max",
        time=show_seconds(found["seconds"]),
        gap=f"{found['gap']:.1e}",
        iterations=found["n_iter"],
        features=found["features"],
        peak_anonymous=f"{peak / 1e6:,.0f} MB",
        limit=f"{limit / 1e6:,.0f} MB",
        within="yes" if peak <= limit else "NO",
    )
    passes = Table("One pass over the file")
    cat = min(before, after)
    for what, seconds in (
        ("cat FILE > /dev/null, the lesser of before and after", cat),
        ("Xᵀg of all features", found["gradient"]),
        ("Xw of all features", found["scores"]),
        ("check of the values, first use of the map", found["check"]),
        ("whole fit", found["seconds"]),
    ):
        passes.add(what=what, time=show_seconds(seconds), ratio=f"{seconds / cat:.2f} ×")
    table.note = (
        f"Memory is RssAnon of the process, interpreter and libraries included, which take "
        f"{found['loaded'] / 1e6:.0f} MB; beyond these {(peak - found['loaded']) / size:.0f} bytes "
        f"per document. alpha_max took {show_seconds(found['alpha_max'])} before."
    )
    return [table, passes]


def _same(file: Path, size: int) -> Table:
    found = run_python(_SAME.format(file=str(file), cores=available_cores()))
    table = Table(f"The same in memory: {size:,} × {FEATURES} float32")
    for name in ("memory", "disk"):
        table.add(
            X=name,
            time=show_seconds(found[name]["seconds"]),
            gap=f"{found[name]['gap']:.1e}",
            iterations=found[name]["n_iter"],
            features=found[name]["features"],
            same_bits="yes" if found["same"] else "NO",
        )
    return table


def _memory() -> int:
    """Memory for this process and its page cache: of the machine, or of its control group."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers in ("", "memory"):
            for name in ("memory.max", "memory.limit_in_bytes"):
                file = Path(f"/sys/fs/cgroup/{controllers}{group}/{name}")
                if file.exists() and file.read_text().strip() != "max":
                    limits.append(int(file.read_text()))
    return min(limits)


def _cat(file: Path) -> float:
    start = time.perf_counter()
    with open("/dev/null", "wb") as nowhere:
        subprocess.run(["cat", str(file)], stdout=nowhere, check=True)
    return time.perf_counter() - start


_FIT = """
import json, threading, time
import numpy as np
from leanrank.rankers import DominationRanker
from leanrank.data import RankingData

def anonymous():
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))

most, ended = [0], threading.Event()
def watch():
    while not ended.wait(0.01):
        most[0] = max(most[0], anonymous())
def timed(function):
    start = time.perf_counter()
    return function(), time.perf_counter() - start

data = RankingData.open({file!r})
few = data.queries[:{few}]
ranker = DominationRanker(n_jobs={cores})
ranker.fit(few)  # compile
loaded = anonymous()
watcher = threading.Thread(target=watch)
watcher.start()
top, alpha_max = timed(lambda: ranker.alpha_max(data))
ranker = DominationRanker(0.01 * top, tol=1e-6, n_jobs={cores})
_, seconds = timed(lambda: ranker.fit(data))
ended.set()
watcher.join()
assert ranker.dual_gap_ <= 1e-6
from leanrank.designs.base import make_design
from leanrank.execution import make_executor
from leanrank.rankers.inputs import check_finite
_, check = timed(lambda: check_finite(data.X, data.n_features))
design = make_design(data.X, make_executor({cores}), data.query_ptr)
u, scores = timed(lambda: design.matvec(np.ones(data.n_features)))
_, gradient = timed(lambda: design.rmatvec(u))
print(json.dumps(dict(
    seconds=seconds, alpha_max=alpha_max, gap=ranker.dual_gap_, n_iter=ranker.n_iter_,
    features=ranker.n_features_, peak=most[0], loaded=loaded, check=check, scores=scores,
    gradient=gradient,
)))
"""

_SAME = """
import json, time
import numpy as np
from leanrank.rankers import DominationRanker
from leanrank.data import RankingData
data = RankingData.open({file!r})
copied = data.with_fields(X=np.array(data.X), y=np.array(data.y))
DominationRanker(n_jobs={cores}).fit(data.queries[:500])
alpha = 0.01 * DominationRanker(n_jobs={cores}).alpha_max(copied)
found, weights = {{}}, []
for name, given in (("memory", copied), ("disk", data)):
    start = time.perf_counter()
    ranker = DominationRanker(alpha, tol=1e-6, n_jobs={cores}).fit(given)
    found[name] = dict(
        seconds=time.perf_counter() - start, gap=ranker.dual_gap_, n_iter=ranker.n_iter_,
        features=ranker.n_features_,
    )
    weights.append((ranker.coef_.tobytes(), ranker.objective_, ranker.predict(given).tobytes()))
print(json.dumps(dict(found, same=weights[0] == weights[1])))
"""


if __name__ == "__main__":
    write(Path(sys.argv[1]), int(sys.argv[2]))
