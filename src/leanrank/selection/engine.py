"""Fitting the models of a space, and choosing one: the engine of every search.

Rankers are fitted to normalised features. ``Split.joined`` adds the normaliser to a candidate's
model, which then takes unscaled features.
"""

from __future__ import annotations

import itertools
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.matrices import stacked
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.metrics.judge import Judge, best_of, ranks_something
from leanrank.model import Model, make_provenance
from leanrank.model.export.formula import in_units_of_data
from leanrank.rankers import get_ranker
from leanrank.rankers.knots import weights_model
from leanrank.rankers.path import alpha_grid
from leanrank.registry import AlphaPath, Fits, Front, Sizes, Space
from leanrank.selection.candidate import Candidate
from leanrank.selection.folds import QueryKFold, whole_query_folds

RIDGE_ALPHAS = (1e2, 1e-6)
"""Range of a path if no strength gives an empty model. As losses are means, it suits data of any
size."""


@dataclass(frozen=True, eq=False)
class Split:
    """Training and validation data, and the measure by which models are chosen.

    Parameters
    ----------
    train, validation : RankingData
        With unscaled features.
    measure : str or tuple of str, default="map"
        As for ``leanrank.metrics.evaluate``; of several, the mean counts. Rankers with early
        stopping use the same measure.
    convention : str, default="standard"
    average_ties : bool, default=True
        As for ``leanrank.metrics.judge.Judge``.
    normalizer : Normalizer, optional
        A fitted normaliser. Rankers are fitted to normalised features; models contain it.
    gain_weight : array, optional
        As for ``fit``: one weight per training document, in the order of ``train``.
    """

    train: RankingData
    validation: RankingData
    measure: str | tuple[str, ...] = "map"
    convention: str = "standard"
    average_ties: bool = True
    normalizer: Any = None
    gain_weight: FloatArray | None = None

    @property
    def judge(self) -> Judge:
        """The judge of the models."""
        return Judge(self.measure, self.convention, self.average_ties)

    @cached_property
    def scaled(self) -> tuple[RankingData, RankingData]:
        """Training and validation data as rankers see them."""
        if self.normalizer is None:
            return self.train, self.validation
        train = self.normalizer.transform(self.train)
        if self.validation is self.train:
            return train, train
        return train, self.normalizer.transform(self.validation)

    @property
    def weights(self) -> dict[str, Any]:
        """The gain weights as an argument of ``fit``, if there are any."""
        return {} if self.gain_weight is None else {"gain_weight": self.gain_weight}

    def value(self, scores: FloatArray) -> float:
        """Return the measure of scores of the validation data; NaN for scores that rank nothing."""
        return self.judge.value(self.validation, scores)

    def values(self, scores: FloatArray) -> dict[str, FloatArray]:
        """Return all measures on every validation query; all NaN if the scores rank nothing."""
        if ranks_something(scores, self.validation):
            return self.judge.per_query(self.validation, scores)
        return {name: np.full(self.validation.n_queries, np.nan) for name in self.judge.measures}

    def joined(
        self, model: Model, ranker: Any = None, parameters: Mapping[str, Any] | None = None
    ) -> Model:
        """Return a model of scaled features as one of unscaled features.

        A linear model gets the normaliser; curves and steps are converted to the units of the
        features, unless these are normalised per query. With its ranker and parameters given, a
        model of a path also gets names and provenance.
        """
        fields: dict[str, Any] = {}
        if ranker is not None:
            name = type(ranker).__name__
            made = model.provenance or make_provenance(algorithm=name, parameters=parameters)
            fields = {"feature_names": self.train.feature_names, "provenance": made}
        if self.normalizer is None:
            return model.replace(**fields)
        scaled = model.replace(normalizer=self.normalizer.to_dict(), **fields)
        return scaled if model.is_linear else in_units_of_data(scaled)


def fit_best(space: Space, split: Split) -> Candidate:
    """Fit all models of a space, and return the best one, fitted again to the training data.

    Examples
    --------
    >>> from leanrank.data import load_sample
    >>> from leanrank.registry import get_system
    >>> from leanrank.selection import Split, fit_best
    >>> train, vali, test = load_sample()
    >>> chosen = fit_best(get_system("rankrls").space, Split(train, vali, "ndcg@10"))
    >>> chosen.n_trials, sorted(chosen.parameters)
    (17, ['alpha'])
    """

    def fit(parameters: Mapping[str, Any]) -> Model:
        ranker = make_ranker(space, parameters, split.judge)
        return split.joined(fit_beside(ranker, *split.scaled, **split.weights).to_model())

    return fit_again(run_space(space, split), fit, split.judge)


