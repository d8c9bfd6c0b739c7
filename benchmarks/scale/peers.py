"""LightGBM's and XGBoost's Dask rankers on the same cluster and data, with 100 trees.

Two processes of one thread. Data are in the workers' memory beforehand. Our time is that of a fit
to a relative duality gap of 1e-6 at 0.01·alpha_max, with reading the partitions and finding
alpha_max. The truth is linear, which favours a linear model: the NDCG@10 on other queries shows
only that all have learnt.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table, show_seconds
from benchmarks.scale.dask import DOCUMENTS, FEATURES, PARTITIONS, cluster, made
from leanrank.metrics import evaluate
from leanrank.rankers import DominationRanker
from leanrank.rankers.dask import data_on_cluster


def run(options: Options) -> list[Table]:
    n_queries = 160 if options.quick else 10_000
    table = Table(f"{n_queries * DOCUMENTS:,} × {FEATURES} float32, two workers of one thread")
    test = made(10_000, max(20, n_queries // 10))
    ours = 0.0
    with cluster(2) as client:
        X, y, qid = collections(client, n_queries)
        for name, fit in contestants().items():
            fit(*collections(client, 16))  # compile, connect
            start = time.perf_counter()
            predict = fit(X, y, qid)
            seconds = time.perf_counter() - start
            ours = ours or seconds
            ndcg = evaluate(test.y, predict(test.X), test.qid, measures=["ndcg@10"])["ndcg@10"]
            table.add(
                contestant=name,
                fit=show_seconds(seconds),
                ratio=f"{seconds / ours:.1f} ×",
                held_out_ndcg10=f"{ndcg:.3f}",
            )
            print(table.rows[-1], flush=True)
    return [table]


def contestants() -> dict[str, Any]:
    """Return functions of X, y and qid on Dask that fit and return a function that predicts."""
    import warnings

    warnings.filterwarnings("ignore")

    def domination(X: Any, y: Any, qid: Any) -> Any:
        data = data_on_cluster(DominationRanker(), X, y, qid)
        alpha = 0.01 * DominationRanker().alpha_max(data)
        return DominationRanker(alpha).fit(data).predict

    def lightgbm(X: Any, y: Any, qid: Any) -> Any:
        from lightgbm import DaskLGBMRanker

        group = qid.map_blocks(sizes, dtype=np.int64, chunks=((np.nan,) * qid.numblocks[0],))
        model = DaskLGBMRanker(n_estimators=100, num_leaves=31, verbosity=-1)
        return model.fit(X, y, group=group).to_local().predict

    def xgboost(X: Any, y: Any, qid: Any) -> Any:
        from xgboost.dask import DaskXGBRanker

        model = DaskXGBRanker(
            n_estimators=100,
            max_leaves=31,
            max_depth=0,
            grow_policy="lossguide",
            allow_group_split=True,  # no query is split here: this saves XGBoost a shuffle
        )
        booster = model.fit(X, y, qid=qid).get_booster()
        return booster.inplace_predict

    return {
        "DominationRanker, gap 1e-6": domination,
        "DaskLGBMRanker, 100 trees of 31 leaves": lightgbm,
        "DaskXGBRanker, 100 trees of 31 leaves": xgboost,
    }


def sizes(qid: Any) -> Any:
    """Return the sizes of the queries of a block."""
    return np.unique(qid, return_counts=True)[1]


def collections(client: Any, n_queries: int) -> tuple[Any, Any, Any]:
    """Return X, y and qid as Dask arrays in the workers' memory."""
    import dask
    import dask.array as da

    each = n_queries // PARTITIONS
    parts = [dask.delayed(made, pure=True)(at, each) for at in range(PARTITIONS)]
    rows = each * DOCUMENTS

    def joined(name: str, shape: tuple[int, ...], dtype: Any) -> Any:
        blocks = [da.from_delayed(dask.delayed(getattr)(p, name), shape, dtype) for p in parts]
        return da.concatenate(blocks)

    found = client.persist(
        [
            joined("X", (rows, FEATURES), np.float32),
            joined("y", (rows,), np.float64),
            joined("qid", (rows,), np.int64),
        ]
    )
    from distributed import wait

    wait(found)
    return found[0], found[1], found[2]
