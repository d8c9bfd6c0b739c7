"""The models that one fit gives: one, a path of strengths, or every size of a selection."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.model import Model
from leanrank.rankers.curves import weights_model
from leanrank.registry import AlphaPath, Fits, Sizes
from leanrank.selection.cross_validation.splits import QueryKFold, whole_query_folds


class Scored(NamedTuple):
    """Parameters beside the setting, the scores of their model, and how many features it uses."""

    parameters: dict[str, Any]
    scores: FloatArray
    n_features: int


def sweep_models(
    sweep: Fits | AlphaPath | Sizes, ranker: Any, train: RankingData, validation: RankingData
) -> Iterator[Scored]:
    """Fit on the training data, and score the validation data by each resulting model."""
    if isinstance(sweep, Fits):
        if sweep.stop_early:
            fit_model(ranker, train, validation)
        else:
            ranker.fit(train)
        yield Scored({}, ranker.predict(validation), count_features(ranker))
        return
    for parameters, model in path_models(sweep, ranker, train):
        try:
            scores = model.predict(validation)
        except InputError:  # too large for a number: such a model is not chosen
            scores = np.full(len(validation), np.nan)
        yield Scored(parameters, scores, model.n_nonzero)


def path_models(
    sweep: AlphaPath | Sizes, ranker: Any, train: RankingData
) -> list[tuple[dict[str, Any], Model]]:
    """Return the parameters and models along a path; one that diverged uses no feature."""
    ramps = None
    if isinstance(sweep, Sizes):
        ranker.set_params(n_features_to_select=min(sweep.most, train.n_features)).fit(train)
        name, along, coefs = "n_features_to_select", itertools.count(1), ranker.coef_path_
    else:
        how = {"n_alphas": sweep.n_alphas, "alpha_min_ratio": sweep.alpha_min_ratio}
        path = ranker.path(train, **(how if sweep.alphas is None else {"alphas": sweep.alphas}))
        name, along, coefs, ramps = "alpha", path.alphas.tolist(), path.coefs, path.ramps
    return [
        ({name: at}, weights_model(w if np.isfinite(w).all() else np.zeros_like(w), ramps))
        for at, w in zip(along, coefs, strict=False)
    ]


def fit_model(ranker: Any, train: RankingData, validation: RankingData) -> Any:
    """Fit, and pass the validation data where the ranker can use them.

    Some rankers stop by them; one that learns from unlabelled documents gets them without labels.
    """
    beside = {"validation": validation, "unlabeled": validation}
    return ranker.fit(train, **{k: v for k, v in beside.items() if takes(ranker, k)})


def fit_alone(ranker: Any, data: RankingData, *, n_folds: int = 5) -> None:
    """Fit; a ranker that stops by validation data gets one of ``n_folds`` groups of queries for it.

    They come from its own data: the queries that judge a model must not influence its fit. They
    decide for how many rounds the ranker is then fitted to all of its data.
    """
    if takes(ranker, "validation"):
        ranker.set_params(**_rounds(ranker, data, min(n_folds, data.n_queries)))
    ranker.fit(data)


def _rounds(ranker: Any, data: RankingData, n_folds: int) -> dict[str, int | None]:
    """Return the parameters that repeat the rounds or passes which held-out queries prefer."""
    if n_folds > 1:
        fold = whole_query_folds(data, QueryKFold(n_folds, stratify=True))[0]
        rest, inner = data.queries[fold.train], data.queries[fold.test]
        if rest.informative.any() and inner.informative.any():
            fit_model(ranker, rest, inner)
            if hasattr(ranker, "best_epoch_"):
                return {"patience": None, "epochs": ranker.best_epoch_}
            n_rounds = {"n_rounds": ranker.n_iter_} if hasattr(ranker, "n_rounds") else {}
            return {"patience": None, **(n_rounds if ranker.n_iter_ else {})}
    # too few queries to judge by
    return {} if getattr(ranker, "stops_by_training", False) else {"patience": None}


def takes(ranker: Any, name: str) -> bool:
    """Return whether ``fit`` uses "validation" data or "unlabeled" documents."""
    return bool(getattr(ranker, f"takes_{name}", False))


def count_features(ranker: Any) -> int:
    """Count the features that a fitted ranker uses."""
    return round(float(ranker.sparsity_) * int(ranker.n_features_in_))