def fit_again(
    candidates: Iterable[Candidate], fit: Callable[[Mapping[str, Any]], Any], judge: Judge
) -> Candidate:
    """Return the best candidate, fitted again, with the time and the warnings of this fit.

    ``candidates`` may be a generator, which fits them.
    """
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the extremes of a grid may not converge
        tried = list(candidates)
    best = best_candidate(tried, judge)
    searched = time.perf_counter() - started
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.perf_counter()
        model = fit(best.parameters)
        seconds = time.perf_counter() - started
    return replace(
        best,
        model=model,
        n_features=model.n_nonzero,
        seconds=seconds,
        n_trials=len(tried),
        search_seconds=searched,
        notes=tuple(dict.fromkeys(str(warning.message) for warning in caught)),
    )


def run_space(space: Space, split: Split) -> Iterator[Candidate]:
    """Yield the candidates of a space, setting by setting."""
    for setting in space.settings():
        yield from run_setting(space, setting, split)


def run_setting(space: Space, setting: Mapping[str, Any], split: Split) -> list[Candidate]:
    """Return the candidates of one setting of a space, one per model of its sweep."""
    ranker = make_ranker(space, {**space.fixed, **setting}, split.judge)
    found = []
    for own, model, scores in fitted(space.sweep, ranker, split):
        parameters = {**space.fixed, **setting, **own}
        joined = split.joined(model, ranker, parameters)
        found.append(Candidate.of(space.ranker, parameters, joined, split.values(scores)))
    return found


def best_candidate(candidates: Sequence[Candidate], judge: Judge) -> Candidate:
    """Return the candidate with the best measure; among equals the sparsest, then the first."""
    worth = judge.worth([one.value for one in candidates])
    return candidates[best_of(worth, [one.n_features for one in candidates])]


def make_ranker(
    space: Space, parameters: Mapping[str, Any], judge: Judge, n_jobs: int | None = 1
) -> Any:
    """Return an unfitted ranker, with the measure and convention of a judge."""
    kind = get_ranker(space.ranker)
    known = kind().get_params()
    own = {"measure": judge.measures[0], "convention": judge.rules, "n_jobs": n_jobs}
    return kind(**{**{k: v for k, v in own.items() if k in known}, **parameters})


def fitted(
    sweep: Fits | AlphaPath | Sizes | Front,
    ranker: Any,
    split: Split,
    *,
    alone: bool = False,
) -> Iterator[tuple[dict[str, Any], Model, FloatArray]]:
    """Fit a ranker to the training data; yield each model with parameters and validation scores.

    Parameters
    ----------
    sweep : Fits, AlphaPath, Sizes or Front
        The models that one fit gives.
    ranker : ranker
        An unfitted ranker, which is fitted.
    split : Split
    alone : bool
        Whether a ranker with early stopping uses some of the training queries for it instead of the
        validation data, which are then only used to judge.

    Yields
    ------
    parameters : dict
        The parameters that the sweep sets.
    model : Model
        A model of scaled features; without features if the fit diverged.
    scores : array
        Scores of the validation data; all NaN if one overflows.
    """
    data, held_out = split.scaled
    weights, scorer = split.weights, None
    if not isinstance(sweep, Fits):
        made = _path_models(sweep, ranker, data, weights)
    else:
        if alone:
            fit_alone(ranker, data, **weights)
        elif sweep.stop_early:
            fit_beside(ranker, data, held_out, **weights)
        else:
            ranker.fit(data, **weights)
        made, scorer = [({}, ranker.to_model())], ranker
    for own, model in made:
        try:
            scores = (model if scorer is None else scorer).predict(held_out)
        except InputError:  # a score overflows: such a model is not chosen
            scores = np.full(len(held_out), np.nan)
        yield own, model, scores


def fixed_strengths(sweep: Any, ranker: Any, split: Split) -> Any:
    """Return a sweep with the strengths for all training data, to use them on parts, too."""
    if not isinstance(sweep, AlphaPath) or sweep.alphas is not None:
        return sweep
    top, ratio = np.inf, sweep.alpha_min_ratio
    if hasattr(ranker, "alpha_max"):
        top = ranker.alpha_max(split.scaled[0], **split.weights)
    if np.isinf(top):
        top, ratio = RIDGE_ALPHAS[0], RIDGE_ALPHAS[1] / RIDGE_ALPHAS[0]
    return AlphaPath(tuple(alpha_grid(top, sweep.n_alphas, ratio).tolist()))


