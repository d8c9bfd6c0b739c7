"""How long it takes to score a thousand documents."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.curves.speed import N_FEATURES, TREES, make_large
from benchmarks.harness import Options, Table, race
from leanrank import DominationRanker
from leanrank.data.ranking_data import RankingData

N_DOCUMENTS, N_USED = 1_000, 10


def scoring(options: Options) -> list[Table]:
    from lightgbm import LGBMRanker

    data = make_large(20_000 if options.quick else 100_000)
    some = np.ascontiguousarray(data.X[:N_DOCUMENTS])
    line, bent = (_of_ten(data, curves) for curves in (None, 8))
    trees = LGBMRanker(n_estimators=TREES, num_leaves=31, n_jobs=1, verbose=-1)
    trees.fit(data.X, data.y, group=np.diff(data.query_ptr))
    times = race(
        {
            "lines": lambda: [line.predict(some) for _ in range(100)],
            "curves": lambda: [bent.predict(some) for _ in range(100)],
            "LightGBM": lambda: [trees.predict(some, num_threads=1) for _ in range(100)],
        },
        repeat=options.repeat,
    )
    table = Table(f"Scoring {N_DOCUMENTS:,} documents of {N_FEATURES} features, one thread")
    for name, features in (
        ("lines", line.n_nonzero),
        ("curves", bent.n_nonzero),
        ("LightGBM", int(np.count_nonzero(trees.feature_importances_))),
    ):
        table.add(
            model=name if name != "LightGBM" else f"LightGBM, {TREES} trees",
            features=features,
            time=f"{10 * times[name].median:.3g} ms ±{100 * times[name].spread:.0f}%",
            **{"beside lines": f"{times[name].median / times['lines'].median:.1f} ×"},
        )
    table.note = "median over repetitions of a hundred calls"
    return [table]


def _of_ten(data: RankingData, curves: int | None) -> Any:
    """Fit a model of about ten features."""
    path = DominationRanker(curves=curves, tol=1e-4).path(data, n_alphas=12, alpha_min_ratio=0.05)
    at = int(np.flatnonzero(path.n_selected <= N_USED)[-1])
    return path.model(at)
