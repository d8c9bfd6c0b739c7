"""What a model is held against: the best single feature, and a ridge on all features."""

from __future__ import annotations

from leanrank._typing import FloatArray
from leanrank.selection.peers import fit_single_feature
from leanrank.selection.spaces import SPACES
from leanrank.selection.trials import Task, run_trial


def measure_baselines(task: Task) -> dict[str, dict[str, FloatArray]]:
    """Measure simple rankers query by query, on the queries that judge candidates.

    The ridge's strength is the best of a path by the same judgement as that of every candidate.

    Examples
    --------
    >>> from leanrank.data import load_sample
    >>> train, vali, test = load_sample()
    >>> list(measure_baselines(Task(train, vali)))
    ['best feature', 'RankRLS, all features']
    """
    single = fit_single_feature(task.split)
    judging = task.validation or task.training
    found = {"best feature": task.measured(judging, single.ranker.predict(judging), task.measures)}
    ridges = run_trial(task, SPACES["rankrls"], {})
    if ridges:
        sign = task.split.sign
        best = max(ridges, key=lambda one: sign * one.score(task.measure))
        found["RankRLS, all features"] = dict(best.values)
    return found
