"""The systems that Cheng et al. 2018 compare, and how each is trained and chosen.

Each fold's parameters are those with the best mean of MAP and NDCG@10 on the validation part, for
each seed by itself; a model without a feature, or with weights that are not finite, is never
chosen. Figures are means over the five folds.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import DataWarning, InputError
from leanrank.execution import Executor
from leanrank.metrics import evaluate
from leanrank.rankers import RANKERS, get_ranker

CONVENTION = "letor3"
CUTOFFS = tuple(range(1, 11))
MEASURES = (*(f"ndcg@{k}" for k in CUTOFFS), "map")
CHOOSE_BY = ("map", "ndcg@10")
STRICT = "map, label 2"

Settings = list[dict[str, Any]]
Fold = tuple[RankingData, RankingData, RankingData]

PAPER_GAMMAS = tuple(2.0**e for e in range(1, -11, -1))
PAPER_LAMBDAS = tuple(2.0**e for e in range(15, -3, -1))
GAMMAS = tuple(2.0**e for e in range(1, -11, -2))
SHARES = (0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03)


@dataclass(frozen=True)
class System:
    """A row of the tables.

    Attributes
    ----------
    label : str
    ranker : str
        Its name on the command line.
    settings : callable
        From training data to the parameters that validation chooses from.
    seeded : bool
        Whether the result depends on a seed.
    about : str
        What the row stands for.
    """

    label: str
    ranker: str
    settings: Callable[[RankingData], Settings]
    seeded: bool = False
    about: str = ""

    @property
    def exists(self) -> bool:
        """Whether the ranker has been built."""
        return self.ranker in RANKERS


@dataclass(frozen=True)
class Outcome:
    """What a system reached on one data set.

    Attributes
    ----------
    measures : dict of str to array
        One mean over folds for each seed; empty if in some fold no model could be used.
    sparsity : array
        The share of the features in use, by seed.
    seconds : float
        To train the chosen model once, alone on the machine's first core; mean over folds.
    n_models, n_unusable : int
        Models trained, and those that diverged or had no feature.
    chosen_by : dict
        The mean MAP and NDCG@10 had validation chosen by one measure alone.
    """

    measures: dict[str, FloatArray]
    sparsity: FloatArray
    seconds: float
    n_models: int
    n_unusable: int
    chosen_by: dict[str, tuple[float, float]]

    def mean(self, measure: str) -> float | None:
        """Give the mean over seeds, None if there is no model."""
        return float(self.measures[measure].mean()) if self.measures else None


def learn(
    system: System,
    folds: Sequence[Fold],
    seeds: Sequence[int],
    executor: Executor,
) -> Outcome:
    """Train a system with all its settings on all folds and seeds, choose and measure."""
    with warnings.catch_warnings():
        # Empty models, ties and rough optima are what a grid is for.
        warnings.simplefilter("ignore", DataWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return _learn(system, folds, seeds if system.seeded else seeds[:1], executor)


def _learn(
    system: System, folds: Sequence[Fold], seeds: Sequence[int], executor: Executor
) -> Outcome:
    settings = [system.settings(train) for train, _, _ in folds]
    cells = [
        (fold, seed, at)
        for fold in range(len(folds))
        for seed in seeds
        for at in range(len(settings[fold]))
    ]

    def job(cell: tuple[int, int, int]) -> _Model | None:
        fold, seed, at = cell
        return _train(system, settings[fold][at], seed, *folds[fold][:2])

    models = dict(zip(cells, executor.map(job, cells), strict=True))
    n_unusable = sum(model is None for model in models.values())
    chosen = _choose(models, len(folds), seeds, CHOOSE_BY)
    if chosen is None:
        return Outcome({}, np.zeros(0), np.nan, len(cells), n_unusable, {})
    tests = [test for _, _, test in folds]
    measures = _measure(models, chosen, tests)
    alone = {}
    for name in CHOOSE_BY:
        other = _choose(models, len(folds), seeds, (name,))
        assert other is not None  # the same models are usable
        found = _measure(models, other, tests)
        alone[name] = (float(found["map"].mean()), float(found["ndcg@10"].mean()))
    used = [
        float(np.mean([np.mean(_model(models[cell]).coef != 0) for cell in row])) for row in chosen
    ]
    return Outcome(
        measures,
        np.array(used),
        _seconds(system, settings, chosen[0], folds),
        len(cells),
        n_unusable,
        alone,
    )


@dataclass(frozen=True)
class _Model:
    coef: FloatArray
    quality: dict[str, float]


def _train(
    system: System, setting: dict[str, Any], seed: int, train: RankingData, vali: RankingData
) -> _Model | None:
    coef = _fit(system, setting, seed, train)
    if coef is None or not coef.any() or not np.isfinite(coef).all():
        return None
    return _Model(coef, _evaluate(coef, vali, CHOOSE_BY))


def _fit(
    system: System, setting: dict[str, Any], seed: int, train: RankingData
) -> FloatArray | None:
    more = {"random_state": seed} if system.seeded else {}
    try:
        coef: FloatArray = get_ranker(system.ranker)(**setting, **more).fit(train).coef_
    except InputError:  # diverged
        return None
    return coef


def _choose(
    models: dict[tuple[int, int, int], _Model | None],
    n_folds: int,
    seeds: Sequence[int],
    by: Sequence[str],
) -> list[list[tuple[int, int, int]]] | None:
    """Give each seed's best model of each fold, the sparsest among equals."""
    chosen = []
    for seed in seeds:
        row = []
        for fold in range(n_folds):
            rated = [
                (sum(m.quality[name] for name in by), -np.count_nonzero(m.coef), -cell[2], cell)
                for cell, m in models.items()
                if m is not None and cell[:2] == (fold, seed)
            ]
            if not rated:
                return None
            row.append(max(rated)[-1])
        chosen.append(row)
    return chosen


