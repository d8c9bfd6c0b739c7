"""Studies for reports: of an existing model, with baselines, paths, stability and bands."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.normalizers import normalizer_from_dict
from leanrank.errors import InputError
from leanrank.model.model import Model
from leanrank.rankers.path import Path
from leanrank.registry import SYSTEMS, AlphaPath, classes
from leanrank.selection.candidate import Candidate, describe
from leanrank.selection.costs import feature_costs
from leanrank.selection.engine import Split, fitted
from leanrank.selection.folds import QueryKFold, whole_query_folds
from leanrank.selection.study import Study
from leanrank.selection.systems import fit_system

BASELINES = {"bestfeature": "best feature", "rankrls": "RankRLS, all features"}
"""Baselines that every model should beat, with their names in the report."""

LEAST_POINTS = 3
"""Fewest strengths of candidates that are drawn as a path."""


def study_of_model(
    model: Model,
    training: RankingData,
    validation: RankingData,
    *,
    measure: str = "ndcg@10",
    measures: Sequence[str] = ("ndcg@10", "map"),
    convention: str = "standard",
    costs: Any = None,
    history: Sequence[Mapping[str, Any]] | None = None,
) -> Study:
    """Measure a model and simple baselines on validation data.

    Parameters
    ----------
    model : Model
        Such as ``ranker.to_model()`` or ``load_model(path)`` gives.
    training : RankingData
        The training data of the model, to which the baselines are fitted as well.
    validation : RankingData
    measure, convention : str
    measures : sequence of str
        Other measures.
    costs : array-like or dict by feature, optional
    history : list of dict, optional
        A learning curve.

    Examples
    --------
    >>> from leanrank.rankers import DominationRanker
    >>> from leanrank.data import make_ranking
    >>> train, vali = (make_ranking(n_queries=30, random_state=seed) for seed in (0, 1))
    >>> model = DominationRanker(alpha=0.2).fit(train).to_model()
    >>> study_of_model(model, train, vali)
    Study: 1 candidates by ndcg@10 (standard), 1 on the front, chosen: DominationRanker alpha=0.2
    """
    if model.n_nonzero == 0:
        raise InputError("the model uses no feature: there is nothing to report")
    _check_names(model, training)
    # baselines and refits use the normalised features of the model
    normalizer = None if model.normalizer is None else normalizer_from_dict(model.normalizer)
    names = tuple(dict.fromkeys([measure, *measures]))
    split = Split(training, validation, measure, convention, normalizer=normalizer)
    algorithm = str(model.provenance.get("algorithm", type(model).__name__))
    parameters = _telling(algorithm, dict(model.provenance.get("parameters") or {}))
    called = model.feature_names or training.feature_names
    costs = feature_costs(costs, called, training.n_features)
    values = split.judge.per_query(validation, model.predict(validation), names)
    one = Candidate.of(algorithm, parameters, model, values, costs)
    return Study(
        measure=measure,
        convention=convention,
        candidates=[one],
        chosen=one,
        training=training,
        validation=validation,
        measures=names,
        feature_names=called,
        costs=costs,
        baselines=measure_baselines(split, names),
        history=history,
        normalizer=normalizer,
    )


def with_stability(study: Study, *, n_subsamples: int = 20, n_jobs: int | None = None) -> Study:
    """Return the study with the share of subsamples of training queries that choose each feature.

    The chosen model's ranker is fitted again with its parameters. The study is returned unchanged
    if a fit to all training queries does not give about the same features (as for a model made by
    hand, or fitted to selected features), or if half of the queries are too few.
    """
    from leanrank.selection.subsampling import stability

    found = _refitted(study, partial(stability, n_subsamples=n_subsamples, n_jobs=n_jobs))
    return study if found is None else replace(study, stability=found)


def with_bands(study: Study, *, n_draws: int = 20, n_jobs: int | None = None) -> Study:
    """Return the study with models of bootstrap samples, for bands around the chosen curves.

    The features are those of the model: a band shows the uncertainty of curves, not of their
    choice. The study is returned unchanged if all curves are lines, or if a refit does not
    reproduce the model.
    """
    from leanrank.selection.subsampling import bootstrap_models

    if study.chosen.model.is_linear:
        return study
    model = study.chosen.model
    factors = np.full(model.n_features, np.inf)
    factors[model.indices] = 1.0
    refit = partial(bootstrap_models, n_draws=n_draws, n_jobs=n_jobs)
    draws = _refitted(study, refit, penalty_factors=factors)
    return study if draws is None else replace(study, draws=list(map(study.split.joined, draws)))


def _refitted(study: Study, refit: Callable[[Any, RankingData], Any], **given: Any) -> Any:
    """Return the result of ``refit`` for the chosen model's ranker; None if it cannot reproduce it.

    ``given`` are parameters of the ranker, for those that were not set.
    """
    ranker = _ranker_of(study.chosen)
    if ranker is None:
        return None
    known = ranker.get_params()
    ranker.set_params(**{key: v for key, v in given.items() if known.get(key, 0) is None})
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            training = study.split.scaled[0]
            again = clone(ranker).fit(training).to_model().indices
            if not _about_the_same(again, study.chosen.model.indices):
                return None
            return refit(ranker, training)
    except InputError:  # such as a draw without information
        return None


def with_path(study: Study, *, n_alphas: int = 30) -> Study:
    """Return the study with models of the chosen ranker at other strengths.

    A study whose ranker has no path, or whose path has no start, is returned unchanged.
    """
    ranker, chosen, split = _ranker_of(study.chosen), study.chosen, study.split
    follow = getattr(ranker, "path", None)
    if follow is None or "n_alphas" not in inspect.signature(follow).parameters:
        return study  # along a ridge path, all features are always used
    found = list(study.candidates)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = list(fitted(AlphaPath(n_alphas=n_alphas), ranker, split))
    except InputError:  # such as a penalty without a strength at which everything is zero
        return study
    for own, model, scores in path:
        if model.n_nonzero and np.isfinite(scores).all():
            values = split.judge.per_query(study.validation, scores, study.measures)
            parameters = {**chosen.parameters, **own}
            joined = split.joined(model).replace(feature_names=study.feature_names)
            found.append(Candidate.of(chosen.algorithm, parameters, joined, values, study.costs))
    return replace(study, candidates=found)


def _ranker_of(one: Candidate) -> Any:
    """Return the unfitted ranker of a candidate, or None if it is not one of leanrank."""
    system = classes().get(one.algorithm) or SYSTEMS.get(one.algorithm)
    made = dict(one.model.provenance.get("parameters") or {}) | dict(one.parameters)
    if system is None or system.space is None:
        return None
    kind = system.load()
    known = kind().get_params()
    try:
        return kind(**{key: value for key, value in made.items() if key in known})
    except (TypeError, InputError):
        return None


def _about_the_same(first: IntArray, second: IntArray) -> bool:
    """Return whether two models share at least 80% of their features."""
    return len(np.intersect1d(first, second)) >= 0.8 * len(np.union1d(first, second))


def _check_names(model: Model, data: RankingData) -> None:
    if model.n_features != data.n_features:
        raise InputError(
            f"the model has {model.n_features} features but the data have {data.n_features}: give "
            "its training data"
        )
    both = model.feature_names is not None and data.feature_names is not None
    if both and model.feature_names != data.feature_names:
        raise InputError(
            "the features of the data have other names or another order: give the "
            "training data of the model"
        )


def _telling(algorithm: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that differ from their defaults, and the strength."""
    system = classes().get(algorithm)
    usual = {} if system is None else system.load()().get_params()
    strengths = ("alpha", "radius", "n_features_to_select")
    return {
        key: value
        for key, value in parameters.items()
        if key in strengths or (key in usual and value != usual[key])
    }


