"""What curves are worth on public sets, beside lines and trees."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
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
        convention = find_set(name).convention
        found: dict[str, dict[str, list[_Result]]] = {measure: {} for measure in MEASURES}
        for number in (1,) if options.quick else (1, 2, 3, 4, 5):
            parts = public.fold(number)
            for contestants in (bent_and_straight, trees):
                for measure, system, result in contestants(parts, convention):
                    found[measure].setdefault(system, []).append(result)
        tables += [table_of(name, measure, found[measure]) for measure in MEASURES]
    return tables


def bent_and_straight(
    parts: tuple[RankingData, RankingData, RankingData], convention: str
) -> Iterator[tuple[str, str, _Result]]:
    """Fit lines, curves and monotone curves: measure, name of the contestant, result."""
    scaled = tuple(map(GlobalStandardScaler().fit(parts[0]).transform, parts))
    curves = get_system("domination-curves").space
    assert curves is not None
    upright = replace(curves, fixed={**curves.fixed, "monotone": directions(parts[0])})
    for system, space, (train, vali, test) in (
        ("lines", LINES, scaled),
        ("curves", curves, parts),
        ("monotone curves", upright, parts),
    ):
        split = Split(train, vali, MEASURES, convention)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the extremes of a grid may not converge
            tried = list(run_trials(space, split))
        for measure in MEASURES:
            trials = [replace(trial, value=trial.values[measure]) for trial in tried]
            for few, most in (("all features", train.n_features), (f"at most {FEW}", FEW)):
                best = best_trial([one for one in trials if one.n_features <= most], split)
                ranker = make_ranker(space, best.parameters, split).fit(train)
                result = _judged(
                    test, ranker.predict(test), measure, convention, ranker.n_features_
                )
                yield measure, f"{system}, {few}", result


def trees(
    parts: tuple[RankingData, RankingData, RankingData], convention: str
) -> Iterator[tuple[str, str, _Result]]:
    """Fit ensembles of trees: measure, name of the contestant, result."""
    train, vali, test = parts
    for measure in MEASURES:
        for system, fit in (("LightGBM", fit_lightgbm), ("XGBoost", fit_xgboost)):
            chosen = fit(Split(train, vali, measure, convention))
            scores = chosen.ranker.predict(test)
            yield measure, system, _judged(test, scores, measure, convention, chosen.n_features)


def _judged(
    test: RankingData, scores: Any, measure: str, convention: str, n_features: int
) -> _Result:
    judged = evaluate(test, scores, measures=[measure], convention=convention)
    return _Result(judged.per_query[measure], n_features)


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


def table_of(name: str, measure: str, found: dict[str, list[_Result]]) -> Table:
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
