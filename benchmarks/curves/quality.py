"""What curves are worth on public sets, beside lines and trees."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import Options, Table
from leanrank.data import GlobalStandardScaler, fetch
from leanrank.data.public_sets import find_set
from leanrank.data.ranking_data import RankingData
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.metrics import compare_values, evaluate
from leanrank.registry import AlphaPath, Space, get_system
from leanrank.selection.peers import fit_lightgbm, fit_xgboost
from leanrank.selection.validation import Split, best_trial, make_ranker, run_trials

MEASURES = ("map", "ndcg@10")
FEW = 10
LINES = Space("domination", {"tol": 1e-5}, {"normalize": ("query", "term")}, AlphaPath(n_alphas=20))


class _Result(NamedTuple):
    per_query: Any
    n_features: int


def quality(options: Options) -> list[Table]:
    if options.data is None:
        print("quality needs MQ2008 and OHSUMED: give --data; left out")
        return []
    tables = []
    for name in ("MQ2008", "OHSUMED"):
        public = fetch(name, data_dir=options.data, download=False)
        folds = (1,) if options.quick else (1, 2, 3, 4, 5)
        for measure in MEASURES:
            found: dict[str, list[_Result]] = {}
            for number in folds:
                for system, result in _one_fold(
                    public.fold(number), measure, find_set(name).convention
                ):
                    found.setdefault(system, []).append(result)
            tables.append(_table(name, measure, found))
    return tables


def _one_fold(
    parts: tuple[RankingData, RankingData, RankingData], measure: str, convention: str
) -> list[tuple[str, _Result]]:
    train, vali, test = parts
    scaler = GlobalStandardScaler().fit(train)
    scaled = tuple(map(scaler.transform, parts))
    curves = get_system("domination-curves").space
    assert curves is not None
    upright = replace(curves, fixed={**curves.fixed, "monotone": directions(train)})
    contestants: dict[str, Callable[[], tuple[Any, int]]] = {}

    def add(system: str, space: Space, data: Any) -> None:
        trials: list[Any] = []

        def best(most: int) -> tuple[Any, int]:
            split = Split(data[0], data[1], measure, convention)
            if not trials:
                trials.extend(run_trials(space, split))
            few = [trial for trial in trials if trial.n_features <= most]
            ranker = make_ranker(space, best_trial(few, split).parameters, split).fit(data[0])
            return ranker.predict(data[2]), ranker.n_features_

        contestants[f"{system}, all features"] = lambda: best(train.n_features)
        contestants[f"{system}, at most {FEW}"] = lambda: best(FEW)

    add("lines", LINES, scaled)
    add("curves", curves, parts)
    add("monotone curves", upright, parts)
    for system, fit in (("LightGBM", fit_lightgbm), ("XGBoost", fit_xgboost)):
        contestants[system] = lambda fit=fit: _trees(
            fit, Split(train, vali, measure, convention), test
        )
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the extremes of a grid may not converge
        for system, contestant in contestants.items():
            scores, n_features = contestant()
            judged = evaluate(test, scores, measures=[measure], convention=convention)
            results.append((system, _Result(judged.per_query[measure], n_features)))
    return results


def _trees(fit: Any, split: Split, test: RankingData) -> tuple[Any, int]:
    chosen = fit(split)
    return chosen.ranker.predict(test), chosen.n_features


def directions(train: RankingData) -> list[int]:
    """Return in which direction each feature alone ranks the training data better.

    It is the sign of the loss's slope, at no model at all, in the ranks of the feature.
    """
    loss = get_loss("domination")
    plan = loss.prepare(Labels(train.y, train.query_ptr))
    g = np.zeros(len(train))
    loss.evaluate(plan, 0, train.n_queries, np.zeros(len(train)), g)
    X = train.X.toarray() if train.is_sparse else np.asarray(train.X)
    ranks = np.argsort(np.argsort(X, axis=0, kind="stable"), axis=0, kind="stable")
    return [int(sign) for sign in -np.sign(g @ ranks)]


def _table(name: str, measure: str, found: dict[str, list[_Result]]) -> Table:
    table = Table(f"{name}: {measure} on the test parts of {len(found['LightGBM'])} folds")
    joined = {k: np.concatenate([one.per_query for one in v]) for k, v in found.items()}
    for system, results in found.items():
        row: dict[str, Any] = {
            "system": system,
            measure: f"{np.mean([np.nanmean(one.per_query) for one in results]):.4f}",
            "features": f"{np.mean([one.n_features for one in results]):.1f}",
        }
        for peer in ("LightGBM", "XGBoost"):
            p = compare_values(joined[peer], joined[system], random_state=0).p_randomization
            row[f"p against {peer}"] = "" if peer == system else f"{p:.3f}"
        table.add(**row)
    table.note = (
        "parameters chosen on the validation part by the same measure; p: paired, two-sided"
    )
    return table
