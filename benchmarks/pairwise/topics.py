"""Average precision of few features for topics of Reuters-21578, by loss and penalty.

Each topic is one list: its articles above all others. A path of 25 strengths gives models of many
sizes; the largest with at most 50, 200 or 1,000 features is measured. The validation columns are of
models of seven tenths of the training articles on the other three, by which to choose; the test
columns are of models of all training articles. A margin m is an offset: articles of the topic must
lead by m.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table
from leanrank.metrics import evaluate
from leanrank.rankers import DominationRanker, LinearRanker, RankSVM

SIZES = (50, 200, 1_000)
STRENGTHS, LOWEST = 25, 2e-3
STEPS = np.logspace(0, np.log10(LOWEST), STRENGTHS)
N_TOPICS = 24
"""The topics with the most training articles."""

REFERENCE = "logistic regression, ℓ1 (scikit-learn)"


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
    found: dict[str, Any] = {}
    for name, path in _contestants().items():
        row: dict[str, Any] = {"system": name}
        for part, (rows, others) in parts.items():
            values = []
            for topic in chosen:
                y = reuters.Y[:, [topic]].toarray().ravel().astype(np.float64)
                coefs = path(reuters.X[rows], y[rows])
                values.append(_by_size(coefs, reuters.X[others], y[others]))
            for size, value in zip(SIZES, np.mean(values, axis=0), strict=True):
                row[f"{part}, {size:,}"] = f"{value:.3f}"
        found[name] = np.array(values)
        table.add(**row)
    shown = []
    for name, values in found.items():
        if name != REFERENCE and len(chosen) > 1:
            gain = values - found[REFERENCE]
            error = gain.std(axis=0, ddof=1) / np.sqrt(len(gain))
            each = (f"{g:+.3f} ± {e:.3f}" for g, e in zip(gain.mean(axis=0), error, strict=True))
            shown.append(f"{name}: {', '.join(each)}")
    table.note = f"Test, more than {REFERENCE}, ± standard error: {'; '.join(shown)}."
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
    def path_of(ranker: Any, margin: float = 0.0) -> Callable[[Any, Any], Any]:
        return lambda X, y: (
            ranker.path(
                X,
                y,
                np.zeros(len(y)),
                n_alphas=STRENGTHS,
                alpha_min_ratio=LOWEST,
                offset=margin * y,
            ).coefs
        )

    paths = {
        "Domination, ℓ1": path_of(DominationRanker(tol=1e-3)),
        "Domination, l1_ratio 0.9": path_of(DominationRanker(l1_ratio=0.9, tol=1e-3)),
        "RankSVM, ℓ1": path_of(RankSVM(l1_ratio=1.0, tol=1e-3)),
        "softmax of gains, ℓ1": path_of(LinearRanker("softmax", tol=1e-3)),
        "softmax of gains, margin 6, ℓ1": path_of(LinearRanker("softmax", tol=1e-3), 6.0),
        REFERENCE: _logistic_regression,
    }
    if find_spec("skglm"):
        paths["logistic regression, l1_ratio 0.9 (skglm)"] = _skglm
    return paths


def _logistic_regression(X: Any, y: Any) -> Any:
    """Fit the same number of strengths, from the one that leaves the model empty."""
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(l1_ratio=1.0, solver="liblinear", tol=1e-3, intercept_scaling=10.0)
    strengths = np.abs(X.T @ (y - y.mean())).max() * STEPS
    return np.array([model.set_params(C=1.0 / s).fit(X, y).coef_[0] for s in strengths])


def _skglm(X: Any, y: Any, l1_ratio: float = 0.9) -> Any:
    from skglm import SparseLogisticRegression

    strengths = np.abs(X.T @ (y - y.mean())).max() / (len(y) * l1_ratio) * STEPS
    model = SparseLogisticRegression(l1_ratio=l1_ratio, tol=1e-3 * strengths[0], warm_start=True)
    signs = 2.0 * y - 1.0
    return np.array([model.set_params(alpha=s).fit(X, signs).coef_.ravel() for s in strengths])
