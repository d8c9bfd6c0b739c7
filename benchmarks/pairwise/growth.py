"""How the time of the squared hinge grows with the documents of one query, up to a million.

Pairs grow with the square of the documents: a query of a million has up to 5·10¹¹. An exponent of
1 is linear; sorting adds a little. With five levels, and with a level for every document.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.domination.problems import load
from benchmarks.harness import Options, Table, Timing, show_seconds
from benchmarks.pairwise.clock import measure
from leanrank.data.ranking_data import RankingData
from leanrank.execution import single_threaded_blas
from leanrank.losses.base import Labels
from leanrank.losses.hinge import SquaredHingeLoss
from leanrank.problem.memory import MemoryProblem as Problem
from leanrank.rankers import RankSVM

SIZES = (62_500, 125_000, 250_000, 500_000, 1_000_000)
N_FEATURES = 10
MAX_EXPONENT = 1.15


def growth_in_one_query(options: Options) -> Table:
    """Fit exponents to the times of an evaluation, a Hessian product and a whole fit."""
    table = Table(f"Growth in documents of one query, {N_FEATURES} features, one thread")
    sizes = [size // 50 for size in SIZES] if options.quick else list(SIZES)
    exponents = []
    with single_threaded_blas():
        for levels in ("5", "all different"):
            seconds: dict[str, list[float]] = {}
            for n in sizes:
                times, reads = _measure(_one_query(n, levels), options.repeat)
                for what, timing in times.items():
                    seconds.setdefault(what, []).append(min(timing.seconds))
                shown = {what: show_seconds(min(t.seconds)) for what, t in times.items()}
                table.add(levels=levels, documents=f"{n:,}", **shown, **{"reads of X": reads})
            for what, spent in seconds.items():
                slope = float(np.polyfit(np.log(sizes), np.log(spent), 1)[0])
                above = "" if slope <= MAX_EXPONENT else f" (ABOVE {MAX_EXPONENT})"
                exponents.append(f"{what}, levels {levels}: {slope:.2f}{above}")
    table.note = (
        "Exponents of the least processor times (scores change between evaluations, so that each "
        f"sorts): {'; '.join(exponents)}. {load()}"
    )
    return table


def _one_query(n: int, levels: str) -> RankingData:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, N_FEATURES))
    score = X @ rng.normal(size=N_FEATURES) + 2.0 * rng.normal(size=n)
    if levels == "5":
        score = np.searchsorted(np.quantile(score, [0.6, 0.8, 0.9, 0.97]), score).astype(float)
    return RankingData(X, score, np.zeros(n, dtype=np.int64))


def _measure(data: RankingData, repeat: int) -> tuple[dict[str, Timing], int]:
    loss = SquaredHingeLoss()
    problem = Problem(data.X, loss, loss.prepare(Labels(data.y, data.query_ptr)))
    block = problem.design.take(np.arange(N_FEATURES))
    rng = np.random.default_rng(1)
    ranker = RankSVM(0.01)

    def weights() -> Any:
        return 0.1 * rng.normal(size=N_FEATURES)

    contestants = {
        "evaluation": lambda: problem.evaluate(problem.scores(weights())),
        "Hessian product": lambda: problem.hessians.product(
            block, problem.scores(weights()), weights()
        ),
        "fit": lambda: ranker.fit(data),
    }
    times = {
        name: measure(function, repeat=max(3, min(5, repeat)))
        for name, function in contestants.items()
    }
    return times, ranker.n_iter_
