"""A made-up collection of texts: words by Zipf's law, tf-idf values, rows of length 1.

The columns of X are words. A text draws a Poisson number of words with replacement, so that each
word occurs a Poisson number of times; its value is (1 + log count) · idf.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.sparse import csr_array, vstack

from leanrank.data import RankingData
from leanrank.data.sets import random_stream
from leanrank.execution import row_blocks

_TRUTH, _DOCUMENTS = 0, 2  # uses of a seed
_SHIFT = 10.0  # Mandelbrot's: what is more common than this in a language is a stop word
_NOISE = np.sqrt(0.5)  # of the labels and of the query; the standard deviation of Xw is 1


def make_words(
    n_documents: int,
    n_words: int,
    density: float,
    *,
    n_informative: int = 5,
    level_shares: Sequence[float] = (4 / 7, 2 / 7, 1 / 7),
    dtype: Any = np.float64,
    seed: int = 0,
) -> RankingData:
    """Make up one query and its texts, of which ``density`` of the words are in a text.

    >>> make_words(50, 200, 0.02).X.shape
    (50, 200)
    """
    by_rank = 1.0 / (np.arange(n_words) + _SHIFT)
    popularity = random_stream(seed, _TRUTH, 0).permutation(by_rank / by_rank.sum())
    wanted = density * n_words
    log_draws = brentq(
        lambda x: -np.expm1(-np.exp(x) * popularity).sum() - wanted,
        np.log(wanted),
        np.log(wanted) + 60,
    )
    draws = float(np.exp(log_draws))
    present = -np.expm1(-draws * popularity)
    idf = 1.0 - np.log(np.maximum(present, np.finfo(float).tiny))
    cumulative = np.cumsum(popularity)

    def draw(rng: np.random.Generator, n_rows: int) -> Any:
        blocks = row_blocks(n_rows, 1 << 15)
        parts = [_texts(rng, b - a, draws, cumulative, idf, dtype) for a, b in blocks]
        return parts[0] if len(parts) == 1 else vstack(parts, format="csr")

    rng = random_stream(seed, _TRUTH, 1)
    coef = np.zeros(n_words)
    chance = present * (1 - present)  # a word that is hardly ever there cannot inform
    chosen = rng.choice(n_words, n_informative, replace=False, p=chance / chance.sum())
    coef[chosen] = rng.choice([-1.0, 1.0], len(chosen)) * rng.uniform(0.5, 1.5, len(chosen))
    scores = np.asarray(draw(rng, int(min(max(2**22 // max(draws, 1), 512), 2**14))) @ coef, float)
    coef /= scores.std()
    scores /= scores.std()
    scores += _NOISE * rng.standard_normal(len(scores))
    bounds = np.cumsum(np.array(level_shares) / np.sum(level_shares))[:-1].clip(0, 1)
    thresholds = np.quantile(scores, bounds)

    # as many queries as fill a block are drawn, of which the first is kept
    n_queries = int(min(max(2**20 // max(1.0, n_documents * n_words * density), 1), 2**10))
    rng = random_stream(seed, _DOCUMENTS, 0)
    X = draw(rng, n_documents * n_queries)
    relevance = np.asarray(X @ coef, dtype=np.float64)
    relevance += 0.5 * rng.standard_normal(len(relevance))
    relevance += np.repeat(0.5 * rng.standard_normal(n_queries), n_documents)
    y = np.searchsorted(thresholds, relevance, side="right")
    return RankingData(X[:n_documents], y[:n_documents])


def _texts(
    rng: np.random.Generator, n_rows: int, draws: float, cumulative: Any, idf: Any, dtype: Any
) -> Any:
    rows = np.repeat(np.arange(n_rows), rng.poisson(draws, n_rows))
    words = np.searchsorted(cumulative[:-1], rng.random(len(rows)), side="right")
    keys, counts = np.unique(rows * len(idf) + words, return_counts=True)
    rows, words = np.divmod(keys, len(idf))
    values = ((1 + np.log(counts)) * idf[words]).astype(dtype)
    length = np.sqrt(np.bincount(rows, values.astype(np.float64) ** 2, n_rows))
    values /= length[rows].astype(dtype)
    indptr = np.searchsorted(rows, np.arange(n_rows + 1)).astype(np.int32)
    return csr_array((values, words.astype(np.int32), indptr), shape=(n_rows, len(idf)))
