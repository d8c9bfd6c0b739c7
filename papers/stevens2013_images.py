"""Stevens, Bengio & Singer 2013, Table 1.2: pictures ranked by clicks, on synthetic data.

The paper's pictures are not public. The synthetic data have their shape: 10,000 dimensions of which
2 % are not zero, one ranking function per query over one collection, and feedback by counts of
clicks, many of them noise. Half of the pictures are for training, a quarter each for validation and
test.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from leanrank._typing import FloatArray, Matrix
from leanrank.rankers.systems import DominationRanker
from leanrank.rankers.topics import TopicRanker
from papers import published
from papers.report import ComparedTable
from papers.stevens2013_topics import (
    MEASURES,
    SEED,
    TopicSplit,
    cells,
    cut,
    measure,
    pamir,
)
from papers.words import make_words

MARGIN_SCALES = (0.01, 0.03, 0.1, 0.3)
"""Validation chooses one; counts of clicks reach dozens."""

RIDGES = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001)
"""Strengths of ℓ2² to choose from: there is no formula for the largest."""


@dataclass(frozen=True)
class ImageSizes:
    """The size of the synthetic pictures."""

    n_documents: int = 6_000
    n_features: int = 10_000
    n_queries: int = 20
    density: float = 0.02


def image_table(
    *, say: Callable[[str], None], n_jobs: int | None = None, shape: ImageSizes
) -> tuple[ComparedTable, list[str]]:
    """Return Table 1.2 on the synthetic data, and notes."""
    X, counts = make_clicks(shape)
    parts, kept = cut(X, counts, least=2)
    systems: dict[str, Callable[[], FloatArray]] = {
        "PAMIR": lambda: pamir(parts, _binary, n_jobs)[0],
        "Base-ℓ2²": lambda: _fit(parts, _binary, {"l1_ratio": 0.0}, n_jobs, RIDGES)[0],
        "Base-ℓ1": lambda: _fit(parts, _binary, {}, n_jobs)[0],
        "Multi-valued": lambda: _fit(parts, _three_valued, {}, n_jobs)[0],
        "Margin": lambda: _margin(parts, n_jobs),
    }
    rows = []
    for name, printed in published("stevens2013")["images"].items():
        say(f"Table 1.2: {name}")
        rows.append((name, cells(printed, measure(systems[name](), *parts.test))))
    table = ComparedTable(
        title="Table 1.2: 2.3 million pictures as published, a made-up stand-in as obtained",
        columns=tuple(MEASURES.values()),
        rows=tuple(rows),
    )
    relevant = 100 * (counts[:, kept] > 0).sum() / (X.shape[0] * len(kept))
    return table, [
        f"Table 1.2: {X.shape[0]:,} × {X.shape[1]:,}, {100 * X.nnz / np.prod(X.shape):.1f} % "
        f"dense, {len(kept)} queries, {relevant:.1f} % of the pictures clicked; strengths, and the "
        "scale of the margin, by average precision on validation pictures. The margin's levels are "
        "the counts themselves. The truth behind the clicks has 20 dimensions per query, which "
        "suits sparse models."
    ]


def make_clicks(shape: ImageSizes, seed: int = SEED) -> tuple[Matrix, Matrix]:
    """Make up pictures and, for each query, how often each was clicked.

    A query depends on few dimensions. Its best pictures are clicked, the better the more often; as
    many clicks again are random.
    """
    X = make_words(shape.n_documents, shape.n_features, shape.density, seed=seed).X
    rng = np.random.default_rng(seed)
    frequency = np.bincount(X.indices, minlength=shape.n_features)
    common = np.argsort(-frequency)[: max(20, shape.n_features // 5)]
    columns = []
    for _ in range(shape.n_queries):
        w = np.zeros(shape.n_features)
        w[rng.choice(common, 20, replace=False)] = rng.normal(size=20)
        liking = np.asarray(X @ w)
        liking = liking / liking.std() + rng.normal(size=len(liking))
        best = np.argsort(-liking)[: max(8, shape.n_documents // 100)]
        clicks = np.zeros(shape.n_documents, dtype=np.int64)
        clicks[best] += 1 + rng.poisson(np.exp(liking[best] - liking[best].min()))
        clicks[rng.choice(shape.n_documents, len(best), replace=False)] += 1  # by mistake
        columns.append(clicks)
    return X, csr_array(np.column_stack(columns).astype(np.float64))


def _binary(counts: Matrix) -> Matrix:
    return (counts > 0).astype(np.float64)


def _three_valued(counts: Matrix) -> Matrix:
    """Irrelevant, somewhat relevant (one click) and relevant (more)."""
    return (counts > 0).astype(np.float64) + (counts > 1).astype(np.float64)


def _fit(
    parts: TopicSplit,
    levels: Callable[[Matrix], Matrix],
    setting: dict[str, Any],
    n_jobs: int | None,
    alphas: tuple[float, ...] | None = None,
) -> tuple[FloatArray, float]:
    """Fit every query; return the weights and their validation average precision."""
    ranker = TopicRanker(DominationRanker(tol=1e-4, **setting), alphas=alphas, n_jobs=n_jobs)
    held_out = (parts.vali[0], _binary(parts.vali[1]))
    ranker.fit(parts.train[0], levels(parts.train[1]), validation=held_out)
    return ranker.coef_.toarray(), ranker.evaluate(*held_out, measures=["map"]).means["map"]


def _margin(parts: TopicSplit, n_jobs: int | None) -> FloatArray:
    fits = [
        _fit(parts, lambda counts: counts, {"margin": "scaled", "margin_scale": s}, n_jobs)
        for s in MARGIN_SCALES
    ]
    return max(fits, key=lambda fit: fit[1])[0]
