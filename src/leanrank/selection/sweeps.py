"""The models that one fit gives: one, a path of strengths, or every size of a selection."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.registry import AlphaPath, Fits, Sizes


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
    for parameters, coef in sweep_weights(sweep, ranker, train):
        used = np.flatnonzero(coef)
        with np.errstate(over="ignore", invalid="ignore"):  # a model that diverged is not chosen
            scores = np.asarray(validation.X[:, used] @ coef[used])
        yield Scored(parameters, scores, len(used))


def sweep_weights(
    sweep: AlphaPath | Sizes, ranker: Any, train: RankingData
) -> list[tuple[dict[str, Any], FloatArray]]:
    """Return the parameters and weights of all models along a path."""
    if isinstance(sweep, Sizes):
        ranker.set_params(n_features_to_select=min(sweep.most, train.n_features)).fit(train)
        return [({"n_features_to_select": k}, w) for k, w in enumerate(ranker.coef_path_, 1)]
    if sweep.alphas is None:
        path = ranker.path(train, n_alphas=sweep.n_alphas, alpha_min_ratio=sweep.alpha_min_ratio)
    else:
        path = ranker.path(train, alphas=sweep.alphas)
    return [({"alpha": float(a)}, w) for a, w in zip(path.alphas, path.coefs, strict=True)]


def fit_model(ranker: Any, train: RankingData, validation: RankingData) -> Any:
    """Fit, and pass the validation data where the ranker can use them.

    Some rankers stop by them; one that learns from unlabelled documents gets them without labels.
    """
    beside = {"validation": validation, "unlabeled": validation}
    return ranker.fit(train, **{k: v for k, v in beside.items() if takes(ranker, k)})


def takes(ranker: Any, name: str) -> bool:
    """Return whether ``fit`` uses "validation" data or "unlabeled" documents."""
    return bool(getattr(ranker, f"takes_{name}", False))


def count_features(ranker: Any) -> int:
    """Count the features that a fitted ranker uses."""
    return round(float(ranker.sparsity_) * int(ranker.n_features_in_))
