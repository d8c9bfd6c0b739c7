"""Studies for a report: of an existing model, with baselines, paths, stability and bands."""

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
from leanrank.registry import SYSTEMS, classes
from leanrank.selection.candidate import Candidate, describe
from leanrank.selection.costs import Costs
from leanrank.selection.engine import Split
from leanrank.selection.study import Study
from leanrank.selection.systems import fit_system

BASELINES = {"bestfeature": "best feature", "rankrls": "RankRLS, all features"}
LEAST_POINTS = 5
MOST_PATHS = 6


def study_of_model(
    model: Model,
    training: RankingData,
    validation: RankingData,
    *,
    measure: str = "ndcg@10",
    measures: Sequence[str] = ("ndcg@10", "map"),
    convention: str = "standard",
    costs: Costs | None = None,
    history: Sequence[Mapping[str, Any]] | None = None,
) -> Study:
    """Measure a model and simple baselines on validation data.

    Parameters
    ----------
    model : Model
        Such as ``ranker.to_model()`` or ``load_model(path)`` gives.
    training : RankingData
        What the model was fitted to; the baselines are fitted to it as well.
    validation : RankingData
    measure, convention : str
    measures : sequence of str
        What else to measure.
    costs : Costs, optional
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
    # rankers see features as the model does: baselines and stability are then about the same
    normalizer = None if model.normalizer is None else normalizer_from_dict(model.normalizer)
    names = tuple(dict.fromkeys([measure, *measures]))
    split = Split(training, validation, measure, convention, normalizer=normalizer)
    made = model.provenance
    algorithm = str(made.get("algorithm", type(model).__name__))
    parameters = _telling(algorithm, dict(made.get("parameters") or {}))
    one = _candidate(split, algorithm, parameters, model, names, costs)
    return Study(
        measure=measure,
        convention=convention,
        candidates=[one],
        chosen=one,
        training=training,
        validation=validation,
        measures=names,
        feature_names=model.feature_names or training.feature_names,
        costs=costs,
        baselines=measure_baselines(split, names),
        history=history,
        normalizer=normalizer,
    )


def with_stability(study: Study, *, n_subsamples: int = 20, n_jobs: int | None = None) -> Study:
    """Add how often subsamples of the training queries choose each feature.

    The chosen model's ranker is fitted again with its parameters. The study is returned unchanged
    if that does not give about the same features on all training queries (a model made by hand, or
    fitted to features chosen otherwise), or if half of the queries are too few.
    """
    from leanrank.selection.subsampling import stability

    found = _refitted(study, partial(stability, n_subsamples=n_subsamples, n_jobs=n_jobs))
    return study if found is None else replace(study, stability=found)


def with_bands(study: Study, *, n_draws: int = 20, n_jobs: int | None = None) -> Study:
    """Add models of queries drawn again, for bands around the curves of the chosen model.

    The features are those of the model: a band is about the curves, not about their choice. The
    study is returned unchanged if the model has no curves but lines, or if its ranker and
    parameters do not give it again.
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
    """Fit the chosen model's ranker to other queries; None if it does not give the model again.

    ``given`` are parameters for it, where it has them and they were not set.
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
    """Add the models of the chosen one's ranker at other strengths, to choose from.

    A study whose ranker has no path, or whose path has no start, is returned unchanged.
    """
    ranker = _ranker_of(study.chosen)
    follow = getattr(ranker, "path", None)
    if follow is None or "n_alphas" not in inspect.signature(follow).parameters:
        return study  # nothing enters one by one along a ridge
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path: Path = follow(study.split.scaled[0], n_alphas=n_alphas)
    except InputError:  # such as a penalty without a strength at which everything is zero
        return study
    path = replace(path, template=None, normalizer=study.normalizer)  # models of raw features
    found = []
    for at, alpha in enumerate(path.alphas.tolist()):
        if path.coefs[at].any():
            model = path.model(at, feature_names=study.feature_names)
            parameters = {**study.chosen.parameters, "alpha": alpha}
            algorithm, measures = study.chosen.algorithm, study.measures
            one = _candidate(study.split, algorithm, parameters, model, measures, study.costs)
            found.append(one)
    return replace(
        study,
        candidates=[*study.candidates, *found],
        paths={**study.paths, study.chosen.algorithm: path},
    )


def _candidate(
    split: Split,
    algorithm: str,
    parameters: Mapping[str, Any],
    model: Model,
    measures: Sequence[str],
    costs: Costs | None,
) -> Candidate:
    values = split.judge.per_query(split.validation, model.predict(split.validation), measures)
    return Candidate.of(algorithm, parameters, model, values, costs)


def _ranker_of(one: Candidate) -> Any:
    """Make the ranker of a candidate again, unfitted; None if it is not one of ours."""
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
    """Return whether two models share most of their features; solvers differ in the last ones."""
    return len(np.intersect1d(first, second)) >= 0.8 * len(np.union1d(first, second))


def _check_names(model: Model, data: RankingData) -> None:
    if model.n_features != data.n_features:
        raise InputError(
            f"the model has {model.n_features} features, the data {data.n_features}: give the data "
            "that it was fitted to"
        )
    both = model.feature_names is not None and data.feature_names is not None
    if both and model.feature_names != data.feature_names:
        raise InputError("the data name or order their features otherwise than the model does")


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


def measure_baselines(
    split: Split, measures: Sequence[str], n_folds: int = 5
) -> dict[str, dict[str, FloatArray]]:
    """Measure what every model should beat, on the validation part.

    Where that is the training part itself, every query is judged by baselines that were fitted
    without it, as the models are.
    """
    data = split.validation
    if data is not split.train:
        return {
            name: split.judge.per_query(data, baseline.predict(data), measures)
            for name, baseline in fit_baselines(split).items()
        }
    groups = np.random.default_rng(0).permutation(data.n_queries) % n_folds
    scores: dict[str, FloatArray] = {}
    for group in range(n_folds):
        kept, held = data.queries[groups != group], data.queries[groups == group]
        if not kept.informative.any() or not held.n_queries:
            continue
        rows = np.repeat(groups == group, np.diff(data.query_ptr))
        for name, one in fit_baselines(replace(split, train=kept, validation=held)).items():
            scores.setdefault(name, np.zeros(len(data)))[rows] = one.predict(held)
    return {name: split.judge.per_query(data, each, measures) for name, each in scores.items()}


def fit_baselines(split: Split) -> dict[str, Any]:
    """Fit what every model should beat; one that cannot be fitted is left out."""
    found = {}
    for system, name in BASELINES.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = fit_system(system, split).model
        except InputError:  # such as labels that nothing ranks
            continue
    return found


def find_paths(study: Study) -> dict[str, Path]:
    """Return paths by their display name.

    Where a study has none, linear candidates of one algorithm that differ in alpha only are put
    together; the longest ones are kept.
    """
    if study.paths:
        return dict(list(study.paths.items())[:MOST_PATHS])
    groups: dict[str, dict[float, Candidate]] = {}
    for one in study.candidates:
        alpha = one.parameters.get("alpha")
        point = _is_plain(one) and one.model.is_linear
        if point and isinstance(alpha, float) and alpha > 0:
            groups.setdefault(_name(one), {}).setdefault(alpha, one)
    long_enough = {name: each for name, each in groups.items() if len(each) >= LEAST_POINTS}
    longest = sorted(long_enough, key=lambda name: -len(long_enough[name]))[:MOST_PATHS]
    return {name: _path(long_enough[name]) for name in longest}


def path_of(one: Candidate, paths: Mapping[str, Path]) -> str | None:
    """Return the name of the path that a candidate lies on."""
    alpha = one.parameters.get("alpha") if _is_plain(one) else None
    for name in (_name(one), one.algorithm):
        path = paths.get(name)
        if path is not None and alpha is not None and _spans(path, float(alpha)):
            return name
    return None


def _is_plain(one: Candidate) -> bool:
    """Return whether a candidate is determined by its parameters. Others, fitted to some of the
    features only, have a name of their own.
    """
    return one.name == describe(one.algorithm, one.parameters)


def _spans(path: Path, alpha: float) -> bool:
    return float(path.alphas.min()) * 0.999 <= alpha <= float(path.alphas.max()) * 1.001


def _name(one: Candidate) -> str:
    return describe(one.algorithm, {k: v for k, v in one.parameters.items() if k != "alpha"})


def _path(points: Mapping[float, Any]) -> Path:
    alphas = np.array(sorted(points, reverse=True))
    unknown = np.full(len(alphas), np.nan)
    normalizer = points[alphas[0]].model.normalizer
    return Path(
        alphas=alphas,
        coefs=np.array([points[alpha].model.coef for alpha in alphas.tolist()]),
        dual_gaps=unknown,
        objectives=unknown,
        n_iters=np.zeros(len(alphas), dtype=np.int64),
        normalizer=None if normalizer is None else normalizer_from_dict(normalizer),
    )
