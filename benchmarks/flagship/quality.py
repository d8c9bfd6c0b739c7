"""How well ``LeanRanker`` ranks as it comes, beside trees as they come and tuned."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.flagship.trees import Trees, tuned
from benchmarks.harness import Kept, Options, Table
from benchmarks.tune.regret import N_FOLDS, WORLDS, make_world
from leanrank import LeanRanker, load_letor, tune
from leanrank.data.ranking_data import RankingData
from leanrank.metrics import evaluate
from leanrank.model import Model

PUBLIC = {"YANDEX": 50, "MQ2008": 46, "OHSUMED": 45}
"""Sets and their numbers of features."""

PAIRS = (20, 5, lambda X: 0.5 * X + X * np.roll(X, 1, axis=1))
MADE_UP = {**WORLDS, "pairs": PAIRS}
MEASURES = ("ndcg@10", "map")
OURS = "LeanRanker()"
LIBRARIES = {
    "LightGBM": "lightgbm",
    "additive LightGBM": "lightgbm",
    "XGBoost": "xgboost",
    "CatBoost": "catboost",
}
TRIALS = 12
"""Settings of ``tune``, as many as the trees have; a fifth of the queries judges them."""

Fit = Callable[[RankingData], dict[str, Any]]
Judged = dict[str, tuple[dict[str, list[float]], int, float]]
"""By contestant: measures by query, features and seconds."""


class Chosen:
    """A model with the interface that a comparison needs."""

    def __init__(self, model: Model) -> None:
        self.predict, self.n_features_ = model.predict, model.n_nonzero


def quality(options: Options) -> list[Table]:
    names = [*(PUBLIC if options.data is not None else ()), *MADE_UP]
    if options.only is not None:
        if options.only not in names:
            raise SystemExit(f"--only quality:{options.only}: use one of {names}")
        names = [options.only]
    tables = []
    with tempfile.TemporaryDirectory() as scratch:
        kept = Kept((options.reports or Path(scratch)) / "flagship.jsonl")
        for name in names:
            divisions = list(folds(name, options))
            found: list[Judged] = [{} for _ in divisions]
            for contestant, fit in _contestants().items():
                for number, (train, test) in enumerate(divisions):
                    of = (name, number + 1, contestant)
                    found[number] |= kept.get(of, partial(_judged, fit, train, test))
            tables.append(_table(name, found))
    return tables


def folds(name: str, options: Options) -> Iterator[tuple[RankingData, RankingData]]:
    """Yield the queries to learn from and those to judge by."""
    n_folds = 1 if options.quick else min(N_FOLDS, options.repeat)
    if name == "YANDEX":
        assert options.data is not None
        data = load_letor(options.data / name / "train.txt", n_features=PUBLIC[name])
        fold = np.random.default_rng(0).permutation(data.n_queries) % N_FOLDS
        yield from ((data.queries[fold != k], data.queries[fold == k]) for k in range(n_folds))
        return
    for number in range(1, 1 + n_folds):
        if name in MADE_UP:
            parts = make_world(name, MADE_UP[name], number)
        else:
            assert options.data is not None
            folder = options.data / name / f"Fold{number}"
            files = [folder / f"{part}.txt" for part in ("train", "vali", "test")]
            parts = [load_letor(file, n_features=PUBLIC[name]) for file in files]
        X, y, qid = (
            np.concatenate([np.asarray(getattr(part, of)) for part in parts[:2]])
            for of in ("X", "y", "qid")
        )
        if name in MADE_UP:  # whose parts number their queries from 0
            qid[len(parts[0]) :] += parts[0].n_queries
        yield RankingData(X, y, qid), parts[2]


def _contestants() -> dict[str, Fit]:
    """Return what each contestant fits to the queries to learn from: models by name."""

    def lean(train: RankingData, **parameters: Any) -> dict[str, Any]:
        given = ", ".join(f"{name}={value}" for name, value in parameters.items())
        return {f"LeanRanker({given})": LeanRanker(**parameters).fit(train)}

    def searched(train: RankingData) -> dict[str, Any]:
        parts = train.queries[::5]
        rest = np.flatnonzero(np.arange(train.n_queries) % 5)
        study = tune(train.queries[rest], parts, trials=TRIALS, refit="both", n_jobs=1)
        return {f"tune, {TRIALS} trials": Chosen(study.model)}

    def as_it_comes(train: RankingData) -> dict[str, Any]:
        from lightgbm import LGBMRanker

        return {"LGBMRanker()": Trees(LGBMRanker(n_jobs=1, verbose=-1)).fit(train)}

    def both(library: str, train: RankingData) -> dict[str, Any]:
        stopped, again = tuned(library, train)
        return {f"{library}, tuned": stopped, f"{library}, tuned, all data": again}

    found: dict[str, Fit] = {
        OURS: lean,
        "max_features": partial(lean, max_features=10),
        "max_pairs": partial(lean, max_pairs=0),
        "tune": searched,
        "as it comes": as_it_comes,
    }
    for library, package in LIBRARIES.items():
        if find_spec(package) is not None:
            found[library] = partial(both, library)
        else:
            print(f"{library} is not installed: left out")
    return found


def _judged(fit: Fit, train: RankingData, test: RankingData) -> Judged:
    started = time.process_time()
    models = fit(train)
    seconds = time.process_time() - started
    found: Judged = {}
    for name, model in models.items():
        values = evaluate(test, model.predict(test), measures=list(MEASURES)).per_query
        by_query = {measure: values[measure].tolist() for measure in MEASURES}
        found[name] = by_query, model.n_features_, seconds
        mean = np.nanmean(by_query["ndcg@10"])
        print(f"{name}: ndcg@10 {mean:.4f}, {seconds:.1f} s", flush=True)
    return found


def _table(name: str, found: list[Judged]) -> Table:
    n_queries = sum(len(fold[OURS][0]["map"]) for fold in found)
    table = Table(f"{name}: {n_queries} queries of {len(found)} folds, judged once")

    def values(who: str, measure: str) -> Any:
        return np.concatenate([fold[who][0][measure] for fold in found])

    for who in found[0]:
        row: dict[str, Any] = {"contestant": who}
        for measure in MEASURES:
            row[measure] = f"{np.nanmean(values(who, measure)):.4f}"
        for measure in MEASURES:
            less = values(who, measure) - values(OURS, measure)
            error = np.nanstd(less) / np.sqrt(np.count_nonzero(~np.isnan(less)))
            row[f"{measure} − ours"] = (
                "" if who == OURS else f"{np.nanmean(less):+.4f} ± {error:.4f}"
            )
        row["features"] = f"{np.mean([fold[who][1] for fold in found]):.1f}"
        row["seconds"] = f"{np.mean([fold[who][2] for fold in found]):.1f}"
        table.add(**row)
    table.note = (
        "Standard convention. Difference to LeanRanker(), ± standard error over queries. Tuned: "
        "the best of twelve settings by NDCG@10 on a fifth of the queries to learn from, where "
        "rounds stop early too; all data: it is fitted again to all of them, with as many rounds. "
        "Seconds: processor time of a fold, search and both fits together; trees on one thread."
    )
    return table
