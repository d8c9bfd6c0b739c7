"""Sparse models of a text collection: Domination Rank, RankNet and RankSVM beside skglm and celer.

The peers fit an ℓ1-penalised logistic regression of the topic. Each system's strength is found by
bisection, untimed, until it selects about as many features. What is timed is a whole fit from zero
at that strength, in turns, on one thread, of the same float64 matrix by row: each converts it to
what it computes on.

Accuracy is a relative distance of 1e-6 from the optimum. Ours prove theirs by a duality gap. The
peers' tolerances mean something else, so theirs are tightened tenfold until two more digits lower
the objective by less than a tenth of that; the loosest tolerance within 1e-6 of the lowest
objective is timed. celer's logistic regression has no intercept, which is another problem. Average
precision is that of documents which no system has seen.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.domination.problems import load
from benchmarks.domination.sparse import text_collection
from benchmarks.harness import Options, Table, race
from leanrank.execution import single_threaded_blas
from leanrank.metrics import evaluate
from leanrank.rankers import DominationRanker, RankNet, RankSVM

ACCURACY = 1e-6
SEARCH = 1e-5
"""Tolerance of the fits that look for a strength: looser ones of the peers miss features."""

SMALLEST = 1e-10
"""Tolerance beyond which the peers are not asked for more digits."""

FULL, QUICK = ((240_000, 47_000, 13.2e6), 150), ((6_000, 1_000, 1.8e5), 30)


@dataclass
class Contestant:
    """A fit at a strength, given as a share of the one where the first feature enters."""

    fit: Callable[[float, float], Any]
    objective: Callable[[Any, float], float] | None = None  # None: the tolerance is a gap
    share: float = 1.0
    tol: float = ACCURACY

    def run(self) -> Any:
        return self.fit(self.share, self.tol)


def run(options: Options) -> list[Table]:
    warnings.simplefilter("ignore")
    shape, wanted = QUICK if options.quick else FULL
    with single_threaded_blas():
        return [_measure(shape, wanted, seed, options.repeat) for seed in (0, 1)]


def _measure(shape: tuple[int, int, float], wanted: int, seed: int, repeat: int) -> Table:
    data = text_collection(*shape, seed=seed)
    cut = len(data) * 2 // 3
    X, y = data.X[:cut].astype(np.float64), data.y[:cut]
    held_out = data.X[cut:], data.y[cut:]
    contestants = _contestants(X, y)
    for name, each in contestants.items():
        begun = time.perf_counter()
        _find_share(each, wanted)
        _find_tolerance(each)
        print(f"strength of {name} found in {time.perf_counter() - begun:.0f} s", flush=True)
    timings = race(
        {name: each.run for name, each in contestants.items()}, repeat=min(3, repeat), warm_up=0
    )
    table = Table(
        f"{cut:,} × {data.n_features:,}, {X.nnz:,} non-zeros, float64, seed {seed}, one thread; "
        f"strengths for about {wanted} features"
    )
    fastest = min(timings[name].median for name, each in contestants.items() if each.objective)
    for name, timing in timings.items():
        scores = held_out[0] @ np.ravel(timing.result.coef_)
        found = evaluate(held_out[1], scores, np.zeros(len(scores)), measures=["map"])
        table.add(
            **{
                "system": name,
                "time": str(timing),
                "times the fastest peer": f"{timing.median / fastest:.2f}",
                "features": _count(timing.result),
                "average precision": found.means["map"],
                "tolerance": f"{contestants[name].tol:.0e}",
            }
        )
    table.note = load()
    return table


def _contestants(X: Any, y: Any) -> dict[str, Contestant]:
    from celer import LogisticRegression
    from skglm import SparseLogisticRegression

    n = len(y)
    signs = np.where(y > 0, 1.0, -1.0)
    centred = np.abs(X.T @ ((signs > 0) - np.mean(signs > 0))).max() / n
    plain = np.abs(X.T @ signs).max() / (2 * n)  # without an intercept

    def ours(ranker: Any) -> Contestant:
        top = ranker(l1_ratio=1.0).alpha_max(X, y)
        return Contestant(
            lambda share, tol: ranker(alpha=share * top, l1_ratio=1.0, tol=tol).fit(X, y)
        )

    def skglm() -> Contestant:
        model = partial(SparseLogisticRegression, max_iter=500)
        return Contestant(
            lambda share, tol: model(share * centred, tol=tol).fit(X, signs), objective(centred)
        )

    def celer() -> Contestant:
        return Contestant(
            lambda share, tol: LogisticRegression(1.0 / (share * plain * n), tol=tol).fit(X, signs),
            objective(plain),
        )

    def objective(top: float) -> Callable[[Any, float], float]:
        def value(model: Any, share: float) -> float:
            w = np.ravel(model.coef_)
            margin = signs * (X @ w + np.ravel(model.intercept_)[0])
            return float(np.logaddexp(0.0, -margin).mean() + share * top * np.abs(w).sum())

        return value

    return {
        "DominationRanker": ours(DominationRanker),
        "RankNet, ℓ1": ours(RankNet),
        "RankSVM, ℓ1": ours(RankSVM),
        "skglm, ℓ1 logistic regression": skglm(),
        "celer, ℓ1 logistic regression without an intercept": celer(),
    }


def _count(model: Any) -> int:
    return int(np.count_nonzero(model.coef_))


def _find_share(one: Contestant, wanted: int) -> None:
    """Bisect the strength on a logarithmic scale, from above; a tenth more or less will do."""
    low, high, step = -np.inf, 0.0, 1.0
    for _ in range(20):
        middle = high - step if low == -np.inf else 0.5 * (low + high)
        one.share = float(np.exp(middle))
        found = _count(one.fit(one.share, SEARCH))
        if abs(found - wanted) <= 0.1 * wanted:
            return
        low, high = (middle, high) if found > wanted else (low, middle)


def _find_tolerance(one: Contestant) -> None:
    """Find the loosest tolerance that gives the accuracy."""
    if one.objective is None:
        return
    values: dict[float, float] = {}
    for k in itertools.count(3):
        tol = 10.0**-k
        values[tol] = one.objective(one.fit(one.share, tol), one.share)
        earlier = values.get(10.0 ** (2 - k), np.inf)
        if earlier - values[tol] <= 0.1 * ACCURACY * values[tol] or tol <= 2.0 * SMALLEST:
            break
    lowest = min(values.values())
    one.tol = max(tol for tol, value in values.items() if value <= lowest * (1.0 + ACCURACY))
