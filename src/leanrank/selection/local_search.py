"""Improving the front: swap, drop and add features of a good model, and keep what is better.

A step takes one model, of lines or curves, and tries all supports that differ from its own by one
feature. There are hundreds, so they are filtered: all are fitted by least squares from sums over
the groups of queries, and judged by their squared error on the group left out; the best of them are
judged by the measure, and the best few of these are refitted by the ranker of the model.

Three corrections keep the search from overfitting. A support chosen with all training queries looks
better on each of them than one chosen without it: the value of a new model on the training queries
is lowered by what fixing the support beforehand adds to its parent, which is known both ways. The
best of many looks better by chance: the value is also lowered by two standard errors of the gain,
about the maximum of that many if none were better. And a gain must show on the training queries and
on the validation queries separately (without a validation part: on both halves of the groups).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import counted
from leanrank.metrics.judge import better_sign, mean_of
from leanrank.registry import AlphaPath, Space, get_system
from leanrank.selection.candidate import Candidate
from leanrank.selection.trials import Task, on_given_features, run_trial

CHANCE_ERRORS = 2.0
"""Standard errors to subtract from a gain: the expected maximum of 32 standard normal draws."""

WEAKER = (1.0, 0.3, 0.1)
"""Strengths to try, times the model's own: few features need little shrinkage."""

RIDGE = 1e-3

MEASURED, REFITTED = 32, 5
"""Supports that are judged by the measure, and those of them that are fitted by the ranker."""

MOST_POOLED, MOST_FEATURES = 64, 128
"""Features that may come in, and those of a model whose neighbours are still few enough to try."""


def improve(task: Task, parent: Candidate, pool: IntArray) -> list[Candidate]:
    """Look for better models near another, within the limits of a task.

    Without a limit on features, features are dropped and swapped only.

    Parameters
    ----------
    task : Task
    parent : Candidate
    pool : array of int
        Features that may come in.

    Returns
    -------
    list of Candidate
        The parent's features fitted with less shrinkage, and those near it that are better.
    """
    support = parent.model.indices
    space = refitting(parent)
    if space is None or not task.folds:
        return []
    own = run_trial(task, space, {}, columns=support)
    same = next((one for one in own if one.parameters["alpha"] == parent.parameters["alpha"]), None)
    if same is None:
        return []
    support_gain = _support_gain(task, same, parent)
    found = [_corrected(task, one, same, support_gain, 1.0) for one in own if one is not same]
    room = task.max_features is not None and len(support) < task.max_features
    moves = list(neighbours(support, pool, grow=room))
    if task.max_cost is not None and task.costs is not None:
        moves = [move for move in moves if task.costs.of(move) <= task.max_cost]
    for columns in Sieve(task, np.union1d(pool, support)).best(moves):
        task.beat(True)
        tried = run_trial(task, space, {}, columns=columns)
        better = [one for one in tried if _is_better(task, one, same)]
        found += [_corrected(task, one, same, support_gain, CHANCE_ERRORS) for one in better]
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
    good = sorted(candidates, key=lambda one: -sign * one.score(measure))[:200]
    # A feature among few weighs more than one among many: dense models use everything.
    used: dict[int, float] = {}
    for one in good:
        for feature in one.model.indices.tolist():
            used[feature] = used.get(feature, 0.0) + 1.0 / one.n_features
    order = sorted(used, key=lambda feature: (-used[feature], feature))
    return np.array(order[:MOST_POOLED], dtype=np.int64)


def refitting(parent: Candidate) -> Space | None:
    """Return how to fit supports near a model: its own ranker, with less and less shrinkage.

    None if the ranker has no path of strengths, so that the effect of a fixed support is unknown
    (boosted models; LeanRanker, which drops features itself), or if the model has too many
    features, and with them too many neighbours.
    """
    if parent.n_features > MOST_FEATURES or not get_system(parent.algorithm).has_path:
        return None
    algorithm, parameters = on_given_features(parent)
    alpha = parameters.pop("alpha")
    return Space(algorithm, parameters, sweep=AlphaPath(tuple(alpha * f for f in WEAKER)))


