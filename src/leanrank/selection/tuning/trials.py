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

from leanrank._jit import kernel_view
from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.data.matrices import stacked
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.normalizers import make_normalizer
from leanrank.execution import make_executor
from leanrank.losses.base import Labels
from leanrank.losses.squared import SquaredLoss
from leanrank.metrics.judge import Judge, ranks_something
from leanrank.model import Model, make_provenance
from leanrank.registry import AlphaPath, Fits, Space
from leanrank.selection.cross_validation.splits import QueryKFold, whole_query_folds
from leanrank.selection.tuning.candidate import Candidate, describe
from leanrank.selection.tuning.costs import Costs
from leanrank.selection.tuning.sweeps import fit_alone, path_models
from leanrank.selection.validation import make_ranker
from leanrank.solvers.least_squares.centred import Centred


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
        n_folds = self.n_folds or n_groups(n_queries, validated=self.validation is not None)
        n_folds = min(n_folds, n_queries)
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
        for group in range(self.n_groups):
            inside = self.folds == group
            rest, mine = data.queries[~inside], data.queries[inside]
            if self.scale is not None:
                normalizer = make_normalizer(self.scale).fit(rest)
                rest, mine = normalizer.transform(rest), normalizer.transform(mine)
            found.append((rest, mine, np.repeat(inside, sizes)))
        return found

    @cached_property
    def n_groups(self) -> int:
        """How many groups of training queries there are."""
        return int(self.folds.max(initial=-1)) + 1

    @property
    def judge(self) -> Judge:
        """The judge of the models; ties are averaged over their orders."""
        return Judge(self.measure, self.convention)

    def fitting(self, group: int | None = None, columns: IntArray | None = None) -> Any:
        """Return the training data, without one group, or with some columns only."""
        data = self.training if group is None else self.parts[group][0]
        return data if columns is None else some_columns(data, columns)

    def both(self, columns: IntArray) -> Any:
        """Return some columns of training and validation data together."""
        assert self.validation is not None
        return some_columns(joined_sets(self.training, self.validation), columns)

    def unseen(
        self, models: Sequence[Sequence[Model | None]]
    ) -> list[dict[str, FloatArray] | None]:
        """Measure every training query by the model that was fitted without it.

        ``models`` has one sequence per setting, with a model for each group; without any, nothing
        is measured. None if a model is missing or has scores that are too large.
        """
        return [self._unseen(each) for each in models]

    def _unseen(self, models: Sequence[Model | None]) -> dict[str, FloatArray] | None:
        if not models:
            return {}
        scores = np.empty(len(self.training))
        for model, (_, mine, rows) in zip(models, self.parts, strict=True):
            some = None if model is None else _scores(model, mine)
            if some is None:
                return None
            scores[rows] = some
        return self.judge.per_query(self.training, scores, self.unseen_measures)

    @property
    def unseen_measures(self) -> tuple[str, ...]:
        """What is measured on training queries: all if nothing else judges."""
        return self.measures if self.validation is None else self.kept

    def judged(self, models: Sequence[Model]) -> list[dict[str, FloatArray] | None]:
        """Measure models on the validation part, where there is one; None if one ranks nothing."""
        return [self._judged(model) for model in models]

    def _judged(self, model: Model) -> dict[str, FloatArray] | None:
        judged_by = self.validation or self.training
        scores = _scores(model, judged_by)
        if scores is None or not ranks_something(scores, judged_by):
            return None
        if self.validation is None:
            return {}
        return self.judge.per_query(self.validation, scores, self.measures)

    def products(self, pool: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return for each group the products of centred features, and those with the labels."""
        training = self.training
        labels = Labels(
            kernel_view(training.y),
            kernel_view(training.query_ptr),
            None if training.sample_weight is None else kernel_view(training.sample_weight),
            None if training.query_weight is None else kernel_view(training.query_weight),
        )
        whole = Centred.from_plan(training.X, SquaredLoss().prepare(labels))
        grams, targets = [], []
        for group, (_, _, rows) in enumerate(self.parts):
            mine = training.queries[self.folds == group]  # all on one scale, to be added up
            part = Centred(
                some_columns(mine, pool).X,
                kernel_view(mine.query_ptr),
                whole.root[rows],
                whole.target[rows],
            )
            columns = part.features(np.arange(len(pool)))
            grams.append(columns @ columns.T)
            targets.append(columns @ part.target)
        return np.array(grams), np.array(targets)

    def linear_values(
        self, supports: Sequence[IntArray], weights: Sequence[FloatArray]
    ) -> list[FloatArray]:
        """Measure weights of some features: rows for each group left out, and one for all."""
        return [self._linear_values(*each) for each in zip(supports, weights, strict=True)]

    def _linear_values(self, support: IntArray, weights: FloatArray) -> FloatArray:
        scores = np.empty(len(self.training))
        for w, (_, mine, rows) in zip(weights[:-1], self.parts, strict=True):
            scores[rows] = mine.X[:, support] @ w
        values = self.judge.per_query(self.training, scores)[self.measure]
        if self.validation is None:
            return values
        on_validation = self.validation.X[:, support] @ weights[-1]
        more = self.judge.per_query(self.validation, on_validation)[self.measure]
        return np.concatenate([values, more])

    def candidates(self, made: Sequence[Made]) -> list[Candidate | None]:
        """Judge models; None for one that ranks nothing, which a measure may still credit."""
        judged = self.judged([each.model for each in made])
        return [self._candidate(*each) for each in zip(made, judged, strict=True)]

    def _candidate(self, made: Made, values: dict[str, FloatArray] | None) -> Candidate | None:
        if values is None:
            return None
        training_values = dict(made.training_values)
        if self.validation is None:
            values, training_values = training_values, {}
        used = made.model.indices
        return Candidate(
            name=describe(made.algorithm, made.parameters),
            algorithm=made.algorithm,
            parameters=dict(made.parameters),
            model=made.model,
            values=values,
            n_features=len(used),
            cost=float(len(used)) if self.costs is None else self.costs.of(used),
            training_values=training_values,
            seconds=made.seconds,
        )


def n_groups(n_queries: int, *, validated: bool) -> int:
    """Return how many groups of training queries are left out in turn."""
    return min(4 if validated else 5, n_queries)


class Made(NamedTuple):
    """A model to be judged, and what is known of it on training queries."""

    algorithm: str
    parameters: Mapping[str, Any]
    model: Model
    training_values: Mapping[str, FloatArray]
    seconds: float | None = None


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
        whole = fit_models(task, space, parameters, None, columns, needed=True)
        task.beat(True)
        sweep = space.sweep
        if isinstance(sweep, AlphaPath):  # the same strengths, whatever a group's own would be
            sweep = AlphaPath(alphas=tuple(fitted.parameters["alpha"] for fitted in whole))
        same = Space(space.ranker, space.fixed, space.grid, sweep)

        def without(group: int) -> list[Fitted]:
            task.beat(False)
            return fit_models(task, same, parameters, group, columns)

        try:
            left_out = make_executor(task.n_jobs).map(without, range(task.n_groups))
        except OutOfTimeError:
            task.beat(True)  # raises, unless these are the only models
            left_out = []
    each = (time.perf_counter() - started) / max(1, len(whole))
    by_model = [
        [models[at].model if at < len(models) else None for models in left_out]
        for at in range(len(whole))
    ]
    made = [
        Made(space.ranker, fitted.parameters, fitted.model, values, each)
        for fitted, values in zip(whole, task.unseen(by_model), strict=True)
        if values is not None and fitted.model.n_nonzero
    ]
    return [one for one in task.candidates(made) if one is not None]


def fit_models(
    task: Task,
    space: Space,
    parameters: Mapping[str, Any],
    group: int | None = None,
    columns: IntArray | None = None,
    *,
    needed: bool = False,
) -> list[Fitted]:
    """Fit the models of one setting, without a group or to all training queries.

    With ``columns`` on these only, as models of all features.
    """
    ranker = make_ranker(space, parameters, task.judge)
    if "callback" in ranker.get_params():
        ranker.set_params(callback=lambda entry: task.beat(needed))
    data = task.fitting(group, columns)
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
        fitted.append(Fitted(both, placed(model, columns, task.training, provenance)))
    return fitted


def some_columns(data: RankingData, columns: IntArray) -> RankingData:
    """Return a data set with some of its features only."""
    return data.replace(X=data.X[:, columns], feature_names=None)


def joined_sets(*parts: RankingData) -> RankingData:
    """Return the queries of data sets one after the other; equal identifiers stay apart.

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


def placed(
    model: Model, columns: IntArray | None, data: RankingData, provenance: dict[str, Any]
) -> Model:
    """Return a model of some columns as one of all features."""
    at = np.arange(data.n_features) if columns is None else columns
    curves = {int(at[one]): curve for one, curve in model.curves.items()}
    pairs = {(int(at[a]), int(at[b])): surface for (a, b), surface in model.surfaces.items()}
    return Model(data.n_features, curves, data.feature_names, None, provenance, pairs)


def _scores(model: Model, data: RankingData) -> FloatArray | None:
    from leanrank.errors import InputError

    try:
        return model.predict(data)
    except InputError:  # too large for a number
        return None
