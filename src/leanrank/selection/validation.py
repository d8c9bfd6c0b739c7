"""Choosing parameters by a measure on validation data."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.metrics.judge import Judge, best_of
from leanrank.rankers import get_ranker
from leanrank.registry import Space
from leanrank.selection.tuning.sweeps import count_features, fit_model, sweep_models


@dataclass(frozen=True)
class Split:
    """Training and validation data, and the measure to choose by.

    Parameters
    ----------
    train, validation : RankingData
    measure : str or tuple of str, default="map"
        As ``leanrank.metrics.evaluate`` takes it; of several the mean counts. A ranker that
        measures validation data itself, to stop early, uses the same.
    convention : str, default="standard"
    average_ties : bool, default=True
        As for ``leanrank.metrics.judge.Judge``.
    """

    train: RankingData
    validation: RankingData
    measure: str | tuple[str, ...] = "map"
    convention: str = "standard"
    average_ties: bool = True

    @property
    def judge(self) -> Judge:
        """The judge of the models."""
        return Judge(self.measure, self.convention, self.average_ties)

    def value(self, scores: FloatArray) -> float:
        """Measure scores of the validation data; NaN for scores that rank nothing."""
        return self.judge.value(self.validation, scores)


@dataclass(frozen=True)
class Trial:
    """Parameters that were tried, and the measure on the validation data.

    Attributes
    ----------
    parameters : dict
        ``get_ranker(space.ranker)(**parameters)`` is the ranker.
    value : float
        The measure; NaN if the model cannot be used.
    n_features : int
        How many features the model uses.
    values : dict of str to float
        Each measure by itself.
    """

    parameters: dict[str, Any]
    value: float
    n_features: int
    values: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Chosen:
    """A ranker with the parameters that validation data preferred.

    Attributes
    ----------
    parameters : dict
    value : float
        The measure on the validation data, during the search.
    ranker : fitted ranker
    n_features : int
        How many features it uses.
    n_trials : int
        How many models were compared.
    fit_seconds : float
        Of refitting the chosen model alone.
    search_seconds : float
        Of everything before that.
    notes : tuple of str
        What the last fit warned about.
    """

    parameters: dict[str, Any]
    value: float
    ranker: Any
    n_features: int
    n_trials: int
    fit_seconds: float
    search_seconds: float
    notes: tuple[str, ...] = ()


def fit_best(space: Space, split: Split) -> Chosen:
    """Try everything in a space, and fit the best once more on the training data.

    Examples
    --------
    >>> from leanrank.data import load_sample
    >>> from leanrank.registry import get_system
    >>> from leanrank.selection import Split, fit_best
    >>> train, vali, test = load_sample()
    >>> chosen = fit_best(get_system("rankrls").space, Split(train, vali, "ndcg@10"))
    >>> chosen.n_trials, sorted(chosen.parameters)
    (17, ['alpha'])
    """
    started = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the extremes of a grid may not converge
        trials = list(run_trials(space, split))
    best = best_trial(trials, split, space.ranker)
    searched = time.perf_counter() - started
    ranker = make_ranker(space, best.parameters, split.judge)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.perf_counter()
        fit_model(ranker, split.train, split.validation)
        fitted = time.perf_counter() - started
    return Chosen(
        parameters=best.parameters,
        value=best.value,
        ranker=ranker,
        n_features=count_features(ranker),
        n_trials=len(trials),
        fit_seconds=fitted,
        search_seconds=searched,
        notes=tuple(dict.fromkeys(str(warning.message) for warning in caught)),
    )


def run_trials(space: Space, split: Split) -> Iterator[Trial]:
    """Try everything in a space, setting by setting."""
    for setting in space.settings():
        yield from run_setting(space, setting, split)


def run_setting(space: Space, setting: Mapping[str, Any], split: Split) -> list[Trial]:
    """Try one setting of a space: one model, or all that its sweep gives."""
    fixed = {**space.fixed, **setting}
    ranker = make_ranker(space, fixed, split.judge)
    trials = []
    for model in sweep_models(space.sweep, ranker, split.train, split.validation):
        values = split.judge.means(split.validation, model.scores)
        mean = float(np.mean(list(values.values())))
        trials.append(Trial({**fixed, **model.parameters}, mean, model.n_features, values))
    return trials


def best_trial(trials: Iterable[Trial], split: Split, name: str = "the ranker") -> Trial:
    """Return the trial with the best measure; among equals the sparsest, then the first.

    >>> data = RankingData([[1.0], [2.0]], [0, 1])
    >>> tried = [Trial({"a": 1}, 0.5, 9), Trial({"a": 2}, 0.5, 3), Trial({"a": 3}, np.nan, 0)]
    >>> best_trial(tried, Split(data, data)).parameters
    {'a': 2}
    """
    listed = list(trials)
    worth = split.judge.worth([trial.value for trial in listed])
    if not (worth > -np.inf).any():
        raise InputError(
            f"no model that {name} gave ranks anything on the validation data: all weights are "
            "zero or not finite; try other parameters, or bring the features to one scale"
        )
    return listed[best_of(worth, [trial.n_features for trial in listed])]


def make_ranker(space: Space, parameters: Mapping[str, Any], judge: Judge) -> Any:
    """Make an unfitted ranker, which measures as a judge does."""
    kind = get_ranker(space.ranker)
    known = kind().get_params()
    own = {"measure": judge.measures[0], "convention": judge.rules, "n_jobs": 1}
    return kind(**{**{k: v for k, v in own.items() if k in known}, **parameters})
