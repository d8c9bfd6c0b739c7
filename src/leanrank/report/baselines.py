"""What every model should beat: the best single feature, and least squares on all of them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.selection.engine import Split
from leanrank.selection.systems import fit_system

BASELINES = {"bestfeature": "best feature", "rankrls": "RankRLS, all features"}


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
