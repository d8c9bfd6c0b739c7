"""The protocol of Tsivtsivadze et al. 2012: one random split, its systems and their parameters.

70 % of the queries are for training; of their documents a share, drawn uniformly, keeps its labels.
Features are scaled to [0, 1] within each query. Parameters are those with the best MAP in a
five-fold cross-validation by query, measured on the labelled documents of the queries left out, as
the others have no labels to measure with. The model is then learned from the whole training part.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from leanrank._jit import kernel_view
from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.metrics.judge import Judge
from leanrank.solvers.sampling.coregularised import (
    ViewedBlock,
    Views,
    descend_views,
    make_viewed_block,
    start_views,
)
from leanrank.solvers.sampling.pair_descent import PairRule, descend, start_pairs

FOLDS = 5
TRAINING_SHARE = 0.7


@dataclass(frozen=True)
class Grid:
    """The parameters to choose from, and how long a system learns.

    Attributes
    ----------
    eta0, alpha : tuple of float
    pull : tuple of float
        μ times the number l of unlabelled pairs in a step, over which the pull is summed.
    labelled_pairs : int
        Labelled pairs that a system sees in all: LCRA-5-50 takes a fifth of the others' steps.
    """

    eta0: tuple[float, ...] = (0.001, 0.01, 0.1)
    alpha: tuple[float, ...] = (1e-4, 1e-3, 1e-2, 1e-1)
    pull: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0)
    labelled_pairs: int = 2_000


GRID = Grid()


@dataclass(frozen=True)
class PaperRanker:
    """A ranker of the paper: SPD has one view; ``n_unlabeled`` = 0 is without agreement."""

    name: str
    n_views: int = 2
    n_labeled: int = 1
    n_unlabeled: int = 0

    def settings(self, grid: Grid = GRID) -> list[tuple[float, float, float]]:
        """List (η₀, λ, μ), the mildest first."""
        pulls = [p / self.n_unlabeled for p in grid.pull] if self.n_unlabeled else [0.0]
        return [(e, a, m) for m, a, e in itertools.product(pulls, grid.alpha, grid.eta0)]


SPD = PaperRanker("SPD", n_views=1)
SPD_MV = PaperRanker("SPD-MV")
LCRA = {
    (k, n): PaperRanker(f"LCRA-{k}-{n}", n_labeled=k, n_unlabeled=n)
    for k, n in ((1, 1), (1, 5), (1, 10), (5, 50))
}
SYSTEMS = (SPD, SPD_MV, *LCRA.values())


@dataclass(frozen=True)
class SplitResult:
    """What a system reaches on the test part of one split, and with which (η₀, λ, μ)."""

    map: float
    setting: tuple[float, float, float]


def run_split(
    data: RankingData,
    convention: str,
    fraction: float,
    seed: int,
    systems: tuple[PaperRanker, ...],
    grid: Grid = GRID,
) -> dict[str, SplitResult]:
    """Split a set at random, and learn and measure the systems.

    Parameters
    ----------
    data : RankingData
        Scaled within each query.
    convention : str
        How MAP is measured.
    fraction : float
        Share of the training documents that keep their labels.
    seed : int
        Of the split, the labels that are kept, the views and the pairs drawn: splits of one seed
        have the same training queries for every fraction.
    systems : tuple of PaperRanker
    grid : Grid

    Returns
    -------
    dict
        By the system's name; empty if the labels that are kept make no pair.
    """
    rng = np.random.default_rng([2012, seed])
    queries = rng.permutation(data.n_queries)
    n_train = round(TRAINING_SHARE * data.n_queries)
    train, test = data.queries[queries[:n_train]], data.queries[queries[n_train:]]
    labelled = rng.random(len(train)).argsort().argsort() < round(fraction * len(train))
    fold_of = rng.permutation(np.arange(n_train) % FOLDS)
    cut = rng.permutation(data.n_features)
    half = data.n_features // 2
    views = np.zeros((2, data.n_features))
    views[0, cut[:half]] = views[1, cut[half:]] = 1.0

    parts = []
    for fold in range(FOLDS):
        held_out = _labelled_part(train, labelled, np.flatnonzero(fold_of == fold))
        block = _block(train, labelled, fold_of != fold)
        if held_out is not None and block is not None:
            parts.append((block, held_out))
    whole = _block(train, labelled, np.ones(n_train, dtype=bool))
    if whole is None:
        return {}
    out = {}
    for system in systems:
        settings = system.settings(grid)
        values = np.zeros(len(settings))
        for at, setting in enumerate(settings):
            for block, held_out in parts:
                w = _learn(system, setting, grid.labelled_pairs, block, views, seed)
                values[at] += _map(w, held_out, convention) / len(parts)
        best = settings[int(np.argmax(np.round(values, 4)))]
        w = _learn(system, best, grid.labelled_pairs, whole, views, seed)
        out[system.name] = SplitResult(_map(w, test, convention), best)
    return out


def _learn(
    system: PaperRanker,
    setting: tuple[float, float, float],
    labelled_pairs: int,
    block: ViewedBlock,
    views: FloatArray,
    seed: int,
) -> FloatArray | None:
    """Learn weights; None if the steps were too large."""
    eta0, alpha, mu = setting
    n_steps = labelled_pairs // system.n_labeled
    rule = PairRule("hinge", eta0=eta0, l2=alpha)
    try:
        if system.n_views == 1:
            alone = start_pairs(rule, views.shape[1], seed, average=True)
            descend(alone, block, n_steps)
            return alone.weights()
        each = np.ones(len(views))
        how = Views(views, alpha * each, eta0 * each, mu, system.n_labeled, system.n_unlabeled)
        state = start_views(rule, how, views.shape[1], seed, average=True)
        descend_views(state, block, n_steps)
        return state.weights()
    except InputError:
        return None


def _map(w: FloatArray | None, data: RankingData, convention: str) -> float:
    value = np.nan
    if w is not None:
        value = Judge("map", convention, average_ties=False).value(data, np.asarray(data.X @ w))
    return -1.0 if np.isnan(value) else value  # such a model must never be chosen


def _block(train: RankingData, labelled: BoolArray, queries: BoolArray) -> ViewedBlock | None:
    """Prepare some of the training queries; None if their labels make no pair."""
    part = train.replace(y=np.where(labelled, train.y, np.nan)).queries[np.flatnonzero(queries)]
    if not part.informative.any():
        return None
    return make_viewed_block(part.X, Labels(kernel_view(part.y), kernel_view(part.query_ptr)))


def _labelled_part(
    train: RankingData, labelled: BoolArray, queries: IntArray
) -> RankingData | None:
    query_of = np.repeat(np.arange(train.n_queries), np.diff(train.query_ptr))
    rows = np.flatnonzero(labelled & np.isin(query_of, queries))
    if len(rows) == 0:
        return None
    return RankingData(train.X[rows], train.y[rows], query_of[rows])
