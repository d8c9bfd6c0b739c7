"""How the time of smooth fits grows with features: conjugate gradients beside formed Hessians.

An exponent of 1 is linear; a Hessian of all features costs their square. Features are normal, or in
many units, or depend on twenty factors, which conjugate gradients like least.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from benchmarks.domination.problems import load
from benchmarks.harness import Options, Table, show_seconds
from benchmarks.pairwise.clock import measure
from leanrank._typing import AnyArray
from leanrank.execution import single_threaded_blas
from leanrank.losses import pair_loss
from leanrank.losses.base import Labels
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.hessians import Limits
from leanrank.problem.memory import MemoryProblem
from leanrank.solvers.newton.solver import Newton

SIZES = (125, 250, 500, 1_000, 2_000)
N_ROWS, PER_QUERY = 20_000, 100


def growth_in_features(options: Options) -> Table:
    """Fit exponents to the times of ridge fits, by what minimises the quadratic models."""
    table = Table(f"Growth in features of smooth fits, {N_ROWS:,} documents, one thread")
    sizes = [size // 8 for size in SIZES] if options.quick else list(SIZES)
    ways = {
        "conjugate gradients": Limits(),
        "Hessian": Limits(fewest_iterated=1 << 60, fewest_gram=1 << 14),
    }
    exponents = []
    with single_threaded_blas():
        for loss_name in ("logistic", "squared-hinge"):
            for kind in ("normal", "units", "factors"):
                spent: dict[str, list[float]] = {}
                for n in sizes:
                    problem = _problem(n, kind)
                    shown = {}
                    for way, limits in ways.items():
                        timing = measure(
                            partial(_fit, loss_name, *problem, limits),
                            repeat=min(3, options.repeat),
                        )
                        spent.setdefault(way, []).append(min(timing.seconds))
                        shown[way] = show_seconds(min(timing.seconds))
                    table.add(loss=loss_name, kind=kind, features=f"{n:,}", **shown)
                for way, seconds in spent.items():
                    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
                    exponents.append(f"{loss_name}, {kind}, {way} {slope:.2f}")
    table.note = f"Exponents of the least processor times: {'; '.join(exponents)}. {load()}"
    return table


def _problem(n: int, kind: str) -> tuple[AnyArray, Labels]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, n)).astype(np.float32)
    score = X[:, :10] @ rng.normal(size=10) + 2.0 * rng.normal(size=N_ROWS)
    y = np.digitize(score, np.quantile(score, [0.2, 0.4, 0.6, 0.8])).astype(float)
    if kind == "units":
        X *= np.exp(2.0 * rng.normal(size=n)).astype(np.float32)
    if kind == "factors":
        X = 0.3 * X + (rng.normal(size=(N_ROWS, 20)) @ rng.normal(size=(20, n))).astype(X.dtype)
    return np.ascontiguousarray(X), Labels(y, np.arange(0, N_ROWS + 1, PER_QUERY))


def _fit(loss_name: str, X: AnyArray, labels: Labels, limits: Limits) -> None:
    loss = pair_loss(loss_name)
    problem = MemoryProblem(X, loss, loss.prepare(labels), limits=limits)
    Newton().solve(problem, ElasticNet.build(1e-3, 0.0, X.shape[1]))
