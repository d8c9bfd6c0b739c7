"""Sparse models of a text collection: Domination Rank and RankNet beside skglm and celer.

The peers fit an ℓ1-penalised logistic regression of the topic. Each system's strength is searched,
untimed, until it selects about as many features; what is timed is one fit from zero at that
strength. Ours stop by their certificate, a relative duality gap of 1e-6. The peers' tolerances mean
something else, so theirs are tightened tenfold until the objective is within 1e-6 of the lowest
seen, and that fit is the one timed. celer's logistic regression has no intercept, and its threads
and skglm's are one. Average precision is that of documents which no system has seen.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.domination.problems import load
from benchmarks.domination.sparse import text_collection
from benchmarks.harness import Options, Table, show_seconds
from leanrank import DominationRanker, RankNet
from leanrank.metrics import evaluate

ACCURACY = 1e-6
Fit = Callable[
    [float, float], Any
]  # strength relative to where the first feature enters, tolerance


def run(options: Options) -> list[Table]:
    warnings.simplefilter("ignore")
    shape, wanted = ((5_000, 1_000, 1.5e5), 30) if options.quick else ((60_000, 20_000, 3.3e6), 150)
    tables = []
    for seed in (0, 1):
        data = text_collection(*shape, seed=seed)
        cut = len(data) * 2 // 3
        X, y = data.X[:cut], data.y[:cut]
        held_out = data.X[cut:], data.y[cut:]
        table = Table(
            f"{cut:,} × {data.n_features:,}, {X.nnz:,} non-zeros, seed {seed}, one thread; "
            f"strength for about {wanted} features"
        )
        for name, (fit, objective) in _contestants(X, y).items():
            ratio = _search(lambda r, fit=fit: _count(fit(r, 1e-3)), wanted)
            seconds, model, tol = _timed(fit, objective, ratio, options.repeat)
            scores = held_out[0] @ np.ravel(model.coef_)
            found = evaluate(held_out[1], scores, np.zeros(len(scores)), measures=["map"])
            table.add(
                system=name,
                time=show_seconds(seconds),
                features=_count(model),
                average_precision=found.means["map"],
                tolerance=f"{tol:.0e}",
            )
        table.note = load()
        tables.append(table)
    return tables


def _contestants(X: Any, y: Any) -> dict[str, tuple[Fit, Callable[[Any, float], float] | None]]:
    from celer import LogisticRegression
    from skglm import SparseLogisticRegression

    columns = X.tocsc().astype(np.float64)
    signs = np.where(y > 0, 1.0, -1.0)
    n = len(y)
    share = (signs > 0).mean()
    pull = np.abs(columns.T @ (np.where(signs > 0, 1.0, 0.0) - share)).max() / n
    plain = np.abs(columns.T @ signs).max() / (2 * n)  # without an intercept

    def ours(ranker: Any) -> Fit:
        top = ranker(l1_ratio=1.0).alpha_max(X, y)
        return lambda ratio, tol: ranker(alpha=ratio * top, l1_ratio=1.0, tol=tol).fit(X, y)

    def skglm(ratio: float, tol: float) -> Any:
        return SparseLogisticRegression(ratio * pull, tol=tol, max_iter=200).fit(columns, signs)

    def celer(ratio: float, tol: float) -> Any:
        C = 1.0 / (ratio * plain * n)
        return LogisticRegression(C=C, tol=tol, fit_intercept=False).fit(columns, signs)

    def objective(top: float) -> Callable[[Any, float], float]:
        def value(model: Any, ratio: float) -> float:
            w = np.ravel(model.coef_)
            margin = signs * (columns @ w + np.ravel(model.intercept_)[0])
            return float(np.logaddexp(0.0, -margin).mean() + ratio * top * np.abs(w).sum())

        return value

    return {
        "DominationRanker": (ours(DominationRanker), None),
        "RankNet, ℓ1": (ours(RankNet), None),
        "skglm, ℓ1 logistic regression": (skglm, objective(pull)),
        "celer, ℓ1 logistic regression without an intercept": (celer, objective(plain)),
    }


def _count(model: Any) -> int:
    return int(np.count_nonzero(model.coef_))


def _search(count: Callable[[float], int], wanted: int) -> float:
    """Bisect the strength on a logarithmic scale; a tenth more or less will do."""
    low, high = np.log(1e-3), 0.0
    for _ in range(12):
        middle = 0.5 * (low + high)
        found = count(float(np.exp(middle)))
        if abs(found - wanted) <= 0.1 * wanted:
            break
        low, high = (middle, high) if found > wanted else (low, middle)
    return float(np.exp(middle))


def _timed(
    fit: Fit, objective: Callable[[Any, float], float] | None, ratio: float, repeat: int
) -> tuple[float, Any, float]:
    """Return the median time of a fit to 1e-6, its model and the tolerance that it took."""
    tol = ACCURACY
    if objective is not None:
        tols = [10.0**-k for k in range(3, 11)]
        values = [objective(fit(ratio, tol), ratio) for tol in tols]
        tol = next(
            t for t, v in zip(tols, values, strict=True) if v <= min(values) * (1 + ACCURACY)
        )
    seconds = []
    for _ in range(max(1, repeat)):
        start = time.perf_counter()
        model = fit(ratio, tol)
        seconds.append(time.perf_counter() - start)
    return float(np.median(seconds)), model, tol
