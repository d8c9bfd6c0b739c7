"""How long it takes to score a thousand documents."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from benchmarks.curves.speed import N_FEATURES, TREES, make_large
from benchmarks.harness import Options, Table, race
from leanrank.data.ranking_data import RankingData
from leanrank.rankers import DominationRanker

N_DOCUMENTS, N_USED = 1_000, 10


def scoring(options: Options) -> list[Table]:
    from lightgbm import LGBMRanker

    data = make_large(20_000 if options.quick else 100_000, pairs=True)
    some = np.ascontiguousarray(data.X[:N_DOCUMENTS])
    rankers = [_of_ten(data, curves) for curves in (None, 8)]
    line, bent = (ranker.to_model() for ranker in rankers)
    wider = {"pairs": N_USED, "alpha": 0.01 * rankers[1].alpha}
    both = clone(rankers[1]).set_params(**wider).fit(data).to_model()
    trees = LGBMRanker(n_estimators=TREES, num_leaves=31, n_jobs=1, verbose=-1)
    trees.fit(data.X, data.y, group=np.diff(data.query_ptr))
    times = race(
        {
            "lines": lambda: [line.predict(some) for _ in range(100)],
            "curves": lambda: [bent.predict(some) for _ in range(100)],
            "curves and pairs": lambda: [both.predict(some) for _ in range(100)],
            "LightGBM": lambda: [trees.predict(some, num_threads=1) for _ in range(100)],
        },
        repeat=options.repeat,
    )
    table = Table(f"Scoring {N_DOCUMENTS:,} documents of {N_FEATURES} features, one thread")
    for name, model in (("lines", line), ("curves", bent), ("curves and pairs", both)):
        table.add(model=name, features=model.n_nonzero, pairs=len(model.surfaces))
    used = int(np.count_nonzero(trees.feature_importances_))
    table.add(model=f"LightGBM, {TREES} trees", features=used, pairs="")
    for row, timing in zip(table.rows, times.values(), strict=True):
        row["time"] = f"{10 * timing.median:.3g} ms ±{100 * timing.spread:.0f}%"
        row["beside lines"] = f"{timing.median / times['lines'].median:.1f} ×"
    table.note = "median over repetitions of a hundred calls"
    return [table]


def _of_ten(data: RankingData, curves: int | None) -> Any:
    """Fit a model of the ten features that come first on the path."""
    path = DominationRanker(curves=curves, tol=1e-4).path(data, n_alphas=12, alpha_min_ratio=0.05)
    ranker = path.ranker(int(np.flatnonzero(path.n_selected >= N_USED)[0]))
    model = ranker.to_model()
    used = model.indices[np.argsort(-np.abs(model.values), kind="stable")[:N_USED]]
    others = dict.fromkeys(set(range(N_FEATURES)) - set(used.tolist()), np.inf)
    return clone(ranker).set_params(penalty_factors=others).fit(data)
