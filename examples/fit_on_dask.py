"""A fit on Dask: partitions in any order, and the same weights on any number of workers.

The documents of a query may lie in several partitions. Nothing but gradients and other things of
the model's size leaves the workers.
"""

import logging

import dask.dataframe as dd
import numpy as np
import pandas as pd
from distributed import Client, LocalCluster

from leanrank import make_ranking
from leanrank.rankers import DominationRanker

logging.basicConfig(format="%(message)s")
logging.getLogger("leanrank.dask").setLevel(logging.INFO)  # what is done about scattered queries
logging.getLogger("distributed").setLevel(logging.ERROR)

data = make_ranking(n_queries=200, n_features=10, n_informative=3, random_state=0)
features = [f"f{j}" for j in range(10)]
frame = pd.DataFrame(data.X, columns=features).assign(label=data.y, qid=data.qid)
shuffled = frame.sample(frac=1.0, random_state=0)  # a query's documents are everywhere

weights = []
for n_workers in (1, 3):
    with (
        LocalCluster(n_workers, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster),
    ):
        table = dd.from_pandas(shuffled, npartitions=6, sort=False)
        X, y, qid = table[features], table["label"], table["qid"]
        ranker = DominationRanker(alpha=0.01).fit(X, y, qid=qid)
        print(f"{n_workers} workers: gap {ranker.dual_gap_:.1e} after {ranker.n_iter_} iterations")
        print(f"  NDCG@10 {ranker.score(X, y, qid=qid):.3f}")
        weights.append(ranker.coef_)

print("same bits:", np.array_equal(weights[0], weights[1]))
in_memory = DominationRanker(alpha=0.01).fit(frame[features], frame["label"], qid=frame["qid"])
print("largest difference from memory:", f"{np.abs(in_memory.coef_ - weights[0]).max():.1e}")
