"""Trials of a search on a Dask cluster: fits and judgements happen where the documents are.

Folds are those of the same queries in memory. A group is left out by giving its queries no weight,
and its values come back as one number per query; no document travels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.data.dask.collections import is_dask
from leanrank.data.matrices import has_gaps
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.normalizers import make_normalizer
from leanrank.errors import InputError, NoLevelsError
from leanrank.losses.squared import SquaredLoss
from leanrank.model import Model
from leanrank.model.provenance import fingerprint
from leanrank.problem.part import InGroup, Part
from leanrank.problem.parts import PartedProblem
from leanrank.rankers import get_ranker
from leanrank.rankers.cluster import ClusterData, Measured, read_cluster
from leanrank.rankers.curves import scores_of_models
from leanrank.registry import SYSTEMS, get_system
from leanrank.selection.cross_validation.splits import QueryFacts, QueryKFold, query_facts
from leanrank.selection.tuning.trials import Task, n_groups

IN_MEMORY = "all documents in memory"
IN_ORDER = "documents one after the other, in this process"
"""What systems need that do not fit on a cluster."""


def on_dask(given: Any) -> bool:
    """Return whether data for a search are on Dask."""
    if isinstance(given, ClusterData):
        return True
    return is_dask(given) or (
        isinstance(given, (tuple, list)) and len(given) == 3 and is_dask(given[0])
    )


def facts_on_cluster(data: ClusterData) -> QueryFacts:
    """Return what folds are dealt by, one entry per query, from where the documents are."""
    found = data.X.map(_facts)
    return QueryFacts(*(np.concatenate(each) for each in zip(*found, strict=True)))


def _facts(part: Part) -> QueryFacts:
    return query_facts(part.data.y, part.data.query_ptr)


def read_parts(training: Any, validation: Any) -> tuple[ClusterData, ClusterData | None]:
    """Read what a search is given on Dask; training queries know their group.

    What was read here before stays as it is.
    """
    if isinstance(training, ClusterData):
        return training, validation
    held_out = None
    if validation is not None:
        if not on_dask(validation):
            raise InputError(
                f"the training data are on Dask but validation is {type(validation).__name__}: "
                "give a Dask collection, such as [dask.delayed(validation)]"
            )
        held_out = read_part(validation, "validation")
    data = read_part(training, "training")
    n_folds = n_groups(data.n_queries, validated=validation is not None)
    groups = np.full(data.n_queries, -1)
    if n_folds > 1:
        groups = next(QueryKFold(n_folds, stratify=True).deal(facts_on_cluster(data)))
    return data.grouped(groups), held_out


def read_part(given: Any, name: str) -> ClusterData:
    """Read a Dask collection with labels and queries; messages call it ``name``."""
    columns: dict[str, Any] = {}
    X = given
    if not is_dask(given):
        X, columns["y"], columns["qid"] = given
    elif hasattr(given, "columns"):
        for column in ("label", "qid"):
            if column not in given.columns:
                raise InputError(
                    f"the {name} data have no column {column!r}: rename one, or give (X, y, qid)"
                )
        X = given.drop(columns=[c for c in ("label", "qid", "doc_id") if c in given.columns])
        columns = {"y": given["label"], "qid": given["qid"]}
    elif not isinstance(given, (list, tuple)):
        raise InputError(f"the {name} data have no labels and queries: give (X, y, qid)")
    return read_cluster(X, columns, "tune", allow_nan=True)


def fingerprint_of(data: Any) -> str:
    """Identify data in memory or on a cluster by what they hold."""
    return data.fingerprint() if isinstance(data, ClusterData) else fingerprint(data)


def unable(systems: Sequence[str], data: RankingData | ClusterData) -> dict[str, str]:
    """Return which systems cannot be tried on some data, and what they need."""
    found = {}
    there = isinstance(data, ClusterData)
    gaps = data.missing.any() if isinstance(data, ClusterData) else has_gaps(data.X)
    for name in systems:
        system = SYSTEMS[name]
        if there and not system.cluster:
            found[name] = IN_ORDER if system.streams else IN_MEMORY
        elif gaps and not takes_gaps(name):
            found[name] = "features without missing values"
    return found


def takes_gaps(name: str) -> bool:
    """Return whether a search fits curves or steps with a system: in any unit, and with gaps."""
    system = get_system(name)
    space = system.tuning or system.space
    return space is not None and bool(get_ranker(space.ranker)(**space.fixed).takes_nan)


class ClusterTask(Task):
    """A task whose training and validation data are ClusterData."""

    training: Any
    validation: Any
    unscaled: Any

    @cached_property
    def folds(self) -> IntArray:
        """The group of each training query; -1 for a single query, which cannot be left out."""
        return np.concatenate(self.training.X.map(_groups))

    def fitting(self, group: int | None = None, columns: IntArray | None = None) -> Any:
        """Return the training data, without one group, or with some columns only."""
        if group is None:
            return self.training if columns is None else self.training.columns(columns)
        return self._scaled_without(group, columns).only(InGroup(group, others=True))

    def _scaled_without(self, group: int, columns: IntArray | None = None) -> ClusterData:
        """Return all queries; where they are scaled, by what the others of a group say.

        Made anew for each fit: to keep them would take as many copies of the data as there are
        groups.
        """
        data: ClusterData = self.training if self.scale is None else self.unscaled
        if columns is not None:
            data = data.columns(columns)
        if self.scale is None:
            return data
        return data.only(InGroup(group, others=True)).scaled(make_normalizer(self.scale))

    def both(self, columns: IntArray) -> Any:
        """Return some columns of training and validation data together."""
        return self.training.columns(columns).joined(self.validation.columns(columns))

    def unseen(
        self, models: Sequence[Sequence[Model | None]]
    ) -> list[dict[str, FloatArray] | None]:
        """Measure every training query by the model that was fitted without it."""
        if not models or not models[0]:
            return [{} for _ in models]
        whole = [at for at, each in enumerate(models) if None not in each]
        found = [
            self._of_group(group, partial(_scores, [models[at][group] for at in whole]))
            for group in range(self.n_groups)
        ]
        values: list[dict[str, FloatArray] | None] = [None for _ in models]
        for number, at in enumerate(whole):
            if all(each.finite[number] for each in found):
                values[at] = self._by_query(found, number, self.unseen_measures)
        return values

    def _of_group(self, group: int, score: Any, columns: IntArray | None = None) -> Measured:
        data = self._scaled_without(group, columns).only(InGroup(group))
        return data.measured(score, self.unseen_measures, self.convention)

    def _by_query(
        self, found: Sequence[Measured], number: int, measures: Sequence[str]
    ) -> dict[str, FloatArray]:
        """Put the values of one model in each group in the order of the queries."""
        values = {name: np.empty(len(self.folds)) for name in measures}
        for group, measured in enumerate(found):
            for name in measures:
                values[name][self.folds == group] = measured.values[name][number]
        return values

    def judged(self, models: Sequence[Model]) -> list[dict[str, FloatArray] | None]:
        """Measure models on the validation part, where there is one; None if one ranks nothing."""
        if not models:
            return []
        judged_by = self.training if self.validation is None else self.validation
        measures = () if self.validation is None else self.measures
        found = judged_by.measured(partial(_scores, models), measures, self.convention)
        return [
            {name: values[at] for name, values in found.values.items()} if ranks else None
            for at, ranks in enumerate(found.ranks)
        ]

    def products(self, pool: IntArray) -> tuple[FloatArray, FloatArray]:
        """Return for each group the products of centred features, and those with the labels."""
        some = self.training.columns(pool)
        grams = np.zeros((self.n_groups, len(pool), len(pool)))
        targets = np.zeros((self.n_groups, len(pool)))
        for group in range(self.n_groups):
            try:
                problem = PartedProblem(some.only(InGroup(group)).X, SquaredLoss())
            except NoLevelsError:  # no pair of documents to tell apart
                continue
            problem.at(np.zeros(len(pool)))
            total = float(problem.setup.total or 1.0)  # by which a problem divides its sums
            grams[group] = total * problem.focused_hessian()
            targets[group] = -total * problem.gradient()
        return grams, targets

    def linear_values(
        self, supports: Sequence[IntArray], weights: Sequence[FloatArray]
    ) -> list[FloatArray]:
        """Measure weights of some features: rows for each group left out, and one for all."""
        columns = np.unique(np.concatenate(supports))
        coefs = np.zeros((self.n_groups + 1, len(supports), len(columns)))
        for at, (support, w) in enumerate(zip(supports, weights, strict=True)):
            coefs[:, at, np.searchsorted(columns, support)] = w
        score = [partial(scores_of_models, each, None) for each in coefs]
        found = [self._of_group(g, score[g], columns) for g in range(self.n_groups)]
        each = range(len(supports))
        values = [self._by_query(found, at, [self.measure])[self.measure] for at in each]
        if self.validation is None:
            return values
        held_out = self.validation.columns(columns)
        more = held_out.measured(score[-1], [self.measure], self.convention).values[self.measure]
        return [np.concatenate([values[at], more[at]]) for at in each]


def _groups(part: Part) -> IntArray:
    assert part.groups is not None
    return part.groups


def _scores(models: Sequence[Any], X: Matrix) -> FloatArray:
    """Return the scores of documents by models, NaN where one's are too large for a number."""
    if all(model.is_linear for model in models):
        return scores_of_models(np.array([model.coef for model in models]), None, X)
    return np.array([_scored(model, X) for model in models]).reshape(len(models), X.shape[0])


def _scored(model: Model, X: Matrix) -> FloatArray:
    try:
        return model.predict(X) if X.shape[0] else np.zeros(0)
    except InputError:
        return np.full(X.shape[0], np.nan)


def list_unable(reasons: Mapping[str, str]) -> str:
    """Describe which systems cannot be tried.

    >>> list_unable({"adarank": IN_MEMORY, "rankboost": IN_MEMORY})
    'adarank, rankboost (need all documents in memory)'
    """
    by_reason: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        by_reason.setdefault(reason, []).append(name)
    return "; ".join(f"{', '.join(names)} (need {why})" for why, names in by_reason.items())
