"""Stevens, Bengio & Singer 2013 on judged web searches: Table 1.1, and its variants fold by fold.

On each fold the strength of the penalty, and what else a variant leaves open, is what gives the
best NDCG@10 on the validation part.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import ConvergenceWarning

from leanrank._typing import FloatArray
from leanrank.data.public_sets import SETS, RankingFolds, fetch
from leanrank.data.ranking_data import RankingData
from leanrank.errors import DataWarning, FileError
from leanrank.metrics import evaluate
from leanrank.rankers.boosting.adarank import AdaRank
from leanrank.rankers.boosting.rankboost import RankBoost
from leanrank.rankers.newton.domination import DominationRanker
from leanrank.rankers.path import Path
from leanrank.reproduce.side_by_side import Beside, SideBySideTable

CONVENTIONS = {
    name: known.convention for name, known in SETS.items() if known.convention.startswith("letor")
}
"""The sets of LETOR, and the tool that each was measured with."""

CHOOSE_BY = "ndcg@10"


@dataclass(frozen=True)
class Variant:
    """A way of using Domination Rank.

    Attributes
    ----------
    settings : tuple of dict
        What validation data choose from, beside alpha.
    binary : bool
        Whether labels above zero are all the same.
    """

    settings: tuple[dict[str, Any], ...] = ({},)
    binary: bool = False


VARIANTS = {
    "base": Variant(binary=True),
    "multi-valued": Variant(),
    "margin": Variant(
        tuple({"margin": "scaled", "margin_scale": s} for s in (0.25, 0.5, 1.0, 2.0, 4.0))
    ),
    "elastic net": Variant(tuple({"l1_ratio": r} for r in (0.2, 0.5, 0.8))),
    "ℓ2²": Variant(({"l1_ratio": 0.0},)),
}
"""The variants by name: the paper's three, with the ℓ1 penalty, and the last two multi-valued."""

PUBLISHED = {
    "Multi-valued": ("3.62", "3.25", "3.12"),
    "Base": ("3.38", "3.12", "3.38"),
    "Margin": ("2.75", "2.38", "3.62"),
    "AdaRank-NDCG": ("4.12", "4.00", "4.12"),
    "AdaRank-MAP": ("3.62", "4.38", "3.38"),
    "RankBoost": ("3.38", "3.12", "3.38"),
}
MEASURES = {"ndcg@10": "NDCG@10", "p@10": "P@10", "ndcg@5": "NDCG@5"}
BOOSTED: dict[str, Callable[[], Any]] = {
    "AdaRank-NDCG": lambda: AdaRank(measure="ndcg@10"),
    "AdaRank-MAP": lambda: AdaRank(measure="map"),
    "RankBoost": lambda: RankBoost(n_rounds=300, measure=CHOOSE_BY),
}
"""The systems to compare with; validation data say when to stop."""


@dataclass(frozen=True)
class Chosen:
    """A model and what validation data chose for it."""

    coef: FloatArray
    alpha: float
    setting: dict[str, Any]
    quality: float


def fit_variant(
    variant: Variant,
    train: RankingData,
    vali: RankingData,
    convention: str,
    *,
    n_jobs: int | None = None,
) -> Chosen:
    """Fit a variant with everything it leaves open chosen by validation NDCG@10."""
    data = train.replace(y=(train.y > 0).astype(np.float64)) if variant.binary else train
    best: Chosen | None = None
    for setting in variant.settings:
        ranker = DominationRanker(n_jobs=n_jobs, **setting)
        path = _path(ranker, data, vali, convention)
        at = path.best()
        quality = float(path.measures[CHOOSE_BY][at])
        if best is None or quality > best.quality:
            best = Chosen(path.coefs[at], float(path.alphas[at]), setting, quality)
    assert best is not None  # every variant has a setting
    return best


def letor_table(
    data_dir: str | os.PathLike[str] | None,
    *,
    say: Callable[[str], None],
    n_jobs: int | None = None,
) -> tuple[SideBySideTable | None, list[str]]:
    """Rank the systems on each set that is there, and average; say what to know about it."""
    ranks, used, missing = [], [], []
    for name, convention in CONVENTIONS.items():
        try:
            folds = fetch(name, data_dir=data_dir, download=False)
        except FileError:
            missing.append(name)
            continue
        used.append(name)
        ranks.append(_ranks(folds, convention, say, n_jobs))
    notes = [f"Table 1.1 leaves out {', '.join(missing)}: not in the data directory."]
    if not used:
        return None, notes
    mean = np.mean(ranks, axis=0)  # measures × systems
    rows = []
    for m, measure in enumerate(MEASURES.values()):
        cells = [
            Beside(printed[m], f"{mean[m, s]:.2f}") for s, printed in enumerate(PUBLISHED.values())
        ]
        rows.append((measure, tuple(cells)))
    title = "Table 1.1: average rank (lower is better) on LETOR sets"
    notes.insert(
        0,
        "Table 1.1: published ranks are on eight sets; ours are on "
        f"{' and '.join(used)}, by the measures of each set's own tool.",
    )
    if not missing:
        notes.pop()
    return SideBySideTable(title, tuple(PUBLISHED), tuple(rows)), notes


def _ranks(
    folds: RankingFolds, convention: str, say: Callable[[str], None], n_jobs: int | None
) -> FloatArray:
    """Give the rank of each system by each measure on one set; equals share theirs."""
    values = np.zeros((folds.n_folds, len(MEASURES), len(PUBLISHED)))
    for number in range(folds.n_folds):
        say(f"Table 1.1: {folds.known.name}, fold {number + 1} of {folds.n_folds}")
        train, vali, test = folds.fold(number + 1)
        for s, system in enumerate(PUBLISHED):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)
                result = evaluate(
                    test,
                    _scores(system, train, vali, test, convention, n_jobs),
                    measures=list(MEASURES),
                    convention=convention,
                )
            values[number, :, s] = [result.means[m] for m in MEASURES]
    means = values.mean(axis=0).round(4)  # as printed
    return np.array([rankdata(-row) for row in means])


def _scores(
    system: str,
    train: RankingData,
    vali: RankingData,
    test: RankingData,
    convention: str,
    n_jobs: int | None,
) -> FloatArray:
    """Fit a system of Table 1.1 and score the test documents."""
    if system not in BOOSTED:
        chosen = fit_variant(VARIANTS[system.lower()], train, vali, convention, n_jobs=n_jobs)
        return np.asarray(test.X @ chosen.coef)
    ranker = BOOSTED[system]()
    scores: FloatArray = ranker.fit(train, validation=vali).predict(test)
    return scores


def _path(ranker: DominationRanker, train: RankingData, vali: RankingData, convention: str) -> Path:
    alphas = None
    if ranker.l1_ratio == 0.0:  # nothing empties such a model: go by the scale of the ℓ1 problem
        top = DominationRanker().alpha_max(train)
        alphas = top * np.logspace(1, -5, 25)
    with warnings.catch_warnings():
        # some folds have queries without information; models at the ends need not be exact
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return ranker.path(
            train,
            alphas=alphas,
            n_alphas=30,
            validation=vali,
            measures=[CHOOSE_BY],
            convention=convention,
        )
