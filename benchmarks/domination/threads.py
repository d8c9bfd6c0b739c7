"""Two threads against one: the same weights to the last bit, sooner."""

from __future__ import annotations

import numpy as np

from benchmarks.domination.problems import alpha_max, lasso, load, make_problem
from benchmarks.domination.sparse import text_collection
from benchmarks.harness import Options, Table, race
from leanrank.data import make_ranking
from leanrank.data.ranking_data import RankingData
from leanrank.execution import make_executor, single_threaded_blas
from leanrank.problem.memory import MemoryProblem as Problem
from leanrank.solvers.base import Solution
from leanrank.solvers.newton.solver import Newton

RATIO = 0.02


def run(options: Options) -> list[Table]:
    shrink = 20 if options.quick else 1
    sets = {
        "dense, many queries": lambda: make_ranking(
            5_000 // shrink,
            120,
            136,
            n_informative=40,
            n_levels=5,
            correlation=0.3,
            dtype=np.float32,
        ),
        "sparse, one query": lambda: text_collection(
            400_000 // shrink, 47_000 // shrink, 22e6 / shrink
        ),
    }
    table = Table(f"Two threads against one, gap 1e-6 at {RATIO}·alpha_max")
    for name, make in sets.items():
        _compare(table, name, make(), options.repeat)
    table.note = load()
    return [table]


def _compare(table: Table, name: str, data: RankingData, repeat: int) -> None:
    executors = {n: make_executor(n) for n in (1, 2)}
    with single_threaded_blas():
        designs = {n: make_problem(data, e).design for n, e in executors.items()}

        def problem(n: int) -> Problem:
            return make_problem(data, executors[n], designs[n])

        alpha = RATIO * alpha_max(problem(1))

        def solve(n: int) -> Solution:
            fresh = problem(n)
            return Newton(tol=1e-6).solve(fresh, lasso(alpha, fresh))

        timings = race({"1": lambda: solve(1), "2": lambda: solve(2)}, repeat=repeat)
    one, two = timings["1"], timings["2"]
    if not np.array_equal(one.result.w, two.result.w):
        raise AssertionError(f"{name}: the weights depend on the number of threads")
    table.add(
        set=name,
        shape=f"{len(data):,} × {data.n_features:,}",
        one_thread=str(one),
        two_threads=str(two),
        ratio=f"{one.median / two.median:.2f} ×",
        same_bits="yes",
        gap=f"{two.result.gap:.1e}",
    )
