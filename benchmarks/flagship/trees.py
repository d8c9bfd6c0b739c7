"""Ensembles of trees, tuned on held-out queries and fitted again to all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from leanrank.data.ranking_data import RankingData
from leanrank.registry import Space
from leanrank.selection.engine import Split
from leanrank.selection.systems import MOST_ROUNDS, PATIENCE, fit_lightgbm, fit_xgboost

ADDITIVE = {"learning_rate": (0.05, 0.1, 0.2), "leaves": (2,), "least": (5, 10, 20, 50)}
SYMMETRIC = {"learning_rate": (0.05, 0.1), "depth": (3, 4, 6), "l2_leaf_reg": (1, 10)}
"""Twelve settings each, as many as other trees have."""


class Trees:
    """A ranker of another library, with the interface that a comparison needs."""

    def __init__(self, ranker: Any) -> None:
        self.ranker = ranker

    def fit(self, data: RankingData, **more: Any) -> Trees:
        sizes = np.diff(data.query_ptr)
        numbers = np.repeat(np.arange(len(sizes)), sizes)
        library = type(self.ranker).__name__
        queries = {"LGBMRanker": {"group": sizes}, "XGBRanker": {"qid": numbers}}
        self.ranker.fit(data.X, data.y, **queries.get(library, {"group_id": numbers}), **more)
        return self

    def predict(self, data: RankingData) -> Any:
        return np.asarray(self.ranker.predict(data.X), dtype=np.float64)

    @property
    def n_features_(self) -> int:
        if hasattr(self.ranker, "get_feature_importance"):  # CatBoost, whose default needs data
            used = self.ranker.get_feature_importance(type="PredictionValuesChange")
        else:
            used = self.ranker.feature_importances_
        return int(np.count_nonzero(used))


def tuned(library: str, train: RankingData) -> tuple[Trees, Trees]:
    """Return the best setting on a fifth of the queries, and it fitted to all of them."""
    split = _split(train)
    if library == "CatBoost":
        best = _best_catboost(split)
        rounds = {"iterations": best.tree_count_, "early_stopping_rounds": None}
        again = type(best)(**{**best.get_params(), **rounds})
    elif library == "XGBoost":
        best = fit_xgboost(split).model.trees
        again = clone(best).set_params(n_estimators=best.best_iteration + 1)
        again.set_params(early_stopping_rounds=None)
    else:
        grid = (ADDITIVE,) if library == "additive LightGBM" else ()
        return _tuned_lightgbm(split, train, *grid)
    return Trees(best), Trees(again).fit(train)


def tuned_leaves(leaves: int, train: RankingData) -> Trees:
    """Return LightGBM with a number of leaves, the rest tuned, fitted to all queries."""
    return _tuned_lightgbm(_split(train), train, {**ADDITIVE, "leaves": (leaves,)})[1]


def _tuned_lightgbm(split: Split, train: RankingData, *grid: dict[str, Any]) -> tuple[Trees, Trees]:
    best = fit_lightgbm(split, *grid).model.trees
    again = clone(best).set_params(n_estimators=best.best_iteration_)
    return Trees(best), Trees(again).fit(train)


def _split(train: RankingData) -> Split:
    """Set a fifth of the queries apart to tune on."""
    fold = np.random.default_rng(1).permutation(train.n_queries) % 5
    return Split(train.queries[fold != 0], train.queries[fold == 0], "ndcg@10")


def _best_catboost(split: Split) -> Any:
    from catboost import CatBoostRanker, Pool

    held_out = split.validation
    qid = np.repeat(np.arange(held_out.n_queries), np.diff(held_out.query_ptr))
    pool = Pool(held_out.X, held_out.y, group_id=qid)
    tried = [
        CatBoostRanker(
            iterations=MOST_ROUNDS,
            eval_metric="NDCG:top=10;type=Exp",
            early_stopping_rounds=PATIENCE,
            random_seed=0,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
            **setting,
        )
        for setting in Space("", {}, SYMMETRIC).settings()
    ]
    for ranker in tried:
        Trees(ranker).fit(split.train, eval_set=pool)
    return max(tried, key=lambda ranker: split.value(ranker.predict(held_out.X)))