@dataclass(frozen=True, eq=False)
class Sieve:
    """Sums over the groups of queries, from which least squares on any support is quick.

    The pool ascends.
    """

    task: Task
    pool: IntArray

    @cached_property
    def sums(self) -> tuple[FloatArray, FloatArray]:
        """For each group the matrix of products of centred features, and those with the labels."""
        return self.task.products(self.pool)

    def best(self, supports: Sequence[IntArray]) -> list[IntArray]:
        """Return the most promising supports; at least one that drops a feature, if any does."""
        errors = np.array([self._error(support) for support in supports])
        sizes = np.array([len(support) for support in supports])
        sign, several = better_sign(self.task.choose_by), np.unique(sizes)
        passed: list[tuple[float, int]] = []
        for size in several:  # an error falls with the size, so each size for itself
            mine = np.flatnonzero(sizes == size)
            few = mine[np.argsort(errors[mine], kind="stable")]
            few = few[: max(1, round(MEASURED / len(several)))]
            valued = sorted((-sign * self._value(supports[at]), at) for at in few.tolist())
            passed += valued[: max(1, REFITTED // len(several))]
        return [supports[at] for _, at in sorted(passed)]

    def _fits(self, support: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Fit without each group in turn, and on all; one row per fit. Return the sums as well."""
        grams, targets = self.sums
        places = np.searchsorted(self.pool, support)
        inside = grams[np.ix_(np.arange(len(grams)), places, places)]
        aims = targets[:, places]
        total, aim = inside.sum(axis=0), aims.sum(axis=0)
        matrices = np.concatenate([total - inside, total[None]])
        sides = np.concatenate([aim - aims, aim[None]])
        matrices = matrices + RIDGE * np.diag(np.maximum(np.diag(total), 1e-300))
        return np.linalg.solve(matrices, sides[:, :, None])[:, :, 0], inside, aims

    def _error(self, support: IntArray) -> float:
        """Add up the squared errors on the groups left out, less what no support changes."""
        weights, inside, aims = self._fits(support)
        left_out = weights[:-1]
        quadratic = np.einsum("fi,fij,fj->f", left_out, inside, left_out)
        return float(np.sum(quadratic - 2 * np.einsum("fi,fi->f", left_out, aims)))

    def _value(self, support: IntArray) -> float:
        return mean_of(self.task.linear_values(support, self._fits(support)[0]))


def _training_part(task: Task, one: Candidate) -> Mapping[str, FloatArray]:
    return one.values if task.validation is None else one.training_values


def _support_gain(task: Task, same: Candidate, parent: Candidate) -> dict[str, float]:
    """Return, by measure, the optimism of fixing the support first, on the training queries."""
    fixed, chosen = _training_part(task, same), _training_part(task, parent)
    added = {}
    for measure in fixed:
        sign = better_sign(measure)
        gain = sign * (mean_of(fixed[measure]) - mean_of(chosen[measure]))
        added[measure] = sign * max(0.0, gain)
    return added


def _corrected(
    task: Task, one: Candidate, same: Candidate, support_gain: Mapping[str, float], n_errors: float
) -> Candidate:
    """Subtract what a fixed support and chance may have added to values on training queries."""
    part = _training_part(task, one)
    lowered = {}
    for measure, values in part.items():
        gain = one.judged(measure) - same.judged(measure)
        gain = gain[~np.isnan(gain)]
        chance = n_errors * float(gain.std() / np.sqrt(len(gain))) if len(gain) else 0.0
        # the mean over all queries is to fall by as much, but only these values change
        share = max(1, len(gain)) / max(1, int(np.count_nonzero(~np.isnan(values))))
        lowered[measure] = values - support_gain[measure] - better_sign(measure) * chance * share
    name = f"{one.name} on {counted(one.n_features, 'chosen feature')}"
    if task.validation is None:
        return replace(one, values={**one.values, **lowered}, name=name)
    return replace(one, training_values=lowered, name=name)


def _is_better(task: Task, one: Candidate, same: Candidate) -> bool:
    """Ask for a gain on either part of the queries; a smaller model need only be no worse."""
    sign = better_sign(task.choose_by)
    gain = sign * (one.judged(task.choose_by) - same.judged(task.choose_by))
    if task.validation is not None:
        n_training = task.training.n_queries
        parts = [gain[:n_training], gain[n_training:]]
    else:
        odd = np.any([fold.test for fold in task.folds[1::2]], axis=0)
        parts = [gain[~odd], gain[odd]]
    means = [mean_of(part) for part in parts]
    if one.n_features < same.n_features:
        return all(mean >= 0 for mean in means)
    return all(mean > 0 for mean in means)
