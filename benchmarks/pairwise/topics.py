"""Average precision of few features for topics of Reuters-21578, by loss and penalty.

Each topic is one list: its articles above all others. A path of 25 strengths gives models of many
sizes; the largest with at most 200, or 1,000, features is measured. The validation column is of
models of seven tenths of the training articles on the other three, by which to choose; the test
column is of models of all training articles.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table
from leanrank.metrics import evaluate
from leanrank.rankers import DominationRanker, LinearRanker, RankSVM

SIZES = (200, 1_000)
STRENGTHS, LOWEST = 25, 2e-3
N_TOPICS = 6
"""The topics with the most training articles."""


def topics_of_few_features(options: Options) -> Table:
    """Measure every contestant on the same topics."""
    from papers.public_sets import fetch

    reuters = fetch("Reuters-21578", data_dir=options.data, download=False)
    training, test = (np.flatnonzero(reuters.part == part) for part in ("train", "test"))
    mixed = np.random.default_rng(0).permutation(training)
    cut = len(mixed) * 7 // 10
    parts = {"validation": (mixed[:cut], mixed[cut:]), "test": (training, test)}
    frequency = np.asarray(reuters.Y[training].sum(axis=0)).ravel()
    chosen = np.argsort(-frequency, kind="stable")[: 1 if options.quick else N_TOPICS]
    table = Table(f"Average precision of {len(chosen)} topics of Reuters-21578")
    for name, path in _contestants().items():
        row: dict[str, Any] = {"system": name}
        for part, (rows, others) in parts.items():
            found = []
            for topic in chosen:
                y = reuters.Y[:, [topic]].toarray().ravel().astype(np.float64)
                found.append(_by_size(path(reuters.X[rows], y[rows]), reuters.X[others], y[others]))
            for size, value in zip(SIZES, np.mean(found, axis=0), strict=True):
                row[f"{part}, {size:,}"] = f"{value:.3f}"
        table.add(**row)
    return table


def _by_size(coefs: Any, X: Any, y: Any) -> list[float]:
    """Return the average precision of the largest model of each size."""
    used = np.count_nonzero(coefs, axis=1)
    found = []
    for size in SIZES:
        w = coefs[np.argmax(np.where(used <= size, used, -1))]
        found.append(evaluate(y, np.asarray(X @ w), np.zeros(len(y)), measures="map")["map"])
    return found


def _contestants() -> dict[str, Callable[[Any, Any], Any]]:
    rankers = {
        "Domination, ℓ1": DominationRanker(tol=1e-3),
        "Domination, l1_ratio 0.9": DominationRanker(l1_ratio=0.9, tol=1e-3),
        "RankSVM, ℓ1": RankSVM(l1_ratio=1.0, tol=1e-3),
        "softmax of gains, ℓ1": LinearRanker("softmax", tol=1e-3),
    }

    def path_of(ranker: Any) -> Callable[[Any, Any], Any]:
        return lambda X, y: (
            ranker.path(X, y, np.zeros(len(y)), n_alphas=STRENGTHS, alpha_min_ratio=LOWEST).coefs
        )

    paths = {name: path_of(ranker) for name, ranker in rankers.items()}
    return {**paths, "logistic regression, ℓ1 (scikit-learn)": _logistic_regression}


def _logistic_regression(X: Any, y: Any) -> Any:
    """Fit the same number of strengths, from the one that leaves the model empty."""
    from sklearn.linear_model import LogisticRegression

    top = np.abs(X.T @ (y - y.mean())).max()
    model = LogisticRegression(l1_ratio=1.0, solver="liblinear", tol=1e-3, intercept_scaling=10.0)
    coefs = []
    for strength in top * np.logspace(0, np.log10(LOWEST), STRENGTHS):
        coefs.append(model.set_params(C=1.0 / strength).fit(X, y).coef_[0].copy())
    return np.array(coefs)
