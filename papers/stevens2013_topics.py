"""Topics over one collection, shared by the large experiments of Stevens, Bengio & Singer 2013."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.data.ranking_data import column_values
from leanrank.metrics import evaluate, percent_zero
from leanrank.rankers.pairs import PAMIR
from leanrank.rankers.topics import TopicRanker
from papers.report import Cell, beside

MEASURES = {
    "map": "AP",
    "p@10": "P@10",
    "domination_error": "dom. err.",
    "all_pairs_error": "pairs err.",
    "percent_zero": "% zeros",
}
"""The measures of Tables 1.2 and 1.3, with names short enough for a screen."""

SEED = 0

AGGRESSIVENESS = (0.01, 0.1, 1.0)
"""C of PAMIR, to choose from."""


@dataclass(frozen=True)
class TopicSplit:
    """A collection cut at random: half for training, a quarter each for validation and test."""

    train: tuple[Matrix, Matrix]
    vali: tuple[Matrix, Matrix]
    test: tuple[Matrix, Matrix]


def cut(X: Matrix, Y: Matrix, least: int, seed: int = SEED) -> tuple[TopicSplit, IntArray]:
    """Split a collection; return it and the topics kept, with enough positives in every part.

    Parameters
    ----------
    X, Y : CSR arrays
        Documents × features, and documents × topics.
    least : int
        Fewest positives of a topic in a part.
    seed : int
    """
    order = np.random.default_rng(seed).permutation(X.shape[0])
    half, three_quarters = len(order) // 2, 3 * len(order) // 4
    rows = [np.sort(r) for r in np.split(order, [half, three_quarters])]
    positives = np.array([np.asarray((Y[r] > 0).sum(axis=0)).ravel() for r in rows])
    kept = np.flatnonzero((positives >= least).all(axis=0))
    train, vali, test = ((X[r], Y[r][:, kept]) for r in rows)
    return TopicSplit(train, vali, test), kept


def measure(coef: FloatArray, X: Matrix, Y: Matrix) -> dict[str, float]:
    """Average the measures of the tables over topics; what is above zero counts as relevant."""
    scores = np.asarray(X @ coef.T)
    found: dict[str, list[float]] = {name: [] for name in MEASURES}
    for t, w in enumerate(coef):
        relevant = column_values(Y, t) > 0
        result = evaluate(relevant.astype(np.float64), scores[:, t], measures=list(MEASURES)[:4])
        for name, value in result.means.items():
            found[name].append(value)
        found["percent_zero"].append(percent_zero(w))
    return {name: float(np.nanmean(values)) for name, values in found.items()}


def pamir(
    parts: TopicSplit, levels: Callable[[Matrix], Matrix], n_jobs: int | None
) -> tuple[FloatArray, float]:
    """Fit PAMIR to every topic, its C and its number of passes by average precision on validation
    data; return the weights and the seconds.
    """
    X, Y = parts.train[0], levels(parts.train[1])
    held_out = (parts.vali[0], levels(parts.vali[1]))

    def make(C: float) -> TopicRanker:
        return TopicRanker(
            PAMIR(C, measure="map", epochs=10, n_steps=max(10_000, X.shape[0])), n_jobs=n_jobs
        )

    make(1.0).fit(X, Y[:, :1])  # compiles, outside of the time
    start = time.perf_counter()
    fits = [make(C).fit(X, Y, validation=held_out) for C in AGGRESSIVENESS]
    quality = [fit.evaluate(*held_out, measures=["map"]).per_query["map"] for fit in fits]
    best = np.argmax(np.nan_to_num(quality, nan=-1.0), axis=0)
    seconds = time.perf_counter() - start
    coefs = [fit.coef_.toarray() for fit in fits]
    return np.array([coefs[at][topic] for topic, at in enumerate(best)]), seconds


def cells(published: Sequence[str] | None, ours: dict[str, float]) -> tuple[Cell, ...]:
    """Put published and obtained figures of one system side by side, to the printed digits."""
    texts = [f"{ours[name]:.{1 if name == 'percent_zero' else 3}f}" for name in MEASURES]
    printed: Sequence[str | None] = published or [None] * len(texts)
    return tuple(map(beside, printed, texts))
