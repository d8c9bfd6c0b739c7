"""Stevens, Bengio & Singer 2013 on judged web searches: Table 1.1, and its variants fold by fold.

On each fold the strength of the penalty, and what else a variant leaves open, is chosen by NDCG@10
on the validation part.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import DataWarning, FileError
from leanrank.metrics import evaluate
from leanrank.rankers.boosting import AdaRank, RankBoost
from leanrank.rankers.systems import DominationRanker
from leanrank.registry import AlphaPath, Space
from leanrank.selection.candidate import Candidate
from leanrank.selection.engine import Split, fit_best
from papers import published
from papers.public_sets import SETS, RankingFolds, fetch
from papers.report import ComparedTable, beside

CHOOSE_BY = "ndcg@10"
MEASURES = {"ndcg@10": "NDCG@10", "p@10": "P@10", "ndcg@5": "NDCG@5"}


@dataclass(frozen=True)
class Variant:
    """A way of using Domination Rank.

    Attributes
    ----------
    grid : mapping of str to tuple
        What validation data choose from, beside alpha.
    fixed : mapping
    binary : bool
        Whether labels above zero are all the same.
    """

    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    binary: bool = False


VARIANTS = {
    "base": Variant(binary=True),
    "multi-valued": Variant(),
    "margin": Variant({"margin_scale": (0.25, 0.5, 1.0, 2.0, 4.0)}, {"margin": "scaled"}),
    "elastic net": Variant({"l1_ratio": (0.2, 0.5, 0.8)}),
    "ℓ2²": Variant(fixed={"l1_ratio": 0.0}),
}
"""The variants by name: the paper's three, with the ℓ1 penalty, and the last two multi-valued."""

BOOSTED: dict[str, Callable[[], Any]] = {
    "AdaRank-NDCG": lambda: AdaRank(measure="ndcg@10"),
    "AdaRank-MAP": lambda: AdaRank(measure="map"),
    "RankBoost": lambda: RankBoost(n_rounds=300, measure=CHOOSE_BY),
}
"""The systems to compare with; they stop by validation data."""


def fit_variant(
    variant: Variant, train: RankingData, vali: RankingData, convention: str
) -> Candidate:
    """Fit a variant with everything it leaves open chosen by validation NDCG@10."""
    data = train.replace(y=(train.y > 0).astype(np.float64)) if variant.binary else train
    path = AlphaPath(n_alphas=30)
    if variant.fixed.get("l1_ratio") == 0.0:  # nothing empties such a model: the scale of ℓ1
        path = AlphaPath(tuple(DominationRanker().alpha_max(data) * np.logspace(1, -5, 25)))
    space = Space("domination", variant.fixed, variant.grid, path)
    return fit_best(space, Split(data, vali, CHOOSE_BY, convention, average_ties=False))


def letor_table(
    data_dir: str | os.PathLike[str] | None, *, say: Callable[[str], None]
) -> tuple[ComparedTable | None, list[str]]:
    """Rank the systems on each set found, and average; return the table and notes."""
    printed = published("stevens2013")["letor"]
    ranks, used, missing = [], [], []
    for name in (name for name, known in SETS.items() if known.convention.startswith("letor")):
        try:
            folds = fetch(name, data_dir=data_dir, download=False)
        except FileError:
            missing.append(name)
            continue
        used.append(name)
        ranks.append(_ranks(folds, list(printed), say))
    left_out = [f"Table 1.1 leaves out {', '.join(missing)}: not in the data directory."]
    if not used:
        return None, left_out
    mean = np.mean(ranks, axis=0)  # measures × systems
    rows = tuple(
        (
            measure,
            tuple(beside(row[m], f"{mean[m, s]:.2f}") for s, row in enumerate(printed.values())),
        )
        for m, measure in enumerate(MEASURES.values())
    )
    title = "Table 1.1: average rank (lower is better) on LETOR sets"
    note = (
        "Table 1.1: published ranks are on eight sets; ours are on "
        f"{' and '.join(used)}, by the measures of each set's own tool."
    )
    return ComparedTable(title, tuple(printed), rows), [note, *left_out] if missing else [note]


def _ranks(folds: RankingFolds, systems: list[str], say: Callable[[str], None]) -> FloatArray:
    """Return the rank of each system by each measure on one set; equals share theirs."""
    convention = folds.known.convention
    values = np.zeros((folds.n_folds, len(MEASURES), len(systems)))
    for number in range(folds.n_folds):
        say(f"Table 1.1: {folds.known.name}, fold {number + 1} of {folds.n_folds}")
        train, vali, test = folds.fold(number + 1)
        for s, system in enumerate(systems):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                warnings.simplefilter("ignore", ConvergenceWarning)
                if system in BOOSTED:
                    model = BOOSTED[system]().fit(train, validation=vali)
                else:
                    model = fit_variant(VARIANTS[system.lower()], train, vali, convention).model
                scores = model.predict(test)
                found = evaluate(test, scores, measures=list(MEASURES), convention=convention)
            values[number, :, s] = [found.means[m] for m in MEASURES]
    means = values.mean(axis=0).round(4)  # as printed
    return np.array([rankdata(-row) for row in means])
