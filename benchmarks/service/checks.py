"""False alarms of a check, and damage that it finds."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Kept, Options, Table
from leanrank import LeanRanker
from leanrank.data import RankingData, load_letor
from leanrank.service.check import check

DIVISIONS = 200
SETS = {"MQ2008": "MQ2008/Fold1/train.txt", "YANDEX": "YANDEX/train.txt"}


def data_sets(options: Options) -> Iterator[tuple[str, RankingData]]:
    if options.data is None:
        raise SystemExit("benchmarks service needs MQ2008 and YANDEX: give --data")
    for name, file in SETS.items():
        yield name, load_letor(options.data / file)


def fast() -> LeanRanker:
    """A ranker that chooses less, for hundreds of fits."""
    return LeanRanker(max_pairs=0, n_folds=2, n_strengths=8, min_strength=0.02, n_jobs=1)


def alarms(options: Options) -> Table:
    """With ``--reports DIR`` divisions are kept there, and the next run goes on from them."""
    table = Table(f"Alarms of a check on the other half of the queries, {DIVISIONS} divisions")
    n = 3 if options.quick else DIVISIONS
    with tempfile.TemporaryDirectory() as scratch:
        kept = Kept((options.reports or Path(scratch)) / "service-alarms.jsonl")
        for name, data in data_sets(options):
            found = [kept.get((name, seed), partial(_division, data, seed)) for seed in range(n)]
            shares = {kind: sum(each[kind] for each in found) / n for kind in KINDS}
            table.add(data=name, queries=data.n_queries, **shares)
    return table


def _division(data: RankingData, seed: int) -> dict[str, Any]:
    """Return which kinds of alarms the other half of the queries raises, and their texts."""
    order = np.random.default_rng(seed).permutation(data.n_queries)
    first, second = np.array_split(order, 2)
    model = fast().fit(data.queries[np.sort(first)]).to_model()
    found = check(model, data.queries[np.sort(second)], random_state=seed)
    worse = any("worse" in text for text in found.alarms)
    kinds = (bool(found.alarms), bool(found.findings), worse, found.needs_refit)
    return {**dict(zip(KINDS, kinds, strict=True)), "texts": found.alarms}


KINDS = ("any", "features", "measures", "refit")


def damage(options: Options) -> Table:
    """A feature of the second half is damaged; the feature itself must be named."""
    table = Table("Damage to a feature: share of the model's features for which it is found")
    for name, data in data_sets(options):
        order = np.random.default_rng(0).permutation(data.n_queries)
        first, second = (data.queries[np.sort(part)] for part in np.array_split(order, 2))
        model = fast().fit(first).to_model()
        features = model.indices.tolist()[: 3 if options.quick else None]
        weights = np.array([abs(model.curves[f].size) for f in features])
        rng = np.random.default_rng(1)
        row: dict[str, str] = {}
        for kind in ("shift", "times 1000", "30% missing", "permuted", "swapped"):
            named, any_alarm = [], []
            for at, f in enumerate(features):
                X = np.array(second.X if not second.is_sparse else second.X.toarray())
                x = X[:, f].copy()
                g = features[(at + 1) % len(features)]
                if kind == "shift":
                    X[:, f] = x + x.std()
                elif kind == "times 1000":
                    X[:, f] = 1000 * x
                elif kind == "30% missing":
                    X[rng.random(len(x)) < 0.3, f] = np.nan
                elif kind == "permuted":
                    X[:, f] = rng.permutation(x)
                else:
                    X[:, [f, g]] = X[:, [g, f]]
                found = check(model, second.replace(X=X))
                any_alarm.append(bool(found.alarms))
                named.append(f"f{f + 1}" in {each.feature for each in found.findings})
            weighted = float(weights @ np.array(any_alarm) / weights.sum())
            row[kind] = f"{np.mean(any_alarm):.0%} ({np.mean(named):.0%}; {weighted:.0%})"
        table.add(
            data=name, features=len(features), **row, **{"new level": _new_level(first, second)}
        )
    table.note = (
        "Share of features with any alarm; in brackets, with an alarm that names the feature; and "
        "the first share with features weighted by the height of their curve."
    )
    return table


def _new_level(first: RankingData, second: RankingData) -> str:
    """A category is made of a feature's deciles; 3% of today's documents get another level."""
    found = []
    for f in range(5):
        cut = np.quantile(_column(first, f), np.arange(1, 10) / 10)
        parts = [
            part.replace(X=np.column_stack((_dense(part), np.searchsorted(cut, _column(part, f)))))
            for part in (first, second)
        ]
        at = parts[0].n_features - 1
        ranker = fast().set_params(categories=[at], penalty_factors={at: 0.01})
        model = ranker.fit(parts[0]).to_model()
        X = parts[1].X.copy()
        X[np.random.default_rng(f).random(len(X)) < 0.03, at] = 99
        kinds = {each.kind for each in check(model, parts[1].replace(X=X)).findings}
        before = {each.kind for each in check(model, parts[1]).findings}
        found.append("new levels" in kinds and "new levels" not in before)
    return f"{np.mean(found):.0%} of {len(found)}"


def _dense(data: RankingData) -> np.ndarray:
    return np.array(data.X.toarray() if data.is_sparse else data.X)


def _column(data: RankingData, f: int) -> np.ndarray:
    return _dense(data)[:, f]
