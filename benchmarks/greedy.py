"""Greedy RankRLS: nearness to memory bandwidth, growth, the naive wrapper, large and sparse sets.

Parts (``--only``): step, growth, naive, large, text.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table, race, run_python, show_seconds
from leanrank._jit import kernel
from leanrank.data.ranking_data import RankingData
from leanrank.execution import available_cores, make_executor, row_blocks, single_threaded_blas
from leanrank.rankers import GreedyRankRLS, RankRLS

MAX_EXPONENT = 1.1
MIN_SPEEDUP = 1_000


def run(options: Options) -> list[Table]:
    parts = {
        "step": step_against_one_pass,
        "growth": growth,
        "naive": against_the_naive_wrapper,
        "large": large,
        "text": sparse_text,
    }
    wanted = [options.only] if options.only else list(parts)
    return [parts[name](options) for name in wanted]


def step_against_one_pass(options: Options) -> Table:
    """Time a step (one choice, all residuals updated) beside reading and writing them once."""
    table = Table(
        "One step against one pass over the two arrays of residuals",
        note="A pass reads and writes every number once. A step must read one of the arrays a "
        "second time (the products with the chosen feature are needed before anything can be "
        "updated), so 1.25 passes is the least.",
    )
    sizes = [(9_630, 46), (20_000, 200)] if options.quick else [(9_630, 46), (200_000, 200)]
    for m, n in sizes:
        data = _problem(m, n)
        for jobs in sorted({1, available_cores()}):
            with single_threaded_blas():
                state = _state(data, jobs)
                state.add(int(np.argmax(state.decreases(np.arange(n)))))
                executor = make_executor(jobs)

                def step(state: Any = state, n: int = n) -> None:
                    gains = state.decreases(np.arange(n))
                    gains[state.chosen] = -np.inf
                    state.add(int(np.argmax(gains)))

                def one_pass(state: Any = state, executor: Any = executor, m: int = m) -> None:
                    executor.map(
                        lambda at: _pass(state.C, state.U, at[0], at[1]), row_blocks(m, 2_048)
                    )

                times = race({"step": step, "pass": one_pass}, repeat=max(7, options.repeat))
            table.add(
                problem=f"{m:,} × {n}",
                threads=jobs,
                step=str(times["step"]),
                one_pass=str(times["pass"]),
                passes=round(times["step"].median / times["pass"].median, 2),
            )
    return table


def growth(options: Options) -> Table:
    """Fit time ∝ size^exponent over doublings of each size, the others fixed."""
    table = Table(
        "Growth of the time of a fit",
        note=f"Slope of log time over log size; linear is 1, at most {MAX_EXPONENT} is required. "
        "Processor time of one thread, the least of the repetitions, so that other work on the "
        "machine is left out. Sizes are such that no array fits a cache, in which small problems "
        "would run faster.",
    )
    base = {"k": 8, "m": 40_000, "n": 64} if options.quick else {"k": 10, "m": 100_000, "n": 100}
    for name in base:
        sizes = [base[name] * factor for factor in (1, 2, 4)]
        fits = {}
        for size in sizes:
            at = {**base, name: size}
            data = _problem(at["m"], at["n"])
            fits[str(size)] = _fit_later(data, at["k"])
        seconds = list(_least_cpu_seconds(fits, max(3, options.repeat)).values())
        exponent = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        table.add(
            grows=name,
            sizes=" → ".join(f"{size:,}" for size in sizes),
            seconds=" → ".join(show_seconds(s) for s in seconds),
            exponent=round(exponent, 3),
            within=exponent <= MAX_EXPONENT,
        )
    return table


def against_the_naive_wrapper(options: Options) -> Table:
    """Choose the same features by training again for each candidate and each left-out query."""
    n, k = 46, 3 if options.quick else 10
    table = Table(
        f"Against the naive wrapper, {n} features, k = {k}",
        note="The bare wrapper solves each training by NumPy on data centred beforehand, and was "
        "run in full: it chose the same features. The other calls RankRLS.fit, one fit on "
        f"{k // 2} features timed and multiplied. At least {MIN_SPEEDUP:,} times is required of "
        "the wrapper around RankRLS.",
    )
    for m, n_queries in [(2_000, 100)] if options.quick else [(2_000, 100), (6_000, 300)]:
        data = _problem(m, n, per_query=m // n_queries)
        greedy = GreedyRankRLS(k, alpha=1.0, normalize="none").fit(data)
        rest = data.queries[1:]
        columns = RankingData(rest.X[:, : k // 2], rest.y, rest.qid)
        times = race(
            {
                "greedy": _fit_later(data, k),
                "fit": lambda columns=columns: RankRLS(1.0, normalize="none").fit(columns),  # type: ignore[misc]
            },
            repeat=max(15, options.repeat),
        )
        start = time.perf_counter()
        chosen, trainings = _naive(data, k, 1.0)
        naive = time.perf_counter() - start
        assert chosen == greedy.selected_.tolist(), "the naive wrapper chose other features"
        fast = times["greedy"].median
        wrapper = times["fit"].median * trainings
        table.add(
            documents=m,
            queries=n_queries,
            trainings=trainings,
            greedy=str(times["greedy"]),
            wrapper=f"{show_seconds(wrapper)} (estimated)",
            times_faster=round(wrapper / fast),
            bare_wrapper=show_seconds(naive),
            times_faster_than_bare=round(naive / fast),
        )
    return table


def large(options: Options) -> Table:
    """Fit a large dense problem with each way of holding it, in a fresh process each."""
    m, n, k = (20_000, 100, 10) if options.quick else (200_000, 500, 50)
    table = Table(
        f"{m:,} documents × {n} features, k = {k}",
        note="Peak memory of the process above that with the data loaded; X itself is float32.",
    )
    for name, parameters in {
        "standard": {},
        "low": {"memory": "low"},
    }.items():
        found = run_python(_MEMORY + _LARGE.format(m=m, n=n, k=k, parameters=parameters))
        table.add(memory=name, time=show_seconds(found["seconds"]), peak_MiB=found["peak"],
                  first_five=found["first"])  # fmt: skip
    return table


def sparse_text(options: Options) -> Table:
    """Fit on words: one query a topic, its articles and a sample of others."""
    if options.data is None:
        return Table("Sparse text", note="Skipped: give --data with Reuters-21578.")
    k, per_topic = (5, 200) if options.quick else (20, 2_000)
    table = Table("Reuters-21578 words, one query a topic")
    for name, parameters in {
        "back-fitting": {"fitting": "back"},
        "back-fitting, 1,000 candidates": {"fitting": "back", "candidates": 1_000},
        "low memory, 100 candidates": {"memory": "low", "candidates": 100},
    }.items():
        found = run_python(
            _MEMORY
            + _TEXT.format(data=str(options.data), k=k, per_topic=per_topic, parameters=parameters)
        )
        table.add(
            method=name,
            time=show_seconds(found["seconds"]),
            peak_MiB=found["peak"],
            criterion=f"{found['start']:.4f} → {found['end']:.4f}",
            words=", ".join(found["words"][:6]),
        )
    table.note = (
        f"{found['documents']:,} documents × {found['features']:,} words, {found['queries']} "
        f"queries, {found['stored']:,} non-zeros, k = {k}. The standard algorithm would hold "
        f"{found['dense_GiB']:.0f} GiB; this machine has {found['machine_GiB']:.0f} GiB."
    )
    return table


def _problem(m: int, n: int, per_query: int = 20) -> RankingData:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n))
    raw = X[:, : min(n, 12)] @ rng.normal(size=min(n, 12)) + rng.normal(size=m)
    return RankingData(X, np.digitize(raw, [1.0, 3.0]), group=[per_query] * (m // per_query)
                       + ([m % per_query] if m % per_query else []))  # fmt: skip


def _state(data: RankingData, jobs: int) -> Any:
    from leanrank.losses.base import Labels
    from leanrank.losses.squared import SquaredLoss
    from leanrank.solvers.least_squares.centred import Centred
    from leanrank.solvers.least_squares.greedy import make_state

    labels = Labels(y=data.y, query_ptr=data.query_ptr, normalize="none")
    centred = Centred.from_plan(data.X, SquaredLoss().prepare(labels))
    return make_state("standard", centred, 1.0, make_executor(jobs))


def _fit_later(data: RankingData, k: int) -> Any:
    return lambda: GreedyRankRLS(k, alpha=1.0, normalize="none").fit(data)


def _least_cpu_seconds(fits: dict[str, Any], repeat: int) -> dict[str, float]:
    seconds = dict.fromkeys(fits, np.inf)
    for _ in range(repeat + 1):
        for name, fit in fits.items():
            start = time.process_time()
            fit()
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds


def _naive(data: RankingData, k: int, alpha: float) -> tuple[list[int], int]:
    """Retrain for every candidate and every left-out query."""
    ptr = data.query_ptr
    query_of = np.repeat(np.arange(data.n_queries), np.diff(ptr))
    means = np.add.reduceat(data.X, ptr[:-1], axis=0) / np.diff(ptr)[:, None]
    A = data.X - means[query_of]
    b = data.y - (np.add.reduceat(data.y, ptr[:-1]) / np.diff(ptr))[query_of]
    chosen: list[int] = []
    trainings = 0
    with single_threaded_blas():
        for _ in range(k):
            errors = np.full(A.shape[1], np.inf)
            for candidate in range(A.shape[1]):
                if candidate in chosen:
                    continue
                columns = A[:, [*chosen, candidate]]
                error = 0.0
                for q in range(data.n_queries):
                    mine = slice(ptr[q], ptr[q + 1])
                    rest = np.concatenate([columns[: ptr[q]], columns[ptr[q + 1] :]])
                    target = np.concatenate([b[: ptr[q]], b[ptr[q + 1] :]])
                    system = rest.T @ rest + alpha * np.eye(columns.shape[1])
                    w = np.linalg.solve(system, rest.T @ target)
                    away = b[mine] - columns[mine] @ w
                    error += float(away @ away)
                    trainings += 1
                errors[candidate] = error
            chosen.append(int(np.argmin(errors)))
    return chosen, trainings


@kernel
def _pass(C, U, begin, end):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        c, u = C[i], U[i]
        for k in range(len(c)):
            c[k] *= 1.0000001
        for k in range(len(u)):
            u[k] *= 1.0000001


_MEMORY = """
def memory(which):
    with open("/proc/self/status") as stream:
        return next(int(line.split()[1]) for line in stream if line.startswith(which))
