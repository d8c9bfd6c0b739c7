"""Made-up worlds whose pairs are known: how many ``LeanRanker`` keeps, and how many it finds."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import Kept, Options, Table
from leanrank import LeanRanker
from leanrank.data.ranking_data import RankingData
from leanrank.metrics import evaluate

N_RUNS = 20
N_DOCUMENTS = 20
N_CURVED = 8
"""Features with a curve; the pairs are among them."""


class World(NamedTuple):
    """What is drawn."""

    n_queries: int
    n_features: int
    n_pairs: int


WORLDS = {
    "no pairs, 300 queries": World(300, 30, 0),
    "no pairs, 2,000 queries": World(2_000, 30, 0),
    "three pairs among 30": World(2_000, 30, 3),
    "three pairs among 200": World(2_000, 200, 3),
}


def worlds(options: Options) -> list[Table]:
    """Fit ``N_RUNS`` draws of each world."""
    names = [name for name in WORLDS if options.only in (None, name)]
    if not names:
        raise SystemExit(f"--only worlds:{options.only}: use one of {list(WORLDS)}")
    n_runs = 2 if options.quick else N_RUNS
    table = Table(f"Made-up worlds, {N_DOCUMENTS} documents per query, {n_runs} draws each")
    with tempfile.TemporaryDirectory() as scratch:
        kept = Kept((options.reports or Path(scratch)) / "pairs.jsonl")
        for name in names:
            runs = [
                kept.get(("worlds", name, seed), partial(one_run, WORLDS[name], seed))
                for seed in range(n_runs)
            ]
            table.add(world=name, **summary(runs))
    table.note = (
        "Kept: draws whose model has a pair. Found: draws whose model has all true pairs. True and "
        "other: pairs per model. Gain: share of held-out documents, two by two, in the wrong order "
        "without surfaces less that with them, mean and "
        "largest of its standard errors; NDCG@10 beside max_pairs=0 on 500 new queries."
    )
    return [table]


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a row of the table."""
    true = [run["true"] for run in runs]
    mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    gains = [run["gain"] / run["error"] if run["error"] else 0.0 for run in runs]
    gained = np.array([run["gained"] for run in runs])
    return {
        "kept": f"{sum(run['true'] + run['other'] > 0 for run in runs)} of {len(runs)}",
        "found": f"{sum(n == runs[0]['wanted'] for n in true)} of {len(runs)}"
        if runs[0]["wanted"]
        else "",
        "true": f"{mean['true']:.1f}",
        "other": f"{mean['other']:.1f}",
        "gain": f"{mean['gain']:+.5f}, {np.mean(gains):+.1f} to {max(gains):+.1f} errors",
        "NDCG@10 gained": f"{gained.mean():+.4f} ± {gained.std() / np.sqrt(len(gained)):.4f}",
    }


def one_run(world: World, seed: int) -> dict[str, Any]:
    """Fit a draw, and again without pairs if the model has some."""
    train, test, pairs = draw(world, seed)
    told: list[dict[str, Any]] = []
    found: dict[str, Any] = {"wanted": len(pairs), "gain": 0.0, "error": 0.0, "gained": 0.0}
    ranker = LeanRanker(callback=told.append).fit(train)
    kept = set(ranker.model_.surfaces)
    if kept:  # else the model is that without pairs
        other = LeanRanker(max_pairs=0).fit(train)
        after, before = (
            evaluate(test, each.predict(test.X), measures="ndcg@10").means["ndcg@10"]
            for each in (ranker, other)
        )
        found["gained"] = float(after - before)
    for choice in told:
        if choice["choice"] == "pairs":
            found |= {key: float(choice[key]) for key in ("gain", "error")}
    return found | {"true": len(kept & pairs), "other": len(kept - pairs)}


def draw(world: World, seed: int) -> tuple[RankingData, RankingData, set[tuple[int, int]]]:
    """Return documents to learn from, 500 queries to judge by, and the pairs."""
    rng = np.random.default_rng([seed, *world, 0])
    columns = np.sort(rng.choice(world.n_features, N_CURVED, replace=False))
    order = rng.permutation(columns)
    pairs = [tuple(sorted(order[2 * k : 2 * k + 2].tolist())) for k in range(world.n_pairs)]
    bends, slopes = rng.uniform(0.2, 0.8, N_CURVED), rng.normal(size=(2, N_CURVED))
    n = N_DOCUMENTS * (world.n_queries + 500)
    Z = 0.5 * rng.normal(size=(n, 1)) + rng.normal(size=(n, world.n_features))
    position = np.argsort(np.argsort(Z, axis=0), axis=0) / n
    X = np.where(np.arange(world.n_features) % 3 == 1, np.exp(Z), Z)
    X[:, ::3] = np.round(2 * X[:, ::3])  # few distinct values
    bent = (
        np.maximum(position[:, columns] - bends, 0) * slopes[0] + position[:, columns] * slopes[1]
    )
    utility = bent.sum(axis=1)
    utility *= 1.5 / utility.std()
    for f, g in pairs:
        corner = (position[:, f] - 0.5) * (position[:, g] - 0.5)
        utility += rng.choice([-1.0, 1.0]) * 0.3 / corner.std() * corner
    utility += rng.gumbel(size=n)
    qid = np.repeat(np.arange(n // N_DOCUMENTS), N_DOCUMENTS)
    y = np.searchsorted(np.quantile(utility, (0.6, 0.8, 0.93)), utility)
    data = RankingData(X, y, qid)
    train = np.arange(data.n_queries) < world.n_queries
    return data.queries[train], data.queries[~train], set(pairs)  # type: ignore[arg-type]
