"""Lists until a difference of 0.01 NDCG@10 is found, by a test that is looked at all the time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.harness import Options, Table
from benchmarks.online.traffic import AB_TESTS, METHODS, Pair, judged, weights
from leanrank.data import RankingData
from leanrank.metrics import evaluate
from leanrank.online import ClickModel, confidence_sequence, user

GAP = 0.01
Draw = Callable[[int], np.ndarray]
USERS = ("perfect", "navigational", "informational")


def run(options: Options) -> list[Table]:
    name, data = judged(options)
    n_pairs, n_streams, most = (1, 2, 50_000) if options.quick else (4, 2, 400_000)
    w, rng = weights(data), np.random.default_rng(0)
    pairs = [_pair(data, w, rng.normal(size=len(w))) for _ in range(n_pairs)]
    tables = []
    for who in USERS:
        table = Table(
            f"{name}, {who} user: lists until a true difference of {GAP} NDCG@10 is found",
            note=f"{n_pairs} pairs of rankers, {n_streams} streams each, at most {most:,} lists "
            "(two per comparison in an A/B test of both rankers on the same query); 95 % "
            "confidence sequence; pairwise credit is cut at 8. found: right decisions; wrong: "
            "wrong ones; effect: mean over standard deviation; median over all streams, "
            f"'>' where half of the streams end undecided. {len(data.query_ptr) - 1} queries.",
        )
        model = user(who, 3)
        outcomes: dict[str, list[tuple[int, int, float]]] = {}
        for p, pair in enumerate(pairs):
            for s in range(n_streams):
                for method, (draw, lists) in _contestants(pair, model, 1_000 * p + s).items():
                    outcomes.setdefault(method, []).append(_decision(draw, lists, most))
        for method, results in outcomes.items():
            lists = np.array([at if sign != 0 else np.inf for at, sign, _ in results])
            middle = float(np.median(lists))
            table.add(
                method=method,
                median_lists=f"{middle:,.0f}" if np.isfinite(middle) else f"> {most:,}",
                found=sum(sign > 0 for _, sign, _ in results),
                wrong=sum(sign < 0 for _, sign, _ in results),
                streams=len(results),
                effect=float(np.mean([effect for *_, effect in results])),
            )
        print(table.markdown(), flush=True)
        tables.append(table)
    return tables


def _pair(data: RankingData, w: np.ndarray, direction: np.ndarray) -> Pair:
    """Disturb a ranker until it has lost 0.01 NDCG@10."""

    def ndcg(scores: np.ndarray) -> float:
        return evaluate(data, scores, measures="ndcg@10", ties="input").means["ndcg@10"]

    direction = direction * np.linalg.norm(w) / np.linalg.norm(direction)
    a, moved = data.X @ w, data.X @ direction
    best, low, high = ndcg(a), 0.0, 1e-3
    while best - ndcg(a + high * moved) < GAP:
        high *= 1.3
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if best - ndcg(a + middle * moved) < GAP else (low, middle)
    print(f"pair: {best:.4f} and {ndcg(a + high * moved):.4f}", flush=True)
    return Pair.of(data, a, a + high * moved)


def _contestants(pair: Pair, model: ClickModel, seed: int) -> dict[str, tuple[Draw, int]]:
    """Return how to draw the outcomes of each test, and the lists that one outcome takes."""
    tests: dict[str, tuple[Draw, int]] = {}
    for m in METHODS:
        tests[f"{m}, credit"] = (lambda n, m=m: pair.credits(m, model, n, seed)), 1
        if m in ("balanced", "team-draft"):
            tests[f"{m}, sign"] = (lambda n, m=m: np.sign(pair.credits(m, model, n, seed))), 1
    for m in AB_TESTS:
        tests[m] = (lambda n, m=m: pair.paired(model, n, seed)[m]), 2
    return tests


def _decision(draw: Draw, lists: int, most: int) -> tuple[int, int, float]:
    """Return the lists until zero is outside, the sign found, and mean over standard deviation."""
    n = min(most, 50_000) // lists
    while True:  # a longer stream begins with the shorter one
        values = draw(n)
        lower, upper = confidence_sequence(values)
        outside = (lower > 0) | (upper < 0)
        if outside.any() or n * lists >= most:
            break
        n = min(4 * n, most // lists)
    effect = float(values.mean() / values.std())
    if not outside.any():
        return most, 0, effect
    at = int(np.argmax(outside))
    return lists * (at + 1), 1 if lower[at] > 0 else -1, effect
