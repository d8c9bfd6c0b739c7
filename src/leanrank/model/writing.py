"""Writing a model file: the same model gives the same bytes, in a layout for reading and diffs."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from leanrank.data.ranking_data import RankingData, column_values, feature_name
from leanrank.errors import InputError
from leanrank.model.alignment import fill_gaps
from leanrank.model.model import Model


def save_model(estimator: Any, path: str | os.PathLike[str]) -> Model:
    """Write a fitted ranker, a pipeline of a normaliser and a ranker, or a model to a file.

    Parameters
    ----------
    estimator : object
        A ranker with ``to_model()``; a scikit-learn ``Pipeline`` of, optionally, a
        ``SimpleImputer`` and a normaliser of ``leanrank.data``, and a ranker; or a model.
    path : path
        The file; ``"-"`` is standard output.

    Returns
    -------
    Model
        The model that was written.
    """
    model = as_model(estimator)
    model.save(path)  # type: ignore[arg-type]
    return model


def as_model(estimator: Any, normalizer: Any = None) -> Model:
    """Return the model of a fitted ranker or pipeline, with the normaliser before it."""
    if normalizer is not None:
        return _from_pipeline([("normalizer", normalizer), ("ranker", estimator)])
    if isinstance(estimator, Model):
        return estimator
    if hasattr(estimator, "steps"):
        return _from_pipeline(estimator.steps)
    if hasattr(estimator, "to_model"):
        made: Model = estimator.to_model()
        return made
    raise InputError(
        f"{type(estimator).__name__} cannot be saved as a model: it has no to_model(); give a "
        "fitted ranker, or a pipeline that ends in one"
    )


def fill_values(data: RankingData, fill: Any) -> dict[int, float]:
    """Return the numbers that replace missing features: ``fill`` of a model.

    Parameters
    ----------
    data : RankingData
        The training data, for medians.
    fill : "median", float or mapping
        For all features, or by their names (``f1`` is the first of data without names).

    Examples
    --------
    >>> data = RankingData([[1.0, 7.0], [3.0, np.nan], [8.0, 9.0]], [0, 1, 2])
    >>> fill_values(data, "median"), fill_values(data, {"f2": -1.0})
    ({0: 3.0, 1: 8.0}, {1: -1.0})
    """
    names = [feature_name(at, data.feature_names) for at in range(data.n_features)]
    wanted = dict(fill) if isinstance(fill, Mapping) else dict.fromkeys(names, fill)
    places, found = {name: at for at, name in enumerate(names)}, {}
    for name, value in wanted.items():
        if name not in places:
            raise InputError(f"`fill` names {name!r}, which is not a feature of the data")
        if value == "median":
            column = column_values(data.X, places[name])
            value = np.median(column[~np.isnan(column)]) if not np.isnan(column).all() else 0.0
        try:
            found[places[name]] = float(value)
        except ValueError as error:
            raise InputError(f"`fill` of {name!r} is {value!r}: give median or a number") from error
    return found


def with_fill(data: RankingData, fill: Mapping[int, float]) -> RankingData:
    """Return data in which missing values are replaced, by feature."""
    return data.with_fields(X=fill_gaps(data.X, fill)) if fill else data


def layout(document: Mapping[str, Any]) -> str:
    """Return a document as JSON with one curve or one entry of the provenance per line.

    >>> print(layout({"n_features": 2, "curves": [{"feature": 1, "weight": 0.1}]}), end="")
    {
      "n_features": 2,
      "curves": [
        {"feature": 1, "weight": 0.1}
      ]
    }
    """
    entries = [f"  {_flat(key)}: {_laid_out(value)}" for key, value in document.items()]
    return "{\n" + ",\n".join(entries) + "\n}\n"


def _laid_out(value: Any) -> str:
    if isinstance(value, list) and value:
        return "[\n" + ",\n".join(f"    {_flat(item)}" for item in value) + "\n  ]"
    if isinstance(value, dict) and value:
        lines = [f"    {_flat(key)}: {_flat(value[key])}" for key in sorted(value)]
        return "{\n" + ",\n".join(lines) + "\n  }"
    return _flat(value)


def _flat(value: Any) -> str:
    # The keys of a term are in the order of its class, all others are sorted.
    keep = isinstance(value, dict) and not {"feature", "features"}.isdisjoint(value)
    return json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=not keep)


def _from_pipeline(steps: list[tuple[str, Any]]) -> Model:
    active = [(name, step) for name, step in steps if step is not None and step != "passthrough"]
    if not active or not hasattr(active[-1][1], "to_model"):
        raise InputError("the pipeline cannot be saved as a model: its last step must be a ranker")
    from leanrank.data.scaling.normalizers import as_normalizer

    model: Model = active[-1][1].to_model()
    changes: dict[str, Any] = {}
    names = model.feature_names
    for name, step in active[:-1]:
        normalizer = as_normalizer(step)
        if normalizer is not None and model.normalizer is None and "normalizer" not in changes:
            changes["normalizer"] = normalizer.to_dict()
        elif _only_fills(step) and not changes:
            changes["fill"] = dict(enumerate(step.statistics_.tolist()))
        else:
            raise InputError(
                f"the pipeline cannot be saved as a model because of its step {name!r}: steps "
                "before the ranker can be a SimpleImputer that adds and drops no features, and one "
                "normaliser of leanrank.data, StandardScaler or MaxAbsScaler"
            )
        seen = getattr(step, "feature_names_in_", None)  # of a data frame, not passed on
        names = names if names or seen is None else tuple(map(str, seen))
    return model.replace(feature_names=names, **changes)


def _only_fills(step: Any) -> bool:
    """Return whether a step is a SimpleImputer that adds and drops no features."""
    simple = type(step).__name__ == "SimpleImputer" and not step.add_indicator
    return simple and not np.isnan(step.statistics_).any()
