"""A budgeted search for the best model within some limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leanrank._numbers import check_number, check_whole
from leanrank._typing import FloatArray
from leanrank.data.clicks.click_log import ClickLog
from leanrank.data.dask import is_dask
from leanrank.data.matrices import has_gaps
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.spread import scale_wanted
from leanrank.errors import InputError, check_choice
from leanrank.model.provenance import fingerprint
from leanrank.rankers import get_ranker
from leanrank.rankers.inputs import as_data, grouped_gains
from leanrank.registry import SYSTEMS, Fits, Front, get_system
from leanrank.selection.candidate import choose
from leanrank.selection.costs import feature_costs
from leanrank.selection.journal import Journal
from leanrank.selection.search import Progress, Search
from leanrank.selection.study import Study
from leanrank.selection.trials import Task, fit_support

REFITS = ("train", "both")


def tune(
    training: Any,
    validation: Any = None,
    *,
    scale: str | None = "auto",
    choose_by: str | None = None,
    measure: str = "ndcg@10",
    convention: str = "standard",
    measures: Sequence[str] = ("ndcg@10", "map"),
    max_features: int | None = None,
    max_cost: float | None = None,
    min_measure: Mapping[str, float] | None = None,
    rule: str = "best",
    costs: Any = None,
    systems: Sequence[str] | None = None,
    budget: float | None = None,
    trials: int | None = None,
    journal: Any = None,
    refit: str = "train",
    gain_weight: Any = None,
    n_jobs: int | None = None,
    progress: Callable[[Progress], None] = lambda at: None,
) -> Study:
    """Search for the best model within some limits.

    Parameters
    ----------
    training : RankingData, data frame, (X, y, qid) or ClickLog
        A data frame has its labels and queries in the columns ``label`` and ``qid``; see
        ``leanrank.data.from_frame`` for other names. Clicks are weighed by the inverse propensity
        of their positions, which is estimated from documents that moved; with propensities of your
        own, give ``click_weights`` as labels and ``gain_weight``. Of data larger than memory give
        a sample, and fit what it chooses to all of them.
    validation : RankingData, data frame, (X, y, qid) or ClickLog, optional
        Without it, models are judged by cross-validation over the training queries alone.
    scale : str, default="auto"
        A normaliser of features, as ``leanrank train --scale`` takes it; "auto" standardises
        features whose spreads differ widely, "none" does not scale. It is fitted without the
        queries that judge.
    choose_by : str, optional
        The measure that models are chosen by; by default ``measure``. "loss" is smooth in the
        scores, and so less a matter of luck than a measure of ranks.
    measure, convention : str
        What is reported first, and shown in tables and charts.
    measures : sequence of str
        What else to measure.
    max_features, max_cost, min_measure, rule : optional
        As for ``leanrank.selection.choose``.
    costs : array-like or dict by feature, optional
        What features cost, in one unit; ``"*"`` is for all that a dict does not name. 1 each by
        default.
    systems : sequence of str, optional
        What to try, in this order; by default those of the registry with a tuning space, quick
        ones first.
    budget : float, optional
        Seconds of fitting; compiling, which only a first run needs, does not count. Only the first
        fit, and one of a ranker that cannot be interrupted, may exceed it.
    trials : int, optional
        Instead of a budget: how many trials. The answer is then the same on every run, also one
        that was killed and went on from its journal. Neither: a budget of 60 seconds.
    journal : path, optional
        A file that keeps every trial, to resume from.
    refit : {"train", "both"}, default="train"
        Whether the chosen model is fitted to the training part, or its features are refitted to
        training and validation part together.
    gain_weight : array-like, optional
        As for ``fit``: one weight per training document for the terms in which it dominates others.
        Systems whose loss has no such terms fail, and are named in ``study.problems``.
    n_jobs : int, optional
        Threads; with ``trials`` nothing but time depends on it.
    progress : callable, optional
        Called with the progress before every trial.

    Returns
    -------
    Study
        ``study.model`` is the chosen model. After Ctrl-C it is the best so far, and
        ``study.interrupted`` is set.

    Notes
    -----
    A ranker that stops by validation data gets a fifth of its training queries for that, and is
    then fitted to all of them for as many rounds: queries that judge a model are not used to fit
    it.

    Examples
    --------
    >>> from leanrank.data import load_sample
    >>> train, vali, test = load_sample()
    >>> study = tune(train, vali, systems=["domination"], trials=2, max_features=4)
    >>> study.chosen.n_features <= 4, len(study.front) > 1
    (True, True)
    """
    check_choice("refit", refit, REFITS)
    data, gains = _read(training, "training", gain_weight)
    if data is None:
        raise InputError("training is None: give a RankingData, a data frame or (X, y, qid)")
    held_out = with_columns_of(data, _read(validation, "validation")[0])
    _check(data, held_out, max_features, budget, trials)
    if gains is not None and refit == "both":
        raise InputError("refit='both' has no gain_weight for validation documents: leave it out")
    names = default_systems() if systems is None else list(systems)
    skipped: tuple[str, ...] = ()
    if systems is None and has_gaps(data.X):
        skipped = tuple(name for name in names if not _takes_gaps(name))
    names = [name for name in names if name not in skipped]
    choice = scale_wanted(data, scale, curves=all(map(_takes_gaps, names)))
    limits: dict[str, Any] = {"max_features": max_features, "max_cost": max_cost}
    choose_by = measure if choose_by is None else choose_by
    chosen_by = tuple(dict.fromkeys([measure, choose_by, *(min_measure or {})]))
    task = Task(
        training=data,
        validation=held_out,
        choose_by=choose_by,
        measure=measure,
        measures=tuple(dict.fromkeys([*chosen_by, *measures])),
        training_measures=chosen_by,
        convention=convention,
        costs=feature_costs(costs, data.feature_names, data.n_features),
        n_jobs=n_jobs,
        scale=choice.kind,
        gain_weight=gains,
        **limits,
    )
    settings = _settings(task, names, dict(min_measure or {}))
    with Journal(journal, settings) as kept_trials:
        search = Search(task, names, kept_trials, budget=budget, trials=trials)
        search.run(progress)
    chosen = choose(
        search.candidates, measure=choose_by, min_measure=min_measure, rule=rule, **limits
    )
    if refit == "both" and held_out is not None:
        chosen = replace(chosen, model=fit_support(task, chosen))
    return Study(
        measure=measure,
        choose_by=choose_by,
        convention=convention,
        candidates=search.candidates,
        chosen=chosen,
        training=data,
        validation=task.whole.validation,
        measures=task.measures,
        feature_names=data.feature_names,
        costs=task.costs,
        history=search.history,
        normalizer=task.whole.normalizer,
        scale_reason=choice.reason,
        not_tried=search.not_tried,
        skipped=skipped,
        problems=search.problems,
        interrupted=search.interrupted,
        default=task.best(one for one in search.candidates if chooses_itself(one.algorithm)),
    )


def default_systems() -> list[str]:
    """List the systems that a search tries, quick ones first.

    The one that chooses by itself; sparse paths of lines and curves; other paths; systems with one
    model per fit.
    """

    def turn(name: str) -> tuple[bool, ...]:
        one_model = isinstance(SYSTEMS[name].tuned_space.sweep, Fits)
        return not chooses_itself(name), not SYSTEMS[name].sparse_path, one_model

    return sorted((name for name, system in SYSTEMS.items() if system.tuning), key=turn)


def chooses_itself(name: str) -> bool:
    """Return whether a system chooses its strength and gives a model of every size."""
    return isinstance(SYSTEMS[name].tuned_space.sweep, Front)


def _settings(
    task: Task, systems: Sequence[str], min_measure: Mapping[str, float]
) -> dict[str, Any]:
    """List what results depend on, except for how long the search goes on."""
    from leanrank._version import __version__

    parts = {"training data": task.training, "validation data": task.validation}
    plain = ("scale", "measure", "choose_by", "convention", "measures", "max_features", "max_cost")
    return {
        "version of leanrank": __version__,
        **{name: None if part is None else fingerprint(part) for name, part in parts.items()},
        "feature names": task.training.feature_names,
        "gain_weight": None if task.gain_weight is None else task.gain_weight.tolist(),
        **{name: getattr(task, name) for name in plain},
        "systems": list(systems),
        "min_measure": min_measure,
        "costs": None if task.costs is None else task.costs.tolist(),
    }


def _read(
    given: Any, name: str, gain_weight: Any = None
) -> tuple[RankingData | None, FloatArray | None]:
    """Return data and their gain weights, in the order of the data."""
    if any(map(is_dask, given if isinstance(given, (tuple, list)) else [given])):
        raise InputError(
            f"{name} is on Dask: tune on a sample in memory, and fit what it chooses there"
        )
    if isinstance(given, ClickLog):
        return given.labelled(None, gain_weight=gain_weight)
    data = as_data(given, name)
    if data is None:
        return None, None
    return data, grouped_gains(gain_weight, data, grouped=data is given)


def with_columns_of(
    training: RankingData, data: RankingData | None, name: str = "validation"
) -> RankingData | None:
    """Return validation or test data with the features in the order of the training data."""
    if data is None or data.feature_names is None or training.feature_names is None:
        return data
    if data.feature_names == training.feature_names:
        return data
    place = {name: at for at, name in enumerate(data.feature_names)}
    lacking = [name for name in training.feature_names if name not in place]
    if lacking:
        raise InputError(f"the {name} data have no feature {lacking[0]!r}: give both the same")
    order = [place[name] for name in training.feature_names]
    return data.replace(X=data.X[:, order], feature_names=training.feature_names)


def _takes_gaps(name: str) -> bool:
    """Return whether a search fits curves or steps with a system: in any unit, and with gaps."""
    space = get_system(name).tuned_space
    return bool(get_ranker(space.ranker)(**space.fixed)._takes_nan)


def _check(
    training: RankingData,
    validation: RankingData | None,
    max_features: int | None,
    budget: float | None,
    trials: int | None,
) -> None:
    if validation is not None and validation.n_features != training.n_features:
        raise InputError(
            f"the validation data has {validation.n_features} features, the training data "
            f"{training.n_features}: give both the same columns"
        )
    if validation is None and int(training.informative.sum()) < 2:
        raise InputError(
            "without validation data, cross-validation needs two training queries with documents "
            "at two levels: give validation data"
        )
    for name, limit in (("max_features", max_features), ("trials", trials)):
        if limit is not None:
            check_whole(name, limit)
    if budget is not None:
        check_number("budget", budget, open_low=True)
    if budget is not None and trials is not None:
        raise InputError("both a budget and a number of trials were given: give one")
