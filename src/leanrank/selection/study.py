"""The result of a search: the models, the front, and the chosen model."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from leanrank._display import html_table
from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData, counted
from leanrank.metrics.judge import better_sign
from leanrank.selection.candidate import Candidate, pareto_front
from leanrank.selection.engine import Split

if TYPE_CHECKING:
    from leanrank.model.model import Model


class Difference(NamedTuple):
    """The difference of the chosen model and another one, on the same held-out queries.

    ``better`` is negative if the chosen model is worse.
    """

    other: Candidate
    better: float
    standard_error: float
    measure: str

    def __str__(self) -> str:
        return (
            f"with {counted(self.other.n_features, 'feature')}, has {self.measure} "
            f"{self.other.score(self.measure):.4f}, "
            f"{'worse' if self.better > 0 else 'better'} by {abs(self.better):.4f} "
            f"(standard error {self.standard_error:.4f})"
        )


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """The result of a search: the candidates, the front and the chosen model.

    Attributes
    ----------
    measure, convention : str
        The reported measure and its convention. Ties are averaged over all their orders, whatever
        the convention, so that no choice depends on the order of a file.
    candidates : list of Candidate
        In the order in which they were found.
    chosen : Candidate
    training, validation : RankingData
        With unscaled features. ``Candidate.values`` are on the queries of ``validation``. Without a
        validation part that is the training data, and every query is scored by a model that was
        fitted without it.
    measures : tuple of str
        All measures, the reported one first.
    feature_names : tuple of str or None
    costs : array or None
        The cost of each feature; None means 1 each.
    baselines : dict of str to (dict of str to array)
        By name, each measure on every query of ``validation``.
    history : list of dict or None
        The best score after each trial.
    stability : StabilityResult or None
    draws : sequence of Model
        Models on bootstrap samples of the queries, for bands around the curves.
    normalizer : Normalizer or None
        The normaliser of the features, which every model contains.
    scale_reason : str
        The reason for which features were normalised or not, with ``scale="auto"``.
    not_tried : tuple of str
        Systems for which the budget was too short.
    skipped : tuple of str
        Systems that were not tried because the data have missing values.
    problems : dict of str to str
        Systems that failed, with the reason.
    interrupted : bool
        Whether the search was ended by Ctrl-C.
    default : Candidate or None
        The best LeanRanker within the limits.
    choose_by : str
        The measure by which models were chosen; by default ``measure``.
    """

    measure: str
    convention: str
    candidates: Sequence[Candidate]
    chosen: Candidate
    training: RankingData
    validation: RankingData
    measures: tuple[str, ...] = ()
    feature_names: tuple[str, ...] | None = None
    costs: FloatArray | None = None
    baselines: Mapping[str, Mapping[str, FloatArray]] = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] | None = None
    stability: Any = None
    draws: Sequence[Model] = ()
    normalizer: Any = None
    scale_reason: str = ""
    not_tried: tuple[str, ...] = ()
    skipped: tuple[str, ...] = ()
    problems: Mapping[str, str] = field(default_factory=dict)
    interrupted: bool = False
    default: Candidate | None = None
    choose_by: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "choose_by", self.choose_by or self.measure)

    @property
    def model(self) -> Model:
        """The chosen model."""
        return self.chosen.model

    @cached_property
    def split(self) -> Split:
        """The data with the normaliser and the measure, to fit other rankers in the same way."""
        return Split(
            self.training,
            self.validation,
            self.measure,
            self.convention,
            normalizer=self.normalizer,
        )

    @cached_property
    def front(self) -> list[Candidate]:
        """The Pareto front of score, number of features and cost, fewest features first."""
        return pareto_front(self.candidates, measure=self.choose_by)

    @property
    def leanness(self) -> Difference | None:
        """The loss in score due to limits and rule; None if the chosen model is the best."""
        found = self._beside(self.front)
        return found if found is not None and found.better < 0 else None

    @property
    def beside_default(self) -> Difference | None:
        """The chosen model compared with ``default``; None if they are equal or there is none."""
        return self._beside([] if self.default is None else [self.default])

    @property
    def judged_on(self) -> str:
        """Sentences on the held-out queries, the best model of any size, and LeanRanker's best."""
        said = "Judged on " + _judged(self.chosen.values[self.measure])
        if self.validation is self.training:
            said += ", each by a model that was fitted without it."
        elif self.measure in self.chosen.training_values:
            n_training = _judged(self.chosen.training_values[self.measure])
            said += f" of the validation part and on {n_training} of the training part, each of "
            said += "these by a model that was fitted without it."
        else:
            said += " of the validation part."
        if self.leanness is not None:
            said += f" The best of any size, {self.leanness}."
        if self.beside_default is not None:
            said += f" LeanRanker's best, {self.beside_default}."
        return said

    def report(
        self, path: str | os.PathLike[str], *, test: Any = None, title: str | None = None
    ) -> None:
        """Write the study as one HTML page; see ``leanrank.report.write_report``."""
        import_module("leanrank.report").write_report(self, path, test=test, title=title)

    def _beside(self, others: Sequence[Candidate]) -> Difference | None:
        """Return the comparison with the best of others on the same queries; None without one."""
        sign = better_sign(self.measure)
        parts = set(self.chosen.training_values)
        alike = [one for one in others if set(one.training_values) == parts]
        best = max(alike, key=lambda one: sign * one.score(self.measure), default=self.chosen)
        gain = sign * (self.chosen.judged(self.measure) - best.judged(self.measure))
        gain = gain[~np.isnan(gain)]
        if best.values is self.chosen.values or not len(gain):
            return None
        error = float(gain.std() / np.sqrt(len(gain)))
        return Difference(best, float(gain.mean()), error, self.measure)

    def __repr__(self) -> str:
        return (
            f"Study: {len(self.candidates)} candidates by {self.choose_by} ({self.convention}), "
            f"{len(self.front)} on the front, chosen: {self.chosen.name}"
        )

    def _repr_html_(self) -> str:
        heads = list(dict.fromkeys(name for one in self.front for name in one.figures()))
        rows = []
        for one in self.front:
            figures = one.figures()
            shown = [f"{figures[name]:.4f}" if name in figures else "" for name in heads]
            rows.append(["→ " * (one is self.chosen) + one.name, f"{one.n_features}", *shown])
        note = f"{len(self.candidates)} candidates, the front by {self.choose_by}, → the chosen one"
        return html_table("Study", note, ["model", "features", *heads], rows)


def _judged(values: FloatArray) -> str:
    """Count the queries that have a value: one with a single label has none."""
    return counted(int(np.count_nonzero(~np.isnan(values))), "query", "queries")
