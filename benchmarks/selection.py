"""A hundred strengths on five folds: Domination Rank's path beside scikit-learn's ℓ1 logistic.

Both fit a hundred ℓ1-penalised linear models on the training rows of each fold of MQ2008, from the
strength at which the first feature enters down to a thousandth of it. DominationRanker follows its
path to a relative duality gap of 1e-4. ``LogisticRegression`` learns whether a label is above zero,
over its own range of C: ``saga`` started from the model before, ``liblinear`` anew, as it cannot
be. Its tolerance is not a gap, so the gap that its models reach is computed as well, after the
clock has stopped; saga, which goes beyond 1e-4 at its default tolerance, also runs at one ten times
larger. One thread, processor time, and everything warm: each contestant has fitted before.

Parts, for ``--only``: ``liblinear``, ``saga``, ``saga-loose``, each beside ours.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import l1_min_c

from benchmarks.domination.problems import load
from benchmarks.harness import Options, Table, Timing, show_seconds
from benchmarks.pairwise.clock import measure, now
from leanrank.data.ranking_data import RankingData
from leanrank.execution import single_threaded_blas
from leanrank.rankers import DominationRanker
from leanrank.selection import cross_validate_path
from papers.public_sets import fetch

TOL, RATIO, MEASURES = 1e-4, 1e-3, ("ndcg@10", "map")
SOLVERS = {"liblinear": ("liblinear", 1e-4), "saga": ("saga", 1e-4), "saga-loose": ("saga", 1e-3)}


def run(options: Options) -> list[Table]:
    if options.only is not None and options.only not in SOLVERS:
        raise SystemExit(f"--only {options.only} is not a part of selection: use {list(SOLVERS)}")
    if options.data is None:
        print("selection needs MQ2008: give --data; left out")
        return []
    n_alphas, numbers = (10, (1,)) if options.quick else (100, (1, 2, 3, 4, 5))
    folds = fetch("MQ2008", data_dir=options.data, download=False)
    parts = [folds.fold(number)[0] for number in numbers]
    table = Table(
        f"{n_alphas} strengths down to {RATIO:g} of the largest × {len(parts)} folds of MQ2008, "
        "one thread, processor time"
    )
    with single_threaded_blas(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the penalty has other words since scikit-learn 1.8
        ours = _ours(table, parts, n_alphas, options.repeat)
        for part in SOLVERS if options.only is None else (options.only,):
            _theirs(table, parts, n_alphas, *SOLVERS[part], ours)
    whole = _whole_set(folds, numbers)
    found = measure(
        lambda: cross_validate_path(
            DominationRanker(tol=TOL), whole, n_alphas=n_alphas, measures=MEASURES
        ),
        repeat=1,
    )
    table.note = (
        f"ratio: over DominationRanker.path (median of {options.repeat}); scikit-learn once. A "
        "relative gap bounds how far the objective is from its optimum. "
        f"`cross_validate_path` on all {whole.n_queries} queries, five folds by query, measures "
        f"{' and '.join(MEASURES)} included: {show_seconds(found.median)}. {load()}"
    )
    return [table]


def _ours(table: Table, parts: list[RankingData], n_alphas: int, repeat: int) -> Timing:
    def fit() -> list[Any]:
        return [
            DominationRanker(tol=TOL).path(part, n_alphas=n_alphas, alpha_min_ratio=RATIO)
            for part in parts
        ]

    timing = measure(fit, repeat=repeat)
    gaps = np.concatenate([path.dual_gaps for path in timing.result])
    table.add(
        contestant="DominationRanker.path",
        time=str(timing),
        ratio="1 ×",
        **_reached(gaps),
        features=f"{np.mean([path.n_selected[-1] for path in timing.result]):.0f}",
    )
    return timing


def _theirs(
    table: Table, parts: list[RankingData], n_alphas: int, solver: str, tol: float, ours: Timing
) -> None:
    seconds, gaps, features = 0.0, [], []
    for part in parts:
        X, y = np.asarray(part.X), (part.y > 0).astype(np.int64)
        strengths = l1_min_c(X, y, loss="log") * np.logspace(0, -np.log10(RATIO), n_alphas)
        model = LogisticRegression(
            penalty="l1", solver=solver, tol=tol, warm_start=solver == "saga"
        )
        model.set_params(C=strengths[0]).fit(X, y)
        weights = []
        start = now()
        for strength in strengths:
            model.set_params(C=float(strength)).fit(X, y)
            weights.append((model.coef_[0].copy(), float(model.intercept_[0])))
        seconds += now() - start
        gap = _gap_of(X, y, penalised_intercept=solver == "liblinear")
        gaps += [gap(w, b, c) for (w, b), c in zip(weights, strengths, strict=True)]
        features.append(np.count_nonzero(weights[-1][0]))
    table.add(
        contestant=f"LogisticRegression ℓ1, {solver}, tol={tol:g}",
        time=show_seconds(seconds),
        ratio=f"{seconds / ours.median:.1f} ×",
        **_reached(np.array(gaps)),
        features=f"{np.mean(features):.0f}",
    )


def _reached(gaps: np.ndarray[Any, Any]) -> dict[str, Any]:
    return {
        "median gap": f"{np.median(gaps):.1e}",
        "largest gap": f"{gaps.max():.1e}",
        f"within {TOL:g}": f"{100 * np.mean(gaps <= TOL):.0f}%",
    }


def _gap_of(
    X: np.ndarray[Any, Any], y: np.ndarray[Any, Any], *, penalised_intercept: bool
) -> Callable[[np.ndarray[Any, Any], float, float], float]:
    """Give a function for the relative duality gap of C Σ log(1 + exp(−s f)) + ‖w‖₁.

    liblinear counts the intercept as one more weight; saga leaves it free, and it is then brought
    to its optimum first, without which there is no dual point (the gap is the smaller for it).
    """
    sign = np.where(y > 0, 1.0, -1.0)
    rows = np.column_stack([X, np.ones(len(y))]) if penalised_intercept else X

    def gap(w: np.ndarray[Any, Any], b: float, c: float) -> float:
        scores = X @ w + b
        if not penalised_intercept:
            for _ in range(50):
                p = 1 / (1 + np.exp(sign * scores))
                scores += (sign @ p) / max(float(p @ (1 - p)), 1e-12)
        p = 1 / (1 + np.exp(sign * scores))
        size = np.abs(w).sum() + (abs(b) if penalised_intercept else 0.0)
        primal = c * np.logaddexp(0, -sign * scores).sum() + size
        a = p * min(1.0, 1.0 / (c * np.abs(rows.T @ (sign * p)).max()))
        inner = a[(a > 0) & (a < 1)]
        dual = -c * (inner * np.log(inner) + (1 - inner) * np.log1p(-inner)).sum()
        return float((primal - dual) / primal)

    return gap


def _whole_set(folds: Any, numbers: tuple[int, ...]) -> RankingData:
    """Put the three parts of a fold together: every fold cuts the same queries."""
    parts = folds.fold(numbers[0])
    return RankingData(
        np.vstack([part.X for part in parts]),
        np.concatenate([part.y for part in parts]),
        np.concatenate([part.qid for part in parts]),
    )
