"""The result of a search: the models, the front, and the chosen model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from leanrank._display import html_table
from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.metrics.judge import better_sign
from leanrank.model.export.formula import in_units_of_data
from leanrank.selection.tuning.candidate import Candidate
from leanrank.selection.tuning.front import pareto_front

if TYPE_CHECKING:
    from leanrank.model.model import Model
    from leanrank.rankers.path import Path
    from leanrank.selection.tuning.costs import Costs


class Leanness(NamedTuple):
    """What a lean model costs: the best of any size, how much better it is, and how sure that is.

    ``str`` describes it in words.
    """

    best: Candidate
    loss: float
    standard_error: float
    measure: str

    def __str__(self) -> str:
        size = f"{self.best.n_features} feature{'s' * (self.best.n_features != 1)}"
        return (
            f"the best of any size, with {size}, has {self.measure} "
            f"{self.best.score(self.measure):.4f}, better by {self.loss:.4f} "
            f"(standard error {self.standard_error:.4f})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """Candidates for one task, and what is known about them.

    Attributes
    ----------
    measure, convention : str
        What was optimised. Documents of equal scores count as in all their orders on average,
        whatever the convention does with them: a choice must not follow the order of a file.
    candidates : list of Candidate
        In the order in which they were found.
    chosen : Candidate
    training, validation : RankingData
        ``Candidate.values`` are about the queries of ``validation``. Without a validation part it
        is the training data, every query judged by a model that was fitted without it. After a
        search on Dask both are there.
    measures : tuple of str
        All that were measured, the optimised one first.
    feature_names : tuple of str or None
    costs : Costs or None
        What features cost; None: 1 each.
    baselines : dict of str to (dict of str to array)
        By name, each measure on every query of ``validation``.
    paths : dict of str to Path
        Whole paths of rankers, where they are known.
    history : list of dict or None
        A learning curve.
    stability : object or None
    draws : sequence of Model
        The chosen model's ranker on queries drawn again, for bands around its curves.
    normalizer : Normalizer or None
        Applied to ``training``, ``validation`` and the features of all models.
    scale_reason : str
        Why features were normalised or not, if that was not asked for.
    not_tried : tuple of str
        Systems that a search had no time for.
    skipped : dict of str to str
        Systems that cannot be tried where the data are, and what they need.
    problems : dict of str to str
        Systems that failed, and why.
    interrupted : bool
        Whether a search was ended by Ctrl-C.
    """

    measure: str
    convention: str
    candidates: Sequence[Candidate]
    chosen: Candidate
    training: RankingData
    validation: RankingData
    measures: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None
    costs: Costs | None = None
    baselines: Mapping[str, Mapping[str, FloatArray]] = field(default_factory=dict)
    paths: Mapping[str, Path] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] | None = None
    stability: Any = None
    draws: Sequence[Model] = ()
    normalizer: Any = None
    scale_reason: str = ""
    not_tried: tuple[str, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def model(self) -> Model:
        """The chosen model for features as they were given.

        Lines carry the normaliser; curves and steps have their cuts in the units of the features,
        unless these are normalised per query.
        """
        model = self.chosen.model
        if self.normalizer is None:
            return model
        scaled = model.replace(normalizer=self.normalizer.to_dict())
        return scaled if model.is_linear else in_units_of_data(scaled)

    @cached_property
    def front(self) -> list[Candidate]:
        """The candidates that no other beats, fewest features first."""
        return pareto_front(self.candidates, measure=self.measure)

    @property
    def leanness(self) -> Leanness | None:
        """What your limits and the rule cost; None if the chosen model is the best of all."""
        sign = better_sign(self.measure)
        parts = set(self.chosen.training_values)
        alike = [one for one in self.front if set(one.training_values) == parts]  # same queries
        best = max([*alike, self.chosen], key=lambda one: sign * one.score(self.measure))
        gain = sign * (best.judged(self.measure) - self.chosen.judged(self.measure))
        gain = gain[~np.isnan(gain)]
        if not gain.any() or gain.mean() <= 0:
            return None
        return Leanness(
            best, float(gain.mean()), float(gain.std() / np.sqrt(len(gain))), self.measure
        )

    def __repr__(self) -> str:
        return (
            f"Study: {len(self.candidates)} candidates by {self.measure} ({self.convention}), "
            f"{len(self.front)} on the front, chosen: {self.chosen.name}"
        )

    def _repr_html_(self) -> str:
        rows = [
            ["→ " * (one is self.chosen) + one.name, f"{one.n_features}"]
            + [f"{one.means[measure]:.4f}" for measure in self.measures]
            for one in self.front
        ]
        note = f"{len(self.candidates)} candidates, the front by {self.measure}, → the chosen one"
        return html_table("Study", note, ["model", "features", *self.measures], rows)
