"""Refitting a chosen model's features to the training and validation parts together."""

from __future__ import annotations

import warnings

from leanrank.model import Model, make_provenance
from leanrank.registry import Space
from leanrank.selection.tuning.candidate import Candidate
from leanrank.selection.tuning.trials import Task, placed
from leanrank.selection.validation import make_ranker


def fit_support(task: Task, chosen: Candidate) -> Model:
    """Fit a candidate's ranker, with its parameters and features, to both parts of the data.

    Only its features are offered, so that no limit is exceeded. A boosted model, or one whose fit
    fails, is returned unchanged.
    """
    boosted = not chosen.model.is_linear and chosen.parameters.get("curves") is None
    if boosted or task.validation is None:
        return chosen.model
    columns = chosen.model.indices
    algorithm, parameters = chosen.algorithm, dict(chosen.parameters)
    if "n_features_to_select" in parameters:  # the features are selected: what remains is a ridge
        algorithm = "rankrls"
        parameters = {k: v for k, v in parameters.items() if k in ("alpha", "normalize")}
    ranker = make_ranker(Space(algorithm), parameters, task.judge)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ranker.fit(task.both(columns)).to_model()
    if model.n_nonzero == 0:
        return chosen.model
    provenance = make_provenance(algorithm=type(ranker).__name__, parameters=parameters)
    return placed(model, columns, task.training, provenance)