def measure_baselines(split: Split, measures: Sequence[str]) -> dict[str, dict[str, FloatArray]]:
    """Return the measures of the baselines on the validation part.

    If that is the training part itself, every query is measured with baselines that were fitted
    without it, as the models are.
    """
    data, models = split.validation, fit_baselines(split)
    scores = {name: one.predict(data) for name, one in models.items()}
    n_folds = min(5, data.n_queries) if data is split.train else 0
    for fold in whole_query_folds(data, QueryKFold(n_folds)) if n_folds > 1 else []:
        held_out = data.queries[fold.test]
        part = replace(split, train=data.queries[fold.train], validation=held_out)
        rows = np.repeat(fold.test, np.diff(data.query_ptr))
        for name, one in zip(models, fit_baselines(part).values(), strict=False):
            scores[name][rows] = one.predict(held_out)
    return {name: split.judge.per_query(data, each, measures) for name, each in scores.items()}


def fit_baselines(split: Split) -> dict[str, Any]:
    """Return fitted baselines; one that cannot be fitted is left out."""
    found = {}
    for system, name in BASELINES.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = fit_system(system, split).model
        except InputError:  # such as labels that nothing ranks
            continue
        own = f", {model.term_names[0]}" if model.n_nonzero == 1 else ""
        found[name + own] = model
    return found


def known_path(study: Study) -> Path | None:
    """Return the path of the candidates that differ from the chosen one in strength, or None."""
    points: dict[float, Candidate] = {}
    for one in study.candidates:
        if is_on_path(one, study.chosen):
            points.setdefault(one.parameters["alpha"], one)
    if len(points) < LEAST_POINTS:
        return None
    alphas = np.array(sorted(points, reverse=True))
    weights = np.zeros((len(alphas), study.training.n_features))
    unknown = np.full(len(alphas), np.nan)
    for row, alpha in zip(weights, alphas.tolist(), strict=True):
        model = points[alpha].model
        row[model.indices] = model.values
    return Path(alphas, weights, unknown, unknown, np.zeros(len(alphas), dtype=np.int64))


def is_on_path(one: Candidate, chosen: Candidate) -> bool:
    """Return whether a candidate differs from the chosen one only in its strength.

    A candidate that was fitted to selected features has another name.
    """
    plain = one.name == describe(one.algorithm, one.parameters)
    same = {**chosen.parameters, "alpha": one.parameters.get("alpha")} == one.parameters
    return plain and same and one.algorithm == chosen.algorithm and "alpha" in one.parameters
