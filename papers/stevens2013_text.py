"""Stevens, Bengio & Singer 2013, Table 1.3: topics of a news collection.

The paper's RCV1 needs an agreement; Reuters-21578, an earlier collection of the same agency,
replaces it. Each topic is a ranking of all documents, by unigram tf-idf. Beside it, an ℓ1-penalised
logistic regression per topic from scikit-learn, its strength chosen by the same measure on the same
documents.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import FileError
from leanrank.execution import make_executor
from leanrank.metrics.judge import Judge, best_of
from leanrank.rankers.systems import DominationRanker
from leanrank.rankers.topics import TopicRanker
from papers import published
from papers.public_sets import fetch
from papers.report import ComparedTable
from papers.stevens2013_topics import (
    AGGRESSIVENESS,
    MEASURES,
    TopicSplit,
    cells,
    cut,
    measure,
    pamir,
)

LEAST_POSITIVES = 4
INVERSE_STRENGTHS = (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
"""C of the logistic regression, to choose from."""


def text_table(
    data_dir: str | os.PathLike[str] | None,
    *,
    say: Callable[[str], None],
    n_jobs: int | None = None,
) -> tuple[ComparedTable | None, list[str]]:
    """Return Table 1.3 on Reuters-21578, and notes."""
    try:
        collection = fetch("Reuters-21578", data_dir=data_dir, download=False)
    except FileError as error:
        return None, [f"Table 1.3 is left out: {error}."]
    judged = np.flatnonzero(np.diff(collection.Y.indptr))
    parts, kept = cut(collection.X[judged], collection.Y[judged], LEAST_POSITIVES)
    if not len(kept):
        return None, [
            f"Table 1.3 is left out: no topic of {collection.name} has {LEAST_POSITIVES} documents "
            "in every part."
        ]
    say(f"Table 1.3: Domination Rank on {len(kept)} topics of {collection.name}")
    ours, our_seconds = _domination(parts, n_jobs)
    say(f"Table 1.3: PAMIR on {len(kept)} topics of {collection.name}")
    passive, passive_seconds = pamir(parts, lambda labels: labels, n_jobs)
    say(f"Table 1.3: logistic regression on {len(kept)} topics of {collection.name}")
    peer, peer_seconds = _logistic(parts, n_jobs)
    printed = published("stevens2013")["text"]
    found = {"PAMIR": passive, "Domination Rank": ours, "ℓ1 logistic": peer}
    table = ComparedTable(
        title=f"Table 1.3: RCV1 as published, {collection.name} as obtained",
        columns=tuple(MEASURES.values()),
        rows=tuple(
            (name, cells(printed.get(name), measure(coef, *parts.test)))
            for name, coef in found.items()
        ),
    )
    sizes = ", ".join(f"{part[0].shape[0]:,}" for part in (parts.train, parts.vali, parts.test))
    return table, [
        f"Table 1.3: {sizes} documents for training, validation and test, "
        f"{parts.train[0].shape[1]:,} words, {len(kept)} topics with at least {LEAST_POSITIVES} "
        "positives in each part; strengths chosen for each topic by average precision on "
        f"validation documents. Fitting and choosing took {our_seconds:.1f} s for Domination Rank "
        f"(20 strengths, duality gap 1e-4), {passive_seconds:.1f} s for PAMIR "
        f"({len(AGGRESSIVENESS)} values of C, up to 10 passes of one step per document, at least "
        f"10,000, the best pass kept) and {peer_seconds:.1f} s for scikit-learn's liblinear "
        f"({len(INVERSE_STRENGTHS)} strengths, its default tolerance), on the same threads."
    ]


def _domination(parts: TopicSplit, n_jobs: int | None) -> tuple[FloatArray, float]:
    ranker = TopicRanker(DominationRanker(tol=1e-4), n_jobs=n_jobs)
    few = parts.train[1][:, :1]
    TopicRanker(DominationRanker(tol=1e-4), n_alphas=2, n_jobs=n_jobs).fit(
        parts.train[0], few, validation=(parts.vali[0], parts.vali[1][:, :1])
    )  # compiles, outside of the time
    start = time.perf_counter()
    ranker.fit(*parts.train, validation=parts.vali)
    seconds = time.perf_counter() - start
    return ranker.coef_.toarray(), seconds


def l1_logistic(C: float) -> Any:
    """Make scikit-learn's ℓ1 logistic regression, with the parameters of the installed release."""
    import sklearn
    from sklearn.linear_model import LogisticRegression

    release = tuple(int(part) for part in sklearn.__version__.split(".")[:2])
    penalty = {"l1_ratio": 1.0} if release >= (1, 8) else {"penalty": "l1"}
    return LogisticRegression(solver="liblinear", C=C, random_state=0, **penalty)


def _logistic(parts: TopicSplit, n_jobs: int | None) -> tuple[FloatArray, float]:
    train, vali = (csr_array(part[0]) for part in (parts.train, parts.vali))
    judge = Judge("map")

    def fit(topic: int) -> FloatArray:
        y, held_out = (
            part[1][:, [topic]].toarray().ravel() > 0 for part in (parts.train, parts.vali)
        )
        data = RankingData(vali, held_out.astype(np.float64))
        models = [l1_logistic(C).fit(train, y).coef_[0] for C in INVERSE_STRENGTHS]
        worth = judge.worth([judge.value(data, np.asarray(vali @ w)) for w in models])
        best: FloatArray = models[best_of(worth)]
        return best

    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # liblinear may say that it stopped early
        coefs = make_executor(n_jobs).map(fit, range(parts.train[1].shape[1]))
    return np.array(coefs), time.perf_counter() - start
