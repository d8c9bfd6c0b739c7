"""A study of one model that is there already: what a report of it needs."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import DataWarning, InputError
from leanrank.model.base import Model
from leanrank.selection.candidate import Candidate, describe
from leanrank.selection.costs import Costs
from leanrank.selection.study import Study
from leanrank.selection.systems import fit_system
from leanrank.selection.validation import Split

BASELINES = {"bestfeature": "best feature", "rankrls": "RankRLS, all features"}


def study_of_model(
    model: Model,
    training: RankingData,
    validation: RankingData,
    *,
    measure: str = "ndcg@10",
    measures: Sequence[str] = ("ndcg@10", "map"),
    convention: str = "standard",
    costs: Costs | None = None,
    history: Sequence[Mapping[str, Any]] | None = None,
) -> Study:
    """Measure a model and simple baselines on validation data.

    Parameters
    ----------
    model : Model
        Such as ``ranker.to_model()`` or ``load_model(path)`` gives.
    training : RankingData
        What the model was fitted to; the baselines are fitted to it as well.
    validation : RankingData
    measure, convention : str
    measures : sequence of str
        What else to measure.
    costs : Costs, optional
    history : list of dict, optional
        A learning curve.

    Examples
    --------
    >>> from leanrank import DominationRanker
    >>> from leanrank.data import load_sample
    >>> train, vali, test = load_sample()
    >>> model = DominationRanker(alpha=0.2).fit(train).to_model()
    >>> study_of_model(model, train, vali)
    Study: 1 candidates by ndcg@10 (standard), 1 on the front, chosen: DominationRanker alpha=0.2
    """
    names = tuple(dict.fromkeys([measure, *measures]))
    split = Split(training, validation, measure, convention)
    values = measured(split, model.predict(validation), validation, names)
    cost = float(model.n_nonzero) if costs is None else costs.of(model.indices)
    made = model.provenance
    algorithm = str(made.get("algorithm", type(model).__name__))
    parameters = {k: v for k, v in dict(made.get("parameters") or {}).items() if _told(k, v)}
    one = Candidate(
        describe(algorithm, parameters), algorithm, parameters, model, values, model.n_nonzero, cost
    )
    if model.n_nonzero == 0:
        raise InputError("the model uses no feature: there is nothing to report")
    return Study(
        measure=measure,
        convention=convention,
        candidates=[one],
        chosen=one,
        training=training,
        validation=validation,
        measures=names,
        feature_names=model.feature_names or training.feature_names,
        costs=costs,
        baselines={
            name: measured(split, baseline.predict(validation), validation, names)
            for name, baseline in fit_baselines(split).items()
        },
        history=history,
    )


def fit_baselines(split: Split) -> dict[str, Any]:
    """Fit what every model should beat; one that cannot be fitted is left out."""
    found = {}
    for system, name in BASELINES.items():
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found[name] = fit_system(system, split).ranker
        except InputError:  # such as labels that nothing ranks
            continue
    return found


def measured(
    split: Split, scores: FloatArray, data: RankingData, measures: Sequence[str]
) -> dict[str, FloatArray]:
    """Measure scores query by query as the split judges: ties do not follow the file's order."""
    from leanrank.metrics import evaluate

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        result = evaluate(data, scores, measures=list(measures), convention=split.judge, n_jobs=1)
    return {name: np.asarray(values) for name, values in result.per_query.items()}


def _told(name: str, value: Any) -> bool:
    """Leave out of a model's name what is as it always is."""
    return value is not None and not isinstance(value, (bool, dict, list)) and name not in _USUAL


_USUAL = frozenset({"tol", "max_iter", "normalize", "random_state", "verbose"})
