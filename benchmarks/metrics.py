"""NDCG@10, MAP, MRR and P@10 of 20,000 queries of 100 documents: leanrank, pytrec_eval, ranx.

All give the same figures to 1e-9, which is checked. pytrec_eval and ranx want dictionaries and
objects of their own: making these is timed apart and not held against them. leanrank takes plain
arrays, so finding the queries, checking the input and sorting are inside its time. pytrec_eval uses
one thread; ranx and leanrank use the threads stated, and leanrank is shown on one thread as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table, race, run_python, show_seconds
from leanrank.execution import available_cores
from leanrank.metrics import evaluate

MEASURES = ["ndcg@10", "map", "mrr", "p@10"]


def run(options: Options) -> list[Table]:
    n_queries = 300 if options.quick else 20_000
    tables = []
    if options.only in (None, "peers"):
        tables.append(against_peers(n_queries, 100, options.repeat))
    if options.only in (None, "calls"):
        tables.append(by_size(options.repeat, quick=options.quick))
    if options.only in (None, "start"):
        tables.append(first_call())
    return tables


def against_peers(n_queries: int, n_documents: int, repeat: int) -> Table:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, (n_queries, n_documents))
    scores = rng.normal(size=y.shape)
    qid = np.repeat(np.arange(n_queries), n_documents)
    cores = available_cores()

    def ours(n_jobs: int) -> dict[str, float]:
        found = evaluate(
            y.ravel(), scores.ravel(), qid, measures=MEASURES, gain="linear", n_jobs=n_jobs
        )
        return found.means

    contestants: dict[str, Callable[[], dict[str, float]]] = {"leanrank": lambda: ours(cores)}
    threads, preparing = {"leanrank": cores}, {"leanrank": 0.0}
    if cores > 1:
        contestants["leanrank, one thread"] = lambda: ours(1)
        threads["leanrank, one thread"], preparing["leanrank, one thread"] = 1, 0.0

    start = time.perf_counter()
    qrels, run_ = _dictionaries(y), _dictionaries(scores)
    dictionaries = time.perf_counter() - start
    for name, make in {"pytrec_eval": _pytrec_eval, "ranx": _ranx}.items():
        try:
            start = time.perf_counter()
            contestants[name], threads[name] = make(qrels, run_, cores)
            preparing[name] = dictionaries + time.perf_counter() - start
        except ImportError:
            print(f"{name} is not installed: left out")

    timings = race(contestants, repeat=repeat)
    reference = timings["leanrank"]
    table = Table(f"{', '.join(MEASURES)} of {n_queries:,} queries × {n_documents} documents")
    for name, timing in timings.items():
        for measure, mean in reference.result.items():
            if abs(timing.result[measure] - mean) > 1e-9:
                raise AssertionError(f"{name} differs in {measure}: {timing.result[measure]}")
        table.add(
            contestant=name,
            threads=threads[name],
            evaluating=str(timing),
            ratio=f"{timing.median / reference.median:.1f} ×",
            preparing=show_seconds(preparing[name]) if preparing[name] else "nothing",
        )
    table.note = (
        "Ratio: median time over leanrank's. Preparing: dictionaries and the peer's own objects, "
        "not in the ratio (ranx's includes compiling)."
    )
    return table


def by_size(repeat: int, *, quick: bool) -> Table:
    """What one call costs, from the smallest to one query that is the whole collection."""
    table = Table("leanrank, one call with ndcg@10 and map, warm")
    shapes = [(1, 10), (100, 100), (2_000, 100), (1, 400_000)]
    rng = np.random.default_rng(0)
    for n_queries, n_documents in shapes[: 2 if quick else None]:
        size = n_queries * n_documents
        y, scores = rng.integers(0, 5, size), rng.normal(size=size)
        qid = np.repeat(np.arange(n_queries), n_documents)

        def call(y: Any = y, scores: Any = scores, qid: Any = qid) -> None:
            evaluate(y, scores, qid)

        timing = race({"leanrank": call}, repeat=max(repeat, 5), warm_up=2)["leanrank"]
        table.add(
            queries=n_queries,
            documents=n_documents,
            call=str(timing),
            per_document=f"{1e9 * timing.median / size:.0f} ns",
        )
    return table


def first_call() -> Table:
    """What the first call of a process costs, before and after its code is in the cache."""
    import tempfile

    code = (
        "import time, json; start = time.perf_counter();"
        "from leanrank.metrics import evaluate; imported = time.perf_counter();"
        "evaluate([0, 1], [1.0, 2.0]); done = time.perf_counter();"
        "print(json.dumps({'import': imported - start, 'call': done - imported}))"
    )
    table = Table("leanrank, first call of a process")
    with tempfile.TemporaryDirectory() as cache:
        for state in ("empty cache", "cached code"):
            seconds = run_python(code, env={"NUMBA_CACHE_DIR": cache})
            table.add(
                state=state,
                **{
                    "import": show_seconds(seconds["import"]),
                    "call": show_seconds(seconds["call"]),
                },
            )
    return table


def _dictionaries(values: Any) -> dict[str, dict[str, Any]]:
    documents = [f"d{i}" for i in range(values.shape[1])]
    return {
        f"q{q}": dict(zip(documents, row, strict=True)) for q, row in enumerate(values.tolist())
    }


def _pytrec_eval(qrels: Any, run_: Any, cores: int) -> tuple[Callable[[], dict[str, float]], int]:
    import pytrec_eval

    names = ["ndcg_cut_10", "map", "recip_rank", "P_10"]
    evaluator = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut.10", "map", "recip_rank", "P.10"})

    def call() -> dict[str, float]:
        found = evaluator.evaluate(run_).values()
        return {
            measure: sum(values[name] for values in found) / len(found)
            for measure, name in zip(MEASURES, names, strict=True)
        }

    return call, 1


def _ranx(qrels: Any, run_: Any, cores: int) -> tuple[Callable[[], dict[str, float]], int]:
    import warnings

    import ranx

    judged, retrieved = ranx.Qrels(qrels), ranx.Run(run_)
    names = ["ndcg@10", "map", "mrr", "precision@10"]

    def call() -> dict[str, float]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = ranx.evaluate(judged, retrieved, names, threads=cores)
        return {measure: float(found[name]) for measure, name in zip(MEASURES, names, strict=True)}

    return call, cores
