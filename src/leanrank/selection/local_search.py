"""Improving the front: swap, drop and add features of a good model, and see whether it gets better.

A step takes one model and looks at all supports that differ from its own by one feature. There are
hundreds, so they go through a sieve: all are fitted by least squares from sums over the groups of
queries, and judged by their squared error on the group left out; those best there are judged by the
measure; of these the best few are fitted anew by the ranker that the model came from.

Two things flatter such a search, and are met as follows. *A support that was chosen with all
training queries at hand* looks better on each of them than one chosen without it: so the value that
a new model has on the training queries is lowered by what fixing the support beforehand adds to the
model it came from, which is known both ways. *The best of hundreds* is partly the luckiest: so a
new model must be better on the training queries and on the validation queries, each for itself
(without a validation part: on either half of the groups).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.losses.squared import SquaredLoss
from leanrank.model import LinearModel
from leanrank.rankers import get_ranker
from leanrank.selection.candidate import Candidate, mean_of
from leanrank.selection.front import better_sign
from leanrank.selection.spaces import Space
from leanrank.selection.sweeps import AlphaPath
from leanrank.selection.trials import Task, run_trial, some_columns
from leanrank.solvers.centred import Centred

MOST_POOL = 64
"""Features that may come in: those that the best models use most often."""

MEASURED = 32
"""Supports that are judged by the measure."""

REFITTED = 5
"""Supports that are fitted by the ranker itself."""

WEAKER = (1.0, 0.3, 0.1)
"""Strengths to try, times the model's own: few features need little shrinkage."""

RIDGE = 1e-3


def improve(
    task: Task,
    parent: Candidate,
    pool: IntArray,
    *,
    max_features: int | None = None,
    max_cost: float | None = None,
) -> list[Candidate]:
    """Look for models near another that are better at most at its size and limits.

    Parameters
    ----------
    task : Task
    parent : Candidate
        With a linear model.
    pool : array of int
        Features that may come in.
    max_features, max_cost : optional
        Beyond which no feature is added; without a limit, features are dropped and swapped only.

    Returns
    -------
    list of Candidate
        The parent's features fitted with less shrinkage, and those near it that are better.
    """
    support = parent.model.indices
    space, setting = refitting(parent)
    own = run_trial(task, space, setting, columns=support)
    same = next((one for one in own if _same(one, parent)), own[0] if own else None)
    if same is None:
        return []
    flattery = _flattery(task, same, parent)
    base = max(own, key=lambda one: better_sign(task.measure) * one.score(task.measure))
    found = [_lowered(task, one, flattery) for one in own if one.n_features]
    room = max_features is not None and len(support) < max_features
    moves = list(neighbours(support, pool, grow=room))
    if max_cost is not None and task.costs is not None:
        moves = [move for move in moves if task.costs.of(move) <= max_cost]
    for columns in Sieve(task, np.union1d(pool, support)).best(moves):
        task.beat()
        better = [
            one
            for one in run_trial(task, space, setting, columns=columns)
            if _is_better(task, one, base)
        ]
        found += [_lowered(task, one, flattery) for one in better]
    return found


def neighbours(support: IntArray, pool: IntArray, *, grow: bool) -> Iterable[IntArray]:
    """List the supports that differ by one feature: dropped, swapped, and added if there is room.

    >>> [s.tolist() for s in neighbours(np.array([1, 4]), np.array([1, 2]), grow=True)]
    [[4], [2, 4], [1], [1, 2], [1, 2, 4]]
    """
    others = np.setdiff1d(pool, support)
    for leaving in support:
        rest = support[support != leaving]
        if len(rest):
            yield rest
        for coming in others:
            yield np.sort(np.append(rest, coming))
    if grow:
        for coming in others:
            yield np.sort(np.append(support, coming))


def find_pool(candidates: Sequence[Candidate], measure: str) -> IntArray:
    """List the features that good models use, most often used first."""
    sign = better_sign(measure)
    linear = [one for one in candidates if isinstance(one.model, LinearModel)]
    good = sorted(linear, key=lambda one: -sign * one.score(measure))[:200]
    if not good:
        return np.empty(0, dtype=np.int64)
    # A feature among few weighs more than one among many: dense models use everything.
    used: dict[int, float] = {}
    for one in good:
        for feature in one.model.indices.tolist():
            used[feature] = used.get(feature, 0.0) + 1.0 / one.n_features
    order = sorted(used, key=lambda feature: (-used[feature], feature))
    return np.array(order[:MOST_POOL], dtype=np.int64)


def refitting(parent: Candidate) -> tuple[Space, dict[str, Any]]:
    """Say how a support is fitted: by the ranker of the model it came from, if it has a path."""
    parameters = dict(parent.parameters)
    if parent.algorithm == "greedyrankrls":
        alpha = parameters["alpha"]
        kept = {k: v for k, v in parameters.items() if k == "normalize"}
        return Space("rankrls", kept, sweep=AlphaPath(_weaker(alpha))), {}
    ranker = get_ranker(parent.algorithm)
    if "alpha" in parameters and hasattr(ranker, "path") and parent.algorithm in _WITH_PATH:
        alpha = parameters.pop("alpha")
        return Space(parent.algorithm, parameters, sweep=AlphaPath(_weaker(alpha))), {}
    return Space("ranksvm", {"tol": 1e-5}, sweep=AlphaPath((1e-1, 1e-2, 1e-3))), {}


_WITH_PATH = ("domination", "ranksvm", "listnet", "ranknet", "nonconvex", "sparserank", "rankrls")


