"""Fitted models with their sizes, costs and measures on held-out queries, and a choice among them.

``pareto_front`` returns the front of accuracy, size and cost; ``choose`` the best within limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import counted
from leanrank.errors import InputError
from leanrank.metrics.judge import as_good_as, better_sign, check_rule, mean_of


@dataclass(frozen=True, eq=False, repr=False)
class Candidate:
    """A fitted model with its measures on queries that it was not fitted to.

    Attributes
    ----------
    name : str
        Display name, such as "domination alpha=0.0123".
    algorithm : str
        The ranker's name on the command line.
    parameters : dict
        Parameters of the ranker.
    model : Model
        Fitted on the training part. It contains the normaliser and takes unscaled features. For
        another library, an object with ``predict``.
    values : dict of str to array
        Each measure on every query of the validation part; NaN where it is undefined.
    n_features : int
        Number of features in the model.
    cost : float
        Their total cost; 1 each by default.
    training_values : dict of str to array
        Each measure on every query of the training part, by a model with these parameters that was
        fitted without the query; empty if not measured.
    seconds : float or None
        Time of the fit.
    n_trials : int
        Number of models from which it was chosen.
    search_seconds : float
        Time to fit and measure these models.
    notes : tuple of str
        Warnings of its fit.

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
    model: Any
    values: Mapping[str, FloatArray]
    n_features: int
    cost: float
    training_values: Mapping[str, FloatArray] = field(default_factory=dict)
    seconds: float | None = None
    n_trials: int = 1
    search_seconds: float = 0.0
    notes: tuple[str, ...] = ()
    _scores: dict[str, float] = field(default_factory=dict, init=False)

    @classmethod
    def of(
        cls,
        algorithm: str,
        parameters: Mapping[str, Any],
        model: Any,
        values: Mapping[str, FloatArray],
        costs: FloatArray | None = None,
        **more: Any,
    ) -> Candidate:
        """Return a candidate named by its parameters; by default each feature costs 1."""
        name, size = describe(algorithm, parameters), model.n_nonzero
        cost = float(size) if costs is None else float(costs[model.indices].sum())
        return cls(name, algorithm, parameters, model, values, size, cost, **more)

    @property
    def value(self) -> float:
        """The mean of all its measures over the validation queries."""
        return float(np.mean(list(self.means.values())))

    @property
    def means(self) -> dict[str, float]:
        """The mean of each measure over the validation queries where it is defined."""
        return {name: mean_of(values) for name, values in self.values.items()}

    def judged(self, measure: str) -> FloatArray:
        """Return a measure on all held-out queries: of the training part, then of validation."""
        held_out = self.values[measure]
        if measure not in self.training_values:
            return held_out
        return np.concatenate([self.training_values[measure], held_out])

    def score(self, measure: str) -> float:
        """Return the mean of a measure over ``judged``, by which models are chosen.

        A validation part alone is small for a choice among hundreds of models. The training
        queries, each scored by a model fitted without it, are several times as many.
        """
        if measure not in self._scores:  # a search needs it often
            self._scores[measure] = mean_of(self.judged(measure))
        return self._scores[measure]

    def __repr__(self) -> str:
        shown = ", ".join(f"{name} {value:.4f}" for name, value in self.figures().items())
        return f"Candidate: {self.name}, {counted(self.n_features, 'feature')}, {shown}"

    def figures(self) -> dict[str, float]:
        """Return scores and means under their names in tables.

        With ``training_values`` a measure has two: the score, by which models are chosen, and the
        mean over the validation queries.
        """
        if not self.training_values:
            return self.means
        both = {
            f"{name} (validation and training)": self.score(name) for name in self.training_values
        }
        return both | {f"{name} (validation)": mean for name, mean in self.means.items()}


