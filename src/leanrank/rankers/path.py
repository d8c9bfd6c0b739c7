"""A regularisation path: models from the emptiest to the fullest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError


@dataclass(frozen=True)
class Path:
    """Models along descending strengths of a penalty.

    Attributes
    ----------
    alphas : array
        Descending.
    coefs : array of shape (n_alphas, n_features)
    dual_gaps, objectives : array
        The certificate of each model.
    n_iters : array
    measures : dict of str to array
        Each measure of each model on the validation data.
    """

    alphas: FloatArray
    coefs: FloatArray
    dual_gaps: FloatArray
    objectives: FloatArray
    n_iters: IntArray
    measures: dict[str, FloatArray] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.alphas)

    @property
    def n_selected(self) -> IntArray:
        """How many features each model uses."""
        return np.count_nonzero(self.coefs, axis=1)

    def best(self, measure: str | None = None) -> int:
        """Give the position of the model that a measure prefers, the sparsest among equals.

        Models without any feature are never preferred: a measure can credit them with the order of
        the file.
        """
        if not self.measures:
            raise InputError("the path was not measured: give validation= to path()")
        name = next(iter(self.measures)) if measure is None else measure
        if name not in self.measures:
            raise InputError(
                f"the path was not measured by {name!r}, only by {list(self.measures)}"
            )
        from leanrank.metrics import Measure

        values = self.measures[name] * (1.0 if Measure.parse(name).higher_is_better else -1.0)
        usable = (self.n_selected > 0) & np.isfinite(values)
        if not usable.any():
            raise InputError("no model of the path uses a feature: let it reach a smaller alpha")
        top = usable & (values == values[usable].max())
        return int(np.argmin(np.where(top, self.n_selected, self.coefs.shape[1] + 1)))


def alpha_grid(top: float, n_alphas: int, ratio: float) -> FloatArray:
    """Space strengths evenly on a logarithmic scale, from the top down.

    >>> alpha_grid(1.0, 3, 0.01).tolist()
    [1.0, 0.1, 0.01]
    """
    if isinstance(n_alphas, bool) or not isinstance(n_alphas, (int, np.integer)) or n_alphas < 1:
        raise InputError(f"n_alphas={n_alphas!r} must be a positive whole number")
    if not 0 < ratio < 1:
        raise InputError(f"alpha_min_ratio={ratio!r} must be between 0 and 1")
    return top * np.logspace(0, np.log10(ratio), n_alphas)


def measure_models(
    coefs: FloatArray, data: RankingData | None, measures: Sequence[str], convention: str
) -> dict[str, FloatArray]:
    """Evaluate each model on held-out data."""
    if data is None:
        return {}
    import warnings

    from leanrank.errors import DataWarning
    from leanrank.metrics import evaluate

    if data.n_features != coefs.shape[1]:
        raise InputError(
            f"the validation data has {data.n_features} features, the training data "
            f"{coefs.shape[1]}: give both the same columns"
        )
    measures = [measures] if isinstance(measures, str) else list(measures)
    used = np.flatnonzero(np.any(coefs, axis=0))
    scores = np.asarray(data.X[:, used] @ coefs[:, used].T)
    results = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # empty models tie everywhere
        for column in scores.T:
            results.append(
                evaluate(data.y, column, data.qid, measures=measures, convention=convention).means
            )
    return {name: np.array([r[name] for r in results]) for name in measures}
