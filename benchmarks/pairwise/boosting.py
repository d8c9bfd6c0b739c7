"""Rounds of RankBoost on a sample of MSLR-WEB10K's shape, beside LightGBM's rounds of stumps.

Both add one feature and threshold a round, from at most 255 thresholds a feature, on one thread.
They minimise different losses (the pairwise exponential, LambdaRank's surrogate), so that this
compares what a round costs, and not what it is worth.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from benchmarks.domination.problems import load
from benchmarks.harness import Options, Table
from benchmarks.pairwise.clock import measure
from leanrank import make_ranking

ROUNDS = 300
THRESHOLDS = 255


def rounds_of_rankboost(options: Options) -> Table:
    """Time all rounds, with preparation, of both."""
    from leanrank.rankers import RankBoost

    few, all_queries = (_data(n) for n in (20, 50 if options.quick else 1_000))
    rankers = {
        f"RankBoost, {THRESHOLDS} thresholds": RankBoost(ROUNDS, n_thresholds=THRESHOLDS),
        "RankBoost, every threshold": RankBoost(ROUNDS),
    }
    fits: dict[str, Any] = {name: ranker.fit for name, ranker in rankers.items()}
    fits["LightGBM, stumps"] = _stumps
    times = {}
    for name, fit in fits.items():
        fit(few)  # compile
        times[name] = measure(partial(fit, all_queries), repeat=min(options.repeat, 3), warm_up=0)
    reference = times[f"RankBoost, {THRESHOLDS} thresholds"].median
    table = Table(
        f"{ROUNDS} rounds on {all_queries.X.shape[0]:,} × {all_queries.X.shape[1]}, one thread"
    )
    for name, timing in times.items():
        table.add(
            system=name,
            time=str(timing),
            **{"a round": f"{1e3 * timing.median / ROUNDS:.2f} ms"},
            **{"against RankBoost": round(timing.median / reference, 2)},
        )
    table.note = f"Processor time, preparation included. {load()}"
    return table


def _data(n_queries: int) -> Any:
    return make_ranking(
        n_queries, 120, 136, n_informative=20, n_levels=5, dtype=np.float32, random_state=0
    )


def _stumps(data: Any) -> Any:
    import lightgbm

    return lightgbm.train(
        {
            "objective": "lambdarank",
            "num_leaves": 2,
            "max_bin": THRESHOLDS,
            "num_threads": 1,
            "verbosity": -1,
        },
        lightgbm.Dataset(data.X, data.y, group=np.diff(data.query_ptr)),
        num_boost_round=ROUNDS,
    )
