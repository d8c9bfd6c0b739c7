"""10 GB in constant memory: from a generator, and as text.

Each run is a process of its own whose peak resident memory, interpreter and libraries included, the
operating system reports. How many generated documents stand for 10 GB is found by writing some of
them as text. The text is one file, named again and again until 10 GB have been read.
"""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.harness import Options, Table, run_python
from benchmarks.loading import write_mslr_like

GIGABYTES, QUICK_GIGABYTES = 10.0, 0.05
LIMIT_MB = 500
SHAPE = {"docs_per_query": 120, "n_features": 136}
FILE_BYTES = 200 * 10**6


def run(options: Options) -> list[Table]:
    gigabytes = QUICK_GIGABYTES if options.quick else GIGABYTES
    per_query = _text_bytes_per_query()
    n_queries = int(gigabytes * 1e9 / per_query)
    table = Table(f"MinBatSRank over {gigabytes:g} GB, one pass, 2 threads for reading")
    found = run_python(_CODE.format(source=_GENERATED.format(n_queries=n_queries, **SHAPE)))
    _add(table, "generated (not written)", n_queries * per_query, found)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "mslr.txt"
        write_mslr_like(path, min(FILE_BYTES, int(gigabytes * 1e9 / 5)))
        size = path.stat().st_size
        times = round(gigabytes * 1e9 / size)
        found = run_python(_CODE.format(source=_TEXT.format(path=str(path), times=times)))
        _add(table, f"text: a {size / 1e6:.0f} MB file × {times}", times * size, found)
    nothing = run_python(_CODE.format(source=_LITTLE))
    _add(table, "two small queries", 0, nothing)
    table.note = (
        f"The limit is {LIMIT_MB} MB. Generated documents would be {per_query / 120:,.0f} bytes of "
        "text each, measured on 20 queries; they are learned from as they are made and never "
        "become text. The labels of the text file have nothing to do with its features, so no "
        "feature should stay. The last line is what the interpreter and the libraries take."
    )
    return [table]


def _add(table: Table, source: str, n_bytes: float, found: dict[str, float]) -> None:
    table.add(
        source=source,
        **{
            "GB of text": n_bytes / 1e9,
            "documents": f"{found['documents']:,}",
            "M values": found["documents"] * SHAPE["n_features"] / 1e6 if n_bytes else 0.0,
            "seconds": found["seconds"],
            "documents/s": f"{found['documents'] / found['seconds']:,.0f}",
            "features used": found["support"],
            "peak MB": found["peak"] / 1e6,
            f"under {LIMIT_MB} MB": "yes" if found["peak"] < LIMIT_MB * 1e6 else "NO",
        },
    )


def _text_bytes_per_query() -> float:
    from leanrank.data import stream_ranking
    from leanrank.data.letor import lines_of

    data = next(iter(stream_ranking(20, **SHAPE, dtype=np.float32)))  # type: ignore[arg-type]
    out = io.BytesIO()
    names = [str(name).encode() for name in data.query_ids.tolist()]
    for block in lines_of(data, names, None):
        out.write(block)
    return len(out.getvalue()) / data.n_queries


_GENERATED = """
from leanrank.data import stream_ranking
source = stream_ranking({n_queries}, {docs_per_query}, {n_features}, queries_per_chunk=50,
                        dtype=np.float32, n_jobs=2)
"""
_TEXT = """
from leanrank.data.streams import open_stream
source = open_stream([{path!r}] * {times}, n_jobs=2)
"""
_LITTLE = """
source = [(np.eye(4), [1, 0, 1, 0], [1, 1, 2, 2])]
"""
_CODE = """
import json, resource, time, warnings
import numpy as np
from leanrank.rankers import MinBatSRank
from leanrank.rankers.streaming import fit_stream
{source}
warnings.simplefilter("ignore")
start = time.perf_counter()
ranker = fit_stream(MinBatSRank(alpha=0.05, l1="per_step"), source)
seconds = time.perf_counter() - start
last = ranker.history_[-1]
print(json.dumps(dict(
    documents=last["documents"], support=last["support"], seconds=seconds,
    peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
)))
"""