def same_strength(ranker: Any) -> dict[str, Any]:
    """Return parameters with which LeanRanker fits at the strength that it has chosen."""
    return {"n_folds": 1, "n_strengths": 2, "min_strength": min(1.0, ranker.strength_)}


def _path_models(
    sweep: AlphaPath | Sizes | Front, ranker: Any, train: RankingData, weights: Mapping[str, Any]
) -> list[tuple[dict[str, Any], Model]]:
    if isinstance(sweep, Front):
        ranker.fit(train, **weights)
        return [({"max_features": model.n_nonzero}, model) for model in ranker.front_models_]
    ramps = None
    if isinstance(sweep, Sizes):
        most = min(sweep.most, train.n_features)
        ranker.set_params(n_features_to_select=most).fit(train, **weights)
        name, along, coefs = "n_features_to_select", itertools.count(1), ranker.coef_path_
    else:
        how: dict[str, Any] = {"alphas": sweep.alphas}
        if sweep.alphas is None:
            how = {"n_alphas": sweep.n_alphas, "alpha_min_ratio": sweep.alpha_min_ratio}
        path = ranker.path(train, **how, **weights)
        name, along, coefs, ramps = "alpha", path.alphas.tolist(), path.coefs, path.ramps
    return [
        ({name: at}, weights_model(w if np.isfinite(w).all() else np.zeros_like(w), ramps))
        for at, w in zip(along, coefs, strict=False)
    ]


def fit_beside(ranker: Any, train: RankingData, validation: RankingData, **weights: Any) -> Any:
    """Fit a ranker, with validation data if it uses them for early stopping.

    A ranker that learns from unlabelled documents gets them without labels.
    """
    if ranker._takes_unlabeled:
        train = joined_sets(train, validation.replace(y=np.full(len(validation), np.nan)))
    used = {"validation": validation} if ranker._takes_validation else {}
    return ranker.fit(train, **used, **weights)


def fit_alone(ranker: Any, data: RankingData, *, n_folds: int = 5, **weights: Any) -> None:
    """Fit a ranker; one with early stopping uses one of ``n_folds`` groups of the queries for it.

    These queries determine the number of rounds, with which the ranker is then fitted to all of
    the data. So the queries that judge a model have no influence on its fit.
    """
    if ranker._takes_validation:
        ranker.set_params(**_rounds(ranker, data, min(n_folds, data.n_queries), **weights))
    ranker.fit(data, **weights)


def _rounds(ranker: Any, data: RankingData, n_folds: int, **weights: Any) -> dict[str, int | None]:
    """Return parameters with the number of rounds or passes that is best on held-out queries."""
    if n_folds > 1:
        fold = whole_query_folds(data, QueryKFold(n_folds, stratify=True))[0]
        rest, inner = data.queries[fold.train], data.queries[fold.test]
        if rest.informative.any() and inner.informative.any():
            rows = np.repeat(fold.train, np.diff(data.query_ptr))
            fit_beside(ranker, rest, inner, **{k: v[rows] for k, v in weights.items()})
            if hasattr(ranker, "best_epoch_"):
                return {"patience": None, "epochs": ranker.best_epoch_}
            n_rounds = {"n_rounds": ranker.n_iter_} if hasattr(ranker, "n_rounds") else {}
            return {"patience": None, **(n_rounds if ranker.n_iter_ else {})}
    # there are too few queries
    return {} if getattr(ranker, "_stops_by_training", False) else {"patience": None}


def joined_sets(*parts: RankingData) -> RankingData:
    """Return the queries of all data sets; queries with equal identifiers remain distinct.

    >>> one = RankingData([[1.0], [2.0]], [0, 1], qid=["a", "a"])
    >>> joined_sets(one, one).n_queries
    2
    """

    def joined(name: str, size: Any) -> Any:
        each = [getattr(part, name) for part in parts]
        if all(values is None for values in each):
            return None
        empty = 0.0 if name == "offset" else 1.0
        filled = zip(parts, each, strict=True)
        return np.concatenate([np.full(size(p), empty) if v is None else v for p, v in filled])

    return RankingData(
        stacked([part.X for part in parts]),
        np.concatenate([part.y for part in parts]),
        group=np.concatenate([np.diff(part.query_ptr) for part in parts]),
        feature_names=parts[0].feature_names,
        sample_weight=joined("sample_weight", len),
        query_weight=joined("query_weight", lambda data: data.n_queries),
        offset=joined("offset", len),
    )
