"""The systems that can be compared: those of the registry, tree ensembles of other libraries, and
the best single feature.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData, column_values
from leanrank.errors import InputError, suggest
from leanrank.metrics.judge import best_of
from leanrank.model.curves import Line
from leanrank.model.model import Model
from leanrank.registry import SYSTEMS, Space, get_system
from leanrank.selection.candidate import Candidate
from leanrank.selection.engine import Split, fit_again, fit_best


def system_names() -> list[str]:
    """Return the names of all systems, installed or not."""
    return [*(name for name, system in SYSTEMS.items() if system.space is not None), *PEERS]


def installed(name: str) -> bool:
    """Return whether the packages of a system are installed."""
    return name not in PACKAGES or find_spec(name) is not None


def title(name: str) -> str:
    """Return the name of a system in tables.

    >>> title("rankrls"), title("lightgbm")
    ('RankRLS', 'LightGBM')
    """
    return PEERS[name][0] if name in PEERS else get_system(name).title


def check_systems(names: list[str]) -> None:
    """Reject a name that is not known, or twice in the list."""
    known = system_names()
    for name in names:
        if name not in known:
            raise InputError(f"there is no system {name!r}: {suggest(name, known)}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"the system {twice!r} is given twice: give it once")


def fit_system(name: str, split: Split) -> Candidate:
    """Fit a system with its parameters chosen on the validation data.

    Parameters
    ----------
    name : str
        One of ``system_names``.
    split : Split

    Returns
    -------
    Candidate

    Examples
    --------
    >>> from leanrank.data import load_sample
    >>> train, vali, test = load_sample()
    >>> fit_system("bestfeature", Split(train, vali)).n_features
    1
    """
    check_systems([name])
    if name in PEERS:
        return PEERS[name][1](split)
    space = get_system(name).space
    assert space is not None
    return fit_best(space, split)


TREES = {"learning_rate": (0.05, 0.1), "leaves": (4, 8, 16), "least": (10, 50)}
"""Twelve settings, about as many as for linear rankers, with early stopping on validation data."""

MOST_ROUNDS = 500
PATIENCE = 50
"""Rounds without a better validation measure after which a fit stops."""


def fit_lightgbm(split: Split, grid: Mapping[str, tuple[Any, ...]] = TREES) -> Candidate:
    """Fit LightGBM's lambdarank, its parameters chosen on validation data."""

    def make(setting: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
        from lightgbm import LGBMRanker, early_stopping

        trees = LGBMRanker(
            objective="lambdarank",
            n_estimators=MOST_ROUNDS,
            learning_rate=setting["learning_rate"],
            num_leaves=setting["leaves"],
            min_child_samples=setting["least"],
            random_state=0,
            deterministic=True,
            force_row_wise=True,
            n_jobs=1,
            verbose=-1,
        )
        return trees, {"eval_at": [10], "callbacks": [early_stopping(PATIENCE, verbose=False)]}

    return _fit_trees(make, split, grid, "LightGBM")


def fit_xgboost(split: Split, grid: Mapping[str, tuple[Any, ...]] = TREES) -> Candidate:
    """Fit XGBoost's LambdaMART, its parameters chosen on validation data."""

    def make(setting: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
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
        return trees, {"verbose": False}

    return _fit_trees(make, split, grid, "XGBoost")


def fit_single_feature(split: Split) -> Candidate:
    """Return the feature and direction with the best measure on the training data."""
    started = time.perf_counter()
    judge, train, n_features = split.judge, split.train, split.train.n_features
    signs = [(feature, sign) for feature in range(n_features) for sign in (1.0, -1.0)]
    worth = judge.worth(
        [judge.value(train, column_values(train.X, feature) * sign) for feature, sign in signs]
    )
    feature, sign = signs[best_of(worth)]
    model = Model(n_features, {feature: Line(sign)}, train.feature_names)
    values = split.values(column_values(split.validation.X, feature) * sign)
    parameters = {"feature": feature, "direction": int(sign)}
    seconds = time.perf_counter() - started
    return Candidate.of(
        "bestfeature", parameters, model, values, seconds=seconds, n_trials=len(signs)
    )


class _Trees:
    """An ensemble of trees with the methods of a model that a comparison needs."""

    def __init__(self, trees: Any, normalizer: Any) -> None:
        self.trees = trees
        self.normalizer = normalizer

    def predict(self, data: RankingData) -> FloatArray:
        seen = data if self.normalizer is None else self.normalizer.transform(data)
        return np.asarray(self.trees.predict(seen.X), dtype=np.float64)

    @property
    def n_nonzero(self) -> int:
        return int(np.count_nonzero(self.trees.feature_importances_))


def _fit_trees(
    make: Callable[[Mapping[str, Any]], tuple[Any, dict[str, Any]]],
    split: Split,
    grid: Mapping[str, tuple[Any, ...]],
    name: str,
) -> Candidate:
    train, held_out = split.scaled
    labels = np.concatenate([train.y, held_out.y])
    if not np.all((labels >= 0) & (labels == np.round(labels)) & (labels <= 30)):
        raise InputError(f"{name} takes whole labels from 0 to 30 only: leave this system out")

    def fit(setting: Mapping[str, Any]) -> _Trees:
        trees, options = make(setting)
        sizes = {"group": np.diff(train.query_ptr), "eval_group": [np.diff(held_out.query_ptr)]}
        trees.fit(train.X, train.y, eval_set=[(held_out.X, held_out.y)], **sizes, **options)
        return _Trees(trees, split.normalizer)

    def judged(setting: Mapping[str, Any]) -> Candidate:
        trees = fit(setting)
        return Candidate.of(name, setting, trees, split.values(trees.predict(split.validation)))

    return fit_again(map(judged, Space("", {}, grid).settings()), fit, split.judge)


PEERS = {
    "lightgbm": ("LightGBM", fit_lightgbm),
    "xgboost": ("XGBoost", fit_xgboost),
    "bestfeature": ("best feature", fit_single_feature),
}
PACKAGES = ("lightgbm", "xgboost")
"""Peers that need a package, which may not be installed."""
