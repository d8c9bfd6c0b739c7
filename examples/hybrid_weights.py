"""Learn the weights of a hybrid search from a few judged queries, and see whether it pays.

Three made-up retrievers: keywords and vectors, each good in its own way, and freshness, which says
little. With your own: runs are TREC files or data frames with qid, doc_id and score.
"""

import numpy as np

from leanrank import fuse
from leanrank.model.export import hybrid_weights

rng = np.random.default_rng(0)
n_queries, n_documents = 80, 20
qid = np.repeat(np.arange(n_queries), n_documents)
doc_id = np.tile(np.arange(n_documents), n_queries)
label = rng.integers(0, 4, len(qid))


def run(noise, scale):
    """Score documents by their label with some noise, on a scale of its own."""
    score = scale * (label + noise * rng.normal(size=len(label)))
    return {"qid": qid, "doc_id": doc_id, "score": score}


runs = {"bm25": run(0.8, 10.0), "dense": run(1.2, 0.1), "fresh": run(5.0, 1.0)}
judgments = {"qid": qid, "doc_id": doc_id, "label": label}

# OpenSearch scales scores to 0..1 within a query; leave `scalers` out to try others.
found = fuse(runs, judgments, scalers=["query-minmax"])
print("weights:", {name: round(weight, 2) for name, weight in found.weights.items()}, "\n")
for name, mean in found.means.items():
    print(f"  {name:24} {found.measure} {mean:.3f}")
print()
print(found.verdict())
print(found.curve_sentence(), "\n")

# What OpenSearch takes; found.apply(runs) computes the same scores here.
print(hybrid_weights(found.weights, "opensearch", scaler=found.setting.scaler))
