"""How the time of an outer iteration grows with documents, features and non-zeros.

The smallest size is well beyond the last-level cache (120 MB dense), so that all read from memory.
An exponent of 1 is linear. The time of an outer iteration is that of the whole solve over the
number of reads of X. The penalty is chosen so that models have about the same number of features at
every size: with other data at the same share of alpha_max, the answer grows as well as the
question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.domination.problems import alpha_max, lasso, load, make_problem
from benchmarks.domination.sparse import text_collection
from benchmarks.harness import Options, Table, race, show_seconds
from leanrank.data import make_ranking
from leanrank.data.ranking_data import RankingData
from leanrank.execution import make_executor, single_threaded_blas
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.memory import MemoryProblem as Problem
from leanrank.solvers.newton.solver import Newton

FACTORS = (1, 4, 16)
CHOSEN = {"dense": 20, "sparse": 100}
"""About how many features the models have."""


def run(options: Options) -> list[Table]:
    shrink = 100 if options.quick else 1
    repeat = min(options.repeat, 2)
    table = Table(
        f"Growth to a gap of 1e-6, models of about {CHOSEN['dense']} features (dense) or "
        f"{CHOSEN['sparse']} (sparse)"
    )
    exponents = []
    for name, sets in _grown(shrink).items():
        sizes, seconds = [], []
        for size, data in sets():
            per_iteration, row = _measure(data, repeat)
            table.add(grows=name, size=f"{size:,}", **row)
            sizes.append(size)
            seconds.append(per_iteration)
        slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
        exponents.append(f"{name} {slope:.2f}{'' if slope <= 1.1 else ' (ABOVE 1.1)'}")
    table.note = f"Fitted exponents of the time of an outer iteration: {', '.join(exponents)}. "
    table.note += load()
    return [table]


def _grown(shrink: int) -> dict[str, Callable[[], Iterator[tuple[int, RankingData]]]]:
    """Name what grows, and make the sets one after the other: the largest fills gigabytes."""

    def dense(n_documents: int, n_features: int) -> RankingData:
        data: RankingData = make_ranking(
            n_documents // 100,
            100,
            n_features,
            n_informative=20,
            n_levels=5,
            correlation=0.3,
            dtype=np.float32,
        )
        return data

    n, m = 600_000 // shrink, 100_000 // shrink
    words = max(2_000, 47_000 // shrink)
    return {
        "documents, dense × 50": lambda: ((f * n, dense(f * n, 50)) for f in FACTORS),
        "features, dense": lambda: ((f * 50, dense(n, f * 50)) for f in FACTORS),
        "documents, sparse": lambda: (
            (f * m, text_collection(f * m, words, 60.0 * f * m)) for f in FACTORS
        ),
        "non-zeros, sparse": lambda: (
            (data.X.nnz, data)
            for data in (text_collection(m, words, 60.0 * f * m) for f in FACTORS)
        ),
    }


def _measure(data: RankingData, repeat: int) -> tuple[float, dict[str, object]]:
    executor = make_executor(-1)
    with single_threaded_blas():
        design = make_problem(data, executor).design
        problem = make_problem(data, executor, design)
        penalty = _penalty(problem, CHOSEN["sparse" if data.is_sparse else "dense"])
        timing = race(
            {
                "solve": lambda: Newton(tol=1e-6).solve(
                    make_problem(data, executor, design), penalty
                ),
                "pass": lambda: design.rmatvec(np.ones(len(data))),
            },
            repeat=repeat,
        )
    solution = timing["solve"].result
    per_iteration = timing["solve"].median / solution.n_iter
    return per_iteration, {
        "time": str(timing["solve"]),
        "outer iterations": solution.n_iter,
        "per iteration": show_seconds(per_iteration),
        "one Xᵀg": show_seconds(timing["pass"].median),
        "features chosen": int((solution.w != 0).sum()),
        "gap": f"{solution.gap:.1e}",
    }


def _penalty(problem: Problem, n_chosen: int) -> ElasticNet:
    """Weaken the penalty until so many features have entered."""
    alpha = alpha_max(problem)
    w = np.zeros(problem.n_features)
    for _ in range(40):
        alpha *= 0.8
        w = Newton(tol=1e-4).solve(problem, lasso(alpha, problem), w.copy()).w
        if np.count_nonzero(w) >= n_chosen:
            break
    return lasso(alpha, problem)
