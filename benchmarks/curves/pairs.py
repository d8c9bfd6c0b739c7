"""Whether products of two features pay, beside curves alone.

The queries of each training part are divided: 45 % to learn from, 20 % to choose by, the others to
measure on; no test part is read. To the ramps of all features (8 segments, ℓ1 Domination Rank) come
products of the ramps of two features (2 segments each), one pair after the other: of the six
features with the largest curves, the pair that is best on the queries to choose by, as long as one
is better there than none, three pairs at most.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table
from leanrank import DominationRanker, RampFeatures
from leanrank.data.ranking_data import RankingData
from leanrank.metrics.judge import Judge, best_of
from papers.public_sets import fetch, find_set

SETS = ("MQ2008", "OHSUMED")
MEASURE = "ndcg@10"
N_FOLDS, MOST_PAIRS, N_CURVES = 5, 3, 6
SHARES = (0.45, 0.65)
Parts = list[RankingData]


def pairs(options: Options) -> list[Table]:
    if options.data is None:
        print("pairs needs MQ2008 and OHSUMED: give --data; left out")
        return []
    table = Table(f"Products of two features: {MEASURE} within the training parts")
    for name in SETS:
        public = fetch(name, data_dir=options.data, download=False)
        judge = Judge(MEASURE, find_set(name).convention)
        folds = range(1, 2 if options.quick else 1 + min(N_FOLDS, options.repeat))
        found = np.array([_one(public.fold(fold)[0], judge, fold) for fold in folds])
        gain = found[:, 2] - found[:, 1]
        error = gain.std(ddof=1) / np.sqrt(len(gain)) if len(gain) > 1 else np.nan
        lines, curves, with_pairs, n_pairs = found.mean(axis=0)
        table.add(
            set=name,
            folds=len(folds),
            lines=f"{lines:.4f}",
            curves=f"{curves:.4f}",
            **{"curves and pairs": f"{with_pairs:.4f}", "pairs": f"{n_pairs:.1f}"},
            gain=f"{gain.mean():+.4f} ± {error:.4f}",
        )
    table.note = "gain: of pairs over curves alone, with its standard error over the folds"
    return [table]


def _one(data: RankingData, judge: Judge, seed: int) -> tuple[float, float, float, int]:
    """Return the measure of lines, curves, and curves with pairs, and how many pairs were taken."""
    order = np.random.default_rng(seed).permutation(data.n_queries)
    cuts = [int(share * data.n_queries) for share in SHARES]
    parts = [data.queries[np.sort(some)] for some in np.split(order, cuts)]
    _, lines, _ = _best(parts, judge)
    fine, coarse = RampFeatures(8).fit(parts[0]), RampFeatures(2).fit(parts[0])
    ramps = [fine.transform(part) for part in parts]
    halves = [coarse.transform(part).X for part in parts]
    chosen_by, curves, (weights, alphas) = _best(ramps, judge)

    starts = fine.ramps_.starts
    sizes = np.add.reduceat(np.abs(weights), starts[:-1][np.diff(starts) > 0])
    curved = np.flatnonzero(np.diff(starts))[np.argsort(-sizes, kind="stable")[:N_CURVES]]
    left, measured = list(combinations(curved.tolist(), 2)), curves
    taken = 0
    while left and taken < MOST_PAIRS:
        tried = []
        for pair in left:
            wider = [
                part.replace(
                    X=np.hstack([part.X, _products(half, coarse, pair)]), feature_names=None
                )
                for part, half in zip(ramps, halves, strict=True)
            ]
            value, on_rest, _ = _best(wider, judge, alphas)
            tried.append((value, on_rest, wider, pair))
        value, on_rest, wider, pair = max(tried, key=lambda each: each[0])
        if value <= chosen_by:
            break
        chosen_by, measured, ramps = value, on_rest, wider
        left.remove(pair)
        taken += 1
    return lines, curves, measured, taken


def _best(parts: Parts, judge: Judge, alphas: Any = None) -> tuple[float, float, tuple[Any, Any]]:
    """Return the measure of the best model of a path where it is chosen, and on the rest.

    Also its weights and the strengths next to its own.
    """
    ranker = DominationRanker(tol=1e-5, n_jobs=1)
    how = {"n_alphas": 12, "alpha_min_ratio": 5e-3} if alphas is None else {"alphas": alphas}
    path = ranker.path(parts[0], **how)
    values = [judge.value(parts[1], parts[1].X @ w) for w in path.coefs]
    at = best_of(judge.worth(values))
    weights = path.coefs[at]
    near = path.alphas[max(0, at - 1) : at + 2]
    return values[at], judge.value(parts[2], parts[2].X @ weights), (weights, near)


def _products(halves: Any, coarse: RampFeatures, pair: tuple[int, int]) -> Any:
    """Return the products of the ramps of two features."""
    starts = coarse.ramps_.starts
    f, g = (halves[:, starts[j] : starts[j + 1]] for j in pair)
    return (f[:, :, None] * g[:, None, :]).reshape(len(halves), -1)
