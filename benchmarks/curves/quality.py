"""What curves are worth on public sets, beside lines and trees."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Kept, Options, Table
from leanrank.data import GlobalStandardScaler
from leanrank.data.ranking_data import RankingData
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.metrics import compare_values, evaluate
from leanrank.metrics.judge import best_of, mean_of
from leanrank.registry import AlphaPath, Space, get_system
from leanrank.selection.candidate import Candidate
from leanrank.selection.engine import Split
from leanrank.selection.systems import fit_lightgbm, fit_xgboost
from leanrank.selection.trials import Task, run_trial
from papers.public_sets import fetch, find_set

SETS = ("MQ2008", "OHSUMED")
MEASURES = ("map", "ndcg@10")
N_FOLDS, FEW = 5, 10
LINES = Space("domination", {"tol": 1e-5}, {"normalize": ("query", "term")}, AlphaPath(n_alphas=20))
JUDGES = {"": False, ", training folds judge too": True}
Parts = tuple[RankingData, RankingData, RankingData]


def quality(options: Options, only: str | None = None) -> list[Table]:
    if options.data is None:
        print("quality needs MQ2008 and OHSUMED: give --data; left out")
        return []
    if only not in (None, *SETS):
        raise SystemExit(f"--only quality:{only}: use one of {SETS}")
    tables = []
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.reports or Path(scratch)
        for name in SETS if only is None else (only,):
            kept = Kept(folder / f"quality-{name}.jsonl")
            public = fetch(name, data_dir=options.data, download=False)
            convention = find_set(name).convention
            found: dict[str, dict[str, list[Any]]] = {measure: {} for measure in MEASURES}
            for number in range(1, 2 if options.quick else 1 + min(N_FOLDS, options.repeat)):
                parts = public.fold(number)
                for system in ("lines", "curves", "monotone curves", "LightGBM", "XGBoost"):
                    make = partial(_fitted, system, parts, convention)
                    results = kept.get((number, system), make)
                    for measure, contestant, n_features, values in results:
                        found[measure].setdefault(contestant, []).append((n_features, values))
            tables += [_table(name, measure, found[measure]) for measure in MEASURES]
    return tables


def _fitted(system: str, parts: Parts, convention: str) -> list[Any]:
    """Return measure, contestant, features and values on the test queries, for each choice."""
    trees = {"LightGBM": fit_lightgbm, "XGBoost": fit_xgboost}
    if system in trees:
        found = []
        for measure in MEASURES:
            chosen = trees[system](Split(parts[0], parts[1], measure, convention))
            scores = chosen.model.predict(parts[2])
            values = _judged(parts[2], scores, measure, convention)
            found.append((measure, system, chosen.n_features, values))
        return found
    space = get_system("domination-curves").space
    assert space is not None
    if system == "lines":
        space = LINES
        scaler = GlobalStandardScaler().fit(parts[0])
        parts = (scaler.transform(parts[0]), scaler.transform(parts[1]), scaler.transform(parts[2]))
    elif system == "monotone curves":
        given = {"monotone": directions(parts[0])}
        space = replace(space, fixed={**space.fixed, **given})
    task = Task(parts[0], parts[1], MEASURES[0], MEASURES, MEASURES, convention)
    tried = [one for setting in space.settings() for one in run_trial(task, space, setting)]
    return [
        (measure, f"{system}, {few}{title}", chosen.n_features, values)
        for measure in MEASURES
        for few, most in (("all features", parts[0].n_features), (f"at most {FEW}", FEW))
        for title, folds_too in JUDGES.items()
        for chosen in [_chosen(tried, measure, most, folds_too)]
        for values in [_judged(parts[2], chosen.model.predict(parts[2]), measure, convention)]
    ]


def _chosen(tried: list[Candidate], measure: str, most: int, folds_too: bool) -> Candidate:
    """Return the best by the validation part, or by it and the folds of the training part."""
    slim = [one for one in tried if one.n_features <= most]
    worth = [one.score(measure) if folds_too else mean_of(one.values[measure]) for one in slim]
    return slim[best_of(worth, [one.n_features for one in slim])]


def _judged(test: RankingData, scores: Any, measure: str, convention: str) -> list[float]:
    judged = evaluate(test, scores, measures=[measure], convention=convention)
    values: list[float] = judged.per_query[measure].tolist()
    return values


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


def _table(name: str, measure: str, found: dict[str, list[Any]]) -> Table:
    table = Table(f"{name}: {measure} on the test parts of {len(found['LightGBM'])} folds")
    joined = {who: np.concatenate([values for _, values in each]) for who, each in found.items()}
    for system, results in found.items():
        row: dict[str, Any] = {
            "system": system,
            measure: f"{np.mean([np.nanmean(values) for _, values in results]):.4f}",
            "features": f"{np.mean([n_features for n_features, _ in results]):.1f}",
        }
        for peer in ("LightGBM", "XGBoost"):
            p = compare_values(joined[peer], joined[system], random_state=0).p_randomization
            row[f"p against {peer}"] = "" if peer == system else f"{p:.3f}"
        table.add(**row)
    table.note = (
        "parameters chosen on the validation part by the same measure; training folds judge too: "
        "by the mean over the validation queries and the training queries, each of these scored by "
        "a model fitted without it, as tune does; p: paired, two-sided"
    )
    return table
