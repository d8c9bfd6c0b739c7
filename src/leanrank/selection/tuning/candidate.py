"""One model among many: what it is, what it costs, and what it is worth on each held-out query."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import counted
from leanrank.metrics.judge import mean_of
from leanrank.model.model import Model


@dataclass(frozen=True, eq=False, repr=False)
class Candidate:
    """A fitted model with what was measured of it on queries that it was not fitted to.

    Attributes
    ----------
    name : str
        Display name, such as "domination alpha=0.0123".
    algorithm : str
        The ranker's name on the command line.
    parameters : dict
        Of the ranker.
    model : Model
        Fitted on the training part.
    values : dict of str to array
        Each measure on every query of the validation part; NaN where it is undefined.
    n_features : int
        How many features the model uses.
    cost : float
        Their total cost; 1 each by default.
    training_values : dict of str to array
        The same on the training part, every query by a model of these parameters that was fitted
        without it; empty if not measured.
    seconds : float or None
        Time of the fit.

    Examples
    --------
    >>> from leanrank.model import Model
    >>> model = Model.from_coef([0.0, 2.0])
    >>> one = Candidate("by hand", "none", {}, model, {"map": np.array([0.5, np.nan, 0.7])}, 1, 1.0)
    >>> one.means
    {'map': 0.6}
    >>> one
    Candidate: by hand, 1 feature, map 0.6000
    """

    name: str
    algorithm: str
    parameters: Mapping[str, Any]
    model: Model
    values: Mapping[str, FloatArray]
    n_features: int
    cost: float
    training_values: Mapping[str, FloatArray] = field(default_factory=dict)
    seconds: float | None = None
    _scores: dict[str, float] = field(default_factory=dict, init=False)

    @property
    def means(self) -> dict[str, float]:
        """The mean of each measure over the validation queries where it is defined."""
        return {name: mean_of(values) for name, values in self.values.items()}

    def judged(self, measure: str) -> FloatArray:
        """Return a measure on all queries that judge: training queries first, then validation."""
        held_out = self.values[measure]
        if measure not in self.training_values:
            return held_out
        return np.concatenate([self.training_values[measure], held_out])

    def score(self, measure: str) -> float:
        """Return the mean over all queries that can judge: what a choice goes by.

        A validation part alone is small for a choice among hundreds of models. The training
        queries, each scored by a model fitted without it, are several times as many.
        """
        if measure not in self._scores:  # a search asks often
            self._scores[measure] = mean_of(self.judged(measure))
        return self._scores[measure]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {mean:.4f}" for name, mean in self.means.items())
        return f"Candidate: {self.name}, {counted(self.n_features, 'feature')}, {shown}"


def describe(algorithm: str, parameters: Mapping[str, Any]) -> str:
    """Return the name of a model: its algorithm and the parameters that distinguish it.

    >>> describe("domination", {"tol": 1e-5, "alpha": 0.012345678, "normalize": "term"})
    'domination alpha=0.01235 normalize=term'
    """
    words = [
        f"{name}={value:.4g}" if isinstance(value, float) else f"{name}={value}"
        for name, value in parameters.items()
        if value is not None and name not in _NOT_SHOWN
    ]
    return " ".join([algorithm, *words])


_NOT_SHOWN = frozenset({"tol", "max_iter", "random_state", "epochs", "n_steps", "patience"})