@dataclass(frozen=True, eq=False)
class Sieve:
    """Sums over the groups of queries, from which least squares on any support is quick."""

    task: Task
    pool: IntArray

    @cached_property
    def sums(self) -> tuple[FloatArray, FloatArray]:
        """For each group the matrix of products of centred features, and those with the labels."""
        from leanrank.rankers import RankRLS

        grams, targets = [], []
        for _, mine, _ in self.task.parts:
            some = some_columns(mine, self.pool)
            _, labels = RankRLS()._data_and_labels(some)
            centred = Centred.from_plan(some.X, SquaredLoss().prepare(labels))
            rows = centred.features(np.arange(len(self.pool)))
            n_informative = max(1, int(mine.informative.sum()))
            grams.append(n_informative * (rows @ rows.T))
            targets.append(n_informative * (rows @ centred.target))
        return np.array(grams), np.array(targets)

    def best(self, supports: Sequence[IntArray]) -> list[IntArray]:
        """Give the supports that promise most; at least one that drops a feature, if any does."""
        if not supports:
            return []
        errors = np.array([self._error(np.searchsorted(self._sorted, s)) for s in supports])
        sizes = np.array([len(s) for s in supports])
        sign = better_sign(self.task.measure)
        passed: list[tuple[float, int]] = []
        for size in np.unique(sizes):  # an error falls with the size, so each size for itself
            mine = np.flatnonzero(sizes == size)
            share = max(1, round(MEASURED / len(np.unique(sizes))))
            few = mine[np.argsort(errors[mine], kind="stable")[:share]]
            valued = sorted((-sign * self._value(supports[at]), int(at)) for at in few)
            passed += valued[: max(1, REFITTED // len(np.unique(sizes)))]
        return [supports[at] for _, at in sorted(passed)]

    @cached_property
    def _sorted(self) -> IntArray:
        if (np.diff(self.pool) <= 0).any():
            raise AssertionError("the pool of a sieve ascends")
        return self.pool

    def _weights(self, places: IntArray) -> tuple[FloatArray, FloatArray]:
        """Fit without each group in turn, and on all; one row a fit."""
        grams, targets = self.sums
        inside = grams[np.ix_(np.arange(len(grams)), places, places)]
        aims = targets[:, places]
        total, aim = inside.sum(axis=0), aims.sum(axis=0)
        matrices = np.concatenate([total - inside, total[None]])
        sides = np.concatenate([aim - aims, aim[None]])
        ridge = RIDGE * max(float(np.trace(total)) / len(places), 1e-300)
        matrices = matrices + ridge * np.eye(len(places))
        return np.linalg.solve(matrices, sides[:, :, None])[:, :, 0], inside

    def _error(self, places: IntArray) -> float:
        """Add up the squared errors on the groups left out, less what no support changes."""
        weights, inside = self._weights(places)
        targets = self.sums[1][:, places]
        left_out = weights[:-1]
        quadratic = np.einsum("fi,fij,fj->f", left_out, inside, left_out)
        return float(np.sum(quadratic - 2 * np.einsum("fi,fi->f", left_out, targets)))

    def _value(self, support: IntArray) -> float:
        weights, _ = self._weights(np.searchsorted(self._sorted, support))
        task = self.task
        scores = np.empty(len(task.training))
        for w, (_, mine, rows) in zip(weights[:-1], task.parts, strict=True):
            scores[rows] = mine.X[:, support] @ w
        values = task.measured(task.training, scores, [task.measure])[task.measure]
        if task.validation is not None:
            on_validation = task.validation.X[:, support] @ weights[-1]
            more = task.measured(task.validation, on_validation, [task.measure])[task.measure]
            values = np.concatenate([values, more])
        return mean_of(values)


def _weaker(alpha: float) -> tuple[float, ...]:
    return tuple(alpha * factor for factor in WEAKER)


def _same(one: Candidate, parent: Candidate) -> bool:
    """Tell whether a refit has the strength of the model it came from."""
    mine, own = one.parameters.get("alpha"), parent.parameters.get("alpha")
    return mine is not None and mine == own


def _training_part(task: Task, one: Candidate) -> Mapping[str, FloatArray]:
    return one.values if task.validation is None else one.training_values


def _flattery(task: Task, same: Candidate, parent: Candidate) -> dict[str, float]:
    """Give, by measure, what fixing the support beforehand adds on the training queries."""
    fixed, honest = _training_part(task, same), _training_part(task, parent)
    added = {}
    for measure in fixed:
        sign = better_sign(measure)
        added[measure] = sign * max(
            0.0, sign * (mean_of(fixed[measure]) - mean_of(honest[measure]))
        )
    return added


def _lowered(task: Task, one: Candidate, flattery: Mapping[str, float]) -> Candidate:
    part = _training_part(task, one)
    lowered = {measure: values - flattery[measure] for measure, values in part.items()}
    name = f"{one.name} on {one.n_features} chosen feature{'s' * (one.n_features != 1)}"
    if task.validation is None:
        return replace(one, values=lowered, name=name)
    return replace(one, training_values=lowered, name=name)


def _is_better(task: Task, one: Candidate, base: Candidate) -> bool:
    """Ask for a gain on either part of the queries, each for itself."""
    if one.n_features == 0:
        return False
    sign = better_sign(task.measure)
    gain = sign * (
        _training_part(task, one)[task.measure] - _training_part(task, base)[task.measure]
    )
    if task.validation is not None:
        parts = [gain, sign * (one.values[task.measure] - base.values[task.measure])]
    else:
        parts = [gain[task.folds % 2 == 0], gain[task.folds % 2 == 1]]
    # a smaller model need not be better, only no worse
    means = [mean_of(part) for part in parts]
    if one.n_features < base.n_features:
        return all(mean >= 0 for mean in means)
    return all(mean > 0 for mean in means)
