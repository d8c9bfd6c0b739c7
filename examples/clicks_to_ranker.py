"""From a click log to a ranker, in a made-up world in which the truth is known.

Users look at high positions more than at low ones. Counting clicks as they come learns that habit;
counting a click at a rarely seen position for more learns what users want.
"""

import numpy as np

from leanrank import evaluate, make_ranking
from leanrank.data import click_preferences, click_weights, estimate_propensities, make_clicks
from leanrank.rankers import DominationRanker, RankSVM

truth = make_ranking(
    n_queries=150, docs_per_query=10, n_features=8, n_levels=2, label_noise=0.3, random_state=0
)
# What was shown is ranked by one feature, the wrong way round; half of the lists swap two
# neighbours. With your own log: clicks = read_clicks("log.parquet", "features.parquet")
clicks = make_clicks(
    truth, 30_000, eta=1.5, scores=-truth.X[:, 0], swaps="adjacent", random_state=0
)
print(clicks, "\n")

propensities = estimate_propensities(clicks)
print("looked at, by position:", propensities.round(2), "\n")


def learn(weights):
    """Fit a ranker to clicks that were counted in some way."""
    return DominationRanker(alpha=0.001).fit(clicks, weights)


rankers = {
    "judgments": DominationRanker(alpha=0.001).fit(truth),
    "clicks, weighted by 1/propensity": learn(click_weights(clicks, propensities)),
    "clicks as they come": learn(click_weights(clicks, np.ones(10))),
    "preferences of clicked over skipped": RankSVM(alpha=0.01).fit(
        clicks, preferences=click_preferences(clicks)
    ),
}
print("NDCG@10 against the true labels, learned from")
for name, ranker in rankers.items():
    found = evaluate(truth, ranker.predict(truth), measures="ndcg@10")
    print(f"  {name:36} {found.means['ndcg@10']:.3f}")