def describe(algorithm: str, parameters: Mapping[str, Any]) -> str:
    """Return the name of a model: its algorithm and its distinctive parameters.

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


def pareto_front(candidates: Iterable[Candidate], *, measure: str) -> list[Candidate]:
    """Return the Pareto front of measure, number of features and cost.

    Parameters
    ----------
    candidates : iterable of Candidate
    measure : str
        By ``Candidate.score``. A candidate with an undefined score or without features is never on
        the front.

    Returns
    -------
    list of Candidate
        Fewest features first; of equal candidates, the first one.

    Examples
    --------
    >>> from leanrank.model import Model
    >>> def made(value, n_features):
    ...     model = Model.from_coef(np.ones(n_features))
    ...     values = {"map": np.array([value])}
    ...     return Candidate(f"{n_features}", "none", {}, model, values, n_features, n_features)
    >>> all_of_them = [made(0.3, 1), made(0.5, 4), made(0.4, 6), made(0.5, 5), made(0.6, 9)]
    >>> [one.n_features for one in pareto_front(all_of_them, measure="map")]
    [1, 4, 9]
    """
    sign = better_sign(measure)
    listed = [one for one in candidates if one.n_features and np.isfinite(one.score(measure))]
    points = [(sign * one.score(measure), one.n_features, one.cost) for one in listed]
    order = sorted(
        range(len(listed)), key=lambda at: (points[at][1], points[at][2], -points[at][0])
    )
    kept: list[int] = []
    for at in order:  # a candidate that dominates this one comes earlier
        value, _, cost = points[at]
        if not any(points[k][0] >= value and points[k][2] <= cost for k in kept):
            kept.append(at)
    return [listed[at] for at in kept]


def choose(
    candidates: Iterable[Candidate],
    *,
    measure: str,
    max_features: int | None = None,
    max_cost: float | None = None,
    min_measure: Mapping[str, float] | None = None,
    rule: str = "best",
) -> Candidate:
    """Return the best candidate within all limits.

    Parameters
    ----------
    candidates : iterable of Candidate
        A front, or any other candidates.
    measure : str
        Measure to maximise, by ``Candidate.score``.
    max_features : int, optional
        Largest number of features.
    max_cost : float, optional
        Largest total cost, in the unit of the candidates' costs.
    min_measure : mapping of str to float, optional
        Lower bounds of measures (upper bounds of errors). With a bound and no limit on features or
        cost, the candidate with the fewest features within the bounds is returned.
    rule : {"best", "1se"}, default="best"
        "1se": the sparsest candidate whose score is within one standard error of the best. The
        error is that of the difference between the two over the same queries.

    Raises
    ------
    InputError
        If no candidate is within the limits; the message names the nearest ones.
    """
    check_rule(rule)
    listed = [one for one in candidates if one.n_features and np.isfinite(one.score(measure))]
    if not listed:
        raise InputError(
            "no model ranks anything: all weights are zero or not finite; try other parameters, or "
            "bring the features to one scale"
        )
    bounds = dict(min_measure or {})
    small = [one for one in listed if within_limits(one, max_features, max_cost)]
    good = [one for one in small if _reaches(one, bounds)]
    if not good:
        limits = {"max_features": max_features, "max_cost": max_cost}
        raise InputError(_nearest(listed, small, limits, bounds))
    sign = better_sign(measure)

    def size_first(one: Candidate) -> tuple[float, ...]:
        return one.n_features, one.cost, -sign * one.score(measure)

    if bounds and max_features is None and max_cost is None:
        return min(good, key=size_first)
    best = min(good, key=lambda one: (-sign * one.score(measure), one.n_features, one.cost))
    if rule == "best":
        return best
    worth = sign * np.array([one.judged(measure) for one in good])
    near = [good[at] for at in np.flatnonzero(as_good_as(worth, good.index(best)))]
    return min(near, key=size_first)


def _reaches(one: Candidate, bounds: Mapping[str, float]) -> bool:
    """Return whether all measures are within their bounds: lower ones, or upper ones of errors."""
    return all(better_sign(m) * (one.score(m) - bound) >= 0 for m, bound in bounds.items())


def bootstrap_interval(values: FloatArray) -> tuple[float, float]:
    """Return a 95% bootstrap interval for the mean of values per query, without NaN.

    Examples
    --------
    >>> low, high = bootstrap_interval(np.array([0.2, 0.4, 0.6, 0.8, np.nan]))
    >>> 0.2 <= low < 0.5 < high <= 0.8
    True
    """
    defined = values[~np.isnan(values)]
    if len(defined) == 0:
        return float("nan"), float("nan")
    rng = np.random.default_rng(0)
    # drawing counts instead of positions gives all means by one matrix product
    counts = rng.multinomial(len(defined), np.full(len(defined), 1 / len(defined)), 2000)
    low, high = np.quantile(counts @ defined / len(defined), [0.025, 0.975])
    return float(low), float(high)


def within_limits(one: Candidate, max_features: int | None, max_cost: float | None) -> bool:
    """Return whether a candidate is within limits on features and cost."""
    return (max_features is None or one.n_features <= max_features) and (
        max_cost is None or one.cost <= max_cost * (1 + 1e-12)  # sums of decimals are not exact
    )


def _nearest(
    listed: Sequence[Candidate],
    small: Sequence[Candidate],
    limits: Mapping[str, float | None],
    bounds: Mapping[str, float],
) -> str:
    """Return a sentence on the candidates nearest to limits that none is within."""
    given = ", ".join(f"{name}={value:g}" for name, value in limits.items() if value is not None)
    priced = limits["max_cost"] is not None

    def size(one: Candidate) -> str:
        return counted(one.n_features, "feature") + f" at a cost of {one.cost:g}" * priced

    if not small:
        smallest = min(listed, key=lambda one: (one.n_features, one.cost))
        cheapest = min(listed, key=lambda one: (one.cost, one.n_features))
        other = "" if cheapest is smallest else f", the cheapest {size(cheapest)}"
        return f"no model was found with {given}: the smallest has {size(smallest)}{other}"
    required = ", ".join(f"{name} {value:g}" for name, value in bounds.items())
    best = {name: choose(small, measure=name) for name in bounds}
    found = [f"{name} is {one.score(name):.4g} with {size(one)}" for name, one in best.items()]
    reaching = [one for one in listed if _reaches(one, bounds)]
    least = min(reaching, key=lambda one: (one.n_features, one.cost), default=None)
    more = "" if least is None else f"; reaching {required} takes {size(least)}"
    within = f", {given}" if given else ""
    return f"no model reaches {required}{within}: the best {' and '.join(found)}{more}"
