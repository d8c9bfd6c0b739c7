"""One trial of a search: fit the models of one setting, and judge each on queries it has not seen.

A trial fits on the training part, which gives the models and their values on the validation part,
and again without each of a few groups of training queries, which gives values on those.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.data.normalize import make_normalizer
from leanrank.data.ranking_data import RankingData
from leanrank.execution import make_executor
from leanrank.metrics.judge import Judge, ranks_something
from leanrank.model import Model, make_provenance
from leanrank.registry import AlphaPath, Fits, Space
from leanrank.selection.candidate import Candidate, describe
from leanrank.selection.costs import Costs
from leanrank.selection.splits import QueryKFold, whole_query_folds
from leanrank.selection.sweeps import fit_model, path_models, takes
from leanrank.selection.validation import Split, make_ranker


@dataclass(frozen=True, eq=False)
class Task:
    """Data to learn from and to judge by, and what counts.

    Attributes
    ----------
    training : RankingData
    validation : RankingData or None
        None: models are judged on the training queries only, each by a model fitted without it.
    measure : str
        What is optimised.
    measures : tuple of str
        All that are measured.
    kept : tuple of str
        Those that are kept for the training queries as well: what a choice can go by.
    convention : str
    costs : Costs or None
    n_jobs : int
        Threads; nothing depends on it.
    unscaled : RankingData or None
        The training data before they were scaled, where they were.
    scale : str or None
        The normaliser, refitted without each group, so that the queries that judge do not affect
        it.
    n_folds : int or None
        Groups of training queries; None is 4 with a validation part, 5 without.
    beat : callable
        Called repeatedly while fitting, with whether the fit must end with a model; may raise
        OutOfTimeError.
    """

    training: RankingData
    validation: RankingData | None
    measure: str = "ndcg@10"
    measures: tuple[str, ...] = ("ndcg@10",)
    kept: tuple[str, ...] = ("ndcg@10",)
    convention: str = "standard"
    costs: Costs | None = None
    n_jobs: int | None = 1
    unscaled: RankingData | None = None
    scale: str | None = None
    n_folds: int | None = None
    beat: Callable[[bool], None] = field(default=lambda needed: None)

    @cached_property
    def folds(self) -> IntArray:
        """The group of each training query; -1 for a single query, which cannot be left out."""
        n_queries = self.training.n_queries
        n_folds = min(self.n_folds or (5 if self.validation is None else 4), n_queries)
        groups = np.full(n_queries, -1)
        if n_folds > 1:
            cut = QueryKFold(n_folds, stratify=True)
            for group, fold in enumerate(whole_query_folds(self.training, cut)):
                groups[fold.test] = group
        return groups

    @cached_property
    def parts(self) -> list[tuple[RankingData, RankingData, BoolArray]]:
        """For each group, the other training queries, its own, and which rows these are."""
        data = self.training if self.unscaled is None else self.unscaled
        sizes = np.diff(data.query_ptr)
        found = []
        for group in range(int(self.folds.max(initial=-1)) + 1):
            inside = self.folds == group
            rest, mine = data.queries[~inside], data.queries[inside]
            if self.scale is not None:
                normalizer = make_normalizer(self.scale).fit(rest)
                rest, mine = normalizer.transform(rest), normalizer.transform(mine)
            found.append((rest, mine, np.repeat(inside, sizes)))
        return found

    @cached_property
    def split(self) -> Split:
        """The data as a split, for rankers that stop by validation data and for the judge."""
        return Split(self.training, self.validation or self.training, self.measure, self.convention)

    @property
    def judge(self) -> Judge:
        """The judge of the models; ties are averaged over their orders."""
        return self.split.judge

    def candidate(
        self,
        algorithm: str,
        parameters: Mapping[str, Any],
        model: Model,
        training_values: Mapping[str, FloatArray],
        seconds: float | None = None,
    ) -> Candidate | None:
        """Judge a model; None if it ranks nothing, which a measure may still credit."""
        judged_by = self.validation or self.training
        scores = _scores(model, judged_by)
        if scores is None or not ranks_something(scores, judged_by):
            return None
        if self.validation is None:
            values, training_values = dict(training_values), {}
        else:
            values = self.judge.per_query(self.validation, scores, self.measures)
        used = model.indices
        return Candidate(
            name=describe(algorithm, parameters),
            algorithm=algorithm,
            parameters=dict(parameters),
            model=model,
            values=values,
            n_features=len(used),
            cost=float(len(used)) if self.costs is None else self.costs.of(used),
            training_values=dict(training_values),
            seconds=seconds,
        )


class OutOfTimeError(Exception):
    """The budget ended in the middle of a trial, which is given up."""


class Fitted(NamedTuple):
    """Parameters and the model they gave."""

    parameters: dict[str, Any]
    model: Model


def run_trial(
    task: Task, space: Space, setting: Mapping[str, Any], *, columns: IntArray | None = None
) -> list[Candidate]:
    """Fit and judge all models of one setting, optionally on some columns only."""
    started = time.perf_counter()
    parameters = {**space.fixed, **setting}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the extremes of a grid may not converge
        whole = fit_models(task, space, parameters, task.training, columns, needed=True)
        task.beat(True)
        sweep = space.sweep
        if isinstance(sweep, AlphaPath):  # the same strengths, whatever a group's own would be
            sweep = AlphaPath(alphas=tuple(fitted.parameters["alpha"] for fitted in whole))
        same = Space(space.ranker, space.fixed, space.grid, sweep)

        def without(part: tuple[RankingData, RankingData, BoolArray]) -> list[Fitted]:
            task.beat(False)
            return fit_models(task, same, parameters, part[0], columns)

        try:
            left_out = make_executor(task.n_jobs).map(without, task.parts)
        except OutOfTimeError:
            task.beat(True)  # raises, unless these are the only models
            left_out = []
    each = (time.perf_counter() - started) / max(1, len(whole))
    found = []
    for at, fitted in enumerate(whole):
        models = [models[at].model if at < len(models) else None for models in left_out]
        values = _unseen(task, models)
        if values is None or fitted.model.n_nonzero == 0:
            continue
        one = task.candidate(space.ranker, fitted.parameters, fitted.model, values, each)
        if one is not None:
            found.append(one)
    return found


def fit_models(
    task: Task,
    space: Space,
    parameters: Mapping[str, Any],
    training: RankingData,
    columns: IntArray | None = None,
    *,
    needed: bool = False,
) -> list[Fitted]:
    """Fit the models of one setting; with ``columns`` on these only, as models of all features."""
    ranker = make_ranker(space, parameters, task.split)
    if "callback" in ranker.get_params():
        ranker.set_params(callback=lambda entry: task.beat(needed))
    data = training if columns is None else some_columns(training, columns)
    if not isinstance(space.sweep, Fits):
        made = path_models(space.sweep, ranker, data)
    else:
        fit_alone(ranker, data)
        made = [({}, ranker.to_model())]
        if columns is None:
            return [Fitted(dict(parameters), made[0][1])]
    fitted = []
    for own, model in made:
        both = {**parameters, **own}
        provenance = make_provenance(algorithm=type(ranker).__name__, parameters=both)
        fitted.append(Fitted(both, placed(model, columns, training, provenance)))
    return fitted


def fit_alone(ranker: Any, data: RankingData, *, n_folds: int = 5) -> None:
    """Fit; a ranker that stops by validation data gets one of ``n_folds`` groups of queries for it.

    They come from its own data: the queries that judge a model must not influence its fit. They
    decide for how many rounds the ranker is then fitted to all of its data.
    """
    n_folds = min(n_folds, data.n_queries)
    if n_folds > 1 and takes(ranker, "validation"):
        fold = whole_query_folds(data, QueryKFold(n_folds, stratify=True))[0]
        rest, inner = data.queries[fold.train], data.queries[fold.test]
        if rest.informative.any() and inner.informative.any():
            fit_model(ranker, rest, inner)
            ranker.set_params(**_rounds(ranker), patience=None)
    if takes(ranker, "validation") and not getattr(ranker, "stops_by_training", False):
        ranker.set_params(patience=None)  # too few queries to judge by
    ranker.fit(data)


def _rounds(ranker: Any) -> dict[str, int]:
    """Return the parameter that repeats the rounds or passes which validation data preferred."""
    if hasattr(ranker, "best_epoch_"):
        return {"epochs": ranker.best_epoch_}
    return {"n_rounds": ranker.n_iter_} if getattr(ranker, "n_rounds", 0) and ranker.n_iter_ else {}


def some_columns(data: RankingData, columns: IntArray) -> RankingData:
    """Return a data set with some of its features only."""
    return data.replace(X=data.X[:, columns], feature_names=None)


def placed(
    model: Model, columns: IntArray | None, data: RankingData, provenance: dict[str, Any]
) -> Model:
    """Return a model of some columns as one of all features."""
    curves = model.curves
    if columns is not None:
        curves = {int(columns[at]): curve for at, curve in curves.items()}
    return Model(data.n_features, curves, data.feature_names, provenance=provenance)


def _unseen(task: Task, models: Sequence[Model | None]) -> dict[str, FloatArray] | None:
    """Measure every training query by the model that was fitted without it."""
    if not models:
        return {}
    scores = np.empty(len(task.training))
    for model, (_, mine, rows) in zip(models, task.parts, strict=True):
        some = None if model is None else _scores(model, mine)
        if some is None:
            return None
        scores[rows] = some
    measures = task.measures if task.validation is None else task.kept
    return task.judge.per_query(task.training, scores, measures)


def _scores(model: Model, data: RankingData) -> FloatArray | None:
    from leanrank.errors import InputError

    try:
        return model.predict(data)
    except InputError:  # too large for a number
        return None
