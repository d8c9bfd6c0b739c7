"""A budgeted search for the best model within some limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.spread import scale_wanted
from leanrank.errors import InputError
from leanrank.rankers.cluster import ClusterData
from leanrank.rankers.validation import as_data
from leanrank.registry import SYSTEMS, Fits
from leanrank.selection.cluster import (
    ClusterTask,
    fingerprint_of,
    list_unable,
    on_dask,
    read_parts,
    takes_gaps,
    unable,
)
from leanrank.selection.tuning.costs import Costs
from leanrank.selection.tuning.front import choose
from leanrank.selection.tuning.journal import Journal
from leanrank.selection.tuning.refit import fit_support
from leanrank.selection.tuning.search import Progress, Search
from leanrank.selection.tuning.study import Study
from leanrank.selection.tuning.trials import Task

REFITS = ("train", "both")


def tune(
    training: Any,
    validation: Any = None,
    *,
    scale: str | None = "auto",
    measure: str = "ndcg@10",
    convention: str = "standard",
    measures: Sequence[str] = ("ndcg@10", "map"),
    max_features: int | None = None,
    max_cost: float | None = None,
    min_measure: Mapping[str, float] | None = None,
    rule: str = "best",
    costs: Costs | None = None,
    systems: Sequence[str] | None = None,
    budget: float | None = None,
    trials: int | None = None,
    journal: Any = None,
    refit: str = "train",
    n_jobs: int | None = None,
    progress: Callable[[Progress], None] = lambda at: None,
) -> Study:
    """Search for the best model within some limits.

    Parameters
    ----------
    training : RankingData, data frame or (X, y, qid)
        A data frame has its labels and queries in the columns ``label`` and ``qid``; see
        ``leanrank.data.from_frame`` for other names. On Dask a DataFrame, (X, y, qid), or a
        list of delayed RankingData: fits and judgements then happen on the workers, and only
        systems that fit there are tried.
    validation : RankingData, data frame or (X, y, qid), optional
        Without it, models are judged by cross-validation over the training queries alone. On Dask
        if ``training`` is.
    scale : str, default="auto"
        A normaliser of features, as ``leanrank train --scale`` takes it; "auto" standardises
        features whose spreads differ widely, "none" does not scale. It is fitted without the
        queries that judge.
    measure, convention : str
        What to optimise.
    measures : sequence of str
        What else to measure.
    max_features, max_cost, min_measure, rule : optional
        As for ``leanrank.selection.choose``.
    costs : Costs, optional
        What features cost; 1 each by default.
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
    n_jobs : int, optional
        Threads, or on Dask fits at a time; with ``trials`` nothing but time depends on it.
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
    if refit not in REFITS:
        raise InputError(f"refit={refit!r} is not known: choose 'train' or 'both'")
    there = on_dask(training)
    unscaled, held_out = _read(training, validation, there=there)
    _check(unscaled, held_out, max_features, budget, trials)
    names = default_systems() if systems is None else list(systems)
    skipped = unable(names, unscaled) if there or systems is None else {}
    if skipped and (systems is not None or len(skipped) == len(names)):
        raise InputError(f"on Dask these cannot be tried: {list_unable(skipped)}: name others")
    names = [name for name in names if name not in skipped]
    choice = scale_wanted(unscaled, scale, curves=all(map(takes_gaps, names)))
    normalizer = choice.make()
    training, validation = unscaled, held_out
    if normalizer is not None:
        training = unscaled.scaled(normalizer) if there else normalizer.fit_transform(unscaled)
    if normalizer is not None and held_out is not None:
        validation = held_out.transformed(normalizer) if there else normalizer.transform(held_out)
    limits: dict[str, Any] = {"max_features": max_features, "max_cost": max_cost}
    kept = tuple(dict.fromkeys([measure, *(min_measure or {})]))
    task = (ClusterTask if there else Task)(
        training=training,
        validation=validation,
        measure=measure,
        measures=tuple(dict.fromkeys([*kept, *measures])),
        kept=kept,
        convention=convention,
        costs=costs,
        n_jobs=n_jobs,
        unscaled=unscaled,
        scale=choice.kind,
    )
    settings = _settings(task, names, {**limits, "min_measure": dict(min_measure or {})})
    with Journal(journal, settings) as kept_trials:
        search = Search(task, names, kept_trials, budget=budget, trials=trials, **limits)
        search.run(progress)
    chosen = choose(
        search.candidates, measure=measure, min_measure=min_measure, rule=rule, **limits
    )
    if refit == "both" and validation is not None:
        chosen = replace(chosen, model=fit_support(task, chosen))
    return Study(
        measure=measure,
        convention=convention,
        candidates=search.candidates,
        chosen=chosen,
        training=training,
        validation=training if validation is None else validation,
        measures=task.measures,
        feature_names=training.feature_names,
        costs=costs,
        history=search.history,
        normalizer=normalizer,
        scale_reason=choice.reason,
        not_tried=search.not_tried,
        skipped=skipped,
        problems=search.problems,
        interrupted=search.interrupted,
    )


def default_systems() -> list[str]:
    """List the systems that a search tries, quick ones first.

    Paths of linear models, sparse ones first; then systems with one model per fit; then paths of
    curves, which take most of the time.
    """
    return sorted((name for name, system in SYSTEMS.items() if system.tuning), key=_turn)


def _turn(name: str) -> tuple[bool, bool, bool]:
    system = SYSTEMS[name]
    assert system.tuning is not None
    one_model = isinstance(system.tuning.sweep, Fits)
    return "curves" in system.tuning.fixed, one_model, not system.sparse_path


def _settings(task: Task, systems: Sequence[str], wishes: Mapping[str, Any]) -> dict[str, Any]:
    """List what results depend on, except for how long the search goes on."""
    from leanrank._version import __version__

    return {
        "version of leanrank": __version__,
        "scale": task.scale,
        "training data": fingerprint_of(task.unscaled or task.training),
        "validation data": None if task.validation is None else fingerprint_of(task.validation),
        "measure": task.measure,
        "convention": task.convention,
        "measures": list(task.measures),
        "systems": list(systems),
        **wishes,
        "costs": None if task.costs is None else [task.costs.unit, *task.costs.each.tolist()],
    }


def _read(training: Any, validation: Any, *, there: bool) -> tuple[Any, Any]:
    if there:
        return read_parts(training, validation)
    if on_dask(validation):
        raise InputError("validation is on Dask but the training data are not: give both there")
    return as_data(training, "training"), as_data(validation)


def _check(
    training: RankingData | ClusterData,
    validation: RankingData | ClusterData | None,
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
    if max_features is not None and max_features < 1:
        raise InputError(f"max_features={max_features} leaves no model: give 1 or more")
    if budget is not None and not budget > 0:
        raise InputError(f"a budget of {budget} seconds is no time: give more than 0")
    if trials is not None and trials < 1:
        raise InputError(f"trials={trials} tries nothing: give 1 or more")
    if budget is not None and trials is not None:
        raise InputError("both a budget and a number of trials were given: give one")
