"""Many models from one fit, where a ranker gives them: a path of strengths, every size of a subset.

A sweep yields, for one setting of a ranker, parameters and the validation scores of their model.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData


class Scored(NamedTuple):
    """Parameters beside the setting, the scores of their model, and how many features it uses."""

    parameters: dict[str, Any]
    scores: FloatArray
    n_features: int


class Sweep(Protocol):
    """How the models of one setting are made."""

    def __call__(
        self, ranker: Any, train: RankingData, validation: RankingData
    ) -> Iterator[Scored]:
        """Fit on the training data, and score the validation data by each model."""


@dataclass(frozen=True)
class Fits:
    """One fit, one model; it stops on the validation data if the ranker can."""

    def __call__(
        self, ranker: Any, train: RankingData, validation: RankingData
    ) -> Iterator[Scored]:
        """Fit, and score the validation data."""
        fit_model(ranker, train, validation)
        yield Scored({}, ranker.predict(validation), count_features(ranker))


@dataclass(frozen=True)
class AlphaPath:
    """The ranker's own path of strengths, each model started from the one before.

    Attributes
    ----------
    alphas : tuple of float, optional
        By default ``n_alphas`` from alpha_max, where the first feature enters, down to
        ``alpha_min_ratio`` times it.
    """

    alphas: tuple[float, ...] | None = None
    n_alphas: int = 16
    alpha_min_ratio: float = 1e-3

    def __call__(
        self, ranker: Any, train: RankingData, validation: RankingData
    ) -> Iterator[Scored]:
        """Follow the path, and score the validation data by each of its models."""
        if self.alphas is None:
            path = ranker.path(train, n_alphas=self.n_alphas, alpha_min_ratio=self.alpha_min_ratio)
        else:
            path = ranker.path(train, alphas=self.alphas)
        for alpha, coef in zip(path.alphas, path.coefs, strict=True):
            yield _linear({"alpha": float(alpha)}, coef, validation)


@dataclass(frozen=True)
class Sizes:
    """Every number of features up to ``most``, from one greedy fit."""

    most: int = 50

    def __call__(
        self, ranker: Any, train: RankingData, validation: RankingData
    ) -> Iterator[Scored]:
        """Select features one by one, and score the validation data by each size."""
        ranker.set_params(n_features_to_select=min(self.most, train.n_features)).fit(train)
        for size, coef in enumerate(ranker.coef_path_, 1):
            yield _linear({"n_features_to_select": size}, coef, validation)


def fit_model(ranker: Any, train: RankingData, validation: RankingData) -> Any:
    """Fit, with the validation data beside it where the ranker can use them.

    Some stop by them; one that learns from documents without labels gets these without theirs.
    """
    beside = {"validation": validation, "unlabeled": validation}
    return ranker.fit(train, **{k: v for k, v in beside.items() if takes(ranker, k)})


def takes(ranker: Any, name: str) -> bool:
    """Tell whether ``fit`` has a parameter, of its own or handed on to the class above."""
    for kind in type(ranker).__mro__:
        if "fit" in vars(kind):
            parameters = inspect.signature(vars(kind)["fit"]).parameters
            if name in parameters:
                return True
            if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
                return False
    return False


def count_features(ranker: Any) -> int:
    """Count the features that a fitted ranker uses."""
    return round(float(ranker.sparsity_) * int(ranker.n_features_in_))


def _linear(parameters: dict[str, Any], coef: FloatArray, validation: RankingData) -> Scored:
    used = np.flatnonzero(coef)
    with np.errstate(over="ignore", invalid="ignore"):  # a model that diverged is not chosen
        scores = np.asarray(validation.X[:, used] @ coef[used])
    return Scored(parameters, scores, len(used))
