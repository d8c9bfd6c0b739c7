"""Pairwise rankers: against written-out pairs, in growth, first order, boosted, unscaled, topics.

Parts, for ``--only``: ``expanded`` (RankSVM against scikit-learn's LinearSVC on every pair),
``growth`` (time by documents in one query), ``first-order`` (FenchelRank and SparseRank against
Newton), ``boosting`` (300 rounds of RankBoost), ``scaling`` (features in wild units),
``topics`` (average precision of few words for topics of a text collection), ``wide`` (time by
features of smooth fits).
"""

from __future__ import annotations

from benchmarks.harness import Options, Table
from benchmarks.pairwise.boosting import rounds_of_rankboost
from benchmarks.pairwise.expanded import against_expanded_pairs
from benchmarks.pairwise.first_order import against_first_order
from benchmarks.pairwise.growth import growth_in_one_query
from benchmarks.pairwise.scaling import badly_scaled_features
from benchmarks.pairwise.topics import topics_of_few_features
from benchmarks.pairwise.wide import growth_in_features

PARTS = {
    "expanded": against_expanded_pairs,
    "growth": growth_in_one_query,
    "first-order": against_first_order,
    "boosting": rounds_of_rankboost,
    "scaling": badly_scaled_features,
    "topics": topics_of_few_features,
    "wide": growth_in_features,
}
NEED_DATA = {"expanded", "first-order", "topics"}


def run(options: Options) -> list[Table]:
    if options.only not in (None, *PARTS):
        raise SystemExit(f"--only {options.only} is not a part of pairwise: use {list(PARTS)}")
    wanted = [options.only] if options.only else list(PARTS)
    if options.data is None and NEED_DATA & set(wanted):
        print("without --data there are no public sets: left out", *sorted(NEED_DATA))
        wanted = [part for part in wanted if part not in NEED_DATA]
    return [PARTS[part](options) for part in wanted]
