"""How long a whole fit of ``LeanRanker`` takes, and its memory."""

from __future__ import annotations

from benchmarks.curves.speed import N_FEATURES, TREES
from benchmarks.harness import Options, Table, race, run_python, show_seconds
from leanrank import LeanRanker, load_letor

PARTS = ("YANDEX", "large")


def speed(options: Options) -> list[Table]:
    if options.only not in (None, *PARTS):
        raise SystemExit(f"--only time:{options.only}: use one of {PARTS}")
    tables = []
    if options.only != "large":
        tables += _yandex(options)
    if options.only != "YANDEX":
        n = 60_000 if options.quick else 1_200_000
        tables += [large(n, pairs=pairs) for pairs in (False, True)]
    return tables


def _yandex(options: Options) -> list[Table]:
    if options.data is None:
        print("time needs YANDEX: give --data; left out")
        return []
    data = load_letor(options.data / "YANDEX" / "train.txt")
    contestants = {
        "LeanRanker()": lambda: LeanRanker().fit(data),
        "LeanRanker(max_pairs=0)": lambda: LeanRanker(max_pairs=0).fit(data),
    }
    timings = race(contestants, repeat=1 if options.quick else options.repeat)
    table = Table(f"YANDEX, {len(data):,} documents × {data.n_features}: whole fit, warm")
    for name, timing in timings.items():
        table.add(contestant=name, time=str(timing), features=timing.result.n_features_)
    return [table]


def large(n: int, *, pairs: bool) -> Table:
    """Time each contestant in a process of its own."""
    truth = "with curves and pairs, which suits trees" if pairs else "of curves, which suits us"
    table = Table(f"{n:,} documents × {N_FEATURES}, a truth {truth}")
    fits = {
        f"LightGBM, {TREES} trees": "LGBMRanker(verbose=-1).fit(X, y, group=sizes)",
        "LeanRanker(max_pairs=0)": "LeanRanker(max_pairs=0).fit(data)",
        "LeanRanker()": "LeanRanker().fit(data)",
    }
    reference = None
    for name, call in fits.items():
        found = run_python(_CODE.format(n=n, pairs=pairs, call=call))
        reference = reference or found["wall"]
        table.add(
            contestant=name,
            wall=show_seconds(found["wall"]),
            ratio=f"{reference / found['wall']:.1f} ×",
            processor=show_seconds(found["processor"]),
            **{"NDCG@10": f"{found['ndcg']:.4f}", "peak ÷ X": f"{found['peak']:.2f}"},
        )
    table.note = (
        "Each in a process of its own that has fitted a small set before, NDCG@10 on a tenth as "
        "many new documents. Two threads. Peak: resident memory above that before the fit, by the "
        "bytes of X, which are float32 and not counted. ratio: LightGBM's wall time over the row's."
    )
    return table


_CODE = """
import json, time, warnings
import numpy as np
from lightgbm import LGBMRanker
from benchmarks.curves.speed import make_large
from leanrank import LeanRanker
from leanrank.metrics import evaluate

warnings.simplefilter("ignore")

def status(field):
    with open("/proc/self/status") as lines:
        return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))

def fit(data):
    X, y, sizes = data.X, data.y, np.diff(data.query_ptr)
    return {call}

fit(make_large(500))
data, test = (make_large(m, pairs={pairs}) for m in ({n}, {n} // 10))
with open("/proc/self/clear_refs", "w") as peak:
    peak.write("5")
before, wall, processor = status("VmRSS"), time.perf_counter(), time.process_time()
model = fit(data)
wall, processor = time.perf_counter() - wall, time.process_time() - processor
peak = (status("VmHWM") - before) / data.X.nbytes
ndcg = evaluate(test, model.predict(test.X), measures="ndcg@10").means["ndcg@10"]
print(json.dumps(dict(wall=wall, processor=processor, peak=peak, ndcg=float(ndcg))))
"""
