"""How fast curves are learned, and what they take in memory."""

from __future__ import annotations

import time
from itertools import combinations
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table, race, show_seconds
from leanrank.data.ranking_data import RankingData
from leanrank.designs.base import make_design
from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.ramps import ramp_design
from leanrank.designs.surfaces import SurfaceDesign, screening_gains, screening_sums
from leanrank.execution import make_executor
from leanrank.rankers import DominationRanker
from leanrank.rankers.surfaces import SCREENED_ROWS

N_FEATURES, PER_QUERY, SEGMENTS, TOL, TREES = 136, 100, 8, 1e-6, 100


def make_large(n: int, *, pairs: bool = False) -> RankingData:
    """Draw documents with features of several shapes; twenty of them matter.

    With ``pairs``, four products of two features matter as well: a sum of curves cannot learn them.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, N_FEATURES), dtype=np.float32)
    X[:, ::4] = np.maximum(X[:, ::4], 0.0)
    X[:, 1::4] = np.exp(X[:, 1::4])
    scores = np.minimum(X[:, 1], 1.5) + (X[:, 4] > 0.5) + 0.5 * np.tanh(2 * X[:, 2])
    scores += 0.4 * X[:, 3] - 0.3 * np.abs(X[:, 6]) + 0.15 * X[:, 10:25].sum(axis=1)
    if pairs:
        scores += 0.8 * (X[:, 2] * X[:, 3] + X[:, 6] * X[:, 10] + X[:, 11] * X[:, 14])
        scores += 0.8 * np.sign(X[:, 2] * X[:, 7])
    scores += rng.standard_normal(n, dtype=np.float32)
    y = np.digitize(scores, np.quantile(scores, [0.5, 0.75, 0.9, 0.97]))
    return RankingData(X, y, np.arange(n) // PER_QUERY)


def speed(options: Options) -> list[Table]:
    n = 60_000 if options.quick else 1_200_000
    data = make_large(n)
    held_out = make_large(n // 10)
    size = f"{n:,} documents × {N_FEATURES}, {SEGMENTS} segments"
    fits = Table(f"Fitting: {size}, relative gap {TOL:g}, one thread")
    ranker = DominationRanker(curves=SEGMENTS, tol=TOL, n_jobs=1)
    DominationRanker(curves=2).fit(data.queries[:50])  # compiled before the clock starts
    top = ranker.alpha_max(data)
    reference = _clock(lambda: _lightgbm(data))
    fits.add(
        contestant=f"LightGBM, {TREES} trees of 31 leaves",
        **_times(reference),
        ratio="1 ×",
        **{"NDCG@10": _ndcg(held_out, reference[0].predict(held_out.X)), "features": N_FEATURES},
    )
    for share in (0.2, 0.05, 0.01):
        timed = _clock(lambda share=share: ranker.set_params(alpha=share * top).fit(data))
        fits.add(
            contestant=f"curves, alpha = {share:g} alpha_max",
            **_times(timed),
            ratio=f"{reference[1] / timed[1]:.1f} ×",
            **{
                "NDCG@10": _ndcg(held_out, ranker.predict(held_out)),
                "features": ranker.n_features_,
            },
            gap=f"{ranker.dual_gap_:.1e}",
        )
    fits.note = "ratio: processor time of LightGBM over that of the contestant"
    return [fits]


def passes(options: Options) -> list[Table]:
    data = make_large(60_000 if options.quick else 1_200_000)
    repeat = options.repeat
    executor = make_executor(1)
    X: Any = data.X
    linear = make_design(X, executor, data.query_ptr)
    started = time.process_time()
    ramps = ramp_design(X, RampColumns.at_quantiles(X, SEGMENTS), executor)
    made = time.process_time() - started
    g = np.random.default_rng(1).normal(size=len(data))
    w = np.zeros(ramps.n_features)
    w[: 10 * SEGMENTS] = 1.0
    v = np.zeros(linear.n_features)
    v[:10] = 1.0
    surfaces = SurfaceDesign(ramps, list(combinations(range(10), 2)))  # type: ignore[arg-type]
    more = surfaces.n_bytes - ramps.n_bytes
    some = np.arange(data.n_queries) % -(-len(data) // SCREENED_ROWS) == 0
    weight = np.repeat(some.astype(np.float64), np.diff(data.query_ptr))
    sampled = surfaces.pairs, g * weight, weight, data.query_ptr, executor
    times = race(
        {
            "linear": lambda: linear.rmatvec(g),
            "ramps": lambda: ramps.rmatvec(g),
            "10 weights": lambda: linear.matvec(v),
            "10 curves": lambda: ramps.matvec(w),
            "and pairs": lambda: surfaces.rmatvec(g),
            "screening": lambda: screening_gains(*screening_sums(ramps, *sampled)),
        },
        repeat=repeat,
    )
    size = f"{len(data):,} documents × {N_FEATURES}"
    table = Table(f"Passes over {size}: {SEGMENTS} segments beside the features, one thread")
    for what, ours, beside, theirs in (
        ("gradient of all curves", "ramps", "of all weights", "linear"),
        ("scores of ten curves", "10 curves", "of ten weights", "10 weights"),
        (f"gradient of all, {len(surfaces.pairs)} pairs", "and pairs", "of all curves", "ramps"),
        (f"screening of {len(surfaces.pairs)} pairs", "screening", "of all curves", "ramps"),
    ):
        ratio = f"{times[ours].median / times[theirs].median:.2f} ×"
        row = {"pass": what, "time": str(times[ours]), "beside": beside}
        table.add(**row, **{"its time": str(times[theirs])}, ratio=ratio)
    table.note = (
        f"screening reads a sample of the queries, about {SCREENED_ROWS:,} documents; "
        f"memory of the design: {ramps.bins.nbytes / X.nbytes:.2f} × X beside X, {more} bytes more "
        f"for pairs; made in {show_seconds(made)} of processor time, knots included"
    )
    return [table]


def _lightgbm(data: RankingData) -> Any:
    from lightgbm import LGBMRanker

    trees = LGBMRanker(n_estimators=TREES, num_leaves=31, n_jobs=1, verbose=-1)
    return trees.fit(data.X, data.y, group=np.diff(data.query_ptr))


def _clock(function: Any) -> tuple[Any, float, float]:
    started, wall = time.process_time(), time.perf_counter()
    result = function()
    return result, time.process_time() - started, time.perf_counter() - wall


def _times(timed: tuple[Any, float, float]) -> dict[str, str]:
    return {"processor": show_seconds(timed[1]), "wall": show_seconds(timed[2])}


def _ndcg(data: RankingData, scores: Any) -> str:
    from leanrank.metrics import evaluate

    return f"{evaluate(data, scores, measures=['ndcg@10']).means['ndcg@10']:.4f}"