def reset_peak():
    with open("/proc/self/clear_refs", "w") as stream:
        stream.write("5")
    return memory("VmRSS")
"""

_LARGE = """
import json, time
import numpy as np
from leanrank.rankers import GreedyRankRLS
from leanrank.data.ranking_data import RankingData
rng = np.random.default_rng(0)
X = rng.standard_normal(size=({m}, {n}), dtype=np.float32)
truth = np.where(np.arange({n}) < 60, 1 / (1 + np.arange({n})), 0).astype(np.float32)
y = np.digitize(X @ truth + rng.standard_normal({m}, dtype=np.float32), [1.0, 2.5])
data = RankingData(X, y, group=[100] * ({m} // 100))
small = data.queries[:20]
GreedyRankRLS(2, n_jobs=-1, **{parameters}).fit(small)
before = reset_peak()
start = time.perf_counter()
ranker = GreedyRankRLS({k}, alpha=1e-3, n_jobs=-1, **{parameters}).fit(data)
seconds = time.perf_counter() - start
peak = memory("VmHWM") - before
print(json.dumps(dict(seconds=seconds, peak=peak // 1024, first=ranker.selected_[:5].tolist())))
"""

_TEXT = """
import json, os, time
import numpy as np
from leanrank.rankers import GreedyRankRLS
from papers.public_sets import fetch
from leanrank.data.ranking_data import RankingData
reuters = fetch("Reuters-21578", data_dir={data!r}, download=False)
train = np.flatnonzero(reuters.part == "train")
X, Y = reuters.X[train], reuters.Y[train].tocsc()
rng = np.random.default_rng(0)
rows, labels, queries = [], [], []
for topic in range(Y.shape[1]):
    about = Y.indices[Y.indptr[topic]:Y.indptr[topic + 1]]
    if len(about) < 2:
        continue
    about = about[: {per_topic} // 2]
    others = np.setdiff1d(np.arange(len(train)), Y.indices[Y.indptr[topic]:Y.indptr[topic + 1]])
    others = rng.choice(others, {per_topic} - len(about), replace=False)
    rows += [about, others]
    labels += [np.ones(len(about)), np.zeros(len(others))]
    queries.append(len(about) + len(others))
data = RankingData(X[np.concatenate(rows)], np.concatenate(labels), group=queries)
GreedyRankRLS(2, alpha=1e-3, n_jobs=-1, **{parameters}).fit(data.queries[:3])
before = reset_peak()
start = time.perf_counter()
ranker = GreedyRankRLS({k}, alpha=1e-3, n_jobs=-1, random_state=0, **{parameters}).fit(data)
seconds = time.perf_counter() - start
peak = memory("VmHWM") - before
print(json.dumps(dict(
    seconds=seconds, peak=peak // 1024, documents=len(data), features=data.n_features,
    queries=data.n_queries, stored=int(data.X.nnz), start=float(ranker.criterion_path_[0]),
    end=float(ranker.criterion_path_[-1]), words=[reuters.words[i] for i in ranker.selected_],
    dense_GiB=2 * 8 * len(data) * data.n_features / 2**30,
    machine_GiB=os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
)))
"""
