"""What our rankers are compared with: tree ensembles of other libraries, and a single feature."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData, column_values
from leanrank.errors import InputError
from leanrank.registry import Space
from leanrank.selection.validation import Chosen, Split, Trial, best_trial

TREES = {"learning_rate": (0.05, 0.1), "leaves": (4, 8, 16), "least": (10, 50)}
"""Twelve settings, about as many as the linear rankers get; rounds stop on the validation data."""

MOST_ROUNDS = 500
PATIENCE = 50
"""Rounds without a better validation measure after which a fit stops, before the most."""


def fit_lightgbm(split: Split, grid: Mapping[str, tuple[Any, ...]] = TREES) -> Chosen:
    """Fit LightGBM's lambdarank, its parameters chosen on validation data."""

    def fit(setting: dict[str, Any]) -> _Trees:
        from lightgbm import LGBMRanker, early_stopping

        trees = LGBMRanker(
            objective="lambdarank",
            n_estimators=MOST_ROUNDS,
            learning_rate=setting["learning_rate"],
            num_leaves=setting["leaves"],
            min_child_samples=setting["least"],
            label_gain=None,
            random_state=0,
            deterministic=True,
            force_row_wise=True,
            n_jobs=1,
            verbose=-1,
        )
        train, held_out = split.train, split.validation
        trees.fit(
            train.X,
            train.y,
            group=np.diff(train.query_ptr),
            eval_set=[(held_out.X, held_out.y)],
            eval_group=[np.diff(held_out.query_ptr)],
            eval_at=[10],
            callbacks=[early_stopping(PATIENCE, verbose=False)],
        )
        return _Trees(trees)

    return _fit_trees(fit, split, grid, "LightGBM")


def fit_xgboost(split: Split, grid: Mapping[str, tuple[Any, ...]] = TREES) -> Chosen:
    """Fit XGBoost's LambdaMART, its parameters chosen on validation data."""

    def fit(setting: dict[str, Any]) -> _Trees:
        from xgboost import XGBRanker

        trees = XGBRanker(
            objective="rank:ndcg",
            tree_method="hist",
            n_estimators=MOST_ROUNDS,
            learning_rate=setting["learning_rate"],
            grow_policy="lossguide",
            max_depth=0,
            max_leaves=setting["leaves"],
            min_child_weight=setting["least"] / 10,  # it counts curvature, not documents
            early_stopping_rounds=PATIENCE,
            eval_metric="ndcg@10",
            random_state=0,
            n_jobs=1,
        )
        train, held_out = split.train, split.validation
        trees.fit(
            train.X,
            train.y,
            qid=_numbers(train),
            eval_set=[(held_out.X, held_out.y)],
            eval_qid=[_numbers(held_out)],
            verbose=False,
        )
        return _Trees(trees)

    return _fit_trees(fit, split, grid, "XGBoost")


def fit_single_feature(split: Split) -> Chosen:
    """Take the feature, and the direction, that ranks the training data best."""
    started = time.perf_counter()
    on_training = replace(split, validation=split.train)
    trials = []
    for feature in range(split.train.n_features):
        for direction in (1, -1):
            parameters = {"feature": feature, "direction": direction}
            scores = column_values(split.train.X, feature) * direction
            trials.append(Trial(parameters, on_training.value(scores), 1))
    best = best_trial(trials, split, "a single feature")
    ranker = _Feature(**best.parameters)
    return Chosen(
        parameters=best.parameters,
        value=split.value(ranker.predict(split.validation)),
        ranker=ranker,
        n_features=1,
        n_trials=len(trials),
        fit_seconds=time.perf_counter() - started,
        search_seconds=0.0,
    )


class _Trees:
    """An ensemble of trees behind the few methods that a comparison needs."""

    def __init__(self, trees: Any) -> None:
        self.trees = trees

    def predict(self, data: RankingData) -> FloatArray:
        return np.asarray(self.trees.predict(data.X), dtype=np.float64)

    @property
    def n_features(self) -> int:
        return int(np.count_nonzero(self.trees.feature_importances_))


class _Feature:
    """One feature as the score."""

    def __init__(self, feature: int, direction: int) -> None:
        self.feature = feature
        self.direction = direction

    def predict(self, data: RankingData) -> FloatArray:
        return np.asarray(column_values(data.X, self.feature) * self.direction, dtype=np.float64)


def _fit_trees(
    fit: Callable[[dict[str, Any]], _Trees],
    split: Split,
    grid: Mapping[str, tuple[Any, ...]],
    name: str,
) -> Chosen:
    labels = np.concatenate([split.train.y, split.validation.y])
    if not np.all((labels >= 0) & (labels == np.round(labels)) & (labels <= 30)):
        raise InputError(f"{name} takes whole labels from 0 to 30 only: leave it out")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        trials = []
        for setting in Space("", {}, grid).settings():
            trees = fit(setting)
            scores = trees.predict(split.validation)
            trials.append(Trial(setting, split.value(scores), trees.n_features))
        best = best_trial(trials, split, name)
        searched = time.perf_counter() - started
        started = time.perf_counter()
        trees = fit(best.parameters)
        fitted = time.perf_counter() - started
    return Chosen(
        best.parameters, best.value, trees, trees.n_features, len(trials), fitted, searched
    )


def _numbers(data: RankingData) -> Any:
    return np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))
