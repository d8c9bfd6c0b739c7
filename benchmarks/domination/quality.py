"""Test quality on public sets, five folds: the variants of Domination Rank beside boosted trees.

Everything that is open is chosen by NDCG@10 on the validation part, in the conventions of each
set's own tool: the strength of the penalty (and a margin's scale or a mix of penalties), or the
number of trees by early stopping.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.domination.problems import load
from benchmarks.harness import Options, Table, show_seconds
from leanrank.data.ranking_data import RankingData
from leanrank.errors import DataWarning
from leanrank.metrics import evaluate
from papers.public_sets import fetch
from papers.stevens2013_letor import VARIANTS, fit_variant

SETS = ("MQ2008", "OHSUMED")
MEASURES = ("map", "ndcg@10")
PATIENCE = 50
"""Trees without an improvement after which boosting stops."""

Fitted = tuple[Any, int]  # scores of the test part, features used
Fit = Callable[[RankingData, RankingData, RankingData, str], Fitted]


def run(options: Options) -> list[Table]:
    warnings.simplefilter("ignore", DataWarning)
    tables = []
    for name in SETS:
        folds = fetch(name, data_dir=options.data, download=False)
        numbers = range(1, 2 if options.quick else folds.n_folds + 1)
        parts = [folds.fold(number) for number in numbers]
        table = Table(f"{name}, {len(parts)} folds, {folds.known.convention}, means of fold means")
        for system, fit in _systems().items():
            table.add(system=system, **_measure(fit, parts, folds.known.convention))
        table.note = load()
        tables.append(table)
    return tables


def _systems() -> dict[str, Fit]:
    systems: dict[str, Fit] = {
        f"domination, {name}": lambda *given, v=variant: _domination(v, *given)
        for name, variant in VARIANTS.items()
    }
    for name, fit in {"LightGBM lambdarank": _lightgbm, "XGBoost rank:ndcg": _xgboost}.items():
        try:
            __import__(name.split()[0].lower())
            systems[name] = fit
        except ImportError:
            print(f"{name} is not installed: left out")
    return systems


def _measure(fit: Fit, parts: list[Any], convention: str) -> dict[str, Any]:
    values, used = [], []
    start = time.perf_counter()
    for train, vali, test in parts:
        scores, n_features = fit(train, vali, test, convention)
        found = evaluate(test, scores, measures=list(MEASURES), convention=convention)
        values.append([found.means[m] for m in MEASURES])
        used.append(n_features)
    seconds = time.perf_counter() - start
    means = np.mean(values, axis=0)
    return {
        "MAP": f"{means[0]:.4f}",
        "NDCG@10": f"{means[1]:.4f}",
        "features": f"{np.mean(used):.1f}",
        "all fits": show_seconds(seconds),
    }


def _domination(
    variant: Any, train: RankingData, vali: RankingData, test: RankingData, convention: str
) -> Fitted:
    chosen = fit_variant(variant, train, vali, convention)
    return chosen.model.predict(test), chosen.n_features


def _lightgbm(train: RankingData, vali: RankingData, test: RankingData, convention: str) -> Fitted:
    import lightgbm

    data = lightgbm.Dataset(train.X, train.y, group=np.diff(train.query_ptr))
    held_out = lightgbm.Dataset(vali.X, vali.y, group=np.diff(vali.query_ptr), reference=data)
    model = lightgbm.train(
        {
            "objective": "lambdarank",
            "learning_rate": 0.05,
            "metric": "None",
            "num_threads": 1,  # too small a set to share
            "deterministic": True,
            "seed": 0,
            "verbosity": -1,
        },
        data,
        num_boost_round=500,
        valid_sets=[held_out],
        feval=lambda scores, _: ("ndcg", _quality(vali, scores, convention), True),
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False)],
    )
    used = model.feature_importance(iteration=model.best_iteration)
    return model.predict(test.X), int(np.count_nonzero(used))


def _xgboost(train: RankingData, vali: RankingData, test: RankingData, convention: str) -> Fitted:
    import xgboost

    def matrix(part: RankingData) -> Any:
        return xgboost.DMatrix(
            part.X, part.y, qid=np.repeat(np.arange(part.n_queries), np.diff(part.query_ptr))
        )

    model = xgboost.train(
        {
            "objective": "rank:ndcg",
            "learning_rate": 0.05,
            "disable_default_eval_metric": 1,
            "nthread": 1,
            "seed": 0,
        },
        matrix(train),
        num_boost_round=500,
        evals=[(matrix(vali), "vali")],
        custom_metric=lambda scores, _: ("ndcg", _quality(vali, scores, convention)),
        maximize=True,
        early_stopping_rounds=PATIENCE,
        verbose_eval=False,
    )
    best = model[: model.best_iteration + 1]
    return best.predict(matrix(test)), len(best.get_fscore())


def _quality(vali: RankingData, scores: Any, convention: str) -> float:
    found = evaluate(vali, scores, measures=["ndcg@10"], convention=convention)
    return float(found.means["ndcg@10"])
