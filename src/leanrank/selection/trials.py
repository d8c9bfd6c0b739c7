"""One trial of a search: fit the models of one setting, and judge each on queries it has not seen.

A trial fits on the training part, which gives the models and their values on the validation part,
and again without each of a few groups of training queries, which gives values on those.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.normalizers import make_normalizer
from leanrank.execution import make_executor
from leanrank.metrics.judge import Judge, better_sign, ranks_something
from leanrank.model import Model
from leanrank.registry import Front, Space
from leanrank.selection.candidate import Candidate, within_limits
from leanrank.selection.engine import (
    Split,
    fitted,
    fixed_strengths,
    joined_sets,
    make_ranker,
    same_strength,
)
from leanrank.selection.folds import Fold, QueryKFold, whole_query_folds


@dataclass(frozen=True, eq=False)
class Task:
    """Data to learn from and to judge by, and what counts.

    Attributes
    ----------
    training : RankingData
        With unscaled features.
    validation : RankingData or None
        None: models are judged on the training queries only, each by a model fitted without it.
    measure : str
        The measure that is reported, and by which rankers stop early.
    measures : tuple of str
        All that are measured.
    training_measures : tuple of str
        Those that are measured on the training queries as well: what a choice can go by.
    convention : str
    costs : array or None
    n_jobs : int
        Threads; nothing depends on it.
    scale : str or None
        The kind of normaliser. It is refitted without each group, so that the queries that judge
        do not affect it.
    gain_weight : array or None
        As for ``fit``: one weight per training document.
    check_time : callable
        Called repeatedly while fitting, with whether the fit must end with a model; may raise
        OutOfTimeError.
    choose_by : str
        The measure that models are chosen by.
    max_features, max_cost : optional
        What a chosen model may use.
    """

    training: RankingData
    validation: RankingData | None
    measure: str = "ndcg@10"
    measures: tuple[str, ...] = ("ndcg@10",)
    training_measures: tuple[str, ...] = ("ndcg@10",)
    convention: str = "standard"
    costs: FloatArray | None = None
    n_jobs: int | None = 1
    scale: str | None = None
    gain_weight: FloatArray | None = None
    check_time: Callable[[bool], None] = field(default=lambda needed: None)
    choose_by: str = "ndcg@10"
    max_features: int | None = None
    max_cost: float | None = None

    def allows(self, one: Candidate) -> bool:
        """Return whether a model is small and cheap enough."""
        return within_limits(one, self.max_features, self.max_cost)

    def best(self, candidates: Iterable[Candidate]) -> Candidate | None:
        """Return the best model that is small and cheap enough, if there is one."""
        sign = better_sign(self.choose_by)
        allowed = filter(self.allows, candidates)
        return max(allowed, key=lambda one: sign * one.score(self.choose_by), default=None)

    @cached_property
    def folds(self) -> list[Fold]:
        """The groups of training queries to leave out in turn; none of a single query."""
        n_folds = min(5 if self.validation is None else 4, self.training.n_queries)
        if n_folds < 2:
            return []
        return whole_query_folds(self.training, QueryKFold(n_folds, stratify=True))

    @property
    def judge(self) -> Judge:
        """The judge of the models; ties are averaged over their orders."""
        return Judge(self.measure, self.convention)

    @cached_property
    def whole(self) -> Split:
        """All training queries, and the validation queries; without these, the training ones."""
        held_out = self.training if self.validation is None else self.validation
        return self._split(self.training, held_out, self.gain_weight)

    @cached_property
    def parts(self) -> list[Split]:
        """For each group, the other training queries, and its own."""
        found, data = [], self.training.queries
        for rest, mine in self.folds:
            gains = None if self.gain_weight is None else self.gain_weight[self.rows(rest)]
            found.append(self._split(data[rest], data[mine], gains))
        return found

    def _split(self, train: RankingData, held_out: RankingData, gains: FloatArray | None) -> Split:
        normalizer = None if self.scale is None else make_normalizer(self.scale).fit(train)
        how = self.measure, self.convention
        return Split(train, held_out, *how, normalizer=normalizer, gain_weight=gains)

    def rows(self, queries: BoolArray) -> BoolArray:
        """Return which training documents are of some queries."""
        return np.repeat(queries, np.diff(self.training.query_ptr))

    def values(
        self, scores: FloatArray, left_out: Sequence[FloatArray]
    ) -> tuple[dict[str, FloatArray], dict[str, FloatArray]] | None:
        """Measure a model on the validation queries, and on the training queries.

        ``left_out`` are the scores of each group by a model that was fitted without it; empty if
        there are no groups. None for scores that rank nothing, which a measure may still credit.
        """
        if not ranks_something(scores, self.whole.validation):
            return None
        whole, seen = np.zeros(len(self.training)), {}
        for fold, some in zip(self.folds, left_out, strict=False):
            whole[self.rows(fold.test)] = some
        if not np.isfinite(whole).all():
            return None
        measures = self.measures if self.validation is None else self.training_measures
        if len(left_out):
            seen = self.judge.per_query(self.training, whole, measures)
        if self.validation is None:
            return seen, {}
        return self.judge.per_query(self.validation, scores, self.measures), seen


class OutOfTimeError(Exception):
    """The budget ended in the middle of a trial, which is given up."""


def run_trial(task: Task, space: Space, setting: Mapping[str, Any]) -> list[Candidate]:
    """Fit and judge all models of one setting."""
    started = time.perf_counter()
    parameters = {**space.fixed, **setting}
    front = isinstance(space.sweep, Front)
    chosen: dict[str, Any] = {}  # by the fit to all queries, to be repeated without a group

    def make(part: Split) -> Any:
        whole = part is task.whole
        n_jobs = task.n_jobs if whole and front else 1
        ranker = make_ranker(space, {**parameters, **chosen}, task.judge, n_jobs)
        if "callback" in ranker.get_params():
            ranker.set_params(callback=lambda entry: task.check_time(whole))
        return ranker

    def fit(part: Split) -> list[Any] | None:
        try:
            if part is not task.whole:
                task.check_time(False)
            made = ranker if part is task.whole else make(part)
            return list(fitted(sweep, made, part, alone=True))
        except OutOfTimeError:
            if part is task.whole:
                raise
            return None

    executor = make_executor(task.n_jobs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the extremes of a grid may not converge
        ranker = make(task.whole)
        # the same strengths in all groups, whatever their own would be
        sweep = fixed_strengths(space.sweep, ranker, task.whole)
        if front:
            whole = fit(task.whole)
            chosen |= same_strength(ranker)
            left_out = executor.map(fit, task.parts)
        else:
            whole, *left_out = executor.map(fit, [task.whole, *task.parts])
        task.check_time(True)
    assert whole is not None
    if None in left_out:
        left_out = []  # there was no time for them, and these are the only models
    seconds = (time.perf_counter() - started) / max(1, len(whole))

    def judged(at: int) -> Candidate | None:
        own, model, scores = whole[at]
        own = {**parameters, **own}
        alike = [_scores_alike(sweep, own, at, models) for models in left_out]
        if not model.n_nonzero or any(one is None for one in alike):
            return None
        values = task.values(scores, alike)  # type: ignore[arg-type]
        if values is None:
            return None
        model = task.whole.joined(model, ranker, own)
        known: dict[str, Any] = {"training_values": values[1], "seconds": seconds}
        return Candidate.of(space.ranker, own, model, values[0], task.costs, **known)

    return [one for one in executor.map(judged, range(len(whole))) if one is not None]


def _scores_alike(sweep: Any, own: Mapping[str, Any], at: int, models: Any) -> FloatArray | None:
    """Return the scores of the model that, fitted without a group, matches one of all queries.

    It has the same position in the sweep. On a front, where the sizes of two fits differ, it is the
    largest that is no larger.
    """
    if isinstance(sweep, Front):
        sizes = [each["max_features"] for each, _, _ in models]
        small = [size for size in sizes if size <= own["max_features"]]
        at = sizes.index(max(small) if small else min(sizes)) if sizes else 0
    return models[at][2] if at < len(models) else None


def fit_support(task: Task, chosen: Candidate) -> Model:
    """Fit a candidate's ranker, with its parameters and features, to both parts of the data.

    Only its features are offered, so that no limit is exceeded; a greedy search for them is then a
    ridge. A boosted model, or one whose fit fails, is returned unchanged.
    """
    algorithm, parameters = chosen.algorithm, dict(chosen.parameters)
    boosted = not chosen.model.is_linear and parameters.get("curves") is None
    if boosted or task.validation is None:
        return chosen.model
    if "n_features_to_select" in parameters:
        algorithm = "rankrls"
        parameters = {k: v for k, v in parameters.items() if k in ("alpha", "normalize")}
    both = replace(task.whole, train=joined_sets(task.training, task.validation))
    ranker = make_ranker(Space(algorithm), parameters, task.judge)
    columns = chosen.model.indices
    data = both.scaled[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        part = ranker.fit(data.replace(X=data.X[:, columns], feature_names=None)).to_model()
    model = placed(part, columns, data.n_features)
    return both.joined(model, ranker, parameters) if model.n_nonzero else chosen.model


def placed(model: Model, columns: IntArray, n_features: int) -> Model:
    """Return a model of some columns as one of all features."""
    curves = {int(columns[at]): curve for at, curve in model.curves.items()}
    pairs = {(int(columns[a]), int(columns[b])): each for (a, b), each in model.surfaces.items()}
    return Model(n_features, curves, surfaces=pairs)