def _measure(
    models: dict[tuple[int, int, int], _Model | None],
    chosen: list[list[tuple[int, int, int]]],
    tests: Sequence[RankingData],
) -> dict[str, FloatArray]:
    """Measure each seed's models on the test parts: one mean over folds for each seed."""
    found: dict[str, list[float]] = {name: [] for name in (*MEASURES, STRICT)}
    for row in chosen:
        values = []
        for cell in row:
            coef, test = _model(models[cell]).coef, tests[cell[0]]
            graded = test.levels[-1] >= 2
            strict = _evaluate(coef, test, ("map",), rel=2.0)["map"] if graded else np.nan
            values.append({**_evaluate(coef, test, MEASURES), STRICT: strict})
        for name, means in found.items():
            means.append(float(np.mean([v[name] for v in values])))
    return {name: np.array(means) for name, means in found.items()}


def _evaluate(
    coef: FloatArray, data: RankingData, measures: Sequence[str], rel: float | None = None
) -> dict[str, float]:
    scores = np.asarray(data.X @ coef)
    return evaluate(data, scores, measures=measures, convention=CONVENTION, rel=rel, n_jobs=1).means


def _seconds(
    system: System, settings: list[Settings], row: list[tuple[int, int, int]], folds: Sequence[Fold]
) -> float:
    times = []
    for fold, seed, at in row:
        start = time.perf_counter()
        _fit(system, settings[fold][at], seed, folds[fold][0])
        times.append(time.perf_counter() - start)
    return float(np.mean(times))


def _model(model: _Model | None) -> _Model:
    assert model is not None  # only usable ones are chosen
    return model


def _grid(**axes: Sequence[Any]) -> Callable[[RankingData], Settings]:
    """Combine all values of all parameters, whatever the data."""
    combined: Settings = [{}]
    for name, values in axes.items():
        combined = [{**setting, name: value} for setting in combined for value in values]
    return lambda train: combined


def _shares_of_alpha_max(
    ranker: str, shares: Sequence[float], **fixed: Any
) -> Callable[[RankingData], Settings]:
    def settings(train: RankingData) -> Settings:
        top = get_ranker(ranker)(**fixed).alpha_max(train)
        return [{"alpha": float(share * top), **fixed} for share in shares]

    return settings


PLAIN = System(
    "MinBatSRank, plain sums",
    "minbatsrank",
    _grid(
        gamma=PAPER_GAMMAS,
        alpha=PAPER_LAMBDAS,
        relative=(False,),
        normalize=("none",),
        epochs=(1,),
    ),
    seeded=True,
    about="the loss of a query summed over its pairs, γ and λ from the paper's grids, ρ = 1; one "
    "pass, as it speaks of a stream",
)
MEANS = System(
    "MinBatSRank",
    "minbatsrank",
    _grid(gamma=GAMMAS, alpha=SHARES),
    seeded=True,
    about="the loss of a query averaged over its pairs, λ as a share of λ_max, ten passes",
)
NONFEA_PLAIN = System(
    "Nonfea, plain sums",
    "minbatsrank",
    _grid(
        gamma=(1.0, *PAPER_GAMMAS[3::2]),
        alpha=PAPER_LAMBDAS[::2],
        relative=(False,),
        normalize=("none",),
        rates=("uniform",),
        epochs=(1,),
    ),
    seeded=True,
    about="rates γ/√t for all features; γ = 1 is the paper's",
)
NONFEA_MEANS = System(
    "Nonfea",
    "minbatsrank",
    _grid(gamma=GAMMAS, alpha=SHARES, rates=("uniform",)),
    seeded=True,
    about="rates γ/√t for all features, losses averaged over pairs",
)
LISTWISE = System(
    "MinBatSRank, ListNet loss",
    "minbatsrank",
    _grid(gamma=GAMMAS, alpha=SHARES, loss=("listnet",)),
    seeded=True,
    about="the sparse stochastic listwise ranker that the paper leaves to the future",
)
SPARSE = (
    System(
        "SparseRank",
        "sparserank",
        _shares_of_alpha_max("sparserank", (*SHARES, 0.02, 0.01, 0.005), tol=1e-4),
        about="by Newton's method, to a duality gap of 1e-4",
    ),
    System(
        "FenchelRank",
        "fenchelrank",
        _grid(radius=(1, 2, 5, 10, 20, 50), tol=(1e-4,)),
        about="the corrective variant, to a duality gap of 1e-4; the published rounds, one corner "
        "of the ball each, take many times longer",
    ),
    System(
        "RSRank",
        "rsrank",
        _grid(alpha=(0.3, 0.1, 0.05, 0.03, 0.02, 0.01, 0.003)),
        seeded=True,
    ),
    System(
        "ℓ1 RankSVM",
        "ranksvm",
        _shares_of_alpha_max("ranksvm", (*SHARES, 0.02, 0.01, 0.005), l1_ratio=1.0, tol=1e-4),
    ),
)
DENSE = (
    System("ListNet", "listnet", _grid(alpha=[10.0**-e for e in range(1, 7)], l1_ratio=(0.0,))),
    System("AdaRank-NDCG", "adarank", _grid(measure=("ndcg@10", "ndcg@5"))),
    System(
        "RankSVM-struct",
        "ranksvm",
        _grid(
            alpha=[10.0**-e for e in range(-1, 5)], loss=("hinge",), solver=("struct",), tol=(1e-3,)
        ),
    ),
)
